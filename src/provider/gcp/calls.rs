//! API calls with rate limits, converted errors, pages, and operations followed to their end.
//!
//! In: operations and inputs. Out: outputs. Must not: retry a change; only the caller knows whether
//! that is safe.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nstance_gce::{Api, Operation};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::provider::limits::Bucket;
use crate::provider::{CloudError, CloudErrorKind};

use super::errors;
use super::observe::{items, text};
use super::options::GcpOptions;
use super::paths::{Place, name};
use super::request::request_id;

/// How many failed operations of earlier runs are passed over.
const MOST_FAILURES: u32 = 20;

/// The largest page.
const PAGE: u32 = 500;

/// The rate-limited API of one project.
pub(super) struct Calls {
    api: Arc<dyn Api>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) place: Place,
    reads: Bucket,
    writes: Bucket,
    wait_timeout: Duration,
    poll_interval: Duration,
    /// How many operations of a token failed.
    failed: Mutex<HashMap<String, u32>>,
}

impl Calls {
    pub(super) fn new(
        api: Arc<dyn Api>,
        clock: Arc<dyn Clock>,
        place: Place,
        options: &GcpOptions,
    ) -> Self {
        Self {
            api,
            clock,
            place,
            reads: Bucket::new(options.read_rate),
            writes: Bucket::new(options.write_rate),
            wait_timeout: options.wait_timeout,
            poll_interval: options.poll_interval,
            failed: Mutex::default(),
        }
    }

    /// Makes one call in the project, after waiting for the rate limit.
    ///
    /// Fails with the converted error.
    pub(super) fn call(&self, operation: Operation, mut input: Value) -> Result<Value, CloudError> {
        if operation.is_read() {
            self.reads.take(&*self.clock);
        } else {
            self.writes.take(&*self.clock);
        }
        let is_of_project = operation != Operation::ProjectsTestIamPermissions;
        if is_of_project && input.get("project").is_none() {
            input["project"] = self.place.project.as_str().into();
        }
        self.api
            .call(operation, &input)
            .map_err(|error| errors::told(operation, &error))
    }

    /// One object; `None` if it doesn't exist.
    ///
    /// Fails if the call does.
    pub(super) fn find(
        &self,
        operation: Operation,
        input: Value,
    ) -> Result<Option<Value>, CloudError> {
        match self.call(operation, input) {
            Err(error) if error.kind == CloudErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// All items of a list.
    ///
    /// Fails if a call does.
    pub(super) fn pages(
        &self,
        operation: Operation,
        mut input: Value,
    ) -> Result<Vec<Value>, CloudError> {
        input["maxResults"] = PAGE.into();
        let mut found = Vec::new();
        loop {
            let mut answer = self.call(operation, input.clone())?;
            if let Some(Value::Array(items)) = answer.get_mut("items").map(Value::take) {
                found.extend(items);
            }
            match text(&answer, "nextPageToken").filter(|next| !next.is_empty()) {
                Some(next) => input["pageToken"] = next.into(),
                None => return Ok(found),
            }
        }
    }

    /// One page of the instances of all zones that match a filter. One of the region's zones that
    /// can't be reached is an error: its instances would be taken for missing.
    ///
    /// Fails if the call does.
    pub(super) fn instances(
        &self,
        filter: &str,
        page: Option<&str>,
    ) -> Result<(Vec<Value>, Option<String>), CloudError> {
        let mut input = json!({"maxResults": PAGE});
        if !filter.is_empty() {
            input["filter"] = filter.into();
        }
        if let Some(page) = page {
            input["pageToken"] = page.into();
        }
        let answer = self.call(Operation::InstancesAggregatedList, input)?;
        let own = format!("{}-", self.place.region);
        let is_own = |scope: &str| name(scope).starts_with(&own);
        let scopes = answer.get("items").and_then(Value::as_object);
        let unreachable = items(&answer, "unreachables").filter_map(Value::as_str);
        let warned = scopes.into_iter().flatten().filter(|(_, scope)| {
            let warning = scope.get("warning");
            warning.and_then(|warning| text(warning, "code")) == Some("UNREACHABLE")
        });
        let mut missing = unreachable.chain(warned.map(|(scope, _)| scope.as_str()));
        if let Some(scope) = missing.find(|scope| is_own(scope)) {
            return Err(CloudError::new(
                CloudErrorKind::Transient,
                "UNREACHABLE",
                format!("the instances of {scope} can't be listed"),
            ));
        }
        let found = scopes.into_iter().flatten();
        let found = found.flat_map(|(_, scope)| items(scope, "instances").cloned());
        let next = text(&answer, "nextPageToken").filter(|next| !next.is_empty());
        Ok((found.collect(), next.map(str::to_owned)))
    }

    /// Changes something, and waits until that is done.
    ///
    /// Fails if the call does, if its operation ends with an error, or on a timeout.
    pub(super) fn change(&self, operation: Operation, input: Value) -> Result<(), CloudError> {
        let begun = self.call(operation, input)?;
        self.follow(operation, begun)?.map_or(Ok(()), Err)
    }

    /// Changes something once, however often it is asked for with this token: a repeated request
    /// follows the operation that is under way. After an operation that failed, the next request is
    /// a new one, since Compute Engine would answer the same one with this failure again.
    ///
    /// Fails as [`Self::change`] does.
    pub(super) fn change_once(
        &self,
        operation: Operation,
        mut input: Value,
        token: &str,
    ) -> Result<(), CloudError> {
        let mut failures = self.failed().get(token).copied().unwrap_or(0);
        loop {
            let id = match failures {
                0 => request_id(token),
                failures => request_id(&format!("{token}/{failures}")),
            };
            input["requestId"] = id.into();
            let begun = self.call(operation, input.clone())?;
            // A new operation takes a while. One that is done at once is an earlier run's.
            let was_done = text(&begun, "status") == Some("DONE");
            let Some(error) = self.follow(operation, begun)? else {
                return Ok(());
            };
            failures += 1;
            self.failed().insert(token.to_owned(), failures);
            if !was_done || failures >= MOST_FAILURES {
                return Err(error);
            }
        }
    }

    fn failed(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of an operation. Returns the error that it ended with, if it did.
    ///
    /// Fails on a timeout, or if the operation can't be asked for.
    fn follow(&self, operation: Operation, begun: Value) -> Result<Option<CloudError>, CloudError> {
        let end = self.clock.now().after(self.wait_timeout);
        let mut latest = begun;
        loop {
            if text(&latest, "status") == Some("DONE") {
                return Ok(errors::of_operation(operation, &latest));
            }
            let (Some(id), Some(zone)) = (text(&latest, "name"), text(&latest, "zone")) else {
                return Err(CloudError::new(
                    CloudErrorKind::Ambiguous,
                    "UnreadableAnswer",
                    format!("the answer to {operation} names no operation in a zone"),
                ));
            };
            let input = json!({"zone": name(zone), "operation": id});
            let left = end.since(self.clock.now());
            if left.is_zero() {
                let seconds = self.wait_timeout.as_secs();
                return Err(CloudError::new(
                    CloudErrorKind::Ambiguous,
                    "WaitTimeout",
                    format!("{operation} (operation {id}) wasn't done within {seconds}s"),
                )
                .hint("run apply again; `wait_timeout` in `shard.infra.options` sets the limit"));
            }
            self.clock.sleep(self.poll_interval.min(left));
            match self.call(Operation::ZoneOperationsGet, input) {
                Ok(answer) => latest = answer,
                Err(error) if error.kind.is_retryable() => {}
                Err(mut error) => {
                    // The operation goes on all the same.
                    error.kind = CloudErrorKind::Ambiguous;
                    return Err(error);
                }
            }
        }
    }
}
