//! The engine with its commands carried out one at a time, in any order that threads could bring
//! about.

use std::collections::BTreeSet;
use std::time::Duration;

use nstance::apply::availability::survey;
use nstance::apply::driver::{ask, requests};
use nstance::apply::engine::{
    Answer, Call, Command, Engine, Event, Limits, Note, Outcome, Starts, SurveyRequest, TaskId,
};
use nstance::apply::journal::{self, StoreOperation};
use nstance::apply::rollout_record::Begun;
use nstance::clock::{Clock as _, Timestamp};
use nstance::plan::change::Plan;
use nstance::provider::{CloudError, CloudErrorKind};
use nstance_state::{Intent, NewRequest, Operation, Store, Write};

use crate::chance::Chance;
use crate::person::Person;
use crate::promise::{is_balanced, registered};
use crate::run::{End, owner};
use crate::watch::lock;
use crate::world::Broken;

/// The answer to a call.
struct Answered {
    task: TaskId,
    what: &'static str,
    /// The instance that was looked at.
    subject: String,
    result: Result<Answer, CloudError>,
}

/// No run takes more.
const MOST_STEPS: usize = 50_000;

pub(crate) struct Execution<'a> {
    person: &'a Person<'a>,
    store: &'a mut dyn Store,
    begun: &'a Begun,
    engine: Engine<'a>,
    limits: Limits,
    chance: Chance,
    writes: Vec<(TaskId, StoreOperation)>,
    notes: Vec<Note>,
    surveys: Vec<(usize, SurveyRequest)>,
    answers: Vec<Answered>,
    /// Tokens that creates went out with, and when the last new one did.
    tokens: BTreeSet<String>,
    created_at: Option<Timestamp>,
    /// When requests were last read.
    asked_at: Option<Timestamp>,
    /// How many of the course's requests were made.
    asked: usize,
    /// Who meddles, and when.
    fate: Chance,
    plan: &'a Plan,
}

impl<'a> Execution<'a> {
    pub(crate) fn new(
        person: &'a Person<'a>,
        plan: &'a Plan,
        store: &'a mut dyn Store,
        begun: &'a Begun,
        starts: &Starts,
    ) -> Self {
        let mut chance = Chance::new(person.course.seed);
        let limits = Limits {
            parallelism: 1 + chance.below(3),
            create_interval: Duration::from_millis(chance.below(2) as u64 * 700),
            tries: 3,
            injected_fault: person.course.injected_fault,
            ..Limits::default()
        };
        Self {
            person,
            store,
            begun,
            engine: Engine::new(plan, limits, chance.next(), starts),
            limits,
            chance,
            writes: Vec::new(),
            notes: Vec::new(),
            surveys: Vec::new(),
            answers: Vec::new(),
            tokens: BTreeSet::new(),
            created_at: None,
            asked_at: None,
            asked: 0,
            fate: Chance::new(person.course.seed ^ 0x00fa_7e00),
            plan,
        }
    }

    /// Runs to the end; the error is an end before that.
    pub(crate) fn run(mut self) -> Result<Outcome, End> {
        let clock = &*self.person.world.clock;
        self.ask(0)?;
        let mut event = Some(Event::Start);
        let mut stopped = false;
        for step in 0.. {
            *lock(&self.person.after.steps) = step;
            if step > MOST_STEPS {
                let endless = format!("no end after {step} steps");
                self.person.fuse.break_off(endless);
                return Err(End::GaveUp);
            }
            self.meddle();
            self.ask(step)?;
            let stops = !stopped && self.person.course.stops_after.is_some_and(|at| step >= at);
            if stops {
                stopped = true;
                self.step(Event::Stop);
            }
            if let Some(event) = event.take() {
                self.step(event);
            }
            let calls = lock(&self.person.after.in_flight).len();
            if calls + self.answers.len() > self.limits.parallelism {
                self.person.fuse.break_off(format!(
                    "{calls} calls and {} answers at once, {} allowed",
                    self.answers.len(),
                    self.limits.parallelism
                ));
                return Err(End::GaveUp);
            }
            let mut choices = Vec::new();
            let writes = !self.writes.is_empty() || !self.notes.is_empty();
            choices.extend(writes.then_some(0));
            choices.extend((calls > 0).then_some(1));
            choices.extend((!self.answers.is_empty()).then_some(2));
            choices.extend((!self.surveys.is_empty()).then_some(3));
            if choices.is_empty() {
                if self.engine.is_over() {
                    let outcome = self.engine.outcome();
                    self.person.tell(&outcome);
                    return Ok(outcome);
                }
                let now = clock.now();
                let Some(wake) = self.engine.next_wake(now) else {
                    let stuck = "the engine waits for nothing".to_owned();
                    self.person.fuse.break_off(stuck);
                    return Err(End::GaveUp);
                };
                let wait = wake.since(now);
                let asks = self.asked < self.person.course.asks.len();
                clock.sleep(if asks {
                    wait.min(Duration::from_secs(1))
                } else {
                    wait
                });
                event = Some(Event::Tick);
                continue;
            }
            clock.sleep(Duration::from_millis(self.chance.below(200) as u64));
            match self.chance.one_of(&choices) {
                0 => self.write()?,
                1 => self.call(),
                3 => {
                    let chosen = self.chance.below(self.surveys.len());
                    let (group, request) = self.surveys.swap_remove(chosen);
                    self.person.fuse.pass();
                    // Handled at once, so that what it saw is what there is.
                    let result = survey(self.person.cloud.cloud, &request);
                    self.step(Event::Surveyed { group, result });
                }
                _ => {
                    let chosen = self.chance.below(self.answers.len());
                    let answered = self.answers.swap_remove(chosen);
                    self.learn(&answered);
                    let Answered { task, result, .. } = answered;
                    let result = Box::new(result);
                    event = Some(Event::Called { task, result });
                }
            }
        }
        unreachable!("a run ends")
    }

    fn step(&mut self, event: Event) {
        let now = self.person.world.clock.now();
        let surveyed = match &event {
            Event::Surveyed { group, .. } => Some(self.plan.groups[*group].name.clone()),
            _ => None,
        };
        if let Event::Asked { group, request } = &event {
            lock(&self.person.after.promise).asked(*request, group.as_deref());
        }
        let commands = self.engine.step(event, now);
        if let Some(name) = surveyed {
            let let_go: Vec<String> = commands.iter().filter_map(let_go).collect();
            let (world, cloud) = (self.person.world, self.person.cloud.cloud);
            lock(&self.person.after.promise).surveyed(&name, &let_go, world, cloud, self.store);
        }
        for command in commands {
            if let Command::Store(task, _) | Command::Call(task, _) = &command
                && let Err(broken) = lock(&self.person.after.promise).told(*task)
            {
                self.person.fuse.break_off(broken);
            }
            match command {
                Command::Store(task, operation) => self.writes.push((task, operation)),
                Command::Call(task, call) => {
                    if let Call::Create(request) = &call {
                        self.keeps_distance(&request.token, now);
                    }
                    lock(&self.person.after.in_flight).push((task, call));
                }
                Command::Survey(group, request) => self.surveys.push((group, request)),
                Command::Note(note) => self.notes.push(note),
                Command::Tell(progress) => self.person.tell(&progress),
                // Its fleets read no nonces and have no drain commands.
                Command::Export(..)
                | Command::Unexport(_)
                | Command::MakeNonce(..)
                | Command::Drain(..) => {}
            }
        }
    }

    /// Somebody asks something of the rollout from elsewhere; what was asked is read as the command
    /// line does.
    fn ask(&mut self, step: usize) -> Result<(), End> {
        let Person { course, world, .. } = self.person;
        let asks = course.asks.get(self.asked..).unwrap_or_default();
        for (_, request) in asks.iter().take_while(|(at, _)| *at <= step) {
            self.asked += 1;
            let written = world.backend().open_to_write(None).and_then(|mut other| {
                let asked = NewRequest {
                    group: None,
                    kind: request.as_str().to_owned(),
                    who: "else".to_owned(),
                };
                other.commit(world.clock.now().into(), vec![Write::AddRequest(asked)])
            });
            written.map_err(|error| self.person.failed(&error))?;
        }
        let now = world.clock.now();
        let is_due = |at| now.since(at) >= Duration::from_secs(1);
        if self.begun.rollout.is_none() || !self.asked_at.is_none_or(is_due) {
            return Ok(());
        }
        self.asked_at = Some(now);
        let asked = requests(self.store, now).map_err(|error| self.person.failed(&error))?;
        for event in asked {
            self.step(event);
        }
        Ok(())
    }

    /// Creations come no faster than allowed; a further try of one isn't held back.
    fn keeps_distance(&mut self, token: &str, now: Timestamp) {
        if !self.tokens.insert(token.to_owned()) {
            return;
        }
        let is_early = self
            .created_at
            .is_some_and(|last| now.since(last) < self.limits.create_interval);
        if is_early && self.limits.injected_fault == nstance::fault_injection::InjectedFault::None {
            let early = format!("a creation at {now:?}, one at {:?}", self.created_at);
            self.person.fuse.break_off(early);
        }
        self.created_at = Some(now);
    }

    /// Commits the wave as far as it has come.
    fn write(&mut self) -> Result<(), End> {
        let (tasks, wave): (Vec<_>, Vec<_>) = std::mem::take(&mut self.writes).into_iter().unzip();
        let now = self.person.world.clock.now();
        self.person.fuse.point();
        let injected_fault = self.limits.injected_fault;
        let apply = self.begun.apply;
        let notes = std::mem::take(&mut self.notes);
        let notes = self
            .begun
            .rollout
            .map(|rollout| journal::notes(rollout, notes))
            .unwrap_or_default();
        let ids = journal::commit(self.store, now, apply, wave, notes, injected_fault)
            .map_err(|error| self.person.failed(&error))?;
        self.person.fuse.point();
        for (task, intent) in tasks.into_iter().zip(ids) {
            self.step(Event::Stored { task, intent });
        }
        Ok(())
    }

    /// Carries one of the calls out; its answer is on its way.
    fn call(&mut self) {
        let (task, call) = {
            let mut in_flight = lock(&self.person.after.in_flight);
            let chosen = self.chance.below(in_flight.len());
            in_flight.swap_remove(chosen)
        };
        let clock = &*self.person.world.clock;
        let injected_fault = self.limits.injected_fault;
        if let Err(broken) = self.keeps_promises(task, &call) {
            self.person.fuse.break_off(broken);
        }
        let what = name_of(&call);
        let subject = match &call {
            Call::Look(request) => request.subject.provider_id.clone(),
            _ => String::new(),
        };
        let result = ask(self.person.cloud, clock, &owner(), call, injected_fault);
        self.answers.push(Answered {
            task,
            what,
            subject,
            result,
        });
    }

    /// What a call that is about to be sent must not break.
    fn keeps_promises(&self, task: TaskId, call: &Call) -> Result<(), Broken> {
        let Person { world, after, .. } = self.person;
        let cloud = self.person.cloud.cloud;
        let mut promise = lock(&after.promise);
        let operation = match call {
            Call::Create(request) => {
                promise.creates(request, world)?;
                Operation::Create
            }
            Call::Update(request) => {
                promise.updates(request, world, cloud, self.store)?;
                Operation::Update
            }
            Call::Delete(request) => {
                let id = &request.provider_id;
                promise.departs(id, world, cloud, self.store)?;
                // One that isn't recorded as registered is deregistered by its deletion.
                let snapshot = self.store.snapshot();
                let records = snapshot.into_iter().flat_map(|snapshot| snapshot.records);
                let is_recorded = records
                    .filter(|record| record.provider_id == *id)
                    .any(|record| is_balanced(self.store, &record));
                if is_recorded && !registered(world, id).is_empty() {
                    return Err(format!("{id} is deleted while it is registered"));
                }
                Operation::Delete
            }
            Call::Register(request) => {
                promise.registers(&request.provider_id, world)?;
                Operation::Register
            }
            Call::Deregister(request) => {
                promise.departs(&request.provider_id, world, cloud, self.store)?;
                Operation::Deregister
            }
            Call::Find { .. } | Call::Describe { .. } | Call::Look(_) | Call::Targets(_) => {
                return Ok(());
            }
        };
        promise.begins(task, world.clock.now())?;
        let address = self.plan.changes[task].address.to_string();
        let intents = match self.store.open_intents() {
            Ok(intents) => intents,
            Err(_) if world.has_trouble() => return Ok(()),
            Err(error) => return Err(format!("the journal can't be read: {error}")),
        };
        let is_intended =
            |intent: &Intent| intent.operation == operation && intent.address == address;
        if intents.iter().any(is_intended) {
            Ok(())
        } else {
            Err(format!("{operation:?} of {address} without an intent"))
        }
    }

    /// Notes what the cloud answered.
    fn learn(&self, answered: &Answered) {
        let Answered {
            task,
            what,
            subject,
            result,
        } = answered;
        let (task, what) = (*task, *what);
        let now = self.person.world.clock.now();
        let mut promise = lock(&self.person.after.promise);
        match result {
            Ok(Answer::Looked(look)) => {
                promise.saw(look.observation.as_slice());
                if look.healthy.is_ok() {
                    promise.passed(subject, now);
                }
            }
            Ok(Answer::Instance(seen)) => {
                promise.saw(seen.as_slice());
                if what != "find" || seen.is_some() {
                    promise.did(task, if what == "find" { "create" } else { what }, now);
                }
            }
            Err(error) if error.kind == CloudErrorKind::NotFound => {
                promise.did(task, what, now);
            }
            Ok(Answer::Targets(_)) | Err(_) => {}
        }
    }

    /// Somebody changes an instance behind our back.
    fn meddle(&mut self) {
        if self.person.course.meddling == 0 || !self.fate.happens(self.person.course.meddling) {
            return;
        }
        let live = self.person.world.live();
        if live.is_empty() {
            return;
        }
        let id = &live[self.fate.below(live.len())].provider_id;
        let mut admin = self.person.world.admin();
        match self.fate.below(8) {
            0 => {
                drop(admin.delete(id).unwrap());
                self.person.world.touch();
            }
            1..4 => drop(admin.fail(id).unwrap()),
            _ => drop(admin.recover(id).unwrap()),
        }
    }
}

/// The instance that a survey let go, by what is about to be done with it.
fn let_go(command: &Command) -> Option<String> {
    match command {
        Command::Store(_, StoreOperation::Intend { intent, .. }) => match intent.operation {
            Operation::Create | Operation::Register => None,
            _ => intent.provider_id.clone(),
        },
        _ => None,
    }
}

fn name_of(call: &Call) -> &'static str {
    match call {
        Call::Create(_) => "create",
        Call::Update(_) => "update",
        Call::Delete(_) => "delete",
        Call::Find { .. } => "find",
        Call::Describe { .. } => "describe",
        Call::Look(_) => "look",
        Call::Register(_) => "register",
        Call::Deregister(_) => "deregister",
        Call::Targets(_) => "targets",
    }
}
