//! Compares the cloud's instances with the record.
//!
//! In: pages of a listing, and a snapshot of the state. Out: [`Observed`]: whether each recorded
//! instance equals its record, and all instances of this shard that aren't recorded. Must not: keep
//! instances that are in sync (a fleet of 100,000 must fit in memory), or decide what to do.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use nstance_state::{Record, Snapshot};

use crate::clock::Timestamp;
use crate::provider::{Cloud, CloudError, LifecycleState, Observation, Owner};

/// The result of a listing.
#[derive(Debug, Default)]
pub struct Observed {
    by_provider_id: HashMap<Box<str>, Seen>,
    /// Live instances with this shard's tags that have no record.
    pub unrecorded: Vec<Observation>,
    /// Why instances ended, by provider id, if the cloud reports it.
    ended: HashMap<Box<str>, String>,
    /// How many API calls the listing took.
    pub calls: usize,
}

/// The observation of a recorded instance.
#[derive(Debug)]
pub enum Seen {
    /// Its digest equals the recorded one.
    InSync,
    /// Its digest differs; its attributes may still be equal.
    Differs(Box<Observation>),
}

impl Observed {
    /// The observation of an instance; `None` if the cloud doesn't have it.
    pub fn get(&self, provider_id: &str) -> Option<&Seen> {
        self.by_provider_id.get(provider_id)
    }

    /// The state of an instance; `None` if the cloud doesn't have it.
    pub fn state(&self, provider_id: &str) -> Option<LifecycleState> {
        self.get(provider_id).map(|seen| match seen {
            Seen::InSync => LifecycleState::Running,
            Seen::Differs(observation) => observation.state,
        })
    }

    /// Marks an instance as in sync after its attributes were compared.
    pub fn accept(&mut self, provider_id: &str) {
        if let Some(seen) = self.by_provider_id.get_mut(provider_id) {
            *seen = Seen::InSync;
        }
    }

    /// Why a missing instance ended, if the cloud reports it.
    pub fn ended_because(&self, provider_id: &str) -> Option<&str> {
        self.ended.get(provider_id).map(String::as_str)
    }

    /// How many instances the cloud has.
    pub fn count(&self) -> usize {
        self.by_provider_id.len() + self.unrecorded.len()
    }
}

/// Lists all of `owner`'s instances page by page, and calls `progress` with the count so far.
///
/// A listing may be stale, so recorded instances that it lacks are queried by id. An instance
/// younger than the visibility window counts as present: treating it as absent would lose it.
///
/// Fails if the cloud fails.
pub fn refresh(
    cloud: &dyn Cloud,
    owner: &Owner,
    snapshot: Option<&Snapshot>,
    now: Timestamp,
    mut progress: impl FnMut(usize),
) -> Result<Observed, CloudError> {
    let records: HashMap<&str, &Record> = snapshot
        .iter()
        .flat_map(|snapshot| &snapshot.records)
        .map(|record| (record.provider_id.as_str(), record))
        .collect();
    let mut observed = Observed::default();
    let mut page: Option<String> = None;
    // These are listed as terminating, so their absence is certain.
    let mut gone: HashSet<String> = HashSet::new();
    loop {
        let listed = cloud.list(owner, page.as_deref())?;
        observed.calls += 1;
        for observation in listed.instances {
            if observation.state.is_live() {
                observed.add(observation, &records);
            } else {
                observed.note_end(&observation);
                gone.insert(observation.provider_id);
            }
        }
        progress(observed.count());
        page = listed.next;
        if page.is_none() {
            break;
        }
    }
    let absent: Vec<String> = records
        .keys()
        .filter(|id| !observed.by_provider_id.contains_key(**id) && !gone.contains(**id))
        .map(|id| (*id).to_owned())
        .collect();
    for some in absent.chunks(200) {
        let described = cloud.describe(some)?;
        observed.calls += 1;
        for observation in described {
            if observation.state.is_live() {
                observed.add(observation, &records);
            } else {
                observed.note_end(&observation);
                gone.insert(observation.provider_id);
            }
        }
    }
    let window = cloud.visibility_window();
    for id in absent {
        if may_be_unseen_until(records[id.as_str()], window) > now && !gone.contains(&id) {
            let id = id.into_boxed_str();
            observed.by_provider_id.entry(id).or_insert(Seen::InSync);
        }
    }
    Ok(observed)
}

/// Until when a listing may lack an instance that exists. Uses the later of the cloud's creation
/// time and the record's time, so that neither clock has to be right.
pub fn may_be_unseen_until(record: &Record, window: Duration) -> Timestamp {
    Timestamp::from(record.created_at.max(record.updated_at)).after(window)
}

impl Observation {
    /// Whether it runs, and in the recorded place; the digest of its attributes covers neither.
    pub fn is_placed_as(&self, record: &Record) -> bool {
        matches!(
            self.state,
            LifecycleState::Pending | LifecycleState::Running
        ) && record.zone == self.zone
            && record.subnet == self.subnet
            && (record.ip4 == self.ip4 || self.ip4.is_none())
            && (record.ip6 == self.ip6 || self.ip6.is_none())
    }
}

impl Observed {
    fn note_end(&mut self, observation: &Observation) {
        if let Some(reason) = &observation.ended_because {
            let id = observation.provider_id.as_str().into();
            self.ended.insert(id, reason.clone());
        }
    }

    /// Adds one observation.
    pub fn add(&mut self, observation: Observation, records: &HashMap<&str, &Record>) {
        if !observation.state.is_live() {
            return;
        }
        let Some(record) = records.get(observation.provider_id.as_str()) else {
            self.unrecorded.push(observation);
            return;
        };
        let id = observation.provider_id.as_str().into();
        let in_sync = record
            .observed
            .is_some_and(|digest| digest.0 == observation.digest)
            && observation.is_placed_as(record);
        let seen = if in_sync {
            Seen::InSync
        } else {
            Seen::Differs(Box::new(observation))
        };
        self.by_provider_id.insert(id, seen);
    }
}
