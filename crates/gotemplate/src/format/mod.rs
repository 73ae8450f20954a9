//! Go's `fmt`: printing values, `Printf`.
//!
//! In: values and a bounded buffer. Out: bytes. Nothing here fails: what doesn't fit the verb is
//! printed as Go's `%!d(string=x)`, and what doesn't fit the buffer marks it as overflowed.

mod float;
mod formatter;
mod printf;
mod verbs;

pub(crate) use printf::{TooWide, printf};

use crate::value::Value;
use formatter::Formatter;

/// How deep a value is printed; what lies deeper is shown as `...`.
const DEPTH: u32 = 500;

/// A buffer that takes no more than a number of bytes.
pub(crate) struct Sink<'b> {
    bytes: &'b mut Vec<u8>,
    /// The length that the buffer may reach.
    limit: usize,
    overflowed: bool,
}

impl<'b> Sink<'b> {
    /// A sink that appends to `bytes`, which may grow by `limit`.
    pub(crate) fn new(bytes: &'b mut Vec<u8>, limit: usize) -> Self {
        let limit = bytes.len().saturating_add(limit);
        Self {
            bytes,
            limit,
            overflowed: false,
        }
    }

    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if bytes.len() > self.limit - self.bytes.len() {
            self.overflowed = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub(crate) fn push_byte(&mut self, byte: u8) {
        self.push(&[byte]);
    }

    pub(crate) fn pad(&mut self, byte: u8, count: usize) {
        if count > self.limit - self.bytes.len() {
            self.overflowed = true;
        } else {
            self.bytes.resize(self.bytes.len() + count, byte);
        }
    }
}

/// Go's `Sprint`, or `Sprintln` where `line`.
pub(crate) fn print(sink: &mut Sink<'_>, values: &[&Value], line: bool) {
    let mut previous_string = false;
    for (index, value) in values.iter().enumerate() {
        let string = matches!(value, Value::Str(_) | Value::Number(_) | Value::Unset);
        if index > 0 && (line || !(string || previous_string)) {
            sink.push_byte(b' ');
        }
        print_value(sink, value);
        previous_string = string;
    }
    if line {
        sink.push_byte(b'\n');
    }
}

/// What an action writes for a value.
pub(crate) fn print_value(sink: &mut Sink<'_>, value: &Value) {
    match value {
        Value::Str(text) | Value::Number(text) => sink.push(text.as_bytes()),
        Value::Unset => {}
        Value::Int(number) | Value::Int64(number) => push_int(sink, *number),
        Value::Bool(true) => sink.push(b"true"),
        Value::Bool(false) => sink.push(b"false"),
        other => Formatter::new(sink).argument(other, b'v'.into()),
    }
}

fn push_int(sink: &mut Sink<'_>, number: i64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        sink.push_byte(b'-');
    }
    sink.push(&digits[at..]);
}

/// A value under one verb without flags: for messages, cut to a sensible length.
pub(crate) fn with_verb(value: &Value, verb: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut sink = Sink::new(&mut bytes, 4096);
    Formatter::new(&mut sink).argument(value, verb.into());
    bytes
}
