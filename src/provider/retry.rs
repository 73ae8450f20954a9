//! Reading calls tried again where that may help.
//!
//! In: a cloud. Out: the same cloud, its reads patient. May not: retry what has an effect; that is
//! the engine's business, which journals it.

use std::time::Duration;

use super::{
    Cloud, CloudError, CreateRequest, DeleteRequest, ImageMatch, ImageQuery, Observation, Owner,
    Page, SubnetInfo, UpdateRequest,
};
use crate::clock::Clock;

/// Tries of one read.
const TRIES: u32 = 6;
/// The wait before the second; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// A cloud whose reads are tried again.
pub struct RetryingReads<'a> {
    cloud: &'a dyn Cloud,
    clock: &'a dyn Clock,
}

impl<'a> RetryingReads<'a> {
    /// Wraps a cloud.
    pub fn new(cloud: &'a dyn Cloud, clock: &'a dyn Clock) -> Self {
        Self { cloud, clock }
    }

    fn retry<T>(&self, mut call: impl FnMut() -> Result<T, CloudError>) -> Result<T, CloudError> {
        let mut wait = FIRST_WAIT;
        for _ in 1..TRIES {
            match call() {
                Err(error) if error.kind.is_retryable() => self.clock.sleep(wait),
                other => return other,
            }
            wait *= 2;
        }
        call()
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

    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError> {
        self.cloud.create(request)
    }

    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError> {
        self.cloud.update(request)
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        self.cloud.delete(request)
    }

    fn visibility_window(&self) -> Duration {
        self.cloud.visibility_window()
    }

    fn parallelism(&self) -> usize {
        self.cloud.parallelism()
    }
}
