//! Shows a whole instance.
//!
//! In: an instance as JSON. Out: an indented block, with long texts behind a margin. Must not:
//! shorten anything.

use serde_json::{Map, Value};

use super::attribute::BY_SERVER;
use super::paint::Style;
use super::value::{inline, key_text, quoted, visible};

const STEP: usize = 4;

/// The text of `nstance show ADDR` and `nstance render ADDR`.
pub fn instance(value: &Value, style: Style<'_>) -> String {
    let mut lines = Vec::new();
    let empty = Map::new();
    let entries = value.as_object().unwrap_or(&empty);
    if let Some(address) = entries.get("address").and_then(Value::as_str) {
        lines.push(style.bold(&format!("# {}:", style.address(visible(address)))));
    }
    lines.push("instance {".to_owned());
    let shown: Vec<(&str, Value)> = entries
        .iter()
        .filter(|(key, _)| *key != "address")
        .map(|(key, value)| {
            (
                &**key,
                if key == "files" {
                    described(value)
                } else {
                    value.clone()
                },
            )
        })
        .collect();
    write_entries(
        shown.iter().map(|(key, value)| (*key, value)),
        STEP,
        style,
        &mut lines,
    );
    lines.push("}".to_owned());
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// Files; those of the server without the source in place of their content.
fn described(files: &Value) -> Value {
    let mut files = files.clone();
    for file in files.as_object_mut().into_iter().flat_map(Map::values_mut) {
        let kind = file.get("kind").and_then(Value::as_str).unwrap_or_default();
        if matches!(kind, "secret" | "storage" | "certificate") {
            file["content"] = Value::from(BY_SERVER.trim_matches(['(', ')']));
        }
    }
    files
}

/// Whether a value is empty.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    }
}

fn is_line(value: &Value, room: usize) -> bool {
    match value {
        Value::String(text) => !text.contains('\n'),
        Value::Object(_) => false,
        Value::Array(_) => inline(value).chars().count() <= room,
        _ => true,
    }
}

fn write_entries<'a>(
    entries: impl Iterator<Item = (&'a str, &'a Value)>,
    indent: usize,
    style: Style<'_>,
    lines: &mut Vec<String>,
) {
    let entries: Vec<(String, &Value)> = entries
        .filter(|(_, value)| !is_blank(value))
        .map(|(key, value)| (key_text(key), value))
        .collect();
    let room = |key: &str| {
        style
            .columns()
            .saturating_sub(indent + key.chars().count() + 3)
    };
    let short = |(key, value): &(String, &Value)| is_line(value, room(key));
    for run in entries.chunk_by(|a, b| short(a) == short(b)) {
        let width = if run.first().is_some_and(short) {
            run.iter()
                .map(|(key, _)| key.chars().count())
                .max()
                .unwrap_or(0)
        } else {
            0
        };
        for (key, value) in run {
            write_entry(
                &format!("{key:<width$} = "),
                value,
                indent,
                room(key),
                style,
                lines,
            );
        }
    }
}

/// Writes a value after `lead`, which is `name = ` or empty.
fn write_entry(
    lead: &str,
    value: &Value,
    indent: usize,
    room: usize,
    style: Style<'_>,
    lines: &mut Vec<String>,
) {
    let space = " ".repeat(indent);
    match value {
        Value::String(text) if text.contains('\n') => {
            let margin = style.faint("│");
            lines.push(format!("{space}{lead}<<-EOT"));
            lines.extend(text.lines().map(|line| {
                format!("{space}{margin} {}", visible(line))
                    .trim_end()
                    .to_owned()
            }));
            lines.push(format!("{space}EOT"));
        }
        Value::String(text) => lines.push(format!("{space}{lead}{}", quoted(text))),
        Value::Object(entries) => {
            lines.push(format!("{space}{lead}{{"));
            let entries = entries.iter().map(|(key, value)| (&**key, value));
            write_entries(entries, indent + STEP, style, lines);
            lines.push(format!("{space}}}"));
        }
        Value::Array(items) if !is_line(value, room) => {
            lines.push(format!("{space}{lead}["));
            for item in items {
                let room = room.saturating_sub(STEP);
                write_entry("", item, indent + STEP, room, style, lines);
            }
            lines.push(format!("{space}]"));
        }
        _ => lines.push(format!("{space}{lead}{}", inline(value))),
    }
}
