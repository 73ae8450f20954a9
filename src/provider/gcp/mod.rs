//! Compute Engine: its rules, and the [`Cloud`](super::Cloud) that calls it.
//!
//! In: requests. Out: observations and errors. Must not: link an SDK; `nstance-gce` does, with its
//! feature `client`.

mod access;
mod calls;
mod cloud;
mod errors;
mod groups;
mod images;
mod members;
mod network;
pub(crate) mod normalize;
mod observe;
mod options;
mod paths;
mod quotas;
mod request;
mod rules;
#[cfg(test)]
mod tests;
mod update;

pub use cloud::{GcpCloud, Named};
pub use options::GcpOptions;
pub use rules::{
    check_args, check_merged_args, effect, leaves_disks, managed_labels, sanitise_label,
    user_labels,
};
