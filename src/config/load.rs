//! From a path to a checked configuration.
//!
//! In: what the command line says: a path or none, and values of variables. Out: [`Loaded`], with every finding
//! of one run. May not: print, or look anywhere but at the files it is told of.

#[cfg(test)]
mod cascades;
mod findings;
mod reading;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::findings::{name_aliases, say_once};
use self::reading::Reading;
use super::assemble::{Document, assemble};
use super::check::{Purpose, check};
use super::decode::decode;
use super::evaluate::{Content, Evaluation, Parsed, add_overrides, top_level_vars};
use super::files;
use super::hcl::{self, Folders};
use super::inputs::Inputs;
use super::jsonc;
use super::model::Config;
use super::node::{Alias, Entry, Node};
use super::sensitive::{Concealed, find_exposed};
use super::size;
use super::source::{Language, SourceMap, Span};
use super::variables::{Given, Origin, Secrets, Setting, name_interpolations};
use super::yaml;
use crate::diagnostic::{Diagnostics, Reported};

/// A configuration, or the errors of the stage that failed.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The texts that spans point into.
    pub sources: SourceMap,
    /// The whole configuration; `None` if `findings` has errors.
    pub config: Option<Config>,
    /// Errors and warnings, in the order of the file.
    pub findings: Diagnostics,
    /// The folder that paths in the configuration start from.
    pub directory: PathBuf,
    /// Variables with their values; where none are declared, the top-level `vars`.
    pub variables: Vec<Setting>,
    /// What sensitive values hold.
    pub secrets: Secrets,
    /// Every file that was looked at.
    pub inputs: Inputs,
    /// Where a value is repeated that is written elsewhere.
    aliases: Vec<Alias>,
    /// Values of the command line and the like for top-level `vars`.
    overrides: Vec<(Entry, Origin)>,
    /// What values take that expressions made, in bytes.
    size: usize,
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
    match loaded.read(path, working_dir) {
        Ok((documents, folders)) => {
            loaded.finish(purpose, Ok(documents), given, working_dir, &folders);
            loaded.inputs.extend(folders.seen());
            for file in &given.files {
                loaded.inputs.file(&working_dir.join(file));
            }
        }
        Err(Reported) => loaded.explain_findings(Vec::new(), false),
    }
    loaded
}

/// Loads a configuration from a text; `name` is what messages call it, its extension says the
/// language. Its functions read no files.
pub fn load_text(purpose: Purpose, name: &str, text: &str, given: &Given) -> Loaded {
    let mut loaded = Loaded::default();
    let document = loaded.parse(Path::new(name), text.to_owned(), None);
    let parsed = loaded.unless_errors(document.into_iter().collect());
    loaded.finish(purpose, parsed, given, Path::new(""), &Folders::default());
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
    let (parsed, folders) = match loaded.read(path, working_dir) {
        Ok((documents, folders)) => (Ok(documents), folders),
        Err(Reported) => (Err(Reported), Folders::default()),
    };
    loaded.into_evaluated(parsed, given, working_dir, &folders)
}

/// Evaluates a text; the extension of `name` says the language. Its functions read no files.
pub fn document_of_text(name: &str, text: &str, given: &Given) -> Evaluated {
    let mut loaded = Loaded::default();
    let document = loaded.parse(Path::new(name), text.to_owned(), None);
    let parsed = loaded.unless_errors(document.into_iter().collect());
    loaded.into_evaluated(parsed, given, Path::new(""), &Folders::default())
}

impl Loaded {
    /// Parses the files at a path, and what they include.
    fn read(
        &mut self,
        path: Option<&Path>,
        working_dir: &Path,
    ) -> Result<(Vec<Parsed>, Folders), Reported> {
        let files = match files::find(path, working_dir, &mut self.inputs) {
            Ok(files) => files,
            Err(diagnostic) => {
                self.findings.push(*diagnostic);
                return Err(Reported);
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
        self.unless_errors((reading.documents, folders))
    }

    /// Parses a file; `None` where it has a syntax error.
    fn parse(&mut self, file: &Path, text: String, folder: Option<Arc<Path>>) -> Option<Parsed> {
        let source = self.sources.add(file.display().to_string(), text);
        let text = Arc::clone(&self.sources.get(source).text);
        let overrides = files::is_override(file);
        let content = match self.sources.get(source).language {
            Language::Yaml => {
                let document = self.findings.keep(yaml::read(source, &text));
                document.map(|document| {
                    self.findings.extend(document.warnings);
                    self.aliases.extend(document.aliases);
                    Content::Tree(document.root)
                })
            }
            Language::Hcl => {
                let document = self.findings.keep(hcl::parse(source, &self.sources));
                document.map(|document| {
                    Content::Hcl(hcl::File {
                        body: document.body,
                        folder: folder.clone(),
                        overrides,
                    })
                })
            }
            Language::Jsonc | Language::Plain => self
                .findings
                .keep(jsonc::read(source, &text))
                .map(Content::Tree),
        };
        if content.is_none() {
            // Nothing says yet which values are sensitive.
            self.sources.leave_unsettled();
        }
        Some(Parsed {
            content: content?,
            overrides,
            folder,
        })
    }

    /// What a stage made, unless there are errors: then it is the last stage of the run.
    fn unless_errors<T>(&self, made: T) -> Result<T, Reported> {
        if self.findings.has_errors() {
            Err(Reported)
        } else {
            Ok(made)
        }
    }

    /// The stages after parsing: evaluation, then the checks.
    fn finish(
        &mut self,
        purpose: Purpose,
        parsed: Result<Vec<Parsed>, Reported>,
        given: &Given,
        working_dir: &Path,
        folders: &Folders,
    ) {
        let evaluation = Evaluation {
            given,
            working_dir,
            folders,
        };
        let mut repeated = Vec::new();
        self.config = parsed
            .and_then(|files| self.evaluate(&evaluation, files, &mut repeated))
            .and_then(|documents| self.join(documents))
            .and_then(|root| self.decode_and_check(&root, purpose))
            .ok();
        let is_interpolated = !self.variables.is_empty();
        if let Some(config) = &self.config
            && self.variables.is_empty()
        {
            self.variables = top_level_vars(config, &self.overrides);
        }
        self.explain_findings(repeated, is_interpolated);
    }

    /// Evaluates variables and expressions.
    fn evaluate(
        &mut self,
        evaluation: &Evaluation<'_>,
        files: Vec<Parsed>,
        repeated: &mut Vec<Span>,
    ) -> Result<Vec<Document>, Reported> {
        let evaluated = evaluation.run(files, &mut self.sources, &mut self.findings);
        self.aliases.extend(evaluated.aliases);
        self.secrets = evaluated.secrets;
        self.variables = evaluated.variables;
        self.overrides = evaluated.overrides;
        self.size = evaluated.size;
        *repeated = evaluated.repeated;
        self.unless_errors(evaluated.documents?)
    }

    /// Joins the documents to one. What two of them define is reported with the schema's errors.
    fn join(&mut self, documents: Vec<Document>) -> Result<Node, Reported> {
        let mut root = assemble(documents, &mut self.findings).ok_or(Reported)?;
        add_overrides(&mut root, &self.overrides);
        self.sources.concealed = Concealed::of(&root);
        // What stands in files as often as it is used was limited with them.
        let is_copied = !self.aliases.is_empty() || self.size > size::LARGEST / 2;
        match is_copied.then(|| size::overflow(&root)).flatten() {
            Some(place) => {
                self.findings.push(size::too_large(place));
                Err(Reported)
            }
            None => Ok(root),
        }
    }

    /// Holds the document to the schema, its references and the provider's rules.
    fn decode_and_check(&mut self, root: &Node, purpose: Purpose) -> Result<Config, Reported> {
        let (config, broken) = decode(root, &mut self.findings).ok_or(Reported)?;
        check(&config, &broken, purpose, &self.sources, &mut self.findings);
        find_exposed(root, &mut self.findings);
        self.unless_errors(config)
    }

    /// The evaluated document alone.
    fn into_evaluated(
        mut self,
        parsed: Result<Vec<Parsed>, Reported>,
        given: &Given,
        working_dir: &Path,
        folders: &Folders,
    ) -> Evaluated {
        let evaluation = Evaluation {
            given,
            working_dir,
            folders,
        };
        let mut repeated = Vec::new();
        let root = parsed
            .and_then(|files| self.evaluate(&evaluation, files, &mut repeated))
            .and_then(|documents| self.join(documents))
            .and_then(|root| self.unless_errors(root))
            .ok();
        self.explain_findings(repeated, !self.variables.is_empty());
        Evaluated {
            sources: self.sources,
            findings: self.findings,
            root,
            secrets: self.secrets,
            directory: self.directory,
        }
    }

    /// Says where what is wrong is used, why it may be, and once what is so in each turn of
    /// `repeated`. Stages find things in their own order; people read from the top.
    fn explain_findings(&mut self, repeated: Vec<Span>, is_interpolated: bool) {
        let mut findings: Vec<_> = std::mem::take(&mut self.findings).into_iter().collect();
        name_aliases(&self.aliases, &self.sources, &mut findings);
        if !is_interpolated {
            name_interpolations(&self.sources, &mut findings);
        }
        say_once(repeated, &mut findings);
        findings.sort_by_key(|finding| finding.label.as_ref().map(|label| label.span));
        self.findings.extend(findings);
    }
}
