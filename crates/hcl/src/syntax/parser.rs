//! What all parts of the parser share: the place in the text, space and comments, names, errors.

use std::collections::HashMap;
use std::sync::Arc;

use super::ast::Ident;
use super::{LONGEST_TEXT, MOST_ERRORS, MOST_LEVELS};
use crate::error::{Error, Span};

/// An error was recorded, here or once for all places like it; whoever can goes on behind it.
#[derive(Debug)]
pub(super) struct Stop;

pub(super) type Parsed<T> = Result<T, Stop>;

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) bytes: &'t [u8],
    file: u32,
    pub(super) at: usize,
    /// Whether a line's end means something, which within brackets it doesn't.
    pub(super) newlines: bool,
    levels: u32,
    /// Whether that there are too many levels is among the errors: whoever nests them has more.
    too_deep: bool,
    /// Whether this is within `${ }` or `%{ }`.
    pub(super) interpolates: bool,
    /// For so many items memory is taken at the start.
    pub(super) room: usize,
    pub(super) comments: Vec<Span>,
    pub(super) errors: Vec<Error>,
    /// Whether it isn't known any more which block an item belongs to.
    pub(super) is_lost: bool,
    /// Where each shell's expansion that was found begins, and where it ends: to try each once more
    /// in every string around it would take for ever.
    pub(super) expansions: HashMap<usize, usize>,
}

/// A place to go back to.
pub(super) struct Mark {
    comments: usize,
    errors: usize,
    too_deep: bool,
}

impl<'t> Parser<'t> {
    /// Refuses what can't have offsets.
    pub(super) fn new(text: &'t str, file: u32) -> Result<Self, Vec<Error>> {
        if text.len() > LONGEST_TEXT {
            let limit = LONGEST_TEXT >> 20;
            return Err(vec![
                Error::new(
                    Span::new(file, 0, 0),
                    format!("A text of more than {limit} MB isn't read"),
                )
                .detail(format!("this has {} MB", text.len().div_ceil(1 << 20))),
            ]);
        }
        let mut parser = Self {
            text,
            bytes: text.as_bytes(),
            file,
            at: 0,
            newlines: true,
            levels: 0,
            too_deep: false,
            interpolates: false,
            room: 0,
            comments: Vec::new(),
            errors: Vec::new(),
            is_lost: false,
            expansions: HashMap::new(),
        };
        if text.starts_with('\u{feff}') {
            parser.at = '\u{feff}'.len_utf8();
        }
        Ok(parser)
    }

    /// What was parsed, with the comments, unless there were errors.
    pub(super) fn finish<T>(self, parsed: T) -> Result<(T, Vec<Span>), Vec<Error>> {
        match self.finish_on(parsed) {
            (Some(parsed), errors) if errors.is_empty() => Ok(parsed),
            (_, errors) => Err(errors),
        }
    }

    /// What was parsed, with the comments, and the errors. `None` where it isn't what is written.
    pub(super) fn finish_on<T>(mut self, parsed: T) -> (Option<(T, Vec<Span>)>, Vec<Error>) {
        if let Some(comment) = self.open_comment() {
            let start = self.span(comment, comment + 2);
            // What is said of the end of the file is its consequence.
            self.errors.retain(|error| error.span < start);
            self.errors
                .push(Error::new(start, "This comment isn't closed").hint("close it with `*/`"));
            self.is_lost = true;
        }
        let is_known = !self.is_lost && !self.too_deep;
        (is_known.then_some((parsed, self.comments)), self.errors)
    }

    /// Where a comment begins that runs to the end of the text because it isn't closed.
    pub(super) fn open_comment(&self) -> Option<usize> {
        let last = self.comments.last()?.range();
        let text = &self.text[last.clone()];
        let is_open = last.end == self.text.len()
            && text.starts_with("/*")
            && (text.len() < 4 || !text.ends_with("*/"));
        is_open.then_some(last.start)
    }

    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start, end)
    }

    /// From `start` to here.
    pub(super) fn span_from(&self, start: usize) -> Span {
        self.span(start, self.at)
    }

    /// Records the error.
    pub(super) fn fail<T>(&mut self, error: Error) -> Parsed<T> {
        self.errors.push(error);
        Err(Stop)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            comments: self.comments.len(),
            errors: self.errors.len(),
            too_deep: self.too_deep,
        }
    }

    /// Forgets what was found behind the mark, and goes on at `at`.
    pub(super) fn go_back(&mut self, mark: &Mark, at: usize) {
        self.comments.truncate(mark.comments);
        self.errors.truncate(mark.errors);
        self.too_deep = mark.too_deep;
        self.at = at;
    }

    /// Whether so much is wrong already that reading on is of no use.
    pub(super) fn has_too_many_errors(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    /// The byte here; 0 at the end, and for a NUL, which nothing allows.
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

    /// Goes on to the end of this line, before its newline.
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

    /// Passes spaces and comments, and newlines if they mean nothing; then the byte there.
    pub(super) fn peek(&mut self) -> u8 {
        loop {
            match self.byte() {
                b' ' | b'\t' => self.at += 1,
                b'\n' if !self.newlines => self.at += 1,
                b'\r' if !self.newlines || self.byte_after(1) != b'\n' => self.at += 1,
                b'#' => self.line_comment(),
                b'/' if self.byte_after(1) == b'/' => self.line_comment(),
                b'/' if self.byte_after(1) == b'*' => {
                    let start = self.at;
                    match self.text[start + 2..].find("*/") {
                        Some(length) => self.at = start + length + 4,
                        // Reported once, at the end.
                        None => self.at = self.bytes.len(),
                    }
                    self.comment(start);
                }
                byte => return byte,
            }
        }
    }

    fn line_comment(&mut self) {
        let start = self.at;
        self.skip_line();
        self.comment(start);
    }

    fn comment(&mut self, start: usize) {
        let span = self.span_from(start);
        // Looking ahead may pass a comment twice.
        if self
            .comments
            .last()
            .is_none_or(|last| last.start < span.start)
        {
            self.comments.push(span);
        }
    }

    /// Passes all space, comments and empty lines.
    pub(super) fn skip_lines(&mut self) {
        let newlines = std::mem::replace(&mut self.newlines, false);
        self.peek();
        self.newlines = newlines;
    }

    /// What `parse` gives while newlines mean nothing, or something.
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

    /// What `parse` gives one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.levels >= MOST_LEVELS {
            if std::mem::replace(&mut self.too_deep, true) {
                return Err(Stop);
            }
            let width = self.text[self.at..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
            let here = self.span(self.at, self.at + width);
            return self.fail(
                Error::new(
                    here,
                    format!("This is nested more than {MOST_LEVELS} levels deep"),
                )
                .hint("give a name to a part of it under `locals`"),
            );
        }
        self.levels += 1;
        let result = parse(self);
        self.levels -= 1;
        result
    }

    /// The name here, if there is one.
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

    /// What stands here, for people.
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
        let mut ahead = Parser {
            errors: Vec::new(),
            comments: Vec::new(),
            expansions: HashMap::new(),
            ..*self
        };
        let length = match ahead.name() {
            Some(name) => name.len(),
            None => self.text[start..].chars().next().map_or(0, char::len_utf8),
        };
        let what = &self.text[start..start + length];
        let shown = if what.chars().count() > 40 {
            "a long name".into()
        } else {
            format!("`{what}`")
        };
        (self.span(start, start + length), shown)
    }

    /// Passes `byte`, or says that it is missing.
    pub(super) fn expect(&mut self, byte: u8, why: &str) -> Parsed<()> {
        if self.peek() == byte {
            self.at += 1;
            return Ok(());
        }
        let (span, found) = self.found();
        let wanted = char::from(byte);
        self.fail(
            Error::new(span, format!("Expected `{wanted}` {why}"))
                .detail(format!("found {found} here")),
        )
    }

    /// The closing bracket, or an error that also shows the opening one.
    pub(super) fn close(&mut self, byte: u8, open: usize, or: &str) -> Parsed<()> {
        if self.peek() == byte {
            self.at += 1;
            return Ok(());
        }
        let (span, found) = self.found();
        let wanted = char::from(byte);
        let opened = self.span(open, open + 1);
        self.fail(
            Error::new(span, format!("Expected `{wanted}`{or}"))
                .detail(format!("found {found} here"))
                .related(opened, "opened here"),
        )
    }
}
