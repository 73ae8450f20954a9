//! Values as text: what `terraform console` 1.0.3 prints. Comes in: a value; goes out: text in which
//! nothing sensitive can be read.

use crate::value::{Entries, Kind, Value};

/// As `terraform console` prints it, without the newline behind.
pub fn console(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, 0, &mut text);
    text
}

fn write_value(value: &Value, indent: usize, text: &mut String) {
    if value.sensitive {
        text.push_str("(sensitive)");
        return;
    }
    match &value.kind {
        Kind::Null(of) => text.push_str(&null(of)),
        Kind::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Kind::Number(number) => text.push_str(&number.to_string()),
        Kind::String(string) if string.contains('\n') => write_heredoc(string, indent, text),
        Kind::String(string) => text.push_str(&quote(string)),
        Kind::Tuple(elements) => write_elements(elements, indent, text),
        Kind::Object(entries) => write_entries(entries, indent, text),
        Kind::List(_, elements) => {
            text.push_str("tolist(");
            write_elements(elements, indent, text);
            text.push(')');
        }
        Kind::Set(_, elements) => {
            text.push_str("toset(");
            write_elements(elements, indent, text);
            text.push(')');
        }
        Kind::Map(_, entries) => {
            text.push_str("tomap(");
            write_entries(entries, indent, text);
            text.push(')');
        }
    }
}

fn null(of: &crate::types::Type) -> String {
    use crate::types::Type;
    match of {
        Type::Any => "null".to_owned(),
        Type::Bool => "tobool(null)".to_owned(),
        Type::Number => "tonumber(null)".to_owned(),
        Type::String => "tostring(null)".to_owned(),
        Type::List(of) => format!("tolist(null) /* of {} */", of.friendly_name()),
        Type::Set(of) => format!("toset(null) /* of {} */", of.friendly_name()),
        Type::Map(of) => format!("tomap(null) /* of {} */", of.friendly_name()),
        Type::Object(_) | Type::Tuple(_) => format!("null /* {} */", of.friendly_name()),
    }
}

fn write_elements(elements: &[Value], indent: usize, text: &mut String) {
    text.push('[');
    for element in elements {
        new_line(indent + 2, text);
        write_value(element, indent + 2, text);
        text.push(',');
    }
    if !elements.is_empty() {
        new_line(indent, text);
    }
    text.push(']');
}

fn write_entries(entries: &Entries, indent: usize, text: &mut String) {
    text.push('{');
    for (name, value) in entries {
        new_line(indent + 2, text);
        if name.contains('\n') {
            write_heredoc(name, indent + 2, text);
        } else {
            text.push_str(&quote(name));
        }
        text.push_str(" = ");
        write_value(value, indent + 2, text);
    }
    if !entries.is_empty() {
        new_line(indent, text);
    }
    text.push('}');
}

fn new_line(indent: usize, text: &mut String) {
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', indent));
}

fn write_heredoc(string: &str, indent: usize, text: &mut String) {
    let mut delimiter = "EOT".to_owned();
    while string.split('\n').any(|line| line.trim() == delimiter) {
        delimiter.push('_');
    }
    text.push_str(if indent > 0 { "<<-" } else { "<<" });
    text.push_str(&delimiter);
    for line in string.split('\n') {
        new_line(indent, text);
        text.push_str(line);
    }
    new_line(indent, text);
    text.push_str(&delimiter);
}

/// In double quotes, escaped as `strconv.Quote` of Go 1.16 does.
pub fn quote(string: &str) -> String {
    let mut text = String::with_capacity(string.len() + 2);
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{7}' => text.push_str("\\a"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{b}' => text.push_str("\\v"),
            _ if is_printed(character) => text.push(character),
            _ if (character as u32) < 0x20 => {
                text.push_str(&format!("\\x{:02x}", character as u32));
            }
            _ if (character as u32) < 0x1_0000 => {
                text.push_str(&format!("\\u{:04x}", character as u32));
            }
            _ => text.push_str(&format!("\\U{:08x}", character as u32)),
        }
    }
    text.push('"');
    text
}

/// What Go's `strconv.IsPrint` lets through: letters, marks, numbers, punctuation, symbols and the
/// plain space. Rust's `escape_debug` draws nearly the same line; it also escapes marks that would
/// combine with the quotation mark, which Go doesn't.
fn is_printed(character: char) -> bool {
    match character {
        ' ' | '\'' => true,
        _ if character.is_whitespace() || character.is_control() => false,
        _ => format!("a{character}").escape_debug().count() == 2,
    }
}
