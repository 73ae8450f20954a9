//! Reads text into one typed configuration.
//!
//! In: files in JSONC, YAML or HCL. Out: a [`model::Config`] in which every value has its place, or
//! all errors. Must not: query a cloud or read the state.

mod assemble;
pub mod decode;
pub mod duration;
mod evaluate;
pub(crate) mod files;
pub(crate) mod hcl;
pub mod inputs;
pub mod jsonc;
pub(crate) mod letter_case;
pub mod load;
pub(crate) mod localize_hints;
pub mod model;
pub mod node;
pub mod position;
pub mod schema;
pub mod sensitive;
mod size;
pub mod source;
pub mod variables;
pub mod yaml;

#[cfg(test)]
mod tests;
