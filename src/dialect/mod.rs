//! Reads the configuration languages of other group managers.
//!
//! In: their documents. Out: groups in nstance's own schema, each value with its place in the
//! original. Must not: query a cloud. Only `bosh` reads files, since a manifest names others.

pub mod bosh;
pub mod mapping;
pub mod yandex;
