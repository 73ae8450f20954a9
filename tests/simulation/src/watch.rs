//! The cloud and the clock, watched: every effect is a point where a run may die, where another
//! may go on, and where what must be true is looked at.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nstance::clock::{Clock, Timestamp};
use nstance::config::model::Check;
use nstance::provider::sim::admin::InstanceRow;
use nstance::provider::{
    Cloud, CloudError, CreateRequest, DeleteRequest, ImageMatch, ImageQuery, LifecycleState,
    Observation, Owner, Page, SubnetInfo, TargetHealth, TargetsRequest, UpdateRequest,
};

use crate::disk::Disk;
use crate::promise::Promise;
use crate::turns::Turns;
use crate::world::{Broken, Eye, World};

/// The process died. Thrown without a panic's message.
struct Death;

/// Counts the points where a run may die, and dies at one of them.
#[derive(Default)]
pub(crate) struct Fuse<'a> {
    passed: AtomicUsize,
    burns_at: Option<usize>,
    /// Stops with the process.
    disk: Option<&'a Disk>,
    turns: Option<(&'a Turns, usize)>,
    eye: Option<(&'a World, Mutex<Eye>)>,
    broken: Mutex<Option<Broken>>,
}

impl<'a> Fuse<'a> {
    /// Dies at the point of that number, from 0; never if there is none.
    pub(crate) fn new(burns_at: Option<usize>) -> Self {
        Self {
            burns_at,
            ..Self::default()
        }
    }

    /// Nothing is written to the disk after the death.
    pub(crate) fn with_disk(mut self, disk: Option<&'a Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// Takes turns with others at each point.
    pub(crate) fn in_turns(mut self, turns: &'a Turns, person: usize) -> Self {
        self.turns = Some((turns, person));
        self
    }

    /// Looks at each point whether all is as it must be.
    pub(crate) fn watching(mut self, world: &'a World) -> Self {
        self.eye = Some((world, Mutex::default()));
        self
    }

    /// A point where another may go on.
    pub(crate) fn pass(&self) {
        if let Some((turns, person)) = self.turns {
            turns.pass(person);
        }
    }

    /// A point where the process may die.
    pub(crate) fn point(&self) {
        self.pass();
        self.look();
        if Some(self.passed.fetch_add(1, Ordering::SeqCst)) == self.burns_at {
            if let Some(disk) = self.disk {
                disk.stop();
            }
            resume_unwind(Box::new(Death));
        }
    }

    fn look(&self) {
        if let Some((world, eye)) = &self.eye
            && let Err(broken) = lock(eye).check(world)
        {
            self.break_off(format!("between two steps: {broken}"));
        }
    }

    /// What must not be was seen; the first of it counts.
    pub(crate) fn break_off(&self, broken: Broken) {
        lock(&self.broken).get_or_insert(broken);
    }

    /// What must not be, if it was seen.
    pub(crate) fn broken(&self) -> Option<Broken> {
        lock(&self.broken).take()
    }

    /// What the state held at the last point, if anyone looked.
    pub(crate) fn last_seen(&self) -> Option<String> {
        let (_, eye) = self.eye.as_ref()?;
        lock(eye).last_seen()
    }

    /// How many points were passed.
    pub(crate) fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A death is thrown through whatever was locked; what is in there is as good as ever.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs until the end or the death; `None`: it died. Everything in memory is gone with it.
pub(crate) fn until_death<T>(life: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(life)) {
        Ok(value) => Some(value),
        Err(thrown) => {
            let thrown: Box<dyn Any + Send> = thrown;
            match thrown.downcast::<Death>() {
                Ok(_) => None,
                Err(panic) => resume_unwind(panic),
            }
        }
    }
}

/// A clock whose every look is a point: `recover` looks before each of its commits.
pub(crate) struct WatchedClock<'a> {
    pub(crate) clock: &'a dyn Clock,
    pub(crate) fuse: &'a Fuse<'a>,
}

impl Clock for WatchedClock<'_> {
    fn now(&self) -> Timestamp {
        self.fuse.point();
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration);
    }
}

/// What a run may do to the cloud, and what it did beyond that.
#[derive(Debug, Default)]
pub(crate) struct Leave {
    /// Instances that may be made, by our id.
    pub(crate) born: BTreeSet<String>,
    /// Instances that may be changed, by the cloud's id.
    pub(crate) changed: BTreeSet<String>,
    /// Instances that may be deleted, by the cloud's id.
    pub(crate) doomed: BTreeSet<String>,
    /// Those of them that another instance replaces, with their slots: it must run by then.
    pub(crate) succeeded: BTreeMap<String, String>,
    /// Those of them that nothing replaces.
    pub(crate) budgeted: BTreeSet<String>,
    /// Those of the budgeted that were deleted, and how many may be.
    pub(crate) spent: BTreeSet<String>,
    pub(crate) budget: Option<usize>,
    /// What was done without leave.
    pub(crate) unplanned: Vec<String>,
}

/// A cloud that dies before and after effects, and knows what may be done.
pub(crate) struct WatchedCloud<'a> {
    pub(crate) cloud: &'a dyn Cloud,
    pub(crate) world: &'a World,
    pub(crate) fuse: &'a Fuse<'a>,
    pub(crate) leave: &'a Mutex<Leave>,
    pub(crate) promise: &'a Mutex<Promise>,
}

impl WatchedCloud<'_> {
    fn effect<T>(&self, call: impl FnOnce() -> T) -> T {
        self.fuse.point();
        let answer = call();
        self.fuse.point();
        answer
    }

    fn read<T>(&self, call: impl FnOnce() -> T) -> T {
        self.fuse.pass();
        call()
    }

    fn asks_leave(&self, what: &str, id: &str, may: impl Fn(&Leave) -> &BTreeSet<String>) {
        let mut leave = lock(self.leave);
        if !may(&leave).contains(id) {
            leave.unplanned.push(format!("{what} {id}"));
        }
    }
}

impl Cloud for WatchedCloud<'_> {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }

    fn list(&self, owner: &Owner, page: Option<&str>) -> Result<Page, CloudError> {
        self.read(|| self.cloud.list(owner, page))
    }

    fn describe(&self, provider_ids: &[String]) -> Result<Vec<Observation>, CloudError> {
        self.read(|| self.cloud.describe(provider_ids))
    }

    fn find_images(&self, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
        self.read(|| self.cloud.find_images(query))
    }

    fn subnets(&self, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
        self.read(|| self.cloud.subnets(ids))
    }

    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError> {
        self.asks_leave("made", &request.instance_id, |leave| &leave.born);
        self.effect(|| self.cloud.create(request))
    }

    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError> {
        self.asks_leave("changed", &request.provider_id, |leave| &leave.changed);
        self.effect(|| self.cloud.update(request))
    }

    fn register(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        let id = &request.provider_id;
        let mut leave = lock(self.leave);
        let live = self.world.live();
        let row = live.iter().find(|row| row.provider_id == *id);
        let own = row.and_then(|row| row.instance_id.as_ref());
        if !leave.changed.contains(id) && own.is_some_and(|own| !leave.born.contains(own)) {
            leave.unplanned.push(format!("registered {id}"));
        }
        drop(leave);
        self.effect(|| self.cloud.register(request))
    }

    fn deregister(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        let id = &request.provider_id;
        let mut leave = lock(self.leave);
        if !leave.doomed.contains(id) && !leave.changed.contains(id) {
            leave.unplanned.push(format!("deregistered {id}"));
        }
        drop(leave);
        self.effect(|| self.cloud.deregister(request))
    }

    fn target_health(
        &self,
        provider_ids: &[String],
        load_balancers: &[String],
    ) -> Result<Vec<TargetHealth>, CloudError> {
        self.read(|| self.cloud.target_health(provider_ids, load_balancers))
    }

    fn probe(&self, provider_id: &str, check: &Check) -> Option<Result<(), String>> {
        // From several threads at once: nobody's turn.
        self.cloud.probe(provider_id, check)
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        let id = &request.provider_id;
        self.asks_leave("deleted", id, |leave| &leave.doomed);
        let mut leave = lock(self.leave);
        if let Some(slot) = leave.succeeded.get(id) {
            let runs = |row: &InstanceRow| {
                row.provider_id != *id
                    && row.address.as_deref() == Some(slot)
                    && row.state == LifecycleState::Running
            };
            let was_available = lock(self.promise).has_successor(slot, id, self.world);
            if was_available != Some(true) && !self.world.live().iter().any(runs) {
                let early = format!("deleted before its successor in {slot} ran: {id}");
                leave.unplanned.push(early);
            } else if was_available == Some(false) {
                let early = format!("deleted before its successor in {slot} was available: {id}");
                leave.unplanned.push(early);
            }
        }
        if leave.budgeted.contains(id) {
            leave.spent.insert(id.clone());
            if leave
                .budget
                .is_some_and(|budget| leave.spent.len() > budget)
            {
                leave
                    .unplanned
                    .push(format!("deleted beyond the budget: {id}"));
            }
        }
        drop(leave);
        self.effect(|| self.cloud.delete(request))
    }

    fn visibility_window(&self) -> Duration {
        self.cloud.visibility_window()
    }
}
