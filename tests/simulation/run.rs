//! One run of `nstance apply`, in one thread and a seeded order: recovery, plan, engine. It does
//! what the driver and the command line do, one thing at a time, and can die at any point.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use nstance::apply::driver::ask;
use nstance::apply::engine::{Call, Command, Engine, Event, Limits, Outcome, TaskId};
use nstance::apply::journal::{self, StoreOperation};
use nstance::apply::recover::recover;
use nstance::clock::Clock as _;
use nstance::config::model::ProviderKind;
use nstance::pipeline::{self, Request};
use nstance::plan::build::Options;
use nstance::plan::change::{Action, Mode, Plan};
use nstance::provider::rules::Rules;
use nstance::provider::{Cloud, CloudError, Observation, Owner};
use nstance_state::{ApplyStatus, IntentId, NewApply, SqliteStore, Store};

use crate::chance::Chance;
use crate::fleet::Fleet;
use crate::watch::{Fuse, WatchedClock, WatchedCloud, until_death};
use crate::world::{Broken, World};

/// A fault of nstance itself, put in to see that it is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// Asks the cloud without storing the intent.
    NoIntent,
    /// Tries again with another token.
    FreshToken,
    /// Takes an absence for the truth at once.
    NoWindow,
    /// Doesn't settle what an earlier run left open.
    NoRecovery,
    /// Doesn't record what came of a call.
    NoSettlement,
}

/// How a run goes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Course {
    pub(crate) seed: u64,
    pub(crate) mode: Mode,
    /// Replace these.
    pub(crate) replace: Vec<String>,
    /// Dies at that point.
    pub(crate) dies_at: Option<usize>,
    /// Gets Ctrl-C after that many steps.
    pub(crate) stops_after: Option<usize>,
    pub(crate) mutation: Option<Mutation>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum End {
    Died,
    /// Recovery or planning gave up on the cloud; nothing was done after it.
    GaveUp,
    /// Nothing was planned.
    Empty,
    Applied(Outcome),
}

/// A run that ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) end: End,
    /// How many points it passed where it could have died.
    pub(crate) points: usize,
    /// How many steps its engine took.
    pub(crate) steps: usize,
}

/// What a dying process leaves behind, and what the harness watches.
#[derive(Default)]
struct Afterlife {
    /// Requests on their way to the cloud.
    in_flight: Mutex<Vec<(TaskId, Call)>>,
    doomed: Mutex<BTreeSet<String>>,
    unplanned: Mutex<Vec<String>>,
    steps: Mutex<usize>,
    broken: Mutex<Option<Broken>>,
}

/// Runs `apply` once. What is true afterwards is for [`World::check`] to say.
pub(crate) fn apply(world: &World, fleet: &Fleet, course: &Course) -> Result<Ran, Broken> {
    let fuse = Fuse::new(course.dies_at);
    let after = Afterlife::default();
    let cloud = world.cloud();
    let watched = WatchedCloud {
        cloud: &cloud,
        fuse: &fuse,
        doomed: &after.doomed,
        unplanned: &after.unplanned,
        window: (course.mutation == Some(Mutation::NoWindow)).then_some(Duration::ZERO),
    };
    let life = Life {
        world,
        fleet,
        course,
        fuse: &fuse,
        cloud: &watched,
        after: &after,
    };
    let end = until_death(|| life.run()).unwrap_or(End::Died);
    if matches!(end, End::Died) {
        // What was on its way may still arrive.
        let mut chance = Chance::new(course.seed ^ 0xdead);
        for (_, call) in after.in_flight.lock().unwrap().drain(..) {
            if chance.happens(50) {
                let _ = ask(&cloud, &*world.clock, &owner(), call);
            }
        }
    }
    let unplanned = after.unplanned.lock().unwrap();
    if !unplanned.is_empty() {
        return Err(format!("deleted without a plan: {unplanned:?}"));
    }
    if let Some(broken) = after.broken.lock().unwrap().take() {
        return Err(broken);
    }
    let steps = *after.steps.lock().unwrap();
    Ok(Ran {
        end,
        points: fuse.passed(),
        steps,
    })
}

/// The plan that `plan` would show, with nothing done.
pub(crate) fn plan_of(world: &World, fleet: &Fleet, mode: Mode) -> Result<Plan, String> {
    let path = world.state_path();
    let mut store = path
        .exists()
        .then(|| SqliteStore::open(&path, None).unwrap());
    plan(
        world,
        fleet,
        &options(mode, &[]),
        store.as_mut(),
        &world.cloud(),
    )
}

fn options(mode: Mode, replace: &[String]) -> Options {
    Options {
        mode,
        replace: replace.iter().map(|text| text.parse().unwrap()).collect(),
        ..Options::default()
    }
}

pub(crate) fn owner() -> Owner {
    let identity = World::identity();
    Owner {
        cluster: identity.cluster,
        shard: identity.shard,
    }
}

fn plan(
    world: &World,
    fleet: &Fleet,
    options: &Options,
    store: Option<&mut SqliteStore>,
    cloud: &dyn Cloud,
) -> Result<Plan, String> {
    let loaded = fleet.load();
    let made = pipeline::plan(Request {
        config: loaded.config.as_ref().unwrap(),
        sources: &loaded.sources,
        directory: &loaded.directory,
        store: store.map(|store| store as &mut dyn Store),
        cloud: Some(cloud),
        observe: true,
        network: false,
        provider_name: "sim",
        identity: &World::identity(),
        rules: Rules::of(ProviderKind::Sim),
        clock: &*world.clock,
        refresh_images: false,
        options,
        progress: &mut |_| {},
    });
    match made {
        Ok(made) => {
            assert!(!made.plan.errored(), "{:?}", made.plan.left_out);
            Ok(made.plan)
        }
        Err(error) => Err(error.to_string()),
    }
}

struct Life<'a> {
    world: &'a World,
    fleet: &'a Fleet,
    course: &'a Course,
    fuse: &'a Fuse,
    cloud: &'a WatchedCloud<'a>,
    after: &'a Afterlife,
}

impl Life<'_> {
    fn has(&self, mutation: Mutation) -> bool {
        self.course.mutation == Some(mutation)
    }

    fn run(&self) -> End {
        let clock = &*self.world.clock;
        let path = self.world.state_path();
        let mut store = path
            .exists()
            .then(|| SqliteStore::open(&path, Some(&World::identity())).unwrap());
        if let Some(store) = store.as_mut().filter(|_| !self.has(Mutation::NoRecovery)) {
            let watched = WatchedClock {
                clock,
                fuse: self.fuse,
            };
            let wanted = |address: &_| self.fleet.wants(address);
            let settled = recover(store, self.cloud, &watched, &owner(), None, &wanted);
            self.fuse.point();
            if let Err(error) = settled {
                let error = error.to_string();
                if error.contains("state") {
                    self.break_off(format!("recovery: {error}"));
                }
                return End::GaveUp;
            }
        }
        let options = options(self.course.mode, &self.course.replace);
        let Ok(plan) = plan(self.world, self.fleet, &options, store.as_mut(), self.cloud) else {
            return End::GaveUp;
        };
        if !plan.summary.has_changes() {
            return End::Empty;
        }
        self.doom(&plan);
        self.fuse.point();
        let mut store = store.unwrap_or_else(|| {
            SqliteStore::create(&path, &plan.identity(), &plan.lineage, clock.now().into()).unwrap()
        });
        self.fuse.point();
        let apply = store
            .transaction(clock.now().into(), |transaction| {
                transaction.start_apply(NewApply {
                    who: "who".to_owned(),
                    host: "host".to_owned(),
                    pid: 1,
                    operation: "apply".to_owned(),
                    plan_digest: None,
                })
            })
            .unwrap();
        let outcome = Execution::new(self, &plan, &mut store, apply).run();
        let Some(outcome) = outcome else {
            return End::GaveUp;
        };
        self.fuse.point();
        store
            .transaction(clock.now().into(), |transaction| {
                transaction.finish_apply(apply, ApplyStatus::Succeeded, "{}")?;
                transaction.collect_garbage()
            })
            .unwrap();
        self.fuse.point();
        End::Applied(outcome)
    }

    /// Notes what the plan says may be deleted.
    fn doom(&self, plan: &Plan) {
        let going = plan
            .changes
            .iter()
            .filter(|change| change.action == Action::Delete || change.action.is_replace())
            .filter_map(|change| change.before.as_deref()?.provider_id.clone());
        self.after.doomed.lock().unwrap().extend(going);
    }

    fn break_off(&self, broken: Broken) {
        self.after.broken.lock().unwrap().get_or_insert(broken);
    }
}

/// The engine with its commands carried out one at a time, in any order that threads could bring
/// about.
struct Execution<'a> {
    life: &'a Life<'a>,
    store: &'a mut SqliteStore,
    apply: nstance_state::ApplyId,
    engine: Engine<'a>,
    parallelism: usize,
    chance: Chance,
    writes: Vec<(TaskId, StoreOperation)>,
    answers: Vec<(TaskId, Result<Option<Observation>, CloudError>)>,
    /// How often each task created, for a mutation.
    creates: Vec<usize>,
}

impl<'a> Execution<'a> {
    fn new(
        life: &'a Life<'a>,
        plan: &'a Plan,
        store: &'a mut SqliteStore,
        apply: nstance_state::ApplyId,
    ) -> Self {
        let mut chance = Chance::new(life.course.seed);
        let limits = Limits {
            parallelism: 1 + chance.below(3),
            create_interval: Duration::from_millis(chance.below(2) as u64 * 700),
            tries: 3,
            ..Limits::default()
        };
        Self {
            life,
            store,
            apply,
            engine: Engine::new(plan, limits, chance.next()),
            parallelism: limits.parallelism,
            chance,
            writes: Vec::new(),
            answers: Vec::new(),
            creates: vec![0; plan.changes.len()],
        }
    }

    /// `None`: something broke.
    fn run(mut self) -> Option<Outcome> {
        let clock = &*self.life.world.clock;
        let mut event = Some(Event::Start);
        let mut stopped = false;
        for step in 0.. {
            *self.life.after.steps.lock().unwrap() = step;
            let stops = !stopped && self.life.course.stops_after.is_some_and(|at| step >= at);
            if stops {
                stopped = true;
                self.step(Event::Stop);
            }
            if let Some(event) = event.take() {
                self.step(event);
            }
            let calls = self.life.after.in_flight.lock().unwrap().len();
            if calls + self.answers.len() > self.parallelism {
                self.life.break_off(format!(
                    "{calls} calls and {} answers at once, {} allowed",
                    self.answers.len(),
                    self.parallelism
                ));
                return None;
            }
            let mut choices = Vec::new();
            choices.extend((!self.writes.is_empty()).then_some(0));
            choices.extend((calls > 0).then_some(1));
            choices.extend((!self.answers.is_empty()).then_some(2));
            if choices.is_empty() {
                if self.engine.is_over() {
                    return Some(self.engine.outcome());
                }
                let now = clock.now();
                let Some(wake) = self.engine.next_wake(now) else {
                    let stuck = "the engine waits for nothing".to_owned();
                    self.life.break_off(stuck);
                    return None;
                };
                clock.sleep(wake.since(now));
                event = Some(Event::Tick);
                continue;
            }
            clock.sleep(Duration::from_millis(self.chance.below(200) as u64));
            match self.chance.one_of(&choices) {
                0 => self.write(),
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
        let now = self.life.world.clock.now();
        for command in self.engine.step(event, now) {
            match command {
                Command::Store(task, operation) => self.writes.push((task, operation)),
                Command::Call(task, call) => {
                    let mut in_flight = self.life.after.in_flight.lock().unwrap();
                    in_flight.push((task, call));
                }
                Command::Export(..) | Command::Unexport(_) | Command::Tell(_) => {}
            }
        }
    }

    /// Commits the wave as far as it has come.
    fn write(&mut self) {
        let wave = std::mem::take(&mut self.writes);
        let (mut tasks, mut operations) = (Vec::new(), Vec::new());
        let mut skipped = Vec::new();
        for (task, mut operation) in wave {
            let skips = match &mut operation {
                StoreOperation::Intend { .. } => self.life.has(Mutation::NoIntent),
                StoreOperation::Settle(settlement) => {
                    if self.life.has(Mutation::NoIntent) {
                        settlement.closes = None;
                    }
                    self.life.has(Mutation::NoSettlement)
                }
            };
            if skips {
                skipped.push(task);
            } else {
                tasks.push(task);
                operations.push(operation);
            }
        }
        let now = self.life.world.clock.now();
        self.life.fuse.point();
        let ids = match journal::commit(self.store, now, Some(self.apply), operations) {
            Ok(ids) => ids,
            Err(error) => {
                self.life.break_off(format!("the state refused: {error}"));
                Vec::new()
            }
        };
        self.life.fuse.point();
        for (task, intent) in tasks.into_iter().zip(ids) {
            self.step(Event::Stored { task, intent });
        }
        for task in skipped {
            let intent = Some(IntentId(0));
            self.step(Event::Stored { task, intent });
        }
    }

    /// Carries one of the calls out; its answer is on its way.
    fn call(&mut self) {
        let (task, mut call) = {
            let mut in_flight = self.life.after.in_flight.lock().unwrap();
            let chosen = self.chance.below(in_flight.len());
            in_flight.swap_remove(chosen)
        };
        if let Call::Create(request) = &mut call {
            self.creates[task] += 1;
            if self.life.has(Mutation::FreshToken) {
                request.token = format!("{}-{}", request.token, self.creates[task]);
            }
        }
        let clock = &*self.life.world.clock;
        let result = ask(self.life.cloud, clock, &owner(), call);
        self.answers.push((task, result));
    }
}
