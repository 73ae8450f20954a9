//! The document tree that every configuration language is read into.
//!
//! In: what a reader (`jsonc`, `yaml`, `hcl`) found. Out: [`Node`]s, each with its span,
//! for `decode` to turn into the typed model; args, vars and file templates stay nodes to the end.
//! Must not: know the schema.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde_json::Number;

use super::source::Span;

/// A value of a document and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it was written, quotes and brackets included.
    pub span: Span,
    /// What it is.
    pub value: NodeValue,
    /// The part of it that is masked.
    pub sensitivity: Sensitivity,
}

/// The sensitive part of a value. Items of lists and objects have their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Sensitivity {
    /// Nothing.
    #[default]
    Open,
    /// All of it; of an object its keys, too.
    Whole,
    /// These bytes of a string, which templates of the configuration's language wrote. The value is
    /// sensitive all the same where it isn't shown as a text.
    Bytes(Arc<[Range<usize>]>),
}

impl Sensitivity {
    /// Whether nothing of the value is sensitive.
    pub fn is_open(&self) -> bool {
        *self == Self::Open
    }

    /// The sensitive bytes of a text, which is the value.
    pub fn bytes(&self, text: &str) -> Vec<Range<usize>> {
        match self {
            Self::Open => Vec::new(),
            Self::Whole => std::iter::once(0..text.len()).collect(),
            Self::Bytes(ranges) => ranges.to_vec(),
        }
    }

    /// The bytes of a text that was decoded, or stands for another, say nothing.
    #[must_use]
    pub fn of_whole(&self) -> Self {
        if self.is_open() {
            Self::Open
        } else {
            Self::Whole
        }
    }
}

/// What a [`Node`] is.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// Whole numbers are integers where they fit (i64, u64), everything else a double.
    Number(Number),
    /// A string, its escapes resolved.
    String(Arc<str>),
    /// A list.
    Array(Vec<Node>),
    /// An object, in the order written; keys are unique.
    Object(Vec<Entry>),
}

/// One key of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key, its escapes resolved.
    pub key: Arc<str>,
    /// Where the key was written, quotes included.
    pub key_span: Span,
    /// Its value.
    pub value: Node,
}

/// Finds keys among those that an object has so far. Most objects are small: looking through a few
/// keys is faster than hashing them.
#[derive(Debug, Default)]
pub(super) struct Keys {
    places: HashMap<Arc<str>, usize, RandomState>,
}

impl Keys {
    /// So many keys are looked through.
    const FEW: usize = 16;

    /// Which of `items` has a key. They are the same as the last time, or more.
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

    /// Where a key stands already.
    pub(super) fn span(&mut self, entries: &[Entry], key: &str) -> Option<Span> {
        let place = self.place(entries, |entry| &entry.key, key)?;
        Some(entries[place].key_span)
    }
}

/// A place that stands for what is written elsewhere: an alias of YAML, a reference of HCL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    /// Where it is used.
    pub span: Span,
    /// What it stands for.
    pub target: Span,
}

impl Node {
    /// A value without anything sensitive.
    pub fn new(span: Span, value: NodeValue) -> Self {
        Self {
            span,
            value,
            sensitivity: Sensitivity::Open,
        }
    }

    /// Whether it or anything in it is sensitive.
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

    /// The JSON word for what this is: `a string`, `an object`, …
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

    /// The value of a key, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            NodeValue::Object(entries) => entries
                .iter()
                .find(|entry| &*entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The keys, if this is an object; else none.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            NodeValue::Object(entries) => entries,
            _ => &[],
        }
    }

    /// The string, if this is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            NodeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The same value without its spans.
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
