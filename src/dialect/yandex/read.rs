//! Reads YAML whose scalars are all text.
//!
//! In: the text of one file. Out: its document, in which `1.10` and `yes` are the strings written,
//! or the first error. Must not: know the schema.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use nstance_yaml::plain::is_null;
use nstance_yaml::{Kind, Reader, Scalar, core_tag};

use crate::config::node::{Entry, Node, NodeValue};
use crate::config::source::{SourceId, Span};
use crate::config::yaml;
use crate::diagnostic::Diagnostic;

/// The size limit of a specification, in bytes.
pub const LARGEST: usize = 1 << 20;

const DEEPEST: usize = 100;

#[derive(Clone)]
enum Meaning {
    Null,
    Text(Arc<str>),
    /// `<<` without quotes.
    Merge,
    /// A scalar with a tag of another program.
    Foreign,
}

type Tree = nstance_yaml::Node<Meaning>;

/// Reads a document whose scalars are all strings in their source text. Nothing, `~` and `null`
/// without quotes are null.
///
/// Fails with the first syntax error, duplicate key or unknown tag, or if the text is larger than
/// 1 MiB.
pub fn read(source: SourceId, text: &str) -> Result<Node, Box<Diagnostic>> {
    if text.len() > LARGEST {
        return Err(Box::new(
            Diagnostic::error("the specification is larger than 1 MiB").at(
                Span::new(source, 0, 1.min(text.len())),
                format!("{} bytes", text.len()),
            ),
        ));
    }
    document(source, text).ok_or_else(|| explained(source, text))
}

/// The document; `None` if the text has an error, which [`explained`] finds again.
fn document(source: SourceId, text: &str) -> Option<Node> {
    if text
        .bytes()
        .any(|byte| matches!(byte, 0..=8 | 11 | 12 | 14..=31 | 127))
    {
        return None;
    }
    let mut reader = Reader::new(text, DEEPEST, meaning);
    let mut found = None;
    while let Some(document) = reader.document().ok()? {
        let root = document.root;
        let is_empty = matches!(&root.kind, Kind::Scalar(Meaning::Null)) && root.range.is_empty();
        if !is_empty && found.replace(root).is_some() {
            return None;
        }
    }
    node(source, &found?)
}

/// The native reader's error, with a hint where an unquoted `{` is the likely cause.
fn explained(source: SourceId, text: &str) -> Box<Diagnostic> {
    let Err(error) = yaml::read(source, text) else {
        return Box::new(Diagnostic::error("invalid YAML"));
    };
    let at = error.label.as_ref().map_or(0, |label| label.span.start) as usize;
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next().unwrap_or_default().trim_end();
    let key = line.find(": ").map_or(0, |colon| colon + 2);
    let value = line[key..].trim_start_matches(['-', ' ']);
    // A map has colons or commas, a placeholder hasn't.
    if value.starts_with('{') && !value.contains(": ") && !value.contains(',') {
        let end = start + line.len();
        return Box::new(
            Diagnostic::error("an unquoted placeholder")
                .at(
                    Span::new(source, end - value.len(), end),
                    "YAML reads `{` as the start of an object",
                )
                .hint(quote_it(value)),
        );
    }
    error
}

/// The hint to quote a value that YAML reads as an object.
pub(super) fn quote_it(value: &str) -> String {
    format!("put it in quotes: `\"{value}\"`")
}

fn meaning(scalar: &Scalar<'_>) -> Meaning {
    let text = &scalar.text;
    match &scalar.tag {
        None if scalar.is_plain() && is_null(text) => Meaning::Null,
        None if scalar.is_plain() && text == "<<" => Meaning::Merge,
        None => Meaning::Text((&**text).into()),
        Some(tag) if (&*tag.handle, &*tag.suffix) == ("", "!") => Meaning::Text((&**text).into()),
        Some(tag) => match core_tag(tag) {
            Some("null") => Meaning::Null,
            Some("str" | "int" | "float" | "bool") => Meaning::Text((&**text).into()),
            _ => Meaning::Foreign,
        },
    }
}

fn node(source: SourceId, tree: &Tree) -> Option<Node> {
    let span = |range: &Range<usize>| Span::new(source, range.start, range.end);
    let has_tag = |expected| match &tree.tag {
        Some(tag) => core_tag(tag) == Some(expected),
        None => true,
    };
    let value = match &tree.kind {
        Kind::Scalar(Meaning::Null) => NodeValue::Null,
        Kind::Scalar(Meaning::Text(text)) => NodeValue::String(Arc::clone(text)),
        Kind::Scalar(Meaning::Merge) => NodeValue::String("<<".into()),
        Kind::Sequence(items) if has_tag("seq") => {
            let items = items.iter().map(|item| node(source, item));
            NodeValue::Array(items.collect::<Option<_>>()?)
        }
        Kind::Mapping(written) if has_tag("map") => {
            let mut entries = Vec::with_capacity(written.len());
            let mut known = HashSet::new();
            let mut merged = None;
            for (key, value) in written.iter() {
                let key_text = match &key.kind {
                    Kind::Scalar(Meaning::Merge) if merged.is_none() => {
                        merged = Some(value.merged()?);
                        continue;
                    }
                    Kind::Scalar(Meaning::Text(text)) => Arc::clone(text),
                    // `null` and `~` are keys; nothing isn't one.
                    Kind::Scalar(Meaning::Null) if !key.range.is_empty() => "null".into(),
                    _ => return None,
                };
                if !known.insert(Arc::clone(&key_text)) {
                    return None;
                }
                entries.push(Entry {
                    key: key_text,
                    key_span: span(key.place()),
                    value: node(source, value)?,
                });
            }
            // The object's own keys win, then the first of several merged ones.
            for (key, value) in merged.into_iter().flatten().flatten() {
                let Kind::Scalar(Meaning::Text(text)) = &key.kind else {
                    return None;
                };
                if known.insert(Arc::clone(text)) {
                    entries.push(Entry {
                        key: Arc::clone(text),
                        key_span: span(&key.range),
                        value: node(source, value)?,
                    });
                }
            }
            NodeValue::Object(entries)
        }
        Kind::Scalar(Meaning::Foreign) | Kind::Sequence(_) | Kind::Mapping(_) => return None,
    };
    Some(Node::new(span(&tree.range), value))
}
