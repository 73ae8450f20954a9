//! Compute Engine, as the real binary speaks with it: a server of ours on loopback, which checks each
//! request and each answer against Google's own description of the API.
//!
//! In: configurations, command lines, faults. Out: what a command left, and what the server has then.
//! Must not: run without that description, unless this is CI.
//!
//! `cargo xtask test --features gcp gcp::` runs these alone.

mod balancers;
mod failures;
mod lifecycle;
mod updates;
mod world;
