//! Pipelines: declarations, commands, operands, parentheses.
//!
//! Each open parenthesis is a [`Level`] on a stack, so that depth costs memory and no recursion.

use super::builder::Jumps;
use super::lex::{Kind, Token};
use super::show::show;
use super::{Parsed, Parser, fail, fail_in_words};
use crate::code::{Body, Op, Site};
use crate::functions::Builtin;
use crate::value::Value;

/// What a parsed pipeline was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pipeline {
    pub(super) variables: [u32; 2],
    pub(super) variable_count: u8,
    pub(super) assigns: bool,
    pub(super) commands: usize,
    /// The operation that made its value.
    pub(super) last_op: usize,
    /// It compiled to that operation alone.
    pub(super) single_op: bool,
    pub(super) end: usize,
}

/// A pipeline that is being read.
pub(super) struct Level {
    pipeline: Pipeline,
    context: &'static str,
    end: Kind,
    /// The first later stage that begins with what can't be executed.
    bad_stage: Option<(usize, usize)>,
    pub(super) command: Option<Command>,
    first_op: usize,
    opening: usize,
}

/// A command that is being read.
pub(super) struct Command {
    pub(super) head: Option<Head>,
    arguments: u32,
    start: usize,
    pub(super) end: usize,
    first_op: usize,
    /// The operations of `and` and `or` that go to the command's end.
    short_circuits: Jumps,
}

/// What a command begins with.
pub(super) enum Head {
    Function {
        function: u32,
        site: Site,
        tests: bool,
        logic: Option<bool>,
    },
    /// A field or chain: the operation that reads it.
    Field { op: usize },
    /// Anything that takes no arguments; whether it may begin a later stage.
    Other {
        site: Site,
        executable: bool,
        nil: bool,
    },
}

impl Level {
    fn new(context: &'static str, end: Kind, first_op: usize, opening: usize) -> Self {
        let pipeline = Pipeline::default();
        Self {
            pipeline,
            context,
            end,
            bad_stage: None,
            command: None,
            first_op,
            opening,
        }
    }
}

impl Parser<'_> {
    /// Reads a pipeline up to and with `end`.
    pub(super) fn pipeline(&mut self, context: &'static str, end: Kind) -> Parsed<Pipeline> {
        let mut levels = std::mem::take(&mut self.levels);
        let pipeline = self.outermost_level(&mut levels, context, end)?;
        self.levels = levels;
        Ok(pipeline)
    }

    fn outermost_level(
        &mut self,
        levels: &mut Vec<Level>,
        context: &'static str,
        end: Kind,
    ) -> Parsed<Pipeline> {
        self.open_level(levels, context, end)?;
        loop {
            let level = levels
                .last_mut()
                .expect("the outermost level ends the loop");
            let token = self.next_non_space()?;
            if level.command.is_some() {
                self.operand(levels, token)?;
            } else if token.kind == level.end {
                let level = levels.pop().expect("there is a level");
                let pipeline = self.close_level(&level, token)?;
                let Some(outer) = levels.last_mut() else {
                    return Ok(pipeline);
                };
                self.parenthesis_done(outer, &pipeline)?;
            } else if starts_operand(token.kind) {
                let first_op = self.builder().here();
                level.command = Some(Command {
                    head: None,
                    arguments: 0,
                    start: token.start(),
                    end: token.end(),
                    first_op,
                    short_circuits: Jumps::default(),
                });
                self.operand(levels, token)?;
            } else {
                let context = level.context;
                return self.unexpected(token, context);
            }
        }
    }

    fn open_level(
        &mut self,
        levels: &mut Vec<Level>,
        context: &'static str,
        end: Kind,
    ) -> Parsed<()> {
        let token = self.peek_non_space()?;
        let first_op = self.builder().here();
        let mut level = Level::new(context, end, first_op, token.start());
        if token.kind == Kind::Variable {
            self.declarations(&mut level)?;
        }
        levels.push(level);
        Ok(())
    }

    /// `$x :=`, `$x =` and, for a range, `$i, $x :=`.
    fn declarations(&mut self, level: &mut Level) -> Parsed<()> {
        loop {
            let variable = self.peek_non_space()?;
            if variable.kind != Kind::Variable {
                return Ok(());
            }
            self.next()?;
            let after = self.next()?;
            let next = if after.kind == Kind::Space {
                self.next()?
            } else {
                after
            };
            let comma = next.kind == Kind::Char && self.slice(next) == ",";
            if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
                self.put_back(next);
                if after.kind == Kind::Space {
                    self.put_back(after);
                }
                self.put_back(variable);
                return Ok(());
            }
            let text = self.slice(variable);
            let builder = self.builder();
            let name = builder.name(text);
            builder.declare(name);
            let pipeline = &mut level.pipeline;
            let count = usize::from(pipeline.variable_count);
            if count < 2 {
                pipeline.variables[count] = name;
                pipeline.variable_count += 1;
            }
            if !comma {
                pipeline.assigns = next.kind == Kind::Assign;
                return Ok(());
            }
            if level.context != "range" || count > 0 {
                let message = format!("too many declarations in {}", level.context);
                return fail(message, next.start());
            }
            let following = self.peek_non_space()?;
            if !matches!(
                following.kind,
                Kind::Variable | Kind::RightDelimiter | Kind::RightParenthesis
            ) {
                return fail("range can only initialize variables", following.start());
            }
        }
    }

    fn close_level(&mut self, level: &Level, closing: Token) -> Parsed<Pipeline> {
        let mut pipeline = level.pipeline;
        if pipeline.commands == 0 {
            return fail(
                format!("missing value for {}", level.context),
                closing.start(),
            );
        }
        if let Some((stage, offset)) = level.bad_stage {
            let message = format!("non executable command in pipeline stage {stage}");
            return fail(message, offset);
        }
        let builder = self.builder();
        pipeline.last_op = builder.here().saturating_sub(1);
        pipeline.single_op = builder.here() == level.first_op + 1;
        pipeline.end = closing.end();
        let site = Site {
            position: level.opening as u32,
            start: level.opening as u32,
            end: closing.start() as u32,
        };
        for name in &pipeline.variables[..usize::from(pipeline.variable_count)] {
            let op = if pipeline.assigns {
                Op::Assign { name: *name }
            } else {
                Op::Declare { name: *name }
            };
            builder.emit(op, site);
        }
        Ok(pipeline)
    }

    /// Reads one operand of the innermost level's command, or opens a parenthesis for it.
    fn operand(&mut self, levels: &mut Vec<Level>, token: Token) -> Parsed<()> {
        let level = levels.last_mut().expect("the caller saw a level");
        if token.kind == Kind::LeftParenthesis {
            let depth = levels.len();
            let limit = self.environment.limits().nesting;
            if depth > limit as usize {
                let message = format!("parentheses are nested deeper than the limit of {limit}");
                return fail_in_words("max expression depth exceeded", message, token.start());
            }
            return self.open_level(levels, "parenthesized pipeline", Kind::RightParenthesis);
        }
        if !starts_operand(token.kind) {
            return self.command_goes_on(level, token);
        }
        let head = self.term(level, token)?;
        self.operand_done(level, head, true);
        self.after_operand(level)
    }

    /// A parenthesis has been read, and its code emitted: it is an operand.
    fn parenthesis_done(&mut self, level: &mut Level, pipeline: &Pipeline) -> Parsed<()> {
        let command = level
            .command
            .as_mut()
            .expect("a parenthesis is part of a command");
        let start = if command.head.is_none() {
            command.start
        } else {
            command.end
        };
        command.end = pipeline.end;
        let site = Site {
            position: start as u32,
            start: start as u32,
            end: pipeline.end as u32,
        };
        let head = match self.chain()? {
            None => Head::Other {
                site,
                executable: true,
                nil: false,
            },
            Some(chain) => {
                command.end = chain.end;
                self.chain_field(site, chain)
            }
        };
        self.operand_done(level, head, false);
        self.after_operand(level)
    }

    /// Files an operand, whose code is emitted, under the command.
    fn operand_done(&mut self, level: &mut Level, operand: Head, term: bool) {
        let Some(command) = level.command.as_mut() else {
            return;
        };
        let Some(head) = &command.head else {
            let stage = level.pipeline.commands + 1;
            if stage > 1
                && level.bad_stage.is_none()
                && matches!(
                    operand,
                    Head::Other {
                        executable: false,
                        ..
                    }
                )
            {
                level.bad_stage = Some((stage, command.start));
            }
            command.head = Some(operand);
            return;
        };
        command.arguments += 1;
        let Head::Function {
            function,
            tests,
            logic,
            ..
        } = *head
        else {
            return;
        };
        let piped = level.pipeline.commands > 0;
        let builder = self.builder();
        let last = builder.here() - 1;
        if tests {
            builder.mark_tested(last);
        }
        if let Some(or) = logic {
            let site = builder.latest_site();
            let op = builder.emit(
                Op::ShortCircuit {
                    or,
                    piped,
                    target: 0,
                },
                site,
            );
            builder.jumps_to(&mut command.short_circuits, op);
        }
        if command.arguments == 1 && builder.callee(function).is(Builtin::Printf) {
            let site = builder.latest_site();
            let literal = matches!(builder.op(last), Op::Constant { .. } | Op::Nil);
            builder.emit(Op::CheckFormat { literal }, site);
        }
        self.check_kind(function, command.arguments - 1, term);
    }

    /// Sees to it that an argument, the code that was emitted last, is of the kind that the
    /// function takes: a literal at once, anything else when it is executed. As in Go, a literal
    /// that is wrong fails only then, too.
    fn check_kind(&mut self, function: u32, argument: u32, term: bool) {
        let source = self.source;
        let builder = self.builder();
        let Body::Other(callee) = &builder.callee(function).body else {
            return;
        };
        let kind = callee.kind(argument as usize);
        if kind == crate::function::Kind::Any {
            return;
        }
        let site = builder.latest_site();
        let last = builder.here() - 1;
        let literal = match builder.op(last) {
            _ if !term => None,
            Op::Constant { constant } => Some(builder.constant_at(constant).clone()),
            Op::Nil => Some(Value::Nil),
            _ => None,
        };
        let Some(literal) = literal else {
            builder.emit(Op::CheckArgument { function, argument }, site);
            return;
        };
        builder.truncate(last);
        match kind.literal(literal, &show(source, site)) {
            Ok(Value::Nil) => {
                builder.emit(Op::Nil, site);
            }
            Ok(value) => builder.constant(value, site),
            Err(message) => builder.fail(message, site),
        }
    }

    /// What follows an operand decides whether the command goes on.
    fn after_operand(&mut self, level: &mut Level) -> Parsed<()> {
        let token = self.next()?;
        self.command_goes_on(level, token)
    }

    fn command_goes_on(&mut self, level: &mut Level, token: Token) -> Parsed<()> {
        match token.kind {
            Kind::Space => return Ok(()),
            Kind::RightDelimiter | Kind::RightParenthesis => self.put_back(token),
            Kind::Pipe => {}
            _ => return self.unexpected(token, "operand"),
        }
        let Some(command) = level.command.take() else {
            return Ok(());
        };
        let piped = level.pipeline.commands > 0;
        self.finish_command(command, piped, token)?;
        level.pipeline.commands += 1;
        Ok(())
    }

    fn finish_command(&mut self, command: Command, piped: bool, next: Token) -> Parsed<()> {
        let Some(head) = command.head else {
            return fail("empty command", next.start());
        };
        let whole = Site {
            position: command.start as u32,
            start: command.start as u32,
            end: command.end as u32,
        };
        let arguments = command.arguments;
        let source = self.source;
        let builder = self.builder();
        match head {
            Head::Function {
                function,
                site,
                tests,
                logic,
            } => {
                if piped && tests && command.first_op > 0 {
                    builder.mark_tested(command.first_op - 1);
                }
                let callee = builder.callee(function);
                if let Some(message) = callee.wrong_count(arguments, u32::from(piped)) {
                    builder.fail_instead(command.first_op, piped, message, site);
                } else if logic.is_some() {
                    // The last argument decides nothing: it is the result.
                    let end = builder.here() - usize::from(!piped);
                    builder.arrive(command.short_circuits, end as u32);
                    builder.truncate(end);
                    builder.emit(Op::Unwrap, whole);
                } else {
                    if arguments == 0 && callee.is(Builtin::Printf) {
                        builder.emit(Op::CheckFormat { literal: false }, whole);
                    }
                    builder.emit(
                        Op::Call {
                            function,
                            arguments,
                            piped,
                            tested: false,
                        },
                        whole,
                    );
                }
            }
            Head::Field { op } => {
                builder.truncate(op + 1);
                if let Op::Field { flags, .. }
                | Op::VariableField { flags, .. }
                | Op::ChainField { flags, .. } = builder.op_mut(op)
                {
                    flags.arguments = arguments > 0 || piped;
                    flags.piped = piped;
                }
                builder.mark_command(op);
            }
            Head::Other { site, .. } if arguments > 0 || piped => {
                let shown = show(source, site);
                let shown = shown
                    .strip_prefix('(')
                    .and_then(|rest| rest.strip_suffix(')'))
                    .unwrap_or(&shown);
                let message = format!("can't give argument to non-function {shown}");
                builder.fail_instead(command.first_op, piped, message, site);
            }
            Head::Other {
                site, nil: true, ..
            } => {
                builder.fail_instead(
                    command.first_op,
                    piped,
                    "nil is not a command".to_owned(),
                    site,
                );
            }
            Head::Other { .. } => builder.mark_command(builder.here() - 1),
        }
        Ok(())
    }
}

fn starts_operand(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Bool
            | Kind::CharConstant
            | Kind::Complex
            | Kind::Dot
            | Kind::Field
            | Kind::Identifier
            | Kind::Number
            | Kind::Nil
            | Kind::RawString
            | Kind::String
            | Kind::Variable
            | Kind::LeftParenthesis
    )
}
