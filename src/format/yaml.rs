//! YAML, written.
//!
//! In: a [`Document`] whose comments are marked with `#`. Out: its text: two spaces a level, texts
//! of several lines in blocks after `|`, quotes where YAML 1.1 or 1.2 would read something else.
//! May not: change a value or drop a comment.

use super::WIDTH;
use super::document::{Comment, Container, Document, Item, Value};
use crate::config::node::NodeValue;
use crate::config::source::SourceId;
use crate::config::yaml;
use crate::diagnostic::Diagnostics;

/// Writes a document.
pub(super) fn write(document: &Document) -> String {
    let mut writer = Writer { out: String::new() };
    writer.comments(&document.header, 0, true);
    // What follows directly would be the first key's.
    if !document.header.is_empty() {
        writer.out.push('\n');
    }
    match &document.root {
        Value::Object(root) if is_block(root, 0) => writer.entries(root, 0),
        Value::List(root) if is_block(root, 0) => writer.items(root, 0),
        other => {
            writer.out.push_str(&flow(other));
            writer.out.push('\n');
            if let Value::List(root) | Value::Object(root) = other {
                writer.comments(&root.tail, 0, false);
            }
        }
    }
    writer.comments(&document.footer, 0, false);
    writer.out
}

struct Writer {
    out: String,
}

/// Whether a container is written in lines, behind `used` columns.
fn is_block(container: &Container, used: usize) -> bool {
    if container.items.is_empty() {
        return false;
    }
    let fits = || {
        let (list, object) = (
            Value::List(container.clone()),
            Value::Object(container.clone()),
        );
        let keyed = container
            .items
            .first()
            .is_some_and(|item| item.key.is_some());
        used + flow(if keyed { &object } else { &list }).chars().count() <= WIDTH
    };
    !container.inline || container.has_comments() || !fits()
}

impl Writer {
    fn entries(&mut self, container: &Container, depth: usize) {
        for (index, item) in container.items.iter().enumerate() {
            self.above(item, depth, index == 0);
            self.indent(depth);
            self.entry(item, depth);
        }
        self.comments(&container.tail, depth, false);
    }

    /// A key and its value, behind the indentation.
    fn entry(&mut self, item: &Item, depth: usize) {
        let key = scalar(item.key.as_deref().unwrap_or_default(), Place::Key);
        self.out.push_str(&key);
        self.out.push(':');
        let used = 2 * depth + key.chars().count() + 2;
        match &item.value {
            Value::Object(inner) if is_block(inner, used) => {
                self.behind(&inner.open);
                self.end_line(&item.after);
                self.entries(inner, depth + 1);
            }
            Value::List(inner) if is_block(inner, used) => {
                self.behind(&inner.open);
                self.end_line(&item.after);
                self.items(inner, depth + 1);
            }
            value => {
                self.out.push(' ');
                self.value(value, depth, &item.after);
            }
        }
    }

    fn items(&mut self, container: &Container, depth: usize) {
        for (index, item) in container.items.iter().enumerate() {
            self.above(item, depth, index == 0);
            match &item.value {
                Value::Object(inner) if is_block(inner, 2 * depth + 2) => {
                    // The first key stands behind the dash, its comments above it.
                    self.comments(&inner.open, depth, false);
                    self.comments(&inner.items[0].before, depth, false);
                    self.indent(depth);
                    self.out.push_str("- ");
                    self.entry(&inner.items[0], depth + 1);
                    for (index, entry) in inner.items.iter().enumerate().skip(1) {
                        self.above(entry, depth + 1, index == 0);
                        self.indent(depth + 1);
                        self.entry(entry, depth + 1);
                    }
                    self.comments(&inner.tail, depth + 1, false);
                    self.comments(&item.after, depth + 1, false);
                }
                Value::List(inner) if is_block(inner, 2 * depth + 2) => {
                    self.indent(depth);
                    self.out.push('-');
                    self.behind(&inner.open);
                    self.end_line(&item.after);
                    self.items(inner, depth + 1);
                }
                value => {
                    self.indent(depth);
                    self.out.push_str("- ");
                    self.value(value, depth, &item.after);
                }
            }
        }
        self.comments(&container.tail, depth, false);
    }

    /// What isn't written in lines of its own, and the end of its line.
    fn value(&mut self, value: &Value, depth: usize, after: &[Comment]) {
        if let Value::Text(text) = value
            && let Some((header, lines)) = block_of_text(text)
        {
            self.out.push_str(&header);
            self.end_line(after);
            for line in lines {
                if !line.is_empty() {
                    self.indent(depth + 1);
                    self.out.push_str(line);
                }
                self.out.push('\n');
            }
            return;
        }
        self.out.push_str(&match value {
            Value::Text(text) => scalar(text, Place::Block),
            other => flow(other),
        });
        self.end_line(after);
        if let Value::List(inner) | Value::Object(inner) = value {
            self.comments(&inner.open, depth + 1, false);
            self.comments(&inner.tail, depth + 1, false);
        }
    }

    fn above(&mut self, item: &Item, depth: usize, is_first: bool) {
        self.comments(&item.before, depth, is_first);
        if item.gap && (!is_first || !item.before.is_empty()) {
            self.out.push('\n');
        }
    }

    fn comments(&mut self, comments: &[Comment], depth: usize, is_first: bool) {
        for (index, comment) in comments.iter().enumerate() {
            if comment.gap && !(is_first && index == 0) {
                self.out.push('\n');
            }
            self.indent(depth);
            self.out.push_str(&comment.text);
            self.out.push('\n');
        }
    }

    fn behind(&mut self, comments: &[Comment]) {
        for comment in comments {
            self.out.push(' ');
            self.out.push_str(&comment.text);
        }
    }

    fn end_line(&mut self, comments: &[Comment]) {
        self.behind(comments);
        self.out.push('\n');
    }

    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n("  ", depth));
    }
}

/// A value on one line.
fn flow(value: &Value) -> String {
    let keyed = |item: &Item| {
        let key = item.key.as_deref().unwrap_or_default();
        format!("{}: {}", scalar(key, Place::Flow), flow(&item.value))
    };
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => scalar(text, Place::Flow),
        Value::Raw(text) => text.clone(),
        Value::List(list) => {
            let items: Vec<String> = list.items.iter().map(|item| flow(&item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(object) => {
            let items: Vec<String> = object.items.iter().map(keyed).collect();
            format!("{{{}}}", items.join(", "))
        }
    }
}

/// Where a scalar stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    Block,
    Flow,
}

/// A text on one line, in quotes if it needs some.
fn scalar(text: &str, place: Place) -> String {
    if is_plain(text, place) {
        return text.to_owned();
    }
    let printable = !text.chars().any(|c| c.is_control() || is_odd(c));
    if printable && text.contains(['"', '\\']) && !text.contains('\'') {
        return format!("'{text}'");
    }
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || is_odd(c) => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Line breaks and marks that nobody sees.
fn is_odd(character: char) -> bool {
    matches!(
        character,
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

/// Whether a text means itself without quotes, to YAML 1.1 too.
fn is_plain(text: &str, place: Place) -> bool {
    let starts = |c: char| c.is_alphabetic() || matches!(c, '/' | '_' | '$') || c.is_ascii_digit();
    let is_part = |c: char| {
        c.is_alphanumeric()
            || matches!(
                c,
                '/' | '_' | '$' | '.' | '-' | '+' | '@' | '(' | ')' | '=' | '~' | ';' | ' '
            )
            || c == ':' && place == Place::Block
            || matches!(c, ',' | '<' | '>' | '|' | '*' | '?' | '!' | '&' | '\'')
                && place == Place::Block
    };
    text.starts_with(starts)
        && text.chars().all(is_part)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && yaml::is_plain_text(text)
}

/// The header and the lines of a text of several lines, if a block can hold it.
fn block_of_text(text: &str) -> Option<(String, Vec<&str>)> {
    let allowed = |c: char| c == '\n' || c == '\t' || !(c.is_control() || is_odd(c));
    if !text.contains('\n') || !text.chars().all(allowed) {
        return None;
    }
    let body = text.trim_end_matches('\n');
    let first = body.lines().find(|line| !line.trim().is_empty())?;
    let blank = |line: &str| !line.is_empty() && line.trim_matches(' ').is_empty();
    // Lines of spaces are easily lost by who edits them.
    if body.lines().any(blank) {
        return None;
    }
    let indented = if first.starts_with(' ') { "2" } else { "" };
    let chomp = match text.len() - body.len() {
        0 => "-",
        1 => "",
        // It would keep the empty lines behind it, too.
        _ => return None,
    };
    let mut lines: Vec<&str> = text.split('\n').collect();
    if text.ends_with('\n') {
        lines.pop();
    }
    let header = format!("|{indented}{chomp}");
    // The reader has the last word.
    let written = lines
        .iter()
        .fold(format!("k: {header}\n"), |mut written, line| {
            if !line.is_empty() {
                written.push_str("  ");
                written.push_str(line);
            }
            written.push('\n');
            written
        });
    let read = yaml::read(SourceId(0), &written, &mut Diagnostics::default())?;
    let same = matches!(read.get("k").map(|node| &node.value), Some(NodeValue::String(found)) if **found == *text);
    same.then_some((header, lines))
}
