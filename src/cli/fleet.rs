//! Runs commands over one or several shards.
//!
//! In: the configurations of the command line. Out: a [`Session`] for each shard, and the combined
//! output: one text after another, or one list of documents. Must not: know what a command does.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};

use super::Globals;
use super::console;
use super::exit::{self, worst};
use super::failure::{Failure, Failures};
use super::session::{self, Session};
use crate::check::Purpose;
use crate::config::load::Loaded;
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::report::{diagnostic, events, json as report, text};

/// The shards of one run.
pub struct Fleet<'g> {
    /// The global options.
    pub globals: &'g Globals,
    /// One session per shard, in the given order; never empty.
    pub shards: Vec<Session<'g>>,
    several: bool,
}

/// A command's output for one shard.
#[derive(Debug)]
pub struct Reply {
    /// For standard output.
    pub body: Body,
    /// Printed on standard error; a document already contains its own.
    pub findings: Diagnostics,
    /// A final note, on standard error.
    pub note: String,
    /// The exit code.
    pub code: u8,
}

/// The output for standard output.
#[derive(Debug)]
pub enum Body {
    /// Text.
    Text(String),
    /// A JSON document.
    Document(Value),
}

impl Reply {
    /// A successful reply with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Body::Text(text.into()))
    }

    /// A successful reply with a document.
    pub fn document(document: Value) -> Self {
        Self::of(Body::Document(document))
    }

    fn of(body: Body) -> Self {
        Self {
            body,
            findings: Diagnostics::default(),
            note: String::new(),
            code: exit::SUCCESS,
        }
    }

    /// Adds findings to a text.
    #[must_use]
    pub fn telling(mut self, findings: Diagnostics) -> Self {
        self.findings = findings;
        self
    }

    /// Sets the exit code.
    #[must_use]
    pub fn ending(mut self, code: u8) -> Self {
        self.code = code;
        self
    }
}

/// How the shards' replies are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Texts, each below a heading with the shard's name.
    Headed,
    /// Texts whose lines name the shard.
    Plain,
    /// A list of documents.
    Documents,
}

impl Form {
    /// Documents if requested, else this form.
    #[must_use]
    pub fn documents_or(self, documents: bool) -> Self {
        if documents { Self::Documents } else { self }
    }
}

impl<'g> Fleet<'g> {
    /// Loads every configuration and keeps its warnings.
    ///
    /// Fails with the errors of all configurations.
    pub fn load(globals: &'g Globals, purpose: Purpose) -> Result<Self, Failures> {
        let all = read(globals, purpose);
        let is_usable = |one: &Loaded| one.config.is_some() && !one.findings.has_errors();
        if !all.iter().all(is_usable) {
            let mut failures = Failures::default();
            for one in all.into_iter().filter(|one| !is_usable(one)) {
                failures.push(one.findings.into(), one.sources);
            }
            return Err(failures);
        }
        let shards = all.into_iter();
        let shards = shards.map(|loaded| Session::new(globals, loaded)).collect();
        let fleet = Self::of(globals, shards);
        match fleet.twice() {
            findings if findings.has_errors() => Err(Failure::from(findings).into()),
            _ => Ok(fleet),
        }
    }

    /// A fleet of valid sessions.
    ///
    /// Fails if two of them are the same shard or use the same state.
    pub fn of(globals: &'g Globals, mut shards: Vec<Session<'g>>) -> Self {
        let several = shards.len() > 1;
        if several {
            let mut count: HashMap<String, usize> = HashMap::new();
            for session in &shards {
                *count.entry(session.identity().shard).or_default() += 1;
            }
            for session in &mut shards {
                let identity = session.identity();
                session.label = Some(if count[&identity.shard] == 1 {
                    identity.shard
                } else {
                    format!("{}/{}", identity.cluster, identity.shard)
                });
            }
        }
        Self {
            globals,
            shards,
            several,
        }
    }

    /// Whether several configurations were given, even if the command selected one of them.
    pub fn is_several(&self) -> bool {
        self.several
    }

    /// Errors for duplicate shards, and for states that two shards share.
    pub fn twice(&self) -> Diagnostics {
        let mut findings = Diagnostics::default();
        let mut shards: HashMap<(String, String), String> = HashMap::new();
        let mut states: HashMap<&Path, String> = HashMap::new();
        for session in &self.shards {
            let identity = session.identity();
            let id = &session.config().shard.id;
            let place = session.loaded.sources.place(id.span);
            let (cluster, shard) = (identity.cluster, identity.shard);
            let name = format!("shard `{shard}` of cluster `{cluster}`");
            if let Some(first) = shards.insert((cluster, shard), place.clone()) {
                findings.push(
                    Diagnostic::error(format!("two configurations are {name}"))
                        .detail(format!("the first: {first}\nthe second: {place}"))
                        .hint(
                            "Name each configuration once, or give one of them another `shard.id`",
                        ),
                );
                continue;
            }
            // Other storage holds the states of many shards.
            if let Ok(storage) = session.storage()
                && let Some(path) = storage.file()
                && let Some(first) = states.insert(path, name.clone())
            {
                findings.push(
                    Diagnostic::error(format!(
                        "{first} and {name} would have one state: {}",
                        path.display()
                    ))
                    .detail("a state belongs to one shard")
                    .hint(
                        "Let its name tell them apart: --state sqlite:states/{cluster}/{shard}.db",
                    ),
                );
            }
        }
        findings
    }

    /// Keeps the shards for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut index = 0;
        self.shards.retain(|_| {
            index += 1;
            keep(index - 1)
        });
    }

    /// The only shard, for `what`, which can't run over several.
    ///
    /// Fails if there are several.
    pub fn only(&self, what: &str) -> Result<&Session<'g>, Failure> {
        match &self.shards[..] {
            [only] => Ok(only),
            _ => Err(Failure::new(
                Diagnostic::error(format!(
                    "{what} is about one shard, and this run has several"
                ))
                .detail(format!("it has {}", self.names().join(", ")))
                .hint("Name one configuration: -c PATH"),
            )),
        }
    }

    /// The names of the shards.
    pub fn names(&self) -> Vec<String> {
        self.shards
            .iter()
            .map(|session| {
                let label = session.label.clone();
                label.unwrap_or_else(|| session.identity().shard)
            })
            .collect()
    }

    /// Runs a command for each shard in turn and prints the replies. One shard's reply is printed
    /// as it is, several are combined by `form`. Continues after a failure. Returns the exit code.
    pub fn each(
        &self,
        form: Form,
        mut ask: impl FnMut(usize, &Session<'g>) -> Result<Reply, Failure>,
    ) -> u8 {
        let mut codes = Vec::new();
        let mut documents = Vec::new();
        // With `--json`, a failure is a document even if replies are texts.
        let as_list = form == Form::Documents || self.globals.json;
        let mut first = true;
        for (index, session) in self.shards.iter().enumerate() {
            match ask(index, session) {
                Ok(reply) => {
                    codes.push(reply.code);
                    match reply.body {
                        Body::Document(document) if self.several => {
                            documents.push(named(document, session));
                        }
                        Body::Document(document) => console::print_json(&document),
                        Body::Text(text) => {
                            if self.several && form == Form::Headed {
                                self.head(session, first);
                            }
                            first = false;
                            console::print(&text);
                        }
                    }
                    session.tell(&reply.findings);
                    console::error(&reply.note);
                }
                Err(failure) => {
                    codes.push(failure.code);
                    if self.several && as_list {
                        let findings = session.findings_json(&failure.findings);
                        documents.push(named(report::errors(findings), session));
                    } else {
                        session.fail(&failure);
                    }
                }
            }
        }
        if self.several && (form == Form::Documents || !documents.is_empty()) {
            console::print_json(&Value::from(documents));
        }
        worst(codes)
    }

    /// Prints errors of the whole run.
    pub fn fail(&self, findings: &Diagnostics) {
        if self.globals.json {
            let now = session::clock(self.globals).now();
            let findings = diagnostic::to_json(findings, &SourceMap::default());
            for finding in findings.as_array().into_iter().flatten() {
                console::print_json_line(&events::diagnostic(now, finding.clone()));
            }
        } else {
            console::report(self.globals, [(findings, &SourceMap::default())]);
        }
    }

    /// Prints the heading of a shard's text.
    pub fn head(&self, session: &Session<'_>, first: bool) {
        let identity = session.identity();
        let heading = text::heading(&identity.cluster, &identity.shard, self.globals.style());
        let gap = if first { "" } else { "\n" };
        console::print(&format!("{gap}{heading}\n\n"));
    }
}

/// Adds the shard's name to a document of a list.
fn named(mut document: Value, session: &Session<'_>) -> Value {
    let identity = session.identity();
    for (key, name) in [("cluster", identity.cluster), ("shard", identity.shard)] {
        if document.get(key).is_none() {
            document[key] = json!(name);
        }
    }
    document
}

/// Reads every configuration of the command line, including invalid ones.
pub fn read(globals: &Globals, purpose: Purpose) -> Vec<Loaded> {
    let configs = globals.configs();
    if configs.is_empty() {
        return vec![Session::read(globals, purpose, None)];
    }
    configs
        .iter()
        .map(|path| Session::read(globals, purpose, Some(path)))
        .collect()
}
