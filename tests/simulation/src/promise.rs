//! What a rollout promises, judged by the world and by what is declared, not by the plan's limits.
//!
//! In: the plan's changes, what surveys could see, calls to the cloud. Out: what breaks a promise.
//! May not: read a [`nstance::plan::rollout::Rollout`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use nstance::apply::engine::{Outcome, Request, TaskEnd, TaskId};
use nstance::clock::Timestamp;
use nstance::plan::change::{Action, Change, InstanceView, Mode, Plan};
use nstance::plan::rollout::restarts;
use nstance::provider::sim::admin::InstanceRow;
use nstance::provider::{Cloud, CreateRequest, LifecycleState, Observation, UpdateRequest};
use nstance::spec::SpecBody;
use nstance_state::{Record, Store};

use crate::fleet::{Fleet, Group};
use crate::policy::Health;
use crate::watch::lock;
use crate::world::{Broken, World};

/// What a run must keep to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Promise {
    /// What was declared.
    pub(crate) fleet: Fleet,
    /// What names the configuration, or the saved plan.
    pub(crate) target: String,
    /// Whether its rollout is recorded and goes on in the next run of the same.
    pub(crate) is_open: bool,
    /// Our ids of the instances that the plan makes, by slot.
    born: BTreeMap<String, String>,
    /// What instances were like when the rollout began, by group and slot.
    origin: BTreeMap<String, BTreeMap<u32, Facts>>,
    /// Groups whose canaries' pause somebody ended.
    promoted: BTreeSet<String>,
    /// Groups that begin nothing more, until somebody promotes them or for good.
    halted: BTreeMap<String, Request>,
    /// Tasks that began.
    begun: BTreeSet<TaskId>,
    group_of_task: Vec<String>,
    groups: BTreeMap<String, Rollout>,
    /// Instances that were recorded with a load balancer.
    balanced: BTreeSet<String>,
    /// Instances that are only deleted.
    doomed: BTreeSet<String>,
    /// The groups of instances, by the cloud's id where they were there before, else by ours.
    group_of: BTreeMap<String, String>,
    /// The slots of recorded instances, by the cloud's id: somebody may take their tags.
    slot_of: BTreeMap<String, String>,
    /// Instances that were seen running, with their slots.
    ran: BTreeMap<String, String>,
    /// Instances that passed a check: when they first and last did.
    passed: BTreeMap<String, (Timestamp, Timestamp)>,
    /// What tasks have still to do, in calls.
    todo: BTreeMap<TaskId, Vec<&'static str>>,
    /// When tasks did the last of it.
    done_at: BTreeMap<TaskId, Timestamp>,
}

/// What an instance is like.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Facts {
    instance_type: String,
    image: String,
    colour: String,
}

impl Facts {
    fn declared(group: &Group) -> Self {
        Self {
            instance_type: group.instance_type.to_owned(),
            image: group.image.to_owned(),
            colour: group.colour.to_owned(),
        }
    }

    fn recorded(store: &dyn Store, record: &Record) -> Option<Self> {
        let spec = spec_of(store, record)?;
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        Some(Self {
            instance_type: spec.head.instance_type.to_string(),
            image: text(spec.args.get("ImageId")?),
            colour: text(&spec.args.get("TagSpecifications")?[0]["Tags"][0]["Value"]),
        })
    }
}

/// What one group must keep to.
#[derive(Debug, Clone)]
struct Rollout {
    group: Group,
    /// How many instances must stay available.
    floor: usize,
    /// How many instances there may be.
    most: usize,
    /// The instances that were available when one of them was last let go.
    available: BTreeSet<String>,
    /// Those that went since, of those let go while they were available.
    gone: BTreeSet<String>,
    /// Those let go, and whether they were available then.
    let_go: BTreeMap<String, bool>,
    /// Those that went, whenever that was.
    left: BTreeSet<String>,
    /// Those that a survey didn't find available: their turn may come at any time.
    idle: BTreeSet<String>,
    canaries: BTreeSet<TaskId>,
    /// The tasks that come after them, and the instances that these take out of service.
    others: BTreeMap<TaskId, Option<String>>,
}

impl Rollout {
    fn health(&self) -> Option<Health> {
        self.group.policy.as_ref().and_then(|policy| policy.health)
    }
}

/// Whether a change replaces an instance or restarts it.
fn takes_down(change: &Change) -> bool {
    change.action.is_replace() || restarts(change)
}

/// Whether a change makes an instance.
fn makes(change: &Change) -> bool {
    change.action == Action::Create || change.action.is_replace()
}

impl Promise {
    /// What a plan for a fleet must keep to; `there` are the instances.
    pub(crate) fn of(
        plan: &Plan,
        fleet: &Fleet,
        store: Option<&dyn Store>,
        there: &[InstanceRow],
        is_saved: bool,
    ) -> Self {
        let mut promise = Self {
            fleet: fleet.clone(),
            group_of_task: plan
                .changes
                .iter()
                .map(|change| change.address.group.to_string())
                .collect(),
            ..Self::default()
        };
        if plan.mode != Mode::Normal {
            return promise;
        }
        for change in &plan.changes {
            if let Some(after) = change.after.as_deref().filter(|_| makes(change)) {
                let id = after.instance_id.to_string();
                promise.born.insert(change.address.to_string(), id);
            }
        }
        if let Some(store) = store
            && let Ok(snapshot) = store.snapshot()
        {
            for record in &snapshot.records {
                let slot = record.address();
                promise.slot_of.insert(record.provider_id.clone(), slot);
            }
            for record in snapshot.records.iter().filter(|record| !record.deposed) {
                if let Some(facts) = Facts::recorded(store, record) {
                    let group = promise.origin.entry(record.group.to_string()).or_default();
                    group.insert(record.slot, facts);
                }
            }
            let records = snapshot.records.iter();
            let balanced = records.filter(|record| is_balanced(store, record));
            promise.balanced = balanced.map(|it| it.provider_id.clone()).collect();
        }
        let doomed = plan.changes.iter().filter(|it| it.action == Action::Delete);
        let doomed = doomed.filter_map(|it| it.before.as_deref()?.provider_id.clone());
        promise.doomed = doomed.collect();
        for (task, change) in plan.changes.iter().enumerate() {
            let group = change.address.group.to_string();
            let before = change
                .before
                .as_deref()
                .and_then(|it| it.provider_id.clone());
            let after = change.after.as_deref().map(|it| it.instance_id.to_string());
            for id in before.into_iter().chain(after) {
                promise.group_of.insert(id, group.clone());
            }
            let todo: &[&str] = match change.action {
                Action::Create => &["create"],
                Action::Update => &["update"],
                Action::CreateThenDelete | Action::DeleteThenCreate => &["create", "delete"],
                _ => &[],
            };
            promise.todo.insert(task, todo.to_vec());
        }
        for group in &fleet.groups {
            let name = format!("default/{}", group.name);
            let own = plan.changes.iter().enumerate();
            let own: Vec<_> = own
                .filter(|(_, change)| change.address.group.as_str() == name)
                .collect();
            let mut rollout = Rollout::of(group, group.size, &own);
            if is_saved {
                // It doesn't know of all.
                let prefix = format!("{name}/");
                let there = there.iter().filter_map(|row| row.address.as_ref());
                rollout.most += there.filter(|it| it.starts_with(&prefix)).count();
            }
            promise.groups.insert(name, rollout);
        }
        promise
    }

    /// What the way back of groups must keep to: their limits, for the sizes that they had.
    pub(crate) fn of_way_back(
        plan: &Plan,
        earlier: &Self,
        store: &dyn Store,
        there: &[InstanceRow],
    ) -> Self {
        let mut fleet = earlier.fleet.clone();
        let mut declared = BTreeMap::new();
        for group in &mut fleet.groups {
            let name = format!("default/{}", group.name);
            declared.insert(name.clone(), group.size);
            group.size = earlier.origin.get(&name).map_or(0, BTreeMap::len) as u32;
            if let Some(policy) = &mut group.policy {
                policy.canaries = None;
                policy.canary_pause = None;
            }
        }
        let mut promise = Self::of(plan, &fleet, Some(store), there, false);
        for (name, rollout) in &mut promise.groups {
            let own = plan.changes.iter().enumerate();
            let own: Vec<_> = own
                .filter(|(_, change)| change.address.group.as_str() == name)
                .collect();
            *rollout = Rollout::of(&rollout.group, declared[name], &own);
        }
        Self {
            fleet: earlier.fleet.clone(),
            target: earlier.target.clone(),
            is_open: earlier.is_open,
            origin: earlier.origin.clone(),
            ..promise
        }
    }

    /// The rollout of an earlier run goes on: what that did counts.
    pub(crate) fn take_up(&mut self, earlier: Self, plan: &Plan, store: &dyn Store) {
        self.origin = earlier.origin;
        self.target = earlier.target;
        self.is_open = earlier.is_open;
        if earlier.born == self.born {
            self.todo = earlier.todo;
            self.done_at = earlier.done_at;
            self.promoted = earlier.promoted;
        }
        let Ok(snapshot) = store.snapshot() else {
            return;
        };
        // An answer may have been lost with that run.
        let record = |view: Option<&InstanceView>| {
            let id = &view?.instance_id;
            let mut records = snapshot.records.iter();
            records.find(|record| *record.instance_id == **id)
        };
        for (task, change) in plan.changes.iter().enumerate() {
            let before = record(change.before.as_deref());
            let after = record(change.after.as_deref());
            let wanted = change.after.as_deref().map(|view| view.digest);
            let is_updated = after.is_some_and(|after| Some(after.spec) == wanted);
            let todo = self.todo.entry(task).or_default();
            todo.retain(|what| match *what {
                "create" => after.is_none(),
                "delete" => before.is_some(),
                _ => !is_updated,
            });
            if todo.is_empty() {
                self.done_at.entry(task).or_insert(Timestamp(i64::MIN));
            }
        }
    }

    /// A plan of the same is made although a rollout goes on: whether that would have been another
    /// rollout of what isn't done yet.
    pub(crate) fn begins_anew(&self, plan: &Plan, records: &[Record]) -> Option<String> {
        let is_recorded = |id: &str| records.iter().any(|record| record.instance_id == id);
        plan.changes.iter().find_map(|change| {
            let after = change.after.as_deref().filter(|_| makes(change))?;
            let address = change.address.to_string();
            let planned = self.born.get(&address)?;
            (*planned != *after.instance_id && !is_recorded(planned)).then_some(address)
        })
    }

    /// Groups that failed more often than they may and aren't to stay so.
    pub(crate) fn should_go_back(&self, plan: &Plan, outcome: &Outcome) -> Vec<String> {
        if !self.is_open || outcome.stopped || !outcome.waiting.is_empty() {
            return Vec::new();
        }
        let groups = self.fleet.going_back();
        let failed = groups.filter_map(|group| {
            let name = format!("default/{}", group.name);
            let undone = outcome.undone.iter();
            let failures = undone.filter(|(task, end)| {
                let is_own = plan.changes[*task].address.group.as_str() == name;
                is_own && matches!(end, TaskEnd::Failed(_) | TaskEnd::Unsettled(_))
            });
            let allowed = group.policy.as_ref().and_then(|policy| policy.max_failures);
            (failures.count() > allowed.unwrap_or(0) as usize).then_some(name)
        });
        failed.collect()
    }

    /// Groups went back: each instance is like before the rollout, or like when all of its group was
    /// last as declared.
    pub(crate) fn check_back(
        &self,
        way: &Plan,
        world: &World,
        store: &dyn Store,
    ) -> Result<(), Broken> {
        let Ok(snapshot) = store.snapshot() else {
            return Ok(());
        };
        let good = lock(&world.good);
        let untouched = world.untouched.load(Ordering::SeqCst);
        for group in &way.groups {
            let name = &group.name;
            let good = good.get(name).map(Facts::declared);
            let none = BTreeMap::new();
            let origin = self.origin.get(name).unwrap_or(&none);
            let records = snapshot.records.iter();
            let own = records.filter(|record| *record.group == **name && !record.deposed);
            let own: BTreeMap<u32, &Record> = own.map(|record| (record.slot, record)).collect();
            for (slot, record) in &own {
                let facts = Facts::recorded(store, record);
                let was = origin.get(slot);
                // Without a last good configuration, what has no predecessor stays.
                let is_back = facts.as_ref() == was || facts == good || good.is_none();
                if was.is_none() || !is_back {
                    return Err(format!(
                        "{name}/{slot} went back to {facts:?}; it was {was:?}, and {good:?} was good"
                    ));
                }
            }
            let missing = origin.keys().find(|slot| !own.contains_key(slot));
            if let Some(slot) = missing.filter(|_| untouched && good.is_some()) {
                return Err(format!("{name}/{slot} is missing after it went back"));
            }
        }
        Ok(())
    }

    /// Somebody asked something of the rollout.
    pub(crate) fn asked(&mut self, request: Request, group: Option<&str>) {
        let groups = self.groups.keys();
        let asked: Vec<String> = groups
            .filter(|name| group.is_none_or(|group| group == *name))
            .cloned()
            .collect();
        for name in asked {
            match (request, self.halted.get(&name)) {
                (_, Some(Request::Abort)) => {}
                (Request::Promote, Some(_)) => drop(self.halted.remove(&name)),
                (Request::Promote, None) => drop(self.promoted.insert(name)),
                (Request::Pause | Request::Abort, _) => {
                    self.halted.insert(name, request);
                }
            }
        }
    }

    /// A task is told to do something.
    pub(crate) fn told(&mut self, task: TaskId) -> Result<(), Broken> {
        let name = &self.group_of_task[task];
        if !self.begun.contains(&task)
            && let Some(request) = self.halted.get(name)
        {
            return Err(format!("{task} of {name} begins after {request:?}"));
        }
        self.begun.insert(task);
        Ok(())
    }

    /// The instances of a group that are in service, by the cloud's id: they run, are healthy, and
    /// are registered wherever they are recorded to be.
    fn available(
        &self,
        name: &str,
        world: &World,
        cloud: &dyn Cloud,
        store: &dyn Store,
    ) -> BTreeSet<String> {
        let rollout = &self.groups[name];
        let checks = rollout.health().is_some();
        let Ok(snapshot) = store.snapshot() else {
            return BTreeSet::new();
        };
        let live = world.live();
        let serves = |record: &&Record| {
            let id = &record.provider_id;
            let runs = live
                .iter()
                .any(|row| row.provider_id == *id && row.state == LifecycleState::Running);
            let is_new = !self.group_of.contains_key(id);
            let was_balanced = self.balanced.contains(id);
            let is_balanced = was_balanced && (rollout.group.balanced || self.doomed.contains(id))
                || is_new && rollout.group.balanced && is_balanced(store, record);
            runs && is_healthy(cloud, id, checks || is_balanced)
                && (!is_balanced || !registered(world, id).is_empty())
        };
        let own = snapshot
            .records
            .iter()
            .filter(|record| *record.group == *name);
        own.filter(serves)
            .map(|record| record.provider_id.clone())
            .collect()
    }

    /// A survey of a group let these instances go.
    pub(crate) fn surveyed(
        &mut self,
        name: &str,
        ids: &[String],
        world: &World,
        cloud: &dyn Cloud,
        store: &dyn Store,
    ) {
        if !self.groups.contains_key(name) {
            return;
        }
        let available = self.available(name, world, cloud, store);
        let rollout = self.groups.get_mut(name).unwrap();
        let others = rollout.others.values().flatten();
        let idle: Vec<_> = others
            .filter(|id| !available.contains(*id))
            .cloned()
            .collect();
        rollout.idle.extend(idle);
        for id in ids {
            rollout.let_go.insert(id.clone(), available.contains(id));
        }
        if ids.iter().any(|id| available.contains(id)) {
            rollout.available = available;
            rollout.gone.clear();
        }
    }

    /// An instance goes out of service.
    pub(crate) fn departs(
        &mut self,
        id: &str,
        world: &World,
        cloud: &dyn Cloud,
        store: &dyn Store,
    ) -> Result<(), Broken> {
        let Some(name) = self.group_of.get(id).cloned() else {
            return Ok(());
        };
        let Some(rollout) = self.groups.get(&name) else {
            return Ok(());
        };
        let floor = rollout.floor;
        if floor == 0 || rollout.left.contains(id) {
            return Ok(());
        }
        let let_go = rollout.let_go.get(id).copied();
        let mut rest = match let_go {
            Some(_) => &rollout.available - &rollout.gone,
            // Nobody looked.
            None => self.available(&name, world, cloud, store),
        };
        let served = let_go.unwrap_or(rest.contains(id));
        let rollout = self.groups.get_mut(&name).unwrap();
        rollout.left.insert(id.to_owned());
        if !served {
            return Ok(());
        }
        rollout.gone.insert(id.to_owned());
        rest.remove(id);
        if rest.len() < floor {
            return Err(format!(
                "{id} of {name} went out of service, and {rest:?} stayed, not {floor}"
            ));
        }
        Ok(())
    }

    /// An instance is about to be made.
    pub(crate) fn creates(&self, request: &CreateRequest, world: &World) -> Result<(), Broken> {
        let Some(name) = self.group_of.get(&request.instance_id) else {
            return Ok(());
        };
        let Some(rollout) = self.groups.get(name) else {
            return Ok(());
        };
        let prefix = format!("{name}/");
        let mut live = world.live();
        if live
            .iter()
            .any(|row| row.instance_id.as_deref() == Some(&request.instance_id))
        {
            return Ok(());
        }
        live.retain(|row| {
            let is_own = |address: &String| address.starts_with(&prefix);
            row.address.as_ref().is_some_and(is_own)
                && !world.lost.contains(&row.provider_id)
                && !self.doomed.contains(&row.provider_id)
        });
        if live.len() >= rollout.most {
            return Err(format!(
                "{} of {name} is one more than {}",
                request.instance_id, rollout.most
            ));
        }
        Ok(())
    }

    /// The cloud showed these.
    pub(crate) fn saw(&mut self, seen: &[Observation]) {
        for seen in seen {
            if seen.state == LifecycleState::Running {
                // Somebody may have taken its tags.
                let id = &seen.provider_id;
                let slot = self.slot_of.get(id).cloned().unwrap_or_default();
                let known = self.ran.entry(id.clone()).or_insert(slot);
                if let (Some(group), Some(slot)) = (&seen.group, seen.slot) {
                    *known = format!("{group}/{slot}");
                }
            }
        }
    }

    /// An instance passed a check.
    pub(crate) fn passed(&mut self, id: &str, now: Timestamp) {
        self.passed.entry(id.to_owned()).or_insert((now, now)).1 = now;
    }

    /// Whether an instance became available as its group wants it.
    fn is_sound(&self, name: &str, id: &str) -> bool {
        match self.groups.get(name).and_then(Rollout::health) {
            None => self.ran.contains_key(id),
            Some(health) => self.passed.get(id).is_some_and(|(first, last)| {
                last.since(*first) >= Duration::from_secs(health.min_healthy_time)
            }),
        }
    }

    /// Whether another instance of a slot became available; `None` where no policy says so.
    pub(crate) fn has_successor(&self, slot: &str, id: &str, world: &World) -> Option<bool> {
        let name = slot.rsplit_once('/').unwrap().0;
        let rollout = self.groups.get(name)?;
        if rollout.let_go.get(id) == Some(&false) {
            // It was of no use.
            return Some(true);
        }
        // One that an earlier run left behind goes when its successor is healthy.
        let is_balanced = rollout.group.balanced && !self.doomed.contains(id);
        let mut others = self
            .ran
            .iter()
            .filter(|(other, its)| *other != id && *its == slot);
        Some(others.any(|(other, _)| {
            let is_live = || world.live().iter().any(|row| row.provider_id == *other);
            self.is_sound(name, other)
                && (!is_balanced || !is_live() || !registered(world, other).is_empty())
        }))
    }

    /// An instance is registered.
    pub(crate) fn registers(&self, id: &str, world: &World) -> Result<(), Broken> {
        let live = world.live();
        let Some(row) = live.iter().find(|row| row.provider_id == id) else {
            return Ok(());
        };
        let own = row.instance_id.as_deref().unwrap_or_default();
        let name = self.group_of.get(id).or_else(|| self.group_of.get(own));
        if name.is_some_and(|name| self.groups.contains_key(name) && !self.is_sound(name, id)) {
            return Err(format!("{id} is registered before it is healthy"));
        }
        Ok(())
    }

    /// An instance is updated.
    pub(crate) fn updates(
        &mut self,
        request: &UpdateRequest,
        world: &World,
        cloud: &dyn Cloud,
        store: &dyn Store,
    ) -> Result<(), Broken> {
        let id = &request.provider_id;
        let live = world.live();
        let Some(row) = live.iter().find(|row| row.provider_id == *id) else {
            return Ok(());
        };
        if request.restart && row.state == LifecycleState::Running {
            self.departs(id, world, cloud, store)?;
        }
        let joins = request.changed.iter().any(|path| path == "load_balancers")
            && !request.load_balancers.is_empty()
            && registered(world, id).is_empty();
        if joins {
            self.registers(id, world)
        } else {
            Ok(())
        }
    }

    /// A task asks the cloud for something.
    pub(crate) fn begins(&self, task: TaskId, now: Timestamp) -> Result<(), Broken> {
        for (name, rollout) in &self.groups {
            let Some(serving) = rollout.others.get(&task) else {
                continue;
            };
            if serving.as_ref().is_none_or(|id| rollout.idle.contains(id)) {
                continue;
            }
            let mut ended = Timestamp(i64::MIN);
            for canary in &rollout.canaries {
                match self.done_at.get(canary) {
                    Some(at) if self.todo[canary].is_empty() => ended = ended.max(*at),
                    _ => {
                        return Err(format!(
                            "{task} of {name} began before canary {canary} ended"
                        ));
                    }
                }
            }
            let pause = rollout.group.policy.as_ref().unwrap().pause();
            let is_over = pause.is_some_and(|pause| now >= ended.after(pause));
            if !is_over && !self.promoted.contains(name) {
                return Err(format!("{task} of {name} began in the canaries' pause"));
            }
        }
        Ok(())
    }

    /// A task did something.
    pub(crate) fn did(&mut self, task: TaskId, what: &str, now: Timestamp) {
        if let Some(todo) = self.todo.get_mut(&task) {
            todo.retain(|it| *it != what);
            self.done_at.insert(task, now);
        }
    }
}

impl Rollout {
    /// `declared` is the size that percentages are of.
    fn of(group: &Group, declared: u32, own: &[(TaskId, &Change)]) -> Self {
        let policy = group.policy.clone().unwrap_or_default();
        let size = group.size;
        let (mut unavailable, surge) = policy.bounds(declared);
        let is_down = |(_, change): &(TaskId, &Change)| {
            change.action == Action::DeleteThenCreate || restarts(change)
        };
        // It can't be done without.
        if own.iter().any(is_down) {
            unavailable = unavailable.max(1);
        }
        let mut rollout = Self {
            group: group.clone(),
            floor: size.saturating_sub(unavailable) as usize,
            most: (size + surge) as usize,
            available: BTreeSet::new(),
            gone: BTreeSet::new(),
            let_go: BTreeMap::new(),
            left: BTreeSet::new(),
            idle: BTreeSet::new(),
            canaries: BTreeSet::new(),
            others: BTreeMap::new(),
        };
        let mut turns: Vec<_> = own
            .iter()
            .filter(|(_, change)| takes_down(change))
            .collect();
        let canaries = policy.canaries(size);
        if turns.is_empty() || canaries == 0 {
            return rollout;
        }
        turns.sort_by_key(|(_, change)| {
            let zone = change.after.as_deref().map(|after| after.zone.to_string());
            (zone.filter(|_| policy.by_zone), change.address.slot)
        });
        rollout.canaries = turns.iter().take(canaries).map(|(task, _)| *task).collect();
        let serving = |change: &Change| change.before.as_deref()?.provider_id.clone();
        let others = turns.iter().skip(canaries);
        rollout.others = others
            .map(|(task, change)| (*task, serving(change)))
            .collect();
        rollout
    }
}

/// Whether an instance is recorded with a load balancer.
pub(crate) fn is_balanced(store: &dyn Store, record: &Record) -> bool {
    spec_of(store, record).is_some_and(|spec| !spec.head.load_balancers.is_empty())
}

fn spec_of(store: &dyn Store, record: &Record) -> Option<SpecBody> {
    let specs = store.specs(&[record.spec]).unwrap_or_default();
    let spec = specs.get(&record.spec);
    spec.and_then(|bytes| serde_json::from_slice(bytes).ok())
}

/// The load balancers that an instance is registered with.
pub(crate) fn registered(world: &World, id: &str) -> Vec<String> {
    let shown = world.admin().show(id).ok();
    shown
        .and_then(|shown| shown.attributes.load_balancers)
        .unwrap_or_default()
}

fn is_healthy(cloud: &dyn Cloud, id: &str, checks: bool) -> bool {
    !checks
        || cloud
            .probe(id, &Health::CHECK)
            .is_some_and(|answer| answer.is_ok())
}
