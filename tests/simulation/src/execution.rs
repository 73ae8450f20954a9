//! The engine with its commands carried out one at a time, in any order that threads could bring
//! about.

use std::collections::BTreeSet;
use std::time::Duration;

use nstance::apply::driver::ask;
use nstance::apply::engine::{Call, Command, Engine, Event, Limits, Outcome, TaskId};
use nstance::apply::journal::{self, StoreOperation};
use nstance::clock::{Clock as _, Timestamp};
use nstance::plan::change::Plan;
use nstance::provider::{CloudError, Observation};
use nstance_state::{ApplyId, SqliteStore};

use crate::chance::Chance;
use crate::person::Person;
use crate::run::{End, owner};
use crate::watch::lock;

pub(crate) struct Execution<'a> {
    person: &'a Person<'a>,
    store: &'a mut SqliteStore,
    apply: ApplyId,
    engine: Engine<'a>,
    limits: Limits,
    chance: Chance,
    writes: Vec<(TaskId, StoreOperation)>,
    answers: Vec<(TaskId, Result<Option<Observation>, CloudError>)>,
    /// Tokens that creates went out with, and when the last new one did.
    tokens: BTreeSet<String>,
    created_at: Option<Timestamp>,
}

impl<'a> Execution<'a> {
    pub(crate) fn new(
        person: &'a Person<'a>,
        plan: &'a Plan,
        store: &'a mut SqliteStore,
        apply: ApplyId,
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
            apply,
            engine: Engine::new(plan, limits, chance.next()),
            limits,
            chance,
            writes: Vec::new(),
            answers: Vec::new(),
            tokens: BTreeSet::new(),
            created_at: None,
        }
    }

    /// Runs to the end; the error is an end before that.
    pub(crate) fn run(mut self) -> Result<Outcome, End> {
        let clock = &*self.person.world.clock;
        let mut event = Some(Event::Start);
        let mut stopped = false;
        for step in 0.. {
            *lock(&self.person.after.steps) = step;
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
            choices.extend((!self.writes.is_empty()).then_some(0));
            choices.extend((calls > 0).then_some(1));
            choices.extend((!self.answers.is_empty()).then_some(2));
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
                clock.sleep(wake.since(now));
                event = Some(Event::Tick);
                continue;
            }
            clock.sleep(Duration::from_millis(self.chance.below(200) as u64));
            match self.chance.one_of(&choices) {
                0 => self.write()?,
                1 => self.call(),
                _ => {
                    let chosen = self.chance.below(self.answers.len());
                    let (task, result) = self.answers.swap_remove(chosen);
                    let result = Box::new(result);
                    event = Some(Event::Called { task, result });
                }
            }
        }
        unreachable!("a run ends")
    }

    fn step(&mut self, event: Event) {
        let now = self.person.world.clock.now();
        for command in self.engine.step(event, now) {
            match command {
                Command::Store(task, operation) => self.writes.push((task, operation)),
                Command::Call(task, call) => {
                    if let Call::Create(request) = &call {
                        self.keeps_distance(&request.token, now);
                    }
                    lock(&self.person.after.in_flight).push((task, call));
                }
                Command::Tell(progress) => self.person.tell(&progress),
                // Its fleets read no nonces.
                Command::Export(..) | Command::Unexport(_) | Command::MakeNonce(..) => {}
            }
        }
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
        let ids = journal::commit(self.store, now, Some(self.apply), wave, injected_fault)
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
        let result = ask(self.person.cloud, clock, &owner(), call, injected_fault);
        self.answers.push((task, result));
    }
}
