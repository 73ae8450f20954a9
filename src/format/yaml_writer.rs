//! Writes a document as YAML.
//!
//! In: an evaluated document. Out: its text: two spaces a level, multi-line texts as literal blocks
//! (`|`), quotes where YAML 1.1 or 1.2 would read another value.

use super::{WIDTH, is_short};
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::source::SourceId;
use crate::config::yaml;

/// Writes a document.
pub(super) fn write(root: &Node) -> String {
    let mut out = String::new();
    if root.entries().is_empty() {
        out.push_str("{}\n");
    }
    entries(root.entries(), 0, &mut out);
    out
}

fn entries(entries: &[Entry], depth: usize, out: &mut String) {
    for entry in entries {
        indent(depth, out);
        keyed(entry, depth, out);
    }
}

/// Writes a key and its value after the indentation.
fn keyed(entry: &Entry, depth: usize, out: &mut String) {
    let key = scalar(&entry.key, Place::Key);
    out.push_str(&key);
    out.push(':');
    if is_block(&entry.value, 2 * depth + key.chars().count() + 2) {
        out.push('\n');
        block(&entry.value, depth + 1, out);
    } else {
        out.push(' ');
        value(&entry.value, depth, out);
    }
}

/// Writes a list or an object in block style.
fn block(node: &Node, depth: usize, out: &mut String) {
    let NodeValue::Array(items) = &node.value else {
        entries(node.entries(), depth, out);
        return;
    };
    for item in items {
        indent(depth, out);
        if !is_block(item, 2 * depth + 2) {
            out.push_str("- ");
            value(item, depth, out);
        } else if let [first, rest @ ..] = item.entries() {
            // The first key follows the dash.
            out.push_str("- ");
            keyed(first, depth + 1, out);
            entries(rest, depth + 1, out);
        } else {
            out.push_str("-\n");
            block(item, depth + 1, out);
        }
    }
}

/// Whether a value that starts at column `used` needs block style.
fn is_block(node: &Node, used: usize) -> bool {
    match &node.value {
        NodeValue::Array(items) if !items.is_empty() => {
            !is_short(node) || used + flow(node).chars().count() > WIDTH
        }
        _ => !node.entries().is_empty(),
    }
}

/// Writes a scalar or flow value and the line break after it.
fn value(node: &Node, depth: usize, out: &mut String) {
    let block = node.as_str().and_then(block_of_text);
    let Some((header, lines)) = block else {
        out.push_str(&match &node.value {
            NodeValue::String(text) => scalar(text, Place::Block),
            _ => flow(node),
        });
        out.push('\n');
        return;
    };
    out.push_str(&header);
    out.push('\n');
    for line in lines {
        if !line.is_empty() {
            indent(depth + 1, out);
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// A short value in flow style.
fn flow(node: &Node) -> String {
    match &node.value {
        NodeValue::Null => "null".to_owned(),
        NodeValue::Bool(value) => value.to_string(),
        NodeValue::Number(number) => number.to_string(),
        NodeValue::String(text) => scalar(text, Place::Flow),
        NodeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        NodeValue::Object(_) => "{}".to_owned(),
    }
}
/// The context of a scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    Block,
    Flow,
}

/// A text on one line, quoted if necessary.
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

/// Whether a character is a line break or invisible.
fn is_odd(character: char) -> bool {
    matches!(
        character,
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

/// Whether a text can be written without quotes, for YAML 1.1 too.
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

/// The header and lines of a literal block; `None` if a block can't hold the text.
fn block_of_text(text: &str) -> Option<(String, Vec<&str>)> {
    let allowed = |c: char| c == '\n' || c == '\t' || !(c.is_control() || is_odd(c));
    if !text.contains('\n') || !text.chars().all(allowed) {
        return None;
    }
    let body = text.trim_end_matches('\n');
    let first = body.lines().find(|line| !line.trim().is_empty())?;
    let blank = |line: &str| !line.is_empty() && line.trim_matches(' ').is_empty();
    // Editors often strip lines of spaces.
    if body.lines().any(blank) {
        return None;
    }
    let indented = if first.starts_with(' ') { "2" } else { "" };
    let chomp = match text.len() - body.len() {
        0 => "-",
        1 => "",
        // `|+` would also keep the empty lines after the block.
        _ => return None,
    };
    let mut lines: Vec<&str> = text.split('\n').collect();
    if text.ends_with('\n') {
        lines.pop();
    }
    let header = format!("|{indented}{chomp}");
    // Verify with the reader.
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
    let read = yaml::read(SourceId(0), &written).ok()?.root;
    let same = matches!(read.get("k").map(|node| &node.value), Some(NodeValue::String(found)) if **found == *text);
    same.then_some((header, lines))
}
