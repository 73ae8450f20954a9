//! Handles failed calls: retry, another subnet, another token, or failure.
//!
//! In: a task and the cloud's error. Out: commands. Must not: assume that a call had no effect if
//! it may have had one.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use nstance_state::Outcome as Ending;

use super::engine::{Engine, Phase};
use super::journal::Settlement;
use super::protocol::{Call, Command, Progress, Step, TaskEnd, TaskId};
use crate::clock::Timestamp;
use crate::plan::change::InstanceView;
use crate::provider::{CloudError, CloudErrorKind};

/// How many tokens are tried for one instance.
const ATTEMPTS: u32 = 3;

impl Engine<'_> {
    pub(super) fn call_failed(
        &mut self,
        id: TaskId,
        step: Option<Step>,
        error: &CloudError,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        let task = &mut self.tasks[id];
        task.ambiguous |= error.kind == CloudErrorKind::Ambiguous;
        match (step, error.kind) {
            (Some(Step::Delete), CloudErrorKind::NotFound) => self.settle_delete(id, now, commands),
            (Some(Step::Create), CloudErrorKind::TokenMismatch) => {
                let change = &self.plan.changes[id];
                let side = change.after.as_deref().expect("a create has an after");
                self.tasks[id].phase = Phase::Finding;
                self.calling += 1;
                let instance_id = side.instance_id.to_string();
                commands.push(Command::Call(id, Call::Find { instance_id }));
            }
            (Some(Step::Create), CloudErrorKind::Capacity) if self.has_another_place(id) => {
                self.next_place(id, error, commands);
            }
            (_, kind)
                if kind.is_retryable()
                    && self.tasks[id].tries < self.limits.tries
                    && !self.stopping =>
            {
                let wait = self.backoff(self.tasks[id].tries);
                self.tasks[id].phase = Phase::BackingOff;
                self.timers.push(Reverse((now.after(wait), id)));
                let error = error.to_string();
                commands.push(Command::Tell(Progress::Retrying {
                    task: id,
                    error,
                    wait,
                }));
            }
            _ if self.tasks[id].ambiguous => self.leave_open(id, error.to_string(), commands),
            _ => self.settle_failure(id, error.to_string(), commands),
        }
    }

    /// The exponential wait: half fixed, half random, so that retries spread out.
    fn backoff(&mut self, tries: u32) -> Duration {
        // xorshift64*: good enough for jitter.
        self.entropy ^= self.entropy >> 12;
        self.entropy ^= self.entropy << 25;
        self.entropy ^= self.entropy >> 27;
        let random = self.entropy.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        let full = self
            .limits
            .first_wait
            .saturating_mul(1 << tries.saturating_sub(1).min(16))
            .min(self.limits.longest_wait);
        let half = full / 2;
        half + Duration::from_millis((half.as_millis() as u64 * random) >> 32)
    }

    /// Ends a task with an unknown result; its intent stays open.
    pub(super) fn leave_open(&mut self, id: TaskId, error: String, commands: &mut Vec<Command>) {
        self.end(id, TaskEnd::Unsettled(error), commands);
    }

    /// Whether another subnet can be tried after a capacity error: not if an earlier try may have
    /// created the instance.
    fn has_another_place(&self, id: TaskId) -> bool {
        let task = &self.tasks[id];
        !task.ambiguous && !self.stopping && task.place < self.plan.changes[id].alternatives.len()
    }

    /// Tries the next subnet after a capacity error. This is a different request, so it gets its
    /// own token and intent.
    fn next_place(&mut self, id: TaskId, error: &CloudError, commands: &mut Vec<Command>) {
        let change = &self.plan.changes[id];
        let task = &mut self.tasks[id];
        if let Some(kind) = kind_of_capacity(&change.creation(task.place)) {
            self.exhausted.insert(kind);
        }
        let subnet = Arc::clone(&change.alternatives[task.place]);
        task.place += 1;
        task.attempt += 1;
        task.again = true;
        let error = error.to_string();
        commands.push(Command::Tell(Progress::Elsewhere {
            task: id,
            error: error.clone(),
            subnet,
        }));
        let ending = Ending::Failed { message: error };
        self.settle(id, ending, Settlement::default(), commands);
    }

    /// The first subnet for a new instance: skips those where another instance of this type just
    /// got a capacity error.
    pub(super) fn first_place(&self, id: TaskId) -> usize {
        let change = &self.plan.changes[id];
        if self.exhausted.is_empty() {
            return 0;
        }
        let has_room = |place: &usize| {
            kind_of_capacity(&change.creation(*place))
                .is_none_or(|kind| !self.exhausted.contains(&kind))
        };
        (0..=change.alternatives.len()).find(has_room).unwrap_or(0)
    }

    /// Tries again with the next token, since this one was used.
    pub(super) fn next_attempt(&mut self, id: TaskId, commands: &mut Vec<Command>) {
        if self.tasks[id].mismatches + 1 >= ATTEMPTS {
            let error = "its token is used up and no instance carries its id".to_owned();
            self.leave_open(id, error, commands);
            return;
        }
        self.tasks[id].attempt += 1;
        self.tasks[id].mismatches += 1;
        self.tasks[id].again = true;
        self.settle(id, Ending::Abandoned, Settlement::default(), commands);
    }
}

/// What capacity depends on: the instance type and the subnet.
fn kind_of_capacity(side: &InstanceView) -> Option<(Arc<str>, Arc<str>)> {
    let subnet = side.subnet.as_ref()?;
    Some((
        Arc::clone(&side.spec.head.instance_type),
        Arc::clone(subnet),
    ))
}
