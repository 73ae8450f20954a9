//! Templates: parts to one string.

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
        Some(
            Value::string(text.made)
                .with_span(span)
                .or_sensitive(text.sensitive),
        )
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
                TemplatePart::Literal(literal) => self.append(literal, text, span),
                TemplatePart::Interpolation(expression) => {
                    self.interpolation(expression, text, frame)
                }
                TemplatePart::If(part) => {
                    let taken = self.value(&part.condition, frame).and_then(|condition| {
                        let what = "The condition of `if`";
                        let span = part.condition.span;
                        let value = self.converted(&condition, &Type::Bool, span, what)?;
                        text.sensitive |= value.sensitive;
                        value.as_bool()
                    });
                    match taken {
                        Some(true) => self.parts(&part.yes, text, span, frame),
                        Some(false) => self.parts(&part.no, text, span, frame),
                        None => None,
                    }
                }
                TemplatePart::For(part) => {
                    self.value(&part.collection, frame).and_then(|collection| {
                        text.sensitive |= collection.sensitive;
                        for (key, value) in self.turns(&collection, &part.collection)? {
                            self.charge(1, 0, part.span)?;
                            let inner = Frame {
                                outer: frame,
                                key: part.key_name.as_ref().map(|name| (name, key)),
                                value: (&part.value_name, value),
                            };
                            self.parts(&part.body, text, span, Some(&inner))?;
                        }
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
        if let Kind::String(piece) = &value.kind {
            return self.append(piece, text, expression.span);
        }
        match convert(&value, &Type::String).map(|value| value.kind) {
            Ok(Kind::String(piece)) => self.append(&piece, text, expression.span),
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

    fn append(&mut self, piece: &str, text: &mut Text, span: Span) -> Option<()> {
        if text.is_full {
            return None;
        }
        let room = self.charge(0, piece.len(), span);
        text.is_full = room.is_none();
        room?;
        text.made.push_str(piece);
        Some(())
    }
}

/// What there is of a template so far.
#[derive(Default)]
struct Text {
    made: String,
    sensitive: bool,
    /// That no more goes in was reported.
    is_full: bool,
}
