//! The tests of what the crate promises, through its public surface.
#![expect(clippy::unwrap_used, reason = "tests may panic: that is how they fail")]

mod common;
mod conformance;
mod documents;
mod errors;
mod files;
mod journal;
mod lock;
mod processes;
mod records;
mod sealed;
