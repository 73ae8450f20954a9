//! Literals: strings, characters and numbers, as far as the lexer looks at them.

use super::{Kind, Lexed, Lexer};
use crate::quote::quoted;
use crate::unicode::is_alphanumeric;

impl Lexer<'_> {
    pub(super) fn quoted(&mut self, quote: char, unterminated: &str) -> Lexed<Kind> {
        loop {
            let end = match self.next() {
                Some('\\') => !matches!(self.next(), None | Some('\n')),
                None | Some('\n') => false,
                Some(character) if character == quote => {
                    return Ok(if quote == '"' {
                        Kind::String
                    } else {
                        Kind::CharConstant
                    });
                }
                Some(_) => true,
            };
            if !end {
                return self.error(unterminated);
            }
        }
    }

    pub(super) fn number(&mut self) -> Lexed<Kind> {
        let mut kind = Kind::Number;
        let mut good = self.scan_number();
        if good && matches!(self.peek(), Some('+' | '-')) {
            kind = Kind::Complex;
            good = self.scan_number() && self.text[..self.position].ends_with('i');
        }
        if good {
            return Ok(kind);
        }
        let number = quoted(&self.text[self.start..self.position]);
        self.error(format!("bad number syntax: {number}"))
    }

    fn scan_number(&mut self) -> bool {
        self.accept(|sign| matches!(sign, '+' | '-'));
        let mut radix = 10;
        if self.accept(|digit| digit == '0') {
            if self.accept(|prefix| matches!(prefix, 'x' | 'X')) {
                radix = 16;
            } else if self.accept(|prefix| matches!(prefix, 'o' | 'O')) {
                radix = 8;
            } else if self.accept(|prefix| matches!(prefix, 'b' | 'B')) {
                radix = 2;
            }
        }
        let digit = |character: char| character == '_' || character.is_digit(radix);
        self.skip(digit);
        if self.accept(|point| point == '.') {
            self.skip(digit);
        }
        let exponent = match radix {
            10 => ['e', 'E'],
            16 => ['p', 'P'],
            _ => ['\0', '\0'],
        };
        if radix > 8 && self.accept(|character| exponent.contains(&character)) {
            self.accept(|sign| matches!(sign, '+' | '-'));
            self.skip(|character| character == '_' || character.is_ascii_digit());
        }
        self.accept(|unit| unit == 'i');
        // Go shows the character that spoils the number, too.
        !self.accept(is_alphanumeric)
    }
}
