//! The verbs for whole numbers, characters and strings, with width, precision and flags.

use super::formatter::Formatter;
use crate::quote::{can_backquote, quote, quote_char};
use crate::unicode::{count, is_print, truncate};

impl Formatter<'_, '_> {
    /// Writes bytes, padded to the width.
    pub(super) fn pad(&mut self, bytes: &[u8]) {
        let padding = match self.flags.width {
            None | Some(0) => 0,
            Some(width) => width.saturating_sub(count(bytes)),
        };
        if self.flags.minus {
            self.sink.push(bytes);
            self.padding(padding);
        } else {
            self.padding(padding);
            self.sink.push(bytes);
        }
    }

    /// Writes padding. Zeros stand on the left only.
    pub(super) fn padding(&mut self, count: usize) {
        let zero = self.flags.zero && !self.flags.minus;
        self.sink.pad(if zero { b'0' } else { b' ' }, count);
    }

    /// Writes bytes, padded with spaces whatever the flags.
    pub(super) fn pad_with_spaces(&mut self, bytes: &[u8]) {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(bytes);
        self.flags.zero = zero;
    }

    fn truncated<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        self.flags
            .precision
            .map_or(text, |precision| truncate(text, precision))
    }

    pub(super) fn string(&mut self, text: &[u8]) {
        self.pad(self.truncated(text));
    }

    pub(super) fn quoted(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        if self.flags.sharp && can_backquote(text) {
            let mut raw = vec![b'`'];
            raw.extend_from_slice(text);
            raw.push(b'`');
            self.pad(&raw);
        } else {
            self.pad(&quote(text, self.flags.plus));
        }
    }

    /// A string's bytes as hexadecimal digits.
    pub(super) fn hexadecimal(&mut self, text: &[u8], verb: char) {
        let flags = self.flags;
        let length = flags
            .precision
            .map_or(text.len(), |precision| precision.min(text.len()));
        if length == 0 {
            self.padding(flags.width.unwrap_or(0));
            return;
        }
        let mut digits = Vec::with_capacity(length * 2 + 2);
        for (index, byte) in text[..length].iter().enumerate() {
            if flags.space && index > 0 {
                digits.push(b' ');
            }
            if flags.sharp && (flags.space || index == 0) {
                digits.extend_from_slice(if verb == 'x' { b"0x" } else { b"0X" });
            }
            digits.extend_from_slice(
                match verb {
                    'x' => format!("{byte:02x}"),
                    _ => format!("{byte:02X}"),
                }
                .as_bytes(),
            );
        }
        self.pad(&digits);
    }

    pub(super) fn integer(&mut self, number: u64, signed: bool, verb: char) {
        let flags = self.flags;
        let negative = signed && (number as i64) < 0;
        let magnitude = if negative {
            number.wrapping_neg()
        } else {
            number
        };
        if flags.precision == Some(0) && magnitude == 0 {
            // "Print nothing", but the padding.
            let zero = std::mem::replace(&mut self.flags.zero, false);
            self.padding(flags.width.unwrap_or(0));
            self.flags.zero = zero;
            return;
        }
        let digits = match verb {
            'b' => format!("{magnitude:b}"),
            'o' | 'O' => format!("{magnitude:o}"),
            'x' => format!("{magnitude:x}"),
            'X' => format!("{magnitude:X}"),
            _ => magnitude.to_string(),
        };
        let signed = negative || flags.plus || flags.space;
        let minimum = match (flags.precision, flags.width) {
            (Some(precision), _) => precision,
            (None, Some(width)) if flags.zero && !flags.minus => {
                width.saturating_sub(usize::from(signed))
            }
            _ => 0,
        };
        let mut output = Vec::with_capacity(minimum.max(digits.len()) + 3);
        output.extend_from_slice(match (negative, flags.plus, flags.space) {
            (true, ..) => b"-",
            (false, true, _) => b"+",
            (false, false, true) => b" ",
            (false, false, false) => b"",
        });
        let zeros = minimum.saturating_sub(digits.len());
        output.extend_from_slice(match verb {
            'O' if flags.sharp && zeros == 0 && !digits.starts_with('0') => b"0o0",
            'O' => b"0o",
            'b' if flags.sharp => b"0b",
            'o' if flags.sharp && zeros == 0 && !digits.starts_with('0') => b"0",
            'x' if flags.sharp => b"0x",
            'X' if flags.sharp => b"0X",
            _ => b"",
        });
        output.resize(output.len() + zeros, b'0');
        output.extend_from_slice(digits.as_bytes());
        self.pad_with_spaces(&output);
    }

    /// `%c`; what isn't a character is U+FFFD.
    pub(super) fn character(&mut self, code: u64) {
        self.pad(character(code).encode_utf8(&mut [0; 4]).as_bytes());
    }

    pub(super) fn quoted_character(&mut self, code: u64) {
        self.pad(&quote_char(character(code), self.flags.plus));
    }

    /// `%U`.
    pub(super) fn unicode(&mut self, code: u64) {
        let precision = self.flags.precision.unwrap_or(0).max(4);
        let digits = format!("{code:X}");
        let mut output = b"U+".to_vec();
        output.resize(output.len() + precision.saturating_sub(digits.len()), b'0');
        output.extend_from_slice(digits.as_bytes());
        let shown = u32::try_from(code)
            .ok()
            .and_then(char::from_u32)
            .filter(|code| is_print(*code));
        if let (true, Some(shown)) = (self.flags.sharp, shown) {
            output.extend_from_slice(format!(" '{shown}'").as_bytes());
        }
        self.pad_with_spaces(&output);
    }
}

fn character(code: u64) -> char {
    u32::try_from(code)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or('\u{fffd}')
}
