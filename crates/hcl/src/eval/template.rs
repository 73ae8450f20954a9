//! Templates: parts to one string.

use std::iter;
use std::ops::Range;

use super::{Frame, Run, Scoped, described};
use crate::convert::convert;
use crate::error::{Error, Span};
use crate::syntax::{Expression, Template, TemplatePart};
use crate::types::Type;
use crate::value::{Kind, Value};

impl Run<'_> {
    pub(super) fn template(
        &mut self,
        template: &Template,
        span: Span,
        frame: Scoped<'_>,
    ) -> Option<Value> {
        if template.passes
            && let [TemplatePart::Interpolation(expression)] = &template.parts[..]
        {
            return self.value(expression, frame);
        }
        let mut text = Text::default();
        self.parts(&template.parts, &mut text, span, frame)?;
        let value = if text.sensitive {
            Value::partly_sensitive(text.made, text.hidden)
        } else {
            Value::string(text.made)
        };
        Some(value.with_span(span))
    }

    fn parts(
        &mut self,
        parts: &[TemplatePart],
        text: &mut Text,
        span: Span,
        frame: Scoped<'_>,
    ) -> Option<()> {
        let mut complete = true;
        for part in parts {
            let done = match part {
                TemplatePart::Literal(literal) => self.append(literal, &[], text, span),
                TemplatePart::Interpolation(expression) => {
                    self.interpolation(expression, text, frame)
                }
                TemplatePart::If(part) => {
                    let condition = self.value(&part.condition, frame).and_then(|condition| {
                        let what = "The condition of `if`";
                        let span = part.condition.span;
                        self.converted(&condition, &Type::Bool, span, what)
                    });
                    let taken = condition.as_ref().and_then(Value::as_bool);
                    let is_hidden = condition.is_some_and(|condition| condition.sensitive);
                    let outer = text.hide(is_hidden);
                    let done = match taken {
                        Some(true) => self.parts(&part.yes, text, span, frame),
                        Some(false) => self.parts(&part.no, text, span, frame),
                        None => None,
                    };
                    text.is_hidden = outer;
                    done
                }
                TemplatePart::For(part) => {
                    self.value(&part.collection, frame).and_then(|collection| {
                        let outer = text.hide(collection.sensitive);
                        for (key, value) in self.turns(&collection, &part.collection)? {
                            self.charge(1, 0, part.span)?;
                            let inner = Frame {
                                outer: frame,
                                key: part.key_name.as_ref().map(|name| (name, key)),
                                value: (&part.value_name, value),
                            };
                            self.parts(&part.body, text, span, Some(&inner))?;
                        }
                        text.is_hidden = outer;
                        Some(())
                    })
                }
            };
            complete &= done.is_some();
        }
        complete.then_some(())
    }

    fn interpolation(
        &mut self,
        expression: &Expression,
        text: &mut Text,
        frame: Scoped<'_>,
    ) -> Option<()> {
        let value = self.value(expression, frame)?;
        text.sensitive |= value.sensitive;
        let hidden = |piece: &str| match value.sensitive_bytes() {
            Some(bytes) => bytes.to_vec(),
            None if value.sensitive => iter::once(0..piece.len()).collect(),
            None => Vec::new(),
        };
        if let Kind::String(piece) = &value.kind {
            return self.append(piece, &hidden(piece), text, expression.span);
        }
        match convert(&value, &Type::String).map(|value| value.kind) {
            Ok(Kind::String(piece)) => self.append(&piece, &hidden(&piece), text, expression.span),
            _ => {
                let error = Error::new(
                    expression.span,
                    "Only strings, numbers and booleans go into a string",
                )
                .detail(format!("this is {}", described(&value)));
                self.fail(match &value.kind {
                    Kind::Null(_) => {
                        error.hint("give another value instead with `coalesce(…, \"\")`")
                    }
                    Kind::Tuple(_) | Kind::List(..) | Kind::Set(..) => error.hint(
                        "put the elements together with `join(\", \", …)`, or use `jsonencode(…)`",
                    ),
                    _ => error.hint("use one of its attributes, or `jsonencode(…)`"),
                })
            }
        }
    }

    /// Adds a piece with its sensitive bytes.
    fn append(
        &mut self,
        piece: &str,
        hidden: &[Range<usize>],
        text: &mut Text,
        span: Span,
    ) -> Option<()> {
        if text.is_full {
            return None;
        }
        let room = self.charge(0, piece.len(), span);
        text.is_full = room.is_none();
        room?;
        let start = text.made.len();
        text.made.push_str(piece);
        if text.is_hidden {
            text.hidden.push(start..text.made.len());
        } else {
            let hidden = hidden.iter();
            text.hidden
                .extend(hidden.map(|range| start + range.start..start + range.end));
        }
        Some(())
    }
}

/// What there is of a template so far.
#[derive(Default)]
struct Text {
    made: String,
    sensitive: bool,
    /// The bytes of it that are sensitive.
    hidden: Vec<Range<usize>>,
    /// Something sensitive decides about what is written now.
    is_hidden: bool,
    /// That no more goes in was reported.
    is_full: bool,
}

impl Text {
    /// Hides what is written from now on, if that `is_sensitive`; whether it was hidden before.
    fn hide(&mut self, is_sensitive: bool) -> bool {
        self.sensitive |= is_sensitive;
        let outer = self.is_hidden;
        self.is_hidden |= is_sensitive;
        outer
    }
}
