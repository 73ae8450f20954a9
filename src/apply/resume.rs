//! Continues a rollout that an earlier apply left unfinished.
//!
//! In: its plan and record, a snapshot of the state, and what the cloud shows. Out: how far each
//! change came. Must not: change the plan; if the state went another way, there is nothing to
//! continue.
//!
//! The records of instances say what was created, updated and deleted, since each of these is
//! recorded in the transaction that closes its intent. What changes no record (registering,
//! checking, draining) is done again.

use std::collections::{HashMap, HashSet};

use nstance_state::{Record, Rollout as StoredRollout, RolloutSlot, Snapshot};

use super::engine::Starts;
use super::gates::GroupStart;
use super::protocol::{GroupStage, Step};
use super::steps::Start;
use crate::address::Address;
use crate::plan::change::{Action, Change, InstanceView, Plan, Summary};
use crate::plan::drift::STATE;
use crate::plan::file::stale_changes;
use crate::plan::rollout::restarts;
use crate::provider::LifecycleState;
use crate::provider::rules::Effect;
use crate::refresh::Observed;

/// How far an earlier apply of `plan` came.
///
/// Fails with the reason if the state or the cloud no longer fits the plan.
pub fn starts(
    plan: &Plan,
    stored: &StoredRollout,
    snapshot: &Snapshot,
    observed: &Observed,
) -> Result<Starts, String> {
    let stalled = stored.groups.iter().find(|group| {
        let stage = GroupStage::parse(&group.stage);
        stage.is_some_and(|(stage, _)| stage == GroupStage::Stalled)
    });
    if let Some(group) = stalled {
        return Err(format!(
            "{} waited in vain for {}",
            group.group, group.detail
        ));
    }
    let records: HashMap<&str, &Record> = snapshot
        .records
        .iter()
        .map(|record| (record.instance_id.as_str(), record))
        .collect();
    let slots: HashMap<&str, &RolloutSlot> = stored
        .slots
        .iter()
        .map(|slot| (slot.instance_id.as_str(), slot))
        .collect();
    let look = Look { records, slots };
    let starts = plan.changes.iter().map(|change| look.start(change));
    let tasks: Vec<Start> = starts.collect();
    let changes = plan.changes.iter().zip(&tasks);
    let todo = changes.filter(|(_, start)| **start == Start::Todo);
    let moved = stale_changes(todo.map(|(change, _)| change), snapshot);
    if let Some(moved) = moved.into_iter().next() {
        return Err(moved);
    }
    check_instances(plan, &tasks, observed)?;
    let groups = plan
        .groups
        .iter()
        .map(|group| {
            let own = stored.groups.iter().find(|own| own.group == group.name);
            let stage = own.and_then(|own| GroupStage::parse(&own.stage));
            let (stage, promoted) = stage.unzip();
            let since = own.map(|own| own.since.into());
            GroupStart {
                paused_since: since.filter(|_| stage == Some(GroupStage::CanaryPause)),
                promoted: promoted == Some(true) || is_past_canaries(plan, &group.name, &tasks),
                paused: stage == Some(GroupStage::Paused),
            }
        })
        .collect();
    Ok(Starts { tasks, groups })
}

/// Fails if an instance isn't as the rollout counts on it.
fn check_instances(plan: &Plan, tasks: &[Start], observed: &Observed) -> Result<(), String> {
    let is_open = |(_, start): &(&Change, &Start)| !matches!(start, Start::Done { .. });
    let tasks = || plan.changes.iter().zip(tasks);
    let open: HashSet<&str> = tasks()
        .filter(is_open)
        .map(|(change, _)| change.address.group.as_str())
        .collect();
    let is_missing = |id: &str| match observed.state(id) {
        None => Some("gone"),
        Some(LifecycleState::Stopped | LifecycleState::Stopping) => Some("stopped"),
        Some(_) => None,
    };
    let told = |address: &Address, id: &str, what| Err(format!("{address} ({id}) is {what}"));
    for (change, start) in
        tasks().filter(|(change, _)| open.contains(change.address.group.as_str()))
    {
        let address = &change.address;
        let (Start::After { provider_id, .. } | Start::Done { provider_id }) = start else {
            continue;
        };
        if let Some(id) = provider_id
            && let Some(what) = is_missing(id)
        {
            return told(address, id, what);
        }
    }
    for (change, start) in tasks().filter(is_open) {
        let before = change.before.as_deref();
        let (action, address) = (change.action, &change.address);
        let Some(id) = before.and_then(|view| view.provider_id.as_deref()) else {
            continue;
        };
        // What it replaces or updates is gone already, or was never there.
        let counts = match start {
            Start::After { .. } => action == Action::CreateThenDelete,
            _ => !matches!(action, Action::Create | Action::Forget),
        };
        let may_be_stopped = action == Action::Delete || action.is_replace() || restarts(change);
        match observed.state(id) {
            Some(LifecycleState::Running) if *start == Start::Todo && counts_on_stopped(change) => {
                return told(address, id, "running again");
            }
            state if counts && (state.is_none() || !may_be_stopped) => {
                if let Some(what) = is_missing(id) {
                    return told(address, id, what);
                }
            }
            _ => {}
        }
    }
    for group in plan
        .groups
        .iter()
        .filter(|group| open.contains(&*group.name))
    {
        let members = group.rollout.iter().flat_map(|rollout| &rollout.members);
        for member in members {
            if let Some(what) = is_missing(&member.provider_id) {
                return told(&member.address, &member.provider_id, what);
            }
        }
    }
    Ok(())
}

/// Whether a change restarts an instance that was stopped, and so takes nothing out of service first.
fn counts_on_stopped(change: &Change) -> bool {
    let mut attributes = change.attributes.iter();
    let mut effects = change.attributes.iter().map(|attribute| attribute.effect);
    change.action == Action::Update
        && attributes.any(|attribute| attribute.path == STATE)
        && effects.any(|effect| effect == Effect::Restart)
}

/// Whether a change after the canaries began.
fn is_past_canaries(plan: &Plan, group: &str, tasks: &[Start]) -> bool {
    let planned = plan.groups.iter().find(|planned| planned.name == group);
    let Some(rollout) = planned.and_then(|planned| planned.rollout.as_ref()) else {
        return false;
    };
    let changes = plan.changes.iter().enumerate();
    let own = changes.filter(|(_, change)| change.address.group.as_str() == group);
    let stages = rollout.stages(own);
    let later = stages.iter().filter(|stage| !stage.is_canary);
    let mut later = later.flat_map(|stage| &stage.changes);
    later.any(|id| tasks[*id] != Start::Todo)
}

/// The changes that aren't done, with the counts of these.
pub fn remaining(plan: &Plan, starts: &Starts) -> Plan {
    let is_open = |index: usize| !matches!(starts.tasks.get(index), Some(Start::Done { .. }));
    let changes = plan.changes.iter().enumerate();
    let changes: Vec<Change> = changes
        .filter(|(index, _)| is_open(*index))
        .map(|(_, change)| change.clone())
        .collect();
    let summary = Summary::of(&changes, &plan.held_back, plan.summary.no_op);
    Plan {
        changes,
        summary,
        ..plan.clone()
    }
}

struct Look<'a> {
    records: HashMap<&'a str, &'a Record>,
    /// The last stage of each instance.
    slots: HashMap<&'a str, &'a RolloutSlot>,
}

impl Look<'_> {
    fn start(&self, change: &Change) -> Start {
        let record = |view: Option<&InstanceView>| self.records.get(&*view?.instance_id).copied();
        let old = record(change.before.as_deref());
        let new = record(change.after.as_deref());
        let done = |record: Option<&Record>| Start::Done {
            provider_id: record.map(|record| record.provider_id.clone()),
        };
        let wanted = change.after.as_deref().map(|view| view.digest);
        let is_as_wanted = |record: &Record| Some(record.spec) == wanted;
        match change.action {
            Action::NoOp => done(None),
            Action::Delete | Action::Forget if old.is_none() => done(None),
            Action::Adopt if new.is_some_and(is_as_wanted) => done(new),
            Action::Delete | Action::Forget | Action::Adopt => Start::Todo,
            Action::Update => {
                let planned = change.before.as_deref().and_then(|view| view.version);
                let Some(record) = old.filter(|record| is_as_wanted(record)) else {
                    return Start::Todo;
                };
                if Some(record.version) != planned {
                    self.arrived(change, record, Step::Update)
                } else if self.stage(record) == Some("done") {
                    // It repaired drift, so its record stayed as it was.
                    done(old)
                } else {
                    Start::Todo
                }
            }
            Action::Create | Action::CreateThenDelete | Action::DeleteThenCreate => {
                match (new, old) {
                    (Some(record), Some(_)) if change.action.is_replace() => {
                        self.after(record, Step::Create)
                    }
                    (Some(record), _) => self.arrived(change, record, Step::Create),
                    (None, None) if change.action == Action::DeleteThenCreate => Start::After {
                        step: Step::Delete,
                        provider_id: None,
                        wait: None,
                    },
                    (None, _) => Start::Todo,
                }
            }
        }
    }

    fn stage(&self, record: &Record) -> Option<&str> {
        let slot = self.slots.get(record.instance_id.as_str())?;
        Some(&slot.stage)
    }

    fn after(&self, record: &Record, step: Step) -> Start {
        let slot = self.slots.get(record.instance_id.as_str());
        let wait = slot.and_then(|slot| {
            let step = Step::parse_wait(&slot.stage, &slot.detail)?;
            Some((step, slot.since.into()))
        });
        Start::After {
            step,
            provider_id: Some(record.provider_id.clone()),
            wait,
        }
    }

    /// A change whose instance is there and has no predecessor left: done if it was available.
    fn arrived(&self, change: &Change, record: &Record, step: Step) -> Start {
        let is_done = change.action == Action::CreateThenDelete
            || matches!(self.stage(record), None | Some("done" | "available"));
        if is_done {
            Start::Done {
                provider_id: Some(record.provider_id.clone()),
            }
        } else {
            self.after(record, step)
        }
    }
}
