//! The shared state of the parser: position, whitespace, names and errors.

use std::sync::Arc;

use super::ast::Ident;
use super::{LONGEST_TEXT, MOST_LEVELS};
use crate::error::{Error, Span};

/// Boxed, since errors are rare but the result is passed around often.
pub(super) type Parsed<T> = Result<T, Box<Error>>;

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) bytes: &'t [u8],
    file: u32,
    pub(super) at: usize,
    /// Whether newlines are significant; within brackets they aren't.
    pub(super) newlines: bool,
    levels: u32,
    /// The `/*` of an unclosed comment.
    pub(super) open_comment: Option<Span>,
}

impl<'t> Parser<'t> {
    /// Fails if the text is too long.
    pub(super) fn new(text: &'t str, file: u32) -> Result<Self, Error> {
        if text.len() > LONGEST_TEXT {
            let limit = LONGEST_TEXT >> 20;
            return Err(Error::new(
                Span::new(file, 0, 0),
                format!("The text is longer than {limit} MB"),
            )
            .detail(format!("this has {} MB", text.len().div_ceil(1 << 20))));
        }
        Ok(Self {
            text,
            bytes: text.as_bytes(),
            file,
            at: if text.starts_with('\u{feff}') { 3 } else { 0 },
            newlines: true,
            levels: 0,
            open_comment: None,
        })
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start, end)
    }

    /// From `start` to here.
    pub(super) fn span_from(&self, start: usize) -> Span {
        self.span(start, self.at)
    }

    /// The current byte; 0 at the end, and for a NUL, which is never valid.
    pub(super) fn byte(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    pub(super) fn byte_after(&self, distance: usize) -> u8 {
        self.bytes.get(self.at + distance).copied().unwrap_or(0)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn starts_with(&self, what: &str) -> bool {
        self.bytes[self.at..].starts_with(what.as_bytes())
    }

    pub(super) fn is_at_newline(&self) -> bool {
        self.byte() == b'\n' || self.byte() == b'\r' && self.byte_after(1) == b'\n'
    }

    /// Moves to the end of this line, before its newline.
    pub(super) fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(rest.len());
        self.at += length;
        if length > 0 && !self.is_at_end() && self.bytes[self.at - 1] == b'\r' {
            self.at -= 1;
        }
    }

    /// Skips spaces and comments, and newlines if they aren't significant. Returns the current
    /// byte.
    pub(super) fn peek(&mut self) -> u8 {
        loop {
            match self.byte() {
                b' ' | b'\t' => self.at += 1,
                b'\n' if !self.newlines => self.at += 1,
                b'\r' if !self.newlines || self.byte_after(1) != b'\n' => self.at += 1,
                b'#' => self.skip_line(),
                b'/' if self.byte_after(1) == b'/' => self.skip_line(),
                b'/' if self.byte_after(1) == b'*' => {
                    let start = self.at;
                    match self.text[start + 2..].find("*/") {
                        Some(length) => self.at = start + length + 4,
                        None => {
                            self.at = self.bytes.len();
                            self.open_comment = Some(self.span(start, start + 2));
                        }
                    }
                }
                byte => return byte,
            }
        }
    }

    /// Skips whitespace, comments and empty lines.
    pub(super) fn skip_lines(&mut self) {
        let newlines = std::mem::replace(&mut self.newlines, false);
        self.peek();
        self.newlines = newlines;
    }

    /// Runs `parse` with newlines significant or not.
    pub(super) fn with_newlines<T>(
        &mut self,
        newlines: bool,
        parse: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = std::mem::replace(&mut self.newlines, newlines);
        let result = parse(self);
        self.newlines = outer;
        result
    }

    /// Runs `parse` one nesting level deeper. Fails if that is too deep.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.levels >= MOST_LEVELS {
            let width = self.text[self.at..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
            let here = self.span(self.at, self.at + width);
            let summary = format!("This is nested more than {MOST_LEVELS} levels deep");
            return Err(Error::new(here, summary)
                .hint("give a name to a part of it under `locals`")
                .into());
        }
        self.levels += 1;
        let result = parse(self);
        self.levels -= 1;
        result
    }

    /// Parses a name, if there is one.
    pub(super) fn name(&mut self) -> Option<&'t str> {
        let start = self.at;
        match self.byte() {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.at += 1,
            0x80.. => {
                let first = self.text[start..].chars().next()?;
                if !unicode_ident::is_xid_start(first) {
                    return None;
                }
                self.at += first.len_utf8();
            }
            _ => return None,
        }
        loop {
            match self.byte() {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => self.at += 1,
                0x80.. => match self.text[self.at..].chars().next() {
                    Some(next) if unicode_ident::is_xid_continue(next) => {
                        self.at += next.len_utf8();
                    }
                    _ => break,
                },
                _ => break,
            }
        }
        Some(&self.text[start..self.at])
    }

    pub(super) fn ident(&mut self) -> Option<Ident> {
        let start = self.at;
        let name = Arc::from(self.name()?);
        Some(Ident {
            name,
            span: self.span_from(start),
        })
    }

    /// The current token, and its description for messages.
    pub(super) fn found(&mut self) -> (Span, String) {
        let newlines = std::mem::replace(&mut self.newlines, true);
        self.peek();
        self.newlines = newlines;
        let start = self.at;
        if self.is_at_end() {
            return (self.span(start, start), "the end of the file".to_owned());
        }
        if self.is_at_newline() {
            return (self.span(start, start), "the end of the line".to_owned());
        }
        let length = match self.name() {
            Some(name) => name.len(),
            None => self.text[start..].chars().next().map_or(0, char::len_utf8),
        };
        self.at = start;
        let what = &self.text[start..start + length];
        let shown = if what.chars().count() > 40 {
            "a long name".into()
        } else {
            format!("`{what}`")
        };
        (self.span(start, start + length), shown)
    }

    /// The error that another token was expected here.
    pub(super) fn unexpected(&mut self, expected: impl Into<String>) -> Error {
        let (span, found) = self.found();
        let error = Error::new(span, expected).detail(format!("found {found} here"));
        match self.text[self.at..].chars().next() {
            Some('\'' | '`' | '“' | '”' | '„' | '‘' | '’') => {
                error.hint("strings must be in double quotes: `\"…\"`")
            }
            _ => error,
        }
    }

    /// Consumes `byte`; fails if it isn't the current byte.
    pub(super) fn expect(&mut self, byte: u8, why: &str) -> Parsed<()> {
        if self.peek() == byte {
            self.at += 1;
            return Ok(());
        }
        let wanted = char::from(byte);
        Err(self.unexpected(format!("Expected `{wanted}` {why}")).into())
    }

    /// Consumes the closing bracket for the one at `open`; fails if it isn't here.
    pub(super) fn close(&mut self, byte: u8, open: usize) -> Parsed<()> {
        if self.peek() == byte {
            self.at += 1;
            return Ok(());
        }
        if self.is_behind_brackets(open) {
            return Err(self.unclosed(open).into());
        }
        let opened = self.span(open, open + 1);
        let wanted = char::from(byte);
        Err(self
            .unexpected(format!("Expected `{wanted}`"))
            .related(opened, "opened here")
            .into())
    }

    /// The error that a comma between two elements is missing.
    pub(super) fn no_comma(&mut self, open: usize, last: Span) -> Error {
        if self.is_behind_brackets(open) {
            return self.unclosed(open);
        }
        Error::new(last.after(), "Missing comma").detail("add `,` here")
    }

    /// The error that the bracket at `open` isn't closed.
    pub(super) fn unclosed(&mut self, open: usize) -> Error {
        let (end, found) = self.found();
        let bracket = char::from(self.bytes[open]);
        let closing = match bracket {
            '(' => ')',
            '[' => ']',
            _ => '}',
        };
        Error::new(
            self.span(open, open + 1),
            format!("This `{bracket}` isn't closed"),
        )
        .detail(format!("its `{closing}` is missing"))
        .related(end, format!("found {found} instead"))
    }

    /// Whether the bracket at `open` must be unclosed, since the current token can't be within it:
    /// a closing bracket, a later line that begins an attribute or a block, or the end.
    pub(super) fn is_behind_brackets(&self, open: usize) -> bool {
        if self.is_at_end() || matches!(self.byte(), b'}' | b']' | b')') {
            return true;
        }
        let start = self.text[..self.at].rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[start..].lines().next().unwrap_or_default().trim();
        let is_name = |one: char| one.is_alphanumeric() || matches!(one, '_' | '-');
        let behind = line.trim_start_matches(is_name);
        let sets = behind.trim_start().starts_with("= ") || line.ends_with('{');
        let is_value = self.text[start..self.at].contains('=');
        start > open && behind.len() < line.len() && sets && !is_value
    }
}
