//! The names that an expression refers to, without evaluating it: what must be there before.

use super::ast::{Expression, ExpressionKind, Ident, ObjectKey, Step, StepKind, TemplatePart};
use crate::scope::Reference;

impl Expression {
    /// Calls `visit` with each reference to a name from outside, in the order they are written.
    pub fn references<'e>(&'e self, visit: &mut dyn FnMut(Reference<'e>)) {
        Walk {
            visit,
            bound: Vec::new(),
        }
        .expression(self);
    }
}

struct Walk<'e, 'v> {
    visit: &'v mut dyn FnMut(Reference<'e>),
    /// The names of `for` around.
    bound: Vec<&'e str>,
}

impl<'e> Walk<'e, '_> {
    fn expression(&mut self, expression: &'e Expression) {
        match &expression.kind {
            ExpressionKind::Null
            | ExpressionKind::Bool(_)
            | ExpressionKind::Number(_)
            | ExpressionKind::String(_) => {}
            ExpressionKind::Template(template) => self.parts(&template.parts),
            ExpressionKind::Tuple(elements) => {
                for element in elements {
                    self.expression(element);
                }
            }
            ExpressionKind::Object(items) => {
                for item in items {
                    if let ObjectKey::Expression(key) = &item.key {
                        self.expression(key);
                    }
                    self.expression(&item.value);
                }
            }
            ExpressionKind::Parenthesis(inner) | ExpressionKind::Unary(_, inner) => {
                self.expression(inner);
            }
            ExpressionKind::Variable(root) => self.reference(root, &[], expression),
            ExpressionKind::Traversal(traversal) => {
                match &traversal.base.kind {
                    ExpressionKind::Variable(root) => {
                        self.reference(root, &traversal.steps, expression);
                    }
                    _ => self.expression(&traversal.base),
                }
                self.steps(&traversal.steps);
            }
            ExpressionKind::Call(call) => {
                for argument in &call.arguments {
                    self.expression(argument);
                }
            }
            ExpressionKind::Binary(binary) => {
                self.expression(&binary.first);
                for (.., operand) in &binary.rest {
                    self.expression(operand);
                }
            }
            ExpressionKind::Conditional(conditional) => {
                self.expression(&conditional.condition);
                self.expression(&conditional.yes);
                self.expression(&conditional.no);
            }
            ExpressionKind::For(made) => {
                self.expression(&made.collection);
                self.bind(made.key_name.as_ref(), &made.value_name, |walk| {
                    if let Some(key) = &made.key {
                        walk.expression(key);
                    }
                    walk.expression(&made.result);
                    if let Some(condition) = &made.condition {
                        walk.expression(condition);
                    }
                });
            }
        }
    }

    fn reference(&mut self, root: &'e Ident, steps: &'e [Step], whole: &'e Expression) {
        if !self.bound.contains(&&*root.name) {
            (self.visit)(Reference {
                root,
                steps,
                span: whole.span,
            });
        }
    }

    fn steps(&mut self, steps: &'e [Step]) {
        for step in steps {
            match &step.kind {
                StepKind::Attribute(_) | StepKind::LegacyIndex(_) => {}
                StepKind::Index(key) => self.expression(key),
                StepKind::AttributeSplat(steps) | StepKind::FullSplat(steps) => self.steps(steps),
            }
        }
    }

    fn parts(&mut self, parts: &'e [TemplatePart]) {
        for part in parts {
            match part {
                TemplatePart::Literal(_) => {}
                TemplatePart::Interpolation(expression) => self.expression(expression),
                TemplatePart::If(part) => {
                    self.expression(&part.condition);
                    self.parts(&part.yes);
                    self.parts(&part.no);
                }
                TemplatePart::For(part) => {
                    self.expression(&part.collection);
                    self.bind(part.key_name.as_ref(), &part.value_name, |walk| {
                        walk.parts(&part.body);
                    });
                }
            }
        }
    }

    fn bind(&mut self, key: Option<&'e Ident>, value: &'e Ident, walk: impl FnOnce(&mut Self)) {
        let before = self.bound.len();
        self.bound.extend(key.map(|name| &*name.name));
        self.bound.push(&value.name);
        walk(self);
        self.bound.truncate(before);
    }
}
