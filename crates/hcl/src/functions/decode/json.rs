//! JSON, as Go reads it: of a key that is there twice the last counts, half a surrogate pair is
//! U+FFFD.

use std::sync::Arc;

use super::{CallError, Context, DEEPEST, Value, text, too_deep};
use crate::number::Number;
use crate::value::{Entries, composed};

pub(super) fn decode(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let text = text(arguments, 0)?;
    context.charge_bytes(text.len())?;
    let mut reader = Reader {
        context,
        text,
        at: 0,
    };
    let value = reader.value(0)?;
    reader.skip_blanks();
    if reader.at < text.len() {
        return Err(reader.wrong("nothing may follow the value"));
    }
    Ok(value)
}

struct Reader<'t> {
    context: &'t Context<'t>,
    text: &'t str,
    /// The next byte, always the first of a character.
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Whether `byte` stands next, behind blanks; if so it is passed.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn wrong(&self, wanted: &str) -> CallError {
        let before = &self.text[..self.at];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let found = match self.rest().chars().next() {
            None => "the end".to_owned(),
            Some(character) => format!("{character:?}"),
        };
        CallError::argument(
            0,
            format!("This isn't JSON: line {line}, column {column}: {wanted}; here is {found}"),
        )
    }

    fn value(&mut self, depth: usize) -> Result<Value, CallError> {
        self.context.charge_steps(1)?;
        self.skip_blanks();
        match self.peek() {
            Some(b'{' | b'[') if depth == DEEPEST => Err(too_deep()),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::string(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, value) in [
                    ("true", Value::from(true)),
                    ("false", Value::from(false)),
                    ("null", Value::null()),
                ] {
                    if self.rest().starts_with(word) {
                        self.at += word.len();
                        return Ok(value);
                    }
                }
                Err(self.wrong("a value is wanted"))
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, CallError> {
        self.at += 1;
        let mut entries = Entries::new();
        if self.takes(b'}') {
            return Ok(Value::object(entries));
        }
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a key in double quotes is wanted"));
            }
            let key = composed(Arc::from(self.string()?));
            if !self.takes(b':') {
                return Err(self.wrong("a colon is wanted"));
            }
            let value = self.value(depth + 1)?;
            entries.insert(key, value);
            if self.takes(b'}') {
                return Ok(Value::object(entries));
            }
            if !self.takes(b',') {
                return Err(self.wrong("`,` or `}` is wanted"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, CallError> {
        self.at += 1;
        let mut elements = Vec::new();
        if self.takes(b']') {
            return Ok(Value::tuple(elements));
        }
        loop {
            elements.push(self.value(depth + 1)?);
            if self.takes(b']') {
                return Ok(Value::tuple(elements));
            }
            if !self.takes(b',') {
                return Err(self.wrong("`,` or `]` is wanted"));
            }
        }
    }

    /// Digits without zeros in front, then perhaps a fraction and an exponent.
    fn number(&mut self) -> Result<Value, CallError> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(Number::parse(&self.text[start..self.at])?.into())
    }

    fn digits(&mut self) -> Result<(), CallError> {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += count;
        if count == 0 {
            return Err(self.wrong("a digit is wanted"));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, CallError> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let plain = self
                .rest()
                .find(|character: char| matches!(character, '"' | '\\' | '\0'..='\u{1f}'));
            let length = plain.unwrap_or(self.rest().len());
            string.push_str(&self.rest()[..length]);
            self.at += length;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.push(self.escape()?),
                _ => return Err(self.wrong("the string isn't closed")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, CallError> {
        let escaped = match self.text.as_bytes().get(self.at + 1) {
            Some(quoted @ (b'"' | b'\\' | b'/')) => char::from(*quoted),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let Some(first) = self.unit() else {
                    return Err(self.wrong("four hexadecimal digits are wanted behind `\\u`"));
                };
                let pair = |second| char::decode_utf16([first, second]).next()?.ok();
                let before = self.at;
                let whole = match first {
                    0xd800..0xdc00 => self.unit().and_then(pair),
                    _ => char::from_u32(first.into()),
                };
                if whole.is_none() {
                    self.at = before;
                }
                return Ok(whole.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            _ => return Err(self.wrong("this escape isn't known")),
        };
        self.at += 2;
        Ok(escaped)
    }

    /// The number of a `\u0000`, which is passed.
    fn unit(&mut self) -> Option<u16> {
        let digits = self.rest().strip_prefix("\\u")?.get(..4)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 6;
        u16::from_str_radix(digits, 16).ok()
    }
}
