//! Computes a [`Plan`](change::Plan) from the desired, recorded and observed instances.
//!
//! In: rendered groups, a snapshot of the state, the observation, a time. Out: changes with
//! reasons. Must not: do I/O, read a clock, or use randomness that isn't passed in.

pub mod accept;
pub mod actual;
pub mod build;
pub mod change;
mod compare;
mod creatable;
pub mod diff;
pub mod drift;
mod exclusive;
pub mod file;
pub mod group;
pub mod inputs;
pub mod links;
pub mod manifest;
pub mod nonces;
pub mod observation_cache;
mod places;
mod planned;
pub mod rollout;
