//! EC2: its rules and its client.
//!
//! In: calls of [`crate::provider::Cloud`]. Out: observations and errors. Must not: encode or send
//! requests; the crate `nstance-ec2` does. All decisions about EC2 are made here, and are compiled
//! and tested without its SDK.
//!
//! [`AwsCloud`] is the client. `request`, `observe`, `normalize` and `update` are pure: they build
//! requests, read answers, compare and plan updates. `calls` applies rate limits,
//! `errors` converts errors, `combine` batches calls.

mod access;
mod balancers;
mod calls;
mod cloud;
mod combine;
mod errors;
mod images;
mod network;
pub(crate) mod normalize;
mod observe;
mod options;
mod request;
pub mod rules;
mod types;
mod update;

pub use cloud::AwsCloud;
pub use options::AwsOptions;

#[cfg(test)]
mod tests;
