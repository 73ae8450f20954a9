//! Compute Engine's API for programs that speak JSON.
//!
//! An [`Api`] takes an [`Operation`] and a JSON object: the operation's parameters by the names of
//! Google's discovery document (`project`, `zone`, `requestId`, …), and the request's resource under
//! `body`. The answer is the resource as the API writes it:
//!
//! - names are in camel case; unset members and empty lists are absent;
//! - 64-bit integers are strings; timestamps are strings as in RFC 3339; bytes are base64;
//! - enumerations are strings, and unknown members and values pass unchanged.
//!
//! With the feature `client` there is an [`Api`] that talks to Google Cloud. Without it the crate is
//! a few names and an error, so that code that decides about Compute Engine builds without an SDK.
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
pub use operation::Operation;
