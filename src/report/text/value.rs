//! Shows values: on one line, as a text, or as a line diff.
//!
//! In: JSON values and texts. Out: pieces of lines, without color or indentation. Must not: know
//! where a value belongs.

use std::time::Duration;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::paint::Sign;
use crate::diagnostic::counted;
use crate::sensitivity::HIDDEN;

/// The number of context lines around a difference.
const CONTEXT: usize = 3;

/// A line of a text or a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::report) struct Line {
    /// Whether it is added or removed.
    pub(in crate::report) sign: Sign,
    /// Its text.
    pub(in crate::report) text: String,
}

impl Line {
    fn note(text: String) -> Self {
        Self {
            sign: Sign::Note,
            text,
        }
    }
}

/// A value on one line, in HCL's syntax.
pub(in crate::report) fn inline(value: &Value) -> String {
    let mut text = String::new();
    write_inline(value, &mut text);
    text
}

fn write_inline(value: &Value, text: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
        Value::String(content) => text.push_str(&quoted(content)),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                write_inline(item, text);
            }
            text.push(']');
        }
        Value::Object(entries) => {
            text.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { " " });
                text.push_str(&key_text(key));
                text.push_str(" = ");
                write_inline(value, text);
            }
            text.push_str(if entries.is_empty() { "}" } else { " }" });
        }
    }
}

/// A quoted text, with characters escaped that could move the cursor. A mask is shown without
/// quotes.
pub(super) fn quoted(text: &str) -> String {
    if text == HIDDEN {
        return HIDDEN.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if misleads(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether a character moves the cursor or changes the direction of text, which could misrepresent
/// the plan.
pub(in crate::report) fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A key of an object; quoted only if HCL requires it.
pub(in crate::report) fn key_text(key: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(plain) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// A line of a text; tabs remain, other control characters are made visible.
pub(in crate::report) fn visible(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if misleads(c) && c != '\t' {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// A text cut to `room` characters.
pub(in crate::report) fn cut(text: &str, room: usize) -> String {
    if text.chars().nth(room).is_none() {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(room.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// A value on one line with about `room` characters at most.
pub(super) fn short(value: &Value, room: usize) -> String {
    let whole = inline(value);
    let length = whole.chars().count();
    if length <= room {
        return whole;
    }
    match value {
        Value::String(text) => {
            let note = format!(" ({} characters)", text.chars().count());
            let kept = cut(&whole, room.saturating_sub(note.len() + 1).max(8));
            format!("{kept}\"{note}")
        }
        _ => cut(&whole, room),
    }
}

/// Two long single-line texts, each cut to `room` characters around the first difference.
pub(in crate::report) fn around_difference(
    before: &str,
    after: &str,
    room: usize,
) -> (String, String) {
    let same = before
        .chars()
        .zip(after.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let longest = before.chars().count().max(after.chars().count());
    let start = same
        .saturating_sub(room / 3)
        .min(longest.saturating_sub(room));
    let part = |text: &str| {
        let rest: String = text.chars().skip(start).take(room).collect();
        let tail = text.chars().count() > start + room;
        let rest = quoted(&rest);
        let rest = rest.trim_matches('"');
        format!(
            "\"{}{rest}{}\"",
            if start > 0 { "…" } else { "" },
            if tail { "…" } else { "" }
        )
    };
    (part(before), part(after))
}

/// The parts of a list or an object, one per line, and its brackets; `None` for other values.
pub(in crate::report) fn parts(value: &Value) -> Option<(String, [&'static str; 2])> {
    let mut text = String::new();
    match value {
        Value::Array(items) => {
            for item in items {
                write_inline(item, &mut text);
                text.push_str(",\n");
            }
            Some((text, ["[", "]"]))
        }
        Value::Object(entries) => {
            for (key, value) in entries {
                text.push_str(&key_text(key));
                text.push_str(" = ");
                write_inline(value, &mut text);
                text.push('\n');
            }
            Some((text, ["{", "}"]))
        }
        _ => None,
    }
}

/// The first `limit` lines of a text, and the number of further ones.
pub(in crate::report) fn text_lines(text: &str, limit: usize) -> Vec<Line> {
    let count = text.lines().count();
    // The note would take as much room as the last line.
    let shown = if count <= limit + 1 { count } else { limit };
    let mut lines: Vec<_> = text
        .lines()
        .take(shown)
        .map(|line| Line {
            sign: Sign::None,
            text: visible(line),
        })
        .collect();
    if count > shown {
        lines.push(Line::note(format!(
            "({})",
            counted(count - shown, "more line")
        )));
    }
    lines
}

/// The line diff of two texts, in about `limit` lines.
pub(in crate::report) fn line_diff(before: &str, after: &str, limit: usize) -> Vec<Line> {
    diff_of("line", before, after, limit)
}

/// The diff of the [`parts`] of two values.
pub(in crate::report) fn parts_diff(before: &str, after: &str, limit: usize) -> Vec<Line> {
    diff_of("element", before, after, limit)
}

fn diff_of(unit: &str, before: &str, after: &str, limit: usize) -> Vec<Line> {
    let diff = TextDiff::from_lines(before, after);
    let feeds_differ = before.ends_with('\n') != after.ends_with('\n');
    let mut lines = Vec::new();
    let mut seen = 0;
    for group in diff.grouped_ops(CONTEXT) {
        let start = group.first().map_or(0, |op| op.old_range().start);
        hidden(start - seen, unit, &mut lines);
        for op in &group {
            for change in diff.iter_changes(op) {
                let mut text = visible(change.value().trim_end_matches(['\n', '\r']));
                if feeds_differ && change.missing_newline() {
                    text.push_str(" (no line feed at the end)");
                }
                let sign = match change.tag() {
                    ChangeTag::Equal => Sign::None,
                    ChangeTag::Delete => Sign::Delete,
                    ChangeTag::Insert => Sign::Create,
                };
                lines.push(Line { sign, text });
            }
        }
        seen = group.last().map_or(seen, |op| op.old_range().end);
    }
    hidden(diff.old_len() - seen, unit, &mut lines);
    if lines.len() > limit + 1 {
        let more = lines.len() - limit;
        lines.truncate(limit);
        lines.push(Line::note(format!("({})", counted(more, "more line"))));
    }
    lines
}

fn hidden(count: usize, unit: &str, lines: &mut Vec<Line>) {
    if count > 0 {
        lines.push(Line::note(format!(
            "# ({} hidden)",
            counted(count, &format!("unchanged {unit}"))
        )));
    }
}

/// A duration in its largest unit.
pub fn age(duration: Duration) -> String {
    let seconds = duration.as_secs() as usize;
    match seconds {
        0..60 => counted(seconds, "second"),
        60..3_600 => counted(seconds / 60, "minute"),
        3_600..172_800 => counted(seconds / 3_600, "hour"),
        _ => counted(seconds / 86_400, "day"),
    }
}

/// `a, b and 3 more`
pub(in crate::report) fn listed<T: AsRef<str>>(items: &[T], limit: usize) -> String {
    let shown: Vec<&str> = items.iter().take(limit).map(AsRef::as_ref).collect();
    match items.len().saturating_sub(limit) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_read_like_hcl() {
        for (value, expected) in [
            (json!(null), "null"),
            (json!("a\"\u{1b}[2J\n"), r#""a\"\u{1b}[2J\n""#),
            (json!("\u{202e}tac"), r#""\u{202e}tac""#),
            (json!([1, "b", true]), r#"[1, "b", true]"#),
            (json!({"a": 1, "b c": {}}), r#"{ a = 1, "b c" = {} }"#),
        ] {
            assert_eq!(inline(&value), expected);
        }
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!(
            short(&json!("x".repeat(100)), 30),
            r#""xxxxxxxxxx…" (100 characters)"#
        );
        assert_eq!(short(&json!("short"), 30), r#""short""#);
        let (before, after) = (
            format!("{}1", "y".repeat(50)),
            format!("{}2", "y".repeat(50)),
        );
        assert_eq!(
            around_difference(&before, &after, 9),
            (
                format!("\"…{}1\"", "y".repeat(8)),
                format!("\"…{}2\"", "y".repeat(8))
            )
        );
    }

    #[test]
    fn a_diff_shows_three_lines_around() {
        let before = (0..20)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join("\n");
        let after = before.replace("10\n", "ten\n");
        let shown: Vec<_> = line_diff(&before, &after, 40)
            .into_iter()
            .map(|line| line.text)
            .collect();
        assert_eq!(
            shown,
            [
                "# (7 unchanged lines hidden)",
                "7",
                "8",
                "9",
                "10",
                "ten",
                "11",
                "12",
                "13",
                "# (6 unchanged lines hidden)"
            ]
        );
        assert_eq!(line_diff(&before, "", 5).len(), 6);
        let feed: Vec<_> = line_diff("a\n", "a", 5)
            .into_iter()
            .map(|line| line.text)
            .collect();
        assert_eq!(feed, ["a", "a (no line feed at the end)"]);
    }

    #[test]
    fn ages_have_one_unit() {
        for (seconds, expected) in [
            (1, "1 second"),
            (3_599, "59 minutes"),
            (90_000, "25 hours"),
            (200_000, "2 days"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), expected);
        }
    }
}
