//! The machine itself: its stacks, and what each operation does to them.

use std::collections::BTreeSet;

use super::failure::{Failure, Step};
use super::field::follow;
use super::item::{Held, Item};
use crate::code::{Body, Code, Flags, Op};
use crate::environment::nearest;
use crate::error::ExecError;
use crate::format::{self, Sink};
use crate::functions::{Argument, Builtin, Failure as CallFailure};
use crate::parse::show;
use crate::quote::quoted;
use crate::report::{Access, Report};
use crate::template::Set;
use crate::value::{ReadSite, Unknown, Value};

/// A function's result counts one step for so many bytes.
const BYTES_A_STEP: usize = 16;

/// How deep a value is searched for unknown parts.
const UNKNOWN_DEPTH: u32 = 500;

pub(super) struct Machine<'d, 'o> {
    set: &'d Set,
    code: &'d Code,
    /// The code's index in the set, and the index of the next operation.
    code_index: u32,
    next: usize,
    out: &'o mut Vec<u8>,
    /// The length that `out` may reach.
    out_limit: usize,
    steps: u64,
    stack: Vec<Item<'d>>,
    dot: Item<'d>,
    variables: Vec<(u32, Item<'d>)>,
    /// Where the variables of the running template begin; the first of them is `$`.
    first_variable: usize,
    blocks: Vec<Block<'d>>,
    calls: Vec<Call<'d>>,
    unset: BTreeSet<ReadSite>,
    unknown: BTreeSet<ReadSite>,
    /// Something was skipped because what decides about it isn't known: what fails from here on may
    /// well not fail.
    diverged: bool,
}

/// An open `if`, `with` or `range`.
struct Block<'d> {
    variables: usize,
    /// The dot to restore.
    dot: Option<Item<'d>>,
    iteration: Option<Iteration<'d>>,
}

struct Iteration<'d> {
    over: Held<'d>,
    index: usize,
    length: usize,
    /// How many variables there are when the body begins.
    variables: usize,
}

/// A template that waits for another to return.
struct Call<'d> {
    code_index: u32,
    next: usize,
    dot: Item<'d>,
    first_variable: usize,
}

impl<'d, 'o> Machine<'d, 'o> {
    pub(super) fn new(set: &'d Set, main: u32, data: &'d Value, out: &'o mut Vec<u8>) -> Self {
        let out_limit = out.len().saturating_add(set.limits.output_bytes);
        Self {
            set,
            code: &set.codes[main as usize],
            code_index: main,
            next: 0,
            out,
            out_limit,
            steps: set.limits.steps,
            stack: Vec::new(),
            dot: Item::borrowed(data),
            variables: vec![(0, Item::borrowed(data))],
            first_variable: 0,
            blocks: Vec::new(),
            calls: Vec::new(),
            unset: BTreeSet::new(),
            unknown: BTreeSet::new(),
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
        if let Err(failure) = self.execute()
            && !self.diverged
        {
            return Err(failure.locate(self.set, self.here()));
        }
        Ok(Report {
            unknown: self.accesses(&self.unknown, main),
            unset: self.accesses(&self.unset, main),
        })
    }

    /// The operation that is being executed.
    fn here(&self) -> ReadSite {
        ReadSite {
            code: self.code_index,
            operation: self.next.saturating_sub(1) as u32,
        }
    }

    fn accesses(&self, sites: &BTreeSet<ReadSite>, main: u32) -> Vec<Access> {
        let mut accesses: Vec<Access> = Vec::with_capacity(sites.len());
        for site in sites {
            let access = self.set.analysis(main).access(self.set, *site);
            if !accesses.contains(&access) {
                accesses.push(access);
            }
        }
        accesses
    }

    fn execute(&mut self) -> Step<()> {
        loop {
            let op = self.code.ops[self.next];
            self.next += 1;
            self.charge(1)?;
            match op {
                Op::Text { start, end } => {
                    let text = &self.code.source.text.as_bytes()[start as usize..end as usize];
                    if text.len() > self.out_limit - self.out.len() {
                        return Err(self.output_limit());
                    }
                    self.out.extend_from_slice(text);
                }
                Op::PrintField { path } => self.print_field(path)?,
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
                    self.print(item.value())?;
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
                        self.code = &self.set.codes[call.code_index as usize];
                        self.next = call.next;
                    }
                    None => return Ok(()),
                },
            }
        }
    }

    fn charge(&mut self, steps: u64) -> Step<()> {
        if let Some(left) = self.steps.checked_sub(steps) {
            self.steps = left;
            return Ok(());
        }
        let limit = self.set.limits.steps;
        let message = format!("the template takes more than the limit of {limit} steps");
        Err(Failure::limit("steps", message))
    }

    fn output_limit(&self) -> Failure {
        let limit = self.set.limits.output_bytes;
        let message = format!("the output is larger than the limit of {limit} bytes");
        Failure::limit("output_bytes", message)
    }

    fn pop(&mut self) -> Item<'d> {
        // The parser balances what it emits; a missing value would only print as one.
        self.stack
            .pop()
            .unwrap_or_else(|| Item::owned(Value::Missing))
    }

    fn top(&mut self) -> &Item<'d> {
        if self.stack.is_empty() {
            self.stack.push(Item::owned(Value::Missing));
        }
        &self.stack[self.stack.len() - 1]
    }

    fn block(&mut self) -> &mut Block<'d> {
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
    fn skip_to(&mut self, end: u32) {
        self.diverged = true;
        self.next = end as usize;
    }

    fn variable(&mut self, name: u32) -> Step<&mut Item<'d>> {
        let variables = &mut self.variables[self.first_variable..];
        if let Some((_, item)) = variables.iter_mut().rev().find(|(known, _)| *known == name) {
            return Ok(item);
        }
        let name = &self.code.names[name as usize];
        Err(Failure::new(format!("undefined variable: {name}")))
    }

    fn push_field(&mut self, receiver: Item<'d>, path: u32, flags: Flags) -> Step<()> {
        let path = &self.code.paths[path as usize];
        let mut item = follow(receiver, path, flags.arguments, self.set.missing_key)?;
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
        let mut value = self.dot.value();
        for name in &self.code.paths[path as usize] {
            let part = match value {
                Value::Struct(fields) => fields.get(name),
                Value::Map(map) => map.get(&**name),
                _ => None,
            };
            match part {
                Some(part) => value = part,
                None => return self.print_field_slowly(path),
            }
        }
        let Value::Str(text) = value else {
            return self.print_field_slowly(path);
        };
        let text = text.as_bytes();
        if text.len() > self.out_limit - self.out.len() {
            return Err(self.output_limit());
        }
        self.out.extend_from_slice(text);
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
        if let Some(unknown) = find_unknown(value, 0) {
            self.taint(unknown);
            return Ok(());
        }
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
    fn is_unknown(&mut self, item: &Item<'d>) -> bool {
        if let Value::Unknown(unknown) = item.value() {
            self.taint(unknown);
            return true;
        }
        false
    }

    fn check_format(&mut self, literal: bool) -> Step<()> {
        let code = self.code;
        let site = code.sites[self.next - 1];
        let value = self.top().value();
        if value.as_bytes().is_some() || matches!(value, Value::Unknown(_)) {
            return Ok(());
        }
        let go = match value {
            Value::Nil if literal => "cannot assign nil to string".to_owned(),
            _ if literal => format!("expected string; found {}", show(&code.source, site)),
            Value::Missing => "invalid value; expected string".to_owned(),
            other => format!(
                "wrong type for value; expected string; got {}",
                other.go_type()
            ),
        };
        Err(Failure::new(go))
    }

    /// One argument of `and` or `or`: decides, or gives way to the next.
    fn short_circuit(&mut self, or: bool, piped: bool, target: u32) {
        let item = self.pop();
        let unknown = self.is_unknown(&item);
        if unknown || item.value().truth() == or {
            if piped {
                self.pop();
            }
            self.stack.push(item);
            self.next = target as usize;
        }
    }

    fn call(&mut self, function: u32, count: usize, piped: bool, tested: bool) -> Step<()> {
        let callee = &self.code.functions[function as usize];
        let total = count + usize::from(piped);
        let first = self.stack.len().saturating_sub(total);
        if piped {
            self.stack[first..].rotate_left(1);
        }
        if let Some(mut unknown) = unknown_among(&callee.body, &self.stack[first..]) {
            if unknown.reads().is_empty() {
                unknown = unknown.read_at(self.here());
            }
            self.stack.truncate(first);
            self.stack.push(Item::owned(Value::Unknown(unknown)));
            return Ok(());
        }
        let limits = &self.set.limits;
        let result = match &callee.body {
            Body::Builtin(builtin) => {
                let arguments: Vec<Argument<'_>> = self.stack[first..]
                    .iter()
                    .map(|item| Argument {
                        value: item.value(),
                        interface: item.interface,
                    })
                    .collect();
                let shown = || first_argument(self.code, self.next - 1);
                builtin.call(&arguments, limits.output_bytes, limits.printf_width, shown)
            }
            Body::Other(function) => {
                let arguments: Vec<Value> = self
                    .stack
                    .drain(first..)
                    .map(|item| match item.into_value() {
                        Value::Missing => Value::Nil,
                        value => value,
                    })
                    .collect();
                function
                    .call(&arguments)
                    .map_err(|error| CallFailure::Error(error.to_string()))
            }
        };
        self.stack.truncate(first);
        let value = result.map_err(|failure| match failure {
            CallFailure::Error(message) => {
                let name = &callee.name;
                Failure::of_function(format!("error calling {name}: {message}"))
            }
            CallFailure::TooBig => self.output_limit(),
        })?;
        match &value {
            Value::Str(text) => self.charge((text.as_bytes().len() / BYTES_A_STEP) as u64)?,
            Value::Unset if !tested && callee.is(Builtin::Index) => {
                self.unset.insert(self.here());
            }
            _ => {}
        }
        let item = match value {
            // Fresh from the data, or from the function itself.
            Value::Unknown(unknown) if unknown.reads().is_empty() => {
                Value::Unknown(unknown.read_at(self.here()))
            }
            value => value,
        };
        self.stack.push(Item::owned(item).unwrapped());
        Ok(())
    }

    fn call_template(&mut self, name: u32, argument: bool) -> Step<()> {
        let dot = if argument {
            self.pop()
        } else {
            Item::owned(Value::Missing)
        };
        let Some(code_index) = self.code.templates[name as usize] else {
            let name = &self.code.names[name as usize];
            let hint = nearest(name, self.set.template_names());
            let hint = hint.map(|near| format!("did you mean {}?", quoted(&near)));
            let go = format!("template {} not defined", quoted(name));
            return Err(Failure::new(go).with_hint(hint));
        };
        let limit = self.set.limits.template_depth;
        if self.calls.len() >= limit as usize {
            let message = format!("exceeded maximum template depth ({limit})");
            return Err(Failure::limit("template_depth", message));
        }
        let outer = std::mem::replace(&mut self.dot, dot.clone());
        self.calls.push(Call {
            code_index: self.code_index,
            next: self.next,
            dot: outer,
            first_variable: self.first_variable,
        });
        self.first_variable = self.variables.len();
        self.variables.push((0, dot));
        self.code_index = code_index;
        self.code = &self.set.codes[code_index as usize];
        self.next = 0;
        Ok(())
    }

    fn begin_range(&mut self, range: u32) -> Step<()> {
        let info = self.code.ranges[range as usize];
        let item = self.pop();
        if self.is_unknown(&item) {
            self.skip_to(info.end);
            return Ok(());
        }
        let length = match item.value() {
            Value::Int(_) | Value::Uint8(_) if info.variable_count > 1 => {
                let shown = shown(item.value());
                return Err(Failure::new(format!(
                    "can't use {shown} to iterate over more than one variable"
                )));
            }
            Value::Int(count) => usize::try_from(*count).unwrap_or(0),
            Value::Uint8(count) => (*count).into(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            Value::Nil | Value::Missing | Value::Unset => 0,
            other => {
                let shown = shown(other);
                return Err(Failure::new(format!("range can't iterate over {shown}")));
            }
        };
        if length == 0 {
            self.next = info.otherwise as usize;
            return Ok(());
        }
        let variables = self.variables.len();
        let dot = self.dot.clone();
        let block = self.block();
        block.dot = Some(dot);
        block.iteration = Some(Iteration {
            over: item.held,
            index: 0,
            length,
            variables,
        });
        self.iterate(range)
    }

    /// Begins the next iteration, or goes to the end.
    fn iterate(&mut self, range: u32) -> Step<()> {
        let info = self.code.ranges[range as usize];
        let iteration = self.block().iteration.as_mut();
        let iteration = iteration.expect("`Range` comes before `Next`");
        if iteration.index == iteration.length {
            self.next = info.end as usize;
            return Ok(());
        }
        let index = iteration.index;
        iteration.index += 1;
        let variables = iteration.variables;
        let (key, item) = match &iteration.over {
            Held::Borrowed(over) => part(over, index),
            Held::Owned(over) => {
                let (key, item) = part(over, index);
                // The collection itself may go away before its item does.
                let interface = item.interface;
                let key = Item::owned(key.into_value());
                (
                    key,
                    Item::owned(item.into_value()).through_interface(interface),
                )
            }
        };
        self.variables.truncate(variables);
        let names = info.variables;
        match (info.variable_count, info.assigns) {
            (0, _) => {}
            (1, true) => *self.variable(names[0])? = item.clone(),
            (_, true) => {
                *self.variable(names[0])? = key;
                *self.variable(names[1])? = item.clone();
            }
            (count, false) => {
                self.variables[variables - 1].1 = item.clone();
                if count > 1 {
                    self.variables[variables - 2].1 = key;
                }
            }
        }
        self.dot = item;
        self.next = info.body as usize;
        Ok(())
    }
}

/// The key and the item at an index of what is ranged over.
fn part(over: &Value, index: usize) -> (Item<'_>, Item<'_>) {
    let number = || Item::owned(Value::Int(index as i64));
    match over {
        Value::List(list) => {
            let item = Item::borrowed(&list.items()[index]);
            (number(), item.through_interface(!list.is_of_strings()))
        }
        Value::Map(map) => {
            let (key, value) = &map.entries()[index];
            let value = Item::borrowed(value).through_interface(!map.is_string_typed());
            (Item::owned(Value::Str(key.clone())), value)
        }
        Value::Uint8(_) => (number(), Item::owned(Value::Uint8(index as u8))),
        _ => (number(), number()),
    }
}

/// A value as Go's `%v` shows it, for messages.
fn shown(value: &Value) -> String {
    String::from_utf8_lossy(&format::with_verb(value, b'v')).into_owned()
}

/// What a call's first argument looks like in the source.
fn first_argument(code: &Code, operation: usize) -> String {
    let call = show(&code.source, code.sites[operation]);
    call.split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned()
}

/// The first unknown part of a value.
fn find_unknown(value: &Value, depth: u32) -> Option<&Unknown> {
    if depth > UNKNOWN_DEPTH {
        return None;
    }
    match value {
        Value::Unknown(unknown) => Some(unknown),
        Value::List(list) if list.is_of_strings() => None,
        Value::List(list) => list
            .items()
            .iter()
            .find_map(|item| find_unknown(item, depth + 1)),
        Value::Map(map) => map
            .entries()
            .iter()
            .find_map(|(_, item)| find_unknown(item, depth + 1)),
        Value::Struct(fields) => fields
            .values()
            .iter()
            .find_map(|item| find_unknown(item, depth + 1)),
        _ => None,
    }
}

/// What the arguments leave unknown, where that makes the result unknown.
fn unknown_among(body: &Body, arguments: &[Item<'_>]) -> Option<Unknown> {
    // These look at an argument's own kind and at one item of it, not at all that is in it.
    let shallow = matches!(
        body,
        Body::Builtin(
            Builtin::Index | Builtin::Len | Builtin::Slice | Builtin::Not | Builtin::Call
        )
    );
    let mut found: Option<Unknown> = None;
    for argument in arguments {
        let unknown = match argument.value() {
            Value::Unknown(unknown) => Some(unknown),
            value if !shallow => find_unknown(value, 0),
            _ => None,
        };
        if let Some(unknown) = unknown {
            let known_reads = found.map_or_else(
                || unknown.clone(),
                |found| {
                    unknown
                        .reads()
                        .iter()
                        .fold(found, |found, site| found.read_at(*site))
                },
            );
            found = Some(known_reads);
        }
    }
    found
}
