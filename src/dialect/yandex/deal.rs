//! Deals the instances of a new group to its zones.
//!
//! In: zones with their tags, and a size. Out: a [`Slot`] for each instance. Must not: know live
//! instances.

use std::sync::Arc;

use crate::config::source::{Span, Spanned};

/// A zone of the allocation policy.
pub(super) struct Zone {
    pub(super) id: Arc<str>,
    pub(super) span: Span,
    /// Its tags, in order; empty without a pool.
    pub(super) tags: Vec<Spanned<Arc<str>>>,
}

/// An instance's place in the group.
#[derive(Debug, PartialEq)]
pub(super) struct Slot {
    /// The index of its zone in the policy.
    pub(super) zone: usize,
    /// Its number in the group, from 1.
    pub(super) index: u32,
    /// Its number in the zone, from 1.
    pub(super) index_in_zone: u32,
    /// Its tag; `None` if the zone has too few.
    pub(super) tag: Option<Arc<str>>,
}

/// The slots of a new group: one by one to the zones in listed order, cyclically.
pub(super) fn deal(zones: &[Zone], size: u32) -> Vec<Slot> {
    let turns = zones.iter().enumerate().cycle();
    let slots = turns.zip(0..size).map(|((zone, policy), dealt)| {
        let round = dealt as usize / zones.len();
        Slot {
            zone,
            index: dealt + 1,
            index_in_zone: round as u32 + 1,
            tag: policy.tags.get(round).map(|tag| Arc::clone(&tag.value)),
        }
    });
    slots.collect()
}

/// How many of `size` instances are in each zone.
pub(super) fn share(zones: usize, zone: usize, size: u32) -> usize {
    (size as usize + zones - 1 - zone) / zones
}
