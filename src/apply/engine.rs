//! The apply protocol as a state machine without I/O: [`Engine::step`] takes an [`Event`] and
//! returns [`Command`]s.
//!
//! In: a plan, limits, events, the time. Out: store operations, cloud calls, progress. Must not:
//! store, call, wait or print.
//!
//! For each call, the engine first stores its intent ([`Command::Store`]). It sends the call only
//! when the intent is durable, and stores the result before the next step (`results`). An intent
//! without a known result stays open in the journal; the next run settles it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use nstance_state::IntentId;

use super::gates::Group;
pub use super::gates::GroupStart;
use super::nonce::Nonce;
pub use super::protocol::{
    ADDRESS_WAIT, Answer, Call, Command, DrainRequest, Event, GroupStage, GroupStatus, Limits,
    Look, LookRequest, NextPause, Note, Outcome, Progress, Request, STILL, Seen, Step,
    SurveyRequest, TaskEnd, TaskId, action_name,
};
use super::requests::{self, Try};
use super::steps::{self, Start};
use crate::clock::Timestamp;
use crate::fault_injection::InjectedFault;
use crate::plan::change::{Mode, Plan};
use crate::provider::{CloudError, Observation};

/// How often an instance's addresses are polled, if its files need them.
pub(super) const ADDRESS_POLLS: u32 = 60;
/// How many intents are stored ahead of their calls, so that one commit serves many of them.
const AHEAD: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    Waiting,
    Intending,
    /// The intent is stored; the call waits for a free slot.
    Ready,
    Calling,
    /// Waits before a retry.
    BackingOff,
    Finding,
    Describing,
    Settling,
    /// Waits until the group's limits allow its step.
    Gated,
    Ended(TaskEnd),
}

pub(super) struct Task {
    pub(super) steps: VecDeque<Step>,
    pub(super) phase: Phase,
    pub(super) intent: Option<IntentId>,
    pub(super) attempt: u32,
    /// The number of tokens that the cloud rejected as used.
    pub(super) mismatches: u32,
    /// The index of the subnet for a new instance; see [`Change::creation`].
    pub(super) place: usize,
    pub(super) tries: u32,
    pub(super) polls: u32,
    /// The nonce that was made for it.
    pub(super) nonce: Option<Nonce>,
    /// The state of a created or updated instance, as last observed.
    pub(super) is_running: bool,
    /// Since when its checks have succeeded.
    pub(super) healthy_since: Option<Timestamp>,
    /// Failed checks in a row.
    pub(super) failed_checks: u32,
    /// The wait in which an earlier apply ended, and since when it waited.
    pub(super) resumed_wait: Option<(Step, Timestamp)>,
    /// Since when its step waits.
    pub(super) waits_since: Timestamp,
    /// When to give up waiting, and how long that is.
    pub(super) deadline: Timestamp,
    pub(super) waits_for: Duration,
    /// Why it last waited on.
    pub(super) last_reason: String,
    /// Its place among the tasks that began, from 1.
    pub(super) began: usize,
    /// Its new instance counts as being created.
    pub(super) is_counted: bool,
    /// Its new or updated instance is available.
    pub(super) has_arrived: bool,
    /// Its gate is open: its instance goes out of service.
    pub(super) is_leaving: bool,
    /// Its instance is deleted.
    pub(super) has_deleted: bool,
    /// The result of a try was lost, so the call may have taken effect.
    pub(super) ambiguous: bool,
    /// A step is done and recorded.
    pub(super) touched: bool,
    /// An earlier apply did it.
    was_done: bool,
    /// Its stages are noted in the rollout's record.
    pub(super) is_noted: bool,
    /// The final state, once the current store operation is durable.
    pub(super) pending_end: Option<TaskEnd>,
    /// Whether to restart the step with the next token, once the current store operation is
    /// durable.
    pub(super) again: bool,
    pub(super) created: Option<Observation>,
    pub(super) started_at: Timestamp,
    pub(super) provider_id: Option<String>,
    pub(super) group: usize,
}

/// A running apply.
pub struct Engine<'p> {
    pub(super) plan: &'p Plan,
    pub(super) limits: Limits,
    pub(super) tasks: Vec<Task>,
    pub(super) groups: Vec<Group<'p>>,
    pub(super) ready: VecDeque<TaskId>,
    pub(super) timers: BinaryHeap<Reverse<(Timestamp, TaskId)>>,
    pub(super) calling: usize,
    active: usize,
    /// The number of tasks that only wait.
    pub(super) awaiting: usize,
    /// The number of tasks that began, and that failed.
    pub(super) begun: usize,
    failures: usize,
    /// The number of surveys under way.
    pub(super) surveys: usize,
    /// What is asked before counts for the first task already.
    has_begun: bool,
    /// When a step last began or ended.
    pub(super) last_progress: Timestamp,
    /// Whether it stops because it waited for too long.
    pub(super) has_waited_long: bool,
    /// Stages that groups reached, to be reported.
    pub(super) entered: Vec<(usize, GroupStage)>,
    /// Load balancers without a listener that were reported.
    pub(super) unused: HashSet<String>,
    /// Steps in progress, and when to report that next.
    pub(super) in_progress: BTreeMap<TaskId, Timestamp>,
    next_create: Timestamp,
    pub(super) entropy: u64,
    /// Instance types and subnets without capacity.
    pub(super) exhausted: HashSet<(Arc<str>, Arc<str>)>,
    pub(super) stopping: bool,
}

impl<'p> Engine<'p> {
    /// An engine for a plan; `seed` seeds the jitter of retries. `starts` says how far an earlier
    /// apply of the plan came; empty means that there was none.
    pub fn new(plan: &'p Plan, limits: Limits, seed: u64, starts: &Starts) -> Self {
        let mut indices: HashMap<&str, usize> = HashMap::new();
        for (index, group) in plan.groups.iter().enumerate() {
            indices.insert(&group.name, index);
        }
        let mut groups: Vec<Group<'p>> = Group::all(plan, &indices);
        for (index, group) in plan.groups.iter().enumerate() {
            for before in group
                .after
                .iter()
                .filter_map(|name| indices.get(name.as_str()))
            {
                // Destroying reverses the dependency order.
                if plan.mode == Mode::Destroy {
                    groups[*before].after.push(index);
                } else {
                    groups[index].after.push(*before);
                }
            }
        }
        let awaited: HashSet<usize> = match plan.mode {
            Mode::Destroy => HashSet::new(),
            Mode::Normal | Mode::RefreshOnly => {
                let after = groups.iter().flat_map(|group| &group.after);
                after.copied().collect()
            }
        };
        let mut tasks = Vec::with_capacity(plan.changes.len());
        for (id, change) in plan.changes.iter().enumerate() {
            let group = indices
                .get(change.address.group.as_str())
                .copied()
                .unwrap_or_default();
            let planned = plan
                .groups
                .get(group)
                .and_then(|group| group.rollout.as_ref());
            let mut steps = steps::of(change, plan.mode, planned, awaited.contains(&group));
            if limits.injected_fault == InjectedFault::NoDeregistration {
                steps.retain(|step| !matches!(step, Step::Deregister | Step::Connections));
            }
            tasks.push(Task::new(steps, group));
            if let Some(start) = starts.tasks.get(id) {
                tasks[id].begin_at(start);
            }
        }
        for (index, group) in groups.iter_mut().enumerate() {
            if let Some(start) = starts.groups.get(index) {
                group.resume(*start);
            }
            group.resume_tasks(plan, &tasks);
        }
        Self {
            plan,
            limits,
            tasks,
            groups,
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            calling: 0,
            active: 0,
            awaiting: 0,
            begun: 0,
            failures: 0,
            surveys: 0,
            has_begun: false,
            last_progress: Timestamp(i64::MIN),
            has_waited_long: false,
            entered: Vec::new(),
            unused: HashSet::new(),
            in_progress: BTreeMap::new(),
            next_create: Timestamp(i64::MIN),
            entropy: seed | 1,
            exhausted: HashSet::new(),
            stopping: false,
        }
    }

    /// Processes an event and returns the next commands.
    pub fn step(&mut self, event: Event, now: Timestamp) -> Vec<Command> {
        let mut commands = Vec::new();
        if matches!(event, Event::Start) {
            self.has_begun = true;
            self.last_progress = now;
        }
        match event {
            Event::Start | Event::Tick => {}
            Event::Stored { task, intent } => self.stored(task, intent, now, &mut commands),
            Event::Called { task, result } => self.called(task, *result, now, &mut commands),
            Event::Surveyed { group, result } => {
                self.surveyed(group, result, now, &mut commands);
            }
            Event::NonceMade { task, made } => self.nonce_made(task, made, now, &mut commands),
            Event::Drained { task, result } => self.drained(task, result, now, &mut commands),
            Event::Asked { group, request } => {
                self.asked(group.as_deref(), request, now, &mut commands);
            }
            Event::Stop => self.stop(&mut commands),
        }
        if !self.has_begun {
            return commands;
        }
        self.wake(now);
        self.tell_long_ones(now, &mut commands);
        self.end_pauses(now);
        self.start_tasks(now, &mut commands);
        self.tend_gates(now, &mut commands);
        self.start_calls(now, &mut commands);
        for (group, stage) in std::mem::take(&mut self.entered) {
            self.enter(group, stage, "", &mut commands);
        }
        self.tell_groups(now, &mut commands);
        if self.has_waited_enough(now) {
            self.has_waited_long = true;
            self.name_waits(&mut commands);
            self.stop(&mut commands);
        }
        commands
    }

    /// Whether nothing has happened for longer than `--max-wait`, or nothing can happen until
    /// somebody ends a pause.
    fn has_waited_enough(&self, now: Timestamp) -> bool {
        let only_waits = self.calling == 0 && self.active == self.awaiting;
        if only_waits && !self.stopping && self.active > 0 && self.active == self.paused_at_gates()
        {
            return true;
        }
        let waits = only_waits && (self.active > 0 || self.has_timed_pause());
        waits && !self.stopping && now.since(self.last_progress) >= self.limits.max_wait
    }

    /// When [`Event::Tick`] is due, unless another event comes first.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let is_throttled = !self.ready.is_empty() && self.calling < self.limits.parallelism;
        let throttled = is_throttled.then_some(self.next_create);
        let next = timer
            .into_iter()
            .chain(throttled)
            .chain(self.next_gate())
            .min();
        // So that a long wait ends.
        let patience = self.last_progress.after(self.limits.max_wait);
        next.map(|at| if patience > now { at.min(patience) } else { at })
    }

    /// Whether nothing is in progress and nothing can start.
    pub fn is_over(&self) -> bool {
        // Each step starts what can start; the rest waits for something that doesn't come.
        self.active == 0 && self.surveys == 0 && (self.stopping || !self.has_timed_pause())
    }

    fn can_begin(&self, group: &Group<'_>) -> bool {
        let is_open = |before: &usize| {
            let before = &self.groups[*before];
            before.is_over() && !before.has_failed()
        };
        !group.is_over() && !group.stopped && group.after.iter().all(is_open)
    }

    /// The groups that nothing changed because another group failed, each with that group.
    fn blocked_groups(&self) -> Vec<(usize, usize)> {
        let groups = self.groups.iter().enumerate();
        let blocked = groups
            .filter(|(_, group)| !group.is_over())
            .filter_map(|(index, group)| {
                let failed = |before: &&usize| self.groups[**before].has_failed();
                Some((index, *group.after.iter().find(failed)?))
            });
        blocked.collect()
    }

    /// The outcome; final once the engine is over.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome {
            stopped: self.stopping && !self.has_waited_long,
            failures: self.failures,
            ..Outcome::default()
        };
        for (id, task) in self.tasks.iter().enumerate() {
            match &task.phase {
                Phase::Ended(TaskEnd::Done) if task.was_done => {}
                Phase::Ended(TaskEnd::Done) => outcome.done.count(self.plan.changes[id].action),
                Phase::Ended(end) => outcome.undone.push((id, end.clone())),
                _ => outcome.undone.push((id, TaskEnd::NotTried)),
            }
        }
        outcome.waiting = self.waiting_groups();
        outcome.blocked = self.blocked_groups();
        let groups = 0..self.groups.len();
        outcome.rollback = groups.filter(|group| self.rolls_back(*group)).collect();
        outcome
    }

    fn start_tasks(&mut self, now: Timestamp, commands: &mut Vec<Command>) {
        if self.stopping {
            return;
        }
        let window = self.limits.parallelism.max(AHEAD);
        loop {
            let mut begun = false;
            for index in 0..self.groups.len() {
                while self.can_begin(&self.groups[index])
                    && self.active - self.awaiting < window
                    && let Some(next) = self.take_next(index, now)
                {
                    begun = true;
                    self.groups[index].count_active(now);
                    self.active += 1;
                    self.last_progress = now;
                    self.begin_step(next, now, commands);
                }
            }
            // What ended at once may let other groups begin.
            if !begun {
                return;
            }
        }
    }

    /// Begins a task's current step: stores its intent, or the change of the record.
    pub(super) fn begin_step(&mut self, id: TaskId, now: Timestamp, commands: &mut Vec<Command>) {
        let Some(step) = self.tasks[id].steps.front().copied() else {
            self.end(id, TaskEnd::Done, commands);
            return;
        };
        let change = &self.plan.changes[id];
        self.tasks[id].tries = 0;
        self.tasks[id].ambiguous = false;
        self.tasks[id].waits_since = now;
        self.last_progress = now;
        self.count_begun(id);
        if self.lacks_nonce(id, step, now) {
            self.begin_nonce(id);
            return;
        }
        if self.tasks[id].is_noted {
            // Its wait goes on since the time that an earlier apply noted.
            if self.tasks[id].resumed_wait.is_none() {
                self.note(id, step.as_str(), step.detail(), commands);
            }
            if step.is_wait() {
                commands.push(Command::Tell(Progress::Entered { task: id, step }));
            }
        }
        if self.tasks[id].attempt == 0 && step == Step::Create {
            self.tasks[id].place = self.first_place(id);
        }
        let operation = match step {
            Step::Record => {
                self.tell_started(id, step, now, commands);
                return self.record(id, now, commands);
            }
            Step::Check => return self.begin_check(id, now, commands),
            Step::Verdict => return self.begin_verdict(id),
            Step::Connections => return self.begin_connections(id, now, commands),
            Step::Gate => return self.begin_gate(id),
            Step::Register | Step::Deregister | Step::Drain
                if self.limits.injected_fault == InjectedFault::NoStepIntent =>
            {
                self.tasks[id].phase = Phase::Ready;
                self.ready.push_back(id);
                return;
            }
            Step::Register | Step::Deregister | Step::Drain => {
                let request = match step {
                    Step::Register => self.arrival(id),
                    _ => self.departure(id),
                };
                requests::step_intent(self.plan, change, step, &request)
            }
            Step::Create | Step::Update | Step::Delete => {
                let Task { attempt, place, .. } = self.tasks[id];
                let nonce = self.tasks[id].nonce.as_ref();
                requests::intent(self.plan, change, step, Try { attempt, place }, nonce)
            }
            // It begins by itself.
            Step::Nonce => return,
        };
        self.tasks[id].phase = Phase::Intending;
        commands.push(Command::Store(id, operation));
    }

    fn stored(
        &mut self,
        id: TaskId,
        intent: Option<IntentId>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        match self.tasks[id].phase {
            Phase::Intending => {
                self.tasks[id].intent = intent;
                if self.stopping || self.groups[self.tasks[id].group].stopped {
                    self.abandon(id, commands);
                } else {
                    self.tasks[id].phase = Phase::Ready;
                    self.ready.push_back(id);
                }
            }
            Phase::Settling => {
                self.tasks[id].intent = None;
                if let Some(end) = self.tasks[id].pending_end.take() {
                    self.end(id, end, commands);
                    return;
                }
                if std::mem::take(&mut self.tasks[id].again) {
                    self.begin_step(id, now, commands);
                    return;
                }
                self.tasks[id].touched = true;
                self.end_step(id, now, commands);
            }
            _ => {}
        }
    }

    /// Ends a step, and begins the next one.
    pub(super) fn end_step(&mut self, id: TaskId, now: Timestamp, commands: &mut Vec<Command>) {
        self.last_progress = now;
        let action = self.plan.changes[id].action;
        let task = &mut self.tasks[id];
        task.attempt = 0;
        let step = task.steps.pop_front();
        task.resumed_wait.take_if(|(wait, _)| Some(*wait) == step);
        let next = task.steps.front().copied();
        let operation = step.and_then(|step| steps::operation(action, step));
        let next_operation = next.and_then(|step| steps::operation(action, step));
        if operation.is_some() && (next_operation != operation || self.stopping) {
            let is_arrival = operation != Some(Step::Delete) && operation != Some(Step::Record);
            if is_arrival {
                self.count_arrived(id);
                if self.tasks[id].is_noted {
                    self.note(id, "available", "", commands);
                    commands.push(Command::Tell(Progress::Available { task: id }));
                }
            }
            if self.in_progress.remove(&id).is_some()
                && let Some(step) = operation
            {
                let task = &self.tasks[id];
                let before = self.plan.changes[id].before.as_deref();
                let provider_id = match step {
                    Step::Delete => before.and_then(|view| view.provider_id.clone()),
                    _ => task.provider_id.clone(),
                };
                commands.push(Command::Tell(Progress::Completed {
                    task: id,
                    step,
                    provider_id,
                    elapsed: now.since(task.started_at),
                }));
            }
        }
        if self.stopping {
            self.stop_between_steps(id, commands);
        } else {
            // Without a further step, this ends the task.
            self.begin_step(id, now, commands);
        }
    }

    /// Ends a task whose current step hasn't begun, or only waits.
    pub(super) fn stop_between_steps(&mut self, id: TaskId, commands: &mut Vec<Command>) {
        let task = &self.tasks[id];
        let next = task.steps.iter().find(|step| !step.is_wait());
        let what = match next {
            None => return self.end(id, TaskEnd::Done, commands),
            Some(_) if !task.touched => return self.end(id, TaskEnd::NotTried, commands),
            Some(Step::Register) => "it was registered",
            Some(Step::Create | Step::Nonce) => "its successor was made",
            Some(Step::Update) => "it was updated",
            Some(_) if self.plan.changes[id].action.is_replace() => "its predecessor was deleted",
            Some(_) => "it was deleted",
        };
        self.end(
            id,
            TaskEnd::Unfinished(format!("stopped before {what}")),
            commands,
        );
    }

    /// Reports that a step starts.
    fn tell_started(
        &mut self,
        id: TaskId,
        step: Step,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        self.tasks[id].started_at = now;
        self.in_progress.insert(id, now.after(STILL));
        commands.push(Command::Tell(Progress::Started { task: id, step }));
    }

    /// Reports that a step's first call begins.
    fn tell_begun(&mut self, id: TaskId, step: Step, now: Timestamp, commands: &mut Vec<Command>) {
        let action = self.plan.changes[id].action;
        match steps::operation(action, step) {
            Some(operation)
                if !step.is_wait()
                    && step != Step::Nonce
                    && !self.in_progress.contains_key(&id) =>
            {
                self.tell_started(id, operation, now, commands);
            }
            _ => {}
        }
        if self.tasks[id].is_noted && !step.is_wait() {
            commands.push(Command::Tell(Progress::Entered { task: id, step }));
        }
    }

    /// Notes a slot's stage in the rollout's record.
    pub(super) fn note(
        &mut self,
        id: TaskId,
        stage: &'static str,
        detail: &str,
        commands: &mut Vec<Command>,
    ) {
        let change = &self.plan.changes[id];
        let view = change.after.as_deref().or(change.before.as_deref());
        commands.push(Command::Note(Note::Slot {
            address: change.address.clone(),
            instance_id: view
                .map(|view| view.instance_id.to_string())
                .unwrap_or_default(),
            stage,
            detail: detail.to_owned(),
        }));
    }

    /// The request to the drain command.
    fn drain_request(&self, id: TaskId) -> DrainRequest {
        let change = &self.plan.changes[id];
        let before = change
            .before
            .as_deref()
            .expect("what is drained was there before");
        let rollout = self.plan.groups[self.tasks[id].group].rollout.as_ref();
        let words = rollout.and_then(|rollout| rollout.drain.clone());
        let provider_id = before.provider_id.clone().unwrap_or_default();
        let mut subject = self.subject(&change.address, &before.instance_id, provider_id);
        for (name, address) in [("IP4", &before.ip4), ("IP6", &before.ip6)] {
            let known = address.as_deref().filter(|address| !address.is_empty());
            subject
                .facts
                .extend(known.map(|address| (name, address.to_owned())));
        }
        subject.facts.push(("ZONE", before.zone.to_string()));
        DrainRequest {
            words: words.unwrap_or_default(),
            subject,
            timeout: Duration::from_millis(change.drain_timeout_ms),
        }
    }

    /// Handles the end of the drain command.
    fn drained(
        &mut self,
        id: TaskId,
        result: Result<(), String>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        self.calling -= 1;
        match result {
            Ok(()) => self.settle_step(id, now, commands),
            Err(error) => self.settle_failure(id, error, commands),
        }
    }

    /// Reports the steps that have been in progress for another [`STILL`].
    fn tell_long_ones(&mut self, now: Timestamp, commands: &mut Vec<Command>) {
        for (id, next) in &mut self.in_progress {
            if *next > now {
                continue;
            }
            let task = &self.tasks[*id];
            let step = task.steps.front().copied().unwrap_or(Step::Record);
            let action = self.plan.changes[*id].action;
            commands.push(Command::Tell(Progress::Still {
                task: *id,
                step: steps::operation(action, step).unwrap_or(step),
                elapsed: now.since(task.started_at),
            }));
            while *next <= now {
                *next = next.after(STILL);
            }
        }
    }

    /// Starts as many calls as the limits allow.
    fn start_calls(&mut self, now: Timestamp, commands: &mut Vec<Command>) {
        let mut later = VecDeque::new();
        while self.calling < self.limits.parallelism {
            let Some(id) = self.ready.pop_front() else {
                break;
            };
            let creates = self.tasks[id].steps.front() == Some(&Step::Create)
                && self.tasks[id].phase == Phase::Ready;
            if creates && now < self.next_create {
                later.push_back(id);
                continue;
            }
            if creates {
                self.next_create = now.after(self.limits.create_interval);
            }
            self.calling += 1;
            let Task { attempt, tries, .. } = self.tasks[id];
            if let Some(step) = self.tasks[id].steps.front().copied()
                && (attempt, tries) == (0, 0)
            {
                self.tell_begun(id, step, now, commands);
            }
            self.tasks[id].tries += 1;
            self.tasks[id].phase = Phase::Calling;
            commands.push(match self.tasks[id].steps.front() {
                Some(Step::Nonce) => Command::MakeNonce(id, self.nonce_request(id)),
                Some(Step::Drain) => Command::Drain(id, self.drain_request(id)),
                _ => Command::Call(id, self.call_of(id)),
            });
        }
        for id in later.into_iter().rev() {
            self.ready.push_front(id);
        }
    }

    fn call_of(&self, id: TaskId) -> Call {
        let change = &self.plan.changes[id];
        let attempt = self.tasks[id].attempt;
        let after = change.after.as_deref();
        match self.tasks[id].steps.front() {
            Some(Step::Create) => {
                let side = change.creation(self.tasks[id].place);
                let nonce = self.tasks[id].nonce.as_ref();
                let address = &change.address;
                let mut request = requests::create(self.plan, address, &side, attempt, nonce);
                if self.limits.injected_fault == InjectedFault::FreshToken {
                    request.token = format!("{}-{}", request.token, self.tasks[id].tries);
                }
                Call::Create(Box::new(request))
            }
            Some(step @ (Step::Check | Step::Verdict | Step::Connections)) => {
                self.call_of_wait(id, *step)
            }
            Some(Step::Register) => Call::Register(self.arrival(id)),
            Some(Step::Deregister) => Call::Deregister(self.departure(id)),
            Some(Step::Update) => {
                let side = after.expect("an update has an after");
                let nonce = self.tasks[id].nonce.as_ref();
                let request = requests::update(self.plan, change, side, attempt, nonce);
                Call::Update(Box::new(request))
            }
            _ => {
                let side = change.before.as_deref().expect("a deletion has a before");
                Call::Delete(requests::delete(self.plan, change, side))
            }
        }
    }

    fn called(
        &mut self,
        id: TaskId,
        result: Result<Answer, CloudError>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        self.calling -= 1;
        let step = self.tasks[id].steps.front().copied();
        if let Some(step) = step.filter(|step| step.is_wait()) {
            self.observed(id, step, result, now, commands);
            return;
        }
        let result = result.map(|answer| match answer {
            Answer::Instance(instance) => instance,
            Answer::Looked(look) => look.observation,
            Answer::Targets(_) => None,
        });
        match (&self.tasks[id].phase, result) {
            (Phase::Finding, Ok(None)) => self.next_attempt(id, commands),
            (Phase::Finding | Phase::Describing, Ok(Some(found))) => {
                self.created(id, found, now, commands);
            }
            // The new instance is known but may not be listed yet. Only its addresses are missing,
            // so keep polling.
            (Phase::Describing, _) => match self.tasks[id].created.take() {
                Some(known) => self.created(id, known, now, commands),
                None => self.leave_open(id, "it could not be read back".to_owned(), commands),
            },
            (Phase::Finding, Err(error)) => self.leave_open(id, error.to_string(), commands),
            (_, Ok(observation)) => match (step, observation) {
                (Some(Step::Create), Some(observation)) => {
                    self.created(id, observation, now, commands);
                }
                (Some(Step::Update), observation) => {
                    self.settle_update(id, observation.as_ref(), now, commands);
                }
                (Some(Step::Delete), _) => self.settle_delete(id, now, commands),
                (Some(Step::Register | Step::Deregister), _) => {
                    self.settle_step(id, now, commands);
                }
                _ => self.leave_open(id, "the cloud's answer is empty".to_owned(), commands),
            },
            (_, Err(error)) => self.call_failed(id, step, &error, now, commands),
        }
    }

    fn wake(&mut self, now: Timestamp) {
        while let Some(Reverse((at, id))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            if self.tasks[id].phase == Phase::BackingOff {
                // Not `Ready`, since the create rate limit doesn't apply to retries.
                self.ready.push_back(id);
            }
        }
    }

    pub(super) fn end(&mut self, id: TaskId, end: TaskEnd, commands: &mut Vec<Command>) {
        self.in_progress.remove(&id);
        let index = self.tasks[id].group;
        self.active -= 1;
        self.groups[index].active -= 1;
        match &end {
            TaskEnd::Failed(error) | TaskEnd::Unfinished(error) | TaskEnd::Unsettled(error) => {
                let action = self.plan.changes[id].action;
                let step = self.tasks[id]
                    .steps
                    .front()
                    .copied()
                    .unwrap_or(Step::Record);
                let error = error.clone();
                commands.push(Command::Tell(Progress::Failed {
                    task: id,
                    step: steps::operation(action, step).unwrap_or(step),
                    error: error.clone(),
                }));
                if !self.stopping {
                    self.failures += 1;
                    self.note(id, "failed", &error, commands);
                    self.count_failure(id, &error, commands);
                }
            }
            TaskEnd::Done if self.tasks[id].is_noted => self.note(id, "done", "", commands),
            TaskEnd::Done | TaskEnd::NotTried => {}
        }
        self.count_ended(id, &end);
        commands.push(Command::Tell(Progress::Ended { task: id }));
        self.tasks[id].phase = Phase::Ended(end);
        if self.groups[index].stopped {
            self.give_up_waiting(index, commands);
        } else if self.groups[index].is_over() && self.groups[index].rolls {
            self.entered.push((index, GroupStage::Done));
        }
    }

    /// Ends the tasks of a stopped group that were never tried; tried ones continue to their end.
    /// In a group that goes back, no further instance leaves.
    pub(super) fn give_up_waiting(&mut self, group: usize, commands: &mut Vec<Command>) {
        let (given_up, ready) = std::mem::take(&mut self.ready).into_iter().partition(|id| {
            let task = &self.tasks[*id];
            let waits = task.steps.front().is_some_and(|step| step.is_wait());
            let waits = waits || task.steps.front() == Some(&Step::Nonce);
            task.group == group && task.phase == Phase::Ready && !waits
        });
        self.ready = ready;
        let given_up: VecDeque<TaskId> = given_up;
        for id in given_up {
            self.abandon(id, commands);
        }
        let rolls_back = self.rolls_back(group);
        for id in self.take_gated(group, rolls_back) {
            self.awaiting -= 1;
            self.stop_between_steps(id, commands);
        }
    }

    /// Lets calls in progress finish, and ends tasks that only wait.
    fn stop(&mut self, commands: &mut Vec<Command>) {
        self.stopping = true;
        let tasks = self.tasks.iter().enumerate();
        let gated = tasks.filter(|(_, task)| task.phase == Phase::Gated);
        let gated: Vec<TaskId> = gated.map(|(id, _)| id).collect();
        let waiting: HashSet<TaskId> = self
            .ready
            .drain(..)
            .chain(self.timers.drain().map(|Reverse((_, id))| id))
            .chain(gated)
            .collect();
        let mut waiting: Vec<_> = waiting.into_iter().collect();
        waiting.sort_unstable();
        for id in waiting {
            if self.tasks[id]
                .steps
                .front()
                .is_some_and(|step| step.is_wait())
            {
                self.awaiting -= 1;
                self.stop_between_steps(id, commands);
            } else if self.tasks[id].steps.front() == Some(&Step::Nonce) {
                self.tasks[id].steps.pop_front();
                self.stop_between_steps(id, commands);
            } else if self.tasks[id].ambiguous {
                let why = "stopped before its outcome was known".to_owned();
                self.leave_open(id, why, commands);
            } else {
                self.abandon(id, commands);
            }
        }
    }
}

/// How far an earlier apply of the same plan came.
#[derive(Debug, Clone, Default)]
pub struct Starts {
    /// Where each change goes on.
    pub tasks: Vec<Start>,
    /// Where each group goes on.
    pub groups: Vec<GroupStart>,
}

impl Task {
    /// A task that takes these steps.
    fn new(steps: VecDeque<Step>, group: usize) -> Self {
        Self {
            // A single call is in the journal; that says enough.
            is_noted: steps.len() > 1,
            steps,
            phase: Phase::Waiting,
            intent: None,
            attempt: 0,
            mismatches: 0,
            place: 0,
            tries: 0,
            polls: 0,
            nonce: None,
            is_running: false,
            healthy_since: None,
            failed_checks: 0,
            resumed_wait: None,
            waits_since: Timestamp(0),
            deadline: Timestamp(0),
            waits_for: Duration::ZERO,
            last_reason: String::new(),
            was_done: false,
            began: 0,
            is_counted: false,
            has_arrived: false,
            is_leaving: false,
            has_deleted: false,
            ambiguous: false,
            touched: false,
            pending_end: None,
            again: false,
            created: None,
            started_at: Timestamp(0),
            provider_id: None,
            group,
        }
    }

    /// Goes on where an earlier apply ended.
    fn begin_at(&mut self, start: &Start) {
        match start {
            Start::Todo => {}
            Start::Later => {
                self.steps.clear();
                self.phase = Phase::Ended(TaskEnd::NotTried);
            }
            Start::Done { provider_id } => {
                self.has_arrived = true;
                self.has_deleted = self.steps.contains(&Step::Delete);
                self.steps.clear();
                self.provider_id.clone_from(provider_id);
                self.was_done = true;
                self.phase = Phase::Ended(TaskEnd::Done);
            }
            Start::After {
                step,
                provider_id,
                wait,
            } => {
                self.resumed_wait = *wait;
                while let Some(done) = self.steps.pop_front() {
                    self.has_deleted |= done == Step::Delete;
                    if done == *step {
                        break;
                    }
                }
                self.provider_id.clone_from(provider_id);
                self.touched = true;
                let next = self.steps.front().copied();
                self.has_arrived = matches!(next, Some(Step::Gate) | None);
            }
        }
    }
}
