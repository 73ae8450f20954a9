//! The guarantees of an apply, proven on the real engine, the real state and the embedded cloud.
//!
//! One thread runs everything in a seeded order: a plan is made and carried out as `nstance apply`
//! does it, and dies where it is told to. After every run the state and the cloud are compared;
//! then the faults end, and a few applies must bring about exactly what is declared.
//!
//! `NSTANCE_SIM_SEEDS=N` runs N random lifetimes instead of a few hundred, `NSTANCE_SIM_FIRST=S`
//! starts at seed S.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic: that is how it fails; and it tells how much it did"
)]

mod chance;
mod crash_points;
mod engine;
mod fleet;
mod lifetimes;
mod mutations;
mod regressions;
mod rehearsal;
mod run;
mod watch;
mod world;
