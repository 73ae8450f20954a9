//! Records the results of calls: the second half of the engine.
//!
//! In: a task and the cloud's answer. Out: results for the store. Must not: start calls.

use std::sync::Arc;

use nstance_state::{HistoryIds, HistoryItem, Outcome as Ending};

use super::engine::{ADDRESS_POLLS, Engine, Phase};
use super::journal::{Settlement, StoreOperation};
use super::protocol::{Call, Command, Progress, Step, TaskEnd, TaskId, action_name};
use super::requests;
use crate::clock::Timestamp;
use crate::pipeline::late;
use crate::plan::change::{Action, Change, InstanceView, Reason};
use crate::provider::{LifecycleState, Observation};

impl Engine<'_> {
    /// Handles a created or found instance: polls for addresses if its files need them, then
    /// records it.
    pub(super) fn created(
        &mut self,
        id: TaskId,
        observation: Observation,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        let change = &self.plan.changes[id];
        self.tasks[id].provider_id = Some(observation.provider_id.clone());
        self.tasks[id].is_running = observation.state == LifecycleState::Running;
        let is_read = change.deferred.is_some() || late::awaits(self.plan, &change.address.group);
        let waits = is_read && observation.ip4.is_none();
        if waits && self.tasks[id].polls < ADDRESS_POLLS && !self.stopping {
            self.tasks[id].polls += 1;
            self.tasks[id].phase = Phase::Describing;
            self.calling += 1;
            let provider_id = observation.provider_id.clone();
            self.tasks[id].created = Some(observation);
            commands.push(Command::Call(id, Call::Describe { provider_id }));
            return;
        }
        let planned = &*change.creation(self.tasks[id].place);
        let deferred = change.deferred.as_deref();
        let side = match requests::complete(&change.address, planned, deferred, &observation) {
            Ok(side) => side,
            Err(error) => {
                let failed = Progress::Failed {
                    task: id,
                    step: Step::Create,
                    error,
                };
                commands.push(Command::Tell(failed));
                planned.clone()
            }
        };
        let mut settlement = Settlement {
            specs: vec![(side.digest, side.spec.to_bytes())],
            puts: vec![requests::record(
                &change.address,
                &side,
                Some((&observation, &self.plan.tags(&change.address, planned))),
                now,
            )],
            history: Some(history(
                change,
                Some(&side),
                Some(&observation.provider_id),
                "done",
            )),
            ..Settlement::default()
        };
        if let Some(before) = change.before.as_deref() {
            match change.action {
                Action::CreateThenDelete => {
                    settlement
                        .specs
                        .push((before.digest, before.spec.to_bytes()));
                    settlement.deposes = vec![requests::record(&change.address, before, None, now)];
                }
                Action::Create => settlement.removes = vec![before.instance_id.to_string()],
                _ => {}
            }
        }
        self.settle(id, Ending::Done, settlement, commands);
        commands.push(Command::Export(
            change.address.clone(),
            Arc::clone(&side.spec),
        ));
    }

    pub(super) fn settle_update(
        &mut self,
        id: TaskId,
        observation: Option<&Observation>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        let change = &self.plan.changes[id];
        let side = change.after.as_deref().expect("an update has an after");
        self.tasks[id].provider_id.clone_from(&side.provider_id);
        self.tasks[id].is_running =
            observation.is_some_and(|seen| seen.state == LifecycleState::Running);
        let tags = self.plan.tags(&change.address, side);
        let settlement = Settlement {
            specs: vec![(side.digest, side.spec.to_bytes())],
            puts: vec![requests::record(
                &change.address,
                side,
                observation.zip(Some(&tags)),
                now,
            )],
            history: Some(history(
                change,
                Some(side),
                side.provider_id.as_deref(),
                "done",
            )),
            ..Settlement::default()
        };
        self.settle(id, Ending::Done, settlement, commands);
        commands.push(Command::Export(
            change.address.clone(),
            Arc::clone(&side.spec),
        ));
        for reason in &change.reasons {
            if let Reason::Moved { from } = reason
                && let Ok(former) = from.parse()
            {
                commands.push(Command::Unexport(former));
            }
        }
    }

    /// Stores a change of the record only.
    pub(super) fn record(&mut self, id: TaskId, now: Timestamp, commands: &mut Vec<Command>) {
        let settlement = settle_record(&self.plan.changes[id], now);
        self.tasks[id].phase = Phase::Settling;
        commands.push(Command::Store(
            id,
            StoreOperation::Settle(Box::new(settlement)),
        ));
    }

    /// Closes the intent of a step that changes no record: registering, deregistering, draining.
    pub(super) fn settle_step(&mut self, id: TaskId, now: Timestamp, commands: &mut Vec<Command>) {
        if self.tasks[id].intent.is_none() {
            self.end_step(id, now, commands);
            return;
        }
        self.settle(id, Ending::Done, Settlement::default(), commands);
    }

    pub(super) fn settle_delete(
        &mut self,
        id: TaskId,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        self.count_deleted(id);
        let change = &self.plan.changes[id];
        let side = change.before.as_deref().expect("a deletion has a before");
        let restored = change.after.as_deref();
        let restored = restored.filter(|_| change.action == Action::Delete);
        let settlement = Settlement {
            specs: restored
                .map(|view| (view.digest, view.spec.to_bytes()))
                .into_iter()
                .collect(),
            puts: restored
                .map(|view| requests::record(&change.address, view, None, now))
                .into_iter()
                .collect(),
            removes: vec![side.instance_id.to_string()],
            history: (change.action == Action::Delete).then(|| history(change, None, None, "done")),
            ..Settlement::default()
        };
        self.settle(id, Ending::Done, settlement, commands);
        if let Some(restored) = restored {
            let spec = Arc::clone(&restored.spec);
            commands.push(Command::Export(change.address.clone(), spec));
        } else if change.action == Action::Delete && change.deposed.is_none() {
            commands.push(Command::Unexport(change.address.clone()));
        }
    }

    pub(super) fn settle(
        &mut self,
        id: TaskId,
        ending: Ending,
        mut settlement: Settlement,
        commands: &mut Vec<Command>,
    ) {
        settlement.closes = self.tasks[id].intent.map(|intent| (intent, ending));
        self.tasks[id].phase = Phase::Settling;
        commands.push(Command::Store(
            id,
            StoreOperation::Settle(Box::new(settlement)),
        ));
    }

    pub(super) fn settle_failure(
        &mut self,
        id: TaskId,
        error: String,
        commands: &mut Vec<Command>,
    ) {
        let change = &self.plan.changes[id];
        let settlement = Settlement {
            history: Some(history(change, None, None, &error)),
            ..Settlement::default()
        };
        let end = if self.tasks[id].touched {
            TaskEnd::Unfinished(error.clone())
        } else {
            TaskEnd::Failed(error.clone())
        };
        self.tasks[id].pending_end = Some(end);
        self.settle(id, Ending::Failed { message: error }, settlement, commands);
    }

    /// Closes a stored intent whose call was never sent.
    pub(super) fn abandon(&mut self, id: TaskId, commands: &mut Vec<Command>) {
        let end = if self.tasks[id].touched {
            TaskEnd::Unfinished("stopped half-way".to_owned())
        } else {
            TaskEnd::NotTried
        };
        if self.tasks[id].intent.is_none() {
            self.end(id, end, commands);
            return;
        }
        self.tasks[id].pending_end = Some(end);
        self.settle(id, Ending::Abandoned, Settlement::default(), commands);
    }
}

/// The store operation for a change of the record only.
fn settle_record(change: &Change, now: Timestamp) -> Settlement {
    let mut settlement = Settlement::default();
    let mut provider_id = None;
    let gone = match (change.before.as_deref(), change.after.as_deref()) {
        (before, Some(after)) if change.action == Action::Adopt => {
            settlement.specs = vec![(after.digest, after.spec.to_bytes())];
            settlement.puts = vec![requests::record(&change.address, after, None, now)];
            provider_id = after.provider_id.as_deref();
            before.filter(|before| before.instance_id != after.instance_id)
        }
        (before, _) => before,
    };
    settlement.removes = gone
        .map(|gone| gone.instance_id.to_string())
        .into_iter()
        .collect();
    settlement.history = Some(history(
        change,
        change.after.as_deref(),
        provider_id,
        "done",
    ));
    settlement
}

fn history(
    change: &Change,
    after: Option<&InstanceView>,
    provider_id: Option<&str>,
    result: &str,
) -> HistoryItem {
    let ids = |side: Option<&InstanceView>, provider_id: Option<String>| HistoryIds {
        instance_id: side.map(|side| side.instance_id.to_string()),
        provider_id,
    };
    let before = change.before.as_deref();
    HistoryItem {
        address: change.address.to_string(),
        action: action_name(change.action).to_owned(),
        before: ids(before, before.and_then(|before| before.provider_id.clone())),
        after: ids(after, provider_id.map(str::to_owned)),
        result: result.to_owned(),
        detail_json: "{}".to_owned(),
        at: nstance_state::Timestamp(0),
    }
}
