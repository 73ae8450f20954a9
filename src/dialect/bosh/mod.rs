//! Reads BOSH deployment manifests, with their ops files, variables and releases.
//!
//! In: the paths of a deployment's files. Out: the deployment as [`nstance_bosh`] resolves it, and
//! its groups in nstance's own schema, with findings that have file, line and column. Must not: write
//! files, or download releases.

mod bpm;
mod groups;
mod load;
mod ruby;
#[cfg(test)]
mod tests;
mod units;
mod update;

pub use bpm::processes;
pub use groups::{Placement, groups, id_of, is_manifest, unusable_name};
pub use load::{Deployment, Inputs, finding, interpolated, load, render_finding};
pub use ruby::{Ruby, without_tags};
