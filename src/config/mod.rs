//! Text to one typed configuration.
//!
//! In: files in JSONC (HCL and YAML are readers that follow). Out: a [`model::Config`] whose every
//! value knows its place, or every error there is. May not: ask a cloud or read the state.

pub mod model;
pub mod node;
pub mod source;
