//! Parses literals: numbers, names, calls, parentheses, tuples, objects, `for`.

use super::ast::{Call, Expression, ExpressionKind, For, Ident, ObjectItem, ObjectKey, StepKind};
use super::parser::{Parsed, Parser};
use crate::error::Error;
use crate::number::Number;

impl Parser<'_> {
    /// Parses a value without operators.
    ///
    /// Fails with the first syntax error.
    pub(super) fn term(&mut self) -> Parsed<Expression> {
        match self.peek() {
            b'"' => self.quoted(),
            b'0'..=b'9' => self.number(),
            b'(' => self.with_newlines(false, Self::parenthesis),
            b'[' => self.with_newlines(false, Self::tuple),
            b'{' if self.byte_after(1) == b'{' => Err(self.bare_template().into()),
            b'{' => self.object(),
            b'<' if self.byte_after(1) == b'<' => self.heredoc(),
            _ => match self.ident() {
                Some(name) => self.named(name),
                None => Err(self.no_term().into()),
            },
        }
    }

    fn no_term(&mut self) -> Error {
        let error = self.unexpected("Expected a value");
        let before = self.text[..self.at].trim_end_matches(' ').strip_suffix('%');
        if before.is_some_and(|number| number.ends_with(|c: char| c.is_ascii_digit())) {
            return error.hint("percentages must be quoted, such as `\"25%\"`");
        }
        match self.byte() {
            b'\n' | b'\r' => {
                error.hint("the value begins on the same line; in parentheses it may span several")
            }
            b'$' => error.hint("an expression outside of a string has no `${ }`"),
            _ => error,
        }
    }

    /// The error that an unquoted Go template is used as a value. `{{` is never valid, since an
    /// object can't be a key.
    fn bare_template(&self) -> Error {
        let line = self.text[self.at..].lines().next().unwrap_or_default();
        let length = line.find("}}").map_or(line.len(), |at| at + 2);
        let template = line[..length].replace('\\', "\\\\").replace('"', "\\\"");
        Error::new(
            self.span(self.at, self.at + length),
            "A Go template must be quoted",
        )
        .detail("no quotes around it")
        .hint(format!(
            "write `\"{template}\"`, or several lines as `<<-EOT … EOT`"
        ))
    }

    fn number(&mut self) -> Parsed<Expression> {
        let start = self.at;
        self.digits();
        if self.byte() == b'.' && self.byte_after(1).is_ascii_digit() {
            self.at += 1;
            self.digits();
        }
        if matches!(self.byte(), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte_after(1), b'+' | b'-'));
            if self.byte_after(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.digits();
            }
        }
        let span = self.span_from(start);
        match Number::parse(&self.text[span.range()]) {
            Ok(number) => Ok(Expression {
                kind: ExpressionKind::Number(number),
                span,
            }),
            Err(error) => Err(Error::new(span, "This number can't be used")
                .detail(error.to_string())
                .into()),
        }
    }

    fn digits(&mut self) {
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
    }

    fn named(&mut self, name: Ident) -> Parsed<Expression> {
        let before = self.at;
        if self.peek() == b'(' {
            return self.with_newlines(false, |parser| parser.call(name));
        }
        self.at = before;
        let span = name.span;
        let kind = match &*name.name {
            "true" => ExpressionKind::Bool(true),
            "false" => ExpressionKind::Bool(false),
            "null" => ExpressionKind::Null,
            _ => ExpressionKind::Variable(name),
        };
        Ok(Expression { kind, span })
    }

    /// Parses a call from the `(`.
    fn call(&mut self, name: Ident) -> Parsed<Expression> {
        let open = self.at;
        self.at += 1;
        let mut arguments = Vec::new();
        let mut expands = false;
        while self.peek() != b')' {
            let argument = self.expression()?;
            let last = argument.span;
            arguments.push(argument);
            match self.peek() {
                b',' => self.at += 1,
                b')' => {}
                b'.' if self.starts_with("...") => {
                    self.at += 3;
                    expands = true;
                    if self.peek() == b',' {
                        let here = self.span(self.at, self.at + 1);
                        return Err(Error::new(here, "Only the last argument can have `...`")
                            .detail("more follows here")
                            .into());
                    }
                    break;
                }
                _ => return Err(self.no_comma(open, last).into()),
            }
        }
        self.close(b')', open)?;
        let parentheses = self.span_from(open);
        let span = name.span.to(parentheses);
        let call = Call {
            name,
            arguments,
            expands,
            parentheses,
        };
        Ok(Expression {
            kind: ExpressionKind::Call(Box::new(call)),
            span,
        })
    }

    fn parenthesis(&mut self) -> Parsed<Expression> {
        let open = self.at;
        self.at += 1;
        let inner = self.expression()?;
        self.close(b')', open)?;
        let span = self.span_from(open);
        Ok(Expression {
            kind: ExpressionKind::Parenthesis(Box::new(inner)),
            span,
        })
    }

    fn tuple(&mut self) -> Parsed<Expression> {
        let open = self.at;
        self.at += 1;
        if self.is_at_for() {
            return self.for_expression(open, b']');
        }
        let mut elements = Vec::new();
        while self.peek() != b']' {
            let element = self.expression()?;
            let last = element.span;
            elements.push(element);
            match self.peek() {
                b',' => self.at += 1,
                b']' => {}
                _ => return Err(self.no_comma(open, last).into()),
            }
        }
        self.at += 1;
        Ok(Expression {
            kind: ExpressionKind::Tuple(elements),
            span: self.span_from(open),
        })
    }

    fn object(&mut self) -> Parsed<Expression> {
        let open = self.at;
        self.at += 1;
        if self.with_newlines(false, Self::is_at_for) {
            return self.with_newlines(false, |parser| parser.for_expression(open, b'}'));
        }
        self.with_newlines(true, |parser| parser.object_items(open))
    }

    fn object_items(&mut self, open: usize) -> Parsed<Expression> {
        let mut items = Vec::new();
        loop {
            self.skip_lines();
            if self.byte() == b'}' || self.is_at_end() {
                break;
            }
            let item = self.object_item(open)?;
            let last = item.value.span;
            items.push(item);
            match self.peek() {
                b',' => self.at += 1,
                b'}' => {}
                _ if self.is_at_newline() || self.is_at_end() => {}
                _ => return Err(self.no_comma(open, last).into()),
            }
        }
        self.close(b'}', open)?;
        Ok(Expression {
            kind: ExpressionKind::Object(items),
            span: self.span_from(open),
        })
    }

    fn object_item(&mut self, open: usize) -> Parsed<ObjectItem> {
        let start = self.at;
        let key = self.expression()?;
        if !matches!(self.peek(), b'=' | b':') {
            self.at = start;
            if self.is_behind_brackets(open) {
                return Err(self.unclosed(open).into());
            }
            return Err(Error::new(key.span.after(), "Missing `=` after a key")
                .detail("add `=` here")
                .into());
        }
        self.check_key(&key)?;
        let key = match key.kind {
            ExpressionKind::Variable(name) => ObjectKey::Name(name),
            // Keywords are valid as names here.
            ExpressionKind::Bool(_) | ExpressionKind::Null => {
                let name = self.text[key.span.range()].into();
                ObjectKey::Name(Ident {
                    name,
                    span: key.span,
                })
            }
            _ => ObjectKey::Expression(key),
        };
        self.at += 1;
        let value = self.expression()?;
        Ok(ObjectItem { key, value })
    }

    /// Checks a key. A name alone is the key itself. A name with steps could be a key or a
    /// reference, which Terraform rejects; with computed steps it is a reference.
    fn check_key(&self, key: &Expression) -> Parsed<()> {
        let ExpressionKind::Traversal(traversal) = &key.kind else {
            return Ok(());
        };
        let is_name = matches!(traversal.base.kind, ExpressionKind::Variable(_));
        let is_known = traversal.steps.iter().all(|step| match &step.kind {
            StepKind::Attribute(_) | StepKind::LegacyIndex(_) => true,
            StepKind::Index(index) => matches!(
                index.kind,
                ExpressionKind::String(_) | ExpressionKind::Number(_)
            ),
            StepKind::AttributeSplat(_) | StepKind::FullSplat(_) => false,
        });
        if !is_name || !is_known {
            return Ok(());
        }
        let text = &self.text[key.span.range()];
        let hint = if text.contains(['"', '\n']) {
            "write the key in parentheses if its value is meant, else in quotes".to_owned()
        } else {
            format!("if its value is meant, write `({text})`, else `\"{text}\"`")
        };
        Err(Error::new(key.span, "This key is ambiguous")
            .detail("a reference, or a name with dots")
            .hint(hint)
            .into())
    }

    fn is_at_for(&mut self) -> bool {
        let before = self.at;
        self.peek();
        let is_for = self.name() == Some("for");
        self.at = before;
        is_for
    }

    /// Parses a `for` expression after its opening bracket.
    fn for_expression(&mut self, open: usize, close: u8) -> Parsed<Expression> {
        self.peek();
        self.name();
        let (key_name, value_name) = self.for_names()?;
        let collection = self.expression()?;
        self.expect(b':', "after the collection of `for`")?;
        let mut result = self.expression()?;
        let mut key = None;
        let mut groups = false;
        if close == b'}' {
            self.peek();
            if !self.starts_with("=>") {
                return Err(self
                    .unexpected("Expected `=>` between key and value")
                    .hint("`[for …]` makes a list, `{for … : key => value}` an object")
                    .into());
            }
            self.at += 2;
            key = Some(std::mem::replace(&mut result, self.expression()?));
            self.peek();
            if self.starts_with("...") {
                self.at += 3;
                groups = true;
            }
        } else {
            self.peek();
            if self.starts_with("=>") {
                let here = self.span(self.at, self.at + 2);
                return Err(Error::new(here, "A list has no keys")
                    .hint("`{for … : key => value}`, in braces, makes an object")
                    .into());
            }
        }
        let before = self.at;
        self.peek();
        let condition = if self.name() == Some("if") {
            Some(self.expression()?)
        } else {
            self.at = before;
            None
        };
        self.close(close, open)?;
        let made = For {
            key_name,
            value_name,
            collection,
            key,
            result,
            groups,
            condition,
        };
        Ok(Expression {
            kind: ExpressionKind::For(Box::new(made)),
            span: self.span_from(open),
        })
    }

    /// Parses `name in`, or `key, name in`.
    ///
    /// Fails with the first syntax error.
    pub(super) fn for_names(&mut self) -> Parsed<(Option<Ident>, Ident)> {
        let first = self.for_name()?;
        let (key_name, value_name) = if self.peek() == b',' {
            self.at += 1;
            (Some(first), self.for_name()?)
        } else {
            (None, first)
        };
        self.peek();
        let before = self.at;
        if self.name() != Some("in") {
            self.at = before;
            return Err(self
                .unexpected("Expected `in` after the names of `for`")
                .into());
        }
        Ok((key_name, value_name))
    }

    fn for_name(&mut self) -> Parsed<Ident> {
        self.peek();
        match self.ident() {
            Some(name) => Ok(name),
            None => Err(self.unexpected("Expected a name after `for`").into()),
        }
    }
}
