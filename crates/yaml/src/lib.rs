//! Reads YAML into a tree whose values have byte ranges.
//!
//! In: a text, a depth limit, and a resolver for scalars. Out: the tree of each document, or the
//! first error. Must not: interpret values; the resolver does.

mod error;
mod marks;
pub mod plain;
mod properties;
mod reader;
#[cfg(test)]
mod tests;
mod tree;

pub use error::{Error, ErrorKind, line_column};
pub use reader::{LARGEST_EXPANSION, Reader};
pub use saphyr_parser::Tag;
pub use tree::{Document, Kind, Node, Scalar, Style, core_tag};
