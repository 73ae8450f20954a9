//! Parses blocks and attributes.

use std::collections::HashMap;
use std::sync::Arc;

use super::ast::{Attribute, Block, Body, ExpressionKind, Ident, Item, Label};
use super::parser::{Parsed, Parser};
use crate::error::{Error, Span};

const ITEM: &str = "an argument is `name = value`, a block `name { … }`";

impl Parser<'_> {
    /// Parses a whole file.
    ///
    /// Fails with the first syntax error.
    pub(super) fn document(&mut self) -> Parsed<Body> {
        self.items(None)
    }

    /// Parses all items up to the end, or to the `}` of the block opened at `open`.
    fn items(&mut self, open: Option<usize>) -> Parsed<Body> {
        let start = self.at;
        let mut items = Vec::new();
        let mut names: HashMap<Arc<str>, Span> = HashMap::new();
        loop {
            self.skip_lines();
            match open {
                Some(open) if self.is_at_end() => return Err(self.unclosed(open).into()),
                Some(_) if self.byte() == b'}' => break,
                None if self.is_at_end() => break,
                _ => {}
            }
            let item = self.nested(Self::item)?;
            if let Item::Attribute(Attribute { name, .. }) = &item
                && let Some(first) = names.insert(Arc::clone(&name.name), name.span)
            {
                return Err(
                    Error::new(name.span, format!("Duplicate argument `{}`", name.name))
                        .detail("defined again here")
                        .related(first, "first defined here")
                        .into(),
                );
            }
            items.push(item);
        }
        let span = self.span_from(start);
        Ok(Body { items, span })
    }

    fn item(&mut self) -> Parsed<Item> {
        let start = self.at;
        let Some(name) = self.ident() else {
            if self.byte() == b'}' {
                let here = self.span(start, start + 1);
                return Err(Error::new(here, "This `}` closes nothing")
                    .hint("remove it, or look above for a `}` that closes too early")
                    .into());
            }
            return Err(self
                .unexpected("Expected an argument or a block")
                .hint(match self.byte() {
                    b'"' => "names of arguments and blocks have no quotes",
                    _ => ITEM,
                })
                .into());
        };
        match self.peek() {
            b'=' => {
                let attribute = self.attribute(name)?;
                self.end_of_item(start, "argument")?;
                Ok(Item::Attribute(attribute))
            }
            b'{' | b'"' => self.block(name).map(Item::Block),
            b'0'..=b'9' | b'[' | b'(' | b'-' | b'!' => Err(Box::new(no_equals_sign(&name))),
            byte => {
                let here = self.at;
                let is_label = self.name().is_some();
                self.at = here;
                if is_label {
                    return self.block(name).map(Item::Block);
                }
                let expected = format!("Expected `=` or `{{` after `{}`", name.name);
                let error = self.unexpected(expected);
                Err(match byte {
                    b':' => error.hint("an argument is set with `=`"),
                    _ if error.hint.is_none() => error.hint(ITEM),
                    _ => error,
                }
                .into())
            }
        }
    }

    /// Parses an attribute from the `=`.
    fn attribute(&mut self, name: Ident) -> Parsed<Attribute> {
        self.at += 1;
        let value = self.expression()?;
        let span = name.span.to(value.span);
        Ok(Attribute { name, value, span })
    }

    /// Fails if the line continues.
    fn end_of_item(&mut self, start: usize, what: &str) -> Parsed<()> {
        self.peek();
        if self.is_at_end() || self.is_at_newline() {
            return Ok(());
        }
        let item = self.span_from(start);
        let error = self
            .unexpected(format!("Expected a new line after this {what}"))
            .related(item, format!("the {what}"));
        Err(match self.byte() {
            b',' | b';' => error.hint("arguments are separated by line breaks only"),
            b'a'..=b'z' | b'A'..=b'Z' => match self.number_with_unit() {
                Some(text) => error.hint(format!("strings must be quoted: `\"{text}\"`")),
                None => error,
            },
            _ => error,
        }
        .into())
    }

    /// The text around here if it is a number with a unit, such as `10m`.
    fn number_with_unit(&self) -> Option<&str> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let start = self.text[..self.at].trim_end_matches(is_part).len();
        let rest = &self.text[start..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let follows_digit = self.text[..self.at].ends_with(|c: char| c.is_ascii_digit());
        follows_digit.then_some(&rest[..end])
    }

    /// Parses a block from its labels.
    fn block(&mut self, kind: Ident) -> Parsed<Block> {
        let start = kind.span.start as usize;
        let mut labels: Vec<Label> = Vec::new();
        let mut header = kind.span;
        loop {
            match self.peek() {
                b'{' => break,
                b'"' => labels.push(self.quoted_label()?),
                _ => match self.ident() {
                    Some(name) => labels.push(Label {
                        name: name.name,
                        span: name.span,
                    }),
                    None if labels.len() == 1 && self.is_argument(start) => {
                        return Err(Box::new(no_equals_sign(&kind)));
                    }
                    None => {
                        return Err(self
                            .unexpected("Expected a label or `{`")
                            .hint("a block's `{` is on the same line as its name")
                            .into());
                    }
                },
            }
            header = self.span_from(start);
        }
        let open = self.at;
        self.at += 1;
        self.peek();
        let body = if self.is_at_newline() || self.is_at_end() {
            self.items(Some(open))?
        } else {
            self.single_line(open)?
        };
        self.at += 1;
        let span = self.span_from(start);
        self.end_of_item(start, "block")?;
        Ok(Block {
            kind,
            labels,
            body,
            span,
            header,
        })
    }

    /// Whether this line without a `{` was meant as an attribute, since no block body follows.
    fn is_argument(&self, start: usize) -> bool {
        let indent = |offset: usize| {
            let line = self.text[..offset].rfind('\n').map_or(0, |at| at + 1);
            offset - line
        };
        let next = self.text[self.at..].trim_start();
        let is_body = next.starts_with('{') || indent(self.text.len() - next.len()) > indent(start);
        self.is_at_newline() && !is_body
    }

    /// Parses the single attribute of a one-line block, up to its `}`.
    fn single_line(&mut self, open: usize) -> Parsed<Body> {
        let start = self.at;
        let mut items = Vec::new();
        if let Some(name) = self.ident() {
            if self.peek() != b'=' {
                let line = self.text[self.at..].lines().next().unwrap_or_default();
                if line.contains('{') {
                    return Err(self
                        .unexpected(format!("Expected `=` after `{}`", name.name))
                        .hint("a block within a block begins on a line of its own")
                        .into());
                }
                return Err(Box::new(no_equals_sign(&name)));
            }
            items.push(Item::Attribute(self.attribute(name)?));
        }
        if self.peek() != b'}' {
            let opened = self.span(open, open + 1);
            return Err(self
                .unexpected("Expected `}`: a block on one line holds one argument")
                .related(opened, "opened here")
                .hint("put each argument and the `}` on lines of their own")
                .into());
        }
        let span = self.span_from(start);
        Ok(Body { items, span })
    }

    fn quoted_label(&mut self) -> Parsed<Label> {
        let expression = self.quoted()?;
        match expression.kind {
            ExpressionKind::String(name) => Ok(Label {
                name,
                span: expression.span,
            }),
            _ => Err(Error::new(expression.span, "A label must be plain text")
                .detail("this has an interpolation in it")
                .hint("write `$${` for a literal `${`")
                .into()),
        }
    }
}

/// The error that the `=` after a name is missing.
fn no_equals_sign(name: &Ident) -> Error {
    Error::new(
        name.span.after(),
        format!("Missing `=` after `{}`", name.name),
    )
    .detail("add `=` here")
}
