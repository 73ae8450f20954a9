//! Builds an object from attributes and blocks, of one body or of several files.
//!
//! In: keys with the nodes of attributes and blocks. Out: the object's node. Must not: evaluate
//! anything.

use std::sync::Arc;

use super::scope::At;
use crate::config::node::{Entry, Keys, Node, NodeValue};
use crate::config::source::Span;
use crate::diagnostic::Reported;

/// An object being built.
#[derive(Default)]
pub(super) struct Object {
    fields: Vec<Field>,
    /// Whether a part of it failed.
    failed: bool,
    keys: Keys,
}

struct Field {
    key: Arc<str>,
    key_span: Span,
    value: Making,
}

enum Making {
    /// The value of an attribute, or of a block that must not repeat.
    Done(Node),
    /// Blocks with the same name: an object, or a list of several.
    Blocks(Vec<Node>),
    /// Blocks that always form a list.
    Items(Vec<Node>),
    /// Labelled blocks, with the place of the first.
    Names(Span, Box<Object>),
}

impl Object {
    /// The finished node.
    ///
    /// Fails if a part of the object failed.
    pub(super) fn node(self, span: Span) -> Result<Node, Reported> {
        if self.failed {
            return Err(Reported);
        }
        let entries = self.fields.into_iter().map(|field| {
            let value = match field.value {
                Making::Done(node) => node,
                Making::Names(span, names) => names.node(span)?,
                Making::Blocks(mut nodes) if nodes.len() == 1 => nodes.remove(0),
                Making::Blocks(nodes) | Making::Items(nodes) => {
                    Node::new(nodes[0].span, NodeValue::Array(nodes))
                }
            };
            Ok(Entry {
                key: field.key,
                key_span: field.key_span,
                value,
            })
        });
        let value = NodeValue::Object(entries.collect::<Result<_, Reported>>()?);
        Ok(Node::new(span, value))
    }

    /// Records that a part failed, whose error was reported.
    pub(super) fn fail(&mut self) {
        self.failed = true;
    }

    fn place(&mut self, key: &str) -> Option<usize> {
        self.keys.place(&self.fields, |field| &field.key, key)
    }

    fn field(&mut self, key: &str) -> Option<&mut Field> {
        let place = self.place(key)?;
        Some(&mut self.fields[place])
    }

    fn push(&mut self, key: Arc<str>, key_span: Span, value: Making) {
        self.fields.push(Field {
            key,
            key_span,
            value,
        });
    }

    /// Sets a key, which must not exist yet. Two maps of names are merged if their entries don't
    /// clash.
    pub(super) fn put(
        &mut self,
        path: &str,
        key: Arc<str>,
        key_span: Span,
        node: Node,
        at: &At<'_>,
    ) {
        match self.field(&key) {
            None => self.push(key, key_span, Making::Done(node)),
            Some(Field {
                value: Making::Names(_, names),
                ..
            }) if matches!(node.value, NodeValue::Object(_)) => {
                let path = format!("{path}{key}.");
                if let NodeValue::Object(entries) = node.value {
                    for entry in entries {
                        names.put(&path, entry.key, entry.key_span, entry.value, at);
                    }
                }
            }
            Some(first) => {
                at.twice(&format!("{path}{key}"), first.key_span, key_span);
                self.fail();
            }
        }
    }

    /// The map of names at a key.
    pub(super) fn names(
        &mut self,
        path: &str,
        key: &Arc<str>,
        key_span: Span,
        at: &At<'_>,
    ) -> Option<&mut Self> {
        let place = self.place(key).unwrap_or_else(|| {
            let names = Making::Names(key_span, Box::default());
            self.push(Arc::clone(key), key_span, names);
            self.fields.len() - 1
        });
        let field = &mut self.fields[place];
        if let Making::Done(node) = &mut field.value
            && let NodeValue::Object(entries) = &mut node.value
        {
            let fields = std::mem::take(entries).into_iter().map(|entry| Field {
                key: entry.key,
                key_span: entry.key_span,
                value: Making::Done(entry.value),
            });
            let names = Self {
                fields: fields.collect(),
                ..Self::default()
            };
            field.value = Making::Names(node.span, Box::new(names));
        }
        match &mut field.value {
            Making::Names(_, names) => Some(names),
            _ => {
                at.twice(&format!("{path}{key}"), field.key_span, key_span);
                None
            }
        }
    }

    /// Adds a block to those with its name.
    pub(super) fn add(
        &mut self,
        path: &str,
        key: Arc<str>,
        key_span: Span,
        node: Node,
        list: bool,
        at: &At<'_>,
    ) {
        match self.field(&key) {
            None if list => self.push(key, key_span, Making::Items(vec![node])),
            None => self.push(key, key_span, Making::Blocks(vec![node])),
            Some(Field {
                value: Making::Blocks(nodes) | Making::Items(nodes),
                ..
            }) => nodes.push(node),
            Some(first) => {
                at.twice(&format!("{path}{key}"), first.key_span, key_span);
                self.fail();
            }
        }
    }
}
