//! An object in the making: attributes and blocks of one body, or of several files' blocks.
//!
//! In: keys with what attributes and blocks gave. Out: the object's node. May not: evaluate anything.

use std::sync::Arc;

use super::scope::At;
use crate::config::node::{Entry, Keys, Node, NodeValue};
use crate::config::source::Span;

/// An object in the making.
#[derive(Default)]
pub(super) struct Object {
    fields: Vec<Field>,
    keys: Keys,
}

struct Field {
    key: Arc<str>,
    key_span: Span,
    value: Making,
}

enum Making {
    /// What an attribute gave, or a block that stands once.
    Done(Node),
    /// Blocks of one name: an object, or a list.
    Blocks(Vec<Node>),
    /// Blocks that are always a list.
    Items(Vec<Node>),
    /// By labels; where the first of them stands.
    Names(Span, Box<Object>),
}

impl Object {
    pub(super) fn node(self, span: Span) -> Node {
        let entries = self.fields.into_iter().map(|field| {
            let value = match field.value {
                Making::Done(node) => node,
                Making::Names(span, names) => names.node(span),
                Making::Blocks(mut nodes) if nodes.len() == 1 => nodes.remove(0),
                Making::Blocks(nodes) | Making::Items(nodes) => Node {
                    span: nodes[0].span,
                    value: NodeValue::Array(nodes),
                },
            };
            Entry {
                key: field.key,
                key_span: field.key_span,
                value,
            }
        });
        let value = NodeValue::Object(entries.collect());
        Node { span, value }
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

    /// Puts a value at a key that must be free; of two maps of names the entries must.
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
            }) if matches!(node.value, NodeValue::Object(_) | NodeValue::Unknown) => {
                let path = format!("{path}{key}.");
                match node.value {
                    NodeValue::Object(entries) => {
                        for entry in entries {
                            names.put(&path, entry.key, entry.key_span, entry.value, at);
                        }
                    }
                    _ => names.keep_place("", node.span),
                }
            }
            Some(first) => {
                at.twice(&format!("{path}{key}"), first.key_span, key_span);
                if let Making::Done(first) = &mut first.value {
                    first.may_have_more(node.span);
                }
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
            && node.value == NodeValue::Unknown
        {
            node.value = NodeValue::Object(vec![Entry::unknown(node.span)]);
        }
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
                keys: Keys::default(),
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

    /// Puts what isn't known at a key, if that is free.
    pub(super) fn keep_place(&mut self, key: &str, span: Span) {
        if self.place(key).is_none() {
            self.push(key.into(), span, Making::Done(Node::unknown(span)));
        }
    }

    /// Adds a block to those of its name.
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
            Some(first) => at.twice(&format!("{path}{key}"), first.key_span, key_span),
        }
    }

    /// Whether another object can be added: what both have is maps of names that can.
    pub(super) fn takes(&mut self, other: &Self) -> bool {
        other.fields.iter().all(|more| match self.field(&more.key) {
            None => true,
            Some(Field {
                value: Making::Names(_, names),
                ..
            }) => matches!(&more.value, Making::Names(_, more) if names.takes(more)),
            Some(_) => false,
        })
    }

    /// Adds one that it takes.
    pub(super) fn extend(&mut self, other: Self) {
        for more in other.fields {
            match (self.place(&more.key), more.value) {
                (Some(place), Making::Names(_, more)) => {
                    if let Making::Names(_, names) = &mut self.fields[place].value {
                        names.extend(*more);
                    }
                }
                (_, value) => self.push(more.key, more.key_span, value),
            }
        }
    }
}
