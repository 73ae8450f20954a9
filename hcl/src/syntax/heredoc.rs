//! `<<EOT` and `<<-EOT`: text over several lines.

use std::borrow::Cow;

use super::ast::Expression;
use super::parser::{Parsed, Parser};
use super::template::{Ending, Token};
use crate::error::Error;

impl Parser<'_> {
    /// From the `<<` on. Behind it the parser stands before the newline that follows the marker.
    pub(super) fn heredoc(&mut self) -> Parsed<Expression> {
        let start = self.at;
        self.at += 2;
        let dedents = self.byte() == b'-';
        self.at += usize::from(dedents);
        let Some(marker) = self.name() else {
            let (span, found) = self.found();
            return self.fail(
                Error::new(span, "Expected a marker behind `<<`")
                    .detail(format!("found {found} here"))
                    .hint("`<<EOT` begins a text that a line with `EOT` alone ends"),
            );
        };
        let opening = self.span_from(start);
        if !self.is_at_newline() {
            let (span, found) = self.found();
            return self.fail(
                Error::new(span, format!("Expected a new line behind `<<{marker}`"))
                    .detail(format!("found {found} here")),
            );
        }
        self.skip_newline();
        let text_start = self.at;
        match self.tokens(Ending::Marker(marker, opening)) {
            Ok(mut tokens) => {
                if dedents {
                    dedent(&mut tokens);
                }
                self.template(tokens, start, true)
            }
            Err(stop) => {
                // What follows in it isn't configuration.
                self.at = text_start;
                while !self.is_at_end() && !self.is_at_marker(marker) {
                    self.skip_line();
                    self.skip_newline();
                }
                self.skip_line();
                Err(stop)
            }
        }
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
