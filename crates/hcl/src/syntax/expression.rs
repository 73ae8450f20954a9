//! Parses conditionals, operators, `.name`, `[key]` and splats.

use super::ast::{
    Binary, BinaryOperator, Conditional, Expression, ExpressionKind, Step, StepKind, Traversal,
    UnaryOperator,
};
use super::parser::{Parsed, Parser};
use crate::error::{Error, Span};

impl Parser<'_> {
    /// Parses an expression; fails if anything follows it.
    pub(super) fn whole_expression(&mut self) -> Parsed<Expression> {
        self.skip_lines();
        let expression = self.expression()?;
        self.skip_lines();
        if self.is_at_end() {
            return Ok(expression);
        }
        Err(self.unexpected("Expected the end of the expression").into())
    }

    /// Parses an expression.
    ///
    /// Fails with the first syntax error.
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        self.nested(Self::conditional)
    }

    fn conditional(&mut self) -> Parsed<Expression> {
        let condition = self.binary()?;
        if self.peek() != b'?' {
            return Ok(condition);
        }
        self.at += 1;
        let yes = self.expression()?;
        self.expect(
            b':',
            "and what the value is otherwise: `condition ? value : other`",
        )?;
        let no = self.expression()?;
        let span = condition.span.to(no.span);
        let conditional = Conditional { condition, yes, no };
        Ok(Expression {
            kind: ExpressionKind::Conditional(Box::new(conditional)),
            span,
        })
    }

    fn binary(&mut self) -> Parsed<Expression> {
        let first = self.unary()?;
        let Some(operator) = self.operator()? else {
            return Ok(first);
        };
        let mut rest = vec![(operator.0, operator.1, self.unary()?)];
        while let Some((operator, span)) = self.operator()? {
            rest.push((operator, span, self.unary()?));
        }
        Ok(group(first, rest))
    }

    /// Parses a binary operator, if there is one.
    fn operator(&mut self) -> Parsed<Option<(BinaryOperator, Span)>> {
        use BinaryOperator as Op;
        let byte = self.peek();
        let start = self.at;
        let (operator, length) = match (byte, self.byte_after(1)) {
            (b'|', b'|') => (Op::Or, 2),
            (b'&', b'&') => (Op::And, 2),
            (b'=', b'=') => (Op::Equal, 2),
            (b'!', b'=') => (Op::NotEqual, 2),
            (b'<', b'=') => (Op::LessOrEqual, 2),
            (b'>', b'=') => (Op::GreaterOrEqual, 2),
            (b'<', _) => (Op::Less, 1),
            (b'>', _) => (Op::Greater, 1),
            (b'+', _) => (Op::Add, 1),
            (b'-', _) => (Op::Subtract, 1),
            (b'*', _) => (Op::Multiply, 1),
            (b'/', _) => (Op::Divide, 1),
            (b'%', _) => (Op::Remainder, 1),
            (b'&' | b'|', _) => {
                let symbol = char::from(byte);
                let here = self.span(start, start + 1);
                return Err(Error::new(here, format!("There is no operator `{symbol}`"))
                    .hint(format!("did you mean `{symbol}{symbol}`?"))
                    .into());
            }
            _ => return Ok(None),
        };
        self.at += length;
        Ok(Some((operator, self.span_from(start))))
    }

    /// Parses `-x`, `!x`, or a value with its steps.
    ///
    /// Fails with the first syntax error.
    pub(super) fn unary(&mut self) -> Parsed<Expression> {
        let operator = match self.peek() {
            b'-' => UnaryOperator::Negate,
            b'!' => UnaryOperator::Not,
            _ => return self.stepped(),
        };
        let start = self.at;
        self.at += 1;
        let operand = self.nested(Self::unary)?;
        let span = self.span(start, operand.span.end as usize);
        Ok(Expression {
            kind: ExpressionKind::Unary(operator, Box::new(operand)),
            span,
        })
    }

    fn stepped(&mut self) -> Parsed<Expression> {
        let base = self.term()?;
        let steps = self.steps()?;
        let Some(last) = steps.last() else {
            return Ok(base);
        };
        let span = base.span.to(last.span);
        Ok(Expression {
            kind: ExpressionKind::Traversal(Box::new(Traversal { base, steps })),
            span,
        })
    }

    fn steps(&mut self) -> Parsed<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            let before = self.at;
            let byte = self.peek();
            let start = self.at;
            let kind = match byte {
                b'.' if !self.starts_with("..") => {
                    self.at += 1;
                    self.dotted()?
                }
                b'[' => self.with_newlines(false, Self::bracketed)?,
                _ => {
                    self.at = before;
                    return Ok(steps);
                }
            };
            steps.push(Step {
                kind,
                span: self.span_from(start),
            });
        }
    }

    /// Parses the step after the `.`.
    fn dotted(&mut self) -> Parsed<StepKind> {
        match self.peek() {
            b'*' => {
                self.at += 1;
                let mut steps = Vec::new();
                while self.peek() == b'.' && !self.starts_with("..") {
                    let start = self.at;
                    self.at += 1;
                    if self.peek() == b'*' {
                        let here = self.span(self.at, self.at + 1);
                        return Err(Error::new(here, "A `.*` can't be within another")
                            .hint("write `[*]` instead")
                            .into());
                    }
                    let kind = self.dotted()?;
                    steps.push(Step {
                        kind,
                        span: self.span_from(start),
                    });
                }
                Ok(StepKind::AttributeSplat(steps))
            }
            b'0'..=b'9' => self.legacy_index(),
            _ => match self.ident() {
                Some(name) => Ok(StepKind::Attribute(name)),
                None => Err(self
                    .unexpected("Expected an attribute's name after `.`")
                    .into()),
            },
        }
    }

    fn legacy_index(&mut self) -> Parsed<StepKind> {
        let start = self.at;
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
        let span = self.span_from(start);
        if self.byte() == b'.' && self.byte_after(1).is_ascii_digit() {
            return Err(Error::new(span, "Only one index can be written with a dot")
                .hint("write indices in brackets, like `[0][1]`")
                .into());
        }
        match self.text[span.range()].parse() {
            Ok(index) => Ok(StepKind::LegacyIndex(index)),
            Err(_) => Err(Error::new(span, "This index is too large").into()),
        }
    }

    /// Parses the step from the `[`.
    fn bracketed(&mut self) -> Parsed<StepKind> {
        let open = self.at;
        self.at += 1;
        if self.peek() == b'*' {
            self.at += 1;
            self.close(b']', open)?;
            let steps = self.nested(|parser| parser.with_newlines(true, Self::steps))?;
            return Ok(StepKind::FullSplat(steps));
        }
        let key = self.expression()?;
        self.close(b']', open)?;
        Ok(StepKind::Index(key))
    }
}

/// Builds the tree of operators by precedence.
fn group(first: Expression, rest: Vec<(BinaryOperator, Span, Expression)>) -> Expression {
    let (mut first, mut rest) = (first, rest);
    for precedence in (0..=5).rev() {
        if !rest
            .iter()
            .any(|(operator, ..)| operator.precedence() == precedence)
        {
            continue;
        }
        let mut grouped: Vec<(BinaryOperator, Span, Expression)> = Vec::new();
        let mut run = Vec::new();
        for (operator, span, operand) in rest {
            if operator.precedence() == precedence {
                run.push((operator, span, operand));
            } else {
                let last = grouped.last_mut().map_or(&mut first, |last| &mut last.2);
                close_run(last, &mut run);
                grouped.push((operator, span, operand));
            }
        }
        let last = grouped.last_mut().map_or(&mut first, |last| &mut last.2);
        close_run(last, &mut run);
        rest = grouped;
    }
    first
}

fn close_run(first: &mut Expression, run: &mut Vec<(BinaryOperator, Span, Expression)>) {
    let Some((.., last)) = run.last() else {
        return;
    };
    let span = first.span.to(last.span);
    let placeholder = Expression {
        kind: ExpressionKind::Null,
        span,
    };
    let operand = std::mem::replace(first, placeholder);
    let binary = Binary {
        first: operand,
        rest: std::mem::take(run),
    };
    first.kind = ExpressionKind::Binary(Box::new(binary));
}
