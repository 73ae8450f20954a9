//! `<<EOT` and `<<-EOT`: text over several lines.

use std::borrow::Cow;

use super::ast::Expression;
use super::parser::{Parsed, Parser, Stop};
use super::template::{Ending, Token};
use crate::error::{Error, Span};

impl<'t> Parser<'t> {
    /// From the `<<` on. Behind it the parser stands before the newline that follows the marker.
    pub(super) fn heredoc(&mut self) -> Parsed<Expression> {
        let start = self.at;
        self.at += 2;
        let dedents = self.byte() == b'-';
        self.at += usize::from(dedents);
        let marker = self.heredoc_marker()?;
        let opening = self.span_from(start);
        if !self.is_at_newline() {
            let (span, found) = self.found();
            let error = Error::new(span, format!("Expected a new line behind `<<{marker}`"))
                .detail(format!("found {found} here"))
                .hint("the text begins on the next line");
            self.go_on_in_heredoc(error, marker)?;
            self.skip_line();
        }
        self.skip_newline();
        let text_start = self.at;
        let errors = self.errors.len();
        match self.tokens(Ending::Marker(marker)) {
            Ok(mut tokens) => {
                if dedents {
                    dedent(&mut tokens);
                }
                self.template(tokens, start, true)
            }
            Err(stop) => {
                // Brackets in an interpolation may have gone over the marker.
                let passed = self.is_at_end() && self.errors.len() == errors;
                // What follows in it isn't configuration.
                self.at = text_start;
                self.skip_to_marker(marker);
                let has_end = !self.is_at_end() && !passed;
                if !has_end {
                    self.unclosed_heredoc(text_start, marker, opening, errors);
                }
                self.skip_line();
                if has_end {
                    // So that what is around it is read as well.
                    return self.template(Vec::new(), start, true);
                }
                Err(stop)
            }
        }
    }

    /// The marker, passed. One as only a shell takes it, `"EOT"`, `'EOT'` or behind a space, is an
    /// error, behind which the text is read nevertheless.
    fn heredoc_marker(&mut self) -> Parsed<&'t str> {
        if let Some(marker) = self.name() {
            return Ok(marker);
        }
        let start = self.at;
        while self.byte() == b' ' {
            self.at += 1;
        }
        let quote = Some(self.byte()).filter(|byte| matches!(byte, b'"' | b'\''));
        self.at += usize::from(quote.is_some());
        let marker = self.name();
        if let Some(marker) = marker.filter(|_| quote.is_none_or(|quote| self.byte() == quote)) {
            self.at += usize::from(quote.is_some());
            let span = self.span_from(start);
            let error = match quote {
                Some(_) => Error::new(span, "A heredoc's marker has no quotation marks").hint(
                    format!("write `<<{marker}`; for a literal `${{` in the text write `$${{`"),
                ),
                None => Error::new(span, "A heredoc's marker stands right behind `<<`")
                    .hint(format!("write `<<{marker}`")),
            };
            return self.go_on_in_heredoc(error, marker).map(|()| marker);
        }
        self.at = start;
        let (span, found) = self.found();
        self.fail(
            Error::new(span, "Expected a marker behind `<<`")
                .detail(format!("found {found} here"))
                .hint("`<<EOT` begins a text that a line with `EOT` alone ends"),
        )
    }

    /// Reports the error of the first line, and stops if no line ends the text.
    fn go_on_in_heredoc(&mut self, error: Error, marker: &str) -> Parsed<()> {
        self.errors.push(error);
        let start = self.at;
        self.skip_line();
        self.skip_newline();
        self.skip_to_marker(marker);
        let has_end = !self.is_at_end();
        self.at = start;
        if has_end { Ok(()) } else { Err(Stop) }
    }

    /// From the start of a line to that of the marker's, or to the end.
    fn skip_to_marker(&mut self, marker: &str) {
        while !self.is_at_end() && !self.is_at_marker(marker) {
            self.skip_line();
            self.skip_newline();
        }
    }

    /// Where a line was probably meant to end the text, what was found behind it is forgotten: it
    /// isn't part of the text.
    fn unclosed_heredoc(&mut self, text_start: usize, marker: &str, opening: Span, errors: usize) {
        let mut error = Error::new(opening, "This text has no end")
            .detail(format!("there is no line with `{marker}` alone"));
        if let Some(near) = self.nearly_marker(text_start, marker) {
            self.at = near.end as usize;
            let mut index = 0;
            self.errors.retain(|known| {
                index += 1;
                index <= errors || known.span.start < near.start
            });
            let is_longer = near.range().len() > marker.len();
            error = if is_longer {
                error
                    .related(near, format!("`{marker}` must stand alone on its line"))
                    .hint("write what follows it on the next line, or leave it out")
            } else {
                error
                    .related(near, "other letters than in the marker")
                    .hint(format!("write `{marker}` there"))
            };
        }
        self.errors.push(error);
    }

    /// The first line that holds the marker with something behind it that is configuration, or in
    /// other letters.
    fn nearly_marker(&self, text_start: usize, marker: &str) -> Option<Span> {
        let mut start = text_start;
        for line in self.text[text_start..].split_inclusive('\n') {
            let shown = line.trim();
            let behind = shown.strip_prefix(marker).map(str::trim_start);
            if shown.eq_ignore_ascii_case(marker)
                || behind
                    .is_some_and(|behind| behind.starts_with([',', ';', ')', ']', '}', '#', '/']))
            {
                let indent = line.len() - line.trim_start().len();
                return Some(self.span(start + indent, start + indent + shown.len()));
            }
            start += line.len();
        }
        None
    }

    pub(super) fn skip_newline(&mut self) {
        if self.byte() == b'\r' && self.byte_after(1) == b'\n' {
            self.at += 1;
        }
        if self.byte() == b'\n' {
            self.at += 1;
        }
    }

    /// Whether the marker is alone on the line that begins here.
    pub(super) fn is_at_marker(&self, marker: &str) -> bool {
        let rest = &self.bytes[self.at..];
        let end = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(rest.len());
        rest[..end].trim_ascii() == marker.as_bytes()
    }
}

/// Takes the indent that all lines have from each; lines of spaces only don't count. As Terraform
/// has it, a line is what follows a piece of text that ends with a newline: behind a newline that
/// `~}` took away no new line begins.
fn dedent(tokens: &mut [Token<'_>]) {
    let mut smallest = usize::MAX;
    let mut lines = Vec::new();
    let mut begins = true;
    for (index, token) in tokens.iter().enumerate() {
        let Token::Literal(text) = token else {
            if std::mem::take(&mut begins) {
                smallest = 0;
            }
            continue;
        };
        if begins {
            let indent = text.len() - text.trim_start().len();
            if indent < text.len() || !text.ends_with('\n') {
                smallest = smallest.min(text[..indent].chars().count());
                lines.push(index);
            }
        }
        begins = text.ends_with('\n');
    }
    if smallest == usize::MAX {
        return;
    }
    for index in lines {
        if let Token::Literal(text) = &mut tokens[index] {
            let taken: usize = text.chars().take(smallest).map(char::len_utf8).sum();
            *text = match std::mem::take(text) {
                Cow::Borrowed(text) => Cow::Borrowed(&text[taken..]),
                Cow::Owned(mut text) => {
                    text.drain(..taken);
                    Cow::Owned(text)
                }
            };
        }
    }
}
