//! The record of a rollout: what an apply writes about it, and what the next one reads.
//!
//! In: a store, a plan and its outcome. Out: writes; the rollout that an earlier apply left open; the
//! plan of the way back. Must not: ask a cloud, or change a plan.

use std::collections::{HashMap, HashSet};

use nstance_state::{
    ApplyId, NewApply, NewRollout, Record, Rollout as StoredRollout, RolloutId, RolloutStatus,
    Snapshot, StateError, Store, Write,
};

use super::driver::Applied;
use super::protocol::Outcome;
use super::rollback;
use crate::clock::Timestamp;
use crate::config::model::OnFailure;
use crate::plan::change::{Action, Mode, Plan, PlannedGroup};
use crate::plan::inputs::Options;
use crate::plan::rollout::is_limited;

/// A rollout that can be continued, and its plan.
#[derive(Debug)]
pub struct OpenRollout {
    /// Its record.
    pub stored: StoredRollout,
    /// Its plan.
    pub plan: Plan,
    /// The ids of the instances whose changes are done.
    pub done: HashSet<String>,
}

/// The ids of the instances whose changes are done: of those that take turns as the rollout says, of
/// the others as the record shows.
pub fn done_instances(stored: &StoredRollout, plan: &Plan, snapshot: &Snapshot) -> HashSet<String> {
    let (mut done, mut open) = (HashSet::new(), HashSet::new());
    for slot in &stored.slots {
        let is_done = slot.stage == "done";
        let known = if is_done { &mut done } else { &mut open };
        known.insert(slot.instance_id.clone());
    }
    let records = snapshot.records.iter();
    let records: HashMap<&str, &Record> = records
        .map(|record| (record.instance_id.as_str(), record))
        .collect();
    for change in &plan.changes {
        let Some(side) = change.after.as_deref().or(change.before.as_deref()) else {
            continue;
        };
        let record = records.get(&*side.instance_id);
        let is_done = match change.action {
            Action::Create | Action::Adopt => record.is_some(),
            Action::Update => record.is_some_and(|record| record.spec == side.digest),
            Action::Delete | Action::Forget => record.is_none(),
            Action::CreateThenDelete | Action::DeleteThenCreate | Action::NoOp => false,
        };
        if is_done && !is_limited(change) && !open.contains(&*side.instance_id) {
            done.insert(side.instance_id.to_string());
        }
    }
    done
}

impl OpenRollout {
    /// The rollout of a state, if it can be continued.
    ///
    /// Fails if the state can't be read.
    pub fn of(store: &dyn Store) -> Result<Option<Self>, StateError> {
        let is_open = |stored: &StoredRollout| {
            matches!(
                stored.status,
                RolloutStatus::Running
                    | RolloutStatus::Waiting
                    | RolloutStatus::Failed
                    | RolloutStatus::RollingBack
            )
        };
        let Some(stored) = store.rollout()?.filter(is_open) else {
            return Ok(None);
        };
        // A plan of a later version can't be continued by this one.
        let Some(plan) = plan_of(store, &stored)? else {
            return Ok(None);
        };
        let done = done_instances(&stored, &plan, &store.snapshot()?);
        Ok(Some(Self { stored, plan, done }))
    }

    /// Whether it is on its way back.
    pub fn goes_back(&self) -> bool {
        self.stored.status == RolloutStatus::RollingBack
    }

    /// Whether an apply with these options continues it. A way back is finished first, whatever the
    /// configuration is.
    pub fn is_continued_by(&self, options: &Options, refresh_images: bool) -> bool {
        let is_same = self.plan.target == options.target && !refresh_images;
        options.mode == Mode::Normal && (is_same || self.goes_back())
    }

    /// Whether an apply of this saved plan continues it.
    pub fn has_digest(&self, digest: &str) -> bool {
        self.stored.plan_digest.as_deref() == Some(digest)
    }
}

fn plan_of(store: &dyn Store, stored: &StoredRollout) -> Result<Option<Plan>, StateError> {
    let bytes = store.rollout_plan(stored.id)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// The rollout that was rolled back, if the plan repeats it: the same configuration with the same
/// images.
///
/// Fails if the state can't be read.
pub fn repeated(store: &dyn Store, plan: &Plan) -> Result<Option<StoredRollout>, StateError> {
    let is_back = |stored: &StoredRollout| stored.status == RolloutStatus::RolledBack;
    let Some(stored) = store.rollout()?.filter(is_back) else {
        return Ok(None);
    };
    let back = plan_of(store, &stored)?;
    let ids = |plan: &Plan| -> Vec<String> {
        plan.images.values().map(|image| image.id.clone()).collect()
    };
    let is_same = back.is_some_and(|back| back.target == plan.target && ids(&back) == ids(plan));
    Ok((is_same && plan.summary.is_applyable()).then_some(stored))
}

/// How an apply is recorded as a rollout.
#[derive(Debug)]
pub enum RolloutRecord {
    /// Not at all: nothing of it waits.
    None,
    /// Not at all, and this rollout is over.
    Supersedes(RolloutId),
    /// As a new rollout.
    New(Box<NewRollout>),
    /// As the continuation of this one.
    Known(RolloutId),
    /// As the continuation of its way back.
    GoingBack(RolloutId),
}

impl RolloutRecord {
    /// The record of an apply that continues nothing. Only a plan whose changes take turns, wait or
    /// may be rolled back gets one.
    ///
    /// Fails if the state can't be read.
    pub fn of_new(
        plan: &Plan,
        plan_digest: Option<&str>,
        store: &dyn Store,
    ) -> Result<Self, StateError> {
        let waits = |group: &PlannedGroup| {
            let rollout = group.rollout.as_ref();
            goes_back(group) || rollout.is_some_and(|rollout| rollout.checks_new)
        };
        let rolls = plan.changes.iter().any(is_limited) || plan.groups.iter().any(waits);
        if plan.mode == Mode::Normal && rolls {
            return Ok(Self::New(Box::new(NewRollout {
                plan_digest: plan_digest.map(str::to_owned),
                plan: serde_json::to_vec(plan).expect("its keys are strings"),
                status: RolloutStatus::Running,
            })));
        }
        if plan.mode == Mode::RefreshOnly {
            return Ok(Self::None);
        }
        let open = OpenRollout::of(store)?;
        Ok(open.map_or(Self::None, |open| Self::Supersedes(open.stored.id)))
    }

    /// The record of an apply that continues a rollout.
    pub fn of_known(id: RolloutId, goes_back: bool) -> Self {
        if goes_back {
            Self::GoingBack(id)
        } else {
            Self::Known(id)
        }
    }

    fn write(&self) -> Option<Write> {
        match self {
            Self::None => None,
            Self::Supersedes(id) => Some(set_status(*id, RolloutStatus::Superseded)),
            Self::New(rollout) => Some(Write::StartRollout(rollout.clone())),
            Self::Known(id) => Some(set_status(*id, RolloutStatus::Running)),
            Self::GoingBack(id) => Some(set_status(*id, RolloutStatus::RollingBack)),
        }
    }
}

fn set_status(id: RolloutId, status: RolloutStatus) -> Write {
    Write::SetRolloutStatus { id, status }
}

/// The entries of an apply that began.
#[derive(Debug)]
pub struct Begun {
    /// In the history.
    pub apply: Option<ApplyId>,
    /// In the rollout's record, if it has one.
    pub rollout: Option<RolloutId>,
    goes_back: bool,
}

/// Records that an apply of a plan begins.
///
/// Fails if the store fails.
pub fn begin(
    plan: &Plan,
    store: &mut dyn Store,
    now: Timestamp,
    entry: NewApply,
    record: &RolloutRecord,
) -> Result<Begun, StateError> {
    let mut writes = vec![Write::StartApply(entry)];
    writes.extend(record.write());
    writes.extend(plan.manifest.as_ref().map(|manifest| manifest.begun(now)));
    let written = store.commit(now.into(), writes)?;
    Ok(Begun {
        apply: written.apply,
        rollout: match record {
            RolloutRecord::None | RolloutRecord::Supersedes(_) => None,
            RolloutRecord::New(_) => written.rollout,
            RolloutRecord::Known(id) | RolloutRecord::GoingBack(id) => Some(*id),
        },
        goes_back: matches!(record, RolloutRecord::GoingBack(_)),
    })
}

impl Begun {
    /// Records that groups go back, if any do, and how: the plan of the way back.
    ///
    /// Fails if the store fails.
    pub fn back(
        &self,
        plan: &Plan,
        outcome: &Outcome,
        store: &mut dyn Store,
        now: Timestamp,
    ) -> Result<Option<Plan>, StateError> {
        let goes = !outcome.rollback.is_empty() && !outcome.stopped;
        let Some(id) = self.rollout.filter(|_| goes) else {
            return Ok(None);
        };
        let way = rollback::plan(plan, &outcome.rollback, &store.snapshot()?);
        let bytes = serde_json::to_vec(&way).expect("its keys are strings");
        let writes = vec![
            Write::SetRolloutPlan { id, plan: bytes },
            set_status(id, RolloutStatus::RollingBack),
        ];
        store.commit(now.into(), writes)?;
        Ok(Some(way))
    }

    /// Records how an apply ended, and what its groups are good with from now on; removes specs
    /// that nothing refers to.
    ///
    /// Fails if the store fails.
    pub fn finish(
        &self,
        plan: &Plan,
        applied: &Applied,
        store: &mut dyn Store,
        now: Timestamp,
    ) -> Result<(), StateError> {
        let Applied { outcome, back } = applied;
        let mut writes = vec![
            Write::FinishApply {
                id: self.apply,
                status: outcome.status(),
                summary_json: serde_json::to_string(&outcome.done).expect("its keys are strings"),
            },
            Write::CollectGarbage,
        ];
        let last = back.as_ref().map_or(outcome, |(_, came)| came);
        let status = status(last, self.goes_back || back.is_some());
        writes.extend(self.rollout.map(|id| set_status(id, status)));
        if !self.goes_back && plan.mode != Mode::RefreshOnly {
            writes.extend(good_groups(plan, outcome));
        }
        if outcome.is_complete() && !self.goes_back && back.is_none() {
            let manifest = plan.manifest.as_ref();
            writes.extend(manifest.and_then(|manifest| manifest.done(now)));
        }
        store.commit(now.into(), writes)?;
        Ok(())
    }
}

/// Where a rollout stands after an apply, or after its way back.
fn status(outcome: &Outcome, goes_back: bool) -> RolloutStatus {
    match (outcome.is_complete(), goes_back) {
        (true, true) => RolloutStatus::RolledBack,
        (true, false) => RolloutStatus::Done,
        (false, true) => RolloutStatus::RollingBack,
        (false, false) if outcome.stopped => RolloutStatus::Running,
        (false, false) if outcome.waits() => RolloutStatus::Waiting,
        (false, false) if outcome.failures > 0 => RolloutStatus::Failed,
        (false, false) => RolloutStatus::Running,
    }
}

/// What groups are good with from now on: those whose changes are all done. One that changed under
/// another policy has nothing to go back to.
fn good_groups(plan: &Plan, outcome: &Outcome) -> Vec<Write> {
    let group_of = |task: usize| plan.changes[task].address.group.as_str();
    let undone = outcome.undone.iter();
    let undone: HashSet<&str> = undone.map(|(task, _)| group_of(*task)).collect();
    let keeps = plan.groups.iter().filter(|group| goes_back(group));
    let keeps: HashSet<&str> = keeps.map(|group| group.name.as_str()).collect();
    let changed: HashSet<&str> = (0..plan.changes.len()).map(group_of).collect();
    let is_lost = |name: &&&str| {
        !undone.contains(**name) && (plan.mode == Mode::Destroy || !keeps.contains(**name))
    };
    let lost = changed.iter().filter(is_lost);
    let removes = lost.map(|name| Write::RemoveLastGood {
        group: (*name).to_owned(),
    });
    let puts = last_good(plan).filter(|(name, _)| !undone.contains(name));
    removes.chain(puts.map(|(_, write)| write)).collect()
}

/// Whether the policy of a group is to go back after a failure.
fn goes_back(group: &PlannedGroup) -> bool {
    let rollout = group.rollout.as_ref();
    rollout.is_some_and(|rollout| rollout.on_failure == OnFailure::Rollback)
}

/// What each group of a plan is good with once its changes are done.
pub fn last_good(plan: &Plan) -> impl Iterator<Item = (&str, Write)> {
    plan.last_good.iter().map(|(group, good)| {
        let write = Write::PutLastGood {
            group: group.clone(),
            body: good.text.clone().into_bytes(),
        };
        (group.as_str(), write)
    })
}
