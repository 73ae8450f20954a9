//! `cargo xtask simulate`: the simulation's program, built to be fast.
//!
//! In: its arguments. Out: its output. May not: know what a lifetime is.

use crate::{Failure, process};

/// How many lifetimes the tests run: about two minutes on two cores.
pub(crate) const IN_TESTS: &str = "10000";

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let mut simulate = process::cargo();
    simulate.args(["run", "--quiet", "--locked", "--profile", "simulate"]);
    simulate.args(["--package", "nstance-simulation", "--"]);
    process::run(simulate.args(arguments))
}
