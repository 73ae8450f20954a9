//! Waits until an instance runs.
//!
//! In: a task, and what the cloud reports of its instance. Out: further polls, or the end of the
//! step. Must not: let a predecessor be deleted while its successor doesn't run.

use std::cmp::Reverse;
use std::time::Duration;

use super::engine::{Engine, Phase};
use super::protocol::{ADDRESS_WAIT, Command, LONGEST_POLL, TaskEnd, TaskId};
use crate::clock::Timestamp;
use crate::fault_injection::InjectedFault;
use crate::plan::change::{Action, Change};
use crate::provider::{CloudError, LifecycleState, Observation};

impl Engine<'_> {
    /// Begins to wait, unless the instance runs already or is about to be deleted itself.
    pub(super) fn begin_waiting(
        &mut self,
        id: TaskId,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        let is_off = self.limits.injected_fault == InjectedFault::NoSuccessor;
        if is_off || self.tasks[id].is_running || self.awaited(id).is_none() {
            self.end_step(id, now, commands);
            return;
        }
        self.awaiting += 1;
        self.tasks[id].deadline = now.after(self.limits.wait_timeout);
        self.tasks[id].polls = 0;
        if self.plan.changes[id].action == Action::Delete {
            // The successor has had time to start.
            self.tasks[id].phase = Phase::Ready;
            self.ready.push_back(id);
        } else {
            self.poll_later(id, now);
        }
    }

    /// The provider id of the instance that a task waits for.
    pub(super) fn awaited(&self, id: TaskId) -> Option<String> {
        let change = &self.plan.changes[id];
        if change.action != Action::Delete {
            return self.tasks[id].provider_id.clone();
        }
        // The successor of a deposed instance has the slot, or gets it by an earlier task.
        let is_own = |other: &&Change| other.address == change.address && other.deposed.is_none();
        let before = &self.plan.changes[..id];
        match before.iter().rposition(|other| is_own(&other)) {
            Some(own) => match before[own].action {
                Action::Delete | Action::Forget => None,
                Action::Update | Action::Adopt | Action::NoOp => change.successor.clone(),
                Action::Create | Action::CreateThenDelete | Action::DeleteThenCreate => {
                    self.tasks[own].provider_id.clone()
                }
            },
            None => change.successor.clone(),
        }
    }

    fn poll_later(&mut self, id: TaskId, now: Timestamp) {
        let task = &mut self.tasks[id];
        let wait = ADDRESS_WAIT.saturating_mul(1 << task.polls.min(8));
        task.polls += 1;
        task.phase = Phase::BackingOff;
        let until = now.after(wait.min(LONGEST_POLL)).min(task.deadline);
        self.timers.push(Reverse((until, id)));
    }

    /// Handles an observation of the instance.
    pub(super) fn observed(
        &mut self,
        id: TaskId,
        result: Result<Option<Observation>, CloudError>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        let instance = self.awaited(id).unwrap_or_default();
        let state = match result {
            Ok(Some(seen)) if seen.state == LifecycleState::Running => {
                self.end_wait();
                self.end_step(id, now, commands);
                return;
            }
            Ok(Some(seen)) if !seen.state.is_live() => {
                let because = seen.ended_because.map(|why| format!(": {why}"));
                let because = because.unwrap_or_default();
                let state = seen.state.as_str();
                self.give_up(id, &format!("`{instance}` is {state}{because}"), commands);
                return;
            }
            Ok(Some(seen)) => seen.state.as_str().to_owned(),
            // Not visible yet.
            Ok(None) => "not listed".to_owned(),
            Err(error) if error.kind.is_retryable() => error.to_string(),
            Err(error) => {
                self.give_up(id, &error.to_string(), commands);
                return;
            }
        };
        if self.stopping {
            self.end_wait();
            self.stop_between_steps(id, commands);
        } else if now >= self.tasks[id].deadline {
            let waited = short(self.limits.wait_timeout);
            let error = format!("`{instance}` didn't run within {waited}: {state}");
            self.give_up(id, &error, commands);
        } else {
            self.poll_later(id, now);
        }
    }

    fn give_up(&mut self, id: TaskId, error: &str, commands: &mut Vec<Command>) {
        self.end_wait();
        let stays = match self.plan.changes[id].action {
            Action::CreateThenDelete | Action::Delete => "; its predecessor stays",
            _ => "",
        };
        let error = format!("{error}{stays}");
        let end = if self.tasks[id].touched {
            TaskEnd::Unfinished(error)
        } else {
            TaskEnd::Failed(error)
        };
        self.end(id, end, commands);
    }

    pub(super) fn end_wait(&mut self) {
        self.awaiting -= 1;
    }
}

/// `90s`, `10m`
fn short(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds >= 60 && seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}
