//! Templates: text with `${ }` and `%{ }`. Comes in: what stands between quotation marks, in a
//! heredoc or in a file. Goes out: a string, or parts.
//!
//! Text between is cut at the end of each line, but for quoted strings: `~` strips no further than
//! its piece.

use std::borrow::Cow;
use std::sync::Arc;

use super::ast::{
    Expression, ExpressionKind, Ident, Template, TemplateFor, TemplateIf, TemplatePart,
};
use super::parser::{Mark, Parsed, Parser, Stop};
use crate::error::{Error, Span, nearest};
use crate::value::composed;

/// What ends a template.
#[derive(Clone, Copy)]
pub(super) enum Ending<'t> {
    Quote,
    /// A line with this name alone.
    Marker(&'t str),
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

/// A shell's expansion: what was known before it, where it begins and where it ends.
struct Expansion {
    mark: Mark,
    start: usize,
    end: usize,
    /// Whether it stands in a quoted string.
    quoted: bool,
}

const DIRECTIVES: [&str; 5] = ["if", "else", "endif", "for", "endfor"];

impl<'t> Parser<'t> {
    /// From the quotation mark on.
    pub(super) fn quoted(&mut self) -> Parsed<Expression> {
        let start = self.at;
        self.at += 1;
        // Most strings are plain.
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
        self.template(tokens, start, false)
    }

    /// All of the text.
    pub(super) fn whole_template(&mut self) -> Parsed<Expression> {
        let start = self.at;
        let tokens = self.tokens(Ending::File)?;
        self.template(tokens, start, false)
    }

    /// Everything up to the ending, which is passed.
    pub(super) fn tokens(&mut self, ending: Ending<'t>) -> Parsed<Vec<Token<'t>>> {
        let start = self.at;
        let mut tokens = Vec::new();
        let mut strips = false;
        let mut line_begins = true;
        let mut over_lines = None;
        let errors = self.errors.len();
        loop {
            if line_begins
                && let Ending::Marker(marker) = ending
                && self.is_at_marker(marker)
            {
                self.at = self.text[self.at..]
                    .find(marker)
                    .map_or(self.at, |at| self.at + at)
                    + marker.len();
                if self.errors.len() > errors {
                    // Directives may be among what was broken, and the others wouldn't match.
                    tokens.clear();
                }
                return Ok(tokens);
            }
            line_begins = false;
            if self.is_at_end() {
                return match ending {
                    Ending::File => Ok(tokens),
                    Ending::Quote if self.ends_before(over_lines.take()) => continue,
                    Ending::Quote => self.unclosed_quote(start).map(|()| tokens),
                    // Reported by who knows where it begins.
                    Ending::Marker(_) => Err(Stop),
                };
            }
            if self.starts_with("${") || self.starts_with("%{") {
                let Some((token, strips_before, strips_after)) =
                    self.interpolation_or_expansion(ending, &mut over_lines)?
                else {
                    continue;
                };
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
                Ending::Quote => match self.quoted_text() {
                    Ok(Some(text)) => Cow::Owned(text),
                    Ok(None) if self.ends_before(over_lines.take()) => continue,
                    Ok(None) => return self.unclosed_quote(start).map(|()| tokens),
                    Err(stop) => return Err(stop),
                },
                Ending::Marker(_) | Ending::File => self.line_of_text(),
            };
            line_begins = text.ends_with('\n');
            if std::mem::take(&mut strips) {
                text = Cow::Owned(text.trim_start().to_owned());
            }
            tokens.push(Token::Literal(text));
        }
    }

    /// What stands at the `${` or `%{` here; nothing where it was a shell's expansion, which then is
    /// passed, so that all those of a text are told in one run. What goes over several lines and may
    /// be an expansion nevertheless is left in `over_lines`.
    fn interpolation_or_expansion(
        &mut self,
        ending: Ending<'t>,
        over_lines: &mut Option<Expansion>,
    ) -> Parsed<Option<(Token<'t>, bool, bool)>> {
        let start = self.at;
        let mark = self.mark();
        let quoted = matches!(ending, Ending::Quote);
        if let Some(&end) = self.expansions.get(&start) {
            return self
                .expansion(Expansion {
                    mark,
                    start,
                    end,
                    quoted,
                })
                .map(|()| None);
        }
        let outer = std::mem::replace(&mut self.interpolates, true);
        let result =
            self.nested(|parser| parser.with_newlines(false, Self::interpolation_or_directive));
        self.interpolates = outer;
        match result {
            Ok(found) => {
                // `"${x#y}"` is one with a comment if a `}` and a `"` follow further down.
                if quoted
                    && over_lines.is_none()
                    && let Some(end) = self.shell_expansion(start, quoted)
                    && end < self.at
                {
                    *over_lines = Some(Expansion {
                        mark,
                        start,
                        end,
                        quoted,
                    });
                }
                Ok(Some(found))
            }
            Err(stop) => match self.shell_expansion(start, quoted) {
                Some(end) => self
                    .expansion(Expansion {
                        mark,
                        start,
                        end,
                        quoted,
                    })
                    .map(|()| None),
                None => self.behind_broken(start, ending).ok_or(stop).map(|()| None),
            },
        }
    }

    /// Goes on behind what is broken in a heredoc, if it ends on its line: a script has many such.
    fn behind_broken(&mut self, start: usize, ending: Ending<'t>) -> Option<()> {
        let Ending::Marker(_) = ending else {
            return None;
        };
        let end = self.interpolation_end(start)?;
        if self.has_too_many_errors() {
            return None;
        }
        self.at = end;
        Some(())
    }

    /// Reports it and goes on behind it.
    fn expansion(&mut self, expansion: Expansion) -> Parsed<()> {
        let Expansion {
            mark,
            start,
            end,
            quoted,
        } = expansion;
        self.go_back(&mark, end);
        self.expansions.insert(start, end);
        let error = self.shell_error(start, end, quoted);
        self.errors.push(error);
        if self.has_too_many_errors() {
            return Err(Stop);
        }
        Ok(())
    }

    /// Whether an unclosed string is one because a shell's expansion in it was taken for more.
    fn ends_before(&mut self, over_lines: Option<Expansion>) -> bool {
        over_lines.is_some_and(|expansion| self.expansion(expansion).is_ok())
    }

    /// Text of a quoted string, escapes resolved, up to what isn't text; nothing where the line ends
    /// before the string.
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

    /// A `$` or `%` that doesn't begin anything: doubled before `{` it stands for one.
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
                let error = self.fail(
                    Error::new(span, format!("There is no escape `\\{shown}`"))
                        .hint("the escapes are \\n \\r \\t \\\" \\\\ \\uXXXX \\UXXXXXXXX; a backslash is \\\\"),
                );
                self.skip_line();
                return error;
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
                let error = Error::new(span, "This escape is no character").detail(format!(
                    "`\\{selector}` takes {digits} hexadecimal digits of a Unicode character"
                ));
                self.skip_line();
                self.fail(error)
            }
        }
    }

    /// Text up to the end of the line, newline and all, or to what isn't text.
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

    /// `${ … }` or `%{ … }`, and whether it strips what is before it and behind.
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
            let (span, found) = self.found();
            let opened = self.span(start, start + 2);
            let sign = if is_directive { '%' } else { '$' };
            return self.fail(
                Error::new(span, format!("Expected `}}` at the end of `{sign}{{`"))
                    .detail(format!("found {found} here"))
                    .related(opened, "opened here")
                    .hint(format!("for a literal `{sign}{{` write `{sign}{sign}{{`")),
            );
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
                return self.fail(match nearest(name, DIRECTIVES) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint("for a literal `%{` write `%%{`"),
                });
            }
        })
    }

    /// The expression that begins at `start` and ends here.
    pub(super) fn template(
        &mut self,
        tokens: Vec<Token<'t>>,
        start: usize,
        heredoc: bool,
    ) -> Parsed<Expression> {
        let span = self.span_from(start);
        let passes = matches!(&tokens[..], [Token::Interpolation(_)]);
        let mut tokens = tokens.into_iter();
        let (mut parts, end) = self.parts(&mut tokens)?;
        match end {
            None => {}
            Some(Token::Else(span)) => return self.unmatched(span, "else", "if"),
            Some(Token::EndIf(span)) => return self.unmatched(span, "endif", "if"),
            Some(Token::EndFor(span)) => return self.unmatched(span, "endfor", "for"),
            Some(_) => unreachable!("nothing else ends parts"),
        }
        let kind = match &mut parts[..] {
            [] => ExpressionKind::String("".into()),
            [TemplatePart::Literal(text)] => ExpressionKind::String(text.clone()),
            _ => ExpressionKind::Template(Box::new(Template {
                parts,
                heredoc,
                passes,
            })),
        };
        Ok(Expression { kind, span })
    }

    fn unmatched<T>(&mut self, span: Span, directive: &str, opener: &str) -> Parsed<T> {
        self.fail(
            Error::new(span, format!("This `{directive}` belongs to nothing"))
                .detail(format!("there is no open `%{{ {opener} }}` before it")),
        )
    }

    /// Parts up to the end or to a directive that ends them, which is returned.
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
                        return self.unended(span, "for", "endfor");
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
            Some(Token::EndIf(_)) => Ok(TemplateIf {
                condition,
                yes,
                no,
                span,
            }),
            _ => self.unended(span, "if", "endif"),
        }
    }

    fn unended<T>(&mut self, span: Span, directive: &str, end: &str) -> Parsed<T> {
        self.fail(
            Error::new(span, format!("This `{directive}` has no `%{{ {end} }}`"))
                .hint("each directive ends in the template that it begins in"),
        )
    }
}
