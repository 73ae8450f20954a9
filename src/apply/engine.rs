//! The protocol of an apply, without I/O: [`Engine::step`] takes an [`Event`] and answers
//! [`Command`]s.
//!
//! In: a plan, limits, events, the time. Out: what to store, what to ask of the cloud, what to tell.
//! May not: store, ask, wait or print.
//!
//! For each call: its intent is stored first ([`Command::Store`]); only when that was answered is
//! the cloud asked; what came of it is stored before the next step. Whatever isn't known to have
//! ended stays open in the journal, for the next run to settle.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use nstance_state::{HistoryIds, HistoryItem, IntentId, NewIntent, Operation, Outcome as Ending};

use super::journal::{Settlement, StoreOperation};
use super::requests::{self, CreateIntent};
use crate::address::Address;
use crate::clock::Timestamp;
use crate::plan::change::{Action, Change, Mode, Plan, Side, Summary};
use crate::provider::{
    CloudError, CloudErrorKind, CreateRequest, DeleteRequest, Observation, UpdateRequest,
};
use crate::spec::SpecBody;

/// How much may go on at once, and how often a call is tried.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Calls under way at once.
    pub parallelism: usize,
    /// The least time between two creates.
    pub create_interval: Duration,
    /// Tries of one call.
    pub tries: u32,
    /// The first wait before another try; it doubles each time.
    pub first_wait: Duration,
    /// The longest wait before another try.
    pub longest_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            parallelism: 10,
            create_interval: Duration::ZERO,
            tries: 8,
            first_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(20),
        }
    }
}

/// How often an instance is asked for addresses that its files wait for.
const ADDRESS_POLLS: u32 = 60;
/// The wait before each of these.
pub const ADDRESS_WAIT: Duration = Duration::from_secs(2);
/// How many tokens are tried for one instance.
const ATTEMPTS: u32 = 3;
/// Intents stored ahead of their calls, so that one commit serves many of them.
const AHEAD: usize = 64;

/// Which change of the plan; its index.
pub type TaskId = usize;

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The beginning.
    Start,
    /// A store operation is on disk.
    Stored {
        /// Whose.
        task: TaskId,
        /// The intent's id, if it was one.
        intent: Option<IntentId>,
    },
    /// The cloud answered.
    Called {
        /// Whose call.
        task: TaskId,
        /// The answer.
        result: Box<Result<Option<Observation>, CloudError>>,
    },
    /// Time went by.
    Tick,
    /// Finish what is under way and start nothing more.
    Stop,
}

/// What to do.
#[derive(Debug)]
pub enum Command {
    /// Store this; all of one wave in one transaction. Answered by [`Event::Stored`].
    Store(TaskId, StoreOperation),
    /// Ask the cloud. Answered by [`Event::Called`].
    Call(TaskId, Call),
    /// Write an instance's exported files.
    Export(Address, Arc<SpecBody>),
    /// Remove an instance's exported files.
    Unexport(Address),
    /// Tell whoever watches.
    Tell(Progress),
}

/// A question to the cloud.
#[derive(Debug, Clone)]
pub enum Call {
    /// Create.
    Create(Box<CreateRequest>),
    /// Change in place.
    Update(Box<UpdateRequest>),
    /// Delete.
    Delete(DeleteRequest),
    /// Look for an instance of ours by our id.
    Find {
        /// Our id.
        instance_id: String,
    },
    /// Look at an instance by the cloud's id, a moment later ([`ADDRESS_WAIT`]).
    Describe {
        /// The cloud's id.
        provider_id: String,
    },
}

/// What is told while it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A step of a change begins.
    Started {
        /// Which.
        task: TaskId,
        /// What.
        step: Step,
    },
    /// A call failed and will be tried again.
    Retrying {
        /// Which.
        task: TaskId,
        /// Why.
        error: String,
        /// After how long.
        wait: Duration,
    },
    /// A step of a change is done and recorded.
    Completed {
        /// Which.
        task: TaskId,
        /// What.
        step: Step,
        /// The cloud's id of what it was about.
        provider_id: Option<String>,
        /// How long it took.
        elapsed: Duration,
    },
    /// Nothing more is done about a change.
    Ended {
        /// Which.
        task: TaskId,
    },
    /// An instance's exported files could not be written or removed.
    ExportFailed {
        /// Whose.
        address: Address,
        /// Why.
        error: String,
    },
    /// A change failed.
    Failed {
        /// Which.
        task: TaskId,
        /// In which step.
        step: Step,
        /// Why.
        error: String,
    },
}

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    /// Done and recorded.
    Done,
    /// It failed; nothing of it is left over.
    Failed(String),
    /// Nothing of it was tried.
    NotTried,
    /// A part of it is done and recorded; running again continues.
    Unfinished(String),
    /// Whether it happened isn't known; the journal holds it open, and the next run settles it.
    Unsettled(String),
}

/// How an apply ended.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What was done.
    pub done: Summary,
    /// What wasn't, by index of the plan's changes.
    pub undone: Vec<(TaskId, TaskEnd)>,
    /// Whether it was stopped.
    pub stopped: bool,
}

impl Outcome {
    /// Whether everything was done.
    pub fn is_complete(&self) -> bool {
        self.undone.is_empty()
    }
}

/// A part of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An instance is made.
    Create,
    /// One is changed in place.
    Update,
    /// One is deleted.
    Delete,
    /// The record alone changes.
    Record,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Waiting,
    Intending,
    /// The intent is stored; waits for its turn.
    Ready,
    Calling,
    /// Waits before another try.
    BackingOff,
    Finding,
    Describing,
    Settling,
    Ended(TaskEnd),
}

struct Task {
    steps: VecDeque<Step>,
    phase: Phase,
    intent: Option<IntentId>,
    attempt: u32,
    tries: u32,
    polls: u32,
    /// A try's answer was lost: the call may have had its effect.
    ambiguous: bool,
    /// Something of it is done and recorded.
    touched: bool,
    /// Where it ends once what is being stored is stored.
    pending_end: Option<TaskEnd>,
    /// The step is begun once more when what is being stored is stored: with the next token.
    again: bool,
    created: Option<Observation>,
    started_at: Timestamp,
    provider_id: Option<String>,
    group: usize,
}

struct Group {
    after: Vec<usize>,
    parallel: VecDeque<TaskId>,
    serial: VecDeque<TaskId>,
    active: usize,
    stopped: bool,
}

impl Group {
    fn is_over(&self) -> bool {
        self.active == 0 && (self.stopped || self.parallel.is_empty() && self.serial.is_empty())
    }
}

/// An apply under way.
pub struct Engine<'p> {
    plan: &'p Plan,
    limits: Limits,
    tasks: Vec<Task>,
    groups: Vec<Group>,
    ready: VecDeque<TaskId>,
    timers: BinaryHeap<Reverse<(Timestamp, TaskId)>>,
    calling: usize,
    active: usize,
    next_create: Timestamp,
    entropy: u64,
    stopping: bool,
}

impl<'p> Engine<'p> {
    /// An engine for a plan; `seed` makes the jitter of its waits.
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
                // What is needed goes last when everything goes.
                if plan.mode == Mode::Destroy {
                    groups[*before].after.push(index);
                } else {
                    groups[index].after.push(*before);
                }
            }
        }
        let mut tasks = Vec::with_capacity(plan.changes.len());
        for (id, change) in plan.changes.iter().enumerate() {
            let group = indices
                .get(change.address.group.as_str())
                .copied()
                .unwrap_or_default();
            if change.action.is_replace() {
                groups[group].serial.push_back(id);
            } else {
                groups[group].parallel.push_back(id);
            }
            tasks.push(Task::new(change, group));
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
            next_create: Timestamp(i64::MIN),
            entropy: seed | 1,
            stopping: false,
        }
    }

    /// Takes an event and says what to do next.
    pub fn step(&mut self, event: Event, now: Timestamp) -> Vec<Command> {
        let mut commands = Vec::new();
        match event {
            Event::Start | Event::Tick => {}
            Event::Stored { task, intent } => self.stored(task, intent, now, &mut commands),
            Event::Called { task, result } => self.called(task, *result, now, &mut commands),
            Event::Stop => self.stop(&mut commands),
        }
        self.wake(now);
        self.start_tasks(now, &mut commands);
        self.start_calls(now, &mut commands);
        commands
    }

    /// When [`Event::Tick`] is due, if nothing else happens first.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let throttled = (!self.ready.is_empty()
            && self.calling < self.limits.parallelism
            && self.next_create > now)
            .then_some(self.next_create);
        timer.into_iter().chain(throttled).min()
    }

    /// Whether nothing is under way and nothing more will be.
    pub fn is_over(&self) -> bool {
        self.active == 0
            && self
                .groups
                .iter()
                .all(|group| group.is_over() || self.is_blocked(group))
    }

    fn is_blocked(&self, group: &Group) -> bool {
        group.active == 0
            && (self.stopping
                || group.after.iter().any(|before| {
                    let before = &self.groups[*before];
                    before.stopped || self.is_blocked(before)
                }))
    }

    /// How it ended; to be asked once it is over.
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
            let open = self.groups[index].after.iter().all(|before| {
                let before = &self.groups[*before];
                before.is_over() && !before.stopped
            });
            while open && self.active < window && !self.groups[index].stopped {
                let group = &mut self.groups[index];
                let next = match group.parallel.pop_front() {
                    Some(task) => task,
                    // Replacements come one at a time, when everything else of the group is done.
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

    /// Begins the first of a task's steps: stores its intent, or the change of the record.
    fn begin_step(&mut self, id: TaskId, now: Timestamp, commands: &mut Vec<Command>) {
        let change = &self.plan.changes[id];
        let Some(step) = self.tasks[id].steps.front().copied() else {
            self.end(id, TaskEnd::Done, commands);
            return;
        };
        self.tasks[id].tries = 0;
        self.tasks[id].ambiguous = false;
        if self.tasks[id].attempt == 0 {
            self.tasks[id].started_at = now;
            commands.push(Command::Tell(Progress::Started { task: id, step }));
        }
        let operation = match step {
            Step::Record => {
                self.tasks[id].phase = Phase::Settling;
                let settlement = settle_record(change, now);
                commands.push(Command::Store(
                    id,
                    StoreOperation::Settle(Box::new(settlement)),
                ));
                return;
            }
            Step::Create | Step::Update | Step::Delete => self.intend(id, step),
        };
        self.tasks[id].phase = Phase::Intending;
        commands.push(Command::Store(id, operation));
    }

    fn intend(&self, id: TaskId, step: Step) -> StoreOperation {
        let change = &self.plan.changes[id];
        let attempt = self.tasks[id].attempt;
        let address = &change.address;
        let (operation, side, token, request, spec) = match step {
            Step::Create => {
                let side = change.after.as_deref().expect("a create has an after");
                let request = requests::create(self.plan, address, side, attempt);
                let replaced = change
                    .before
                    .as_deref()
                    .map(|before| before.instance_id.to_string());
                let intent = CreateIntent {
                    side: side.clone(),
                    deposes: replaced
                        .clone()
                        .filter(|_| change.action == Action::CreateThenDelete),
                    forgets: replaced.filter(|_| change.action == Action::Create),
                    deferred: change.deferred.clone(),
                    request,
                };
                let token = intent.request.token.clone();
                let spec = Some((side.digest, side.spec.to_bytes()));
                (
                    Operation::Create,
                    side,
                    token,
                    serde_json::to_vec(&intent),
                    spec,
                )
            }
            Step::Update => {
                let side = change.after.as_deref().expect("an update has an after");
                let request = requests::update(self.plan, change, side, attempt);
                let token = request.token.clone();
                let spec = Some((side.digest, side.spec.to_bytes()));
                (
                    Operation::Update,
                    side,
                    token,
                    serde_json::to_vec(&request),
                    spec,
                )
            }
            Step::Delete | Step::Record => {
                let side = change.before.as_deref().expect("a deletion has a before");
                let request = requests::delete(self.plan, change, side);
                let token = request.token.clone();
                (
                    Operation::Delete,
                    side,
                    token,
                    serde_json::to_vec(&request),
                    None,
                )
            }
        };
        StoreOperation::Intend {
            intent: Box::new(NewIntent {
                address: address.to_string(),
                group: address.group.shared(),
                slot: address.slot,
                operation,
                instance_id: side.instance_id.to_string(),
                provider_id: side.provider_id.clone(),
                generation: side.generation,
                attempt,
                token,
                spec: spec.as_ref().map(|(digest, _)| *digest),
                request: request.expect("a request's keys are strings"),
                apply_id: None,
            }),
            spec,
        }
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
                if let Some(step) = self.tasks[id].steps.pop_front() {
                    let task = &self.tasks[id];
                    commands.push(Command::Tell(Progress::Completed {
                        task: id,
                        step,
                        provider_id: task.provider_id.clone(),
                        elapsed: now.since(task.started_at),
                    }));
                }
                if self.tasks[id].steps.is_empty() {
                    self.end(id, TaskEnd::Done, commands);
                } else if self.stopping {
                    let why = "stopped before its predecessor was deleted".to_owned();
                    self.end(id, TaskEnd::Unfinished(why), commands);
                } else {
                    self.begin_step(id, now, commands);
                }
            }
            _ => {}
        }
    }

    /// Starts as many calls as may be under way.
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
            self.tasks[id].tries += 1;
            self.tasks[id].phase = Phase::Calling;
            commands.push(Command::Call(id, self.call_of(id)));
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
                let side = after.expect("a create has an after");
                let request = requests::create(self.plan, &change.address, side, attempt);
                Call::Create(Box::new(request))
            }
            Some(Step::Update) => {
                let side = after.expect("an update has an after");
                Call::Update(Box::new(requests::update(self.plan, change, side, attempt)))
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
        match (&self.tasks[id].phase, result) {
            (Phase::Finding, Ok(None)) => self.next_attempt(id, commands),
            (Phase::Finding | Phase::Describing, Ok(Some(found))) => {
                self.created(id, found, now, commands);
            }
            // What was created is known already; only its addresses are missing.
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

    fn call_failed(
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
            (Some(Step::Delete), CloudErrorKind::NotFound) => self.settle_delete(id, commands),
            (Some(Step::Create), CloudErrorKind::TokenMismatch) => {
                let change = &self.plan.changes[id];
                let side = change.after.as_deref().expect("a create has an after");
                self.tasks[id].phase = Phase::Finding;
                self.calling += 1;
                let instance_id = side.instance_id.to_string();
                commands.push(Command::Call(id, Call::Find { instance_id }));
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
            (Some(Step::Create), _) if self.tasks[id].ambiguous => {
                self.leave_open(id, error.to_string(), commands);
            }
            _ => self.settle_failure(id, error.to_string(), commands),
        }
    }

    /// Half of the doubled wait, and a random part of the other half, so that many don't come back
    /// at once.
    fn backoff(&mut self, tries: u32) -> Duration {
        // xorshift64*: a few bits of jitter need no better source.
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

    fn wake(&mut self, now: Timestamp) {
        while let Some(Reverse((at, id))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            if self.tasks[id].phase == Phase::BackingOff {
                // Not `Ready`: a further try of a create isn't held back by its rate limit.
                self.ready.push_back(id);
            }
        }
    }

    /// An instance was created (or found to have been). Waits for addresses that files need, then
    /// records it.
    fn created(
        &mut self,
        id: TaskId,
        observation: Observation,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        let change = &self.plan.changes[id];
        self.tasks[id].provider_id = Some(observation.provider_id.clone());
        let waits = change.deferred.is_some() && observation.ip4.is_none();
        if waits && self.tasks[id].polls < ADDRESS_POLLS && !self.stopping {
            self.tasks[id].polls += 1;
            self.tasks[id].phase = Phase::Describing;
            self.calling += 1;
            let provider_id = observation.provider_id.clone();
            self.tasks[id].created = Some(observation);
            commands.push(Command::Call(id, Call::Describe { provider_id }));
            return;
        }
        let planned = change.after.as_deref().expect("a create has an after");
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
                Some(&observation),
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

    fn settle_update(
        &mut self,
        id: TaskId,
        observation: Option<&Observation>,
        now: Timestamp,
        commands: &mut Vec<Command>,
    ) {
        let change = &self.plan.changes[id];
        let side = change.after.as_deref().expect("an update has an after");
        self.tasks[id].provider_id.clone_from(&side.provider_id);
        let settlement = Settlement {
            specs: vec![(side.digest, side.spec.to_bytes())],
            puts: vec![requests::record(&change.address, side, observation, now)],
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
    }

    fn settle_delete(&mut self, id: TaskId, commands: &mut Vec<Command>) {
        let change = &self.plan.changes[id];
        let side = change.before.as_deref().expect("a deletion has a before");
        self.tasks[id].provider_id.clone_from(&side.provider_id);
        let settlement = Settlement {
            removes: vec![side.instance_id.to_string()],
            history: (change.action == Action::Delete).then(|| history(change, None, None, "done")),
            ..Settlement::default()
        };
        self.settle(id, Ending::Done, settlement, commands);
        if change.action == Action::Delete && change.deposed.is_none() {
            commands.push(Command::Unexport(change.address.clone()));
        }
    }

    fn settle(
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

    fn settle_failure(&mut self, id: TaskId, error: String, commands: &mut Vec<Command>) {
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

    /// Closes an intent that was stored and not acted on.
    fn abandon(&mut self, id: TaskId, commands: &mut Vec<Command>) {
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

    /// Ends a task whose effect isn't known; its intent stays open.
    fn leave_open(&mut self, id: TaskId, error: String, commands: &mut Vec<Command>) {
        self.end(id, TaskEnd::Unsettled(error), commands);
    }

    /// The token was used up: tries with the next one.
    fn next_attempt(&mut self, id: TaskId, commands: &mut Vec<Command>) {
        if self.tasks[id].attempt + 1 >= ATTEMPTS {
            let error = "its token is used up and no instance carries its id".to_owned();
            self.leave_open(id, error, commands);
            return;
        }
        self.tasks[id].attempt += 1;
        self.tasks[id].again = true;
        self.settle(id, Ending::Abandoned, Settlement::default(), commands);
    }

    fn end(&mut self, id: TaskId, end: TaskEnd, commands: &mut Vec<Command>) {
        let task = &mut self.tasks[id];
        let group = &mut self.groups[task.group];
        group.active -= 1;
        self.active -= 1;
        match &end {
            TaskEnd::Failed(error) | TaskEnd::Unfinished(error) | TaskEnd::Unsettled(error) => {
                // The first failure stops the group.
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
    }

    /// Lets calls under way end, and gives up what only waits.
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
            if self.tasks[id].ambiguous && self.tasks[id].steps.front() == Some(&Step::Create) {
                self.leave_open(
                    id,
                    "stopped before its outcome was known".to_owned(),
                    commands,
                );
            } else {
                self.abandon(id, commands);
            }
        }
    }
}

impl Task {
    fn new(change: &Change, group: usize) -> Self {
        let steps: &[Step] = match change.action {
            Action::Create => &[Step::Create],
            Action::Update => &[Step::Update],
            Action::CreateThenDelete => &[Step::Create, Step::Delete],
            Action::DeleteThenCreate => &[Step::Delete, Step::Create],
            Action::Delete => &[Step::Delete],
            Action::Adopt | Action::Forget => &[Step::Record],
            Action::NoOp => &[],
        };
        Self {
            steps: steps.iter().copied().collect(),
            phase: Phase::Waiting,
            intent: None,
            attempt: 0,
            tries: 0,
            polls: 0,
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

/// A change of nothing but the record.
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
    after: Option<&Side>,
    provider_id: Option<&str>,
    result: &str,
) -> HistoryItem {
    let ids = |side: Option<&Side>, provider_id: Option<String>| HistoryIds {
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

/// An action's name in history and messages.
pub fn action_name(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "update",
        Action::CreateThenDelete | Action::DeleteThenCreate => "replace",
        Action::Delete => "delete",
        Action::Adopt => "adopt",
        Action::Forget => "forget",
        Action::NoOp => "no-op",
    }
}
