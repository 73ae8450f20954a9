//! Parses text into a syntax tree. In: text. Out: its tree, or its first syntax error. Must not:
//! evaluate.

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

/// The maximum nesting of brackets, blocks and operators.
pub const MOST_LEVELS: u32 = 200;

/// The maximum length of a text, in bytes; its tree takes a hundred times as much memory.
pub const LONGEST_TEXT: usize = 16 << 20;

/// Parses a file of blocks and attributes. Its spans carry the number `file`.
///
/// Fails with the first syntax error.
pub fn parse(text: &str, file: u32) -> Result<Body, Error> {
    read(text, file, Parser::document)
}

/// Parses one expression, which may span lines within brackets.
///
/// Fails with the first syntax error.
pub fn parse_expression(text: &str, file: u32) -> Result<Expression, Error> {
    read(text, file, Parser::whole_expression)
}

/// Parses a text as a template, with its line breaks unchanged.
///
/// Fails with the first syntax error.
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
    // An unclosed comment hides the rest of the text, so the error at the end is only a
    // consequence.
    if let Some(span) = parser.open_comment {
        return Err(Error::new(span, "This comment isn't closed").hint("close it with `*/`"));
    }
    parsed.map_err(|error| *error)
}

#[cfg(test)]
mod tests;
