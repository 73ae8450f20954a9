//! Waits until an instance is available, and until its connections have ended.
//!
//! In: a task, and what the cloud, a check or a load balancer says of its instance. Out: further
//! looks, or the end of the step. Must not: let a predecessor be deleted while its successor isn't
//! available.

use std::cmp::Reverse;
use std::time::Duration;

use super::engine::{Engine, Phase};
use super::protocol::{
    ADDRESS_WAIT, Answer, Call, Command, LONGEST_POLL, Look, LookRequest, Progress, Step, TaskEnd,
    TaskId,
};
use crate::clock::Timestamp;
use crate::config::duration::shown;
use crate::config::model::{Check, Health};
use crate::fault_injection::InjectedFault;
use crate::plan::change::{Action, Change};
use crate::provider::{CloudError, LifecycleState, TargetHealth, TargetState, TargetsRequest};

impl Engine<'_> {
    /// When an instance of a task's group is available.
    fn health(&self, id: TaskId) -> Health {
        let rollout = self.groups[self.tasks[id].group].rollout;
        rollout.map_or_else(Health::default, |rollout| rollout.health.clone())
    }

    /// Begins to wait until an instance is healthy, unless that is known already or it is about to
    /// be deleted itself.
    pub(super) fn begin_check(&mut self, id: TaskId, now: Timestamp, commands: &mut Vec<Command>) {
        let fault = self.limits.injected_fault;
        let health = self.health(id);
        let needs_more = health.check != Check::Running || !health.min_healthy_time.is_zero();
        let runs =
            self.tasks[id].is_running && (!needs_more || fault == InjectedFault::NoHealthGate);
        if fault == InjectedFault::NoSuccessor || runs || self.awaited(id).is_none() {
            self.end_step(id, now, commands);
            return;
        }
        self.tasks[id].healthy_since = None;
        self.tasks[id].failed_checks = 0;
        self.begin_wait(id, health.deadline.unwrap_or(self.limits.wait_timeout));
        if self.plan.changes[id].action == Action::Delete || self.tasks[id].is_running {
            // It has had time to start.
            self.look_now(id);
        } else {
            self.poll_later(id, now);
        }
    }

    /// Begins to wait for the verdict of load balancers.
    pub(super) fn begin_verdict(&mut self, id: TaskId) {
        let deadline = self.health(id).deadline.unwrap_or(self.limits.wait_timeout);
        self.begin_wait(id, deadline);
        self.look_now(id);
    }

    /// Begins to wait for the end of connections.
    pub(super) fn begin_connections(
        &mut self,
        id: TaskId,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        let timeout = Duration::from_millis(self.plan.changes[id].drain_timeout_ms);
        if timeout.is_zero() {
            self.end_step(id, now, commands);
            return;
        }
        self.begin_wait(id, timeout);
        self.look_now(id);
    }

    fn begin_wait(&mut self, id: TaskId, timeout: Duration) {
        self.awaiting += 1;
        let task = &mut self.tasks[id];
        let step = task.steps.front().copied();
        if let Some((wait, since)) = task.resumed_wait
            && Some(wait) == step
        {
            task.waits_since = since;
        }
        task.deadline = task.waits_since.after(timeout);
        task.waits_for = timeout;
        task.polls = 0;
        task.last_reason.clear();
    }

    fn look_now(&mut self, id: TaskId) {
        self.tasks[id].phase = Phase::Ready;
        self.ready.push_back(id);
    }

    /// The provider id of the instance that a task waits for.
    pub(super) fn awaited(&self, id: TaskId) -> Option<String> {
        let change = &self.plan.changes[id];
        match (change.action, change.after.as_deref()) {
            // The predecessor of a rolled back instance.
            (Action::Delete, Some(after)) => return after.provider_id.clone(),
            (Action::Delete, None) => {}
            (Action::Update, _) => return change.before.as_deref()?.provider_id.clone(),
            _ => return self.tasks[id].provider_id.clone(),
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

    /// The call of a step that waits.
    pub(super) fn call_of_wait(&self, id: TaskId, step: Step) -> Call {
        let change = &self.plan.changes[id];
        let after = change.after.as_deref();
        match step {
            Step::Check => {
                let health = self.health(id);
                let provider_id = self.awaited(id).unwrap_or_default();
                let instance_id = after.map(|view| view.instance_id.to_string());
                let instance_id = instance_id.unwrap_or_default();
                Call::Look(Box::new(LookRequest {
                    subject: self.subject(&change.address, &instance_id, provider_id),
                    check: health.check,
                    timeout: health.timeout,
                }))
            }
            Step::Verdict => Call::Targets(self.arrival(id)),
            _ => Call::Targets(self.departure(id)),
        }
    }

    /// The load balancers that an instance joins.
    pub(super) fn arrival(&self, id: TaskId) -> TargetsRequest {
        let targets = self.plan.changes[id].after.as_deref();
        let targets = targets.map(|view| view.spec.head.load_balancers.clone());
        TargetsRequest {
            provider_id: self.awaited(id).unwrap_or_default(),
            load_balancers: targets.unwrap_or_default(),
        }
    }

    /// The load balancers that an instance leaves.
    pub(super) fn departure(&self, id: TaskId) -> TargetsRequest {
        let before = self.plan.changes[id].before.as_deref();
        let before = before.expect("what departs was there before");
        TargetsRequest {
            provider_id: before.provider_id.clone().unwrap_or_default(),
            load_balancers: before.spec.head.load_balancers.clone(),
        }
    }

    fn poll_later(&mut self, id: TaskId, now: Timestamp) {
        let first = self.health(id).interval.min(ADDRESS_WAIT);
        let task = &mut self.tasks[id];
        let wait = first.saturating_mul(1 << task.polls.min(8));
        task.polls += 1;
        self.poll_after(id, wait.min(LONGEST_POLL), now);
    }

    fn poll_after(&mut self, id: TaskId, wait: Duration, now: Timestamp) {
        let task = &mut self.tasks[id];
        task.phase = Phase::BackingOff;
        let until = now
            .after(wait)
            .min(task.deadline.max(now.after(Duration::from_millis(1))));
        self.timers.push(Reverse((until, id)));
    }

    /// Handles the answer to a step that waits.
    pub(super) fn observed(
        &mut self,
        id: TaskId,
        step: Step,
        result: Result<Answer, CloudError>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        match (step, result) {
            (Step::Check, Ok(Answer::Looked(look))) => self.looked(id, look, now, commands),
            (Step::Verdict, Ok(Answer::Targets(targets))) => {
                self.judged(id, &targets, now, commands);
            }
            (Step::Connections, Ok(Answer::Targets(targets))) => {
                let is_draining = |target: &TargetHealth| target.state == TargetState::Draining;
                if targets.iter().any(is_draining) && now < self.tasks[id].deadline {
                    self.keep_waiting(id, "its connections are ending", now, commands);
                } else {
                    self.finish_wait(id, now, commands);
                }
            }
            // Remaining connections are cut, as the timeout intends.
            (Step::Connections, _) if now >= self.tasks[id].deadline => {
                self.finish_wait(id, now, commands);
            }
            (_, Ok(_)) => self.keep_waiting(id, "the cloud's answer is empty", now, commands),
            (_, Err(error)) if error.kind.is_retryable() => {
                self.keep_waiting(id, &error.to_string(), now, commands);
            }
            (_, Err(error)) => self.give_up(id, &error.to_string(), commands),
        }
    }

    fn looked(&mut self, id: TaskId, look: Look, now: Timestamp, commands: &mut Vec<Command>) {
        let instance = self.awaited(id).unwrap_or_default();
        let health = self.health(id);
        let Some(seen) = look.observation else {
            // Not visible yet.
            return self.keep_waiting(id, "not listed", now, commands);
        };
        if !seen.state.is_live() {
            let because = seen.ended_because.map(|why| format!(": {why}"));
            let because = because.unwrap_or_default();
            let state = seen.state.as_str();
            self.give_up(id, &format!("`{instance}` is {state}{because}"), commands);
            return;
        }
        if seen.state != LifecycleState::Running {
            self.tasks[id].healthy_since = None;
            return self.keep_waiting(id, seen.state.as_str(), now, commands);
        }
        self.tasks[id].is_running = true;
        let healthy = if self.limits.injected_fault == InjectedFault::NoHealthGate {
            Ok(())
        } else {
            look.healthy
        };
        match healthy {
            Ok(()) => {
                let task = &mut self.tasks[id];
                task.failed_checks = 0;
                let since = *task.healthy_since.get_or_insert(now);
                let rest = health.min_healthy_time.saturating_sub(now.since(since));
                if rest.is_zero() {
                    self.finish_wait(id, now, commands);
                } else if self.stopping {
                    self.keep_waiting(id, "", now, commands);
                } else {
                    // The deadline is for becoming healthy; it has only to stay so.
                    task.deadline = task.deadline.max(now.after(rest));
                    self.poll_after(id, rest.min(health.interval), now);
                }
            }
            Err(why) => {
                let task = &mut self.tasks[id];
                task.failed_checks += 1;
                if task.failed_checks > health.retries {
                    task.healthy_since = None;
                }
                self.keep_checking(id, &why, health.interval, now, commands);
            }
        }
    }

    /// Handles the verdicts of load balancers.
    fn judged(
        &mut self,
        id: TaskId,
        targets: &[TargetHealth],
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        for target in targets
            .iter()
            .filter(|target| target.state == TargetState::Unused)
        {
            if self.unused.insert(target.load_balancer.clone()) {
                let load_balancer = target.load_balancer.clone();
                commands.push(Command::Tell(Progress::Unused { load_balancer }));
            }
        }
        let is_content = |target: &&TargetHealth| {
            matches!(target.state, TargetState::Healthy | TargetState::Unused)
        };
        match targets.iter().find(|target| !is_content(target)) {
            None => self.finish_wait(id, now, commands),
            Some(target) => {
                let reason = target.reason.as_deref().unwrap_or(match target.state {
                    TargetState::Absent => "not registered",
                    _ => "no reason given",
                });
                let why = format!(
                    "`{}` doesn't see it as healthy: {reason}",
                    target.load_balancer
                );
                let interval = self.health(id).interval;
                self.keep_checking(id, &why, interval, now, commands);
            }
        }
    }

    fn keep_waiting(&mut self, id: TaskId, why: &str, now: Timestamp, commands: &mut Vec<Command>) {
        if self.goes_on_waiting(id, why, now, commands) {
            why.clone_into(&mut self.tasks[id].last_reason);
            self.poll_later(id, now);
        }
    }

    fn keep_checking(
        &mut self,
        id: TaskId,
        why: &str,
        interval: Duration,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        if self.goes_on_waiting(id, why, now, commands) {
            if self.tasks[id].last_reason != why {
                why.clone_into(&mut self.tasks[id].last_reason);
                let why = why.to_owned();
                commands.push(Command::Tell(Progress::Waits { task: id, why }));
            }
            self.poll_after(id, interval, now);
        }
    }

    /// Whether a wait goes on: not after its deadline, nor if apply stops.
    fn goes_on_waiting(
        &mut self,
        id: TaskId,
        why: &str,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) -> bool {
        if self.stopping {
            self.awaiting -= 1;
            self.stop_between_steps(id, commands);
            return false;
        }
        let task = &mut self.tasks[id];
        if now >= task.deadline {
            let waited = shown(task.waits_for);
            let what = if task.is_running {
                "wasn't healthy"
            } else {
                "didn't run"
            };
            let instance = self.awaited(id).unwrap_or_default();
            let error = format!("`{instance}` {what} within {waited}: {why}");
            self.give_up(id, &error, commands);
            return false;
        }
        true
    }

    fn finish_wait(&mut self, id: TaskId, now: Timestamp, commands: &mut Vec<Command>) {
        self.awaiting -= 1;
        self.end_step(id, now, commands);
    }

    fn give_up(&mut self, id: TaskId, error: &str, commands: &mut Vec<Command>) {
        self.awaiting -= 1;
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
}
