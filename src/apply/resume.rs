//! Continues a rollout that an earlier apply left unfinished.
//!
//! In: its plan and record, a snapshot of the state, and which instances exist. Out: how far each
//! change came. Must not: change the plan; if the state went another way, there is nothing to
//! continue.
//!
//! The records of instances say what was created, updated and deleted, since each of these is
//! recorded in the transaction that closes its intent. What changes no record (registering,
//! checking, draining) is done again.

use std::collections::HashMap;

use nstance_state::{Record, Rollout as StoredRollout, RolloutStatus, Snapshot};

use super::engine::Starts;
use super::gates::GroupStart;
use super::protocol::{GroupStage, Step};
use super::steps::Start;
use crate::plan::change::{Action, Change, Plan, Summary};

/// Whether a rollout can be continued.
pub fn is_open(status: RolloutStatus) -> bool {
    matches!(
        status,
        RolloutStatus::Running
            | RolloutStatus::Waiting
            | RolloutStatus::Failed
            | RolloutStatus::RollingBack
    )
}

/// How far an earlier apply of `plan` came. `exists` says whether an instance is still there.
///
/// Fails with the reason if the state or the cloud no longer fits the plan.
pub fn starts(
    plan: &Plan,
    stored: &StoredRollout,
    snapshot: &Snapshot,
    exists: impl Fn(&str) -> bool,
) -> Result<Starts, String> {
    let records: HashMap<&str, &Record> = snapshot
        .records
        .iter()
        .map(|record| (record.instance_id.as_str(), record))
        .collect();
    let available: HashMap<&str, &str> = stored
        .slots
        .iter()
        .map(|slot| (slot.instance_id.as_str(), slot.stage.as_str()))
        .collect();
    let look = Look {
        records,
        stages: available,
        exists: &exists,
    };
    let tasks: Result<Vec<Start>, String> = plan
        .changes
        .iter()
        .map(|change| look.start(change))
        .collect();
    let tasks = tasks?;
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
    stages: HashMap<&'a str, &'a str>,
    exists: &'a dyn Fn(&str) -> bool,
}

impl Look<'_> {
    fn start(&self, change: &Change) -> Result<Start, String> {
        let address = &change.address;
        let before = change.before.as_deref();
        let after = change.after.as_deref();
        let old = before.and_then(|view| self.records.get(&*view.instance_id).copied());
        let is_as_planned = match (before.and_then(|view| view.version), old) {
            (Some(version), Some(record)) => record.version == version,
            _ => true,
        };
        let moved = || Err(format!("{address} was changed meanwhile"));
        let done = |record: Option<&Record>| Start::Done {
            provider_id: record.map(|record| record.provider_id.clone()),
        };
        match change.action {
            Action::NoOp => Ok(done(None)),
            Action::Delete => Ok(match old {
                None => done(None),
                Some(_) => Start::Todo,
            }),
            Action::Forget => Ok(if old.is_some() {
                Start::Todo
            } else {
                done(None)
            }),
            Action::Adopt => {
                let new = after.and_then(|view| self.records.get(&*view.instance_id).copied());
                let is_done =
                    new.is_some_and(|record| after.is_some_and(|view| record.spec == view.digest));
                Ok(if is_done { done(new) } else { Start::Todo })
            }
            Action::Update => {
                let Some(record) = old else { return moved() };
                let is_done = after.is_some_and(|view| record.spec == view.digest);
                match (is_done, is_as_planned) {
                    (_, true) => Ok(Start::Todo),
                    (true, false) => self.arrived(change, record, Step::Update),
                    (false, false) => moved(),
                }
            }
            Action::Create | Action::CreateThenDelete | Action::DeleteThenCreate => {
                let new = after.and_then(|view| self.records.get(&*view.instance_id).copied());
                let replaces = change.action != Action::Create;
                match (new, old) {
                    (Some(record), old) if old.is_none() || !replaces => {
                        self.arrived(change, record, Step::Create)
                    }
                    (Some(record), _) => self.after(record, Step::Create),
                    (None, Some(record)) if replaces && record.deposed => moved(),
                    (None, Some(_)) if is_as_planned => Ok(Start::Todo),
                    (None, Some(_)) => moved(),
                    (None, None) if change.action == Action::DeleteThenCreate => Ok(Start::After {
                        step: Step::Delete,
                        provider_id: None,
                    }),
                    // Its predecessor went without it.
                    (None, None) if replaces => moved(),
                    (None, None) if before.is_some() => moved(),
                    (None, None) => Ok(Start::Todo),
                }
            }
        }
    }

    /// A change whose instance is there and has no predecessor left: done if it was available.
    fn arrived(&self, change: &Change, record: &Record, step: Step) -> Result<Start, String> {
        let stage = self.stages.get(record.instance_id.as_str()).copied();
        let is_done = change.action == Action::CreateThenDelete
            || matches!(stage, None | Some("done" | "available"));
        if is_done {
            return Ok(Start::Done {
                provider_id: Some(record.provider_id.clone()),
            });
        }
        self.after(record, step)
    }

    fn after(&self, record: &Record, step: Step) -> Result<Start, String> {
        if !(self.exists)(&record.provider_id) {
            return Err(format!(
                "{} ({}) is gone",
                record.address(),
                record.provider_id
            ));
        }
        Ok(Start::After {
            step,
            provider_id: Some(record.provider_id.clone()),
        })
    }
}
