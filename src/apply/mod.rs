//! Applies a plan without ever losing an instance.
//!
//! In: a [`Plan`](crate::plan::change::Plan), a store and a cloud. Out: changes of both, progress,
//! an [`Outcome`](engine::Outcome). Must not: change the plan's decisions.
//!
//! [`engine`] is the protocol as a state machine without I/O: events in, commands out. [`driver`]
//! runs it with threads, a store and a cloud. [`recover`] first settles the intents that an earlier
//! run left open.

pub mod availability;
pub mod checks;
pub mod driver;
pub mod engine;
pub mod export;
mod failures;
mod gates;
pub mod journal;
pub mod nonce;
pub mod nonce_command;
pub mod protocol;
pub mod recover;
pub mod requests;
mod results;
pub mod resume;
pub mod rollback;
pub mod rollout_record;
pub mod stages;
pub mod staleness;
pub mod steps;
mod waiting;
