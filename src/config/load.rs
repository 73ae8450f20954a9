//! Loads files into a decoded configuration: parse, evaluate, join, decode.
//!
//! In: a path or a text, and values of variables. Out: a [`Draft`], which `crate::load` checks, and
//! [`Loaded`], which holds the texts and the findings. Must not: print, or read files that the
//! configuration doesn't name.

#[cfg(test)]
mod cascades;
mod dynamic_groups;
mod findings;
mod foreign;
mod foreign_source;
mod only_ours;
mod reading;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nstance_bosh::instances::Naming;

use self::dynamic_groups::lay_over;
use self::findings::{name_aliases, say_once};
use self::foreign::foreign;
use self::only_ours::only_ours;
use self::reading::Reading;
use super::assemble::{Document, assemble};
use super::decode::{Draft, decode};
use super::evaluate::{Content, Evaluation, Parsed, add_overrides, top_level_vars};
use super::files;
use super::hcl::{self, Folders};
use super::inputs::Inputs;
use super::jsonc;
use super::letter_case;
use super::model::Config;
use super::node::{Alias, Entry, Node};
use super::sensitive::{find_exposed, masked_places};
use super::size;
use super::source::{Language, SourceMap, Span};
use super::variables::{Dialect, Given, Origin, Secrets, Setting, name_interpolations};
use super::yaml;
use crate::diagnostic::{Diagnostic, Diagnostics, Reported};
use crate::limited::read_text;

/// The configuration of an evaluated document that was valid once; `None` if it isn't any more.
pub fn restore(document: &Node) -> Option<Config> {
    let mut findings = Diagnostics::default();
    decode(document, &mut findings).ok()?.finish(&findings).ok()
}

/// A configuration, or the errors of the stage that failed.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The texts that spans point into.
    pub sources: SourceMap,
    /// The whole configuration; `None` if `findings` has errors.
    pub config: Option<Config>,
    /// Errors and warnings, sorted by place.
    pub findings: Diagnostics,
    /// The folder that paths in the configuration are relative to.
    pub directory: PathBuf,
    /// Variables with their values; without declarations, the top-level `vars`.
    pub variables: Vec<Setting>,
    /// The texts of sensitive values.
    pub secrets: Secrets,
    /// All files that loading looked at.
    pub inputs: Inputs,
    /// The evaluated document.
    pub document: Option<Node>,
    /// A digest of it.
    pub digest: String,
    /// References to values written elsewhere.
    aliases: Vec<Alias>,
    /// Given values for the top-level `vars`.
    overrides: Vec<(Entry, Origin)>,
    /// Whether warnings of what today's Nstance server doesn't know are wanted.
    pub server_compatible: bool,
    /// Whether the configuration is a specification of another program alone, for the embedded cloud.
    pub is_specification: bool,
    /// Whether that is a deployment manifest, whose variables aren't nstance's.
    is_manifest: bool,
    /// Whether the properties of a manifest aren't sensitive, since the result is the configuration
    /// itself.
    shows_properties: bool,
    /// The manifest that `source` names, or that the configuration is.
    pub manifest: Option<Manifest>,
    /// What nstance ignores in a document of another program, for `convert` to report.
    without_equal: Vec<(Span, String)>,
    /// Whether the configuration is a file that is named: only that can be one of another program.
    is_named_file: bool,
    /// The program whose language it is written in, if that is given.
    from: Option<Dialect>,
    /// The size of all values that expressions produced, in bytes.
    size: usize,
    /// Blocks that `for_each` expands; an error in one instance usually occurs in all.
    repeated: Vec<Span>,
}

/// The manifest of a BOSH deployment.
#[derive(Debug)]
pub struct Manifest {
    /// Its YAML, after ops files and variables.
    pub text: String,
    /// How its instances are named.
    pub naming: Naming,
    /// Its instance groups without errands.
    pub groups: Vec<ManifestGroup>,
}

/// An instance group of a manifest.
#[derive(Debug)]
pub struct ManifestGroup {
    /// Its name.
    pub name: String,
    /// Its `instances`.
    pub replicas: u32,
    /// The number of its zones.
    pub zones: u32,
}

/// Decodes a configuration: `path` as given, or that of `working_dir`.
pub(crate) fn decode_files(
    path: Option<&Path>,
    working_dir: &Path,
    given: &Given,
) -> (Loaded, Result<Draft, Reported>) {
    let mut loaded = Loaded {
        directory: working_dir.to_owned(),
        server_compatible: given.server_compatible,
        ..Loaded::default()
    };
    let draft = loaded
        .read(path, working_dir, given)
        .and_then(|(parsed, folders)| {
            let draft = loaded.decode(parsed, given, working_dir, &folders);
            loaded.inputs.extend(folders.seen());
            for file in given.files.iter().chain(&given.groups) {
                loaded.inputs.file(&working_dir.join(file));
            }
            draft
        });
    (loaded, draft)
}

/// Decodes a configuration from a text. Messages call it `name`, whose extension selects the
/// language. Its functions can't read files.
///
/// Fails if a stage has errors; they are in the findings.
pub(crate) fn decode_text(
    name: &str,
    text: &str,
    given: &Given,
) -> (Loaded, Result<Draft, Reported>) {
    let mut loaded = Loaded::default();
    let parsed = loaded.read_text(name, text);
    let draft =
        parsed.and_then(|parsed| loaded.decode(parsed, given, Path::new(""), &Folders::default()));
    (loaded, draft)
}

/// The evaluated document of a configuration.
#[derive(Debug, Default)]
pub struct Evaluated {
    /// The texts that spans point into.
    pub sources: SourceMap,
    /// Errors and warnings of parsing and evaluating; the schema isn't checked.
    pub findings: Diagnostics,
    /// All files as one document without variables, expressions and includes; `None` if there are
    /// errors.
    pub root: Option<Node>,
    /// The texts of sensitive values.
    pub secrets: Secrets,
    /// The folder that paths in the configuration are relative to.
    pub directory: PathBuf,
}

/// Evaluates a configuration: `path` as given, or that of `working_dir`.
pub fn document(path: Option<&Path>, working_dir: &Path, given: &Given) -> Evaluated {
    let mut loaded = Loaded {
        directory: working_dir.to_owned(),
        shows_properties: true,
        ..Loaded::default()
    };
    let root = loaded
        .read(path, working_dir, given)
        .and_then(|(parsed, folders)| loaded.document(parsed, given, working_dir, &folders))
        .and_then(|root| loaded.add_source(root, given, working_dir));
    loaded.into_evaluated(root)
}

/// Evaluates a text; the extension of `name` selects the language. Its functions can't read files.
pub fn document_of_text(name: &str, text: &str, given: &Given) -> Evaluated {
    let mut loaded = Loaded::default();
    let parsed = loaded.read_text(name, text);
    let root = parsed
        .and_then(|parsed| loaded.document(parsed, given, Path::new(""), &Folders::default()));
    loaded.into_evaluated(root)
}

impl Loaded {
    /// Parses the files at a path, and the files they include. Fails if one has an error.
    fn read(
        &mut self,
        path: Option<&Path>,
        working_dir: &Path,
        given: &Given,
    ) -> Result<(Vec<Parsed>, Folders), Reported> {
        let beside: Vec<PathBuf> = given.files.iter().chain(&given.groups).cloned().collect();
        let files = match files::find(path, working_dir, &beside, &mut self.inputs) {
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
        let is_folder = path.is_none_or(|path| files != [path]);
        self.is_named_file = !is_folder;
        self.from = given.from;
        for file in &files {
            let index = reading.documents.len();
            reading.file(file, self);
            if is_folder && let Some(document) = reading.documents.get(index) {
                self.findings
                    .extend(foreign(&document.content, &self.sources));
            }
        }
        let root = Some(self.directory.as_path().into());
        let folders = Folders::new(root, Some(working_dir.to_owned()));
        let foreign = match given.from {
            Some(Dialect::Yandex) => Some(("specification of Yandex Cloud", "yandex")),
            Some(Dialect::Bosh) => Some(("deployment manifest of BOSH", "bosh")),
            Some(Dialect::Nstance) | None => None,
        };
        if let Some((what, dialect)) = foreign.filter(|_| is_folder) {
            let folder = path.unwrap_or(working_dir).display();
            let finding = Diagnostic::error(format!("a {what} is a file, not a folder: {folder}"));
            let hint = format!("Name the file: `-c FILE --from {dialect}`");
            self.findings.push(finding.hint(hint));
        }
        self.unless_errors((reading.documents, folders))
    }

    /// Parses a file; `None` if it has a syntax error.
    fn parse(&mut self, file: &Path, text: String, folder: Option<Arc<Path>>) -> Option<Parsed> {
        let source = self.sources.add(file.display().to_string(), text);
        let text = Arc::clone(&self.sources.get(source).text);
        let overrides = files::is_override(file);
        let language = self.sources.get(source).language;
        let content = match language {
            // With `--from`, whatever its name is.
            language
                if (language == Language::Yaml
                    || matches!(self.from, Some(Dialect::Yandex | Dialect::Bosh)))
                    && let Some(root) = self.standalone(file, source, &text) =>
            {
                Some(Content::Tree(root))
            }
            Language::Yaml => {
                let document = self.findings.keep(yaml::read(source, &text));
                document.map(|document| {
                    self.findings.extend(document.warnings);
                    self.aliases.extend(document.aliases);
                    Content::Tree(document.root)
                })
            }
            Language::Hcl => {
                let body = self.findings.keep(hcl::parse(source, &self.sources));
                body.map(|body| {
                    Content::Hcl(hcl::File {
                        body,
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
            // Parsing failed, so it isn't known which values are sensitive.
            self.sources.leave_unsettled();
        }
        Some(Parsed {
            content: content?,
            overrides,
            folder,
        })
    }

    /// Returns the result of a stage. Fails if there are errors, which ends the run after this
    /// stage.
    fn unless_errors<T>(&self, made: T) -> Result<T, Reported> {
        if self.findings.has_errors() {
            Err(Reported)
        } else {
            Ok(made)
        }
    }

    /// Parses the only text.
    fn read_text(&mut self, name: &str, text: &str) -> Result<Vec<Parsed>, Reported> {
        let document = self.parse(Path::new(name), text.to_owned(), None);
        self.unless_errors(document.into_iter().collect())
    }

    /// Evaluates parsed files into one document.
    fn document(
        &mut self,
        parsed: Vec<Parsed>,
        given: &Given,
        working_dir: &Path,
        folders: &Folders,
    ) -> Result<Node, Reported> {
        let evaluation = Evaluation {
            given,
            working_dir,
            folders,
        };
        let documents = self.evaluate(&evaluation, parsed)?;
        self.join(documents)
    }

    /// Evaluates parsed files and decodes them.
    fn decode(
        &mut self,
        parsed: Vec<Parsed>,
        given: &Given,
        working_dir: &Path,
        folders: &Folders,
    ) -> Result<Draft, Reported> {
        let mut root = self.document(parsed, given, working_dir, folders)?;
        if let Some(file) = &given.groups {
            let groups = self.groups_file(file, working_dir)?;
            lay_over(&mut root, groups, &mut self.findings);
        }
        letter_case::settle(&mut root, &mut self.findings);
        if given.server_compatible {
            only_ours(&root, &mut self.findings);
        }
        let root = self.add_source(root, given, working_dir)?;
        self.digest = root.digest();
        let draft = decode(&root, &mut self.findings)?;
        find_exposed(&root, &mut self.findings);
        self.document = Some(root);
        Ok(draft)
    }

    /// The document of a groups file.
    fn groups_file(&mut self, file: &Path, working_dir: &Path) -> Result<Node, Reported> {
        let text = match read_text(&working_dir.join(file), files::LARGEST_FILE) {
            Ok(text) => text,
            Err(error) => {
                let finding = format!("can't read the groups file {}: {error}", file.display());
                self.findings.push(Diagnostic::error(finding));
                return Err(Reported);
            }
        };
        let source = self.sources.add(file.display().to_string(), text);
        let text = Arc::clone(&self.sources.get(source).text);
        let document = self.findings.keep(jsonc::read(source, &text));
        document.ok_or(Reported)
    }

    /// The final result; its findings are sorted by place.
    pub(crate) fn finish(mut self, config: Result<Config, Reported>) -> Self {
        self.explain_findings();
        if let Ok(config) = &config
            && self.variables.is_empty()
        {
            self.variables = top_level_vars(config, &self.overrides);
        }
        self.config = config.ok();
        self
    }

    /// Evaluates variables and expressions.
    fn evaluate(
        &mut self,
        evaluation: &Evaluation<'_>,
        files: Vec<Parsed>,
    ) -> Result<Vec<Document>, Reported> {
        let evaluated = evaluation.run(files, &mut self.sources, &mut self.findings);
        self.aliases.extend(evaluated.aliases);
        self.secrets = evaluated.secrets;
        self.variables = evaluated.variables;
        self.overrides = evaluated.overrides;
        self.size = evaluated.size;
        self.repeated = evaluated.repeated;
        self.unless_errors(evaluated.documents?)
    }

    /// Joins the documents. Duplicates are reported together with the schema's errors.
    fn join(&mut self, documents: Vec<Document>) -> Result<Node, Reported> {
        let mut root = assemble(documents, &mut self.findings).ok_or(Reported)?;
        if !self.is_manifest {
            add_overrides(&mut root, &self.overrides);
        }
        self.sources.masked = masked_places(&root);
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

    /// The evaluated document without a decoded configuration.
    fn into_evaluated(mut self, root: Result<Node, Reported>) -> Evaluated {
        let root = root.and_then(|root| self.unless_errors(root)).ok();
        for (span, note) in std::mem::take(&mut self.without_equal) {
            let finding = Diagnostic::warning(note).at(span, "has no equal in nstance");
            self.findings.push(finding);
        }
        self.explain_findings();
        Evaluated {
            sources: self.sources,
            findings: self.findings,
            root,
            secrets: self.secrets,
            directory: self.directory,
        }
    }

    /// Completes the findings: adds where a value is used, and removes duplicates in instances of
    /// `repeated`. Sorts them by place, since stages report in their own order.
    fn explain_findings(&mut self) {
        let mut findings: Vec<_> = std::mem::take(&mut self.findings).into_iter().collect();
        name_aliases(&self.aliases, &self.sources, &mut findings);
        if self.variables.is_empty() {
            name_interpolations(&self.sources, &mut findings);
        }
        say_once(std::mem::take(&mut self.repeated), &mut findings);
        findings.sort_by_key(|finding| finding.label.as_ref().map(|label| label.span));
        self.findings.extend(findings);
    }
}
