//! Reads the files of a configuration and the files they include.
//!
//! In: a path or a text. Out: its parsed documents, each followed by those it includes. Must not:
//! evaluate anything.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Loaded;
use crate::config::evaluate::{Content, Parsed};
use crate::config::node::{Node, NodeValue};
use crate::config::source::{Span, Spanned};
use crate::config::{files, hcl};
use crate::diagnostic::Diagnostic;

/// The maximum depth of includes.
const LONGEST_CHAIN: usize = 100;

/// Reads files and their includes.
pub(super) struct Reading<'w> {
    working_dir: &'w Path,
    pub(super) documents: Vec<Parsed>,
    /// Files that were read, so that each is read once.
    done: HashSet<PathBuf>,
    /// The files that lead to the current one by includes.
    chain: Vec<PathBuf>,
    /// The bytes left for further files.
    pub(super) room: usize,
    /// Whether a file exceeded that.
    is_full: bool,
}

impl<'w> Reading<'w> {
    pub(super) fn new(working_dir: &'w Path) -> Self {
        Self {
            working_dir,
            documents: Vec::new(),
            done: HashSet::new(),
            chain: Vec::new(),
            room: files::LARGEST_CONFIGURATION,
            is_full: false,
        }
    }

    /// Reads a file, then its includes.
    pub(super) fn file(&mut self, file: &Path, loaded: &mut Loaded) {
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
            Err(diagnostic) => loaded.findings.push(*diagnostic),
        }
    }

    /// Reports once that the configuration is too large.
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
    }

    /// Parses a file's text, then reads its includes.
    pub(super) fn text(&mut self, file: &Path, text: String, loaded: &mut Loaded) {
        let absolute = self.working_dir.join(file);
        let folder = absolute.parent().map(Arc::from);
        let Some(mut document) = loaded.parse(file, text, folder) else {
            return;
        };
        let includes = match &mut document.content {
            Content::Tree(root) => take_includes(root, loaded),
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
                            break;
                        }
                        if self.closes_a_cycle(&included, include.span, loaded) {
                            continue;
                        }
                        self.file(&included, loaded);
                    }
                }
                Err(why) => {
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

    /// A path that is equal for all names of the same file.
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
            Diagnostic::error("files include one another in a cycle")
                .at(place, "this closes the cycle")
                .detail(names.join(" includes ")),
        );
        true
    }
}

/// The error that includes are nested too deep.
fn too_long(place: Span) -> Diagnostic {
    Diagnostic::error(format!(
        "more than {LONGEST_CHAIN} files include one another"
    ))
    .at(place, "one file more in a row")
    .hint("Let one file include the others: a list, or a pattern such as `groups/*.jsonc`")
}

/// Removes the key `include` from a document and returns its values.
fn take_includes(root: &mut Node, loaded: &mut Loaded) -> Vec<Spanned<Arc<str>>> {
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
            _ => {
                loaded.findings.push(
                    Diagnostic::error("`include` must name files")
                        .at(
                            item.span,
                            format!("expected a string, found {}", item.type_name()),
                        )
                        .hint("Name one file, or several in a list: `[\"common.jsonc\", \"groups/*.jsonc\"]`"),
                );
            }
        }
    }
    includes
}
