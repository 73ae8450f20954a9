//! Assigns recorded and observed instances to slots.
//!
//! In: the record and the observations. Out: actual instances by group and slot. May not: judge them.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use nstance_state::{Record, Snapshot};

use crate::address::GroupName;
use crate::provider::Observation;
use crate::refresh::{Observed, Seen};

/// The instance in a slot.
#[derive(Debug, Clone, Copy)]
pub enum ActualInstance<'a> {
    /// Recorded, and whatever was seen of it.
    Recorded {
        /// The record.
        record: &'a Record,
        /// Its state in the cloud.
        presence: Presence<'a>,
    },
    /// An unrecorded instance with this shard's tags.
    Unrecorded(&'a Observation),
}

/// The observed status of a recorded instance.
#[derive(Debug, Clone, Copy)]
pub enum Presence<'a> {
    /// In sync with its record, or not observed.
    InSync,
    /// Exists, and may differ from its record.
    Differs(&'a Observation),
    /// Doesn't exist.
    Missing,
}

/// All of them, by group and slot.
pub struct ActualInstances<'a> {
    pub(super) by_group: HashMap<&'a str, BTreeMap<u32, ActualInstance<'a>>>,
    pub(super) deposed: HashMap<&'a str, Vec<(&'a Record, Presence<'a>)>>,
    /// Unrecorded instances without a slot of their own: another instance has it, or their tags
    /// name none.
    pub(super) duplicates: Vec<&'a Observation>,
}

impl<'a> ActualInstances<'a> {
    /// Gathers them.
    pub fn new(snapshot: Option<&'a Snapshot>, observed: Option<&'a Observed>) -> Self {
        let mut actual = Self {
            by_group: HashMap::new(),
            deposed: HashMap::new(),
            duplicates: Vec::new(),
        };
        for record in snapshot.iter().flat_map(|snapshot| &snapshot.records) {
            let presence = match observed {
                None => Presence::InSync,
                Some(observed) => match observed.get(&record.provider_id) {
                    None => Presence::Missing,
                    Some(Seen::InSync) => Presence::InSync,
                    Some(Seen::Differs(observation)) => Presence::Differs(observation),
                },
            };
            if record.deposed {
                actual
                    .deposed
                    .entry(&record.group)
                    .or_default()
                    .push((record, presence));
            } else {
                actual
                    .by_group
                    .entry(&record.group)
                    .or_default()
                    .insert(record.slot, ActualInstance::Recorded { record, presence });
            }
        }
        let mut unrecorded: Vec<_> = observed.iter().flat_map(|o| &o.unrecorded).collect();
        // If several claim a slot, the latest instance id wins, since it was created to replace the
        // others. If several have the same id, the first is the original and the others are copies.
        unrecorded.sort_by_key(|o| {
            (
                Reverse(o.instance_id.as_deref().map(made_at)),
                o.created_at,
                &o.provider_id,
            )
        });
        for instance in unrecorded {
            let (Some(group), Some(slot)) = (instance.group.as_deref(), instance.slot) else {
                actual.duplicates.push(instance);
                continue;
            };
            if group.parse::<GroupName>().is_err() {
                actual.duplicates.push(instance);
                continue;
            }
            let slots = actual.by_group.entry(group).or_default();
            match slots.entry(slot) {
                Entry::Vacant(free) => {
                    free.insert(ActualInstance::Unrecorded(instance));
                }
                Entry::Occupied(_) => actual.duplicates.push(instance),
            }
        }
        actual
    }

    /// The slots of a group with a deposed instance that still exists.
    pub fn deposed_slots(&self, group: &str) -> BTreeSet<u32> {
        let deposed = self.deposed.get(group).into_iter().flatten();
        deposed
            .filter(|(_, presence)| !matches!(presence, Presence::Missing))
            .map(|(record, _)| record.slot)
            .collect()
    }

    /// Leaves out the instances of some groups.
    pub fn leave_out(&mut self, groups: &BTreeSet<GroupName>) {
        for group in groups {
            self.by_group.remove(group.as_str());
            self.deposed.remove(group.as_str());
            let is_another = |seen: &&Observation| seen.group.as_deref() != Some(group.as_str());
            self.duplicates.retain(is_another);
        }
    }

    /// The instances of a group; taken, so that what is left belongs to no group.
    pub fn take(&mut self, group: &str) -> BTreeMap<u32, ActualInstance<'a>> {
        self.by_group.remove(group).unwrap_or_default()
    }
}

/// The part of an instance id after the kind, which sorts by creation time.
fn made_at(id: &str) -> &str {
    id.get(3..).unwrap_or_default()
}
