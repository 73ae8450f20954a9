//! The lexer: from template text to tokens, on demand, with Go's rules for delimiters, trimming
//! and terminators.
//!
//! It never fails twice: after an error no more tokens are asked for.

use crate::quote::quoted;
use crate::unicode::{describe, is_alphanumeric, is_print};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    End,
    Field,
    Identifier,
    LeftDelimiter,
    LeftParenthesis,
    Number,
    Pipe,
    RawString,
    RightDelimiter,
    RightParenthesis,
    Space,
    String,
    Text,
    Variable,
    Dot,
    Nil,
    Keyword(Keyword),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Range,
    Template,
    With,
}

/// A token: what it is and which bytes of the text it covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    /// How Go shows a token in "unexpected …".
    pub(crate) fn describe(&self, text: &str) -> String {
        let value = &text[self.start..self.end];
        match self.kind {
            Kind::End => "EOF".to_owned(),
            Kind::Keyword(_) | Kind::Dot | Kind::Nil => format!("<{value}>"),
            _ if value.len() > 10 => {
                let short: String = value.chars().take(10).collect();
                format!("{}...", quoted(&short))
            }
            _ => quoted(value),
        }
    }
}

/// An error in the text itself: Go's words, and where.
#[derive(Debug)]
pub(crate) struct LexError {
    pub(crate) message: String,
    pub(crate) start: usize,
}

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

fn is_space(character: char) -> bool {
    SPACES.contains(&character)
}

pub(crate) struct Lexer<'t> {
    text: &'t str,
    left: &'t str,
    right: &'t str,
    position: usize,
    start: usize,
    inside_action: bool,
    depth: u32,
    /// Whether `break` and `continue` are keywords; a function of that name makes them identifiers.
    pub(crate) break_is_keyword: bool,
    pub(crate) continue_is_keyword: bool,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str, left: &'t str, right: &'t str) -> Self {
        Self {
            text,
            left,
            right,
            position: 0,
            start: 0,
            inside_action: false,
            depth: 0,
            break_is_keyword: true,
            continue_is_keyword: true,
        }
    }

    /// A lexer that begins inside an action and stops at the end of the text: for showing an
    /// expression again.
    pub(crate) fn inside(text: &'t str, left: &'t str, right: &'t str) -> Self {
        Self {
            inside_action: true,
            ..Self::new(text, left, right)
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.position += character.len_utf8();
        Some(character)
    }

    fn accept(&mut self, accepted: impl Fn(char) -> bool) -> bool {
        match self.peek() {
            Some(character) if accepted(character) => {
                self.position += character.len_utf8();
                true
            }
            _ => false,
        }
    }

    fn skip(&mut self, accepted: impl Fn(char) -> bool) {
        while self.accept(&accepted) {}
    }

    fn ignore(&mut self) {
        self.start = self.position;
    }

    fn emit(&mut self, kind: Kind) -> Token {
        let token = Token {
            kind,
            start: self.start,
            end: self.position,
        };
        self.start = self.position;
        token
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, LexError> {
        Err(LexError {
            message: message.into(),
            start: self.start,
        })
    }

    /// The next token. At the end of the text it is [`Kind::End`], every time.
    pub(crate) fn next_token(&mut self) -> Result<Token, LexError> {
        if self.inside_action {
            return self.inside_action();
        }
        loop {
            let Some(ahead) = find(self.rest(), self.left) else {
                self.position = self.text.len();
                let kind = if self.position > self.start {
                    Kind::Text
                } else {
                    Kind::End
                };
                return Ok(self.emit(kind));
            };
            if ahead > 0 {
                self.position += ahead;
                let delimiter = self.position;
                let text = &self.text[self.start..delimiter];
                if has_left_trim_marker(&self.text[delimiter + self.left.len()..]) {
                    self.position = self.start + text.trim_end_matches(SPACES).len();
                }
                let token = self.emit(Kind::Text);
                self.position = delimiter;
                self.ignore();
                if token.end > token.start {
                    return Ok(token);
                }
            }
            if let Some(token) = self.left_delimiter()? {
                return Ok(token);
            }
        }
    }

    /// The left delimiter, or none where it begins a comment.
    fn left_delimiter(&mut self) -> Result<Option<Token>, LexError> {
        self.position += self.left.len();
        let marker = if has_left_trim_marker(self.rest()) {
            2
        } else {
            0
        };
        if self.rest()[marker..].starts_with("/*") {
            self.position += marker;
            self.ignore();
            self.comment()?;
            return Ok(None);
        }
        let token = self.emit(Kind::LeftDelimiter);
        self.inside_action = true;
        self.position += marker;
        self.ignore();
        self.depth = 0;
        Ok(Some(token))
    }

    fn comment(&mut self) -> Result<(), LexError> {
        self.position += 2;
        let Some(ahead) = self.rest().find("*/") else {
            return self.error("unclosed comment");
        };
        self.position += ahead + 2;
        let Some(trims) = self.at_right_delimiter() else {
            return self.error("comment ends before closing delimiter");
        };
        self.pass_right_delimiter(trims);
        self.ignore();
        Ok(())
    }

    /// Whether the right delimiter is here, and if so, whether it trims.
    fn at_right_delimiter(&self) -> Option<bool> {
        let rest = self.rest();
        if has_right_trim_marker(rest) && begins(&rest[2..], self.right) {
            return Some(true);
        }
        begins(rest, self.right).then_some(false)
    }

    fn pass_right_delimiter(&mut self, trims: bool) {
        self.position += self.right.len();
        if trims {
            self.position += 2;
            self.skip(is_space);
        }
    }

    fn right_delimiter(&mut self, trims: bool) -> Token {
        if trims {
            self.position += 2;
            self.ignore();
        }
        self.position += self.right.len();
        let token = self.emit(Kind::RightDelimiter);
        if trims {
            self.skip(is_space);
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn inside_action(&mut self) -> Result<Token, LexError> {
        if let Some(trims) = self.at_right_delimiter() {
            if self.depth > 0 {
                return self.error("unclosed left paren");
            }
            return Ok(self.right_delimiter(trims));
        }
        let Some(character) = self.next() else {
            return self.error("unclosed action");
        };
        let kind = match character {
            _ if is_space(character) => return Ok(self.space()),
            '=' => Kind::Assign,
            ':' => {
                if self.next() != Some('=') {
                    return self.error("expected :=");
                }
                Kind::Declare
            }
            '|' => Kind::Pipe,
            '"' => self.quoted('"', "unterminated quoted string")?,
            '\'' => self.quoted('\'', "unterminated character constant")?,
            '`' => {
                self.skip(|inner| inner != '`');
                if self.next().is_none() {
                    return self.error("unterminated raw quoted string");
                }
                Kind::RawString
            }
            '$' if self.at_terminator() => Kind::Variable,
            '$' => self.word(Kind::Variable)?,
            '.' if self.peek().is_some_and(|after| !after.is_ascii_digit()) => {
                if self.at_terminator() {
                    Kind::Dot
                } else {
                    self.word(Kind::Field)?
                }
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.position = self.start;
                self.number()?
            }
            '(' => {
                self.depth += 1;
                Kind::LeftParenthesis
            }
            ')' => {
                if self.depth == 0 {
                    return self.error("unexpected right paren");
                }
                self.depth -= 1;
                Kind::RightParenthesis
            }
            _ if is_alphanumeric(character) => {
                let kind = self.word(Kind::Identifier)?;
                self.keyword(&self.text[self.start..self.position])
                    .unwrap_or(kind)
            }
            _ if character.is_ascii() && is_print(character) => Kind::Char,
            _ => {
                return self.error(format!(
                    "unrecognized character in action: {}",
                    describe(character)
                ));
            }
        };
        Ok(self.emit(kind))
    }

    fn keyword(&self, word: &str) -> Option<Kind> {
        Some(match word {
            "true" | "false" => Kind::Bool,
            "nil" => Kind::Nil,
            "block" => Kind::Keyword(Keyword::Block),
            "break" if self.break_is_keyword => Kind::Keyword(Keyword::Break),
            "continue" if self.continue_is_keyword => Kind::Keyword(Keyword::Continue),
            "define" => Kind::Keyword(Keyword::Define),
            "else" => Kind::Keyword(Keyword::Else),
            "end" => Kind::Keyword(Keyword::End),
            "if" => Kind::Keyword(Keyword::If),
            "range" => Kind::Keyword(Keyword::Range),
            "template" => Kind::Keyword(Keyword::Template),
            "with" => Kind::Keyword(Keyword::With),
            _ => return None,
        })
    }

    /// A run of spaces; the last one may belong to a trimming right delimiter.
    fn space(&mut self) -> Token {
        self.skip(is_space);
        let last = self.position - 1;
        let rest = &self.text[last..];
        if has_right_trim_marker(rest) && begins(&rest[2..], self.right) {
            self.position = last;
            if last == self.start {
                // With open parentheses Go's lexer doesn't look at them here either.
                return self.right_delimiter(true);
            }
        }
        self.emit(Kind::Space)
    }

    /// The rest of a field, variable or identifier, its first character read.
    fn word(&mut self, kind: Kind) -> Result<Kind, LexError> {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let bytes = self.rest().bytes();
        self.position += bytes.take_while(plain).count();
        self.skip(is_alphanumeric);
        if self.at_terminator() {
            return Ok(kind);
        }
        match self.peek() {
            Some(character) => self.error(format!("bad character {}", describe(character))),
            None => Ok(kind),
        }
    }

    /// Whether an identifier may end here.
    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(character) if is_space(character) => true,
            Some(_) => begins(self.rest(), self.right),
        }
    }

    fn quoted(&mut self, quote: char, unterminated: &str) -> Result<Kind, LexError> {
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

    fn number(&mut self) -> Result<Kind, LexError> {
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

/// Whether a delimiter begins a text. Mostly the first byte tells that it doesn't.
fn begins(text: &str, delimiter: &str) -> bool {
    text.as_bytes().first() == delimiter.as_bytes().first() && text.starts_with(delimiter)
}

/// Where a delimiter is in a text. Quicker than the standard library's search, which prepares for
/// needles that are worth it.
fn find(text: &str, delimiter: &str) -> Option<usize> {
    let first = delimiter.chars().next()?;
    let mut from = 0;
    loop {
        from += text[from..].find(first)?;
        if begins(&text[from..], delimiter) {
            return Some(from);
        }
        from += first.len_utf8();
    }
}

fn has_left_trim_marker(text: &str) -> bool {
    matches!(text.as_bytes(), [b'-', b' ' | b'\t' | b'\r' | b'\n', ..])
}

fn has_right_trim_marker(text: &str) -> bool {
    matches!(text.as_bytes(), [b' ' | b'\t' | b'\r' | b'\n', b'-', ..])
}
