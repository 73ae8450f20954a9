//! Deals the instances of a new group to its zones.
//!
//! In: zones with their tags, and a size. Out: a [`Slot`] for each instance. Must not: know live
//! instances.

use std::sync::Arc;

use crate::config::source::{Span, Spanned};
use crate::merge::zones::{self, Place};

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
    /// Its number in the group, from 1.
    pub(super) index: u32,
    pub(super) place: Place,
}

/// The slots of a new group.
pub(super) fn deal(zones: &[Zone], size: u32) -> Vec<Slot> {
    if zones.is_empty() {
        return Vec::new();
    }
    let native = zones.iter().map(|zone| zones::Zone {
        name: Arc::clone(&zone.id),
        tags: zone.tags.iter().map(|tag| Arc::clone(&tag.value)).collect(),
    });
    let native: Vec<_> = native.collect();
    let slots = (0..size).map(|slot| Slot {
        index: slot + 1,
        place: Place::of_new(&native, slot),
    });
    slots.collect()
}
