//! Reads YAML into a tree whose values know their bytes in the text.
//!
//! In: a text, a depth limit, and a resolver that says what a scalar means. Out: the tree of each
//! document, or the first error. Must not: know what the values are for.

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
