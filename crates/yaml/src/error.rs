//! The error of a text that can't be read.

use std::fmt;
use std::ops::Range;

/// The first error of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// Its place, in bytes.
    pub range: Range<usize>,
    /// Its kind.
    pub kind: ErrorKind,
    /// The innermost unclosed `[` or `{` at this place.
    pub open: Option<usize>,
}

/// The kind of an error.
#[derive(Debug, Clone, PartialEq)]
pub enum ErrorKind {
    /// A syntax error, with the parser's message.
    Syntax(String),
    /// A tab in the indentation of a block.
    Tab,
    /// A key is a list or an object.
    Key,
    /// More levels than the limit.
    TooDeep,
    /// Aliases expand to more than [`LARGEST_EXPANSION`](crate::LARGEST_EXPANSION) values.
    TooManyCopies,
    /// An alias refers to a value that contains it.
    Cycle,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax(message) => message,
            Self::Tab => "tabs are not allowed in indentation; use spaces",
            Self::Key => "a key must be a string",
            Self::TooDeep => "too many levels of lists and objects",
            Self::TooManyCopies => "aliases stand for too many values",
            Self::Cycle => "an alias refers to a value that contains it",
        })
    }
}

/// The line and column of a byte, both from 1; the column counts characters.
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let is_break = |(index, character): (usize, char)| match character {
        '\n' => true,
        '\r' => !text[index + 1..].starts_with('\n'),
        _ => false,
    };
    let breaks = before.char_indices().filter(|step| is_break(*step));
    let start = before.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    (breaks.count() + 1, before[start..].chars().count() + 1)
}
