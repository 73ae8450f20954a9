//! Blocks and attributes. Comes in: the text from the start of a body; goes out: a body, with every
//! item that could be read; an error for each that couldn't.

use std::collections::HashMap;
use std::sync::Arc;

use super::ast::{
    Attribute, Block, Body, Document, Expression, ExpressionKind, Ident, Item, Label,
};
use super::parser::{Parsed, Parser};
use crate::error::{Error, Span};

/// The names of the attributes among items.
fn names(items: &[Item]) -> impl Iterator<Item = &Ident> {
    items.iter().filter_map(|item| match item {
        Item::Attribute(attribute) => Some(&attribute.name),
        Item::Block(_) => None,
    })
}

/// Finds attributes by their names. Most bodies have a few, which are looked through sooner than
/// hashed.
#[derive(Default)]
struct Names {
    places: HashMap<Arc<str>, Span>,
    /// How many items the places are of.
    hashed: usize,
}

impl Names {
    /// So many items are looked through.
    const FEW: usize = 16;

    /// Where the first attribute of that name stands. The items are those of the last time, or more.
    fn first(&mut self, items: &[Item], name: &Ident) -> Option<Span> {
        if items.len() < Self::FEW {
            let known = names(items).find(|known| known.name == name.name)?;
            return Some(known.span);
        }
        for known in names(&items[self.hashed..]) {
            let name = Arc::clone(&known.name);
            self.places.entry(name).or_insert(known.span);
        }
        self.hashed = items.len();
        self.places.get(&name.name).copied()
    }
}

impl Parser<'_> {
    pub(super) fn document(&mut self) -> Body {
        self.items(None)
    }

    /// All items up to the end, or to the `}` of the block opened at `open`.
    fn items(&mut self, open: Option<usize>) -> Body {
        let start = self.at;
        let room = if open.is_none() { self.room } else { 0 };
        let mut items = Vec::with_capacity(room);
        let mut names = Names::default();
        let mut has_gaps = false;
        let errors_before = self.errors.len();
        loop {
            self.skip_lines();
            if self.has_too_many_errors() {
                self.at = self.bytes.len();
                self.is_lost = true;
            }
            if self.is_at_end() {
                // Behind another error this one may only be its consequence.
                let is_first = self.errors.len() == errors_before && self.open_comment().is_none();
                self.is_lost |= open.is_some();
                if let Some(open) = open.filter(|_| is_first) {
                    let end = self.span(self.at, self.at);
                    let opened = self.span(open, open + 1);
                    self.errors.push(
                        Error::new(opened, "This block isn't closed")
                            .detail("its `}` is missing")
                            .related(end, "the file ends here"),
                    );
                }
                break;
            }
            if self.byte() == b'}' {
                if open.is_some() {
                    break;
                }
                self.is_lost = true;
                if self.errors.is_empty() {
                    let here = self.span(self.at, self.at + 1);
                    self.errors
                        .push(Error::new(here, "This `}` closes nothing").hint("take it out"));
                }
                self.at += 1;
                continue;
            }
            let item_start = self.at;
            let errors = self.errors.len();
            match self.nested(Self::item) {
                Ok(mut item) => {
                    if let Item::Attribute(attribute) = &mut item {
                        if self.errors.len() > errors {
                            // It isn't what is written.
                            attribute.value.kind = ExpressionKind::Unreadable;
                        }
                        if let Some(first) = names.first(&items, &attribute.name) {
                            self.set_twice(first, &attribute.name);
                            continue;
                        }
                    }
                    items.push(item);
                }
                Err(_) => {
                    self.recover(item_start);
                    match self.unreadable(item_start) {
                        Some(attribute) if names.first(&items, &attribute.name).is_none() => {
                            items.push(Item::Attribute(attribute));
                        }
                        _ => has_gaps = true,
                    }
                }
            }
        }
        Body {
            items,
            span: self.span_from(start),
            has_gaps,
        }
    }

    /// An argument that begins at `start` whose value couldn't be read: all there is up to here, if that
    /// is one line.
    fn unreadable(&mut self, start: usize) -> Option<Attribute> {
        let end = self.at;
        let line = self.text[start..end].trim_end();
        if line.contains(['\n', '\r']) {
            return None;
        }
        self.at = start;
        let name = self.ident();
        let is_argument = self.peek() == b'=';
        let value = self.span(self.at.min(start + line.len()), start + line.len());
        self.at = end;
        let name = name.filter(|_| is_argument)?;
        Some(Attribute {
            span: name.span.to(value),
            name,
            value: Expression {
                kind: ExpressionKind::Unreadable,
                span: value,
            },
        })
    }

    fn set_twice(&mut self, first: Span, name: &Ident) {
        self.errors.push(
            Error::new(name.span, format!("`{}` is set twice", name.name))
                .detail("set here again")
                .related(first, "first set here"),
        );
    }

    fn item(&mut self) -> Parsed<Item> {
        let start = self.at;
        let Some(name) = self.ident() else {
            let (span, found) = self.found();
            let error = Error::new(span, "Expected an argument or a block")
                .detail(format!("found {found} here"));
            return self.fail(match self.byte() {
                _ if self.byte() == b'"' || self.is_at_curly_quote() => {
                    error.hint("names of arguments and blocks have no quotation marks")
                }
                _ => error.hint("an argument is `name = value`, a block `name { … }`"),
            });
        };
        match self.peek() {
            b'=' => {
                let attribute = self.attribute(name)?;
                self.end_of_item(start, "argument")?;
                Ok(Item::Attribute(attribute))
            }
            b'{' | b'"' => self.block(name).map(Item::Block),
            0xe2 if self.is_at_curly_quote() => self.block(name).map(Item::Block),
            _ if self.is_at_name() || self.is_before_brace() => self.block(name).map(Item::Block),
            b'0'..=b'9' | b'[' | b'(' | b'-' | b'!' => {
                let (span, found) = self.found();
                let error = no_equals_sign(span, &name.name);
                self.fail(error.detail(format!("found {found} here")))
            }
            byte => {
                let (span, found) = self.found();
                let error = Error::new(span, format!("Expected `=` or `{{` after `{}`", name.name))
                    .detail(format!("found {found} here"));
                self.fail(match byte {
                    b':' => error.hint("an argument is set with `=`"),
                    b'.' => error.hint("an argument's name has no dots"),
                    _ => error.hint("an argument is `name = value`, a block `name { … }`"),
                })
            }
        }
    }

    fn is_at_name(&mut self) -> bool {
        let start = self.at;
        let is_name = self.name().is_some();
        self.at = start;
        is_name
    }

    /// Whether the next line begins with `{`.
    fn is_before_brace(&mut self) -> bool {
        let start = self.at;
        let comments = self.comments.len();
        self.skip_lines();
        let is_brace = self.byte() == b'{';
        self.at = start;
        self.comments.truncate(comments);
        is_brace
    }

    /// Whether the next line is indented deeper than that of `start`.
    fn is_before_deeper_line(&self, start: usize) -> bool {
        let rest = &self.text[self.at..];
        let next = rest.trim_start();
        !next.is_empty() && self.indent_of(self.text.len() - next.len()) > self.indent_of(start)
    }

    /// From the `=` on.
    fn attribute(&mut self, name: Ident) -> Parsed<Attribute> {
        let start = self.at;
        self.at += 1;
        if self.byte() == b'=' {
            self.at += 1;
            let sign = self.span_from(start);
            self.one_equals_sign(sign, &name.name);
        }
        let value = self.expression()?;
        let span = name.span.to(value.span);
        Ok(Attribute { name, value, span })
    }

    pub(super) fn one_equals_sign(&mut self, sign: Span, name: &str) {
        self.errors.push(
            Error::new(sign, format!("`{name}` is set with one `=`"))
                .detail("`==` compares")
                .hint(format!("`{name} = …`")),
        );
    }

    /// Nothing more may be on the line.
    fn end_of_item(&mut self, start: usize, what: &str) -> Parsed<()> {
        self.peek();
        if self.is_at_end() || self.is_at_newline() {
            return Ok(());
        }
        let (span, found) = self.found();
        let error = Error::new(span, format!("Expected a new line after this {what}"))
            .detail(format!("found {found} here"))
            .related(self.span_from(start), format!("the {what}"));
        self.fail(match self.byte() {
            b',' => error.hint("arguments are separated by new lines, without commas"),
            b';' => error.hint("arguments are separated by new lines, without semicolons"),
            b'&' | b'|' => error.hint("the logical operators are `&&` and `||`"),
            _ => error,
        })
    }

    /// From its labels on.
    fn block(&mut self, kind: Ident) -> Parsed<Block> {
        let start = kind.span.start as usize;
        let mut errors = self.errors.len();
        let mut labels = Vec::new();
        let mut header = kind.span;
        loop {
            match self.peek() {
                b'{' => break,
                b'"' => match self.unclosed_label() {
                    // It is what is written but for the quote.
                    Some(label) => {
                        errors += 1;
                        labels.push(label);
                    }
                    None => labels.push(self.quoted_label()?),
                },
                0xe2 if self.is_at_curly_quote() => labels.push(self.quoted_label()?),
                _ => match self.ident() {
                    Some(name) => {
                        labels.push(Label {
                            name: name.name,
                            span: name.span,
                            quoted: false,
                        });
                    }
                    None => {
                        let (span, found) = self.found();
                        let is_line = self.is_at_newline();
                        let is_before_brace = self.is_before_brace();
                        let is_block = is_before_brace || self.is_before_deeper_line(start);
                        if let ([value], true, false) = (&labels[..], is_line, is_block) {
                            let error = no_equals_sign(value.span, &kind.name);
                            return self.fail(error.detail("its value, or a block's label?"));
                        }
                        let error = Error::new(span, "Expected a label or `{`")
                            .detail(format!("found {found} here"))
                            .hint("a block's `{` is on the same line as its name");
                        if !is_before_brace {
                            return self.fail(error);
                        }
                        self.errors.push(error);
                        self.skip_lines();
                        break;
                    }
                },
            }
            header = self.span_from(start);
        }
        // Its labels aren't what is written.
        self.is_lost |= self.errors.len() > errors;
        let open = self.at;
        self.at += 1;
        self.peek();
        let body = if self.is_at_newline() || self.is_at_end() {
            self.items(Some(open))
        } else {
            self.single_line(open)?
        };
        if self.byte() == b'}' {
            self.at += 1;
        }
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

    /// `name = value` and the block's end, on one line.
    fn single_line(&mut self, open: usize) -> Parsed<Body> {
        let start = self.at;
        let mut items = Vec::new();
        if self.byte() != b'}' {
            let Some(name) = self.ident() else {
                return self
                    .close(b'}', open, " or an argument")
                    .map(|()| Body::default());
            };
            if self.peek() != b'=' {
                let (span, found) = self.found();
                let is_block = {
                    let line = self.text[self.at..].lines().next();
                    line.is_some_and(|line| line.contains('{'))
                };
                let error = if is_block {
                    Error::new(span, format!("Expected `=` after `{}`", name.name))
                        .hint("a block within a block begins on a line of its own")
                } else {
                    no_equals_sign(span, &name.name)
                };
                return self.fail(error.detail(format!("found {found} here")));
            }
            items.push(Item::Attribute(self.attribute(name)?));
        }
        if self.peek() != b'}' {
            let (span, found) = self.found();
            let opened = self.span(open, open + 1);
            return self.fail(
                Error::new(span, "Expected `}`: a block on one line holds one argument")
                    .detail(format!("found {found} here"))
                    .related(opened, "opened here")
                    .hint("put each argument and the `}` on lines of their own"),
            );
        }
        Ok(Body {
            items,
            span: self.span_from(start),
            has_gaps: false,
        })
    }

    fn quoted_label(&mut self) -> Parsed<Label> {
        let expression = if self.byte() == b'"' {
            self.quoted()?
        } else {
            self.curly_quoted()?
        };
        match expression.kind {
            ExpressionKind::String(name) => Ok(Label {
                name,
                span: expression.span,
                quoted: true,
            }),
            _ => self.fail(
                Error::new(expression.span, "A label must be plain text")
                    .detail("this has an interpolation in it")
                    .hint("write `$${` for a literal `${`"),
            ),
        }
    }
}

impl Document {
    /// The comments that end within the lines just above `offset`, none of them behind anything
    /// else on its line.
    pub fn comments_above<'d>(&'d self, text: &str, offset: u32) -> &'d [Span] {
        let end = self
            .comments
            .partition_point(|comment| comment.end <= offset);
        let mut first = end;
        let mut below = offset as usize;
        while first > 0 {
            let comment = self.comments[first - 1].range();
            let between = &text[comment.end..below];
            let line_start = text[..comment.start]
                .rfind('\n')
                .map_or(0, |newline| newline + 1);
            let stands_alone = text[line_start..comment.start].trim().is_empty();
            let is_near = between.trim().is_empty() && between.matches('\n').count() <= 1;
            if !stands_alone || !is_near {
                break;
            }
            below = comment.start;
            first -= 1;
        }
        &self.comments[first..end]
    }
}

/// The error that a value stands behind an argument's name, and nothing between them.
fn no_equals_sign(value: Span, name: &str) -> Error {
    Error::new(value, format!("Expected `=` after `{name}`"))
        .hint(format!("an argument is `{name} = …`"))
}
