//! From text to a tree. Comes in: text; goes out: [`Document`], or every error that can be told apart
//! in one run. Nothing here evaluates.

mod ast;

pub use ast::*;
