//! What the cloud has, against what is recorded.
//!
//! In: pages of a listing, and a snapshot of the state. Out: [`Observed`]: for each recorded
//! instance whether it is as recorded, and every instance of ours that isn't recorded. Must not:
//! keep what is in sync (a fleet of 100,000 must fit in memory), or decide what to do.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use nstance_state::{Record, Snapshot};

use crate::clock::Timestamp;
use crate::provider::{Cloud, CloudError, LifecycleState, Observation, Owner};

/// What a listing said.
#[derive(Debug, Default)]
pub struct Observed {
    by_provider_id: HashMap<Box<str>, Seen>,
    /// Live instances with our tags that nothing is recorded of.
    pub unrecorded: Vec<Observation>,
    /// Why instances ended, by provider id, where the cloud says so.
    ended: HashMap<Box<str>, String>,
    /// How many calls it took.
    pub calls: usize,
}

/// What was seen of a recorded instance.
#[derive(Debug)]
pub enum Seen {
    /// Its digest is the recorded one.
    InSync,
    /// It may differ.
    Differs(Box<Observation>),
}

impl Observed {
    /// What was seen of an instance; `None`: it wasn't there.
    pub fn get(&self, provider_id: &str) -> Option<&Seen> {
        self.by_provider_id.get(provider_id)
    }

    /// Takes an instance that may differ to be as recorded, which it turned out to be.
    pub fn accept(&mut self, provider_id: &str) {
        if let Some(seen) = self.by_provider_id.get_mut(provider_id) {
            *seen = Seen::InSync;
        }
    }

    /// Why an instance that isn't there any more ended, if the cloud says so.
    pub fn ended_because(&self, provider_id: &str) -> Option<&str> {
        self.ended.get(provider_id).map(String::as_str)
    }

    /// How many instances were there.
    pub fn len(&self) -> usize {
        self.by_provider_id.len() + self.unrecorded.len()
    }

    /// Whether nothing was there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Lists all of `owner`'s instances, page by page, calling `progress` with the count so far.
/// Recorded instances that the listing lacks are asked for by id, since a listing may be stale;
/// one that is younger than the visibility window is taken to be there, since its absence says
/// nothing yet, and to believe it would lose the instance.
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
    // Shown on their way out: their absence is certain.
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
        progress(observed.len());
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

/// Until when an instance's absence from listings says nothing. When it was made is the cloud's
/// time, when its record was written is ours: neither clock has to be right.
pub fn may_be_unseen_until(record: &Record, window: Duration) -> Timestamp {
    Timestamp::from(record.created_at.max(record.updated_at)).after(window)
}

impl Observation {
    /// Whether what its attributes don't say is as recorded: that it runs, and where.
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

    /// Folds in one observation.
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
