//! The one thing that all clients have in common.
//!
//! In: an operation and its input. Out: its output, or why there is none. May not: know a client.

use serde_json::Value;

use crate::{ApiError, Operation};

/// Something that answers as AWS does.
pub trait Api: Send + Sync {
    /// Makes one call and waits for its end. Nothing is tried twice.
    ///
    /// `input` and the answer are JSON objects by the API's own member names. An answer without
    /// members is `{}`.
    fn call(&self, operation: Operation, input: &Value) -> Result<Value, ApiError>;
}

impl<T: Api + ?Sized> Api for std::sync::Arc<T> {
    fn call(&self, operation: Operation, input: &Value) -> Result<Value, ApiError> {
        (**self).call(operation, input)
    }
}
