//! Go's `Printf`: reading a format.

use super::Sink;
use super::formatter::{Flags, Formatter};
use crate::unicode::decode;
use crate::value::Value;

/// A format that is being read.
struct Format<'a> {
    text: &'a [u8],
    at: usize,
    arguments: &'a [&'a Value],
    /// The next argument.
    argument: usize,
    /// The format chose arguments by number: then none counts as extra.
    reordered: bool,
    /// The latest choice was good.
    good: bool,
    widest: usize,
    too_wide: Option<u64>,
}

/// What Go takes for too large a number in a format: `%!(BADWIDTH)` and the like.
const LARGEST: usize = 1_000_000;

/// A width or precision is above the caller's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooWide(pub(crate) u64);

/// Writes what `format` makes of the arguments. Widths and precisions above `widest` are an error,
/// unless that is Go's own limit, above which they print as Go has them.
pub(crate) fn printf(
    sink: &mut Sink<'_>,
    format: &[u8],
    arguments: &[&Value],
    widest: usize,
) -> Result<(), TooWide> {
    let mut formatter = Formatter::new(sink);
    let mut format = Format {
        text: format,
        at: 0,
        arguments,
        argument: 0,
        reordered: false,
        good: true,
        widest,
        too_wide: None,
    };
    format.run(&mut formatter);
    format.too_wide.map_or(Ok(()), |width| Err(TooWide(width)))
}

impl Format<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn run(&mut self, formatter: &mut Formatter<'_, '_>) {
        while self.at < self.text.len() && !formatter.sink.overflowed() && self.too_wide.is_none() {
            let rest = &self.text[self.at..];
            let plain = rest
                .iter()
                .position(|byte| *byte == b'%')
                .unwrap_or(rest.len());
            formatter.sink.push(&rest[..plain]);
            self.at += plain;
            if self.at < self.text.len() {
                self.at += 1;
                self.good = true;
                self.verb(formatter);
            }
        }
        if !self.reordered && self.argument < self.arguments.len() {
            self.extra(formatter);
        }
    }

    /// Go's `%!(EXTRA int=2)`.
    fn extra(&self, formatter: &mut Formatter<'_, '_>) {
        formatter.flags = Flags::default();
        formatter.sink.push(b"%!(EXTRA ");
        for (index, argument) in self.arguments[self.argument..].iter().enumerate() {
            if index > 0 {
                formatter.sink.push(b", ");
            }
            if !matches!(argument, Value::Nil | Value::Missing) {
                formatter.sink.push(argument.go_type().as_bytes());
                formatter.sink.push_byte(b'=');
            }
            formatter.argument(argument, 'v');
        }
        formatter.sink.push_byte(b')');
    }

    fn verb(&mut self, formatter: &mut Formatter<'_, '_>) {
        formatter.flags = self.flags();
        let mut indexed = self.index();
        self.width(formatter, &mut indexed);
        self.precision(formatter, &mut indexed);
        if self.too_wide.is_some() {
            return;
        }
        if !indexed {
            self.index();
        }
        if self.at >= self.text.len() {
            formatter.sink.push(b"%!(NOVERB)");
            return;
        }
        let (verb, length) = decode(&self.text[self.at..]);
        let verb = verb.unwrap_or('\u{fffd}');
        self.at += length;
        if verb == '%' {
            formatter.sink.push_byte(b'%');
            return;
        }
        let problem: &[u8] = if !self.good {
            b"(BADINDEX)"
        } else if self.argument >= self.arguments.len() {
            b"(MISSING)"
        } else {
            if matches!(verb, 'v' | 'w') {
                let flags = &mut formatter.flags;
                flags.sharp_v = std::mem::take(&mut flags.sharp);
                flags.plus_v = std::mem::take(&mut flags.plus);
            }
            formatter.argument(self.arguments[self.argument], verb);
            self.argument += 1;
            return;
        };
        formatter.sink.push(b"%!");
        formatter
            .sink
            .push(verb.encode_utf8(&mut [0; 4]).as_bytes());
        formatter.sink.push(problem);
    }

    fn flags(&mut self) -> Flags {
        let mut flags = Flags::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
        flags
    }

    fn width(&mut self, formatter: &mut Formatter<'_, '_>, indexed: &mut bool) {
        if self.peek() == Some(b'*') {
            self.at += 1;
            let width = self.number_argument();
            let flags = &mut formatter.flags;
            flags.width = width.map(|width| width.unsigned_abs() as usize);
            if width.is_some_and(|width| width < 0) {
                flags.minus = true;
                flags.zero = false;
            }
            if width.is_none() {
                formatter.sink.push(b"%!(BADWIDTH)");
            }
            *indexed = false;
        } else {
            formatter.flags.width = self.number();
            if *indexed && formatter.flags.width.is_some() {
                self.good = false;
            }
        }
    }

    fn precision(&mut self, formatter: &mut Formatter<'_, '_>, indexed: &mut bool) {
        if self.peek() != Some(b'.') || self.at + 1 >= self.text.len() {
            return;
        }
        self.at += 1;
        if *indexed {
            self.good = false;
        }
        *indexed = self.index();
        if self.peek() == Some(b'*') {
            self.at += 1;
            let precision = self.number_argument();
            formatter.flags.precision =
                precision.and_then(|precision| usize::try_from(precision).ok());
            if formatter.flags.precision.is_none() {
                formatter.sink.push(b"%!(BADPREC)");
            }
            *indexed = false;
        } else {
            formatter.flags.precision = Some(self.number().unwrap_or(0));
        }
    }

    /// A number in the format. One that is too large ends the format, as in Go.
    fn number(&mut self) -> Option<usize> {
        let (number, end) = number(&self.text[self.at..]);
        if number.is_none() && end > 0 {
            // Go's own refusal; but a lower limit comes first.
            let digits = self.text[self.at..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit());
            let value = digits.fold(0_u64, |value, digit| {
                value
                    .saturating_mul(10)
                    .saturating_add(u64::from(digit - b'0'))
            });
            self.check_width(value);
        }
        self.check_width(number.unwrap_or(0) as u64);
        self.at += end;
        number
    }

    fn check_width(&mut self, width: u64) {
        if self.widest < LARGEST && width > self.widest as u64 {
            self.too_wide = Some(width);
        }
    }

    /// A number that an argument gives, for `*`.
    fn number_argument(&mut self) -> Option<i64> {
        let argument = self.arguments.get(self.argument)?;
        self.argument += 1;
        let number = match argument {
            Value::Int(number) => *number,
            Value::Uint8(number) => (*number).into(),
            _ => return None,
        };
        self.check_width(number.unsigned_abs());
        (number.unsigned_abs() <= LARGEST as u64).then_some(number)
    }

    /// An argument's number, such as `[2]`; whether there is one.
    fn index(&mut self) -> bool {
        if self.peek() != Some(b'[') {
            return false;
        }
        self.reordered = true;
        let rest = &self.text[self.at..];
        let closing = if rest.len() < 3 {
            None
        } else {
            rest.iter().position(|byte| *byte == b']')
        };
        let Some(closing) = closing else {
            self.at += 1;
            self.good = false;
            return false;
        };
        self.at += closing + 1;
        let digits = &rest[1..closing];
        let (number, end) = number(digits);
        let Some(number) = number.filter(|_| end == digits.len()) else {
            self.good = false;
            return false;
        };
        if (1..=self.arguments.len()).contains(&number) {
            self.argument = number - 1;
        } else {
            self.good = false;
        }
        true
    }
}

/// The number at the beginning of bytes, and where it ends: at the end of all, if it is too large.
fn number(bytes: &[u8]) -> (Option<usize>, usize) {
    let (mut number, mut any) = (0_usize, false);
    for (index, byte) in bytes.iter().enumerate() {
        if !byte.is_ascii_digit() {
            return (any.then_some(number), index);
        }
        if number > LARGEST {
            return (None, bytes.len());
        }
        number = number * 10 + usize::from(byte - b'0');
        any = true;
    }
    (any.then_some(number), bytes.len())
}
