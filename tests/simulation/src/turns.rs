//! Who works next, where two people work at once.
//!
//! In: a seed, and the people who come to a point where another could go on. Out: one of them goes
//! on, the others wait. May not: let two go on at once: then nothing could be repeated.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::chance::Chance;

/// Takes turns among so many people.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    chance: Chance,
    turn: usize,
    is_done: Vec<bool>,
}

impl State {
    fn choose(&mut self) {
        let ready: Vec<usize> = (0..self.is_done.len())
            .filter(|person| !self.is_done[*person])
            .collect();
        if !ready.is_empty() {
            self.turn = self.chance.one_of(&ready);
        }
    }
}

impl Turns {
    pub(crate) fn of(people: usize, seed: u64) -> Self {
        let mut state = State {
            chance: Chance::new(seed),
            turn: 0,
            is_done: vec![false; people],
        };
        state.choose();
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the first turn. However it ends, the others go on when what is returned is gone.
    pub(crate) fn begin(&self, person: usize) -> Taken<'_> {
        let state = self.state();
        drop(self.changed.wait_while(state, |state| state.turn != person));
        Taken(self, person)
    }

    /// A point where anyone may go on; returns when it is this one's turn again.
    pub(crate) fn pass(&self, person: usize) {
        let mut state = self.state();
        state.choose();
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| state.turn != person));
    }

    /// This one is done, or dead.
    fn end(&self, person: usize) {
        let mut state = self.state();
        state.is_done[person] = true;
        state.choose();
        self.changed.notify_all();
    }
}

/// Somebody's part in the turns.
pub(crate) struct Taken<'a>(&'a Turns, usize);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}
