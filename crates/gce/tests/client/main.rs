//! The client against servers on loopback.
#![expect(clippy::unwrap_used, reason = "tests may panic: that is how they fail")]

mod calls;
mod child;
mod credentials;
mod failures;
mod server;
mod tls;
