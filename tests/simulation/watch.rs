//! The cloud and the clock, watched: every effect is a point where a run may die.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nstance::clock::{Clock, Timestamp};
use nstance::provider::{
    Cloud, CloudError, CreateRequest, DeleteRequest, ImageMatch, ImageQuery, Observation, Owner,
    Page, SubnetInfo, UpdateRequest,
};

/// The process died. Thrown without a panic's message.
struct Death;

/// Counts the points where a run may die, and dies at one of them.
#[derive(Debug, Default)]
pub(crate) struct Fuse {
    passed: AtomicUsize,
    burns_at: Option<usize>,
}

impl Fuse {
    /// Dies at the point of that number, from 0; never if there is none.
    pub(crate) fn new(burns_at: Option<usize>) -> Self {
        Self {
            passed: AtomicUsize::new(0),
            burns_at,
        }
    }

    /// A point where the process may die.
    pub(crate) fn point(&self) {
        if Some(self.passed.fetch_add(1, Ordering::SeqCst)) == self.burns_at {
            resume_unwind(Box::new(Death));
        }
    }

    /// How many points were passed.
    pub(crate) fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }
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
    pub(crate) fuse: &'a Fuse,
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

/// A cloud that dies before and after effects, and knows what may be deleted.
pub(crate) struct WatchedCloud<'a> {
    pub(crate) cloud: &'a dyn Cloud,
    pub(crate) fuse: &'a Fuse,
    /// What the plan says may go, by provider id.
    pub(crate) doomed: &'a Mutex<BTreeSet<String>>,
    /// What was deleted without being in there.
    pub(crate) unplanned: &'a Mutex<Vec<String>>,
    /// What the client says of the visibility window, where it isn't the truth.
    pub(crate) window: Option<Duration>,
}

impl WatchedCloud<'_> {
    fn effect<T>(&self, call: impl FnOnce() -> T) -> T {
        self.fuse.point();
        let answer = call();
        self.fuse.point();
        answer
    }
}

impl Cloud for WatchedCloud<'_> {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }

    fn list(&self, owner: &Owner, page: Option<&str>) -> Result<Page, CloudError> {
        self.cloud.list(owner, page)
    }

    fn describe(&self, provider_ids: &[String]) -> Result<Vec<Observation>, CloudError> {
        self.cloud.describe(provider_ids)
    }

    fn find_images(&self, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
        self.cloud.find_images(query)
    }

    fn subnets(&self, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
        self.cloud.subnets(ids)
    }

    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError> {
        self.effect(|| self.cloud.create(request))
    }

    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError> {
        self.effect(|| self.cloud.update(request))
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        if !self.doomed.lock().unwrap().contains(&request.provider_id) {
            let mut unplanned = self.unplanned.lock().unwrap();
            unplanned.push(request.provider_id.clone());
        }
        self.effect(|| self.cloud.delete(request))
    }

    fn visibility_window(&self) -> Duration {
        let truth = self.cloud.visibility_window();
        self.window.unwrap_or(truth)
    }
}
