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

use nstance_state::IntentId;

use super::nonce::Nonce;
pub use super::protocol::{
    ADDRESS_WAIT, Call, Command, Event, Limits, Outcome, Progress, STILL, Step, TaskEnd, TaskId,
    action_name,
};
use super::requests::{self, Try};
use crate::clock::Timestamp;
use crate::fault_injection::InjectedFault;
use crate::plan::change::{Action, Change, Mode, Plan};
use crate::plan::drift::STATE;
use crate::provider::rules::Effect;
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
    /// When to give up waiting for the instance to run.
    pub(super) deadline: Timestamp,
    /// The result of a try was lost, so the call may have taken effect.
    pub(super) ambiguous: bool,
    /// A step is done and recorded.
    pub(super) touched: bool,
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

pub(super) struct Group {
    after: Vec<usize>,
    parallel: VecDeque<TaskId>,
    serial: VecDeque<TaskId>,
    active: usize,
    pub(super) stopped: bool,
}

impl Group {
    fn is_over(&self) -> bool {
        self.active == 0 && (self.stopped || self.parallel.is_empty() && self.serial.is_empty())
    }
}

/// A running apply.
pub struct Engine<'p> {
    pub(super) plan: &'p Plan,
    pub(super) limits: Limits,
    pub(super) tasks: Vec<Task>,
    pub(super) groups: Vec<Group>,
    pub(super) ready: VecDeque<TaskId>,
    pub(super) timers: BinaryHeap<Reverse<(Timestamp, TaskId)>>,
    pub(super) calling: usize,
    active: usize,
    /// The number of tasks that wait for their instance to run.
    pub(super) awaiting: usize,
    /// Steps in progress, and when to report that next.
    pub(super) in_progress: BTreeMap<TaskId, Timestamp>,
    next_create: Timestamp,
    pub(super) entropy: u64,
    /// Instance types and subnets without capacity.
    pub(super) exhausted: HashSet<(Arc<str>, Arc<str>)>,
    pub(super) stopping: bool,
}

impl<'p> Engine<'p> {
    /// An engine for a plan; `seed` seeds the jitter of retries.
    pub fn new(plan: &'p Plan, limits: Limits, seed: u64) -> Self {
        let mut indices: HashMap<&str, usize> = HashMap::new();
        let mut groups: Vec<Group> = plan
            .groups
            .iter()
            .enumerate()
            .map(|(index, group)| {
                indices.insert(&group.name, index);
                Group {
                    after: Vec::new(),
                    parallel: VecDeque::new(),
                    serial: VecDeque::new(),
                    active: 0,
                    stopped: false,
                }
            })
            .collect();
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
            // A deposed instance may go once the slot's new one runs, so that one's change comes first.
            if change.action.is_replace() || change.deposed.is_some() {
                groups[group].serial.push_back(id);
            } else {
                groups[group].parallel.push_back(id);
            }
            tasks.push(Task::new(change, group, awaited.contains(&group)));
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
        match event {
            Event::Start | Event::Tick => {}
            Event::Stored { task, intent } => self.stored(task, intent, now, &mut commands),
            Event::Called { task, result } => self.called(task, *result, now, &mut commands),
            Event::NonceMade { task, made } => self.nonce_made(task, made, now, &mut commands),
            Event::Stop => self.stop(&mut commands),
        }
        self.wake(now);
        self.tell_long_ones(now, &mut commands);
        self.start_tasks(now, &mut commands);
        self.start_calls(now, &mut commands);
        commands
    }

    /// When [`Event::Tick`] is due, unless another event comes first.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let throttled = (!self.ready.is_empty()
            && self.calling < self.limits.parallelism
            && self.next_create > now)
            .then_some(self.next_create);
        timer.into_iter().chain(throttled).min()
    }

    /// Whether nothing is in progress and nothing can start.
    pub fn is_over(&self) -> bool {
        // Any unfinished task can start, or waits for one that can.
        self.active == 0
            && (self.stopping || !self.groups.iter().any(|group| self.can_begin(group)))
    }

    fn can_begin(&self, group: &Group) -> bool {
        let is_open = |before: &usize| {
            let before = &self.groups[*before];
            before.is_over() && !before.stopped
        };
        !group.is_over() && group.after.iter().all(is_open)
    }

    /// The outcome; final once the engine is over.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome {
            stopped: self.stopping,
            ..Outcome::default()
        };
        for (id, task) in self.tasks.iter().enumerate() {
            match &task.phase {
                Phase::Ended(TaskEnd::Done) => outcome.done.count(self.plan.changes[id].action),
                Phase::Ended(end) => outcome.undone.push((id, end.clone())),
                _ => outcome.undone.push((id, TaskEnd::NotTried)),
            }
        }
        outcome
    }

    fn start_tasks(&mut self, now: Timestamp, commands: &mut Vec<Command>) {
        if self.stopping {
            return;
        }
        let window = self.limits.parallelism.max(AHEAD);
        for index in 0..self.groups.len() {
            let open = self.can_begin(&self.groups[index]);
            while open && self.active - self.awaiting < window && !self.groups[index].stopped {
                let group = &mut self.groups[index];
                let next = match group.parallel.pop_front() {
                    Some(task) => task,
                    // Replacements run one at a time, after the group's other changes.
                    None if group.active == 0 => match group.serial.pop_front() {
                        Some(task) => task,
                        None => break,
                    },
                    None => break,
                };
                group.active += 1;
                self.active += 1;
                self.begin_step(next, now, commands);
            }
        }
    }

    /// Begins a task's current step: stores its intent, or the change of the record.
    pub(super) fn begin_step(&mut self, id: TaskId, now: Timestamp, commands: &mut Vec<Command>) {
        let change = &self.plan.changes[id];
        let Some(step) = self.tasks[id].steps.front().copied() else {
            self.end(id, TaskEnd::Done, commands);
            return;
        };
        self.tasks[id].tries = 0;
        self.tasks[id].ambiguous = false;
        if self.lacks_nonce(id, step, now) {
            self.begin_nonce(id);
            return;
        }
        if self.tasks[id].attempt == 0 && step == Step::Create {
            self.tasks[id].place = self.first_place(id);
        }
        let operation = match step {
            Step::Record => {
                self.tell_started(id, step, now, commands);
                return self.record(id, now, commands);
            }
            Step::Await => return self.begin_waiting(id, now, commands),
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
        let task = &mut self.tasks[id];
        task.attempt = 0;
        let step = task.steps.pop_front();
        // An instance that is waited for is complete once it runs.
        let completed = match (step, self.plan.changes[id].action) {
            _ if task.steps.front() == Some(&Step::Await) && !self.stopping => None,
            (Some(Step::Await), Action::Delete) => None,
            (Some(Step::Await), Action::Update) => Some(Step::Update),
            (Some(Step::Await), _) => Some(Step::Create),
            (step, _) => step,
        };
        if let Some(step) = completed {
            self.in_progress.remove(&id);
            commands.push(Command::Tell(Progress::Completed {
                task: id,
                step,
                provider_id: task.provider_id.clone(),
                elapsed: now.since(task.started_at),
            }));
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
        let steps: Vec<Step> = self.tasks[id].steps.iter().copied().collect();
        let end = match steps[..] {
            [] | [Step::Await] => TaskEnd::Done,
            // Only a nonce was made.
            [Step::Create | Step::Update, ..] | [Step::Delete, Step::Create, ..]
                if !self.tasks[id].touched =>
            {
                TaskEnd::NotTried
            }
            [Step::Await, Step::Delete] if !self.tasks[id].touched => TaskEnd::NotTried,
            [.., Step::Delete] => {
                TaskEnd::Unfinished("stopped before its predecessor was deleted".to_owned())
            }
            _ => TaskEnd::Unfinished("stopped before its successor was made".to_owned()),
        };
        self.end(id, end, commands);
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

    /// Reports the steps that have been in progress for another [`STILL`].
    fn tell_long_ones(&mut self, now: Timestamp, commands: &mut Vec<Command>) {
        for (id, next) in &mut self.in_progress {
            if *next > now {
                continue;
            }
            let task = &self.tasks[*id];
            let step = task.steps.front().copied().unwrap_or(Step::Record);
            commands.push(Command::Tell(Progress::Still {
                task: *id,
                step,
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
                && !matches!(step, Step::Await | Step::Nonce)
            {
                self.tell_started(id, step, now, commands);
            }
            self.tasks[id].tries += 1;
            self.tasks[id].phase = Phase::Calling;
            commands.push(if self.tasks[id].steps.front() == Some(&Step::Nonce) {
                Command::MakeNonce(id, self.nonce_request(id))
            } else {
                Command::Call(id, self.call_of(id))
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
            Some(Step::Await) => {
                let provider_id = self.awaited(id).unwrap_or_default();
                Call::Observe { provider_id }
            }
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
        result: Result<Option<Observation>, CloudError>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        self.calling -= 1;
        let step = self.tasks[id].steps.front().copied();
        if step == Some(Step::Await) {
            self.observed(id, result, now, commands);
            return;
        }
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
                (Some(Step::Delete), _) => self.settle_delete(id, commands),
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
        let task = &mut self.tasks[id];
        let group = &mut self.groups[task.group];
        group.active -= 1;
        self.active -= 1;
        match &end {
            TaskEnd::Failed(error) | TaskEnd::Unfinished(error) | TaskEnd::Unsettled(error) => {
                // Stop the group after its first failure.
                group.stopped = true;
                let step = task.steps.front().copied().unwrap_or(Step::Record);
                let error = error.clone();
                commands.push(Command::Tell(Progress::Failed {
                    task: id,
                    step,
                    error,
                }));
            }
            TaskEnd::Done | TaskEnd::NotTried => {}
        }
        commands.push(Command::Tell(Progress::Ended { task: id }));
        task.phase = Phase::Ended(end);
        let group = task.group;
        if self.groups[group].stopped {
            self.give_up_waiting(group, commands);
        }
    }

    /// Ends the tasks of a stopped group that were never tried; tried ones continue to their end.
    fn give_up_waiting(&mut self, group: usize, commands: &mut Vec<Command>) {
        let (given_up, ready) = std::mem::take(&mut self.ready).into_iter().partition(|id| {
            let task = &self.tasks[*id];
            let waits = matches!(task.steps.front(), Some(Step::Await | Step::Nonce));
            task.group == group && task.phase == Phase::Ready && !waits
        });
        self.ready = ready;
        let given_up: VecDeque<TaskId> = given_up;
        for id in given_up {
            self.abandon(id, commands);
        }
    }

    /// Lets calls in progress finish, and ends tasks that only wait.
    fn stop(&mut self, commands: &mut Vec<Command>) {
        self.stopping = true;
        let waiting: HashSet<TaskId> = self
            .ready
            .drain(..)
            .chain(self.timers.drain().map(|Reverse((_, id))| id))
            .collect();
        let mut waiting: Vec<_> = waiting.into_iter().collect();
        waiting.sort_unstable();
        for id in waiting {
            if self.tasks[id].steps.front() == Some(&Step::Await) {
                self.end_wait();
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

/// Whether an update restarts the instance, or starts it.
fn restarts(change: &Change) -> bool {
    let mut attributes = change.attributes.iter();
    attributes.any(|attribute| attribute.effect == Effect::Restart || attribute.path == STATE)
}

impl Task {
    /// `is_awaited`: groups that depend on this one wait until its instances run.
    fn new(change: &Change, group: usize, is_awaited: bool) -> Self {
        let steps: &[Step] = match change.action {
            Action::Create if is_awaited => &[Step::Create, Step::Await],
            Action::Create => &[Step::Create],
            Action::Update if is_awaited && restarts(change) => &[Step::Update, Step::Await],
            Action::Update => &[Step::Update],
            Action::CreateThenDelete => &[Step::Create, Step::Await, Step::Delete],
            Action::DeleteThenCreate => &[Step::Delete, Step::Create, Step::Await],
            Action::Delete if change.deposed.is_some() => &[Step::Await, Step::Delete],
            Action::Delete => &[Step::Delete],
            Action::Adopt | Action::Forget => &[Step::Record],
            Action::NoOp => &[],
        };
        Self {
            steps: steps.iter().copied().collect(),
            phase: Phase::Waiting,
            intent: None,
            attempt: 0,
            mismatches: 0,
            place: 0,
            tries: 0,
            polls: 0,
            nonce: None,
            is_running: false,
            deadline: Timestamp(0),
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
}
