//! The guarantees of an apply, proven on the real engine, the real state and the embedded cloud.
//!
//! Everything runs in a seeded order, one step at a time: a plan is made and carried out as
//! `nstance apply` does it, and dies where it is told to; the disk forgets what wasn't synced;
//! others meddle. After every run (and in a share of the lifetimes after every step) state and cloud
//! are compared; then the faults end, and a few applies must bring about exactly what is declared.
//!
//! `cargo xtask simulate` runs the binary of this crate, whose databases lie on a simulated disk
//! ([`disk`]); the tests run the rest on the system's own.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic: that is how it fails; and it tells how much it did"
)]
#![allow(
    clippy::result_large_err,
    reason = "an end is an error of its steps, and comes once a run"
)]

mod arrival;
mod chance;
pub mod crash_points;
pub mod disk;
mod execution;
mod fleet;
pub mod ledger;
pub mod lifetimes;
pub mod mutants;
mod person;
mod policy;
mod promise;
mod run;
mod shared_memory;
mod turns;
mod watch;
mod world;

#[cfg(test)]
mod engine;
#[cfg(test)]
mod places;
#[cfg(test)]
mod regressions;
#[cfg(test)]
mod rehearsal;
