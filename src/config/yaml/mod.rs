//! Reads YAML 1.2 into [`Node`]s.
//!
//! In: the text of one file. Out: its document, each value with its place, or the first error. Must
//! not: know the schema.
//!
//! The crate `nstance-yaml` reads the tree. This module decides which tags, keys and numbers are
//! valid, and warns where YAML 1.1 would read another value.

mod hints;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use nstance_yaml::plain::{self, Plain, Surprise, surprise};
use nstance_yaml::{Kind, Reader, Scalar, Tag, core_tag};

use super::jsonc::{self, DEEPEST};
use super::node::{Alias, Entry, Keys, Node, NodeValue};
use super::source::{SourceId, Span};
use crate::diagnostic::{Diagnostic, Diagnostics};

type Read<T> = Result<T, Box<Diagnostic>>;

/// A scalar's text, whether it is plain, and its value.
#[derive(Clone)]
struct Meaning {
    text: Arc<str>,
    is_plain: bool,
    value: Result<Plain, BadTag>,
}

/// An invalid tag of a scalar, as written.
#[derive(Clone)]
enum BadTag {
    Unknown(Arc<str>),
    /// The text doesn't match the tag's type.
    Mismatch(Arc<str>),
}

type Tree = nstance_yaml::Node<Meaning>;

/// The result of reading a file.
#[derive(Debug, PartialEq)]
pub struct Document {
    /// Its value.
    pub root: Node,
    /// The aliases that were followed; their values have the places of the anchors.
    pub aliases: Vec<Alias>,
    /// Warnings about scalars that YAML 1.1 reads differently.
    pub warnings: Diagnostics,
}

/// Reads a document.
///
/// Fails with the first syntax error, duplicate key, unknown tag or number out of range.
pub fn read(source: SourceId, text: &str) -> Read<Document> {
    let span = |range: Range<usize>| Span::new(source, range.start, range.end);
    if let Some(at) = text
        .bytes()
        .position(|byte| matches!(byte, 0..=8 | 11 | 12 | 14..=31 | 127))
    {
        return Err(Box::new(hints::control_character(text, span(at..at + 1))));
    }
    let failed = |error| Box::new(hints::explain(source, text, &error));
    let mut reader = Reader::new(text, DEEPEST, meaning);
    let mut found: Option<Tree> = None;
    while let Some(document) = reader.document().map_err(failed)? {
        let root = document.root;
        let is_empty = matches!(&root.kind, Kind::Scalar(scalar) if scalar.is_nothing());
        if is_empty {
            continue;
        }
        if found.is_some() {
            let start = if document.start.is_empty() {
                root.range
            } else {
                document.start
            };
            return Err(Box::new(
                Diagnostic::error("the file contains more than one document")
                    .at(span(start), "a second document starts here")
                    .hint("write each configuration into its own file"),
            ));
        }
        found = Some(root);
    }
    let Some(tree) = found else {
        let end = text.len();
        return Err(Box::new(
            Diagnostic::error("the file holds no configuration")
                .at(span(end..end), "expected keys such as `cluster:`")
                .hint("`nstance init` writes one to start from"),
        ));
    };
    let mut converter = Converter {
        source,
        text,
        aliases: Vec::new(),
        warnings: Diagnostics::default(),
        repeated: 0,
    };
    let root = converter.node(&tree)?;
    Ok(Document {
        root,
        aliases: converter.aliases,
        warnings: converter.warnings,
    })
}

/// Whether an unquoted scalar is this text in YAML 1.1 and 1.2.
pub fn is_plain_text(text: &str) -> bool {
    plain::resolve(text) == Plain::Text && surprise(text).is_none()
}

impl Meaning {
    /// Whether nothing is written.
    fn is_nothing(&self) -> bool {
        self.is_plain && self.text.is_empty()
    }
}

/// Interprets a scalar with YAML 1.2's core schema.
fn meaning(scalar: &Scalar<'_>) -> Meaning {
    let found = plain::resolve(&scalar.text);
    let is_plain = scalar.is_plain();
    let value = match &scalar.tag {
        None if is_plain => Ok(found),
        None => Ok(Plain::Text),
        Some(tag) => match (core_tag(tag), found) {
            _ if is_non_specific(tag) => Ok(Plain::Text),
            (Some("str"), _) => Ok(Plain::Text),
            (Some("null"), Plain::Null)
            | (Some("bool"), Plain::Bool(_))
            | (
                Some("int" | "float"),
                Plain::Decimal | Plain::Based(_) | Plain::Infinite | Plain::Nan,
            ) => Ok(found),
            (Some("null" | "bool" | "int" | "float"), _) => Err(BadTag::Mismatch(shown(tag))),
            _ => Err(BadTag::Unknown(shown(tag))),
        },
    };
    Meaning {
        text: (&*scalar.text).into(),
        is_plain,
        value,
    }
}

/// Whether a tag is `!` alone.
fn is_non_specific(tag: &Tag) -> bool {
    matches!((&*tag.handle, &*tag.suffix), ("", "!") | ("!", ""))
}

/// A tag as it is written.
fn shown(tag: &Tag) -> Arc<str> {
    let suffix = &tag.suffix;
    match tag.handle.as_str() {
        "tag:yaml.org,2002:" => format!("!!{suffix}"),
        "" => format!("!<{suffix}>"),
        handle => format!("{handle}{suffix}"),
    }
    .into()
}

struct Converter<'t> {
    source: SourceId,
    text: &'t str,
    aliases: Vec<Alias>,
    warnings: Diagnostics,
    /// The number of aliases around the current value; warnings were added at its anchor.
    repeated: usize,
}

impl Converter<'_> {
    fn span(&self, range: &Range<usize>) -> Span {
        Span::new(self.source, range.start, range.end)
    }

    fn warn(&mut self, warning: Diagnostic) {
        if self.repeated == 0 {
            self.warnings.push(warning);
        }
    }

    fn note_alias(&mut self, tree: &Tree) {
        if let Some(alias) = &tree.alias
            && self.repeated == 0
        {
            self.aliases.push(Alias {
                span: self.span(alias),
                target: self.span(&tree.range),
            });
        }
    }

    fn node(&mut self, tree: &Tree) -> Read<Node> {
        self.note_alias(tree);
        self.repeated += usize::from(tree.alias.is_some());
        let span = self.span(&tree.range);
        let value = match &tree.kind {
            Kind::Scalar(meaning) => self.scalar(tree, meaning)?,
            Kind::Sequence(items) => {
                self.check_tag(tree, "seq")?;
                let items = items.iter().map(|item| self.node(item));
                NodeValue::Array(items.collect::<Read<_>>()?)
            }
            Kind::Mapping(entries) => {
                self.check_tag(tree, "map")?;
                NodeValue::Object(self.entries(entries)?)
            }
        };
        self.repeated -= usize::from(tree.alias.is_some());
        Ok(Node::new(span, value))
    }

    /// Rejects unknown tags. Fails with the error.
    fn check_tag(&self, tree: &Tree, expected: &str) -> Read<()> {
        match &tree.tag {
            Some(tag) if core_tag(tag) != Some(expected) && !is_non_specific(tag) => {
                Err(self.unknown_tag(tree, &shown(tag)))
            }
            _ => Ok(()),
        }
    }

    fn unknown_tag(&self, tree: &Tree, tag: &str) -> Box<Diagnostic> {
        let properties = &self.text[tree.properties..tree.range.start];
        let start = tree.properties + properties.find('!').unwrap_or(0);
        let length = self.text[start..].find(char::is_whitespace);
        let end = length.map_or(self.text.len(), |length| start + length);
        Box::new(hints::unknown_tag(tag, self.span(&(start..end))))
    }

    fn scalar(&mut self, tree: &Tree, meaning: &Meaning) -> Read<NodeValue> {
        let span = self.span(&tree.range);
        let text = &meaning.text;
        if meaning.is_plain
            && let Some(surprise) = surprise(text)
        {
            self.warn(remark(text, &surprise, span));
        }
        let number = match &meaning.value {
            Ok(Plain::Null) => return Ok(NodeValue::Null),
            Ok(Plain::Bool(value)) => return Ok(NodeValue::Bool(*value)),
            Ok(Plain::Text) => return Ok(NodeValue::String(Arc::clone(text))),
            Ok(Plain::Based(value)) => value.map(Into::into),
            Ok(Plain::Decimal) => jsonc::number(text.strip_prefix('+').unwrap_or(text)),
            Ok(Plain::Infinite | Plain::Nan) => None,
            Err(BadTag::Unknown(tag)) => return Err(self.unknown_tag(tree, tag)),
            Err(BadTag::Mismatch(tag)) => {
                return Err(Box::new(
                    Diagnostic::error(format!("invalid value for the tag `{tag}`"))
                        .at(span, format!("`{text}` is of another type")),
                ));
            }
        };
        number.map(NodeValue::Number).ok_or_else(|| {
            let why = match meaning.value {
                Ok(Plain::Infinite | Plain::Nan) => "must be finite",
                _ => "larger than a 64-bit floating-point number",
            };
            Box::new(
                Diagnostic::error(format!("invalid number `{text}`"))
                    .at(span, why)
                    .hint(format!("if it is text, put it in quotes: `\"{text}\"`")),
            )
        })
    }

    fn entries(&mut self, written: &[(Tree, Tree)]) -> Read<Vec<Entry>> {
        let mut entries = Vec::with_capacity(written.len());
        let mut keys = Keys::default();
        let mut merge: Option<(usize, Span, Vec<Entry>)> = None;
        for (key_tree, value) in written {
            let (key, key_span, is_merge) = self.key(key_tree)?;
            let first = match &merge {
                Some((_, span, _)) if is_merge => Some(*span),
                _ => keys.span(&entries, &key),
            };
            if let Some(first) = first {
                return Err(Box::new(
                    Diagnostic::error(format!("duplicate key `{key}`"))
                        .at(key_span, "defined again here")
                        .related(first, "first defined here")
                        .hint("remove or rename one of the two"),
                ));
            }
            if is_merge {
                merge = Some((entries.len(), key_span, self.merged(value)?));
                continue;
            }
            let value = self.node(value)?;
            entries.push(Entry {
                key,
                key_span,
                value,
            });
        }
        if let Some((at, _, merged)) = merge {
            // The object's own keys win, then the first of several merged ones.
            let mut known: HashSet<Arc<str>> =
                entries.iter().map(|entry| Arc::clone(&entry.key)).collect();
            let missing = merged
                .into_iter()
                .filter(|entry| known.insert(Arc::clone(&entry.key)));
            entries.splice(at..at, missing);
        }
        Ok(entries)
    }

    /// A key, its place, and whether it is `<<`.
    fn key(&mut self, tree: &Tree) -> Read<(Arc<str>, Span, bool)> {
        self.note_alias(tree);
        let span = self.span(tree.place());
        let Kind::Scalar(Meaning { text, is_plain, .. }) = &tree.kind else {
            return Err(Box::new(hints::complex_key(span)));
        };
        let is_plain = *is_plain && tree.alias.is_none();
        if is_plain && text.is_empty() {
            return Err(Box::new(
                Diagnostic::error("missing key").at(span, "expected a key before `:`"),
            ));
        }
        // A single letter is more often a coordinate than a boolean.
        if is_plain
            && text.len() > 1
            && let Some(value) = plain::switch(text)
        {
            self.warn(
                Diagnostic::warning(format!("the key `{text}` is text, not a boolean"))
                    .at(span, format!("YAML 1.1 would read `{value}`"))
                    .hint(format!("to confirm that, put it in quotes: `\"{text}\"`")),
            );
        }
        Ok((Arc::clone(text), span, is_plain && **text == *"<<"))
    }

    /// The entries that `<<` merges. Fails if its value isn't a map or a list of maps.
    fn merged(&mut self, tree: &Tree) -> Read<Vec<Entry>> {
        let node = self.node(tree)?;
        let found = node.type_name();
        if tree.merged().is_none() {
            return Err(Box::new(
                Diagnostic::error("invalid value for `<<`")
                    .at(
                        self.span(tree.place()),
                        format!("expected an object or a list of objects, found {found}"),
                    )
                    .hint("`<<: *name` copies the keys of the object that `&name` marks"),
            ));
        }
        Ok(match node.value {
            NodeValue::Array(items) => {
                let objects = items.into_iter().map(|item| item.value);
                objects.flat_map(entries_of).collect()
            }
            object => entries_of(object),
        })
    }
}

fn entries_of(value: NodeValue) -> Vec<Entry> {
    match value {
        NodeValue::Object(entries) => entries,
        _ => Vec::new(),
    }
}

/// The warning that YAML 1.1 reads a scalar differently.
fn remark(text: &str, surprise: &Surprise, span: Span) -> Diagnostic {
    let quoted = format!("`\"{text}\"`");
    let (is, other, hint) = match surprise {
        Surprise::Bool(value) => (
            "text, not a boolean".to_owned(),
            format!("`{value}`"),
            format!("write `{value}` for the boolean, {quoted} for the text"),
        ),
        Surprise::LeadingZero(Some(octal)) => {
            let sign = if text.starts_with('-') { "-" } else { "" };
            let digits = text.trim_start_matches(['+', '-', '0']);
            let digits = if digits.is_empty() { "0" } else { digits };
            let octal_hint = match sign {
                "-" => String::new(),
                _ => format!("`0o{digits}` for the octal number, "),
            };
            (
                format!("the number {sign}{digits}, not octal"),
                format!("{sign}{octal}"),
                format!(
                    "write {quoted} for the text (such as a file's mode), {octal_hint}\
                     `{sign}{digits}` for this one"
                ),
            )
        }
        Surprise::LeadingZero(None) => (
            "a number, and loses its zeros".to_owned(),
            "text".to_owned(),
            format!("write {quoted} for the text, or the number without leading zeros"),
        ),
        Surprise::Digits(number) => (
            "text, not a number".to_owned(),
            number.clone(),
            format!("write `{number}` for the number, {quoted} for the text"),
        ),
        Surprise::Sexagesimal => (
            "text, not a number".to_owned(),
            "a number to the base of 60".to_owned(),
            format!("to confirm that, put it in quotes: {quoted}"),
        ),
        Surprise::Date => (
            "text, not a date".to_owned(),
            "a date".to_owned(),
            format!("to confirm that, put it in quotes: {quoted}"),
        ),
    };
    Diagnostic::warning(format!("`{text}` is {is}"))
        .at(span, format!("YAML 1.1 would read {other}"))
        .hint(hint)
}
