//! A configuration with its comments, whatever language it was written in.
//!
//! In: nothing (data only). Out: [`Document`]. May not: know how any language writes it.

use std::sync::Arc;

use serde_json::Number;

/// One file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Document {
    /// The comments above everything.
    pub(super) header: Vec<Comment>,
    /// Whether an empty line parts them from what follows.
    pub(super) gap: bool,
    /// What the file holds.
    pub(super) root: Value,
    /// On the line where the root ends.
    pub(super) after: Vec<Comment>,
    /// The comments below everything.
    pub(super) footer: Vec<Comment>,
}

/// How scalars and keys are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wording {
    /// By what they mean.
    Meant,
    /// As they are written.
    Written,
}

/// A comment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Comment {
    /// As it was written, marks included.
    pub(super) text: String,
    /// Whether an empty line stands before it.
    pub(super) gap: bool,
}

/// A value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Value {
    /// `null`
    #[default]
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(Arc<str>),
    /// Something that is written as it stands here.
    Raw(String),
    /// A list: its items have no keys.
    List(Container),
    /// An object: its items have keys.
    Object(Container),
}

/// A list or an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Container {
    /// On the line where it begins, before anything in it.
    pub(super) open: Vec<Comment>,
    /// What it holds.
    pub(super) items: Vec<Item>,
    /// Below the last item.
    pub(super) tail: Vec<Comment>,
    /// Whether it was written on one line.
    pub(super) inline: bool,
    /// Whether a comma stands behind the last item.
    pub(super) comma: bool,
}

/// An entry of an object, or an item of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Item {
    /// Above it.
    pub(super) before: Vec<Comment>,
    /// Whether an empty line stands right before it.
    pub(super) gap: bool,
    /// Its key, in an object.
    pub(super) key: Option<Arc<str>>,
    /// Its value.
    pub(super) value: Value,
    /// Behind it, on its line.
    pub(super) after: Vec<Comment>,
}

impl Comment {
    /// Its lines without marks.
    pub(super) fn lines(&self) -> Vec<String> {
        let text = self.text.trim();
        let Some(block) = text.strip_prefix("/*") else {
            let bare = text.strip_prefix("//").or_else(|| text.strip_prefix('#'));
            let bare = bare.unwrap_or(text);
            return vec![bare.strip_prefix(' ').unwrap_or(bare).trim_end().to_owned()];
        };
        let block = block.strip_suffix("*/").unwrap_or(block);
        let mut lines: Vec<String> = block
            .trim_start_matches('*')
            .lines()
            .map(|line| {
                let line = line.trim();
                let line = line.strip_prefix("* ").unwrap_or(line);
                if line == "*" {
                    String::new()
                } else {
                    line.to_owned()
                }
            })
            .collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        let empty = lines.iter().take_while(|line| line.is_empty()).count();
        lines.drain(..empty);
        lines
    }

    /// The same in a language whose comments start with `mark` and end with their line.
    pub(super) fn marked(&self, mark: &str) -> Vec<String> {
        let line = |line: String| match &*line {
            "" => mark.to_owned(),
            // `#!`, `##`: part of the mark.
            _ if line.starts_with(['!', '#', '/']) => format!("{mark}{line}"),
            _ => format!("{mark} {line}"),
        };
        self.lines().into_iter().map(line).collect()
    }
}

impl Container {
    /// Whether there is a comment anywhere in it.
    pub(super) fn has_comments(&self) -> bool {
        !self.open.is_empty()
            || !self.tail.is_empty()
            || self.items.iter().any(|item| {
                !item.before.is_empty() || !item.after.is_empty() || item.value.has_comments()
            })
    }
}

impl Value {
    /// Whether there is a comment anywhere in it.
    pub(super) fn has_comments(&self) -> bool {
        match self {
            Self::List(inner) | Self::Object(inner) => inner.has_comments(),
            _ => false,
        }
    }

    /// The same without comments and layout.
    pub(super) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Number(number) => Json::Number(number.clone()),
            Self::Text(text) => Json::String(text.to_string()),
            Self::Raw(text) => Json::String(text.clone()),
            Self::List(list) => list.items.iter().map(|item| item.value.to_json()).collect(),
            Self::Object(object) => object
                .items
                .iter()
                .map(|item| {
                    let key = item.key.as_deref().unwrap_or_default();
                    (key.to_owned(), item.value.to_json())
                })
                .collect(),
        }
    }
}
