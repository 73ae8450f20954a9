//! Calls of the API: kept to their limits, their errors in the planner's words, lists whole.
//!
//! In: operations and inputs. Out: outputs. Must not: try anything twice; who asked knows whether
//! that does harm.

use std::sync::Arc;

use nstance_ec2::{Api, Operation};
use serde_json::{Map, Value, json};

use crate::clock::{Clock, Timestamp};
use crate::provider::{CloudError, CloudErrorKind};

use super::errors;
use super::limits::Bucket;
use super::observe::{items, text};
use super::options::AwsOptions;

/// The most values that a filter may have.
pub(super) const FILTER_VALUES: usize = 200;

/// The API, asked as fast as we may.
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

    /// One call, when its turn has come.
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

    /// What the API itself says, for who looks for certain errors.
    pub(super) fn raw(
        &self,
        operation: Operation,
        input: &Value,
    ) -> Result<Value, nstance_ec2::ApiError> {
        self.reads.take(&*self.clock);
        self.api.call(operation, input)
    }

    /// All pages of an operation that gives some of `list` at a time.
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
            // ELB and EC2 name the same thing differently.
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

    /// The instances of these ids that EC2 knows, as it describes them. Unknown ids are no error:
    /// they are asked for by filter.
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

    /// Looks again and again until `done` says so; `None`: the time is up.
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

/// Whether looking again may help.
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

/// What an answer should have had and hasn't.
pub(super) fn unreadable(operation: Operation, what: &str) -> CloudError {
    CloudError::new(
        CloudErrorKind::Ambiguous,
        "UnreadableAnswer",
        format!("the answer to {operation} has no {what}"),
    )
}

/// An object with a member, for inputs that are put together.
pub(super) fn with(mut input: Value, members: &Map<String, Value>) -> Value {
    if let Value::Object(object) = &mut input {
        object.extend(members.clone());
    }
    input
}
