//! What a rollout promises, judged by the world and by what is declared, not by the plan's limits.
//!
//! In: the plan's changes, what surveys could see, calls to the cloud. Out: what breaks a promise.
//! May not: read a [`nstance::plan::rollout::Rollout`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nstance::apply::engine::TaskId;
use nstance::clock::Timestamp;
use nstance::plan::change::{Action, Change, Mode, Plan};
use nstance::plan::rollout::restarts;
use nstance::provider::sim::admin::InstanceRow;
use nstance::provider::{Cloud, CreateRequest, LifecycleState, Observation, UpdateRequest};
use nstance::spec::SpecBody;
use nstance_state::SqliteStore;

use crate::fleet::{Fleet, Group};
use crate::policy::Health;
use crate::world::{Broken, World};

/// What a run must keep to.
#[derive(Debug, Default)]
pub(crate) struct Promise {
    groups: BTreeMap<String, Rollout>,
    /// Instances that were recorded with a load balancer.
    balanced: BTreeSet<String>,
    /// Instances that are only deleted.
    doomed: BTreeSet<String>,
    /// The groups of instances, by the cloud's id where they were there before, else by ours.
    group_of: BTreeMap<String, String>,
    /// Instances that were seen running, with their slots.
    ran: BTreeMap<String, String>,
    /// Instances that passed a check: when they first and last did.
    passed: BTreeMap<String, (Timestamp, Timestamp)>,
    /// What tasks have still to do, in calls.
    todo: BTreeMap<TaskId, Vec<&'static str>>,
    /// When tasks did the last of it.
    done_at: BTreeMap<TaskId, Timestamp>,
}

/// What one group must keep to.
#[derive(Debug)]
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

impl Promise {
    /// What a plan for a fleet must keep to; `there` are the instances.
    pub(crate) fn of(
        plan: &Plan,
        fleet: &Fleet,
        store: Option<&SqliteStore>,
        there: &[InstanceRow],
        is_saved: bool,
    ) -> Self {
        let mut promise = Self::default();
        if plan.mode != Mode::Normal {
            return promise;
        }
        if let Some(store) = store
            && let Ok(snapshot) = store.snapshot()
        {
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
            let mut rollout = Rollout::of(group, &own);
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

    /// The instances of a group that are in service, by the cloud's id: they run, are healthy, and
    /// are registered wherever they are recorded to be.
    fn available(
        &self,
        name: &str,
        world: &World,
        cloud: &dyn Cloud,
        store: &SqliteStore,
    ) -> BTreeSet<String> {
        let rollout = &self.groups[name];
        let checks = rollout.health().is_some();
        let Ok(snapshot) = store.snapshot() else {
            return BTreeSet::new();
        };
        let live = world.live();
        let serves = |record: &&nstance_state::Record| {
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
        store: &SqliteStore,
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
        store: &SqliteStore,
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
                let known = self.ran.entry(seen.provider_id.clone()).or_default();
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
        store: &SqliteStore,
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
            if now < ended.after(pause) {
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
    fn of(group: &Group, own: &[(TaskId, &Change)]) -> Self {
        let policy = group.policy.clone().unwrap_or_default();
        let size = group.size;
        let (mut unavailable, surge) = policy.bounds(size);
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
pub(crate) fn is_balanced(store: &SqliteStore, record: &nstance_state::Record) -> bool {
    let specs = store.specs([record.spec].into_iter()).unwrap_or_default();
    let spec = specs.get(&record.spec);
    let spec: Option<SpecBody> = spec.and_then(|bytes| serde_json::from_slice(bytes).ok());
    spec.is_some_and(|spec| !spec.head.load_balancers.is_empty())
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
