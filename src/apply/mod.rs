//! Carrying a plan out, and never losing an instance on the way.
//!
//! In: a [`Plan`](crate::plan::change::Plan), a store and a cloud. Out: the same, changed; progress
//! as it happens; an [`Outcome`](engine::Outcome). May not: decide anything that the plan decided.
//!
//! [`engine`] is the protocol of design §7 as a state machine without I/O: events in, commands out.
//! [`driver`] gives it threads, a store and a cloud. [`recover`] settles what an earlier run left
//! open, before anything else is done.

pub mod driver;
pub mod engine;
pub mod export;
mod failing;
pub mod journal;
pub mod protocol;
pub mod recover;
pub mod requests;
mod settling;
pub mod staleness;
