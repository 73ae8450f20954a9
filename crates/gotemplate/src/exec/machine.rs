//! The machine itself: its stacks, and what each operation does to them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::failure::{Failure, Step};
use super::field::{follow, present};
use super::include::{Capture, Parsed};
use super::item::{Held, Item};
use super::stacks::Stacks;
use super::texts::{End, Texts};
use super::unknown::Search;
use crate::code::{Body, Code, Flags, Op};
use crate::error::ExecError;
use crate::format::{self, Sink};
use crate::function::Kept;
use crate::report::{Access, Report};
use crate::sensitive::Trace;
use crate::template::Set;
use crate::value::{ReadSite, Text, Unknown, Value};

/// Looking through so many variables, or parts of a value, counts one step.
pub(super) const ITEMS_A_STEP: u64 = 8;

pub(super) struct Machine<'d, 'o> {
    pub(super) set: &'d Set,
    pub(super) code: &'d Code,
    /// The code's index in the set, and the index of the next operation.
    pub(super) code_index: u32,
    pub(super) next: usize,
    pub(super) out: &'o mut Vec<u8>,
    /// The length that `out` may reach.
    out_limit: usize,
    pub(super) steps: u64,
    pub(super) stack: Vec<Item<'d>>,
    pub(super) dot: Item<'d>,
    pub(super) variables: Vec<(u32, Item<'d>)>,
    /// Where the variables of the running template begin; the first of them is `$`.
    pub(super) first_variable: usize,
    pub(super) blocks: Vec<Block<'d>>,
    pub(super) calls: Vec<Call<'d>>,
    pub(super) unset: BTreeSet<ReadSite>,
    pub(super) unknown: BTreeSet<ReadSite>,
    /// The texts that `tpl` was given: their templates, by where they were given, and where the
    /// next one goes.
    pub(super) parsed: Vec<Parsed<'d>>,
    pub(super) texts_known: HashMap<(u32, Text), u32>,
    pub(super) texts_end: End<'d>,
    /// What functions keep from call to call.
    pub(super) kept: Kept,
    trace: Option<&'d Trace>,
    /// The bytes of `out` that are sensitive, in order.
    pub(super) sensitive: Vec<Range<usize>>,
    /// Something was skipped because what decides about it isn't known: what fails from here on may
    /// well not fail.
    diverged: bool,
}

/// An open `if`, `with` or `range`.
pub(super) struct Block<'d> {
    variables: usize,
    /// The dot to restore.
    pub(super) dot: Option<Item<'d>>,
    pub(super) iteration: Option<Iteration<'d>>,
}

pub(super) struct Iteration<'d> {
    pub(super) over: Held<'d>,
    pub(super) index: usize,
    pub(super) length: usize,
    /// How many variables there are when the body begins.
    pub(super) variables: usize,
}

/// A template that waits for another to return.
pub(super) struct Call<'d> {
    pub(super) code_index: u32,
    pub(super) next: usize,
    pub(super) dot: Item<'d>,
    pub(super) first_variable: usize,
    /// What the call's output is for, if not for the output.
    pub(super) capture: Option<Box<Capture>>,
}

impl Call<'_> {
    /// The operation that called.
    pub(super) fn site(&self) -> ReadSite {
        ReadSite {
            code: self.code_index,
            operation: self.next.saturating_sub(1) as u32,
        }
    }
}

impl<'d, 'o> Machine<'d, 'o> {
    pub(super) fn new(
        set: &'d Set,
        main: u32,
        data: &'d Value,
        texts: &'d Texts,
        out: &'o mut Vec<u8>,
        trace: Option<&'d Trace>,
    ) -> Self {
        let limits = set.environment.limits();
        let out_limit = out.len().saturating_add(limits.output_bytes);
        let mut stacks = Stacks::take();
        stacks.variables.push((0, Item::borrowed(data)));
        Self {
            set,
            code: set.code(main),
            code_index: main,
            next: 0,
            out,
            out_limit,
            steps: limits.steps,
            stack: stacks.values,
            dot: Item::borrowed(data),
            variables: stacks.variables,
            first_variable: 0,
            blocks: stacks.blocks,
            calls: stacks.calls,
            unset: BTreeSet::new(),
            unknown: BTreeSet::new(),
            parsed: Vec::new(),
            texts_known: HashMap::new(),
            texts_end: texts.end(),
            kept: Kept::default(),
            trace,
            sensitive: Vec::new(),
            diverged: false,
        }
    }

    pub(super) fn run(mut self) -> Result<Report, ExecError> {
        let main = self.code_index;
        // The root is the caller's value, not one read through an interface: nil is no value.
        if matches!(self.dot.value(), Value::Nil) {
            self.dot = Item::owned(Value::Missing);
            self.variables[0].1 = Item::owned(Value::Missing);
        }
        if let Err(failure) = self.execute() {
            self.drop_captures();
            if !self.diverged {
                return Err(self.located(failure, main));
            }
        }
        let report = Report {
            unknown: self.accesses(&self.unknown, main),
            unset: self.accesses(&self.unset, main),
            sensitive: self.sensitive,
        };
        let stacks = Stacks {
            values: self.stack,
            variables: self.variables,
            blocks: self.blocks,
            calls: self.calls,
        };
        stacks.give_back();
        Ok(report)
    }

    /// The operation that is being executed.
    pub(super) fn here(&self) -> ReadSite {
        ReadSite {
            code: self.code_index,
            operation: self.next.saturating_sub(1) as u32,
        }
    }

    /// The error, located where it happened or, within a text given to `tpl`, at the call of that.
    fn located(&self, failure: Failure, main: u32) -> ExecError {
        let (inner, outer) = (self.here(), self.here_in_template());
        let failure = if inner == outer {
            failure
        } else {
            failure.within_text(self.code_at(inner.code), inner.operation)
        };
        let is_sensitive = self.trace.is_some_and(|trace| {
            let mut calls = self.calls.iter().map(Call::site);
            trace.touches(inner) || calls.any(|site| trace.touches(site))
        });
        let failure = failure.with_sensitive(is_sensitive);
        failure.locate(self.set, main, outer, &self.calls)
    }

    fn accesses(&self, sites: &BTreeSet<ReadSite>, main: u32) -> Vec<Access> {
        let mut seen = HashSet::new();
        let accesses = sites.iter().map(|site| self.access(*site, main));
        accesses
            .filter(|access| seen.insert(access.clone()))
            .collect()
    }

    fn access(&self, site: ReadSite, main: u32) -> Access {
        let analysis = self.set.analysis(main);
        let access = |site: ReadSite| analysis.access(self.code_at(site.code), site);
        let given = self.parsed.iter().find(|parsed| {
            let codes = parsed.set.base..parsed.set.end();
            codes.contains(&site.code)
        });
        match given {
            Some(parsed) => Access {
                path: access(site).path,
                ..access(parsed.from)
            },
            None => access(site),
        }
    }

    /// The set that names of templates are looked up in: that of the running code.
    pub(super) fn scope(&self) -> &'d Set {
        self.set_of(self.code_index)
    }

    fn set_of(&self, code: u32) -> &'d Set {
        if code < self.set.end() {
            return self.set;
        }
        let found = self
            .parsed
            .partition_point(|parsed| parsed.set.end() <= code);
        self.parsed.get(found).map_or(self.set, |parsed| parsed.set)
    }

    pub(super) fn code_at(&self, code: u32) -> &'d Code {
        self.set_of(code).code(code)
    }

    fn execute(&mut self) -> Step<()> {
        loop {
            let op = self.code.ops[self.next];
            self.next += 1;
            self.charge(1)?;
            match op {
                Op::Text { start, end } => {
                    let code = self.code;
                    let length = self.out.len();
                    self.write(&code.source.text.as_bytes()[start as usize..end as usize])?;
                    self.record(op, length);
                }
                Op::PrintField { path } => {
                    let length = self.out.len();
                    self.print_field(path)?;
                    self.record(op, length);
                }
                Op::Constant { constant } => {
                    let constant = &self.code.constants[constant as usize];
                    self.stack.push(Item::borrowed(constant));
                }
                Op::Nil => self.stack.push(Item::owned(Value::Nil)),
                Op::Dot { unwrap } => {
                    let dot = self.dot.clone();
                    self.stack.push(if unwrap { dot.unwrapped() } else { dot });
                }
                Op::Variable { name, unwrap } => {
                    let value = self.variable(name)?.clone();
                    self.stack
                        .push(if unwrap { value.unwrapped() } else { value });
                }
                Op::Field { path, flags } => {
                    if flags.piped {
                        self.pop();
                    }
                    let dot = self.dot.clone();
                    self.push_field(dot, path, flags)?;
                }
                Op::VariableField { name, path, flags } => {
                    if flags.piped {
                        self.pop();
                    }
                    let value = self.variable(name)?.clone();
                    self.push_field(value, path, flags)?;
                }
                Op::ChainField { path, flags } => {
                    let value = self.pop();
                    if flags.piped {
                        self.pop();
                    }
                    self.push_field(value, path, flags)?;
                }
                Op::Call {
                    function,
                    arguments,
                    piped,
                    tested,
                } => {
                    self.call(function, arguments as usize, piped, tested)?;
                }
                Op::CheckFormat { literal } => self.check_format(literal)?,
                Op::CheckArgument { function, argument } => {
                    if let Body::Other(callee) = &self.code.functions[function as usize].body {
                        self.check_argument(callee.kind(argument as usize))?;
                    }
                }
                Op::Unwrap => {
                    let value = self.pop();
                    self.stack.push(value.unwrapped());
                }
                Op::ShortCircuit { or, piped, target } => self.short_circuit(or, piped, target),
                Op::Declare { name } => {
                    let value = self.top().clone();
                    self.variables.push((name, value));
                }
                Op::Assign { name } => {
                    let value = self.top().clone();
                    *self.variable(name)? = value;
                }
                Op::Pop => {
                    self.pop();
                }
                Op::Print => {
                    let item = self.pop();
                    let length = self.out.len();
                    self.print(item.value())?;
                    self.record(op, length);
                }
                Op::Enter => self.blocks.push(Block {
                    variables: self.variables.len(),
                    dot: None,
                    iteration: None,
                }),
                Op::Leave => self.leave(),
                Op::If { target, end } => {
                    let item = self.pop();
                    if self.is_unknown(&item) {
                        self.skip_to(end);
                    } else if !item.value().truth() {
                        self.next = target as usize;
                    }
                }
                Op::With { target, end } => {
                    let item = self.pop();
                    if self.is_unknown(&item) {
                        self.skip_to(end);
                    } else if item.value().truth() {
                        let outer = std::mem::replace(&mut self.dot, item);
                        self.block().dot = Some(outer);
                    } else {
                        self.next = target as usize;
                    }
                }
                Op::Range { range } => self.begin_range(range)?,
                Op::Next { range } => self.iterate(range)?,
                Op::Unwind { blocks, target } => {
                    for _ in 0..blocks {
                        self.leave();
                    }
                    self.next = target as usize;
                }
                Op::Jump { target } => self.next = target as usize,
                Op::Template { name, argument } => self.call_template(name, argument)?,
                Op::Fail { message } => {
                    return Err(Failure::new(self.code.messages[message as usize].clone()));
                }
                Op::Return => match self.calls.pop() {
                    Some(call) => {
                        self.variables.truncate(self.first_variable);
                        self.first_variable = call.first_variable;
                        self.dot = call.dot;
                        self.code_index = call.code_index;
                        self.code = self.code_at(call.code_index);
                        self.next = call.next;
                        if let Some(capture) = call.capture {
                            self.end_capture(*capture)?;
                        }
                    }
                    None => return Ok(()),
                },
            }
        }
    }

    /// Records what the operation wrote from `start` on, as far as it is sensitive.
    fn record(&mut self, op: Op, start: usize) {
        if let Some(trace) = self.trace {
            let written = start..self.out.len();
            trace.record(self.here(), op, written, &mut self.sensitive);
        }
    }

    pub(super) fn charge(&mut self, steps: u64) -> Step<()> {
        if let Some(left) = self.steps.checked_sub(steps) {
            self.steps = left;
            return Ok(());
        }
        Err(self.step_limit())
    }

    pub(super) fn step_limit(&self) -> Failure {
        let limit = self.set.environment.limits().steps;
        let message = format!("the template takes more than the limit of {limit} steps");
        Failure::limit("steps", message)
    }

    pub(super) fn output_limit(&self) -> Failure {
        let limit = self.set.environment.limits().output_bytes;
        let message = format!("the output is larger than the limit of {limit} bytes");
        Failure::limit("output_bytes", message)
    }

    pub(super) fn pop(&mut self) -> Item<'d> {
        // The parser balances what it emits; a missing value would only print as one.
        self.stack
            .pop()
            .unwrap_or_else(|| Item::owned(Value::Missing))
    }

    pub(super) fn top(&mut self) -> &Item<'d> {
        if self.stack.is_empty() {
            self.stack.push(Item::owned(Value::Missing));
        }
        &self.stack[self.stack.len() - 1]
    }

    pub(super) fn block(&mut self) -> &mut Block<'d> {
        self.blocks
            .last_mut()
            .expect("the parser opens a block before what belongs to it")
    }

    fn leave(&mut self) {
        if let Some(block) = self.blocks.pop() {
            self.variables.truncate(block.variables);
            if let Some(dot) = block.dot {
                self.dot = dot;
            }
        }
    }

    /// Goes to a block's end without deciding what is in it.
    pub(super) fn skip_to(&mut self, end: u32) {
        self.diverged = true;
        self.next = end as usize;
    }

    pub(super) fn variable(&mut self, name: u32) -> Step<&mut Item<'d>> {
        let variables = &self.variables[self.first_variable..];
        let Some(found) = variables.iter().rposition(|(known, _)| *known == name) else {
            let name = &self.code.names[name as usize];
            return Err(Failure::new(format!("undefined variable: {name}")));
        };
        let passed = (variables.len() - found) as u64;
        let found = found + self.first_variable;
        self.charge(passed / ITEMS_A_STEP)?;
        Ok(&mut self.variables[found].1)
    }

    fn push_field(&mut self, receiver: Item<'d>, path: u32, flags: Flags) -> Step<()> {
        let path = self.code.path(path);
        if let Held::Borrowed(value) = receiver.held
            && !flags.arguments
            && let Some((part, interface)) = present(value, path.clone())
            && !matches!(part, Value::Unset | Value::Unknown(_))
        {
            let item = Item::borrowed(part).through_interface(interface);
            self.stack
                .push(if flags.unwrap { item.unwrapped() } else { item });
            return Ok(());
        }
        let missing_key = self.set.environment.missing_key();
        let mut item = follow(receiver, path, flags.arguments, missing_key)?;
        match item.value() {
            Value::Unset if !flags.tested => {
                self.unset.insert(self.here());
            }
            Value::Unknown(unknown) => {
                item = Item::owned(Value::Unknown(unknown.read_at(self.here())));
            }
            _ => {}
        }
        self.stack
            .push(if flags.unwrap { item.unwrapped() } else { item });
        Ok(())
    }

    /// Writes a field of dot, without a detour where it is a string.
    fn print_field(&mut self, path: u32) -> Step<()> {
        let found = present(self.dot.value(), self.code.path(path));
        let Some((Value::Str(text), _)) = found else {
            return self.print_field_slowly(path);
        };
        if text.as_bytes().len() > self.out_limit - self.out.len() {
            return Err(self.output_limit());
        }
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Step<()> {
        if bytes.len() > self.out_limit - self.out.len() {
            return Err(self.output_limit());
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn print_field_slowly(&mut self, path: u32) -> Step<()> {
        let flags = Flags {
            unwrap: true,
            ..Flags::default()
        };
        let dot = self.dot.clone();
        self.push_field(dot, path, flags)?;
        let item = self.pop();
        self.print(item.value())
    }

    fn print(&mut self, value: &Value) -> Step<()> {
        if let Value::Str(text) = value {
            return self.write(text.as_bytes());
        }
        let mut search = Search::new(self.steps.saturating_mul(ITEMS_A_STEP));
        if let Some(unknown) = search.within(value) {
            self.taint(&unknown);
            return Ok(());
        }
        self.charge(search.visited / ITEMS_A_STEP)?;
        let mut sink = Sink::new(self.out, self.out_limit - self.out.len());
        match value {
            Value::Missing => sink.push(b"<no value>"),
            value => format::print_value(&mut sink, value),
        }
        if sink.overflowed() {
            Err(self.output_limit())
        } else {
            Ok(())
        }
    }

    /// Notes that the output depends on an unknown value.
    fn taint(&mut self, unknown: &Unknown) {
        if unknown.reads().is_empty() {
            self.unknown.insert(self.here());
        }
        self.unknown.extend(unknown.reads());
    }

    /// Whether a value that decides something is unknown; if so, notes it.
    pub(super) fn is_unknown(&mut self, item: &Item<'d>) -> bool {
        if let Value::Unknown(unknown) = item.value() {
            self.taint(unknown);
            return true;
        }
        false
    }
}
