//! The code of one template while it is being built: emits operations, keeps its open blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lex::Token;
use crate::code::{Callee, Code, Flags, Op, Path, Range, Site, Source, Span};
use crate::functions::Builtin;
use crate::value::Value;

/// Why a template is being built, which decides what ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Text,
    Define,
    Block,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    If,
    With,
    /// With its entry in the code's table.
    Range(u32),
}

/// Operations that will go to the same place. Until that is known, each has in its target the
/// number of the one before it, counted from 1: a list that needs no memory of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jumps(u32);

/// An open `if`, `with` or `range`.
pub(super) struct Block {
    pub(super) kind: BlockKind,
    pub(super) opening: usize,
    pub(super) otherwise: bool,
    /// How many variables were declared before it.
    variables: usize,
    /// The condition that goes to the `else` part.
    condition: Option<usize>,
    /// Operations that go to the end of the block.
    to_end: Jumps,
    /// Operations that go to the range's `Next`.
    to_next: Jumps,
}

pub(super) struct Builder {
    code: Code,
    pub(super) purpose: Purpose,
    pub(super) opening: usize,
    /// The names of the variables declared so far, by index into the code's names; without `$`.
    variables: Vec<u32>,
    /// How many variables of each name there are, by the same index.
    declared: Vec<u32>,
    blocks: Vec<Block>,
    /// Where the code's names are in their table, where there are more than a few.
    known_names: BTreeMap<Arc<str>, u32>,
}

/// Up to so many names are found quicker one by one than in a map.
const FEW_NAMES: usize = 16;

/// How much text there is for each operation, about, where much of it is actions.
const BYTES_OF_AN_OPERATION: usize = 16;

/// What a small template has.
const FEW_OPERATIONS: usize = 8;

impl Builder {
    pub(super) fn new(name: Arc<str>, source: &Arc<Source>) -> Self {
        let operations = (source.text.len() / BYTES_OF_AN_OPERATION).clamp(FEW_OPERATIONS, 512);
        Self::sized(name, source, Purpose::Text, 0, operations)
    }

    pub(super) fn with_purpose(
        name: Arc<str>,
        source: &Arc<Source>,
        purpose: Purpose,
        opening: usize,
    ) -> Self {
        Self::sized(name, source, purpose, opening, FEW_OPERATIONS)
    }

    fn sized(
        name: Arc<str>,
        source: &Arc<Source>,
        purpose: Purpose,
        opening: usize,
        operations: usize,
    ) -> Self {
        let code = Code::new(name, Arc::clone(source), operations);
        Self {
            code,
            purpose,
            opening,
            variables: Vec::new(),
            declared: Vec::new(),
            blocks: Vec::new(),
            known_names: BTreeMap::new(),
        }
    }

    pub(super) fn finish(mut self) -> Code {
        let empty = self.code.empty;
        self.emit(Op::Return, Site::default());
        self.code.empty = empty;
        self.code.opening = self.opening as u32;
        self.code.ops.shrink_to_fit();
        self.code.sites.shrink_to_fit();
        self.code.paths.shrink_to_fit();
        self.code.fields.shrink_to_fit();
        self.code
    }

    pub(super) fn text(&mut self, token: Token) {
        let text = &self.code.source.text[token.start()..token.end()];
        let empty = self.code.empty && text.trim().is_empty();
        let (start, end) = (token.start() as u32, token.end() as u32);
        self.emit(
            Op::Text { start, end },
            Site {
                position: start,
                start,
                end,
            },
        );
        self.code.empty = empty;
    }

    pub(super) fn emit(&mut self, op: Op, site: Site) -> usize {
        self.code.empty = false;
        self.code.ops.push(op);
        self.code.sites.push(site);
        self.code.ops.len() - 1
    }

    /// The index of the next operation.
    pub(super) fn here(&self) -> usize {
        self.code.ops.len()
    }

    pub(super) fn op_mut(&mut self, index: usize) -> &mut Op {
        &mut self.code.ops[index]
    }

    pub(super) fn op(&self, index: usize) -> Op {
        self.code.ops[index]
    }

    /// The place of the latest operation.
    pub(super) fn latest_site(&self) -> Site {
        self.code.sites.last().copied().unwrap_or_default()
    }

    /// Forgets the operations from `length` on.
    pub(super) fn truncate(&mut self, length: usize) {
        self.code.ops.truncate(length);
        self.code.sites.truncate(length);
    }

    pub(super) fn fail(&mut self, message: String, site: Site) {
        self.code.messages.push(message);
        let message = self.code.messages.len() as u32 - 1;
        self.emit(Op::Fail { message }, site);
    }

    /// Fails in place of the operations from `first` on, which would never be executed. The
    /// preceding command's value, where there is one, goes as an argument would.
    pub(super) fn fail_instead(&mut self, first: usize, piped: bool, message: String, site: Site) {
        self.truncate(first);
        if piped {
            self.emit(Op::Pop, site);
        }
        self.fail(message, site);
    }

    pub(super) fn constant(&mut self, value: Value, site: Site) {
        self.code.constants.push(value);
        let constant = self.code.constants.len() as u32 - 1;
        self.emit(Op::Constant { constant }, site);
    }

    pub(super) fn constant_at(&self, constant: u32) -> &Value {
        &self.code.constants[constant as usize]
    }

    /// The index of a name, entered into the table where it isn't there yet.
    pub(super) fn name(&mut self, name: &str) -> u32 {
        if let Some(known) = self.known_name(name) {
            return known;
        }
        let name: Arc<str> = name.into();
        let index = self.code.names.len() as u32;
        self.code.names.push(Arc::clone(&name));
        if !self.known_names.is_empty() {
            self.known_names.insert(name, index);
        } else if self.code.names.len() > FEW_NAMES {
            self.known_names = self.code.names.iter().cloned().zip(0..).collect();
        }
        index
    }

    fn known_name(&self, name: &str) -> Option<u32> {
        if !self.known_names.is_empty() {
            return self.known_names.get(name).copied();
        }
        let names = &self.code.names;
        names
            .iter()
            .position(|known| **known == *name)
            .map(|at| at as u32)
    }

    /// The index of a path that the source has from `start` to `end`, such as `.Vars.A`.
    pub(super) fn path(&mut self, start: usize, end: usize) -> u32 {
        let code = &mut self.code;
        let first = code.fields.len() as u32;
        let mut at = start;
        while at < end {
            // Each field begins with its dot, and has no other.
            let name = at + 1;
            let rest = &code.source.text[name..end];
            let length = rest.bytes().position(|byte| byte == b'.');
            at = length.map_or(end, |length| name + length);
            code.fields.push(Span {
                start: name as u32,
                end: at as u32,
            });
        }
        code.paths.push(Path {
            first,
            end: code.fields.len() as u32,
        });
        code.paths.len() as u32 - 1
    }

    /// The index of a function that the template calls already.
    pub(super) fn known_function(&self, name: &str) -> Option<u32> {
        let functions = &self.code.functions;
        let known = functions.iter().position(|known| *known.name == *name);
        known.map(|at| at as u32)
    }

    pub(super) fn new_function(&mut self, callee: Callee) -> u32 {
        self.code.functions.push(callee);
        self.code.functions.len() as u32 - 1
    }

    pub(super) fn callee(&self, function: u32) -> &Callee {
        &self.code.functions[function as usize]
    }

    pub(super) fn declare(&mut self, name: u32) {
        self.variables.push(name);
        let index = name as usize;
        if self.declared.len() <= index {
            self.declared.resize(index + 1, 0);
        }
        self.declared[index] += 1;
    }

    pub(super) fn is_declared(&self, name: &str) -> bool {
        let index = self.known_name(name);
        index.is_some_and(|index| {
            let times = self.declared.get(index as usize);
            index == 0 || times.is_some_and(|times| *times > 0)
        })
    }

    /// Forgets the variables that were declared since there were `count`.
    fn undeclare(&mut self, count: usize) {
        for name in self.variables.drain(count..) {
            self.declared[name as usize] -= 1;
        }
    }

    /// The declared variables' names, for hints.
    pub(super) fn variable_names(&self) -> impl Iterator<Item = &str> {
        self.variables
            .iter()
            .map(|name| &*self.code.names[*name as usize])
    }

    /// Notes that an operation's value is only tested for its truth.
    pub(super) fn mark_tested(&mut self, index: usize) {
        let index_call = match self.code.ops.get(index) {
            Some(Op::Call { function, .. }) => self.callee(*function).is(Builtin::Index),
            _ => false,
        };
        match self.code.ops.get_mut(index) {
            Some(
                Op::Field { flags, .. }
                | Op::VariableField { flags, .. }
                | Op::ChainField { flags, .. },
            ) => flags.tested = true,
            Some(Op::Call { tested, .. }) if index_call => *tested = true,
            _ => {}
        }
    }

    /// Notes that an operation ends a command: what it pushes is a value, not an interface.
    pub(super) fn mark_command(&mut self, index: usize) {
        if let Some(
            Op::Field {
                flags: Flags { unwrap, .. },
                ..
            }
            | Op::VariableField {
                flags: Flags { unwrap, .. },
                ..
            }
            | Op::ChainField {
                flags: Flags { unwrap, .. },
                ..
            }
            | Op::Dot { unwrap }
            | Op::Variable { unwrap, .. },
        ) = self.code.ops.get_mut(index)
        {
            *unwrap = true;
        }
    }

    pub(super) fn has_open_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }

    pub(super) fn block_opening(&self) -> usize {
        self.blocks
            .last()
            .map_or(self.opening, |block| block.opening)
    }

    pub(super) fn innermost(&self) -> Option<&Block> {
        self.blocks.last()
    }

    /// Begins a block, before its pipeline.
    pub(super) fn enter(&mut self, kind: BlockKind, opening: usize, site: Site) {
        self.emit(Op::Enter, site);
        self.blocks.push(Block {
            kind,
            opening,
            otherwise: false,
            variables: self.variables.len(),
            condition: None,
            to_end: Jumps::default(),
            to_next: Jumps::default(),
        });
    }

    fn block(&mut self) -> &mut Block {
        self.blocks
            .last_mut()
            .expect("the caller saw an open block")
    }

    /// Emits the test of an `if` or `with`.
    pub(super) fn condition(&mut self, with: bool, site: Site) {
        let op = if with {
            Op::With { target: 0, end: 0 }
        } else {
            Op::If { target: 0, end: 0 }
        };
        let index = self.emit(op, site);
        let block = self.block();
        block.condition = Some(index);
        let mut to_end = block.to_end;
        self.jumps_to(&mut to_end, index);
        self.block().to_end = to_end;
    }

    /// Adds a range to the table and begins it.
    pub(super) fn range(&mut self, range: Range, site: Site) {
        self.code.ranges.push(range);
        let range = self.code.ranges.len() as u32 - 1;
        self.emit(Op::Range { range }, site);
        self.code.ranges[range as usize].body = self.here() as u32;
        self.block().kind = BlockKind::Range(range);
    }

    /// Ends the part before an `else`.
    pub(super) fn part_done(&mut self, site: Site) {
        match self.block().kind {
            BlockKind::If | BlockKind::With => {
                let jump = self.emit(Op::Jump { target: 0 }, site);
                let mut to_end = self.block().to_end;
                self.jumps_to(&mut to_end, jump);
                self.block().to_end = to_end;
                self.condition_goes_here();
            }
            BlockKind::Range(range) => self.loop_done(range, site),
        }
    }

    pub(super) fn otherwise(&mut self) {
        self.block().otherwise = true;
    }

    fn condition_goes_here(&mut self) {
        let here = self.here() as u32;
        if let Some(condition) = self.block().condition.take()
            && let Op::If { target, .. } | Op::With { target, .. } = self.op_mut(condition)
        {
            *target = here;
        }
    }

    fn loop_done(&mut self, range: u32, site: Site) {
        let next = self.emit(Op::Next { range }, site) as u32;
        let to_next = std::mem::take(&mut self.block().to_next);
        self.arrive(to_next, next);
        let here = self.here() as u32;
        self.code.ranges[range as usize].otherwise = here;
    }

    /// Ends the innermost block.
    pub(super) fn leave(&mut self, site: Site) {
        if let BlockKind::Range(range) = self.block().kind
            && !self.block().otherwise
        {
            self.loop_done(range, site);
        }
        self.condition_goes_here();
        let here = self.here() as u32;
        self.emit(Op::Leave, site);
        let block = self.blocks.pop().expect("the caller saw an open block");
        self.undeclare(block.variables);
        if let BlockKind::Range(range) = block.kind {
            self.code.ranges[range as usize].end = here;
        }
        self.arrive(block.to_end, here);
    }

    /// Adds an operation that was emitted to those that go to the same place.
    pub(super) fn jumps_to(&mut self, jumps: &mut Jumps, index: usize) {
        if let Some(target) = target_of(&mut self.code.ops[index]) {
            *target = jumps.0;
            jumps.0 = index as u32 + 1;
        }
    }

    /// The place that operations go to is known.
    pub(super) fn arrive(&mut self, jumps: Jumps, place: u32) {
        let mut next = jumps.0;
        while next != 0
            && let Some(target) = target_of(&mut self.code.ops[next as usize - 1])
        {
            next = std::mem::replace(target, place);
        }
    }

    /// Emits a `break` or `continue`; false where there is no range around it.
    pub(super) fn loop_control(&mut self, breaks: bool, site: Site) -> bool {
        let is_range = |block: &Block| matches!(block.kind, BlockKind::Range(_));
        let is_body = |block: &Block| is_range(block) && !block.otherwise;
        let Some(body) = self.blocks.iter().rposition(is_body) else {
            return false;
        };
        // In Go a `break` in a range's `else` ends that range, not the one around it, though it is
        // only allowed where there is one around it; a `continue` there is the outer one's.
        let around = match self.blocks.iter().rposition(is_range) {
            Some(innermost) if breaks => innermost,
            _ => body,
        };
        let blocks = (self.blocks.len() - 1 - around) as u32;
        let index = self.emit(Op::Unwind { blocks, target: 0 }, site);
        let block = &self.blocks[around];
        let mut jumps = if breaks { block.to_end } else { block.to_next };
        self.jumps_to(&mut jumps, index);
        let block = &mut self.blocks[around];
        if breaks {
            block.to_end = jumps;
        } else {
            block.to_next = jumps;
        }
        true
    }
}

/// Where an operation goes to in the end.
fn target_of(op: &mut Op) -> Option<&mut u32> {
    match op {
        Op::If { end, .. } | Op::With { end, .. } => Some(end),
        Op::Jump { target } | Op::Unwind { target, .. } | Op::ShortCircuit { target, .. } => {
            Some(target)
        }
        _ => None,
    }
}
