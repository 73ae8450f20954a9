//! Retries reads.
//!
//! In: a cloud. Out: the same cloud, whose reads are retried. Must not: retry calls with effects;
//! the engine does, since it journals them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{
    Access, AccessSample, Cloud, CloudError, CreateRequest, DeleteRequest, ImageMatch, ImageQuery,
    InstanceType, LaunchedUserdata, Observation, Owner, Page, SubnetInfo, TargetHealth,
    TargetsRequest, UpdateRequest, WantedCapacity,
};
use crate::clock::Clock;
use crate::config::model::Check;

/// The maximum number of tries of a read.
const TRIES: u32 = 6;
/// The wait before the first retry; it doubles for each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// A cloud whose reads are retried.
pub struct RetryingReads<'a> {
    cloud: &'a dyn Cloud,
    clock: &'a dyn Clock,
    turns: AtomicU64,
}

impl<'a> RetryingReads<'a> {
    /// Wraps a cloud.
    pub fn new(cloud: &'a dyn Cloud, clock: &'a dyn Clock) -> Self {
        Self {
            cloud,
            clock,
            turns: AtomicU64::new(0),
        }
    }

    fn retry<T>(&self, mut call: impl FnMut() -> Result<T, CloudError>) -> Result<T, CloudError> {
        let mut wait = FIRST_WAIT;
        for _ in 1..TRIES {
            match call() {
                Err(error) if error.kind.is_retryable() => self.clock.sleep(self.jittered(wait)),
                other => return other,
            }
            wait *= 2;
        }
        call()
    }

    /// Half of a wait is fixed, the other half random, so that retries spread out.
    fn jittered(&self, wait: Duration) -> Duration {
        // Derived from the time and a counter, so that simulations are reproducible.
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        let mixed = (self.clock.now().0 as u64)
            .wrapping_add(turn.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_mul(0x2545_f491_4f6c_dd1d);
        let half = wait / 2;
        half + half.mul_f64((mixed >> 40) as f64 / f64::from(1 << 24))
    }
}

impl Cloud for RetryingReads<'_> {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }

    fn list(&self, owner: &Owner, page: Option<&str>) -> Result<Page, CloudError> {
        self.retry(|| self.cloud.list(owner, page))
    }

    fn describe(&self, provider_ids: &[String]) -> Result<Vec<Observation>, CloudError> {
        self.retry(|| self.cloud.describe(provider_ids))
    }

    fn find_images(&self, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
        self.retry(|| self.cloud.find_images(query))
    }

    fn subnets(&self, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
        self.retry(|| self.cloud.subnets(ids))
    }

    fn instance_types(&self, names: &[String]) -> Result<Option<Vec<InstanceType>>, CloudError> {
        self.retry(|| self.cloud.instance_types(names))
    }

    fn near_instance_type(&self, name: &str) -> Option<String> {
        self.cloud.near_instance_type(name)
    }

    fn limits_ahead(&self, wanted: &[WantedCapacity]) -> Vec<String> {
        self.cloud.limits_ahead(wanted)
    }

    fn asks_for_userdata(&self) -> bool {
        self.cloud.asks_for_userdata()
    }

    fn recall_userdata(&self, known: Vec<LaunchedUserdata>) {
        self.cloud.recall_userdata(known);
    }

    fn userdata_launches(&self) -> BTreeMap<String, String> {
        self.cloud.userdata_launches()
    }

    fn check_access(&self, sample: &AccessSample) -> Option<Result<Access, CloudError>> {
        self.cloud.check_access(sample)
    }

    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError> {
        self.cloud.create(request)
    }

    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError> {
        self.cloud.update(request)
    }

    fn register(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        self.cloud.register(request)
    }

    fn deregister(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        self.cloud.deregister(request)
    }

    fn target_health(
        &self,
        provider_ids: &[String],
        load_balancers: &[String],
    ) -> Result<Vec<TargetHealth>, CloudError> {
        self.retry(|| self.cloud.target_health(provider_ids, load_balancers))
    }

    fn probe(&self, provider_id: &str, check: &Check) -> Option<Result<(), String>> {
        self.cloud.probe(provider_id, check)
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        self.cloud.delete(request)
    }

    fn wait_timeout(&self) -> Duration {
        self.cloud.wait_timeout()
    }

    fn visibility_window(&self) -> Duration {
        self.cloud.visibility_window()
    }

    fn parallelism(&self) -> usize {
        self.cloud.parallelism()
    }
}
