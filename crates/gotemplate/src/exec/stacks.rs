//! The machine's stacks, kept by the thread between executions for their memory.

use std::cell::Cell;

use super::item::Item;
use super::machine::{Block, Call};

/// A stack with room for more than this isn't kept.
const KEPT: usize = 1024;

#[derive(Default)]
pub(super) struct Stacks<'d> {
    pub(super) values: Vec<Item<'d>>,
    pub(super) variables: Vec<(u32, Item<'d>)>,
    pub(super) blocks: Vec<Block<'d>>,
    pub(super) calls: Vec<Call<'d>>,
}

thread_local! {
    static IDLE: Cell<Stacks<'static>> = Cell::default();
}

impl Stacks<'_> {
    /// The thread's stacks, empty; new ones where they are in use.
    pub(super) fn take() -> Self {
        IDLE.try_with(Cell::take).unwrap_or_default()
    }

    /// Gives the thread its stacks back, without what is on them.
    pub(super) fn give_back(self) {
        let stacks = Stacks {
            values: emptied(self.values, |_| None),
            variables: emptied(self.variables, |_| None),
            blocks: emptied(self.blocks, |_| None),
            calls: emptied(self.calls, |_| None),
        };
        // A thread that ends has no use for them.
        let _ = IDLE.try_with(|idle| idle.set(stacks));
    }
}

/// The same memory for things of another lifetime: collecting what a vector's own iterator gives
/// takes place in the vector.
fn emptied<T, U>(mut stack: Vec<T>, nothing: fn(T) -> Option<U>) -> Vec<U> {
    stack.clear();
    if stack.capacity() > KEPT {
        return Vec::new();
    }
    stack.into_iter().filter_map(nothing).collect()
}
