//! API calls with rate limits, converted errors and pagination.
//!
//! In: operations and inputs. Out: outputs. Must not: retry; only the caller knows whether that is
//! safe.

use std::sync::Arc;

use nstance_ec2::{Api, Operation};
use serde_json::{Map, Value, json};

use crate::clock::{Clock, Timestamp};
use crate::provider::limits::Bucket;
use crate::provider::{CloudError, CloudErrorKind};

use super::errors;
use super::observe::{items, text};
use super::options::AwsOptions;

/// The maximum number of values in a filter.
pub(super) const FILTER_VALUES: usize = 200;

/// The rate-limited API.
pub(super) struct Calls {
    api: Arc<dyn Api>,
    pub(super) clock: Arc<dyn Clock>,
    reads: Bucket,
    runs: Bucket,
}

impl Calls {
    pub(super) fn new(api: Arc<dyn Api>, clock: Arc<dyn Clock>, options: &AwsOptions) -> Self {
        Self {
            api,
            clock,
            reads: Bucket::new(options.read_rate),
            runs: Bucket::new(options.run_rate),
        }
    }

    /// Makes one call, after waiting for the rate limit.
    ///
    /// Fails with the converted error.
    pub(super) fn call(&self, operation: Operation, input: &Value) -> Result<Value, CloudError> {
        if operation == Operation::RunInstances {
            self.runs.take(&*self.clock);
        } else if operation.is_read() {
            self.reads.take(&*self.clock);
        }
        self.api
            .call(operation, input)
            .map_err(|error| errors::told(operation, error))
    }

    /// Makes one call.
    ///
    /// Fails with the API's own error, for callers that check its code.
    pub(super) fn raw(
        &self,
        operation: Operation,
        input: &Value,
    ) -> Result<Value, nstance_ec2::ApiError> {
        self.reads.take(&*self.clock);
        self.api.call(operation, input)
    }

    /// All pages of an operation, which returns items in `list`.
    ///
    /// Fails if a call fails.
    pub(super) fn pages(
        &self,
        operation: Operation,
        input: &Value,
        list: &str,
    ) -> Result<Vec<Value>, CloudError> {
        let mut input = input.clone();
        let mut found = Vec::new();
        loop {
            let mut answer = self.call(operation, &input)?;
            if let Some(Value::Array(items)) = answer.get_mut(list).map(Value::take) {
                found.extend(items);
            }
            // ELB and EC2 use different names for the page token.
            let next = ["NextToken", "NextMarker"]
                .into_iter()
                .find_map(|name| text(&answer, name).filter(|next| !next.is_empty()));
            let Some(next) = next else {
                return Ok(found);
            };
            let name = if answer.get("NextMarker").is_some() {
                "Marker"
            } else {
                "NextToken"
            };
            input[name] = next.into();
        }
    }

    /// The descriptions of these instances; ignores unknown ids by using a filter.
    ///
    /// Fails if a call fails.
    pub(super) fn instances(&self, ids: &[String]) -> Result<Vec<Value>, CloudError> {
        let mut found = Vec::new();
        for ids in ids.chunks(FILTER_VALUES) {
            let input = json!({
                "Filters": [filter("instance-id", ids)],
                "MaxResults": 1_000,
            });
            let reservations = self.pages(Operation::DescribeInstances, &input, "Reservations")?;
            found.extend(reservations.iter().flat_map(instances_of).cloned());
        }
        Ok(found)
    }

    /// Polls until `done` returns a value; `None` after `timeout`.
    ///
    /// Fails if `done` fails permanently.
    pub(super) fn poll<T>(
        &self,
        options: &AwsOptions,
        timeout: std::time::Duration,
        mut done: impl FnMut() -> Result<Option<T>, CloudError>,
    ) -> Result<Option<T>, CloudError> {
        let end: Timestamp = self.clock.now().after(timeout);
        loop {
            match done() {
                Ok(Some(value)) => return Ok(Some(value)),
                Ok(None) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
            let left = end.since(self.clock.now());
            if left.is_zero() {
                return Ok(None);
            }
            self.clock.sleep(options.poll_interval.min(left));
        }
    }
}

/// Whether polling again may help.
fn is_passing(error: &CloudError) -> bool {
    error.kind.is_retryable()
}

/// The instances of a reservation.
pub(super) fn instances_of(reservation: &Value) -> impl Iterator<Item = &Value> {
    items(reservation, "Instances")
}

/// A filter of the API.
pub(super) fn filter(name: &str, values: &[impl AsRef<str>]) -> Value {
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    json!({"Name": name, "Values": values})
}

/// The error that an answer lacks a member.
pub(super) fn unreadable(operation: Operation, what: &str) -> CloudError {
    CloudError::new(
        CloudErrorKind::Ambiguous,
        "UnreadableAnswer",
        format!("the answer to {operation} has no {what}"),
    )
}

/// Adds members to an object.
pub(super) fn with(mut input: Value, members: &Map<String, Value>) -> Value {
    if let Value::Object(object) = &mut input {
        object.extend(members.clone());
    }
    input
}
