//! The zones of a group, and the place that each of its slots has.
//!
//! In: the zones with their tags, in the order listed. Out: the places of a group's first slots.
//! Must not: know which slots are filled; `plan::places` does.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A zone of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Its name.
    pub name: Arc<str>,
    /// The tags of the slots in it, in the order in which slots take them.
    pub tags: Vec<Arc<str>>,
}

/// What a slot keeps for life in its zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// Its number among the group's slots in the zone, from 1.
    pub number: u32,
    /// Its tag; empty if the zone has none.
    pub tag: Arc<str>,
}

/// The place of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The zone.
    pub zone: Arc<str>,
    /// What it keeps there.
    pub seat: Seat,
}

impl Place {
    /// The place of a slot in a group whose slots are all new: they go round the zones.
    pub fn of_new(zones: &[Zone], slot: u32) -> Self {
        let count = zones.len() as u32;
        let zone = &zones[(slot % count) as usize];
        let before = slot / count;
        Self {
            zone: Arc::clone(&zone.name),
            seat: Seat {
                number: before + 1,
                tag: zone.tags.get(before as usize).cloned().unwrap_or_default(),
            },
        }
    }
}

/// How many of `size` slots the zone with this index gets.
pub fn share(zones: usize, size: u32, zone: usize) -> usize {
    (size as usize + zones - 1 - zone) / zones
}
