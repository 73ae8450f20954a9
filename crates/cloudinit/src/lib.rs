//! cloud-init's user data: what a booting machine would make of it, known before it boots.
//!
//! [`layers`] joins layers of user data into what one machine gets, [`mime_write`] writes messages,
//! [`opened`] opens what is packed. [`userdata`] takes whole user data apart ([`detect`], MIME, archives) and merges its [`parts`];
//! [`merge`] is how two values become one, [`patch`] how a JSON patch changes one; [`yaml`] reads and
//! writes [values](value::Value), [`schema`] says what is wrong with one.
//!
//! No input makes the crate panic, recurse without bound or use memory without bound.
//!
#![warn(missing_docs)]

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod detect;
mod error;
pub mod layers;
pub mod merge;
mod mime;
pub mod mime_write;
pub mod opened;
pub mod parts;
pub mod patch;
pub mod schema;
pub mod userdata;
pub mod value;
pub mod yaml;

pub use error::{Class, Error};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
