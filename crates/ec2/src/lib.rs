//! EC2's API, and what belongs to it, for programs that speak JSON.
//!
//! An [`Api`] takes an [`Operation`] and a JSON object that holds the operation's input by the
//! API's own names, and gives the output in the same way:
//!
//! - unset members are absent;
//! - timestamps are strings as in RFC 3339, in UTC; blobs are strings in base64;
//! - enumerations are strings, and values that nobody knows yet pass unchanged.
//!
//! With the feature `client` there is an [`Api`] that talks to AWS. Without it the crate is a few
//! names and an error, so that what decides about EC2 can be built and tested without an SDK that
//! takes minutes to build.
#![warn(missing_docs)]

mod api;
#[cfg(feature = "client")]
mod client;
mod error;
mod operation;

pub use api::Api;
#[cfg(feature = "client")]
pub use client::{Client, ClientOptions};
pub use error::{ApiError, ApiErrorKind};
pub use operation::{Operation, Service};
