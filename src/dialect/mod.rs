//! Reads the configuration languages of other group managers.
//!
//! In: their documents. Out: groups in nstance's own schema, each value with its place in the
//! original. Must not: read files or query a cloud.

pub mod bosh;
pub mod mapping;
pub mod yandex;
