//! `nstance validate`: everything short of asking a cloud.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::console;
use super::failure::{Failure, Failures};
use super::fleet::{self, Fleet};
use super::session::Session;
use super::watch::Watch;
use super::{Ending, Globals, exit, unplaced};
use crate::check::Purpose;
use crate::config::inputs::Inputs;
use crate::config::load::Loaded;
use crate::config::source::SourceMap;
use crate::pipeline::validate;
use crate::report::{diagnostic, json as report};
use crate::resolve::fetch;

/// Options of `validate`.
#[derive(Debug, Args)]
pub struct Validate {
    /// Validate again whenever a file of the configuration changes
    #[arg(long)]
    watch: bool,
    /// Warn of what today's Nstance server doesn't know
    #[arg(long)]
    server_compatible: bool,
}

impl Validate {
    fn purpose(&self) -> Purpose {
        if self.server_compatible {
            Purpose::Server
        } else {
            Purpose::Plan
        }
    }
}

/// Runs `validate`.
pub fn run(globals: &Globals, command: &Validate) -> Ending {
    if command.watch {
        return keep_watching(globals, command.purpose()).map_err(unplaced);
    }
    let mut checked = check_all(globals, command.purpose());
    if let [_] = checked[..] {
        let only = checked.remove(0);
        if only.loaded.findings.has_errors() {
            return Err(only.failure());
        }
        if globals.json {
            console::print_json(&only.document());
        } else {
            only.tell(globals);
            console::print(&format!("{}\n", only.verdict()));
        }
        // The process ends here, so freeing the memory is a waste of time.
        std::mem::forget(only);
        return Ok(exit::SUCCESS);
    }
    Ok(several(globals, checked, console::print_json))
}

fn check_all(globals: &Globals, purpose: Purpose) -> Vec<Checked> {
    fleet::read(globals, purpose)
        .into_iter()
        .map(|loaded| check(globals, loaded))
        .collect()
}

/// Validates after every change, until a signal.
///
/// Fails if files can't be watched.
fn keep_watching(globals: &Globals, purpose: Purpose) -> Result<u8, Failure> {
    let mut watch = Watch::new()?;
    loop {
        let (checked, inputs) = loop {
            let checked = check_all(globals, purpose);
            let mut inputs = Inputs::default();
            for one in &checked {
                inputs.extend(one.inputs());
            }
            if !watch.over(&inputs)? {
                break (checked, inputs);
            }
        };
        say_once(globals, checked);
        if !globals.quiet {
            console::error("\nWatching for changes; Ctrl-C ends it.\n");
        }
        let changed = watch.wait(&inputs)?;
        if !globals.quiet {
            console::error(&format!("\nChanged: {}\n\n", listed(&changed)));
        }
    }
}

/// Prints the results of one validation: texts, or a document on one line.
fn say_once(globals: &Globals, checked: Vec<Checked>) {
    let print_line = |document: &Value| console::print_json_line(document);
    match &checked[..] {
        [only] if globals.json => print_line(&only.document()),
        [only] => {
            only.tell(globals);
            console::print(&format!("{}\n", only.verdict()));
        }
        _ => {
            several(globals, checked, print_line);
        }
    }
}

/// Paths relative to the working folder; only the first if there are many.
fn listed(paths: &BTreeSet<PathBuf>) -> String {
    const MOST: usize = 3;
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let here = here.unwrap_or_default();
    let mut names: Vec<String> = paths
        .iter()
        .take(MOST)
        .map(|path| console::shown(path.strip_prefix(&here).unwrap_or(path)))
        .collect();
    if paths.len() > MOST {
        names.push(format!("{} more", paths.len() - MOST));
    }
    names.join(", ")
}

/// A configuration and its findings.
struct Checked {
    loaded: Loaded,
    groups: usize,
}

fn check(globals: &Globals, mut loaded: Loaded) -> Checked {
    validate(&mut loaded, globals.strict);
    let groups = loaded
        .config
        .as_ref()
        .map_or(0, |config| config.groups.len());
    Checked { loaded, groups }
}

impl Checked {
    fn is_valid(&self) -> bool {
        !self.loaded.findings.has_errors() && self.loaded.config.is_some()
    }

    /// The files that the result depends on.
    fn inputs(&self) -> Inputs {
        let mut inputs = self.loaded.inputs.clone();
        if let Some(config) = &self.loaded.config {
            for file in fetch::files(config, &self.loaded.directory) {
                inputs.file(&file);
            }
        }
        inputs
    }

    fn failure(self) -> Failures {
        let mut failures = Failures::default();
        failures.push(self.loaded.findings.into(), self.loaded.sources);
        failures
    }

    fn document(&self) -> Value {
        json!({
            "format_version": "1.0",
            "valid": self.is_valid(),
            "diagnostics": diagnostic::to_json(&self.loaded.findings, &self.loaded.sources),
        })
    }

    /// Prints the findings; with `--quiet` only if one is an error.
    fn tell(&self, globals: &Globals) {
        let findings = &self.loaded.findings;
        if findings.has_errors() || !findings.is_empty() && !globals.quiet {
            let color = globals.colors_errors();
            console::error(&diagnostic::render(findings, &self.loaded.sources, color));
        }
    }

    fn verdict(&self) -> String {
        let groups = self.groups;
        let noun = if groups == 1 { "group" } else { "groups" };
        if self.is_valid() {
            format!("The configuration is valid: {groups} {noun}.")
        } else {
            "The configuration has errors.".to_owned()
        }
    }
}

/// Reports whether each configuration is valid, and whether they work together.
fn several(globals: &Globals, checked: Vec<Checked>, print_documents: impl Fn(&Value)) -> u8 {
    let paths: Vec<String> = globals
        .configs()
        .iter()
        .map(|path| console::shown(path))
        .collect();
    let mut code = exit::SUCCESS;
    let mut documents = Vec::new();
    for (path, one) in paths.iter().zip(&checked) {
        if !one.is_valid() {
            code = exit::ERROR;
        }
        if globals.json {
            let mut document = one.document();
            document["configuration"] = json!(path);
            if let Some(config) = &one.loaded.config {
                let ids = [("cluster", &config.cluster.id), ("shard", &config.shard.id)];
                for (key, id) in ids.into_iter().filter(|(_, id)| !id.is_empty()) {
                    document[key] = json!(id.value);
                }
            }
            documents.push(document);
        } else {
            one.tell(globals);
            console::print(&format!("{path}: {}\n", one.verdict()));
        }
    }
    let usable = checked.into_iter().filter(Checked::is_valid);
    let sessions = usable
        .map(|one| Session::new(globals, one.loaded))
        .collect();
    let twice = Fleet::of(globals, sessions).twice();
    if globals.json {
        if twice.has_errors() {
            let findings = diagnostic::to_json(&twice, &SourceMap::default());
            documents.push(report::errors(findings));
        }
        print_documents(&documents.into());
    } else if twice.has_errors() {
        console::report(globals, [(&twice, &SourceMap::default())]);
    }
    if twice.has_errors() {
        exit::ERROR
    } else {
        code
    }
}
