//! The code of one template while it is being built: emits operations, keeps its open blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lex::Token;
use crate::code::{Callee, Code, Flags, Op, Path, ROOT, Range, Site, Source, Span};
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
    to_end: Vec<usize>,
    /// Operations that go to the range's `Next`.
    to_next: Vec<usize>,
}

pub(super) struct Builder {
    code: Code,
    pub(super) purpose: Purpose,
    pub(super) opening: usize,
    /// The names of the variables declared so far, by index into the code's names.
    variables: Vec<u32>,
    /// How many variables of each name there are.
    declared: BTreeMap<u32, u32>,
    blocks: Vec<Block>,
    /// Where the code's names are in their table, but for the first.
    known_names: BTreeMap<Arc<str>, u32>,
}

impl Builder {
    pub(super) fn new(name: Arc<str>, source: &Arc<Source>) -> Self {
        Self::with_purpose(name, source, Purpose::Text, 0)
    }

    pub(super) fn with_purpose(
        name: Arc<str>,
        source: &Arc<Source>,
        purpose: Purpose,
        opening: usize,
    ) -> Self {
        let code = Code::new(name, Arc::clone(source));
        Self {
            code,
            purpose,
            opening,
            variables: vec![0],
            declared: BTreeMap::new(),
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
        self.code
    }

    pub(super) fn text(&mut self, token: Token) {
        let text = &self.code.source.text[token.start..token.end];
        let empty = self.code.empty && text.trim().is_empty();
        let (start, end) = (token.start as u32, token.end as u32);
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
        self.known_names.insert(name, index);
        index
    }

    fn known_name(&self, name: &str) -> Option<u32> {
        if name == ROOT {
            return Some(0);
        }
        self.known_names.get(name).copied()
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

    pub(super) fn function(&mut self, callee: Callee) -> u32 {
        let functions = &mut self.code.functions;
        let known = functions.iter().position(|known| known.name == callee.name);
        known.unwrap_or_else(|| {
            functions.push(callee);
            functions.len() - 1
        }) as u32
    }

    pub(super) fn callee(&self, function: u32) -> &Callee {
        &self.code.functions[function as usize]
    }

    pub(super) fn declare(&mut self, name: u32) {
        self.variables.push(name);
        *self.declared.entry(name).or_default() += 1;
    }

    pub(super) fn is_declared(&self, name: &str) -> bool {
        let index = self.known_name(name);
        index.is_some_and(|index| index == 0 || self.declared.contains_key(&index))
    }

    /// Forgets the variables that were declared since there were `count`.
    fn undeclare(&mut self, count: usize) {
        for name in self.variables.split_off(count) {
            if let Some(times) = self.declared.get_mut(&name) {
                *times -= 1;
                if *times == 0 {
                    self.declared.remove(&name);
                }
            }
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
            to_end: Vec::new(),
            to_next: Vec::new(),
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
        block.to_end.push(index);
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
                self.block().to_end.push(jump);
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
        for index in std::mem::take(&mut self.block().to_next) {
            if let Op::Unwind { target, .. } = self.op_mut(index) {
                *target = next;
            }
        }
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
        for index in block.to_end {
            match self.op_mut(index) {
                Op::If { end, .. } | Op::With { end, .. } => *end = here,
                Op::Jump { target } | Op::Unwind { target, .. } => *target = here,
                _ => {}
            }
        }
    }

    /// Emits a `break` or `continue`; false where there is no range around it.
    pub(super) fn loop_control(&mut self, breaks: bool, site: Site) -> bool {
        let around = self
            .blocks
            .iter()
            .rposition(|block| matches!(block.kind, BlockKind::Range(_)) && !block.otherwise);
        let Some(around) = around else {
            return false;
        };
        let blocks = (self.blocks.len() - 1 - around) as u32;
        let index = self.emit(Op::Unwind { blocks, target: 0 }, site);
        let block = &mut self.blocks[around];
        if breaks {
            block.to_end.push(index);
        } else {
            block.to_next.push(index);
        }
        true
    }
}
