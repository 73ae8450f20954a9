//! From text to a tree. In: text. Out: its tree, or its first syntax error. Must not: evaluate.

mod ast;
mod body;
mod expression;
mod heredoc;
mod parser;
mod shell;
mod template;
mod term;

pub use ast::*;
pub use shell::shell_expansion;

use crate::error::Error;
use parser::{Parsed, Parser};

/// How deep brackets, blocks and operators may nest.
pub const MOST_LEVELS: u32 = 200;

/// The longest text that is read, in bytes: a tree takes a hundred times as much memory.
pub const LONGEST_TEXT: usize = 16 << 20;

/// Reads a file of blocks and attributes. `file` is the number that its spans carry. Fails with the
/// first syntax error.
pub fn parse(text: &str, file: u32) -> Result<Body, Error> {
    read(text, file, Parser::document)
}

/// Reads one expression. Within brackets it may span several lines. Fails with the first syntax
/// error.
pub fn parse_expression(text: &str, file: u32) -> Result<Expression, Error> {
    read(text, file, Parser::whole_expression)
}

/// Reads a text as if it stood in quotes, with its lines as they are. Fails with the first syntax
/// error.
pub fn parse_template(text: &str, file: u32) -> Result<Expression, Error> {
    read(text, file, Parser::whole_template)
}

fn read<'t, T>(
    text: &'t str,
    file: u32,
    parse: impl FnOnce(&mut Parser<'t>) -> Parsed<T>,
) -> Result<T, Error> {
    let mut parser = Parser::new(text, file)?;
    let parsed = parse(&mut parser);
    // An open comment hides the rest of the text, so that any error at its end is a consequence.
    if let Some(span) = parser.open_comment {
        return Err(Error::new(span, "This comment isn't closed").hint("close it with `*/`"));
    }
    parsed.map_err(|error| *error)
}

#[cfg(test)]
mod tests;
