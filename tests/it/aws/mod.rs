//! AWS, as the real binary speaks with it: moto, with a proxy before it that behaves as EC2 where
//! moto doesn't.
//!
//! In: configurations, command lines, faults. Out: what a command left, and what moto has then. May
//! not: run where there is no moto, unless this is CI.
//!
//! `cargo xtask test --features aws aws::` runs these alone.

mod balancers;
mod failures;
mod images;
mod lifecycle;
mod many;
mod nonces;
mod places;
mod rollouts;
mod updates;
mod world;
