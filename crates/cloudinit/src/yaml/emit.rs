//! Values to YAML that PyYAML reads back as they are.
//!
//! In: a value. Out: block YAML, keys in their order. May not: write anything plain that the reader
//! of this crate doesn't read back as it is.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::load;
use super::tag::{Tag, of_plain};
use super::text::Text;
use crate::value::{Data, Map, Origin, Value};

/// A key with more characters than this is announced by `?`: PyYAML takes none of over 1024.
const LONGEST_SIMPLE_KEY: usize = 128;

/// The YAML would be larger than allowed, or endless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("what the aliases stand for is too large to be written out")
    }
}

impl std::error::Error for TooLarge {}

/// A value as YAML, which ends with a line feed and has at most `limit` bytes.
pub fn emit(value: &Value, limit: usize) -> Result<String, TooLarge> {
    Ok(emit_marked(value, limit)?.text)
}

/// YAML, and where its lines were written first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marked {
    /// The YAML.
    pub text: String,
    /// The byte at which a line begins, and where what it says was written. It holds up to the next.
    pub marks: Vec<(usize, Origin)>,
}

/// The same as [`emit`], with the origin of each key and each entry of a list.
pub fn emit_marked(value: &Value, limit: usize) -> Result<Marked, TooLarge> {
    let mut emitter = Emitter {
        text: String::new(),
        marks: Vec::new(),
        limit,
    };
    match &value.data {
        Data::List(items) | Data::Tuple(items) if !items.is_empty() => emitter.list(items, 0)?,
        Data::Map(map) if !map.is_empty() => emitter.map(map, 0)?,
        _ => {
            emitter.mark(value.origin);
            emitter.inline(value, 0)?;
            emitter.text.push('\n');
        }
    }
    Ok(Marked {
        text: emitter.text,
        marks: emitter.marks,
    })
}

struct Emitter {
    text: String,
    marks: Vec<(usize, Origin)>,
    limit: usize,
}

type Emitted = Result<(), TooLarge>;

impl Emitter {
    fn check(&self) -> Emitted {
        if self.text.len() > self.limit {
            return Err(TooLarge);
        }
        Ok(())
    }

    /// Says where what this line begins with was written.
    fn mark(&mut self, origin: Origin) {
        let start = self.text.rfind('\n').map_or(0, |end| end + 1);
        if self.marks.last().is_none_or(|(last, _)| *last < start) {
            self.marks.push((start, origin));
        }
    }

    fn indent(&mut self, depth: usize) {
        self.text.extend(std::iter::repeat_n("  ", depth));
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Emitted {
        for item in items {
            self.indent(depth);
            self.item(item, depth)?;
        }
        Ok(())
    }

    /// An item at the place where its `-` goes.
    fn item(&mut self, item: &Value, depth: usize) -> Emitted {
        self.check()?;
        self.text.push('-');
        match &item.data {
            Data::List(items) | Data::Tuple(items) if !items.is_empty() => {
                self.text.push(' ');
                self.item(&items[0], depth + 1)?;
                self.list(&items[1..], depth + 1)
            }
            Data::Map(map) if !map.is_empty() => {
                self.text.push(' ');
                for (index, (key, value)) in map.iter().enumerate() {
                    if index > 0 {
                        self.indent(depth + 1);
                    }
                    self.entry(key, value, depth + 1)?;
                }
                Ok(())
            }
            _ => {
                self.mark(item.origin);
                self.rest_of_line(item, depth)
            }
        }
    }

    fn map(&mut self, map: &Map, depth: usize) -> Emitted {
        for (key, value) in map.iter() {
            self.indent(depth);
            self.entry(key, value, depth)?;
        }
        Ok(())
    }

    /// A key at its place, and its value.
    fn entry(&mut self, key: &Value, value: &Value, depth: usize) -> Emitted {
        self.check()?;
        // A key keeps its place when a later layer gives it another value.
        self.mark(
            if holds_more(value) && key.origin.layer == value.origin.layer {
                key.origin
            } else {
                value.origin
            },
        );
        let start = self.text.len();
        self.scalar(key);
        if self.text.len() - start > LONGEST_SIMPLE_KEY {
            self.text.insert_str(start, "? ");
            self.text.push('\n');
            self.indent(depth);
        }
        self.text.push(':');
        match &value.data {
            Data::List(items) | Data::Tuple(items) if !items.is_empty() => {
                self.text.push('\n');
                self.list(items, depth + 1)
            }
            Data::Map(map) if !map.is_empty() => {
                self.text.push('\n');
                self.map(map, depth + 1)
            }
            _ => self.rest_of_line(value, depth),
        }
    }

    /// A value on the line of its key or `-`, or in a block under it.
    fn rest_of_line(&mut self, value: &Value, depth: usize) -> Emitted {
        self.text.push(' ');
        self.inline(value, depth)?;
        self.text.push('\n');
        self.check()
    }

    fn inline(&mut self, value: &Value, depth: usize) -> Emitted {
        match &value.data {
            Data::List(_) | Data::Tuple(_) => self.text.push_str("[]"),
            Data::Map(_) => self.text.push_str("{}"),
            Data::Set(set) => {
                self.text.push_str("!!set {");
                for (index, (key, _)) in set.iter().enumerate() {
                    self.text.push_str(if index > 0 { ", ? " } else { "? " });
                    self.scalar(key);
                    self.text.push(' ');
                    self.check()?;
                }
                self.text.push('}');
            }
            Data::Text(Text::Utf8(text)) if fits_block(text) => self.block(text, depth),
            Data::Cycle => return Err(TooLarge),
            _ => self.scalar(value),
        }
        Ok(())
    }

    /// A text with several lines, as people write them.
    fn block(&mut self, text: &str, depth: usize) {
        let body = text.trim_end_matches('\n');
        let chomping = match text.len() - body.len() {
            0 => "-",
            1 => "",
            _ => "+",
        };
        self.text.push('|');
        self.text.push_str(chomping);
        let lines = if chomping == "+" {
            text.strip_suffix('\n').unwrap_or(text)
        } else {
            body
        };
        for line in lines.split('\n') {
            self.text.push('\n');
            if !line.is_empty() {
                self.indent(depth + 1);
                self.text.push_str(line);
            }
        }
    }

    fn scalar(&mut self, value: &Value) {
        match &value.data {
            Data::Bool(value) => self.text.push_str(if *value { "true" } else { "false" }),
            Data::Int(value) => {
                let _ = write!(self.text, "{value}");
            }
            Data::Float(value) => self.text.push_str(&float(*value)),
            Data::Time(time) => self.text.push_str(&time.text),
            Data::Bytes(bytes) => {
                let _ = write!(self.text, "!!binary \"{}\"", BASE64.encode(bytes));
            }
            Data::Text(text) => match text.as_str() {
                Some(text) if is_plain_anywhere(text) => self.text.push_str(text),
                _ => self.text.push_str(&quoted(text)),
            },
            // Null. Nothing else is a key, and containers don't come here.
            _ => self.text.push_str("null"),
        }
    }
}

/// Whether a value stands on lines of its own.
fn holds_more(value: &Value) -> bool {
    match &value.data {
        Data::List(items) | Data::Tuple(items) => !items.is_empty(),
        Data::Map(map) => !map.is_empty(),
        _ => false,
    }
}

/// Whether the lines of a text can stand as they are.
fn fits_block(text: &str) -> bool {
    let printable = |char: char| {
        matches!(char, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
            | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
            && !matches!(char, '\u{2028}' | '\u{2029}')
    };
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\n'])
        && text.chars().all(printable)
        // A line of blanks alone could be taken for the end's indentation.
        && text.split('\n').all(|line| line.is_empty() || !line.trim_matches(' ').is_empty())
}

/// Whether a text is so plain that it can stand anywhere without quotes.
fn is_plain_anywhere(text: &str) -> bool {
    let is_word = |char: char| {
        char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | '+' | '@' | ' ')
    };
    let begins_well =
        text.starts_with(|char: char| char.is_ascii_alphabetic() || matches!(char, '/' | '_'));
    begins_well
        && text.len() <= 200
        && !text.ends_with(' ')
        && text.chars().all(is_word)
        && is_safe_plain(text)
}

/// Whether `v: text` is read as that text.
pub fn is_safe_plain(text: &str) -> bool {
    is_simple(text) || is_read_as_written(text)
}

/// Whether it is a word, or something like it, that is nothing but text.
fn is_simple(text: &str) -> bool {
    let is_simple =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/' | b'.' | b'-');
    let starts = text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '/');
    starts && text.bytes().all(is_simple) && of_plain(&text.into()) == Tag::Str
}

fn is_read_as_written(text: &str) -> bool {
    let Ok(value) = load(&format!("v: {text}\n"), 0) else {
        return false;
    };
    let Some(map) = value.as_map().filter(|map| map.len() == 1) else {
        return false;
    };
    map.named("v").and_then(Value::as_str) == Some(text)
}

/// A text in double quotes, with whatever is special escaped.
pub fn quoted(text: &Text) -> String {
    let mut out = String::from("\"");
    for point in text.points() {
        match char::from_u32(point) {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\t') => out.push_str("\\t"),
            Some('\r') => out.push_str("\\r"),
            Some(
                char @ ('\0'..='\u{1f}'
                | '\u{7f}'..='\u{9f}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{feff}'
                | '\u{fffe}'
                | '\u{ffff}'),
            ) => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            Some(char) => out.push(char),
            None => {
                let _ = write!(out, "\\u{point:04x}");
            }
        }
    }
    out.push('"');
    out
}

/// A float as PyYAML reads it: with a point, and a sign in the exponent.
fn float(value: f64) -> String {
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-.inf" } else { ".inf" }.to_owned();
    }
    let text = format!("{value:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let point = if digits.contains('.') { "" } else { ".0" };
            let sign = if exponent.starts_with('-') { "" } else { "+" };
            format!("{digits}{point}e{sign}{exponent}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simple_text_is_read_as_written() {
        let signs = [
            "a", "e", "y", "N", "O", "o", "n", "/", ".", "-", "_", "0", "1", "x",
        ];
        let mut texts = vec![String::new()];
        for _ in 0..3 {
            let longer = |text: &String| signs.map(|sign| format!("{text}{sign}"));
            let more: Vec<String> = texts.iter().flat_map(longer).collect();
            texts.extend(more);
        }
        let words = [
            "null",
            "Null",
            "off",
            "True",
            "yes",
            "inf",
            "nan",
            "web-1.example.org",
        ];
        texts.extend(words.map(str::to_owned));
        assert!(is_simple("web-1.example.org") && !is_simple("off") && !is_simple("0x1"));
        for text in &texts {
            assert!(!is_simple(text) || is_read_as_written(text), "{text}");
        }
    }
}
