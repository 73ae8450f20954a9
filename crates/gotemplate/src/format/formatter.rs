//! One value under one verb: Go's `printArg` and `printValue`.

use super::{DEPTH, Sink};
use crate::value::Value;

/// Flags, width and precision of a verb.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%+v` and `%#v`, which mean something else than the flags do elsewhere.
    pub(super) plus_v: bool,
    pub(super) sharp_v: bool,
}

/// Prints values into a sink.
pub(super) struct Formatter<'s, 'b> {
    pub(super) sink: &'s mut Sink<'b>,
    pub(super) flags: Flags,
}

impl<'s, 'b> Formatter<'s, 'b> {
    pub(super) fn new(sink: &'s mut Sink<'b>) -> Self {
        Self {
            sink,
            flags: Flags::default(),
        }
    }

    /// Prints an argument of a print function.
    pub(super) fn argument(&mut self, value: &Value, verb: char) {
        match (value, verb) {
            (Value::Nil | Value::Missing, 'T' | 'v') => self.pad(b"<nil>"),
            (Value::Nil | Value::Missing, _) => self.bad_verb(value, verb),
            (_, 'T') => self.string(value.go_type().as_bytes()),
            (Value::List(_) | Value::Map(_) | Value::Dict(_), 'p') => self.pointer(),
            (_, 'p') => self.bad_verb(value, verb),
            (
                Value::List(_)
                | Value::Map(_)
                | Value::Dict(_)
                | Value::Struct(_)
                | Value::Number(_),
                'w',
            ) => {
                self.bad_verb(value, verb);
            }
            _ => self.value(value, verb, 0),
        }
    }

    /// An address, which no program can rely on: always the same, so that plans are, too.
    fn pointer(&mut self) {
        let sharp = self.flags.sharp;
        self.flags.sharp = !sharp;
        self.integer(0x00c0_0001_4000, false, 'x');
        self.flags.sharp = sharp;
    }

    fn value(&mut self, value: &Value, verb: char, depth: u32) {
        if depth > DEPTH {
            self.sink.push(b"...");
            return;
        }
        match value {
            // Within a list, map or struct: a nil interface, whatever the verb.
            Value::Nil | Value::Missing if self.flags.sharp_v => {
                self.sink.push(b"interface {}(nil)");
            }
            Value::Nil | Value::Missing => self.sink.push(b"<nil>"),
            Value::Bool(truth) => self.boolean(*truth, verb),
            Value::Int(number) | Value::Int64(number) => {
                self.whole(*number as u64, true, verb, value);
            }
            Value::Uint8(number) => self.whole((*number).into(), false, verb, value),
            Value::Float(number) => self.float_verb(*number, verb, value),
            Value::Complex(real, imaginary) => self.complex(*real, *imaginary, verb, value),
            Value::Str(text) | Value::Number(text) => self.text(text.as_bytes(), verb, value),
            Value::Unset => self.text(b"", verb, value),
            Value::Unknown(_) => self.sink.push(b"<unknown>"),
            Value::List(list) => {
                let brackets: [&[u8]; 2] = self.open(value, *b"[]");
                for (index, item) in list.items().iter().enumerate() {
                    self.separate(index);
                    self.value(item, verb, depth + 1);
                }
                self.sink.push(brackets[1]);
            }
            Value::Map(map) => {
                if !self.flags.sharp_v {
                    self.sink.push(b"map");
                }
                let brackets: [&[u8]; 2] = self.open(value, *b"[]");
                for (index, (key, item)) in map.entries().iter().enumerate() {
                    self.separate(index);
                    self.value(&Value::Str(key.clone()), verb, depth + 1);
                    self.sink.push_byte(b':');
                    self.value(item, verb, depth + 1);
                }
                self.sink.push(brackets[1]);
            }
            Value::Dict(dict) => self.value(&Value::Map(dict.map()), verb, depth),
            Value::Struct(fields) if fields.text().is_some() && !self.flags.sharp_v => {
                let text = fields.text().map_or(&b""[..], |text| text.as_bytes());
                self.text(text, verb, value);
            }
            Value::Struct(fields) => {
                self.open(value, *b"{}");
                for (index, (name, item)) in fields.fields().enumerate() {
                    self.separate(index);
                    if self.flags.plus_v || self.flags.sharp_v {
                        self.sink.push(name.as_bytes());
                        self.sink.push_byte(b':');
                    }
                    self.value(item, verb, depth + 1);
                }
                self.sink.push_byte(b'}');
            }
        }
    }

    /// Opens a composite value: with its type in Go syntax.
    fn open(&mut self, value: &Value, plain: [u8; 2]) -> [&'static [u8]; 2] {
        if self.flags.sharp_v {
            self.sink.push(value.go_type().as_bytes());
            self.sink.push_byte(b'{');
            return [b"{", b"}"];
        }
        self.sink.push_byte(plain[0]);
        [b"[", b"]"]
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.sink
                .push(if self.flags.sharp_v { b", " } else { b" " });
        }
    }

    fn boolean(&mut self, truth: bool, verb: char) {
        match verb {
            't' | 'v' => self.pad(if truth { b"true" } else { b"false" }),
            _ => self.bad_verb(&Value::Bool(truth), verb),
        }
    }

    fn whole(&mut self, number: u64, signed: bool, verb: char, value: &Value) {
        match verb {
            'v' if self.flags.sharp_v && !signed => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                self.integer(number, signed, 'x');
                self.flags.sharp = sharp;
            }
            'v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X' => self.integer(number, signed, verb),
            'c' => self.character(number),
            'q' => self.quoted_character(number),
            'U' => self.unicode(number),
            _ => self.bad_verb(value, verb),
        }
    }

    fn float_verb(&mut self, number: f64, verb: char, value: &Value) {
        match verb {
            'v' => self.float(number, 'g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => self.float(number, verb, None),
            'f' | 'e' | 'E' => self.float(number, verb, Some(6)),
            'F' => self.float(number, 'f', Some(6)),
            _ => self.bad_verb(value, verb),
        }
    }

    fn complex(&mut self, real: f64, imaginary: f64, verb: char, value: &Value) {
        if !matches!(
            verb,
            'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E'
        ) {
            self.bad_verb(value, verb);
            return;
        }
        self.sink.push_byte(b'(');
        self.float_verb(real, verb, value);
        let plus = std::mem::replace(&mut self.flags.plus, true);
        self.float_verb(imaginary, verb, value);
        self.sink.push(b"i)");
        self.flags.plus = plus;
    }

    fn text(&mut self, text: &[u8], verb: char, value: &Value) {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => self.string(text),
            'x' | 'X' => self.hexadecimal(text, verb),
            'q' => self.quoted(text),
            _ => self.bad_verb(value, verb),
        }
    }

    /// Go's `%!d(string=x)`.
    pub(super) fn bad_verb(&mut self, value: &Value, verb: char) {
        self.sink.push(b"%!");
        self.sink.push(verb.encode_utf8(&mut [0; 4]).as_bytes());
        self.sink.push_byte(b'(');
        if matches!(value, Value::Nil | Value::Missing) {
            self.sink.push(b"<nil>");
        } else {
            self.sink.push(value.go_type().as_bytes());
            self.sink.push_byte(b'=');
            self.value(value, 'v', 0);
        }
        self.sink.push_byte(b')');
    }
}
