//! Applies a plan, and never loses an instance on the way.
//!
//! In: a [`Plan`](crate::plan::change::Plan), a store and a cloud. Out: changes of both, progress
//! as it happens, an [`Outcome`](engine::Outcome). It must not decide anything that the plan
//! decided.
//!
//! [`engine`] is the protocol as a state machine without I/O: events in, commands out. [`driver`]
//! gives it threads, a store and a cloud. [`recover`] settles what an earlier run left open, before
//! anything else is done.

pub mod driver;
pub mod engine;
pub mod export;
mod failures;
pub mod journal;
pub mod protocol;
pub mod recover;
pub mod requests;
mod results;
pub mod staleness;
