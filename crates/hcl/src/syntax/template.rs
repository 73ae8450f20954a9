//! Parses templates: text with `${ }` and `%{ }`. In: a quoted string, a heredoc or a file. Out: a
//! string, or parts.
//!
//! Except in quoted strings, text is split after each line, since `~` strips at most one piece.

use std::borrow::Cow;
use std::sync::Arc;

use super::ast::{
    Expression, ExpressionKind, Ident, Template, TemplateFor, TemplateIf, TemplatePart,
};
use super::parser::{Parsed, Parser};
use super::shell::shell_expansion;
use crate::error::{Error, Span, nearest};
use crate::value::composed;

/// What ends a template.
#[derive(Clone, Copy)]
pub(super) enum Ending<'t> {
    Quote,
    /// A line with only this name; the span of the heredoc's start.
    Marker(&'t str, Span),
    File,
}

/// A piece of a template, before directives are matched.
pub(super) enum Token<'t> {
    Literal(Cow<'t, str>),
    Interpolation(Expression),
    If(Expression, Span),
    Else(Span),
    EndIf(Span),
    For(Option<Ident>, Ident, Expression, Span),
    EndFor(Span),
}

const DIRECTIVES: [&str; 5] = ["if", "else", "endif", "for", "endfor"];

impl<'t> Parser<'t> {
    /// Parses a string from its opening quotation mark.
    ///
    /// Fails with the first syntax error.
    pub(super) fn quoted(&mut self) -> Parsed<Expression> {
        let start = self.at;
        self.at += 1;
        // Fast path: most strings are plain.
        let rest = &self.bytes[self.at..];
        let plain = rest
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | b'$' | b'%' | b'\n'))
            .unwrap_or(rest.len());
        if rest.get(plain) == Some(&b'"') {
            let text = composed(Arc::from(&self.text[self.at..self.at + plain]));
            self.at += plain + 1;
            let span = self.span_from(start);
            return Ok(Expression {
                kind: ExpressionKind::String(text),
                span,
            });
        }
        let tokens = self.tokens(Ending::Quote)?;
        self.template(tokens, start)
    }

    /// Parses the whole text.
    ///
    /// Fails with the first syntax error.
    pub(super) fn whole_template(&mut self) -> Parsed<Expression> {
        let start = self.at;
        let tokens = self.tokens(Ending::File)?;
        self.template(tokens, start)
    }

    /// Parses everything up to the ending, which it consumes.
    ///
    /// Fails with the first syntax error.
    pub(super) fn tokens(&mut self, ending: Ending<'t>) -> Parsed<Vec<Token<'t>>> {
        let start = self.at;
        let mut tokens = Vec::new();
        let mut strips = false;
        let mut line_begins = true;
        // A shell expansion that was parsed as an expression over several lines: `"${x#y}"`
        // contains a comment if a `}` follows on a later line.
        let mut over_lines = None;
        loop {
            if line_begins
                && let Ending::Marker(marker, _) = ending
                && self.is_at_marker(marker)
            {
                self.at = self.text[self.at..]
                    .find(marker)
                    .map_or(self.at, |at| self.at + at)
                    + marker.len();
                return Ok(tokens);
            }
            line_begins = false;
            if self.is_at_end() {
                return match ending {
                    Ending::File => Ok(tokens),
                    Ending::Quote => Err(over_lines
                        .unwrap_or_else(|| self.unclosed_quote(start))
                        .into()),
                    Ending::Marker(marker, opening) => {
                        Err(self.unclosed_heredoc(marker, opening).into())
                    }
                };
            }
            if self.starts_with("${") || self.starts_with("%{") {
                let begin = self.at;
                let (token, strips_before, strips_after) = self
                    .nested(|parser| parser.with_newlines(false, Self::interpolation_or_directive))
                    .map_err(|error| match self.shell_error(begin) {
                        Some(shell) => {
                            // In `${x/*y}` the `/*` isn't a comment.
                            self.open_comment = None;
                            shell.into()
                        }
                        None => error,
                    })?;
                if over_lines.is_none() && self.text[begin..self.at].contains('\n') {
                    over_lines = self.shell_error(begin);
                }
                if strips_before && let Some(Token::Literal(text)) = tokens.last_mut() {
                    *text = Cow::Owned(text.trim_end().to_owned());
                }
                strips = strips_after;
                tokens.push(token);
                continue;
            }
            if self.byte() == b'"' && matches!(ending, Ending::Quote) {
                self.at += 1;
                return Ok(tokens);
            }
            let mut text = match ending {
                Ending::Quote => match self.quoted_text()? {
                    Some(text) => Cow::Owned(text),
                    None => {
                        return Err(over_lines
                            .unwrap_or_else(|| self.unclosed_quote(start))
                            .into());
                    }
                },
                Ending::Marker(..) | Ending::File => self.line_of_text(),
            };
            line_begins = text.ends_with('\n');
            if std::mem::take(&mut strips) {
                text = Cow::Owned(text.trim_start().to_owned());
            }
            tokens.push(Token::Literal(text));
        }
    }

    /// The error that the `${` at `start` begins a shell expansion; `None` if it doesn't.
    fn shell_error(&self, start: usize) -> Option<Error> {
        let (length, hint) = shell_expansion(&self.text[start..])?;
        let span = self.span(start, start + length);
        let error = Error::new(span, "This is a shell expansion, not an expression");
        Some(error.hint(hint))
    }

    /// The error that a string, whose text begins at `start`, isn't closed on its line.
    fn unclosed_quote(&self, start: usize) -> Error {
        Error::new(self.span(start - 1, start), "This string isn't closed")
            .detail("its `\"` is missing on this line")
            .hint("write a line break as `\\n`, or text over several lines as `<<EOT … EOT`")
    }

    /// Parses the text of a quoted string up to the next quote or sequence, and resolves escapes.
    /// Returns `None` if the line ends before the string.
    fn quoted_text(&mut self) -> Parsed<Option<String>> {
        let mut text = String::new();
        loop {
            let piece = self.at;
            let rest = &self.bytes[piece..];
            let length = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | b'$' | b'%' | b'\n'))
                .unwrap_or(rest.len());
            self.at += length;
            text.push_str(&self.text[piece..self.at]);
            match self.byte() {
                b'\n' => return Ok(None),
                b'\\' => text.push(self.escape()?),
                b'$' | b'%' if self.byte_after(1) == b'{' => return Ok(Some(text)),
                b'$' | b'%' => self.marker(&mut text),
                _ => return Ok(Some(text)),
            }
        }
    }

    /// Adds a `$` or `%` that begins no sequence; doubled before `{`, it is an escape.
    fn marker(&mut self, text: &mut String) {
        let byte = self.byte();
        text.push(char::from(byte));
        if self.byte_after(1) == byte && self.byte_after(2) == b'{' {
            text.push('{');
            self.at += 3;
        } else {
            self.at += 1;
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let start = self.at;
        let selector = self.text[start + 1..].chars().next().unwrap_or('\n');
        self.at += 1;
        if selector != '\n' {
            self.at += selector.len_utf8();
        }
        let digits = match selector {
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            '"' => return Ok('"'),
            '\\' => return Ok('\\'),
            'u' => 4,
            'U' => 8,
            _ => {
                let span = self.span_from(start);
                let shown = if selector == '\n' {
                    String::new()
                } else {
                    selector.to_string()
                };
                return Err(
                    Error::new(span, format!("There is no escape `\\{shown}`"))
                        .hint("the escapes are \\n \\r \\t \\\" \\\\ \\uXXXX \\UXXXXXXXX; a backslash is \\\\")
                        .into(),
                );
            }
        };
        let code = self.bytes[self.at..]
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let code = code.min(digits);
        let hex = &self.text[self.at..self.at + code];
        self.at += code;
        let character = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
        match character.filter(|_| code == digits) {
            Some(character) => Ok(character),
            None => {
                let span = self.span_from(start);
                let detail = format!("`\\{selector}` takes {digits} hexadecimal digits");
                Err(Error::new(span, "Invalid Unicode escape")
                    .detail(detail)
                    .hint("write a backslash as `\\\\`")
                    .into())
            }
        }
    }

    /// Text up to and including the newline, or up to the next sequence.
    fn line_of_text(&mut self) -> Cow<'t, str> {
        let start = self.at;
        let mut text = Cow::Borrowed("");
        let mut piece = start;
        loop {
            let rest = &self.bytes[self.at..];
            let Some(length) = rest
                .iter()
                .position(|byte| matches!(byte, b'$' | b'%' | b'\n'))
            else {
                self.at = self.bytes.len();
                break;
            };
            self.at += length;
            match (self.byte(), self.byte_after(1), self.byte_after(2)) {
                (b'\n', ..) => {
                    self.at += 1;
                    break;
                }
                (b'$' | b'%', b'{', _) => break,
                (b'$', b'$', b'{') | (b'%', b'%', b'{') => {
                    let owned = text.to_mut();
                    owned.push_str(&self.text[piece..self.at]);
                    self.marker(owned);
                    piece = self.at;
                }
                _ => self.at += 1,
            }
        }
        let last = &self.text[piece..self.at];
        if piece == start {
            return Cow::Borrowed(last);
        }
        text.to_mut().push_str(last);
        text
    }

    /// Parses `${ … }` or `%{ … }`; also returns whether it strips the text before and after it.
    fn interpolation_or_directive(&mut self) -> Parsed<(Token<'t>, bool, bool)> {
        let start = self.at;
        let is_directive = self.byte() == b'%';
        self.at += 2;
        let strips_before = self.byte() == b'~';
        self.at += usize::from(strips_before);
        let mut token = if is_directive {
            self.directive(start)?
        } else {
            Token::Interpolation(self.expression()?)
        };
        let strips_after = self.peek() == b'~' && self.byte_after(1) == b'}';
        self.at += usize::from(strips_after);
        if self.peek() != b'}' {
            let opened = self.span(start, start + 2);
            let sign = if is_directive { '%' } else { '$' };
            let hint = format!("for a literal `{sign}{{` write `{sign}{sign}{{`");
            let is_on_line = !self.text[start..self.at].contains('\n');
            let error = if is_on_line {
                self.unexpected(format!("Expected `}}` at the end of `{sign}{{`"))
                    .related(opened, "opened here")
            } else {
                Error::new(opened, format!("This `{sign}{{` isn't closed"))
                    .detail("its `}` is missing")
            };
            return Err(error.hint(hint).into());
        }
        self.at += 1;
        let whole = self.span_from(start);
        match &mut token {
            Token::If(_, span)
            | Token::Else(span)
            | Token::EndIf(span)
            | Token::For(.., span)
            | Token::EndFor(span) => *span = whole,
            Token::Literal(_) | Token::Interpolation(_) => {}
        }
        Ok((token, strips_before, strips_after))
    }

    fn directive(&mut self, start: usize) -> Parsed<Token<'t>> {
        self.peek();
        let name_start = self.at;
        let name = self.name().unwrap_or_default();
        let span = self.span_from(start);
        Ok(match name {
            "if" => Token::If(self.expression()?, span),
            "else" => Token::Else(span),
            "endif" => Token::EndIf(span),
            "endfor" => Token::EndFor(span),
            "for" => {
                let (key_name, value_name) = self.for_names()?;
                Token::For(key_name, value_name, self.expression()?, span)
            }
            _ => {
                let (span, found) = if name.is_empty() {
                    self.found()
                } else {
                    (self.span_from(name_start), format!("`{name}`"))
                };
                let error = Error::new(span, "Expected `if`, `else`, `endif`, `for` or `endfor`")
                    .detail(format!("found {found} here"));
                return Err(match nearest(name, DIRECTIVES) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint("for a literal `%{` write `%%{`"),
                }
                .into());
            }
        })
    }

    /// The expression that begins at `start` and ends here.
    pub(super) fn template(&mut self, tokens: Vec<Token<'t>>, start: usize) -> Parsed<Expression> {
        let span = self.span_from(start);
        let passes = matches!(&tokens[..], [Token::Interpolation(_)]);
        let mut tokens = tokens.into_iter();
        let (mut parts, end) = self.parts(&mut tokens)?;
        match end {
            None => {}
            Some(Token::Else(span)) => return unmatched(span, "else", "if"),
            Some(Token::EndIf(span)) => return unmatched(span, "endif", "if"),
            Some(Token::EndFor(span)) => return unmatched(span, "endfor", "for"),
            Some(_) => unreachable!("nothing else ends parts"),
        }
        let kind = match &mut parts[..] {
            [] => ExpressionKind::String("".into()),
            [TemplatePart::Literal(text)] => ExpressionKind::String(text.clone()),
            _ => ExpressionKind::Template(Box::new(Template { parts, passes })),
        };
        Ok(Expression { kind, span })
    }

    /// Builds parts up to the end, or up to a directive that ends them, which is returned.
    fn parts(
        &mut self,
        tokens: &mut std::vec::IntoIter<Token<'t>>,
    ) -> Parsed<(Vec<TemplatePart>, Option<Token<'t>>)> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        loop {
            let token = tokens.next();
            if let Some(Token::Literal(text)) = &token {
                literal.push_str(text);
                continue;
            }
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(composed(literal.as_str().into())));
                literal.clear();
            }
            match token {
                Some(Token::Interpolation(expression)) => {
                    parts.push(TemplatePart::Interpolation(expression));
                }
                Some(Token::If(condition, span)) => {
                    let part = self.nested(|parser| parser.if_part(condition, span, tokens))?;
                    parts.push(TemplatePart::If(Box::new(part)));
                }
                Some(Token::For(key_name, value_name, collection, span)) => {
                    let (body, end) = self.nested(|parser| parser.parts(tokens))?;
                    if !matches!(end, Some(Token::EndFor(_))) {
                        return unended(span, "for", "endfor");
                    }
                    let part = TemplateFor {
                        key_name,
                        value_name,
                        collection,
                        body,
                        span,
                    };
                    parts.push(TemplatePart::For(Box::new(part)));
                }
                end => return Ok((parts, end)),
            }
        }
    }

    fn if_part(
        &mut self,
        condition: Expression,
        span: Span,
        tokens: &mut std::vec::IntoIter<Token<'t>>,
    ) -> Parsed<TemplateIf> {
        let (yes, mut end) = self.parts(tokens)?;
        let mut no = Vec::new();
        if let Some(Token::Else(_)) = end {
            (no, end) = self.parts(tokens)?;
        }
        match end {
            Some(Token::EndIf(_)) => Ok(TemplateIf { condition, yes, no }),
            _ => unended(span, "if", "endif"),
        }
    }
}

fn unmatched<T>(span: Span, directive: &str, opener: &str) -> Parsed<T> {
    Err(
        Error::new(span, format!("This `{directive}` has no `%{{ {opener} }}`"))
            .detail(format!("no `{opener}` is open before it"))
            .into(),
    )
}

fn unended<T>(span: Span, directive: &str, end: &str) -> Parsed<T> {
    Err(
        Error::new(span, format!("This `{directive}` has no `%{{ {end} }}`"))
            .hint("each directive ends in the template that it begins in")
            .into(),
    )
}
