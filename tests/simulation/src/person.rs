//! What `nstance apply` does, one thing at a time: the lock, recovery, a plan or a saved one, what
//! is allowed, then the engine. It can die at any point.
//!
//! The command line's own sequence is `cli::apply_shard`; this is its twin without words.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::Ordering;
use std::time::Duration;

use nstance::apply::driver::Applied;
use nstance::apply::engine::{Outcome, Starts};
use nstance::apply::recover::{RecoverError, recover};
use nstance::apply::resume;
use nstance::apply::rollout_record::{self, Begun, OpenRollout, RolloutRecord};
use nstance::apply::stages::{Stages, complete_files};
use nstance::apply::staleness::moved_on;
use nstance::clock::Clock;
use nstance::config::model::ProviderKind;
use nstance::fault_injection::InjectedFault;
use nstance::pipeline::late::is_staged;
use nstance::pipeline::{self, PlanError, Request};
use nstance::plan::change::{Action, Change, Mode, Plan};
use nstance::plan::inputs::Options;
use nstance::provider::Cloud;
use nstance::provider::rules::Rules;
use nstance::refresh::refresh;
use nstance_state::{
    Held, LockInfo, NewApply, Operation, RolloutId, RolloutStatus, Snapshot, StateError, Store,
    Write,
};

use crate::execution::Execution;
use crate::fleet::{CANARY, Fleet};
use crate::policy::Policy;
use crate::promise::Promise;
use crate::run::{Afterlife, Course, End, SavedPlan, Task, owner};
use crate::watch::{Fuse, WatchedClock, WatchedCloud, lock};
use crate::world::World;

pub(crate) fn options(fleet: &Fleet, mode: Mode, replace: &[String]) -> Options {
    let mut target = DefaultHasher::new();
    format!("{fleet:?} {mode:?} {replace:?}").hash(&mut target);
    Options {
        mode,
        target: format!("{:x}", target.finish()),
        replace: replace.iter().map(|text| text.parse().unwrap()).collect(),
        ..Options::default()
    }
}

pub(crate) fn plan(
    fleet: &Fleet,
    options: &Options,
    store: Option<&mut (dyn Store + 'static)>,
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
        document: loaded.document.as_ref(),
        manifest: None,
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

/// A rollout of an earlier run that goes on.
struct Known {
    id: RolloutId,
    goes_back: bool,
    starts: Starts,
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
        let (path, backend) = (self.world.state_path(), self.world.backend());
        if matches!(self.course.task, Task::Plan) {
            let store = path.exists().then(|| backend.open_to_read(None));
            let mut store = store.transpose().map_err(|error| self.failed(&error))?;
            return Ok(End::Planned(Box::new(self.keep(store.as_deref_mut())?)));
        }
        let _held = self.lock()?;
        let own = World::identity();
        let store = path.exists().then(|| backend.open_to_write(Some(&own)));
        let mut store = store.transpose().map_err(|error| self.failed(&error))?;
        if let Some(store) = store.as_deref_mut() {
            self.unfence(store);
            self.recover(store)?;
        }
        let (plan, known) = match self.continued(store.as_deref())? {
            Some((plan, known)) => (plan, Some(known)),
            None => (self.plan_anew(store.as_deref_mut())?, None),
        };
        let (mode, injected_fault) = (plan.mode, self.course.injected_fault);
        let allowed = |_: &str| self.course.allow_delete || known.is_some();
        if plan
            .deletions
            .forbidden(mode, allowed, injected_fault)
            .is_some()
        {
            return Err(End::OverBudget);
        }
        let goes_back = known.as_ref().is_some_and(|known| known.goes_back);
        self.grant(&plan, goes_back || known.is_some());
        self.promise(&plan, known.as_ref(), store.as_deref());
        self.fuse.point();
        let clock = &*self.world.clock;
        let mut store = match store {
            Some(store) => store,
            None => backend
                .create(&plan.identity(), &plan.lineage, clock.now().into(), None)
                .map_err(|error| self.failed(&error))?,
        };
        self.unfence(&mut *store);
        self.fuse.point();
        let (record, starts) = match known {
            Some(known) => (
                RolloutRecord::of_known(known.id, known.goes_back),
                known.starts,
            ),
            None => {
                let digest = self.course.task.digest();
                let record = RolloutRecord::of_new(&plan, digest, &*store);
                let record = record.map_err(|error| self.failed(&error))?;
                (record, Starts::default())
            }
        };
        let entry = NewApply {
            who: "who".to_owned(),
            host: "host".to_owned(),
            pid: 1,
            operation: "apply".to_owned(),
            plan_digest: None,
        };
        let begun = rollout_record::begin(&plan, &mut *store, clock.now(), entry, &record)
            .map_err(|error| self.failed(&error))?;
        lock(&self.after.promise).is_open = begun.rollout.is_some();
        let (plan, outcome) = self.execute(plan, &mut *store, &begun, starts)?;
        self.fuse.point();
        let way = begun.back(&plan, &outcome, &mut *store, clock.now());
        let way = way.map_err(|error| self.failed(&error))?;
        let failed = lock(&self.after.promise).should_go_back(&plan, &outcome);
        if way.is_none() && !goes_back && !failed.is_empty() {
            let stays = format!("{failed:?} failed and don't go back: {outcome:?}");
            self.fuse.break_off(stays);
        }
        let back = match way {
            None => None,
            Some(way) => {
                self.fuse.point();
                self.grant(&way, true);
                let there = self.world.live();
                let promise = {
                    let earlier = lock(&self.after.promise);
                    Promise::of_way_back(&way, &earlier, &*store, &there)
                };
                *lock(&self.after.promise) = promise;
                let none = Starts::default();
                let came = Execution::new(self, &way, &mut *store, &begun, &none).run()?;
                Some((way, came))
            }
        };
        self.fuse.point();
        let applied = Applied { outcome, back };
        let finished = begun.finish(&plan, &applied, &mut *store, clock.now());
        finished.map_err(|error| self.failed(&error))?;
        self.conclude(&plan, &applied, goes_back, &*store);
        self.fuse.point();
        Ok(End::Applied(Box::new(applied.outcome)))
    }

    /// Carries a plan out, stage by stage if addresses are late.
    fn execute(
        &self,
        plan: Plan,
        store: &mut dyn Store,
        begun: &Begun,
        starts: Starts,
    ) -> Result<(Plan, Outcome), End> {
        if !is_staged(&plan) {
            let outcome = Execution::new(self, &plan, store, begun, &starts).run()?;
            return Ok((plan, outcome));
        }
        let clock = &*self.world.clock;
        let failed = |error: StateError| self.failed(&error);
        let mut stages = Stages::new(&plan, starts);
        let outcome = loop {
            let settled = stages.settle(store, begun.rollout, clock.now());
            settled.map_err(failed)?;
            self.fuse.point();
            let starts = stages.starts();
            let outcome = Execution::new(self, stages.plan(), store, begun, &starts).run()?;
            self.fuse.point();
            if let Some(outcome) = stages.ended(outcome, store).map_err(failed)? {
                break outcome;
            }
        };
        self.fuse.point();
        if !outcome.stopped {
            complete_files(stages.plan(), store, clock.now()).map_err(failed)?;
        }
        let plan = stages.plan().clone();
        Ok((plan, outcome))
    }

    /// A plan, unless nothing is to be done.
    fn plan_anew(&self, mut store: Option<&mut (dyn Store + 'static)>) -> Result<Plan, End> {
        let plan = match &self.course.task {
            Task::Follow(saved) => self.take_up(saved, store.as_deref())?,
            _ => self.plan(store.as_deref_mut())?,
        };
        if !plan.summary.has_changes() {
            if let Some(store) = store {
                let good = rollout_record::last_good(&plan).map(|(_, write)| write);
                let good: Vec<Write> = good.collect();
                if !good.is_empty() {
                    store
                        .commit(self.world.clock.now().into(), good)
                        .map_err(|error| self.failed(&error))?;
                }
            }
            self.note_good(&plan, |_| true);
            return Err(End::Empty);
        }
        if let Some(store) = store {
            let is_saved = matches!(self.course.task, Task::Follow(_));
            let repeated = rollout_record::repeated(store, &plan);
            let repeated = repeated.map_err(|error| self.failed(&error))?.is_some();
            if repeated && !is_saved && !self.course.retries {
                return Err(End::RolledBack);
            }
            let earlier = lock(&self.world.promise);
            let is_same = earlier.is_open && earlier.target == self.target();
            let snapshot = store.snapshot().map_err(|error| self.failed(&error))?;
            if is_same
                && plan.mode == Mode::Normal
                && self.world.untouched.load(Ordering::SeqCst)
                && let Some(slot) = earlier.begins_anew(&plan, &snapshot.records)
            {
                let anew = format!("the rollout of {slot} begins anew");
                self.fuse.break_off(anew);
            }
        }
        Ok(plan)
    }

    /// The rollout of an earlier run, if this one continues it.
    fn continued(&self, store: Option<&dyn Store>) -> Result<Option<(Plan, Known)>, End> {
        let reads = self.course.injected_fault != InjectedFault::NoRolloutRecord;
        let Some(store) = store.filter(|_| reads) else {
            return Ok(None);
        };
        let found = OpenRollout::of(store).map_err(|error| self.failed(&error))?;
        let goes_on = |found: &OpenRollout| match &self.course.task {
            Task::Follow(saved) => found.has_digest(&saved.digest),
            _ => {
                let options = options(self.fleet, self.course.mode, &self.course.replace);
                found.is_continued_by(&options, false)
            }
        };
        let Some(OpenRollout { stored, plan, .. }) = found.filter(goes_on) else {
            return Ok(None);
        };
        let snapshot = store.snapshot().map_err(|error| self.failed(&error))?;
        let now = self.world.clock.now();
        let observed = refresh(self.cloud, &owner(), Some(&snapshot), now, |_| {});
        let observed = observed.map_err(|error| {
            self.tell(&error);
            End::GaveUp
        })?;
        let starts = match resume::starts(&plan, &stored, &snapshot, &observed) {
            Ok(starts) if !resume::remaining(&plan, &starts).changes.is_empty() => starts,
            _ => return Ok(None),
        };
        let known = Known {
            id: stored.id,
            goes_back: stored.status == RolloutStatus::RollingBack,
            starts,
        };
        Ok(Some((plan, known)))
    }

    /// Notes what a plan must keep to.
    fn promise(&self, plan: &Plan, known: Option<&Known>, store: Option<&dyn Store>) {
        let (declared, is_saved) = match &self.course.task {
            Task::Follow(saved) => (&saved.fleet, true),
            _ => (self.fleet, false),
        };
        let there = self.world.live();
        let promise = match (known, store) {
            (Some(known), Some(store)) => {
                let earlier = lock(&self.world.promise).clone();
                let mut promise = if known.goes_back {
                    Promise::of_way_back(plan, &earlier, store, &there)
                } else {
                    Promise::of(plan, &earlier.fleet, Some(store), &there, is_saved)
                };
                promise.take_up(earlier, plan, store);
                promise
            }
            _ => {
                // A late listing may still show what is gone.
                if self.world.weather.stale_listing.is_zero() {
                    self.world.untouched.store(true, Ordering::SeqCst);
                }
                let mut promise = Promise::of(plan, declared, store, &there, is_saved);
                promise.target = self.target();
                promise
            }
        };
        *lock(&self.after.promise) = promise;
    }

    /// What names the configuration, or the saved plan.
    fn target(&self) -> String {
        match &self.course.task {
            Task::Follow(saved) => saved.digest.clone(),
            _ => options(self.fleet, self.course.mode, &self.course.replace).target,
        }
    }

    /// Looks at what a run brought about, and leaves it to the next one.
    fn conclude(&self, plan: &Plan, applied: &Applied, goes_back: bool, store: &dyn Store) {
        let Applied { outcome, back } = applied;
        let undone = |name: &str| {
            let mut undone = outcome.undone.iter();
            undone.any(|(task, _)| plan.changes[*task].address.group.as_str() == name)
        };
        if !goes_back {
            self.note_good(plan, |name| !undone(name));
        }
        let (way, came) = match back {
            Some((way, came)) => (way, came),
            None => (plan, outcome),
        };
        let mut promise = lock(&self.after.promise);
        let is_stalled = |(_, why): &(usize, String)| why.starts_with("more available");
        if came.waiting.iter().any(is_stalled) {
            // The next run looks anew at what there is.
            promise.is_open = false;
        }
        if !came.is_complete() {
            return;
        }
        promise.is_open = false;
        if (goes_back || back.is_some())
            && let Err(broken) = promise.check_back(way, self.world, store)
        {
            self.fuse.break_off(broken);
        }
    }

    /// Notes groups that are as declared.
    fn note_good(&self, plan: &Plan, is_done: impl Fn(&str) -> bool) {
        let declared = match &self.course.task {
            Task::Follow(saved) => &saved.fleet,
            _ => self.fleet,
        };
        let mut good = lock(&self.world.good);
        if plan.mode == Mode::Destroy {
            good.retain(|name, _| !is_done(name));
            return;
        }
        for group in &declared.groups {
            let name = format!("default/{}", group.name);
            let changes = plan
                .changes
                .iter()
                .any(|change| change.address.group.as_str() == name);
            let goes_back = group.policy.as_ref().is_some_and(Policy::goes_back);
            if is_done(&name) && goes_back {
                if changes || !good.contains_key(&name) {
                    good.insert(name, group.clone());
                }
            } else if is_done(&name) && changes {
                good.remove(&name);
            }
        }
    }

    /// What the harness keeps of a run that ended.
    pub(crate) fn leave_behind(&self) {
        let promise = lock(&self.after.promise).clone();
        if !promise.target.is_empty() {
            *lock(&self.world.promise) = promise;
        }
    }

    fn unfence(&self, store: &mut dyn Store) {
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
    fn lock(&self) -> Result<Option<Box<dyn Held>>, End> {
        if let InjectedFault::NoLock | InjectedFault::NoLockNorFence = self.course.injected_fault {
            return Ok(None);
        }
        let backend = self.world.backend();
        for tries in 0.. {
            let info = LockInfo {
                id: format!("{}-{tries}", self.course.seed),
                holder: "who".to_owned(),
                host: "host".to_owned(),
                pid: 1,
                operation: "apply".to_owned(),
                since: self.world.clock.now().into(),
            };
            match backend.lock(info, Duration::ZERO, &mut |_| {}) {
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

    fn recover(&self, store: &mut dyn Store) -> Result<(), End> {
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

    fn plan(&self, store: Option<&mut (dyn Store + 'static)>) -> Result<Plan, End> {
        let options = options(self.fleet, self.course.mode, &self.course.replace);
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
    fn keep(&self, mut store: Option<&mut (dyn Store + 'static)>) -> Result<SavedPlan, End> {
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
        Ok(SavedPlan {
            digest: format!("saved by {}", self.course.seed),
            plan,
            fleet: self.fleet.clone(),
            rows,
        })
    }

    /// A saved plan, if its rows are as they were.
    fn take_up(&self, saved: &SavedPlan, store: Option<&dyn Store>) -> Result<Plan, End> {
        let snapshot = store.map(Store::snapshot).transpose();
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

    /// Notes what the plan says may be done; what was allowed before needs no leave.
    fn grant(&self, plan: &Plan, is_allowed: bool) {
        let mut leave = lock(&self.after.leave);
        if !self.course.allow_delete && !is_allowed && plan.mode != Mode::Destroy {
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
                    if change.deposed.is_none() && !is_allowed {
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
