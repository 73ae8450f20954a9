//! From a path to a checked configuration.
//!
//! In: what the command line says: a path or none, and values of variables. Out: [`Loaded`], with every finding
//! of one run. May not: print, or look anywhere but at the files it is told of.

#[cfg(test)]
mod cascades;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::assemble::assemble;
use super::check::{Purpose, check};
use super::conversion::Input;
use super::decode::decode;
use super::evaluate::{Content, Evaluation, Parsed, add_overrides, top_level_vars};
use super::files;
use super::hcl::{self, Folders};
use super::inputs::Inputs;
use super::jsonc;
use super::model::Config;
use super::node::{Alias, Node, NodeValue};
use super::size;
use super::source::{Language, SourceMap, Span, Spanned};
use super::variables::{Given, Secrets, Setting};
use super::yaml;
use crate::diagnostic::{Diagnostic, Diagnostics, Label, QUOTE_IT, UNQUOTE_IT, conceal};

/// How many files may include one another in a row.
const LONGEST_CHAIN: usize = 100;

/// How many uses of a text are shown.
const MOST_USES: usize = 3;

/// Of how many findings it is said which aliases use their text; nobody reads more.
const MOST_EXPLAINED: usize = 100;

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
    match files::find(path, working_dir, &mut loaded.inputs) {
        Err(diagnostic) => loaded.findings.push(*diagnostic),
        Ok(files) => {
            let absolute = working_dir.join(&files[0]);
            if let Some(directory) = absolute.parent() {
                directory.clone_into(&mut loaded.directory);
            }
            let mut reading = Reading::new(working_dir);
            for file in &files {
                reading.file(file, &mut loaded);
            }
            let root = Some(loaded.directory.as_path().into());
            let folders = Folders::new(root, Some(working_dir.to_owned()));
            loaded.finish(purpose, reading.documents, given, working_dir, &folders);
            loaded.inputs.extend(folders.seen());
            for file in &given.files {
                loaded.inputs.file(&working_dir.join(file));
            }
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

/// A text as the file at `file`, what it includes, and the rest of the configuration that it is a
/// part of, before anything is evaluated. The first document is the text's. No documents where one
/// of them can't be read.
pub(super) fn read_as(input: &Input<'_>) -> (SourceMap, Diagnostics, Option<Vec<Parsed>>) {
    let mut loaded = Loaded::default();
    let mut reading = Reading::new(input.working_dir);
    for its_own in [input.file, input.original] {
        reading.done.insert(reading.identity(its_own));
    }
    reading.text(input.file, input.text.to_owned(), &mut loaded);
    for other in input.whole {
        reading.file(other, &mut loaded);
    }
    let complete = !loaded.incomplete && !loaded.findings.has_errors();
    let documents = complete.then_some(reading.documents);
    (loaded.sources, loaded.findings, documents)
}

impl Loaded {
    fn parse(&mut self, file: &Path, text: String, folder: Option<Arc<Path>>) -> Option<Parsed> {
        let source = self.sources.add(file.display().to_string(), text);
        let text = Arc::clone(&self.sources.get(source).text);
        let overrides = files::is_override(file);
        let content = match self.sources.get(source).language {
            Language::Yaml => {
                let (root, aliases) = yaml::read_with_aliases(source, &text, &mut self.findings);
                self.aliases.extend(aliases);
                root.map(Content::Tree)
            }
            Language::Hcl => {
                let document = hcl::parse(source, &self.sources, &mut self.findings);
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
        let evaluated = self.findings.len();
        let mut unknown = HashSet::new();
        if let Some(mut root) = assemble(made.documents, &mut self.findings)
            // A file that can't be read may define whatever the others seem to lack.
            && !self.incomplete
        {
            add_overrides(&mut root, &made.overrides);
            // What stands in files as often as it is used was limited with them.
            let is_copied = !self.aliases.is_empty() || made.size > size::LARGEST / 2;
            if let Some(place) = is_copied.then(|| size::overflow(&root)).flatten() {
                self.findings.push(size::too_large(place));
            } else if let Some(decoded) = decode(&root, &mut self.findings) {
                check(&decoded, purpose, &self.sources, &mut self.findings);
                if self.findings.has_errors() {
                    root.unknown_places(&mut unknown);
                }
                // Where values are missing it is good for findings only.
                self.config = unknown.is_empty().then_some(decoded.config);
            }
            self.remains.0 = Some(root);
        }
        let is_sound = self.findings.len() == evaluated;
        let others = made.twins.into_iter();
        let (configs, told): (Vec<_>, Vec<_>) = others
            .map(|documents| {
                let mut told = Diagnostics::default();
                let decoded = assemble(documents, &mut told).and_then(|mut root| {
                    add_overrides(&mut root, &made.overrides);
                    decode(&root, &mut told)
                });
                if !is_sound && let Some(decoded) = &decoded {
                    check(decoded, purpose, &self.sources, &mut told);
                }
                (decoded.map(|decoded| decoded.config), told)
            })
            .unzip();
        if let Some(config) = &mut self.config {
            config.twins = twins(config, configs);
            if self.variables.is_empty() {
                self.variables = top_level_vars(config, &made.overrides);
            }
        }
        let mut findings: Vec<_> = std::mem::take(&mut self.findings).into_iter().collect();
        let mut found = Diagnostics::default();
        let is_new = |finding: &Diagnostic| {
            // That there is no value was said.
            let place = finding.label.as_ref().map(|label| &label.span);
            place.is_none_or(|place| !unknown.contains(place))
        };
        found.extend(findings.drain(evaluated..).filter(is_new));
        findings.extend(conceal(found, &told));
        // Stages find things in their own order; people read from the top.
        name_aliases(&self.aliases, &self.sources, &mut findings);
        say_once(made.repeated, &mut findings);
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

/// Files being read, and those that they include.
struct Reading<'w> {
    working_dir: &'w Path,
    documents: Vec<Parsed>,
    /// Files that were read: one that is included from two places is read once.
    done: HashSet<PathBuf>,
    /// The files that include one another on the way to this one.
    chain: Vec<PathBuf>,
    /// How many bytes more of them may have.
    room: usize,
    /// One of them had more.
    is_full: bool,
}

impl<'w> Reading<'w> {
    fn new(working_dir: &'w Path) -> Self {
        Self {
            working_dir,
            documents: Vec::new(),
            done: HashSet::new(),
            chain: Vec::new(),
            room: files::LARGEST_CONFIGURATION,
            is_full: false,
        }
    }

    /// Reads a file, then what it includes.
    fn file(&mut self, file: &Path, loaded: &mut Loaded) {
        if !self.done.insert(self.identity(file)) {
            return;
        }
        loaded.inputs.file(&self.working_dir.join(file));
        match files::read_text(file, self.working_dir) {
            Ok(text) if text.len() > self.room => self.full(file, loaded),
            Ok(text) => {
                self.room -= text.len();
                self.text(file, text, loaded);
            }
            Err(diagnostic) => {
                loaded.findings.push(*diagnostic);
                loaded.incomplete = true;
            }
        }
    }

    /// Says once that the configuration is too large for another file.
    fn full(&mut self, file: &Path, loaded: &mut Loaded) {
        if !std::mem::replace(&mut self.is_full, true) {
            let limit = files::LARGEST_CONFIGURATION >> 20;
            let finding = Diagnostic::error("the configuration is too large")
                .detail(format!(
                    "With {} its files have more than {limit} MiB",
                    file.display()
                ))
                .hint("Make it several shards: each has a configuration of its own");
            loaded.findings.push(finding);
        }
        loaded.incomplete = true;
    }

    /// Reads a file's text, then what it includes.
    fn text(&mut self, file: &Path, text: String, loaded: &mut Loaded) {
        let absolute = self.working_dir.join(file);
        let folder = absolute.parent().map(Arc::from);
        let Some(mut document) = loaded.parse(file, text, folder) else {
            return;
        };
        let includes = match &mut document.content {
            Content::Tree(root) => take_includes(root, &mut loaded.findings),
            Content::Hcl(file) => hcl::includes(file, &loaded.sources, &mut loaded.findings),
        };
        self.documents.push(document);
        self.chain.push(file.to_owned());
        for include in includes {
            match files::included(&include.value, file, self.working_dir, &mut loaded.inputs) {
                Ok(files) => {
                    for included in files {
                        if self.chain.len() >= LONGEST_CHAIN {
                            loaded.findings.push(too_long(include.span));
                            loaded.incomplete = true;
                            break;
                        }
                        if self.closes_a_cycle(&included, include.span, loaded) {
                            continue;
                        }
                        self.file(&included, loaded);
                    }
                }
                Err(why) => {
                    loaded.incomplete = true;
                    loaded.findings.push(
                        Diagnostic::error(format!("`{}` can't be included", include.value))
                            .at(include.span, why)
                            .hint("Paths are relative to the file that includes them"),
                    );
                }
            }
        }
        self.chain.pop();
    }

    /// The same for all names of one file.
    fn identity(&self, file: &Path) -> PathBuf {
        let absolute = self.working_dir.join(file);
        absolute.canonicalize().unwrap_or(absolute)
    }

    fn closes_a_cycle(&self, file: &Path, place: Span, loaded: &mut Loaded) -> bool {
        let identity = self.identity(file);
        let start = self
            .chain
            .iter()
            .position(|open| self.identity(open) == identity);
        let Some(start) = start else { return false };
        let mut names: Vec<String> = self.chain[start..]
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        names.push(names[0].clone());
        loaded.findings.push(
            Diagnostic::error("files include one another in a circle")
                .at(place, "this closes the circle")
                .detail(names.join(" includes ")),
        );
        true
    }
}

/// The finding that files include one another in too long a row.
fn too_long(place: Span) -> Diagnostic {
    Diagnostic::error(format!(
        "more than {LONGEST_CHAIN} files include one another"
    ))
    .at(place, "one file more in a row")
    .hint("Let one file include the others: a list, or a pattern such as `groups/*.jsonc`")
}

/// Takes the key `include` out of a document, which is then as if it had none.
fn take_includes(root: &mut Node, findings: &mut Diagnostics) -> Vec<Spanned<Arc<str>>> {
    let NodeValue::Object(entries) = &mut root.value else {
        return Vec::new();
    };
    let Some(at) = entries.iter().position(|entry| &*entry.key == "include") else {
        return Vec::new();
    };
    let entry = entries.remove(at);
    let items = match entry.value.value {
        NodeValue::Array(items) => items,
        _ => vec![entry.value],
    };
    let mut includes = Vec::new();
    for item in items {
        match &item.value {
            NodeValue::String(path) => includes.push(Spanned::new(Arc::clone(path), item.span)),
            _ => findings.push(
                Diagnostic::error("`include` must name files")
                    .at(
                        item.span,
                        format!("expected a string, found {}", item.type_name()),
                    )
                    .hint("Name one file, or several in a list: `[\"common.jsonc\", \"groups/*.jsonc\"]`"),
            ),
        }
    }
    includes
}

/// Of findings about one place in a block with `for_each`, each instance has its own: the first
/// says it all.
fn say_once(mut repeated: Vec<Span>, findings: &mut Vec<Diagnostic>) {
    if repeated.is_empty() {
        return;
    }
    repeated.sort();
    let within = |span: Span| {
        let next = repeated.partition_point(|block| *block <= span);
        next > 0 && {
            let block = repeated[next - 1];
            block.source == span.source && span.end <= block.end
        }
    };
    let mut seen = HashSet::new();
    findings.retain(|finding| match &finding.label {
        Some(label) if within(label.span) => {
            seen.insert((label.clone(), finding.severity, finding.hints.clone()))
        }
        _ => true,
    });
}

/// Adds where references use the text that a finding is about: it may be wrong there only.
fn name_aliases(aliases: &[Alias], sources: &SourceMap, findings: &mut [Diagnostic]) {
    if aliases.is_empty() {
        return;
    }
    for finding in findings.iter_mut().take(MOST_EXPLAINED) {
        let Some(place) = finding.label.as_ref().map(|label| label.span) else {
            continue;
        };
        let uses = aliases.iter().filter(|alias| {
            let target = alias.target;
            target.source == place.source && target.start <= place.start && place.end <= target.end
        });
        let mut seen: Vec<Span> = Vec::new();
        for alias in uses {
            // In a block with `for_each` the same place uses each of them.
            if !seen.contains(&alias.span) {
                seen.push(alias.span);
            }
            if seen.len() == MOST_USES {
                break;
            }
        }
        for span in &seen {
            let text = match sources.get(span.source).language {
                Language::Yaml => "it is used here too",
                _ => "it is used here",
            };
            finding.related.push(Label {
                span: *span,
                text: text.to_owned(),
            });
        }
        if let Some(used) = seen.first()
            && sources.get(used.source).language == Language::Hcl
        {
            convert_where_used(finding, sources.text(*used));
        }
    }
}

/// Of a value of the wrong type that is written elsewhere, maybe rightly, says how it is converted
/// where it is used.
fn convert_where_used(finding: &mut Diagnostic, used: &str) {
    let bare = used
        .strip_prefix("\"${")
        .and_then(|used| used.strip_suffix("}\""));
    let used = bare.unwrap_or(used).trim();
    for hint in &mut finding.hints {
        let function = if hint.starts_with(QUOTE_IT) {
            "tostring"
        } else if let Some(value) = hint.strip_prefix(UNQUOTE_IT) {
            if value.contains("true") || value.contains("false") {
                "tobool"
            } else {
                "tonumber"
            }
        } else {
            continue;
        };
        let name = used.strip_prefix("var.");
        let is_variable = name.is_some_and(|name| !name.contains(['.', '[', ' ']));
        *hint = format!("write `{function}({used})` where it is used");
        if is_variable {
            let _ = write!(hint, ", or give the variable `type = {}`", &function[2..]);
        }
    }
}
