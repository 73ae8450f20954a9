//! Reads BOSH deployment manifests, with their ops files, variables and releases.
//!
//! In: the paths of a deployment's files. Out: the deployment as [`nstance_bosh`] resolves it, with
//! findings that have file, line and column. Must not: write files, or download releases.

mod load;
mod ruby;
#[cfg(test)]
mod tests;
pub mod units;

pub use load::{Deployment, Inputs, finding, interpolated, load, render_finding};
pub use ruby::{Ruby, without_tags};
