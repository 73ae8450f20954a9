//! The lines inside a block.
//!
//! In: names, signs and values. Out: lines, indented and aligned as in Terraform. Must not: know
//! changes.

use serde_json::Value;

use super::paint::{Sign, Style};
use super::value::{self, Line};

/// The columns before an attribute's sign.
const INDENT: usize = 6;

/// The columns added by each nesting level.
const STEP: usize = 4;

/// An attribute of a block.
#[derive(Debug)]
pub(in crate::report) struct Entry {
    pub(in crate::report) sign: Sign,
    pub(in crate::report) name: String,
    pub(in crate::report) body: Body,
    note: Option<Note>,
    /// Whether it is a list item: without a name, with a trailing comma.
    item: bool,
}

/// A comment after a value.
#[derive(Debug)]
struct Note {
    text: String,
    grave: bool,
}

/// What stands for an entry's value.
#[derive(Debug)]
pub(in crate::report) enum Body {
    /// `name = text`
    Line(String),
    /// `name = <<-EOT`, lines, `EOT`; or brackets around the lines
    Text(Vec<Line>, &'static str, &'static str),
    /// `name = {`, entries, `}`
    Object(Vec<Entry>),
    /// `name = [`, items, `]`
    List(Vec<Entry>),
    /// A comment of its own.
    Comment,
}

impl Entry {
    /// The entry `name = text`.
    pub(super) fn line(sign: Sign, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(sign, name.into(), Body::Line(text.into()))
    }

    /// A text over several lines.
    pub(super) fn text(sign: Sign, name: impl Into<String>, lines: Vec<Line>) -> Self {
        Self::new(sign, name.into(), Body::Text(lines, "<<-EOT", "EOT"))
    }

    /// The parts of a list or an object, between its brackets.
    pub(super) fn parts(
        sign: Sign,
        name: impl Into<String>,
        lines: Vec<Line>,
        [open, close]: [&'static str; 2],
    ) -> Self {
        Self::new(sign, name.into(), Body::Text(lines, open, close))
    }

    /// Entries in braces.
    pub(super) fn object(sign: Sign, name: impl Into<String>, entries: Vec<Self>) -> Self {
        Self::new(sign, name.into(), Body::Object(entries))
    }

    /// A comment line.
    pub(super) fn comment(text: impl Into<String>) -> Self {
        Self::new(Sign::Note, text.into(), Body::Comment)
    }

    fn new(sign: Sign, name: String, body: Body) -> Self {
        Self {
            sign,
            name,
            body,
            note: None,
            item: false,
        }
    }

    /// A JSON value: on one line if it fits, otherwise expanded.
    pub(super) fn value(
        sign: Sign,
        name: &str,
        value: &Value,
        depth: usize,
        limit: usize,
        style: Style<'_>,
    ) -> Self {
        let room = room(style, depth, name);
        let inline = value::inline(value);
        let fits = inline.chars().count() <= room;
        match value {
            Value::String(text) if text.contains('\n') => {
                Self::text(sign, name, value::text_lines(text, limit))
            }
            Value::Object(entries) if !fits || depth == 0 && !entries.is_empty() => {
                let entries = entries.iter().map(|(key, value)| {
                    Self::value(sign, &value::key_text(key), value, depth + 1, limit, style)
                });
                Self::object(sign, name, entries.collect())
            }
            Value::Array(items) if !fits && !items.is_empty() => {
                let items = items.iter().map(|item| Self {
                    item: true,
                    ..Self::value(sign, "", item, depth + 1, limit, style)
                });
                Self::new(sign, name.to_owned(), Body::List(items.collect()))
            }
            _ if fits => Self::line(sign, name, inline),
            _ => Self::line(sign, name, value::short(value, room)),
        }
    }

    /// Adds a comment after the value; a `grave` one is colored.
    #[must_use]
    pub(super) fn noted(mut self, text: impl Into<String>, grave: bool) -> Self {
        self.note = Some(Note {
            text: text.into(),
            grave,
        });
        self
    }

    fn is_line(&self) -> bool {
        matches!(self.body, Body::Line(_))
    }
}

/// The columns left for a value.
pub(super) fn room(style: Style<'_>, depth: usize, name: &str) -> usize {
    let taken = INDENT + STEP * depth + 2 + name.chars().count() + 3;
    style.columns().saturating_sub(taken).max(24)
}

/// Writes entries at a depth; aligns the equals signs of consecutive single-line entries.
pub(in crate::report) fn write(
    entries: &[Entry],
    depth: usize,
    style: Style<'_>,
    lines: &mut Vec<String>,
) {
    let widest = |entries: &[Entry]| {
        entries
            .iter()
            .map(|entry| entry.name.chars().count())
            .max()
            .unwrap_or(0)
    };
    for run in entries.chunk_by(|a, b| a.is_line() == b.is_line()) {
        let width = if run.first().is_some_and(Entry::is_line) {
            widest(run)
        } else {
            0
        };
        for entry in run {
            entry.write(width, depth, style, lines);
        }
    }
}

impl Entry {
    fn write(&self, width: usize, depth: usize, style: Style<'_>, lines: &mut Vec<String>) {
        let columns = INDENT + STEP * depth;
        let indent = " ".repeat(columns);
        let row = |text: String| style.row(columns, self.sign, &text);
        let note = self.note.as_ref().map_or_else(String::new, |note| {
            let text = format!("# {}", note.text);
            format!(
                " {}",
                if note.grave {
                    style.danger(&text)
                } else {
                    style.faint(&text)
                }
            )
        });
        let lead = if self.item {
            String::new()
        } else {
            format!("{:<width$} = ", self.name)
        };
        let comma = if self.item { "," } else { "" };
        match &self.body {
            Body::Line(text) => lines.push(row(format!("{lead}{text}{comma}{note}"))),
            Body::Text(text, open, close) => {
                lines.push(row(format!("{lead}{open}{note}")));
                let text = text.iter();
                lines.extend(text.map(|it| style.text_row(columns + STEP, it.sign, &it.text)));
                lines.push(format!("{indent}  {close}{comma}"));
            }
            Body::Object(entries) => {
                lines.push(row(format!("{lead}{{{note}")));
                write(entries, depth + 1, style, lines);
                lines.push(format!("{indent}  }}{comma}"));
            }
            Body::List(items) => {
                lines.push(row(format!("{lead}[{note}")));
                write(items, depth + 1, style, lines);
                lines.push(format!("{indent}  ]{comma}"));
            }
            Body::Comment => lines.push(format!("{indent}  {}", style.faint(&self.name))),
        }
    }
}
