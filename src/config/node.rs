//! The document tree that every configuration language is read into.
//!
//! In: the output of a reader (`jsonc`, `yaml`, `hcl`). Out: [`Node`]s, each with its span, for
//! `decode`; args, vars and file templates stay nodes. Must not: know the schema.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde_json::Number;

use sha2::{Digest as _, Sha256};

use super::source::Span;
use crate::digest::hex;

/// A value of a document and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it is written, including quotes and brackets.
    pub span: Span,
    /// What it is.
    pub value: NodeValue,
    /// Which parts of it are sensitive.
    pub sensitivity: Sensitivity,
}

/// Which parts of a value are sensitive. Items and entries have their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Sensitivity {
    /// None.
    #[default]
    Open,
    /// All; for an object, including its keys.
    Whole,
    /// These bytes of a string, from interpolations. Uses that can't mask single bytes treat the
    /// whole value as sensitive.
    Bytes(Arc<[Range<usize>]>),
}

impl Sensitivity {
    /// Whether nothing is sensitive.
    pub fn is_open(&self) -> bool {
        *self == Self::Open
    }

    /// The sensitive bytes of this value's text.
    pub fn bytes(&self, text: &str) -> Vec<Range<usize>> {
        match self {
            Self::Open => Vec::new(),
            Self::Whole => std::iter::once(0..text.len()).collect(),
            Self::Bytes(ranges) => ranges.to_vec(),
        }
    }

    /// The sensitivity of a text decoded or fetched from this one, where single bytes can't be
    /// tracked.
    #[must_use]
    pub fn of_whole(&self) -> Self {
        if self.is_open() {
            Self::Open
        } else {
            Self::Whole
        }
    }
}

/// The value of a [`Node`].
#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// Whole numbers are integers if they fit (i64, u64); others are doubles.
    Number(Number),
    /// A string with resolved escapes.
    String(Arc<str>),
    /// A list.
    Array(Vec<Node>),
    /// An object, in the order written; keys are unique.
    Object(Vec<Entry>),
}

/// An entry of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key with resolved escapes.
    pub key: Arc<str>,
    /// Where the key is written, including quotes.
    pub key_span: Span,
    /// Its value.
    pub value: Node,
}

/// Finds keys of an object while it is built. Most objects are small, and scanning a few keys is
/// faster than hashing them.
#[derive(Debug, Default)]
pub(super) struct Keys {
    places: HashMap<Arc<str>, usize, RandomState>,
}

impl Keys {
    /// Objects below this size are scanned.
    const FEW: usize = 16;

    /// The index of the item with a key. Between calls, `items` may only grow.
    pub(super) fn place<T>(
        &mut self,
        items: &[T],
        key_of: impl Fn(&T) -> &Arc<str>,
        key: &str,
    ) -> Option<usize> {
        if items.len() < Self::FEW {
            return items.iter().position(|item| **key_of(item) == *key);
        }
        for (place, item) in items.iter().enumerate().skip(self.places.len()) {
            self.places.insert(Arc::clone(key_of(item)), place);
        }
        self.places.get(key).copied()
    }

    /// The place of an existing key.
    pub(super) fn span(&mut self, entries: &[Entry], key: &str) -> Option<Span> {
        let place = self.place(entries, |entry| &entry.key, key)?;
        Some(entries[place].key_span)
    }
}

/// A reference to a value written elsewhere: an alias in YAML, a reference in HCL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    /// Where the reference is written.
    pub span: Span,
    /// Where the value is written.
    pub target: Span,
}

impl Entry {
    /// An entry whose key has the place of its value.
    pub fn placed(key: &str, value: Node) -> Self {
        Self {
            key: key.into(),
            key_span: value.span,
            value,
        }
    }
}

/// The entries of the object at a key, which is added if it is missing.
pub fn section<'e>(entries: &'e mut Vec<Entry>, key: &str, span: Span) -> &'e mut Vec<Entry> {
    let found = entries.iter().position(|entry| &*entry.key == key);
    let index = found.unwrap_or_else(|| {
        let empty = Node::new(span, NodeValue::Object(Vec::new()));
        entries.push(Entry::placed(key, empty));
        entries.len() - 1
    });
    let node = &mut entries[index].value;
    if !matches!(node.value, NodeValue::Object(_)) {
        node.value = NodeValue::Object(Vec::new());
    }
    match &mut node.value {
        NodeValue::Object(entries) => entries,
        _ => unreachable!("it was made an object"),
    }
}

impl Node {
    /// A value that isn't sensitive.
    pub fn new(span: Span, value: NodeValue) -> Self {
        Self {
            span,
            value,
            sensitivity: Sensitivity::Open,
        }
    }

    /// Whether it or a part of it is sensitive.
    pub fn is_sensitive_within(&self) -> bool {
        !self.sensitivity.is_open()
            || match &self.value {
                NodeValue::Array(items) => items.iter().any(Self::is_sensitive_within),
                NodeValue::Object(entries) => entries
                    .iter()
                    .any(|entry| entry.value.is_sensitive_within()),
                _ => false,
            }
    }

    /// Its JSON type with an article: `a string`, `an object`, …
    pub fn type_name(&self) -> &'static str {
        match self.value {
            NodeValue::Null => "null",
            NodeValue::Bool(_) => "a boolean",
            NodeValue::Number(_) => "a number",
            NodeValue::String(_) => "a string",
            NodeValue::Array(_) => "an array",
            NodeValue::Object(_) => "an object",
        }
    }

    /// The value of a key; `None` if this isn't an object, or has no such key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            NodeValue::Object(entries) => entries
                .iter()
                .find(|entry| &*entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The entries; empty if this isn't an object.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            NodeValue::Object(entries) => entries,
            _ => &[],
        }
    }

    /// The string; `None` if this isn't one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            NodeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The SHA-256 of the value, whatever file or language it is written in.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        self.hash_into(&mut hasher);
        hex(&hasher.finalize())
    }

    fn hash_into(&self, hasher: &mut Sha256) {
        let mut text = |kind: u8, text: &str| {
            hasher.update([kind]);
            hasher.update((text.len() as u64).to_be_bytes());
            hasher.update(text);
        };
        match &self.value {
            NodeValue::Null => text(b'n', ""),
            NodeValue::Bool(value) => text(b'b', if *value { "1" } else { "0" }),
            NodeValue::Number(value) => text(b'd', &value.to_string()),
            NodeValue::String(value) => text(b's', value),
            NodeValue::Array(items) => {
                text(b'a', &items.len().to_string());
                for item in items {
                    item.hash_into(hasher);
                }
            }
            NodeValue::Object(entries) => {
                text(b'o', &entries.len().to_string());
                for entry in entries {
                    hasher.update((entry.key.len() as u64).to_be_bytes());
                    hasher.update(&*entry.key);
                    entry.value.hash_into(hasher);
                }
            }
        }
    }

    /// The value as JSON, without spans.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(value) => Value::Bool(*value),
            NodeValue::Number(value) => Value::Number(value.clone()),
            NodeValue::String(value) => Value::String(value.to_string()),
            NodeValue::Array(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            NodeValue::Object(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.to_string(), entry.value.to_json()))
                    .collect(),
            ),
        }
    }
}
