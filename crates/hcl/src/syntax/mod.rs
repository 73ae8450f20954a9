//! From text to a tree. Comes in: text; goes out: [`Document`], or every error that can be told apart
//! in one run. Nothing here evaluates.

mod ast;
mod body;
mod expression;
mod halves;
mod heredoc;
mod parser;
mod recover;
mod references;
mod shell;
mod template;
mod term;
mod unclosed;

pub use ast::*;
pub use shell::shell_expansion;

use crate::error::Error;
use parser::Parser;

/// How deep brackets, blocks and operators may nest.
pub const MOST_LEVELS: u32 = 200;

/// After so many errors the rest of a text isn't read.
pub const MOST_ERRORS: usize = 100;

/// A longer text isn't read: its tree would take a hundred times as much memory. In bytes.
pub const LONGEST_TEXT: usize = 16 << 20;

/// Reads a file of blocks and attributes. `file` is the number that its spans carry.
pub fn parse(text: &str, file: u32) -> Result<Document, Vec<Error>> {
    match parse_on(text, file) {
        (Some(document), errors) if errors.is_empty() => Ok(document),
        (_, errors) => Err(errors),
    }
}

/// Reads a file as far as it can be read, and says what can't. What is missing has left a gap
/// ([`Body::has_gaps`]); there is no document where it isn't known what belongs to which block.
pub fn parse_on(text: &str, file: u32) -> (Option<Document>, Vec<Error>) {
    if let Some(document) = halves::parse(text, file) {
        return (Some(document), Vec::new());
    }
    let mut parser = match Parser::new(text, file) {
        Ok(parser) => parser,
        Err(errors) => return (None, errors),
    };
    let body = parser.document();
    let (parsed, errors) = parser.finish_on(body);
    let document = parsed.map(|(body, comments)| Document { body, comments });
    (document, errors)
}

/// Reads one expression. Within brackets it may go over several lines.
pub fn parse_expression(text: &str, file: u32) -> Result<Expression, Vec<Error>> {
    let mut parser = Parser::new(text, file)?;
    match parser.whole_expression() {
        Ok(expression) => Ok(parser.finish(expression)?.0),
        Err(_) => Err(parser.errors),
    }
}

/// Reads a text as what stands between quotation marks, with its lines as they are.
pub fn parse_template(text: &str, file: u32) -> Result<Expression, Vec<Error>> {
    let mut parser = Parser::new(text, file)?;
    match parser.whole_template() {
        Ok(template) => Ok(parser.finish(template)?.0),
        Err(_) => Err(parser.errors),
    }
}

#[cfg(test)]
mod tests;
