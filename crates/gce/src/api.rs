//! What all clients have in common.
//!
//! In: an operation and its input. Out: its answer, or why there is none. Must not: know a client.

use serde_json::Value;

use crate::{ApiError, Operation};

/// Something that answers as Google Cloud does.
pub trait Api: Send + Sync {
    /// Makes one call and waits for its answer. Nothing is tried twice.
    ///
    /// `input` is a JSON object with the operation's parameters; the request's resource, if there
    /// is one, is its member `body`. Unknown members are an error. `null` is the same as absent.
    ///
    /// Calls that change something answer with a Compute Engine operation, as soon as it is
    /// accepted. Such an operation may have failed: look at its member `error`.
    fn call(&self, operation: Operation, input: &Value) -> Result<Value, ApiError>;
}

impl<T: Api + ?Sized> Api for std::sync::Arc<T> {
    fn call(&self, operation: Operation, input: &Value) -> Result<Value, ApiError> {
        (**self).call(operation, input)
    }
}
