//! Which slots of a group are filled, and which should be.
//!
//! In: the slots that are filled and the size. Out: the slots kept, grown into and given up. May
//! not: know what fills them.

use std::collections::BTreeSet;

/// What becomes of a group's slots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Slots {
    /// Filled and wanted.
    pub kept: Vec<u32>,
    /// Empty and wanted: the lowest free ones.
    pub grown: Vec<u32>,
    /// Filled and not wanted any more: the highest.
    pub given_up: Vec<u32>,
}

/// A group grows into the lowest free slots and shrinks from the highest.
pub fn arrange(filled: &BTreeSet<u32>, size: u32) -> Slots {
    let size = size as usize;
    let kept: Vec<u32> = filled.iter().copied().take(size).collect();
    let given_up = filled.iter().copied().skip(size).collect();
    let missing = size - kept.len();
    let grown = (0..)
        .filter(|slot| !filled.contains(slot))
        .take(missing)
        .collect();
    Slots {
        kept,
        grown,
        given_up,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_grow_low_and_shrink_high() {
        for (filled, size, kept, grown, given_up) in [
            (&[][..], 3, &[][..], &[0, 1, 2][..], &[][..]),
            (&[0, 1, 2], 2, &[0, 1], &[], &[2]),
            (&[0, 2], 2, &[0, 2], &[], &[]),
            (&[0, 2], 3, &[0, 2], &[1], &[]),
            (&[1, 5], 4, &[1, 5], &[0, 2], &[]),
            (&[1, 5, 7], 1, &[1], &[], &[5, 7]),
            (&[4], 0, &[], &[], &[4]),
        ] {
            let filled = filled.iter().copied().collect();
            let slots = arrange(&filled, size);
            assert_eq!(slots.kept, kept, "{filled:?} to {size}");
            assert_eq!(slots.grown, grown, "{filled:?} to {size}");
            assert_eq!(slots.given_up, given_up, "{filled:?} to {size}");
        }
    }
}
