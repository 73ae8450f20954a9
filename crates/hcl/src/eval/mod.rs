//! From expressions to values. Comes in: a tree, a scope, a context; goes out: a value, or all errors
//! of the expression that aren't consequences of others.

mod access;
mod call;
mod loops;
mod operators;
mod special;
mod template;

use std::sync::Arc;

use crate::context::Context;
use crate::convert::convert;
use crate::error::{Error, Span};
use crate::scope::{Reference, Scope};
use crate::syntax::{Expression, ExpressionKind, Ident, ObjectItem, ObjectKey, Step};
use crate::types::Type;
use crate::value::{Entries, Kind, Value};

/// Evaluates expressions in one scope.
#[derive(Clone, Copy)]
pub struct Evaluator<'a> {
    scope: &'a dyn Scope,
    context: &'a Context<'a>,
    within_template_file: bool,
}

impl<'a> Evaluator<'a> {
    pub fn new(scope: &'a dyn Scope, context: &'a Context<'a>) -> Self {
        Self {
            scope,
            context,
            within_template_file: false,
        }
    }

    /// The value, each part of it with the place where it was written.
    pub fn evaluate(&self, expression: &Expression) -> Result<Value, Vec<Error>> {
        let mut run = Run {
            evaluator: *self,
            errors: Vec::new(),
        };
        let value = run.value(expression, None);
        match value.and_then(|value| run.of_fair_size(value, expression.span)) {
            Some(value) if run.errors.is_empty() => Ok(value),
            _ => Err(run.errors.into_iter().map(|found| found.error).collect()),
        }
    }
}

/// The names of one turn of `for`, and those around it.
pub(crate) struct Frame<'f> {
    outer: Option<&'f Frame<'f>>,
    key: Option<(&'f Ident, Value)>,
    value: (&'f Ident, Value),
}

impl Frame<'_> {
    fn find(&self, name: &str) -> Option<&Value> {
        if *self.value.0.name == *name {
            return Some(&self.value.1);
        }
        match &self.key {
            Some((key, value)) if *key.name == *name => Some(value),
            _ => self.outer?.find(name),
        }
    }
}

type Scoped<'f> = Option<&'f Frame<'f>>;

/// One evaluation. `None` means that an error was recorded.
pub(crate) struct Run<'a> {
    evaluator: Evaluator<'a>,
    errors: Vec<Found>,
}

/// An error, and whether `try` and `can` leave it: a name that isn't there is a slip of the pen,
/// which they mustn't hide.
struct Found {
    error: Error,
    lasting: bool,
}

impl Run<'_> {
    fn fail<T>(&mut self, error: Error) -> Option<T> {
        self.errors.push(Found {
            error,
            lasting: false,
        });
        None
    }

    /// Takes back what went wrong since there were `before` errors, but for what lasts.
    fn forgive(&mut self, before: usize) -> Vec<Error> {
        let (lasting, forgiven): (Vec<_>, Vec<_>) =
            self.errors.drain(before..).partition(|found| found.lasting);
        self.errors.extend(lasting);
        forgiven.into_iter().map(|found| found.error).collect()
    }

    fn of_fair_size(&mut self, value: Value, span: Span) -> Option<Value> {
        match self.evaluator.context.check_size(&value) {
            Ok(()) => Some(value),
            Err(limit) => self.fail(Error::new(span, limit.0)),
        }
    }

    fn charge(&mut self, steps: usize, bytes: usize, span: Span) -> Option<()> {
        let context = self.evaluator.context;
        match context
            .charge_steps(steps)
            .and_then(|()| context.charge_bytes(bytes))
        {
            Ok(()) => Some(()),
            Err(limit) => self.fail(Error::new(span, limit.0)),
        }
    }

    fn value(&mut self, expression: &Expression, frame: Scoped<'_>) -> Option<Value> {
        let span = expression.span;
        let _level = match self.evaluator.context.enter() {
            Ok(level) => level,
            Err(limit) => return self.fail(Error::new(span, limit.0)),
        };
        self.charge(1, 0, span)?;
        let written = |kind| Some(Value::new(kind).with_span(span));
        match &expression.kind {
            ExpressionKind::Null => written(Kind::Null(Type::Any)),
            ExpressionKind::Bool(value) => written(Kind::Bool(*value)),
            ExpressionKind::Number(number) => written(Kind::Number(number.clone())),
            ExpressionKind::String(text) => written(Kind::String(text.clone())),
            ExpressionKind::Template(template) => self.template(template, span, frame),
            ExpressionKind::Tuple(elements) => self.tuple(elements, span, frame),
            ExpressionKind::Object(items) => self.object(items, span, frame),
            ExpressionKind::Parenthesis(inner) => self.value(inner, frame),
            ExpressionKind::Variable(name) => self.reference(name, &[], span, frame),
            ExpressionKind::Traversal(traversal) => {
                let steps = &traversal.steps[..];
                match &traversal.base.kind {
                    ExpressionKind::Variable(name) => self.reference(name, steps, span, frame),
                    _ => {
                        let base = self.value(&traversal.base, frame)?;
                        self.steps(base, steps, traversal.base.span, frame)
                    }
                }
            }
            ExpressionKind::Call(call) => self.call(call, span, frame),
            ExpressionKind::Unary(operator, operand) => self.unary(*operator, operand, span, frame),
            ExpressionKind::Binary(binary) => self.binary(binary, frame),
            ExpressionKind::Conditional(conditional) => self.conditional(conditional, span, frame),
            ExpressionKind::For(made) => self.for_expression(made, span, frame),
        }
    }

    fn tuple(&mut self, elements: &[Expression], span: Span, frame: Scoped<'_>) -> Option<Value> {
        // Every element is looked at, so that every error shows.
        let values: Vec<Option<Value>> = elements
            .iter()
            .map(|element| self.value(element, frame))
            .collect();
        let values: Option<Vec<Value>> = values.into_iter().collect();
        Some(Value::tuple(values?).with_span(span))
    }

    fn object(&mut self, items: &[ObjectItem], span: Span, frame: Scoped<'_>) -> Option<Value> {
        let mut entries = Entries::new();
        let mut complete = true;
        let mut sensitive = false;
        for item in items {
            let key = match &item.key {
                ObjectKey::Name(name) => Some(name.name.clone()),
                ObjectKey::Expression(key) => match self.value(key, frame) {
                    Some(value) => {
                        sensitive |= value.sensitive;
                        self.key(&value, key.span)
                    }
                    None => None,
                },
            };
            let value = self.value(&item.value, frame);
            match (key, value) {
                (Some(key), Some(value)) => {
                    entries.insert(key, value);
                }
                _ => complete = false,
            }
        }
        complete.then(|| {
            Value::object(entries)
                .with_span(span)
                .or_sensitive(sensitive)
        })
    }

    /// As the key of an object.
    fn key(&mut self, value: &Value, span: Span) -> Option<Arc<str>> {
        match convert(value, &Type::String).map(|value| value.kind) {
            Ok(Kind::String(text)) => Some(text),
            Ok(_) => self.fail(Error::new(span, "A key can't be null").detail("this is null")),
            Err(_) => self.fail(
                Error::new(span, "A key must be a string")
                    .detail(format!("this is {}", described(value))),
            ),
        }
    }

    fn reference(
        &mut self,
        root: &Ident,
        steps: &[Step],
        span: Span,
        frame: Scoped<'_>,
    ) -> Option<Value> {
        if let Some(value) = frame.and_then(|frame| frame.find(&root.name)) {
            return self.steps(value.clone(), steps, root.span, frame);
        }
        match self
            .evaluator
            .scope
            .resolve(Reference { root, steps, span })
        {
            Ok((value, taken)) => {
                let taken = taken.min(steps.len());
                let so_far = steps[..taken]
                    .last()
                    .map_or(root.span, |last| root.span.to(last.span));
                let value = self.steps(value, &steps[taken..], so_far, frame)?;
                self.of_fair_size(value, span)
            }
            Err(errors) => {
                self.errors.extend(errors.into_iter().map(|error| Found {
                    error,
                    lasting: true,
                }));
                None
            }
        }
    }

    /// A string, boolean or number as what an operator or a condition needs.
    fn converted(&mut self, value: &Value, to: &Type, span: Span, what: &str) -> Option<Value> {
        let needs = match to {
            Type::Bool => "true or false",
            Type::Number => "a number",
            _ => "a string",
        };
        let summary = format!("{what} must be {needs}");
        if value.is_null() {
            return self.fail(Error::new(span, summary).detail("this is null"));
        }
        match convert(value, to) {
            Ok(converted) => Some(converted),
            Err(_) => {
                self.fail(Error::new(span, summary).detail(format!("this is {}", described(value))))
            }
        }
    }
}

/// A value for people: what it is, and its text if that is short and no secret.
pub(crate) fn described(value: &Value) -> String {
    if value.sensitive {
        return "a sensitive value".to_owned();
    }
    match &value.kind {
        Kind::Null(_) => "null".to_owned(),
        Kind::Bool(value) => value.to_string(),
        Kind::Number(number) => {
            let text = number.to_string();
            if text.len() <= 40 {
                format!("the number {text}")
            } else {
                "a number".to_owned()
            }
        }
        Kind::String(text) if text.len() <= 40 => {
            format!("the string {}", crate::format::quote(text))
        }
        Kind::String(_) => "a string".to_owned(),
        Kind::Tuple(_) => "a tuple".to_owned(),
        Kind::Object(_) => "an object".to_owned(),
        Kind::List(..) => "a list".to_owned(),
        Kind::Set(..) => "a set".to_owned(),
        Kind::Map(..) => "a map".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
