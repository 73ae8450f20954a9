//! The texts that `tpl` was given in one execution, parsed.
//!
//! In: sets of templates, one after another. Out: references to them that last as long as the
//! execution, which is why what is there never moves.

use std::cell::OnceCell;

use crate::template::Set;

/// Sets that can be added to while they are borrowed.
#[derive(Default)]
pub(super) struct Texts {
    first: OnceCell<Box<Node>>,
}

struct Node {
    set: Set,
    next: OnceCell<Box<Node>>,
}

/// The place for the next set.
#[derive(Clone, Copy)]
pub(super) struct End<'t>(&'t OnceCell<Box<Node>>);

impl Texts {
    pub(super) fn end(&self) -> End<'_> {
        End(&self.first)
    }
}

impl<'t> End<'t> {
    /// Puts a set there, and moves on.
    pub(super) fn push(&mut self, set: Set) -> &'t Set {
        let next = OnceCell::new();
        let node = self.0.get_or_init(|| Box::new(Node { set, next }));
        self.0 = &node.next;
        &node.set
    }
}

impl Drop for Texts {
    fn drop(&mut self) {
        // One after another, not one within the other.
        let mut next = self.first.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}
