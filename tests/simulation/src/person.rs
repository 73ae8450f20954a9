//! What `nstance apply` does, one thing at a time: the lock, recovery, a plan or a saved one, what
//! is allowed, then the engine. It can die at any point.
//!
//! The command line's own sequence is `cli::apply_shard`; this is its twin without words.

use std::collections::BTreeMap;
use std::time::Duration;

use nstance::apply::recover::{RecoverError, recover};
use nstance::apply::staleness::moved_on;
use nstance::clock::Clock;
use nstance::config::model::ProviderKind;
use nstance::fault_injection::InjectedFault;
use nstance::pipeline::{self, PlanError, Request};
use nstance::plan::change::{Action, Change, Mode, Plan};
use nstance::plan::inputs::Options;
use nstance::provider::Cloud;
use nstance::provider::rules::Rules;
use nstance_state::{
    ApplyStatus, Lock, LockInfo, NewApply, Operation, Snapshot, SqliteStore, StateError, Store,
};

use crate::execution::Execution;
use crate::fleet::{CANARY, Fleet};
use crate::promise::Promise;
use crate::run::{Afterlife, Course, End, SavedPlan, Task, owner};
use crate::watch::{Fuse, WatchedClock, WatchedCloud, lock};
use crate::world::World;

pub(crate) fn options(mode: Mode, replace: &[String]) -> Options {
    Options {
        mode,
        replace: replace.iter().map(|text| text.parse().unwrap()).collect(),
        ..Options::default()
    }
}

pub(crate) fn plan(
    fleet: &Fleet,
    options: &Options,
    store: Option<&mut SqliteStore>,
    cloud: &dyn Cloud,
    clock: &dyn Clock,
) -> Result<Plan, String> {
    let loaded = fleet.load();
    let config = loaded.config.as_ref().unwrap();
    let prepared = pipeline::prepare(
        config,
        &loaded.sources,
        &loaded.directory,
        false,
        |_| None,
        false,
    );
    let made = pipeline::plan(Request {
        config,
        sources: &loaded.sources,
        document: None,
        prepared: prepared.unwrap_or_else(|found| panic!("{found:?}")),
        store: store.map(|store| store as &mut dyn Store),
        cloud: Some(cloud),
        observe: true,
        running: None,
        provider_name: "sim",
        identity: &World::identity(),
        rules: Rules::of(ProviderKind::Sim),
        clock,
        refresh_images: false,
        options,
        progress: &mut |_| {},
    });
    match made {
        Ok(made) => {
            if made.plan.errored() && fleet.forbids() {
                return Err("its limits forbid the change".to_owned());
            }
            assert!(!made.plan.errored(), "{:?}", made.plan.left_out);
            Ok(made.plan)
        }
        // Another wrote meanwhile, which is said, and nothing is done.
        Err(PlanError::State(error @ StateError::Changed { .. })) => Err(error.to_string()),
        Err(PlanError::State(error)) => Err(format!("{STATE}{error}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Before what the state says of itself.
const STATE: &str = "the state: ";

/// Somebody who runs `apply`.
pub(crate) struct Person<'a> {
    pub(crate) world: &'a World,
    pub(crate) fleet: &'a Fleet,
    pub(crate) course: &'a Course,
    pub(crate) fuse: &'a Fuse<'a>,
    pub(crate) cloud: &'a WatchedCloud<'a>,
    pub(crate) after: &'a Afterlife,
}

impl Person<'_> {
    pub(crate) fn run(&self) -> End {
        match self.try_run() {
            Ok(end) | Err(end) => end,
        }
    }

    fn try_run(&self) -> Result<End, End> {
        let path = self.world.state_path();
        if matches!(self.course.task, Task::Plan) {
            let store = path
                .exists()
                .then(|| SqliteStore::open_read_only(&path, None));
            let mut store = store.transpose().map_err(|error| self.failed(&error))?;
            return Ok(End::Planned(Box::new(self.keep(store.as_mut())?)));
        }
        let _held = self.lock()?;
        let store = path
            .exists()
            .then(|| SqliteStore::open(&path, Some(&World::identity())));
        let mut store = store.transpose().map_err(|error| self.failed(&error))?;
        if let Some(store) = &mut store {
            self.unfence(store);
            self.recover(store)?;
        }
        let plan = match &self.course.task {
            Task::Follow(saved) => self.take_up(saved, store.as_ref())?,
            _ => self.plan(store.as_mut())?,
        };
        if !plan.summary.has_changes() {
            return Ok(End::Empty);
        }
        let (mode, injected_fault) = (plan.mode, self.course.injected_fault);
        let allowed = |_: &str| self.course.allow_delete;
        if plan
            .deletions
            .forbidden(mode, allowed, injected_fault)
            .is_some()
        {
            return Err(End::OverBudget);
        }
        self.grant(&plan);
        let (declared, is_saved) = match &self.course.task {
            Task::Follow(saved) => (&saved.fleet, true),
            _ => (self.fleet, false),
        };
        let there = self.world.live();
        let promise = Promise::of(&plan, declared, store.as_ref(), &there, is_saved);
        *lock(&self.after.promise) = promise;
        self.fuse.point();
        let clock = &*self.world.clock;
        let mut store = match store {
            Some(store) => store,
            None => SqliteStore::create(&path, &plan.identity(), &plan.lineage, clock.now().into())
                .map_err(|error| self.failed(&error))?,
        };
        self.unfence(&mut store);
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
            .map_err(|error| self.failed(&error))?;
        let outcome = Execution::new(self, &plan, &mut store, apply).run()?;
        self.fuse.point();
        let finished = store.transaction(clock.now().into(), |transaction| {
            transaction.finish_apply(apply, ApplyStatus::Succeeded, "{}")?;
            transaction.collect_garbage()
        });
        finished.map_err(|error| self.failed(&error))?;
        self.fuse.point();
        Ok(End::Applied(Box::new(outcome)))
    }

    fn unfence(&self, store: &mut SqliteStore) {
        if self.course.injected_fault == InjectedFault::NoLockNorFence {
            store.ignore_fence();
        }
    }

    /// The state failed: where its disk does, that is nobody's fault.
    pub(crate) fn failed(&self, error: &StateError) -> End {
        self.failed_with(&error.to_string())
    }

    fn failed_with(&self, error: &str) -> End {
        if !self.world.has_trouble() {
            self.fuse.break_off(format!("the state refused: {error}"));
        }
        End::DiskFailed
    }

    /// Takes the state's lock, as the command line does; a holder is waited for a few turns.
    fn lock(&self) -> Result<Option<Lock>, End> {
        if let InjectedFault::NoLock | InjectedFault::NoLockNorFence = self.course.injected_fault {
            return Ok(None);
        }
        let path = self.world.state_path();
        for tries in 0.. {
            let info = LockInfo {
                id: format!("{}-{tries}", self.course.seed),
                holder: "who".to_owned(),
                host: "host".to_owned(),
                pid: 1,
                operation: "apply".to_owned(),
                since: self.world.clock.now().into(),
            };
            match Lock::acquire(&path, info, Duration::ZERO) {
                Ok(lock) => return Ok(Some(lock)),
                Err(StateError::Locked { .. }) if tries < self.course.patience => {
                    self.world.clock.sleep(Duration::from_secs(1));
                    self.fuse.pass();
                }
                Err(StateError::Locked { .. }) => return Err(End::Locked),
                Err(error) => return Err(self.failed(&error)),
            }
        }
        unreachable!("patience ends")
    }

    fn recover(&self, store: &mut SqliteStore) -> Result<(), End> {
        let snapshot = store.snapshot().map_err(|error| self.failed(&error))?;
        let creates = snapshot.intents.iter();
        let creates = creates.filter(|intent| intent.operation == Operation::Create);
        lock(&self.after.leave)
            .born
            .extend(creates.map(|intent| intent.instance_id.clone()));
        let watched = WatchedClock {
            clock: &*self.world.clock,
            fuse: self.fuse,
        };
        let wanted = |address: &_| self.fleet.wants(address);
        let injected_fault = self.course.injected_fault;
        let settled = recover(
            store,
            self.cloud,
            &watched,
            &owner(),
            None,
            &wanted,
            injected_fault,
        );
        self.fuse.point();
        match settled {
            Ok(settled) => {
                self.tell(&settled);
                Ok(())
            }
            Err(RecoverError::Cloud { error, .. }) => {
                self.tell(&error);
                Err(End::GaveUp)
            }
            Err(error) => Err(self.failed_with(&error.to_string())),
        }
    }

    fn plan(&self, store: Option<&mut SqliteStore>) -> Result<Plan, End> {
        let options = options(self.course.mode, &self.course.replace);
        let clock = &*self.world.clock;
        let planned = plan(self.fleet, &options, store, self.cloud, clock).map(|mut plan| {
            if self.course.releases {
                let findings = plan.release(|name| self.fleet.is_opportunistic(name));
                assert!(!findings.has_errors());
            }
            plan
        });
        planned.map_err(|error| {
            self.tell(&error);
            match error.strip_prefix(STATE) {
                Some(error) => self.failed_with(error),
                None => End::GaveUp,
            }
        })
    }

    /// A plan to be saved, with what its rows are like.
    fn keep(&self, mut store: Option<&mut SqliteStore>) -> Result<SavedPlan, End> {
        let plan = self.plan(store.as_deref_mut())?;
        let snapshot = store.map(|store| store.snapshot()).transpose();
        let snapshot = snapshot.map_err(|error| self.failed(&error))?;
        // What was written while the plan was made is no row of it.
        let is_current = snapshot
            .as_ref()
            .is_none_or(|snapshot| snapshot.meta.serial == plan.serial);
        let rows = if is_current {
            rows_of(&plan, snapshot.as_ref())
        } else {
            Vec::new()
        };
        // Through a file's form, as a saved plan goes.
        let text = serde_json::to_vec(&plan).unwrap();
        let plan = serde_json::from_slice(&text).unwrap();
        let fleet = self.fleet.clone();
        Ok(SavedPlan { plan, fleet, rows })
    }

    /// A saved plan, if its rows are as they were.
    fn take_up(&self, saved: &SavedPlan, store: Option<&SqliteStore>) -> Result<Plan, End> {
        let snapshot = store.map(SqliteStore::snapshot).transpose();
        let snapshot = snapshot.map_err(|error| self.failed(&error))?;
        let clock = &*self.world.clock;
        let (plan, injected_fault) = (&saved.plan, self.course.injected_fault);
        match moved_on(plan, snapshot.as_ref(), self.cloud, clock, injected_fault) {
            Ok(moved) if moved.is_empty() => {}
            Ok(_) => return Err(End::Stale),
            Err(error) => {
                self.tell(&error);
                return Err(End::GaveUp);
            }
        }
        let now: BTreeMap<_, _> = rows_of(&saved.plan, snapshot.as_ref())
            .into_iter()
            .collect();
        for (name, row) in &saved.rows {
            if now.get(name) != Some(row) {
                self.fuse.break_off(format!(
                    "a plan runs on a row that has moved on: {name} was {row:?}, is {:?}",
                    now.get(name)
                ));
            }
        }
        Ok(saved.plan.clone())
    }

    /// Notes what the plan says may be done.
    fn grant(&self, plan: &Plan) {
        let mut leave = lock(&self.after.leave);
        if !self.course.allow_delete && plan.mode != Mode::Destroy {
            let (count, percent) = Fleet::BUDGET;
            leave.budget = Some(count.max(percent * plan.deletions.recorded / 100));
        }
        for (index, change) in plan.changes.iter().enumerate() {
            let before = change.before.as_deref();
            let was = before.and_then(|before| before.provider_id.clone());
            let ends = |other: &Change| {
                other.address == change.address
                    && matches!(other.action, Action::Delete | Action::Forget)
            };
            let is_left = change.deposed.is_some()
                && change.successor.is_some()
                && !plan.changes[..index].iter().any(ends);
            if is_left || change.action == Action::CreateThenDelete {
                let slot = change.address.to_string();
                leave.succeeded.extend(was.clone().map(|id| (id, slot)));
            }
            let becomes = change.after.as_deref();
            match change.action {
                Action::Create => {}
                Action::Update => {
                    let is = becomes.and_then(|after| after.provider_id.clone());
                    leave.changed.extend(is);
                    continue;
                }
                Action::Delete => {
                    if change.deposed.is_none() {
                        leave.budgeted.extend(was.clone());
                    }
                    leave.doomed.extend(was);
                    continue;
                }
                Action::CreateThenDelete | Action::DeleteThenCreate => leave.doomed.extend(was),
                Action::Adopt | Action::Forget | Action::NoOp => continue,
            }
            leave
                .born
                .extend(becomes.map(|after| after.instance_id.to_string()));
        }
    }

    /// Whatever is told must not tell a secret.
    pub(crate) fn tell(&self, what: &dyn std::fmt::Debug) {
        let text = format!("{what:?}");
        if text.contains(CANARY) {
            self.fuse.break_off(format!("a secret is told: {text}"));
        }
    }
}

/// What a plan's rows are like.
fn rows_of(plan: &Plan, snapshot: Option<&Snapshot>) -> Vec<(String, Option<String>)> {
    let records = || snapshot.iter().flat_map(|snapshot| &snapshot.records);
    plan.changes
        .iter()
        .map(|change| {
            if let Some(before) = change.before.as_deref().filter(|b| b.version.is_some()) {
                let id = before.instance_id.to_string();
                let record = records().find(|record| record.instance_id == id);
                (id, record.map(|record| format!("{record:?}")))
            } else {
                let address = &change.address;
                let live = snapshot.and_then(|s| s.live(address.group.as_str(), address.slot));
                let name = address.to_string();
                (name, live.map(|record| record.instance_id.clone()))
            }
        })
        .collect()
}
