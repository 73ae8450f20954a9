//! From a path to a checked configuration.
//!
//! In: what the command line says: a path or none, and values of variables. Out: [`Loaded`], with every finding
//! of one run. May not: print, or look anywhere but at the files it is told of.

#[cfg(test)]
mod cascades;
mod exposed;
mod findings;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::findings::{name_aliases, say_once};
use self::reading::Reading;
use super::assemble::{assemble, open_sections};
use super::check::{Purpose, check};
use super::decode::decode;
use super::evaluate::{Content, Evaluation, Parsed, add_overrides, top_level_vars};
use super::files;
use super::hcl::{self, Folders};
use super::inputs::Inputs;
use super::jsonc;
use super::model::Config;
use super::node::{Alias, Node};
use super::size;
use super::source::{Language, SourceMap, Span};
use super::variables::{Given, Secrets, Setting, name_interpolations};
use super::yaml;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, conceal};

/// A configuration, and everything that is wrong with it.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The texts that spans point into.
    pub sources: SourceMap,
    /// The configuration as far as it could be read. Where `findings` has errors, parts of it may
    /// be missing or empty: it may be looked at for more errors, and nothing else.
    pub config: Option<Config>,
    /// What is wrong, in the order of the file.
    pub findings: Diagnostics,
    /// The folder that paths in the configuration start from.
    pub directory: PathBuf,
    /// Variables with their values; where none are declared, the top-level `vars`.
    pub variables: Vec<Setting>,
    /// What sensitive values hold.
    pub secrets: Secrets,
    /// Every file that was looked at.
    pub inputs: Inputs,
    /// Whether a file couldn't be read.
    incomplete: bool,
    /// Where a value is repeated that is written elsewhere.
    aliases: Vec<Alias>,
    /// The trees it was made from: of no more use, but to drop them takes a tenth of the time that
    /// reading them did. Whoever owns them says when.
    remains: (Option<Node>, Vec<hcl::File>),
}

/// Loads a configuration to be planned: `path` as given, or the only one in `working_dir`.
pub fn load(path: Option<&Path>, working_dir: &Path, given: &Given) -> Loaded {
    load_for(Purpose::Plan, path, working_dir, given)
}

/// Loads a configuration for a purpose.
pub fn load_for(
    purpose: Purpose,
    path: Option<&Path>,
    working_dir: &Path,
    given: &Given,
) -> Loaded {
    let mut loaded = Loaded {
        directory: working_dir.to_owned(),
        ..Loaded::default()
    };
    if let Some((documents, folders)) = loaded.read(path, working_dir) {
        loaded.finish(purpose, documents, given, working_dir, &folders);
        loaded.inputs.extend(folders.seen());
        for file in &given.files {
            loaded.inputs.file(&working_dir.join(file));
        }
    }
    loaded
}

/// Loads a configuration from a text; `name` is what messages call it, its extension says the
/// language. Its functions read no files.
pub fn load_text(purpose: Purpose, name: &str, text: &str, given: &Given) -> Loaded {
    let mut loaded = Loaded::default();
    let document = loaded.parse(Path::new(name), text.to_owned(), None);
    let documents = document.into_iter().collect();
    loaded.finish(
        purpose,
        documents,
        given,
        Path::new(""),
        &Folders::default(),
    );
    loaded
}

/// The evaluated document of a configuration.
#[derive(Debug, Default)]
pub struct Evaluated {
    /// The texts that spans point into.
    pub sources: SourceMap,
    /// Errors and warnings of parsing and evaluating. The schema isn't checked.
    pub findings: Diagnostics,
    /// All files as one document without variables, expressions and includes; `None` where
    /// `findings` has errors.
    pub root: Option<Node>,
    /// The same with other values in the place of sensitive ones, once for each way to replace
    /// them; none where nothing is sensitive.
    pub disguised: Vec<Node>,
    /// What sensitive values hold.
    pub secrets: Secrets,
    /// The folder that paths in the configuration start from.
    pub directory: PathBuf,
}

/// Evaluates a configuration: `path` as given, or the only one in `working_dir`.
pub fn document(path: Option<&Path>, working_dir: &Path, given: &Given) -> Evaluated {
    let mut loaded = Loaded {
        directory: working_dir.to_owned(),
        ..Loaded::default()
    };
    match loaded.read(path, working_dir) {
        Some((documents, folders)) => loaded.evaluate(documents, given, working_dir, &folders),
        None => loaded.into_evaluated(),
    }
}

/// Evaluates a text; the extension of `name` says the language. Its functions read no files.
pub fn document_of_text(name: &str, text: &str, given: &Given) -> Evaluated {
    let mut loaded = Loaded::default();
    let document = loaded.parse(Path::new(name), text.to_owned(), None);
    let documents = document.into_iter().collect();
    loaded.evaluate(documents, given, Path::new(""), &Folders::default())
}

impl Loaded {
    /// Parses the files at a path, and what they include. `None` where there are none.
    fn read(&mut self, path: Option<&Path>, working_dir: &Path) -> Option<(Vec<Parsed>, Folders)> {
        let files = match files::find(path, working_dir, &mut self.inputs) {
            Ok(files) => files,
            Err(diagnostic) => {
                self.findings.push(*diagnostic);
                return None;
            }
        };
        let absolute = working_dir.join(&files[0]);
        if let Some(directory) = absolute.parent() {
            directory.clone_into(&mut self.directory);
        }
        let mut reading = Reading::new(working_dir);
        for file in &files {
            reading.file(file, self);
        }
        let root = Some(self.directory.as_path().into());
        let folders = Folders::new(root, Some(working_dir.to_owned()));
        Some((reading.documents, folders))
    }

    /// Evaluates documents, and joins them to one.
    fn evaluate(
        mut self,
        documents: Vec<Parsed>,
        given: &Given,
        working_dir: &Path,
        folders: &Folders,
    ) -> Evaluated {
        let made = Evaluation {
            given,
            working_dir,
            folders,
            complete: !self.incomplete,
        }
        .run(documents, &mut self.sources, &mut self.findings);
        self.aliases.extend(made.aliases);
        self.secrets = made.secrets;
        let joined = |documents, findings: &mut Diagnostics| {
            let mut root = assemble(documents, findings)?;
            add_overrides(&mut root, &made.overrides);
            Some(root)
        };
        let root = joined(made.documents, &mut self.findings);
        if let Some(place) = root.as_ref().and_then(size::overflow) {
            self.findings.push(size::too_large(place));
        }
        let disguised = made.twins.into_iter();
        let disguised = disguised
            .filter_map(|twin| joined(twin, &mut Diagnostics::default()))
            .collect();
        self.explain_findings(made.repeated, !made.variables.is_empty());
        let is_sound = !self.incomplete && !self.findings.has_errors();
        Evaluated {
            root: root.filter(|_| is_sound),
            disguised,
            ..self.into_evaluated()
        }
    }

    fn into_evaluated(self) -> Evaluated {
        Evaluated {
            sources: self.sources,
            findings: self.findings,
            secrets: self.secrets,
            directory: self.directory,
            ..Evaluated::default()
        }
    }

    fn parse(&mut self, file: &Path, text: String, folder: Option<Arc<Path>>) -> Option<Parsed> {
        let source = self.sources.add(file.display().to_string(), text);
        let text = Arc::clone(&self.sources.get(source).text);
        let overrides = files::is_override(file);
        let before = self.findings.len();
        let content = match self.sources.get(source).language {
            Language::Yaml => {
                let (root, aliases) = yaml::read_on(source, &text, &mut self.findings);
                self.aliases.extend(aliases);
                root.map(Content::Tree)
            }
            Language::Hcl => {
                let document = hcl::parse_on(source, &self.sources, &mut self.findings);
                self.incomplete |= document.as_ref().is_some_and(|found| found.body.has_gaps);
                document.map(|document| {
                    Content::Hcl(hcl::File {
                        body: document.body,
                        folder: folder.clone(),
                        overrides,
                    })
                })
            }
            Language::Jsonc | Language::Plain => {
                jsonc::read_on(source, &text, &mut self.findings).map(Content::Tree)
            }
        };
        self.incomplete |= content.is_none();
        let is_error = |finding: &Diagnostic| finding.severity == Severity::Error;
        if self.findings.iter().skip(before).any(is_error) {
            // What was meant to be a secret may stand where nothing says so.
            self.sources.leave_unsettled();
        }
        Some(Parsed {
            content: content?,
            overrides,
            folder,
        })
    }

    fn finish(
        &mut self,
        purpose: Purpose,
        documents: Vec<Parsed>,
        given: &Given,
        working_dir: &Path,
        folders: &Folders,
    ) {
        let made = Evaluation {
            given,
            working_dir,
            folders,
            complete: !self.incomplete,
        }
        .run(documents, &mut self.sources, &mut self.findings);
        if self.incomplete {
            self.sources.leave_unsettled();
        }
        self.remains.1 = made.files;
        self.aliases.extend(made.aliases);
        self.secrets = made.secrets;
        self.variables = made.variables;
        let is_interpolated = !self.variables.is_empty();
        let evaluated = self.findings.len();
        let mut unknown = HashSet::new();
        if let Some(mut root) = assemble(made.documents, &mut self.findings) {
            if self.incomplete {
                open_sections(&mut root);
            }
            add_overrides(&mut root, &made.overrides);
            // What stands in files as often as it is used was limited with them.
            let is_copied = !self.aliases.is_empty() || made.size > size::LARGEST / 2;
            if let Some(place) = is_copied.then(|| size::overflow(&root)).flatten() {
                self.findings.push(size::too_large(place));
            } else if let Some(mut config) = decode(&root, &mut self.findings) {
                check(&config, purpose, &self.sources, &mut self.findings);
                if self.findings.has_errors() {
                    root.unknown_places(&mut unknown);
                }
                config.gaps.values = !unknown.is_empty();
                self.config = Some(config);
            }
            self.remains.0 = Some(root);
        }
        let is_sound = self.findings.len() == evaluated;
        let others = made.twins.into_iter().map(|documents| {
            let mut told = Diagnostics::default();
            let config = assemble(documents, &mut told).and_then(|mut root| {
                add_overrides(&mut root, &made.overrides);
                decode(&root, &mut told)
            });
            if !is_sound && let Some(config) = &config {
                check(config, purpose, &self.sources, &mut told);
            }
            (config, told)
        });
        let (configs, told): (Vec<_>, Vec<_>) = others.unzip();
        let mut exposed = Diagnostics::default();
        if let Some(config) = &mut self.config {
            if let Some(Some(twin)) = configs.first() {
                exposed::find(config, twin, &mut exposed);
            }
            config.twins = twins(config, configs);
            if self.variables.is_empty() {
                self.variables = top_level_vars(config, &made.overrides);
            }
        }
        self.settle_findings(evaluated, &unknown, &told);
        self.findings.extend(exposed);
        self.refuse_gaps();
        self.explain_findings(made.repeated, is_interpolated);
    }

    /// What can't be read was reported where that was found. Should that ever be forgotten, a group that
    /// isn't there must not be taken for one that was removed.
    fn refuse_gaps(&mut self) {
        let has_gaps = self
            .config
            .as_ref()
            .is_some_and(|config| config.gaps.are_there());
        if has_gaps && !self.findings.has_errors() {
            self.findings.push(
                Diagnostic::error("a part of the configuration couldn't be read")
                    .detail("Nothing says why: this is a mistake of nstance's own")
                    .hint("Please report it, with the configuration"),
            );
        }
    }

    /// Keeps what is to be told of findings: of those from `evaluated` on what isn't due to a value
    /// that is unknown, and doesn't tell a secret, which `told`, found in the twins, doesn't.
    fn settle_findings(&mut self, evaluated: usize, unknown: &HashSet<Span>, told: &[Diagnostics]) {
        let mut findings: Vec<_> = std::mem::take(&mut self.findings).into_iter().collect();
        let is_new = |finding: &Diagnostic| {
            let place = finding.label.as_ref().map(|label| &label.span);
            place.is_none_or(|place| !unknown.contains(place))
        };
        let mut found = Diagnostics::default();
        found.extend(findings.drain(evaluated..).filter(is_new));
        self.findings.extend(findings);
        self.findings.extend(conceal(found, told));
    }

    /// Says where what is wrong is used, why it may be, and once what is so in each turn of
    /// `repeated`. Stages find things in their own order; people read from the top.
    fn explain_findings(&mut self, repeated: Vec<Span>, is_interpolated: bool) {
        let mut findings: Vec<_> = std::mem::take(&mut self.findings).into_iter().collect();
        name_aliases(&self.aliases, &self.sources, &mut findings);
        yaml::name_blanks(&self.sources, &mut findings);
        if !is_interpolated {
            name_interpolations(&self.sources, &mut findings);
        }
        say_once(repeated, &mut findings);
        findings.sort_by_key(|finding| finding.label.as_ref().map(|label| label.span));
        self.findings.extend(findings);
    }
}

/// A configuration with the contents of each other one. Where the first of these doesn't fit it,
/// nothing is known of what was made of a secret: there is one without any, so that all differs.
fn twins(config: &Config, others: Vec<Option<Config>>) -> Vec<Config> {
    let mut made = Vec::new();
    for (index, other) in others.into_iter().enumerate() {
        match other.and_then(|other| config.with_contents_of(&other)) {
            Some(twin) => made.push(twin),
            None if index == 0 => made.push(config.without_contents()),
            None => {}
        }
    }
    made
}
