//! Renders Go templates over merged values: args, userdata and files.
//!
//! In: a [`MergedGroup`](crate::merge::group::MergedGroup), resolved images, and the instance's
//! identity. Out: [`InstanceSpec`](crate::spec::InstanceSpec)s and findings with places in the
//! configuration. Must not: do I/O; missing data is unknown.

pub mod args;
pub mod cache;
pub mod data;
pub mod dns;
pub mod erb;
pub mod explanation;
mod facts;
pub mod files;
pub mod group;
pub mod hints;
pub mod identity;
pub mod instance;
mod join_cache;
pub mod layers;
pub mod library;
pub mod links;
pub mod placeholders;
mod rendered_layer;
pub mod renderer;
pub mod sampling;
mod sensitivity;
pub mod substitutions;
mod texts;
pub mod userdata;
