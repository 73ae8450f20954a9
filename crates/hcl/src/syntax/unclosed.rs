//! Strings whose end isn't where it should be. Comes in: a line that ends within a string, or a curly
//! quotation mark where a value is wanted; goes out: one error, and the place where the string ends
//! all the same, so that what follows it isn't taken for something else.

use super::ast::{Expression, ExpressionKind, Label};
use super::parser::{Parsed, Parser};
use crate::error::Error;

const CURLY: &str = "replace curly quotes by straight ones: `\"`";

impl Parser<'_> {
    pub(super) fn is_at_curly_quote(&self) -> bool {
        self.byte() == 0xe2 && curly_pair(&self.text[self.at..]).is_some()
    }

    /// From an opening curly quote on; it's taken as a string.
    pub(super) fn curly_quoted(&mut self) -> Parsed<Expression> {
        let start = self.at;
        let rest = &self.text[start..];
        let line = rest.lines().next().unwrap_or_default();
        let mut characters = line.char_indices().skip(1);
        let closing = curly_pair(rest).unwrap_or_default();
        let Some((length, last)) = characters.find(|(_, next)| closing.contains(*next)) else {
            let width = rest.chars().next().map_or(0, char::len_utf8);
            let here = self.span(start, start + width);
            return self.fail(Error::new(here, "This quote is curly").hint(CURLY));
        };
        let text = line[..length].chars().skip(1).collect::<String>();
        self.at += length + last.len_utf8();
        let span = self.span_from(start);
        self.errors
            .push(Error::new(span, "This string has curly quotes").hint(CURLY));
        Ok(Expression {
            kind: ExpressionKind::String(text.into()),
            span,
        })
    }

    /// A label without its closing quote, where all that is behind it on its line is the block's `{`.
    pub(super) fn unclosed_label(&mut self) -> Option<Label> {
        let start = self.at;
        let line = self.text[start + 1..].lines().next()?;
        let name = line.trim_end().strip_suffix('{')?.trim_end();
        let is_name = |one: char| one.is_alphanumeric() || matches!(one, '_' | '-');
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        self.errors.push(
            Error::new(self.span(start, start + 1), "This string isn't closed")
                .detail("its `\"` is missing on this line")
                .hint(format!("write `\"{name}\"`")),
        );
        self.at += 1 + name.len();
        Some(Label {
            name: name.into(),
            span: self.span_from(start),
            quoted: true,
        })
    }

    /// The string whose text begins at `start` isn't closed on its line. Goes on behind it where it is
    /// plain which mark was meant to close it.
    pub(super) fn unclosed_quote(&mut self, start: usize) -> Parsed<()> {
        let line = self.text[start..].lines().next().unwrap_or_default();
        let curly = line.char_indices().rfind(|(at, character)| {
            let behind = &line[at + character.len_utf8()..];
            "“”„‟".contains(*character) && is_end_of_line(behind.trim_end().trim_end_matches('{'))
        });
        if let Some((at, character)) = curly {
            let at = start + at;
            self.at = at + character.len_utf8();
            let here = self.span_from(at);
            let error = Error::new(here, "This quote is curly").hint(CURLY);
            let opened = self.span(start - 1, start);
            self.errors.push(error.related(opened, "opened here"));
            return Ok(());
        }
        let opened = self.span(start - 1, start);
        let hint = "write a line's end as `\\n`, or text over several lines as `<<EOT … EOT`";
        // In an interpolation the text around it may be what a mark further down ends.
        let end = self.end_over_lines().filter(|_| !self.interpolates);
        let Some(end) = end else {
            return self.fail(
                Error::new(opened, "This string isn't closed")
                    .detail("its `\"` is missing on this line")
                    .hint(hint),
            );
        };
        let closed = self.span(end, end + 1);
        self.at = end + 1;
        self.errors.push(
            Error::new(opened, "This string goes over several lines")
                .detail("its `\"` is missing on this line")
                .related(closed, "closed here")
                .hint(hint),
        );
        Ok(())
    }

    /// The quotation mark on a line further down that probably ends a string that is open here: the
    /// first that has no other on its line, with nothing but text before it.
    fn end_over_lines(&self) -> Option<usize> {
        let mut at = self.at;
        for line in self.text[self.at..].split_inclusive('\n') {
            // The first piece is the end of the string's own line.
            if at > self.at {
                if is_item(line) {
                    return None;
                }
                let marks = quotation_marks(line);
                if let Some(&last) = marks.last().filter(|_| marks.len() % 2 == 1) {
                    return is_end_of_line(&line[last + 1..]).then_some(at + last);
                }
            }
            at += line.len();
        }
        None
    }
}

/// What may close what the first character opens, if that is a curly quote.
fn curly_pair(text: &str) -> Option<&'static str> {
    match text.chars().next()? {
        '“' | '”' | '„' | '‟' => Some("“”‟\""),
        '‘' | '’' | '‚' | '‛' => Some("‘’‛'"),
        _ => None,
    }
}

fn is_end_of_line(text: &str) -> bool {
    text.chars()
        .all(|character| character.is_whitespace() || ",)]}".contains(character))
}

/// Where the quotation marks are that no backslash precedes.
fn quotation_marks(line: &str) -> Vec<usize> {
    let mut escaped = false;
    let marks = line.bytes().enumerate().filter(|(_, byte)| {
        let is_mark = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_mark
    });
    marks.map(|(at, _)| at).collect()
}

/// Whether a line looks like configuration: `name = …`, `name … {` or `}`.
fn is_item(line: &str) -> bool {
    let line = line.trim();
    let behind = line.trim_start_matches(|character: char| {
        character.is_alphanumeric() || matches!(character, '_' | '-')
    });
    if behind.len() == line.len() {
        return line == "}";
    }
    let words = behind.strip_suffix('{').map(str::trim);
    behind.trim_start().starts_with("= ")
        || words.is_some_and(|words| {
            words.split_whitespace().all(|word| {
                word.chars()
                    .all(|character| character.is_alphanumeric() || "_-\"".contains(character))
            })
        })
}
