//! EC2: its rules, and its client.
//!
//! In: what is asked of a [`crate::provider::Cloud`]. Out: what EC2 does and says. Must not: encode
//! or send anything: that is the crate `nstance-ec2`, which decides nothing; everything that is
//! decided about EC2 is decided here, and is compiled and tested without its SDK.
//!
//! [`AwsCloud`] is the whole. `request`, `observe`, `asked` and `update` are pure: what is sent,
//! what was said, how it compares, what it takes to change it. `calls` keeps to the limits
//! (`limits`), `errors` tells what was refused, `combine` makes one call of many.

mod access;
mod balancers;
mod calls;
mod cloud;
mod combine;
mod errors;
mod images;
mod limits;
mod network;
pub(crate) mod normalize;
mod observe;
mod options;
mod request;
pub mod rules;
mod types;
mod update;

pub use cloud::AwsCloud;
pub use limits::Rate;
pub use options::AwsOptions;

#[cfg(test)]
mod tests;
