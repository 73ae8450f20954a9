//! JSON, written and read as `encoding/json` does.

use super::arguments::{DEPTH, bytes, fail, list as list_value, map, string};
use super::{Entry, Outcome, entry};
use crate::dict::Dict;
use crate::function::Kind::{Any, Str};
use crate::function::{Budget, FunctionError};
use crate::map::Map;
use crate::unicode::decode;
use crate::value::{List, Text, Value};

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(
        "toJson",
        "X",
        "X as JSON; \"\" where that can't be",
        &[Any],
        |budget, a| lenient(write(budget, &a[0], Style::COMPACT)),
    ),
    entry(
        "mustToJson",
        "X",
        "the same, but an error where that can't be",
        &[Any],
        |budget, a| string(write(budget, &a[0], Style::COMPACT)?),
    ),
    PRETTY,
    entry(
        "mustToPrettyJson",
        "X",
        "the same, but an error where that can't be",
        &[Any],
        |budget, a| string(write(budget, &a[0], Style::PRETTY)?),
    ),
    RAW,
    RAW.named("mustToRawJson"),
    entry(
        "fromJson",
        "S",
        "the value that S is as JSON; nil where it is none",
        &[Str],
        |budget, a| {
            match read(budget, bytes(&a[0]))? {
                // A number that is too large is 0, and the rest is there.
                Ok(value) | Err(Flaw::TooLarge(value, _)) => Ok(value),
                Err(Flaw::Syntax(_)) => Ok(Value::Nil),
            }
        },
    ),
    entry(
        "mustFromJson",
        "S",
        "the same, but an error where it is none",
        &[Str],
        |budget, a| match read(budget, bytes(&a[0]))? {
            Ok(value) => Ok(value),
            Err(flaw) => fail(flaw.message()),
        },
    ),
    entry(
        "fromJsonArray",
        "S",
        "the list that S is as JSON; a list of the error where it is none",
        &[Str],
        |budget, a| {
            let message = match read(budget, bytes(&a[0]))? {
                Ok(Value::Nil) => return list_value(budget, Vec::new()),
                Ok(value @ Value::List(_)) => return Ok(value),
                Ok(value) => not_a_list(&value),
                Err(flaw) => flaw.message(),
            };
            list_value(budget, vec![message.into()])
        },
    ),
];

const PRETTY: Entry = entry(
    "toPrettyJson",
    "X",
    "X as JSON on several lines",
    &[Any],
    |budget, a| lenient(write(budget, &a[0], Style::PRETTY)),
);

const RAW: Entry = entry(
    "toRawJson",
    "X",
    "X as JSON, with `<`, `>` and `&` as they are",
    &[Any],
    |budget, a| string(write(budget, &a[0], Style::RAW)?),
);

pub(super) fn not_a_list(value: &Value) -> String {
    let what = match value {
        Value::Dict(_) => "object",
        Value::Str(_) => "string",
        Value::Bool(_) => "bool",
        _ => "number",
    };
    format!("json: cannot unmarshal {what} into Go value of type []interface {{}}")
}

/// A text, or the empty one where the value can't be written; limits stay errors.
fn lenient(written: Result<Vec<u8>, FunctionError>) -> Outcome {
    match written {
        Err(error) if error.is_message() => string(""),
        other => string(other?),
    }
}

/// How JSON is written.
#[derive(Clone, Copy)]
struct Style {
    lines: bool,
    html: bool,
}

impl Style {
    const COMPACT: Self = Self {
        lines: false,
        html: true,
    };
    const PRETTY: Self = Self {
        lines: true,
        html: true,
    };
    const RAW: Self = Self {
        lines: false,
        html: false,
    };
}

fn write(budget: &mut Budget, value: &Value, style: Style) -> Result<Vec<u8>, FunctionError> {
    let mut writer = Writer {
        budget,
        style,
        out: Vec::new(),
    };
    writer.value(value, 0)?;
    Ok(writer.out)
}

struct Writer<'b> {
    budget: &'b mut Budget,
    style: Style,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: u32) -> Result<(), FunctionError> {
        if depth > DEPTH {
            return super::arguments::too_deep();
        }
        self.budget.check_size(self.out.len())?;
        match value {
            Value::Nil | Value::Missing => self.out.extend(b"null"),
            Value::Bool(truth) => self.out.extend(truth.to_string().bytes()),
            Value::Int(number) | Value::Int64(number) => {
                self.out.extend(number.to_string().bytes());
            }
            Value::Uint8(number) => self.out.extend(number.to_string().bytes()),
            Value::Float(number) => {
                let shown = float(*number)?;
                self.out.extend(shown.bytes());
            }
            Value::Complex(..) => return fail("json: unsupported type: complex128"),
            Value::Number(text) if text.as_bytes().is_empty() => self.out.push(b'0'),
            Value::Number(text) => self.out.extend(text.as_bytes()),
            Value::Str(text) => self.text(text.as_bytes()),
            Value::Unset => self.text(b""),
            Value::List(list) => {
                let items = list.items().iter().map(|item| (None, item));
                self.all([b'[', b']'], items, depth)?;
            }
            Value::Map(_) | Value::Dict(_) => {
                let map = map(value);
                let entries = map.entries().iter();
                let entries = entries.map(|(key, item)| (Some(key.as_bytes()), item));
                self.all([b'{', b'}'], entries, depth)?;
            }
            Value::Struct(fields) => match fields.text() {
                Some(text) => self.text(text.as_bytes()),
                None => {
                    let fields = fields.fields();
                    let fields = fields.map(|(name, item)| (Some(name.as_bytes()), item));
                    self.all([b'{', b'}'], fields, depth)?;
                }
            },
            Value::Unknown(_) => return fail("the value isn't known yet"),
        }
        Ok(())
    }

    fn all<'v>(
        &mut self,
        brackets: [u8; 2],
        items: impl Iterator<Item = (Option<&'v [u8]>, &'v Value)>,
        depth: u32,
    ) -> Result<(), FunctionError> {
        self.out.push(brackets[0]);
        let mut empty = true;
        for (key, item) in items {
            if !empty {
                self.out.push(b',');
            }
            empty = false;
            self.line(depth + 1);
            if let Some(key) = key {
                self.text(key);
                self.out.push(b':');
                if self.style.lines {
                    self.out.push(b' ');
                }
            }
            self.value(item, depth + 1)?;
        }
        if !empty {
            self.line(depth);
        }
        self.out.push(brackets[1]);
        Ok(())
    }

    fn line(&mut self, depth: u32) {
        if self.style.lines {
            self.out.push(b'\n');
            let length = self.out.len() + depth as usize * 2;
            self.out.resize(length, b' ');
        }
    }

    fn text(&mut self, text: &[u8]) {
        quote(&mut self.out, text, self.style.html);
    }
}

/// A JSON string; what isn't UTF-8 becomes U+FFFD.
fn quote(out: &mut Vec<u8>, text: &[u8], html: bool) {
    out.push(b'"');
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let (character, width) = decode(rest);
        match (byte, character) {
            (b'"' | b'\\', _) => out.extend([b'\\', byte]),
            (b'\n', _) => out.extend(b"\\n"),
            (b'\r', _) => out.extend(b"\\r"),
            (b'\t', _) => out.extend(b"\\t"),
            (8, _) => out.extend(b"\\b"),
            (12, _) => out.extend(b"\\f"),
            (b'<' | b'>' | b'&', _) if html => out.extend(format!("\\u{byte:04x}").bytes()),
            (0..0x20, _) => out.extend(format!("\\u{byte:04x}").bytes()),
            (_, Some(wide @ ('\u{2028}' | '\u{2029}'))) => {
                out.extend(format!("\\u{:04x}", u32::from(wide)).bytes());
            }
            (_, None) => out.extend("\u{fffd}".bytes()),
            _ => out.extend(&rest[..width]),
        }
        rest = &rest[width..];
    }
    out.push(b'"');
}

/// A number as JavaScript writes it.
pub(super) fn float(number: f64) -> Result<String, FunctionError> {
    if !number.is_finite() {
        let shown = if number.is_nan() {
            "NaN"
        } else if number > 0.0 {
            "+Inf"
        } else {
            "-Inf"
        };
        return fail(format!("json: unsupported value: {shown}"));
    }
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let shown = format!("{number:e}");
        return Ok(match shown.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => shown,
        });
    }
    Ok(format!("{number}"))
}

/// Why a text isn't JSON.
pub(super) enum Flaw {
    Syntax(String),
    /// A number doesn't fit a float; with all else that was read.
    TooLarge(Value, String),
}

impl Flaw {
    fn message(self) -> String {
        match self {
            Self::Syntax(message) | Self::TooLarge(_, message) => message,
        }
    }
}

fn syntax<T>(message: impl Into<String>) -> Result<T, Flaw> {
    Err(Flaw::Syntax(message.into()))
}

/// Reads a text; the outer result is of limits.
fn read(budget: &mut Budget, text: &[u8]) -> Result<Result<Value, Flaw>, FunctionError> {
    // A value takes as much as some bytes of its text.
    budget.charge(text.len().saturating_mul(4))?;
    let mut reader = Reader {
        text,
        at: 0,
        too_large: None,
    };
    Ok(reader.document())
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    too_large: Option<String>,
}

/// Where a character stands that can't stand there.
const VALUE: &str = "looking for beginning of value";

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, Flaw> {
        let value = self.value(0)?;
        self.space();
        if self.at < self.text.len() {
            return self.wrong("after top-level value");
        }
        match self.too_large.take() {
            Some(number) => {
                let message =
                    format!("json: cannot unmarshal number {number} into Go value of type float64");
                Err(Flaw::TooLarge(value, message))
            }
            None => Ok(value),
        }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.text.get(self.at).copied()
    }

    /// What is next can't be there.
    fn wrong<T>(&self, context: &str) -> Result<T, Flaw> {
        let Some(byte) = self.text.get(self.at) else {
            return syntax("unexpected end of JSON input");
        };
        let shown = match byte {
            b'\'' => "'\\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            byte => {
                let quoted = crate::quote::quote_char(char::from(*byte), false);
                String::from_utf8_lossy(&quoted).into_owned()
            }
        };
        syntax(format!("invalid character {shown} {context}"))
    }

    fn value(&mut self, depth: u32) -> Result<Value, Flaw> {
        if depth > DEPTH {
            return syntax("exceeded max depth");
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.text().map(|text| Value::Str(text.into())),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Nil),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.wrong(VALUE),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Flaw> {
        for (index, wanted) in word.bytes().enumerate() {
            if self.text.get(self.at) != Some(&wanted) {
                let wanted = char::from(wanted);
                debug_assert!(index > 0);
                return self.wrong(&format!("in literal {word} (expecting '{wanted}')"));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn digits(&mut self, context: &str) -> Result<(), Flaw> {
        if !self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            return self.wrong(context);
        }
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, Flaw> {
        let start = self.at;
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits("in numeric literal")?,
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let shown = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
        let number: f64 = shown.parse().unwrap_or_default();
        if number.is_finite() {
            return Ok(Value::Float(number));
        }
        self.too_large.get_or_insert(shown);
        Ok(Value::Float(0.0))
    }

    fn array(&mut self, depth: u32) -> Result<Value, Flaw> {
        self.at += 1;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::List(List::new(items)));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::List(List::as_decoded_from_json(items)));
                }
                _ => return self.wrong("after array element"),
            }
        }
    }

    fn object(&mut self, depth: u32) -> Result<Value, Flaw> {
        self.at += 1;
        let mut entries = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Dict(Dict::new(Map::default())));
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.wrong("looking for beginning of object key string");
            }
            let key = self.text()?;
            if self.peek() != Some(b':') {
                return self.wrong("after object key");
            }
            self.at += 1;
            entries.push((Text::from(key), self.value(depth + 1)?));
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Dict(Dict::new(Map::new(entries))));
                }
                _ => return self.wrong("after object key:value pair"),
            }
        }
    }

    fn text(&mut self) -> Result<Vec<u8>, Flaw> {
        self.at += 1;
        let mut made = Vec::new();
        loop {
            let Some(&byte) = self.text.get(self.at) else {
                return self.wrong("");
            };
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(made);
                }
                b'\\' => self.escape(&mut made)?,
                0..0x20 => return self.wrong("in string literal"),
                _ => {
                    let (character, width) = decode(&self.text[self.at..]);
                    let character = character.unwrap_or('\u{fffd}');
                    made.extend(character.encode_utf8(&mut [0; 4]).bytes());
                    self.at += width;
                }
            }
        }
    }

    fn escape(&mut self, made: &mut Vec<u8>) -> Result<(), Flaw> {
        self.at += 1;
        let byte = match self.text.get(self.at) {
            Some(b'u') => {
                self.at += 1;
                let mut code = self.hexadecimal()?;
                if (0xd800..0xdc00).contains(&code)
                    && self.text[self.at..].starts_with(b"\\u")
                    && let Some(low) = self.low_surrogate()
                {
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    self.at += 6;
                }
                let character = char::from_u32(code).unwrap_or('\u{fffd}');
                made.extend(character.encode_utf8(&mut [0; 4]).bytes());
                return Ok(());
            }
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            _ => return self.wrong("in string escape code"),
        };
        made.push(byte);
        self.at += 1;
        Ok(())
    }

    fn hexadecimal(&mut self) -> Result<u32, Flaw> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.text.get(self.at).map(|byte| char::from(*byte));
            let Some(digit) = digit.and_then(|digit| digit.to_digit(16)) else {
                return self.wrong("in \\u hexadecimal character escape");
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    /// The low surrogate that is escaped next.
    fn low_surrogate(&self) -> Option<u32> {
        let digits = std::str::from_utf8(self.text.get(self.at + 2..self.at + 6)?).ok()?;
        let code = u32::from_str_radix(digits, 16).ok()?;
        (0xdc00..0xe000).contains(&code).then_some(code)
    }
}
