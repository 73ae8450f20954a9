//! BOSH's deployment manifests, as the BOSH Director and bosh-cli read them.
//!
//! In: texts and [values](value::Value), each with the number that its caller gave its file. Out:
//! values and [errors](Error) with places. Must not: read files, or know of fleets.
#![warn(missing_docs)]

pub mod addons;
pub mod bpm;
pub mod context;
pub mod diff;
pub mod documents;
mod dump;
mod error;
mod golang;
pub mod instances;
pub mod interpolate;
pub mod links;
pub mod manifest;
pub mod ops;
pub mod properties;
pub mod release;
pub mod render;
pub mod resolve;
pub mod services;
pub mod update;
pub mod value;
pub mod yaml;

pub use error::Error;
