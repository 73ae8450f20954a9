//! Operators and conditionals. Both sides are evaluated always, as in Terraform; a conditional
//! reports only the errors of the side that it takes.

use super::{Run, Scoped};
use crate::convert::{convert, unify};
use crate::error::{Error, Span};
use crate::number::{Number, NumberError};
use crate::syntax::{Binary, BinaryOperator, Conditional, Expression, UnaryOperator};
use crate::types::Type;
use crate::value::{Kind, Value};

impl Run<'_> {
    pub(super) fn unary(
        &mut self,
        operator: UnaryOperator,
        operand: &Expression,
        span: Span,
        frame: Scoped<'_>,
    ) -> Option<Value> {
        let value = self.value(operand, frame)?;
        let result = match operator {
            UnaryOperator::Negate => {
                let what = "What `-` negates";
                let number = self.converted(&value, &Type::Number, operand.span, what)?;
                Value::number(number.as_number()?.neg())
            }
            UnaryOperator::Not => {
                let what = "What `!` negates";
                let bool = self.converted(&value, &Type::Bool, operand.span, what)?;
                Value::from(!bool.as_bool()?)
            }
        };
        Some(result.with_span(span).or_sensitive(value.sensitive))
    }

    pub(super) fn binary(&mut self, binary: &Binary, frame: Scoped<'_>) -> Option<Value> {
        let mut span = binary.first.span;
        let mut left = self.value(&binary.first, frame);
        for (operator, operator_span, operand) in &binary.rest {
            self.charge(1, 0, *operator_span)?;
            let right = self.value(operand, frame);
            left = match (left, right) {
                (Some(left), Some(right)) => {
                    let sides = [(&left, span), (&right, operand.span)];
                    self.operation(*operator, *operator_span, sides)
                }
                _ => None,
            };
            span = span.to(operand.span);
            if let Some(left) = &mut left {
                left.span = Some(span);
            }
        }
        left
    }

    fn operation(
        &mut self,
        operator: BinaryOperator,
        operator_span: Span,
        [left, right]: [(&Value, Span); 2],
    ) -> Option<Value> {
        use BinaryOperator as Op;
        if let Op::Equal | Op::NotEqual = operator {
            let sensitive = left.0.is_sensitive_within() || right.0.is_sensitive_within();
            let equal = equals(left.0, right.0);
            return Some(Value::from(equal == (operator == Op::Equal)).or_sensitive(sensitive));
        }
        let sensitive = left.0.sensitive || right.0.sensitive;
        let to = if let Op::Or | Op::And = operator {
            Type::Bool
        } else {
            Type::Number
        };
        let symbol = operator.symbol();
        // Both sides, so that both errors show.
        let mut side = |(value, span): (&Value, Span), which: &str| match (&value.kind, &to) {
            (Kind::Number(_), Type::Number) | (Kind::Bool(_), Type::Bool) => Some(value.clone()),
            _ => {
                let what = format!("The {which} side of `{symbol}`");
                self.converted(value, &to, span, &what)
            }
        };
        let a = side(left, "left");
        let b = side(right, "right");
        let result = match (a?.kind, b?.kind) {
            (Kind::Bool(a), Kind::Bool(b)) => {
                Value::from(if operator == Op::Or { a || b } else { a && b })
            }
            (Kind::Number(a), Kind::Number(b)) => match arithmetic(operator, &a, &b) {
                Ok(value) => value,
                Err(NumberError::DivisionByZero) => {
                    return self.fail(
                        Error::new(right.1, format!("The right side of `{symbol}` can't be 0"))
                            .detail("this is 0"),
                    );
                }
                Err(error) => {
                    return self.fail(
                        Error::new(operator_span, format!("`{symbol}` has no result here"))
                            .detail(error.to_string()),
                    );
                }
            },
            _ => unreachable!("both were converted to one type"),
        };
        Some(result.or_sensitive(sensitive))
    }

    pub(super) fn conditional(
        &mut self,
        conditional: &Conditional,
        span: Span,
        frame: Scoped<'_>,
    ) -> Option<Value> {
        let condition = self
            .value(&conditional.condition, frame)
            .and_then(|condition| {
                let what = "A condition";
                self.converted(&condition, &Type::Bool, conditional.condition.span, what)
            });
        let before = self.errors.len();
        let yes = self.value(&conditional.yes, frame);
        let yes_errors = self.errors.split_off(before);
        let no = self.value(&conditional.no, frame);
        let no_errors = self.errors.split_off(before);
        let all = yes_errors.into_iter().map(|found| (true, found));
        let all = all.chain(no_errors.into_iter().map(|found| (false, found)));
        let taken = condition.as_ref().and_then(Value::as_bool);
        // A name that isn't there is wrong on either side.
        self.errors.extend(
            all.filter(|(side, found)| found.lasting || taken == Some(*side))
                .map(|(_, found)| found),
        );

        let condition = condition?;
        let (taken, other) = if condition.as_bool()? {
            (yes.as_ref(), no.as_ref())
        } else {
            (no.as_ref(), yes.as_ref())
        };
        let taken = taken?;
        let result = match other {
            None => taken.clone(),
            Some(other) => {
                let types = [taken.type_of(), other.type_of()];
                let converted = match &types {
                    [a, b] if a == b => Some(taken.clone()),
                    _ => unify(&types).and_then(|of| convert(taken, &of).ok()),
                };
                match converted {
                    Some(converted) => converted,
                    None => {
                        // What a secret object has for attributes is a secret.
                        let hidden = taken.is_sensitive_within() || other.is_sensitive_within();
                        let show = |of: &Type| {
                            if hidden {
                                of.friendly_name()
                            } else {
                                of.to_string()
                            }
                        };
                        let [yes, no] = [yes.as_ref()?.type_of(), no.as_ref()?.type_of()];
                        return self.fail(
                            Error::new(span, "Both results of a condition must be of one type")
                                .detail(format!("this is {} or {}", show(&yes), show(&no)))
                                .related(conditional.yes.span, show(&yes))
                                .related(conditional.no.span, show(&no)),
                        );
                    }
                }
            }
        };
        Some(result.or_sensitive(condition.sensitive))
    }
}

fn arithmetic(operator: BinaryOperator, a: &Number, b: &Number) -> Result<Value, NumberError> {
    use BinaryOperator as Op;
    Ok(match operator {
        Op::Add => Value::number(a.add(b)?),
        Op::Subtract => Value::number(a.sub(b)?),
        Op::Multiply => Value::number(a.mul(b)?),
        Op::Divide => Value::number(a.div(b)?),
        Op::Remainder => Value::number(a.rem(b)?),
        Op::Less => Value::from(a < b),
        Op::LessOrEqual => Value::from(a <= b),
        Op::Greater => Value::from(a > b),
        Op::GreaterOrEqual => Value::from(a >= b),
        Op::Or | Op::And | Op::Equal | Op::NotEqual => {
            unreachable!("these aren't operators on numbers")
        }
    })
}

/// `==`: a null equals every other null; otherwise both must be of one type.
fn equals(a: &Value, b: &Value) -> bool {
    if a.is_null() || b.is_null() {
        return a.is_null() && b.is_null();
    }
    let entries_equal = |a: &crate::Entries, b: &crate::Entries| {
        a.len() == b.len()
            && a.iter()
                .zip(b)
                .all(|((a_key, a), (b_key, b))| a_key == b_key && equals(a, b))
    };
    let elements_equal =
        |a: &[Value], b: &[Value]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equals(a, b));
    match (&a.kind, &b.kind) {
        (Kind::Tuple(a), Kind::Tuple(b)) => elements_equal(a, b),
        (Kind::List(a_of, a), Kind::List(b_of, b)) | (Kind::Set(a_of, a), Kind::Set(b_of, b)) => {
            a_of == b_of && elements_equal(a, b)
        }
        (Kind::Object(a), Kind::Object(b)) => entries_equal(a, b),
        (Kind::Map(a_of, a), Kind::Map(b_of, b)) => a_of == b_of && entries_equal(a, b),
        _ => a == b,
    }
}
