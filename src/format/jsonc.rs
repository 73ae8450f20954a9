//! JSON with comments, written.
//!
//! In: a [`Document`]. Out: its text: two spaces a level; what was on one line stays there, if it
//! fits. May not: change a value or drop a comment.

use super::WIDTH;
use super::document::{Comment, Container, Document, Item, Value, Wording};

/// Writes a document.
pub(super) fn write(document: &Document, wording: Wording) -> String {
    let mut writer = Writer {
        out: String::new(),
        wording,
    };
    writer.comments(&document.header, 0, true);
    if document.gap && !document.header.is_empty() {
        writer.out.push('\n');
    }
    writer.value(&document.root, 0, 0, false);
    writer.behind(&document.after);
    writer.out.push('\n');
    writer.comments(&document.footer, 0, false);
    writer.out
}

struct Writer {
    out: String,
    wording: Wording,
}

impl Writer {
    /// A value behind `used` columns of its line.
    fn value(&mut self, value: &Value, depth: usize, used: usize, comma: bool) {
        let (container, brackets) = match value {
            Value::List(list) => (list, ['[', ']']),
            Value::Object(object) => (object, ['{', '}']),
            scalar => {
                self.out.push_str(&scalar_text(scalar));
                return;
            }
        };
        if container.items.is_empty() && !container.has_comments() {
            self.out.extend(brackets);
            return;
        }
        let left = WIDTH.saturating_sub(used + usize::from(comma));
        if container.inline
            && !container.has_comments()
            && let Some(line) = self.on_one_line(value, left)
        {
            self.out.push_str(&line);
            return;
        }
        self.out.push(brackets[0]);
        self.behind(&container.open);
        self.out.push('\n');
        self.items(container, depth + 1);
        self.indent(depth);
        self.out.push(brackets[1]);
    }

    fn items(&mut self, container: &Container, depth: usize) {
        for (index, item) in container.items.iter().enumerate() {
            let is_last = index + 1 == container.items.len();
            let comma = !is_last || container.comma;
            self.comments(&item.before, depth, index == 0);
            if item.gap && (index > 0 || !item.before.is_empty()) {
                self.out.push('\n');
            }
            self.indent(depth);
            let key = self.key(item);
            self.out.push_str(&key);
            self.value(&item.value, depth, 2 * depth + width(&key), comma);
            if comma {
                self.out.push(',');
            }
            self.behind(&item.after);
            self.out.push('\n');
        }
        self.comments(&container.tail, depth, container.items.is_empty());
    }

    /// Comments on lines of their own.
    fn comments(&mut self, comments: &[Comment], depth: usize, is_first: bool) {
        for (index, comment) in comments.iter().enumerate() {
            if comment.gap && !(is_first && index == 0) {
                self.out.push('\n');
            }
            for (index, line) in comment.text.lines().enumerate() {
                let bare = line.trim_start();
                match index {
                    0 => self.indent(depth),
                    // A column of stars goes along with its comment.
                    _ if bare.starts_with('*') => {
                        self.indent(depth);
                        self.out.push(' ');
                    }
                    _ => {
                        self.out.push_str(line.trim_end());
                        self.out.push('\n');
                        continue;
                    }
                }
                self.out.push_str(bare.trim_end());
                self.out.push('\n');
            }
        }
    }

    /// Comments on the line of what was written last.
    fn behind(&mut self, comments: &[Comment]) {
        for comment in comments {
            self.out.push(' ');
            self.out.push_str(&comment.text);
        }
    }

    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n("  ", depth));
    }

    fn key(&self, item: &Item) -> String {
        match (item.key.as_deref(), self.wording) {
            (None, _) => String::new(),
            (Some(key), Wording::Meant) => format!("{}: ", quoted(key)),
            (Some(key), Wording::Written) => format!("{key}: "),
        }
    }

    /// A value without comments on one line, if it has no more columns than that.
    fn on_one_line(&self, value: &Value, most: usize) -> Option<String> {
        let mut line = String::new();
        self.append(value, most, &mut line);
        (width(&line) <= most).then_some(line)
    }

    /// Stops early where the line is too long anyway.
    fn append(&self, value: &Value, most: usize, line: &mut String) {
        let (container, brackets) = match value {
            Value::List(list) => (list, ['[', ']']),
            Value::Object(object) => (object, ['{', '}']),
            scalar => {
                line.push_str(&scalar_text(scalar));
                return;
            }
        };
        line.push(brackets[0]);
        for (index, item) in container.items.iter().enumerate() {
            // No character has more than four bytes.
            if line.len() > 4 * most {
                break;
            }
            if index > 0 {
                line.push_str(", ");
            }
            line.push_str(&self.key(item));
            self.append(&item.value, most, line);
        }
        line.push(brackets[1]);
    }
}

fn scalar_text(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => quoted(text),
        Value::Raw(text) => text.clone(),
        Value::Null | Value::List(_) | Value::Object(_) => "null".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("every text can be quoted")
}

/// Columns.
fn width(text: &str) -> usize {
    text.chars().count()
}
