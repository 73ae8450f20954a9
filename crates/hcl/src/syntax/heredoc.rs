//! Parses heredocs: `<<EOT` and `<<-EOT`.

use std::borrow::Cow;

use super::ast::Expression;
use super::parser::{Parsed, Parser};
use super::template::{Ending, Token};
use crate::error::{Error, Span};

impl Parser<'_> {
    /// Parses a heredoc from the `<<`. Stops before the newline after the closing marker.
    ///
    /// Fails with the first syntax error.
    pub(super) fn heredoc(&mut self) -> Parsed<Expression> {
        let start = self.at;
        self.at += 2;
        let dedents = self.byte() == b'-';
        self.at += usize::from(dedents);
        let Some(marker) = self.name() else {
            return Err(self
                .unexpected("Expected a name after `<<`")
                .hint("a text over several lines is `<<EOT`, its lines, and a line with `EOT` only")
                .into());
        };
        let opening = self.span_from(start);
        if !self.is_at_newline() {
            return Err(self
                .unexpected(format!("Expected a new line after `<<{marker}`"))
                .hint("the text begins on the next line")
                .into());
        }
        self.skip_newline();
        let mut tokens = self.tokens(Ending::Marker(marker, opening))?;
        if dedents {
            dedent(&mut tokens);
        }
        self.template(tokens, start)
    }

    /// The error that a heredoc isn't closed, with the line that was probably meant to close it.
    pub(super) fn unclosed_heredoc(&self, marker: &str, opening: Span) -> Error {
        let error = Error::new(opening, "This heredoc isn't closed")
            .detail(format!("no line below is `{marker}` only"));
        let mut start = opening.end as usize;
        for line in self.text[start..].split_inclusive('\n') {
            let shown = line.trim();
            let begins = shown.get(..marker.len());
            if begins.is_some_and(|begins| begins.eq_ignore_ascii_case(marker)) {
                let indent = start + line.len() - line.trim_start().len();
                let near = self.span(indent, indent + shown.len());
                return error.related(near, format!("this line must be `{marker}` only"));
            }
            start += line.len();
        }
        error.hint(format!("add a line with `{marker}` after the text"))
    }

    pub(super) fn skip_newline(&mut self) {
        if self.byte() == b'\r' && self.byte_after(1) == b'\n' {
            self.at += 1;
        }
        if self.byte() == b'\n' {
            self.at += 1;
        }
    }

    /// Whether the line that begins here contains only the marker.
    pub(super) fn is_at_marker(&self, marker: &str) -> bool {
        let rest = &self.bytes[self.at..];
        let end = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .unwrap_or(rest.len());
        rest[..end].trim_ascii() == marker.as_bytes()
    }
}

/// Removes the common indentation; lines of only spaces don't count. As in Terraform, a line begins
/// after a piece of text that ends with a newline. If `~}` stripped that newline, no line begins.
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
