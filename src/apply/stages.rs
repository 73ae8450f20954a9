//! Applies a plan whose later groups need addresses of earlier ones.
//!
//! In: a plan. Out: its outcome. Must not: make a change that the plan lacks.
//!
//! A group whose texts read addresses that aren't known yet waits until the groups it links to are
//! done. Its changes are then rendered with the addresses (`pipeline::late`), and the next stage
//! applies them. After the last stage, exported files get the addresses of new instances.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use nstance_state::{RolloutId, StateError, Store, Write};

use super::driver::{DriveError, World, drive};
use super::engine::{Limits, Starts};
use super::protocol::{Outcome, Progress, TaskEnd};
use super::steps::Start;
use crate::address::{Address, GroupName};
use crate::clock::Timestamp;
use crate::pipeline::late::{self, Completed, Settled};
use crate::plan::change::{Mode, Plan, PlannedGroup, Summary};
use crate::spec::SpecBody;

/// Applies a plan, stage by stage. Returns it with real addresses, and its outcome.
///
/// Fails as [`drive`] does.
pub(super) fn drive_all<'p>(
    plan: &'p Plan,
    limits: Limits,
    seed: u64,
    starts: Starts,
    world: &mut World<'_>,
    tell: &mut dyn FnMut(&Progress),
) -> Result<(Cow<'p, Plan>, Outcome), DriveError> {
    if !late::is_staged(plan) {
        let outcome = drive(plan, limits, seed, &starts, world, tell)?;
        return Ok((Cow::Borrowed(plan), outcome));
    }
    let mut stages = Stages::new(plan, starts);
    let outcome = loop {
        stages.settle(world.store, world.rollout, world.clock.now())?;
        let starts = stages.starts();
        let outcome = drive(stages.plan(), limits, seed, &starts, world, tell)?;
        if let Some(outcome) = stages.ended(outcome, world.store)? {
            break outcome;
        }
    };
    if !outcome.stopped {
        for (address, spec) in complete_files(&stages.plan, world.store, world.clock.now())? {
            if let Err(error) = world.exporter.write(&address, &spec.files) {
                let error = error.to_string();
                tell(&Progress::ExportFailed { address, error });
            }
        }
    }
    Ok((stages.plan, outcome))
}

/// The stages of a plan.
pub struct Stages<'p> {
    plan: Cow<'p, Plan>,
    starts: Starts,
    done: Summary,
    /// The changes that wait for another stage.
    later: BTreeSet<usize>,
    /// Changes that couldn't be rendered.
    failed: Vec<(usize, String)>,
}

impl<'p> Stages<'p> {
    /// The stages of a plan, of which an earlier apply did a part.
    pub fn new(plan: &'p Plan, mut starts: Starts) -> Self {
        starts.tasks.resize(plan.changes.len(), Start::Todo);
        let mut stages = Self {
            plan: Cow::Borrowed(plan),
            starts,
            done: Summary::default(),
            later: BTreeSet::new(),
            failed: Vec::new(),
        };
        stages.later = stages.waiting();
        stages
    }

    /// The plan, with the addresses that are known so far.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    fn is_open(&self, index: usize) -> bool {
        !matches!(self.starts.tasks[index], Start::Done { .. })
    }

    /// The open changes of groups with late changes, and of groups that come after them.
    fn waiting(&self) -> BTreeSet<usize> {
        let open = || {
            let changes = self.plan.changes.iter().enumerate();
            changes.filter(|(index, _)| self.is_open(*index))
        };
        let mut groups: HashSet<&str> = open()
            .filter(|(_, change)| !change.late.is_empty())
            .map(|(_, change)| change.address.group.as_str())
            .collect();
        // Groups are in dependency order.
        for group in &self.plan.groups {
            if group.after.iter().any(|before| groups.contains(&**before)) {
                groups.insert(&group.name);
            }
        }
        open()
            .filter(|(_, change)| groups.contains(change.address.group.as_str()))
            .map(|(index, _)| index)
            .collect()
    }

    /// Renders the late changes of the groups whose turn comes. The rollout's record gets the plan
    /// with them, durably.
    ///
    /// Fails if the store fails.
    pub fn settle(
        &mut self,
        store: &mut dyn Store,
        rollout: Option<RolloutId>,
        now: Timestamp,
    ) -> Result<(), StateError> {
        if self.render(store)?
            && let Some(id) = rollout
        {
            let plan = serde_json::to_vec(&*self.plan).expect("its keys are strings");
            let write = Write::SetRolloutPlan { id, plan };
            store.commit(now.into(), vec![write])?;
        }
        Ok(())
    }

    /// Renders the late changes of groups that come after groups that are all done. Returns whether
    /// the plan changed.
    ///
    /// Fails if the store fails.
    fn render(&mut self, store: &dyn Store) -> Result<bool, StateError> {
        let snapshot = store.snapshot()?;
        let open: HashSet<&str> = (0..self.plan.changes.len())
            .filter(|index| self.is_open(*index))
            .map(|index| self.plan.changes[index].address.group.as_str())
            .collect();
        let is_ready =
            |group: &&PlannedGroup| !group.after.iter().any(|before| open.contains(&**before));
        let late: HashSet<GroupName> = self
            .later
            .iter()
            .map(|index| &self.plan.changes[*index])
            .filter(|change| !change.late.is_empty())
            .map(|change| change.address.group.clone())
            .collect();
        let ready = self.plan.groups.iter().filter(is_ready);
        let ready: Vec<GroupName> = ready
            .filter_map(|group| group.name.parse().ok())
            .filter(|name| late.contains(name))
            .collect();
        let mut has_changed = false;
        for group in ready {
            let last_good = store.last_good(&[group.as_str()])?.remove(group.as_str());
            match late::settle(&self.plan, &group, &snapshot, last_good.as_deref()) {
                Ok(settled) => {
                    has_changed = true;
                    for (index, settled) in settled {
                        match settled {
                            Settled::Change(change) => {
                                self.plan.to_mut().changes[index] = *change;
                            }
                            Settled::Unchanged => {
                                self.plan.to_mut().changes[index].late.clear();
                                self.starts.tasks[index] = Start::Done { provider_id: None };
                            }
                        }
                    }
                }
                Err(why) => {
                    let own = self.later.iter().copied();
                    let own = own.filter(|index| self.plan.changes[*index].address.group == group);
                    self.failed.extend(own.map(|index| (index, why.clone())));
                }
            }
        }
        self.later = self.waiting();
        Ok(has_changed)
    }

    /// Where each change begins in this stage.
    pub fn starts(&self) -> Starts {
        let mut starts = self.starts.clone();
        for index in &self.later {
            starts.tasks[*index] = Start::Later;
        }
        starts
    }

    /// Notes what a stage did. Returns the outcome of all stages if this was the last.
    ///
    /// Fails if the store fails.
    pub fn ended(
        &mut self,
        mut outcome: Outcome,
        store: &dyn Store,
    ) -> Result<Option<Outcome>, StateError> {
        let snapshot = store.snapshot()?;
        self.done.add(&outcome.done);
        outcome
            .undone
            .retain(|(index, _)| !self.later.contains(index));
        let is_complete = outcome.undone.is_empty();
        let had_later = !self.later.is_empty();
        let before = self.open_count();
        if is_complete {
            let ids: HashMap<&str, &str> = snapshot
                .records
                .iter()
                .map(|record| (record.instance_id.as_str(), record.provider_id.as_str()))
                .collect();
            for index in 0..self.plan.changes.len() {
                if !self.later.contains(&index) && self.is_open(index) {
                    let after = self.plan.changes[index].after.as_deref();
                    let id = after.and_then(|after| ids.get(&*after.instance_id));
                    let provider_id = id.map(|id| (*id).to_owned());
                    self.starts.tasks[index] = Start::Done { provider_id };
                }
            }
            self.starts.groups.clear();
        }
        let advanced = self.open_count() < before;
        if is_complete && had_later && advanced && self.failed.is_empty() && !outcome.stopped {
            return Ok(None);
        }
        let failed: HashSet<usize> = self.failed.iter().map(|(index, _)| *index).collect();
        outcome.failures += failed.len();
        let not_tried = self.later.iter().filter(|index| !failed.contains(index));
        outcome
            .undone
            .extend(not_tried.map(|index| (*index, TaskEnd::NotTried)));
        let failed = self.failed.drain(..);
        outcome
            .undone
            .extend(failed.map(|(index, why)| (index, TaskEnd::Failed(why))));
        outcome.undone.sort_by_key(|(index, _)| *index);
        outcome.done = self.done;
        Ok(Some(outcome))
    }

    fn open_count(&self) -> usize {
        (0..self.starts.tasks.len())
            .filter(|index| self.is_open(*index))
            .count()
    }
}

/// Gives exported files the addresses of new instances, in the record; returns what is to be
/// written. Both follow from the record, so an apply after a crash does the same.
///
/// Fails if the store fails.
pub fn complete_files(
    plan: &Plan,
    store: &mut dyn Store,
    now: Timestamp,
) -> Result<Vec<(Address, SpecBody)>, StateError> {
    let mut files = Vec::new();
    if plan.mode != Mode::Normal {
        return Ok(files);
    }
    for name in plan.late.keys() {
        let Ok(group) = name.parse::<GroupName>() else {
            continue;
        };
        let snapshot = store.snapshot()?;
        let specs = |digest| -> Option<SpecBody> {
            let bytes = store.specs(&[digest]).ok()?.remove(&digest)?;
            serde_json::from_slice(&bytes).ok()
        };
        // What couldn't be created is reported already.
        let completed = late::complete(plan, &group, &snapshot, &specs).unwrap_or_default();
        let writes = completed.iter().flat_map(|completed| {
            let spec = Write::PutSpec {
                digest: completed.record.spec,
                bytes: completed.spec.to_bytes(),
            };
            let record = Write::PutRecord(Box::new(completed.record.clone()));
            [spec, record]
        });
        let writes: Vec<Write> = writes.collect();
        if !writes.is_empty() {
            store.commit(now.into(), writes)?;
        }
        let completed = completed.into_iter();
        files.extend(completed.map(|Completed { address, spec, .. }| (address, spec)));
    }
    Ok(files)
}
