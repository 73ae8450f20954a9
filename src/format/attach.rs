//! Which value each comment of a file belongs to.
//!
//! In: a tree of [`Node`]s and the text that it was read from (JSONC or YAML). Out: a
//! [`Document`]: a comment on the line of a value belongs to that value, any other to the key that
//! follows it, or to the end of its object where none follows. May not: lose a comment.

use std::ops::Range;
use std::sync::Arc;

use super::document::{Comment, Container, Document, Item, Value, Wording};
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::source::{Language, Span};

/// Joins a tree with the comments of its text.
pub(super) fn attach(root: &Node, text: &str, language: Language, wording: Wording) -> Document {
    let comments = match language {
        Language::Yaml => {
            let mut leaves = Vec::new();
            let mut end = 0;
            collect_leaves(root, &mut end, &mut leaves);
            yaml_comments(text, &leaves)
        }
        _ => jsonc_comments(text),
    };
    with_comments(root, text, language, wording, &comments)
}

/// The same where the comments are known, in order.
pub(super) fn with_comments(
    root: &Node,
    text: &str,
    language: Language,
    wording: Wording,
    comments: &[Range<usize>],
) -> Document {
    let mut walk = Walk {
        text,
        yaml: language == Language::Yaml,
        wording,
        comments,
        next: 0,
        at: 0,
    };
    let start = root.span.start as usize;
    let header = walk.before(start);
    let gap = walk.gap_before(start);
    let root_value = walk.value(root, 0, text.len());
    let after = walk.on_this_line(text.len(), true);
    let footer = walk.before(text.len());
    let mut document = Document {
        header,
        gap,
        root: root_value,
        after,
        footer,
    };
    if language != Language::Jsonc {
        part_header(&mut document);
    }
    document
}

/// Without brackets nothing tells a file's comment from its first key's but an empty line.
fn part_header(document: &mut Document) {
    if document.gap {
        return;
    }
    let Value::Object(root) = &mut document.root else {
        return;
    };
    let Some(first) = root.items.first_mut() else {
        return;
    };
    let own = document.header.iter().rposition(|comment| comment.gap);
    let own = own.unwrap_or(0);
    let mut before = document.header.split_off(own);
    if let Some(comment) = before.first_mut() {
        document.gap = std::mem::take(&mut comment.gap) && !document.header.is_empty();
    }
    before.append(&mut first.before);
    first.before = before;
}

struct Walk<'a> {
    text: &'a str,
    yaml: bool,
    wording: Wording,
    comments: &'a [Range<usize>],
    /// The first comment that has no place yet.
    next: usize,
    /// The end of what was passed last.
    at: usize,
}

impl Walk<'_> {
    /// Takes the comments up to `end`.
    fn before(&mut self, end: usize) -> Vec<Comment> {
        let mut taken = Vec::new();
        while let Some(comment) = self.peek(end) {
            taken.push(self.take(&comment));
        }
        taken
    }

    fn peek(&self, end: usize) -> Option<Range<usize>> {
        let comment = self.comments.get(self.next)?;
        (comment.start < end).then(|| comment.clone())
    }

    fn take(&mut self, comment: &Range<usize>) -> Comment {
        let gap = self.gap_before(comment.start);
        self.next += 1;
        self.at = self.at.max(comment.end);
        Comment {
            text: self.text[comment.clone()].trim_end().to_owned(),
            gap,
        }
    }

    /// Whether an empty line lies between what was passed last and `start`.
    fn gap_before(&self, start: usize) -> bool {
        let between = self.text.get(self.at..start).unwrap_or("");
        between.matches('\n').count() > 1
    }

    /// Takes the comments behind what was passed last, on the same line. One that something
    /// follows on that line, before `end`, belongs to what follows; unless nothing can.
    fn on_this_line(&mut self, end: usize, is_last: bool) -> Vec<Comment> {
        let mut taken = Vec::new();
        while let Some(comment) = self.peek(end) {
            let same = !self.text[self.at..comment.start].contains('\n');
            let ends = is_last || self.text[comment.end..end].contains('\n');
            if !same || !ends {
                break;
            }
            let comment = self.take(&comment);
            taken.push(comment);
        }
        taken
    }

    /// A value, whose comments end before `limit`; `column` is where its block may be written.
    fn value(&mut self, node: &Node, column: usize, limit: usize) -> Value {
        let range = node.span.start as usize..node.span.end as usize;
        if range.start < self.at {
            // An alias: what it stands for was passed, with its comments.
            return bare(node);
        }
        match &node.value {
            NodeValue::Array(items) => {
                let parts = items.iter().map(|item| (None, item));
                Value::List(self.container(&range, parts, column, limit))
            }
            NodeValue::Object(entries) => {
                let parts = entries.iter().map(|entry| (Some(entry), &entry.value));
                Value::Object(self.container(&range, parts, column, limit))
            }
            _ => {
                // A block of text ends with its line breaks.
                self.at = range.start + self.text[range.clone()].trim_end().len();
                if self.wording == Wording::Written {
                    Value::Raw(self.text[range].to_owned())
                } else {
                    bare(node)
                }
            }
        }
    }

    fn container<'n>(
        &mut self,
        range: &Range<usize>,
        parts: impl Iterator<Item = (Option<&'n Entry>, &'n Node)>,
        column: usize,
        limit: usize,
    ) -> Container {
        let is_flow = self.text[range.start..].starts_with(['[', '{']);
        let range = &if is_flow {
            range.start..self.flow_end(range)
        } else {
            range.clone()
        };
        let inline = is_flow && !self.text[range.clone()].contains('\n');
        let column = if is_flow {
            0
        } else {
            self.column(range.start).max(column)
        };
        let inner = if is_flow { range.end - 1 } else { limit };
        let parts: Vec<_> = parts.collect();
        let starts: Vec<usize> = parts
            .iter()
            .map(|(entry, node)| entry.map_or(node.span, |entry| entry.key_span).start as usize)
            .collect();
        let mut container = Container {
            inline,
            ..Container::default()
        };
        if is_flow {
            self.at = range.start + 1;
            let first = starts.first().copied().unwrap_or(inner);
            if !inline && !parts.is_empty() {
                container.open = self.on_this_line(first, false);
            }
        }
        for (index, (entry, node)) in parts.iter().enumerate() {
            let start = starts[index];
            // What an alias or `<<` brought has neither comments nor empty lines.
            let foreign = start < self.at;
            let following = starts[index + 1..]
                .iter()
                .find(|next| **next >= start.max(self.at));
            let end = following.copied().unwrap_or(inner);
            let mut item = Item {
                key: entry.map(|entry| self.key(entry)),
                ..Item::default()
            };
            if foreign {
                item.value = bare(node);
                container.items.push(item);
                continue;
            }
            item.before = self.before(start);
            item.gap = self.gap_before(start);
            if let Some(entry) = entry {
                self.at = entry.key_span.end as usize;
                let value = node.span.start as usize;
                if value >= self.at {
                    self.between(&mut item, node, value);
                }
            }
            if !matches!(node.value, NodeValue::Array(_) | NodeValue::Object(_)) {
                // Behind the mark of a block of text.
                let inside = self.before(node.span.end as usize);
                item.after.extend(inside);
            }
            let opened = std::mem::take(&mut item.after);
            item.value = self.value(node, column + 1, end);
            match &mut item.value {
                Value::List(inner) | Value::Object(inner) => inner.open.splice(0..0, opened),
                _ => item.after.splice(0..0, opened),
            };
            let is_last = is_flow && following.is_none();
            container.comma = is_last && self.follows(b',');
            item.after.extend(self.on_this_line(end, is_last));
            container.items.push(item);
        }
        if is_flow {
            container.tail = self.before(inner);
            self.at = range.end;
        } else {
            while let Some(comment) = self.peek(inner) {
                let own_line = self.text[self.at..comment.start].contains('\n');
                if !own_line || self.column(comment.start) < column {
                    break;
                }
                let comment = self.take(&comment);
                container.tail.push(comment);
            }
        }
        container
    }

    /// The comments between a key and its value, at `value`: those on the key's line go behind
    /// it, those above a block to its first item, any other above the key.
    fn between(&mut self, item: &mut Item, node: &Node, value: usize) {
        let is_block = self.yaml
            && matches!(node.value, NodeValue::Array(_) | NodeValue::Object(_))
            && !self.text[value..].starts_with(['[', '{']);
        if self.yaml {
            item.after = self.on_this_line(value, false);
        }
        if !is_block {
            item.before.extend(self.before(value));
        }
    }

    fn key(&self, entry: &Entry) -> Arc<str> {
        match self.wording {
            Wording::Meant => entry.key.clone(),
            Wording::Written => {
                let span = entry.key_span;
                self.text[span.start as usize..span.end as usize].into()
            }
        }
    }

    /// Behind the closing bracket: YAML's parser may count a comment behind it, too.
    fn flow_end(&self, range: &Range<usize>) -> usize {
        let mut end = range.end;
        while let Some(found) = self.text[range.start..end].rfind([']', '}']) {
            let at = range.start + found;
            let before = self.comments.partition_point(|comment| comment.start <= at);
            match before.checked_sub(1).map(|last| &self.comments[last]) {
                Some(comment) if comment.contains(&at) => end = comment.start,
                _ => return at + 1,
            }
        }
        range.end
    }

    /// Whether this follows what was passed last, comments aside.
    fn follows(&self, byte: u8) -> bool {
        let mut at = self.at;
        for comment in &self.comments[self.next..] {
            if !self.text[at..comment.start].trim().is_empty() {
                break;
            }
            at = comment.end;
        }
        self.text[at..].trim_start().as_bytes().first() == Some(&byte)
    }

    fn column(&self, at: usize) -> usize {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        at - line
    }
}

/// A value without comments.
fn bare(node: &Node) -> Value {
    let container = |items| Container {
        items,
        ..Container::default()
    };
    match &node.value {
        NodeValue::Null | NodeValue::Unknown => Value::Null,
        NodeValue::Bool(value) => Value::Bool(*value),
        NodeValue::Number(number) => Value::Number(number.clone()),
        NodeValue::String(text) => Value::Text(text.clone()),
        NodeValue::Array(items) => {
            let item = |node| Item {
                value: bare(node),
                ..Item::default()
            };
            Value::List(container(items.iter().map(item).collect()))
        }
        NodeValue::Object(entries) => {
            let item = |entry: &Entry| Item {
                key: Some(entry.key.clone()),
                value: bare(&entry.value),
                ..Item::default()
            };
            Value::Object(container(entries.iter().map(item).collect()))
        }
    }
}

pub(super) fn jsonc_comments(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut comments = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'"', _) => {
                at += 1;
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            (b'/', Some(b'/')) => {
                let end = line_end(text, at);
                comments.push(at..end);
                at = end;
            }
            (b'/', Some(b'*')) => {
                let end = text[at + 2..]
                    .find("*/")
                    .map_or(text.len(), |end| at + end + 4);
                comments.push(at..end);
                at = end;
            }
            _ => at += 1,
        }
    }
    comments
}

/// The scalars and keys of a YAML file, in order: no `#` in them starts a comment.
fn collect_leaves(node: &Node, end: &mut usize, leaves: &mut Vec<Range<usize>>) {
    match &node.value {
        NodeValue::Array(items) => {
            for item in items {
                collect_leaves(item, end, leaves);
            }
        }
        NodeValue::Object(entries) => {
            for entry in entries {
                leaf(entry.key_span, end, leaves);
                collect_leaves(&entry.value, end, leaves);
            }
        }
        _ => leaf(node.span, end, leaves),
    }
}

fn leaf(span: Span, end: &mut usize, leaves: &mut Vec<Range<usize>>) {
    let range = span.start as usize..span.end as usize;
    if range.start >= *end {
        *end = range.end;
        leaves.push(range);
    }
}

fn yaml_comments(text: &str, leaves: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut comments = Vec::new();
    let mut start = 0;
    for leaf in leaves.iter().chain([&(text.len()..text.len())]) {
        let is_block = text[leaf.clone()].starts_with(['|', '>']);
        scan(text, start..leaf.start, &mut comments);
        if is_block {
            // Behind the mark of a block of text may stand a comment.
            scan(
                text,
                leaf.start..line_end(text, leaf.start).min(leaf.end),
                &mut comments,
            );
        }
        start = start.max(leaf.end);
    }
    comments
}

fn scan(text: &str, gap: Range<usize>, comments: &mut Vec<Range<usize>>) {
    let mut at = gap.start;
    while at < gap.end {
        let Some(found) = text[at..gap.end].find('#') else {
            break;
        };
        let start = at + found;
        let starts = text[..start]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        at = start + 1;
        if starts {
            at = line_end(text, start);
            comments.push(start..at);
        }
    }
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..]
        .find(['\n', '\r'])
        .map_or(text.len(), |end| at + end)
}
