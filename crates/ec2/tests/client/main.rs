//! The client against servers on loopback, and against what botocore sends and reads.
#![expect(clippy::unwrap_used, reason = "tests may panic: that is how they fail")]

mod botocore;
mod child;
mod credentials;
mod failures;
mod server;
mod tls;
