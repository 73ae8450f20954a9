//! Operands: literals, fields, variables, functions, and the fields that follow them.

use super::lex::{Kind, Token};
use super::pipeline::{Head, Level};
use super::{Parsed, Parser, fail, fail_with_hint};
use crate::code::{Body, Callee, Flags, Op, ROOT, Site};
use crate::environment::nearest;
use crate::functions::Builtin;
use crate::number;
use crate::quote::{quoted, unquote};
use crate::value::Value;

enum Literal {
    Dot,
    Nil,
    Value(Value),
    Overflow,
}

/// Fields that follow an operand, and one another.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    start: usize,
    pub(super) end: usize,
}

fn site_of(token: Token) -> Site {
    Site {
        position: token.start() as u32,
        start: token.start() as u32,
        end: token.end() as u32,
    }
}

impl Parser<'_> {
    /// The fields right after an operand, if any: where the source has them.
    pub(super) fn chain(&mut self) -> Parsed<Option<Chain>> {
        let mut chain: Option<Chain> = None;
        if self.pending.is_empty() && !self.lexer.at_dot() {
            return Ok(None);
        }
        loop {
            let token = self.next()?;
            if token.kind != Kind::Field {
                self.put_back(token);
                return Ok(chain);
            }
            let start = chain.map_or(token.start(), |chain| chain.start);
            let end = token.end();
            chain = Some(Chain { start, end });
        }
    }

    pub(super) fn chain_field(&mut self, base: Site, chain: Chain) -> Head {
        let path = self.builder().path(chain.start, chain.end);
        let site = Site {
            position: chain.start as u32,
            start: base.start,
            end: chain.end as u32,
        };
        let op = self.builder().emit(
            Op::ChainField {
                path,
                flags: Flags::default(),
            },
            site,
        );
        Head::Field { op }
    }

    /// Reads a term that isn't a parenthesis, with the fields after it, and emits its code, unless
    /// it is the function that the command calls.
    pub(super) fn term(&mut self, level: &mut Level, token: Token) -> Parsed<Head> {
        let first = level
            .command
            .as_ref()
            .is_none_or(|command| command.head.is_none());
        let text = self.slice(token);
        let callee = if token.kind == Kind::Identifier {
            Some(self.callee(token)?)
        } else {
            None
        };
        if token.kind == Kind::Variable {
            self.check_variable(token)?;
        }
        let literal = self.literal(token)?;
        let chain = self.chain()?;
        let end = chain.map_or(token.end(), |chain| chain.end);
        if let Some(command) = level.command.as_mut() {
            command.end = end;
        }
        let mut site = site_of(token);
        if let Some(function) = callee {
            if let Some(chain) = chain {
                self.call_bare(function, site);
                return Ok(self.chain_field(site, chain));
            }
            if first {
                let builder = self.builder();
                let callee = builder.callee(function);
                let tests = callee.tests_truth();
                let logic = callee.logic();
                return Ok(Head::Function {
                    function,
                    site,
                    tests,
                    logic,
                });
            }
            self.call_bare(function, site);
            return Ok(Head::Other {
                site,
                executable: true,
                nil: false,
            });
        }
        if matches!(token.kind, Kind::Field | Kind::Variable) {
            if let Some(chain) = chain {
                site.position = chain.start as u32;
                site.end = chain.end as u32;
            }
            return Ok(self.field_or_variable(token, chain, site));
        }
        if let Some(chain) = chain {
            let message = format!("unexpected . after term {}", quoted(text));
            return fail(message, chain.start);
        }
        let builder = self.builder();
        match literal {
            Literal::Dot => {
                builder.emit(Op::Dot { unwrap: false }, site);
            }
            Literal::Nil => {
                builder.emit(Op::Nil, site);
            }
            Literal::Value(value) => builder.constant(value, site),
            Literal::Overflow => builder.fail(format!("{text} overflows int"), site),
        }
        let nil = token.kind == Kind::Nil;
        Ok(Head::Other {
            site,
            executable: false,
            nil,
        })
    }

    fn field_or_variable(&mut self, token: Token, chain: Option<Chain>, site: Site) -> Head {
        if token.kind == Kind::Field {
            let path = self.builder().path(token.start(), site.end as usize);
            let op = self.builder().emit(
                Op::Field {
                    path,
                    flags: Flags::default(),
                },
                site,
            );
            return Head::Field { op };
        }
        let text = self.slice(token);
        let name = self.builder().name(text);
        let Some(chain) = chain else {
            self.builder().emit(
                Op::Variable {
                    name,
                    unwrap: false,
                },
                site,
            );
            return Head::Other {
                site,
                executable: true,
                nil: false,
            };
        };
        let path = self.builder().path(chain.start, chain.end);
        let op = self.builder().emit(
            Op::VariableField {
                name,
                path,
                flags: Flags::default(),
            },
            site,
        );
        Head::Field { op }
    }

    fn callee(&mut self, token: Token) -> Parsed<u32> {
        let name = self.slice(token);
        if let Some(known) = self.builder().known_function(name) {
            return Ok(known);
        }
        let body = if let Some(function) = self.environment.function(name) {
            Body::Other(function.clone())
        } else if let Some(builtin) = Builtin::named(name) {
            Body::Builtin(builtin)
        } else if let Some(reason) = self.environment.left_out(name) {
            let message = format!("function {} is left out: {reason}", quoted(name));
            return fail(message, token.start());
        } else {
            let hint = self.environment.hint(name);
            let message = format!("function {} not defined", quoted(name));
            return fail_with_hint(message, token.start(), hint);
        };
        Ok(self.builder().new_function(Callee {
            name: name.into(),
            body,
        }))
    }

    fn check_variable(&mut self, token: Token) -> Parsed<()> {
        let name = self.slice(token);
        let builder = self.builder();
        if builder.is_declared(name) {
            return Ok(());
        }
        let known = builder.variable_names().filter(|known| *known != ROOT);
        let hint = nearest(name, known).map(|near| format!("did you mean {near}?"));
        fail_with_hint(
            format!("undefined variable {}", quoted(name)),
            token.start(),
            hint,
        )
    }

    fn literal(&mut self, token: Token) -> Parsed<Literal> {
        let text = self.slice(token);
        let number = match token.kind {
            Kind::Dot => return Ok(Literal::Dot),
            Kind::Bool => return Ok(Literal::Value(Value::Bool(text == "true"))),
            Kind::String | Kind::RawString => {
                return match unquote(text) {
                    Some(bytes) => Ok(Literal::Value(Value::Str(bytes.into()))),
                    None => fail("invalid syntax", token.start()),
                };
            }
            Kind::CharConstant => number::parse_char(text),
            Kind::Complex => number::parse_complex(text),
            Kind::Number => number::parse(text),
            _ => return Ok(Literal::Nil),
        };
        match number {
            Ok(number) => Ok(number.value().map_or(Literal::Overflow, Literal::Value)),
            Err(message) => fail(message, token.start()),
        }
    }

    /// A function that is an operand: it is called without arguments.
    fn call_bare(&mut self, function: u32, site: Site) {
        let builder = self.builder();
        let callee = builder.callee(function);
        if let Some(message) = callee.wrong_count(0, 0) {
            builder.fail(message, site);
            return;
        }
        let call = Op::Call {
            function,
            arguments: 0,
            piped: false,
            tested: false,
        };
        builder.emit(call, site);
    }
}
