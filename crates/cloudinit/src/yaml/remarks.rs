//! What a reader of YAML 1.1 makes of a text that its writer may not expect.
//!
//! In: a text that can be read. Out: keys that are there twice, keys that are no text, and each
//! scalar without quotes that isn't text, as written and as read. May not: judge: whether something
//! else was meant is for who knows what belongs there.

use std::collections::HashMap;

use super::compose::{Content, Document, NodeId, compose};
use super::construct::Constructor;
use super::tag::Tag;
use crate::value::{Data, Key, Value};

/// How many entries are looked at.
const MOST_ENTRIES: usize = 200_000;

/// A scalar without quotes that isn't text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// What is written.
    pub text: String,
    /// What is read, such as `the integer 420`.
    pub read: String,
}

/// Something odd that is read all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// A mapping has a key twice: the later one wins.
    SameKey {
        /// The key.
        key: String,
        /// The line of the later one, from 1.
        line: u32,
        /// Its column, from 1.
        column: u32,
        /// The line of the earlier one.
        first: u32,
    },
    /// A key that is written like a word and read as something else.
    OddKey {
        /// What is written.
        text: String,
        /// What is read.
        read: String,
        /// Its line, from 1.
        line: u32,
        /// Its column, from 1.
        column: u32,
    },
}

/// What there is to say of a text.
#[derive(Debug, Clone, Default)]
pub struct Remarks {
    /// In the order of the text.
    pub remarks: Vec<Remark>,
    plain: HashMap<(u32, u32), Plain>,
}

impl Remarks {
    /// The scalar at a line and column, if it has no quotes and is no text.
    pub fn plain(&self, line: u32, column: u32) -> Option<&Plain> {
        self.plain.get(&(line, column))
    }
}

/// What there is to say of a text; nothing, where it can't be read.
pub fn remarks(text: &str) -> Remarks {
    let mut remarks = Remarks::default();
    if let Ok(Some(document)) = compose(text) {
        for id in 0..document.nodes.len() {
            remarks.node(&document, id, text);
        }
    }
    remarks
}

impl Remarks {
    fn node(&mut self, document: &Document, id: NodeId, text: &str) {
        let node = &document.nodes[id];
        match &node.content {
            Content::Scalar(_) => {
                if let Some(plain) = plain(document, id, text) {
                    self.plain.insert(place(document, id), plain);
                }
            }
            Content::Mapping(entries) => {
                let mut first: HashMap<Key, u32> = HashMap::new();
                for (key, _) in entries.iter().take(MOST_ENTRIES) {
                    self.key(document, *key, text, &mut first);
                }
            }
            Content::Sequence(_) => {}
        }
    }

    fn key(&mut self, document: &Document, id: NodeId, text: &str, first: &mut HashMap<Key, u32>) {
        let node = &document.nodes[id];
        let Content::Scalar(scalar) = &node.content else {
            return;
        };
        if node.tag == Tag::Merge {
            return;
        }
        let (line, column) = place(document, id);
        if let Some(plain) = plain(document, id, text) {
            let is_number = plain.text == plain.read.trim_start_matches("the integer ");
            if !is_number {
                self.remarks.push(Remark::OddKey {
                    text: plain.text,
                    read: plain.read,
                    line,
                    column,
                });
            }
        }
        let value = Constructor::new(document, 0).value(id).ok();
        let Some(key) = value.and_then(|value| value.key()) else {
            return;
        };
        if let Some(earlier) = first.insert(key, line) {
            self.remarks.push(Remark::SameKey {
                key: scalar.to_string(),
                line,
                column,
                first: earlier,
            });
        }
    }
}

fn place(document: &Document, id: NodeId) -> (u32, u32) {
    let mark = document.nodes[id].mark;
    (mark.line as u32 + 1, mark.column as u32 + 1)
}

fn plain(document: &Document, id: NodeId, text: &str) -> Option<Plain> {
    let node = &document.nodes[id];
    let Content::Scalar(scalar) = &node.content else {
        return None;
    };
    let written = scalar.as_str().filter(|written| !written.is_empty())?;
    let is_there = text
        .get(node.mark.byte..)
        .is_some_and(|rest| rest.starts_with(written));
    if !is_there || matches!(node.tag, Tag::Str | Tag::Null) {
        return None;
    }
    let value = Constructor::new(document, 0).value(id).ok()?;
    let read = read_as(&value)?;
    Some(Plain {
        text: written.to_owned(),
        read,
    })
}

/// What was read, in words; `None` for text.
fn read_as(value: &Value) -> Option<String> {
    Some(match &value.data {
        Data::Bool(value) => format!("the boolean {value}"),
        Data::Int(value) => format!("the integer {value}"),
        Data::Float(value) => format!("the number {value:?}"),
        Data::Time(time) if time.is_date => format!("the date {}", time.text),
        Data::Time(time) => format!("the time {}", time.text),
        _ => return None,
    })
}
