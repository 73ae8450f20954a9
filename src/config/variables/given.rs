//! Collects given values: from the environment, var-files and the command line.
//!
//! In: a [`Given`]. Out: the value with the highest precedence for each name. Must not: know the
//! declared variables.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nstance_hcl::{Item, Value};

use super::declare::{Reading, value_of};
use super::{Given, Origin};
use crate::config::files;
use crate::config::hcl::{self, Places};
use crate::config::node::Node;
use crate::config::source::{Language, SourceId, SourceMap, Span};
use crate::config::{jsonc, yaml};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// A given value.
#[derive(Debug, Clone)]
pub(super) enum Raw {
    /// Text, which the variable's type interprets.
    Text(Arc<str>),
    /// A value of a var-file, and its name's place.
    Value(Value, Span),
}

/// The effective value and its origin.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) raw: Raw,
    pub(super) origin: Origin,
}

/// Parts of var-files that failed to parse, and may be secrets.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// The files.
    pub(super) files: Vec<SourceId>,
    /// The names in them, and the places of their entries.
    pub(super) entries: Vec<(Arc<str>, Span)>,
    /// Texts that failed to parse.
    pub(super) texts: Vec<Arc<str>>,
    /// Invalid values, by name.
    pub(super) values: Vec<(Arc<str>, Arc<str>)>,
    /// Whether a file failed as a whole; it may have given any variable.
    pub(super) is_lacking: bool,
}

/// All given values, by name; `None` if a file's value is invalid.
pub(super) fn candidates(
    given: &Given,
    working_dir: &Path,
    sources: &mut SourceMap,
    findings: &mut Diagnostics,
    unread: &mut Unread,
) -> BTreeMap<Arc<str>, Candidate> {
    let mut candidates = BTreeMap::new();
    let text = |value: &String, origin| Candidate {
        raw: Raw::Text(value.as_str().into()),
        origin,
    };
    for (name, value) in &given.environment {
        candidates.insert(name.as_str().into(), text(value, Origin::Environment));
    }
    for file in &given.files {
        for (name, place, value) in read(file, working_dir, sources, findings, unread) {
            let candidate = Candidate {
                origin: Origin::File(place),
                raw: Raw::Value(value, place),
            };
            candidates.insert(name, candidate);
        }
    }
    for (name, value) in &given.command_line {
        candidates.insert(name.as_str().into(), text(value, Origin::CommandLine));
    }
    candidates
}

/// The values of a file, each with its name's place.
///
/// Fails if the file can't be read or parsed.
fn read(
    file: &Path,
    working_dir: &Path,
    sources: &mut SourceMap,
    findings: &mut Diagnostics,
    unread: &mut Unread,
) -> Vec<(Arc<str>, Span, Value)> {
    let shown = file.display();
    let extension = file.extension().and_then(|name| name.to_str());
    if !matches!(
        extension,
        Some("tfvars" | "hcl" | "json" | "jsonc" | "yaml" | "yml")
    ) {
        findings.push(
            Diagnostic::error(format!("the language of the var-file isn't known: {shown}"))
                .detail("its extension says it")
                .hint("`.tfvars` and `.hcl` are HCL; others are `.json`, `.yaml` and `.yml`"),
        );
        unread.is_lacking = true;
        return Vec::new();
    }
    let text = match files::read_as("var-file", file, working_dir) {
        Ok(text) => text,
        Err(finding) => {
            findings.push(*finding);
            unread.is_lacking = true;
            return Vec::new();
        }
    };
    let source = sources.add(shown.to_string(), text);
    unread.files.push(source);
    let text = Arc::clone(&sources.get(source).text);
    let root = match sources.get(source).language {
        Language::Hcl => {
            let Some(body) = findings.keep(hcl::parse(source, sources)) else {
                unread.texts.push(text);
                unread.is_lacking = true;
                return Vec::new();
            };
            let places = Places::default();
            let mut reading = Reading {
                sources,
                places: &places,
                findings,
            };
            let mut values = Vec::new();
            for item in &body.items {
                match item {
                    Item::Attribute(attribute) => {
                        let place = places.span(reading.sources, attribute.name.span);
                        let name = Arc::clone(&attribute.name.name);
                        let whole = places.span(reading.sources, attribute.span);
                        unread.entries.push((Arc::clone(&name), whole));
                        if let Some(value) = reading.constant(&attribute.value) {
                            values.push((name, place, value));
                        } else {
                            let written = text.get(attribute.value.span.range());
                            unread
                                .values
                                .push((name, written.unwrap_or_default().into()));
                        }
                    }
                    Item::Block(block) => {
                        let place = places.span(reading.sources, block.header);
                        let whole = places.span(reading.sources, block.span);
                        unread.entries.push((Arc::clone(&block.kind.name), whole));
                        reading.findings.push(
                            Diagnostic::error("a var-file holds values, no blocks")
                                .at(place, "this is a block")
                                .hint("write `NAME = VALUE`; configurations are given by --config"),
                        );
                    }
                }
            }
            return values;
        }
        Language::Yaml => findings.keep(yaml::read(source, &text)).map(|document| {
            findings.extend(document.warnings);
            document.root
        }),
        Language::Jsonc | Language::Plain => findings.keep(jsonc::read(source, &text)),
    };
    let Some(root) = root else {
        unread.texts.push(text);
        unread.is_lacking = true;
        return Vec::new();
    };
    let entries = root.entries().iter().map(|entry| {
        let (start, end) = (entry.key_span, entry.value.span);
        (
            Arc::clone(&entry.key),
            Span {
                end: end.end,
                ..start
            },
        )
    });
    unread.entries.extend(entries);
    of_root(&root, findings)
}

fn of_root(root: &Node, findings: &mut Diagnostics) -> Vec<(Arc<str>, Span, Value)> {
    if !matches!(root.value, crate::config::node::NodeValue::Object(_)) {
        findings.push(
            Diagnostic::error("a var-file must be an object from names to values")
                .at(root.span, format!("this is {}", root.type_name())),
        );
    }
    root.entries()
        .iter()
        .map(|entry| {
            let value = value_of(&entry.value);
            (Arc::clone(&entry.key), entry.key_span, value)
        })
        .collect()
}
