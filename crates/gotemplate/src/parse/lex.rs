//! The lexer: from template text to tokens, on demand, with Go's rules for delimiters, trimming
//! and terminators.
//!
//! It never fails twice: after an error no more tokens are asked for.

mod literals;

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

/// A token: what it is and which bytes of the text it covers. Small enough for two registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    start: u32,
    end: u32,
}

impl Token {
    /// Where it begins.
    pub(crate) fn start(&self) -> usize {
        self.start as usize
    }

    /// Where it has ended.
    pub(crate) fn end(&self) -> usize {
        self.end as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// How Go shows a token in "unexpected …".
    pub(crate) fn describe(&self, text: &str) -> String {
        let value = &text[self.start()..self.end()];
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

/// Boxed, because every token is returned beside it.
type Lexed<T> = Result<T, Box<LexError>>;

/// What Go's lexer takes for white space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

pub(crate) struct Lexer<'t> {
    text: &'t str,
    left: &'t str,
    right: &'t str,
    right_first: u8,
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
            right_first: right.as_bytes().first().copied().unwrap_or_default(),
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

    /// The bytes from here on. Most questions are answered by the first, whatever follows.
    fn bytes(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.position..]
    }

    fn peek(&self) -> Option<char> {
        match self.bytes().first() {
            Some(byte) if byte.is_ascii() => Some((*byte).into()),
            _ => self.rest().chars().next(),
        }
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

    /// White space is ASCII: bytes will do.
    fn skip_spaces(&mut self) {
        let spaces = self.bytes().iter().take_while(|byte| is_space(**byte));
        self.position += spaces.count();
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
            start: self.start as u32,
            end: self.position as u32,
        };
        self.start = self.position;
        token
    }

    #[cold]
    fn error<T>(&self, message: impl Into<String>) -> Lexed<T> {
        Err(Box::new(LexError {
            message: message.into(),
            start: self.start,
        }))
    }

    /// Whether the next token begins with a dot.
    pub(crate) fn at_dot(&self) -> bool {
        self.bytes().first() == Some(&b'.')
    }

    /// The next token. At the end of the text it is [`Kind::End`], every time.
    pub(crate) fn next_token(&mut self) -> Lexed<Token> {
        if self.inside_action {
            self.inside_action()
        } else {
            self.outside_action()
        }
    }

    #[inline(never)] // Its frame would be every token's.
    fn outside_action(&mut self) -> Lexed<Token> {
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
                if has_left_trim_marker(&self.text.as_bytes()[delimiter + self.left.len()..]) {
                    let bytes = text.as_bytes().iter();
                    let spaces = bytes.rev().take_while(|byte| is_space(**byte));
                    self.position -= spaces.count();
                }
                let token = self.emit(Kind::Text);
                self.position = delimiter;
                self.ignore();
                if !token.is_empty() {
                    return Ok(token);
                }
            }
            if let Some(token) = self.left_delimiter()? {
                return Ok(token);
            }
        }
    }

    /// The left delimiter, or none where it begins a comment.
    fn left_delimiter(&mut self) -> Lexed<Option<Token>> {
        self.position += self.left.len();
        let marker = if has_left_trim_marker(self.bytes()) {
            2
        } else {
            0
        };
        if self.bytes()[marker..].starts_with(b"/*") {
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

    fn comment(&mut self) -> Lexed<()> {
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
        let rest = self.bytes();
        if has_right_trim_marker(rest) && begins(&rest[2..], self.right) {
            return Some(true);
        }
        begins(rest, self.right).then_some(false)
    }

    fn pass_right_delimiter(&mut self, trims: bool) {
        self.position += self.right.len();
        if trims {
            self.position += 2;
            self.skip_spaces();
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
            self.skip_spaces();
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn inside_action(&mut self) -> Lexed<Token> {
        let first = self.bytes().first();
        let may_end = first.is_some_and(|byte| is_space(*byte) || *byte == self.right_first);
        if may_end && let Some(trims) = self.at_right_delimiter() {
            if self.depth > 0 {
                return self.error("unclosed left paren");
            }
            return Ok(self.right_delimiter(trims));
        }
        let Some(character) = self.next() else {
            return self.error("unclosed action");
        };
        let kind = match character {
            ' ' | '\t' | '\r' | '\n' => return Ok(self.space()),
            'a'..='z' | 'A'..='Z' | '_' => self.identifier()?,
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
            _ if is_alphanumeric(character) => self.identifier()?,
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

    fn identifier(&mut self) -> Lexed<Kind> {
        let kind = self.word(Kind::Identifier)?;
        let word = &self.text[self.start..self.position];
        Ok(self.keyword(word).unwrap_or(kind))
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
        self.skip_spaces();
        let last = self.position - 1;
        let rest = &self.text.as_bytes()[last..];
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
    fn word(&mut self, kind: Kind) -> Lexed<Kind> {
        let plain = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        self.position += self.bytes().iter().take_while(plain).count();
        if self.bytes().first().is_some_and(|byte| !byte.is_ascii()) {
            self.skip(is_alphanumeric);
        }
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
        match self.bytes() {
            [] | [b'.' | b',' | b'|' | b':' | b')' | b'(', ..] => true,
            [first, ..] if is_space(*first) => true,
            rest => begins(rest, self.right),
        }
    }
}

/// Whether a delimiter begins a text. Mostly the first byte tells that it doesn't.
fn begins(text: &[u8], delimiter: &str) -> bool {
    text.first() == delimiter.as_bytes().first() && text.starts_with(delimiter.as_bytes())
}

/// Where a delimiter is in a text. Quicker than the standard library's search, which prepares for
/// needles that are worth it.
fn find(text: &str, delimiter: &str) -> Option<usize> {
    let first = delimiter.chars().next()?;
    let mut from = 0;
    loop {
        let rest = &text[from..];
        from += match first {
            // The same, but what is searched for is known when this is compiled.
            '{' => rest.find('{')?,
            _ => rest.find(first)?,
        };
        if begins(&text.as_bytes()[from..], delimiter) {
            return Some(from);
        }
        from += first.len_utf8();
    }
}

fn has_left_trim_marker(text: &[u8]) -> bool {
    matches!(text, [b'-', b' ' | b'\t' | b'\r' | b'\n', ..])
}

fn has_right_trim_marker(text: &[u8]) -> bool {
    matches!(text, [b' ' | b'\t' | b'\r' | b'\n', b'-', ..])
}
