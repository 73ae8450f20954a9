//! What went wrong and where: errors of parsing and of execution.
//!
//! A message is a lower-case fragment of ours; [`Problem::go_message`] has Go's wording.

use std::fmt;
use std::ops::Deref;

/// What both kinds of error tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong: a lower-case fragment.
    pub message: String,
    /// The name of the text that `offset`, `line` and `column` point into.
    pub template: String,
    /// The byte, from 0.
    pub offset: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What would be right, such as the nearest name.
    pub hint: Option<String>,
    go: String,
}

impl Problem {
    pub(crate) fn new(
        message: String,
        template: &str,
        text: &str,
        offset: usize,
        hint: Option<String>,
        go: String,
    ) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        let column = 1 + before[line_start..].chars().count();
        Self {
            message,
            template: template.to_owned(),
            offset,
            line,
            column,
            hint,
            go,
        }
    }

    /// The error as Go words it, such as `template: t:1: function "x" not defined`.
    pub fn go_message(&self) -> String {
        self.go.clone()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            message,
            template,
            line,
            column,
            hint,
            ..
        } = self;
        write!(formatter, "{template}:{line}:{column}: {message}")?;
        if let Some(hint) = hint {
            write!(formatter, " ({hint})")?;
        }
        Ok(())
    }
}

/// A text isn't a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(Box<Problem>);

impl ParseError {
    pub(crate) fn new(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl Deref for ParseError {
    type Target = Problem;

    fn deref(&self) -> &Problem {
        &self.0
    }
}

/// Why an execution failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecErrorKind {
    /// The template did what it may not with its data.
    Template,
    /// A function returned an error.
    Function,
    /// A limit was reached; its name in [`Limits`](crate::Limits).
    Limit(&'static str),
}

/// A template can't be executed with its data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.problem)]
pub struct ExecError(Box<ExecDetail>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ExecDetail {
    problem: Problem,
    kind: ExecErrorKind,
    executing: String,
}

impl ExecError {
    pub(crate) fn new(problem: Problem, kind: ExecErrorKind, executing: &str) -> Self {
        Self(Box::new(ExecDetail {
            problem,
            kind,
            executing: executing.to_owned(),
        }))
    }

    /// Why.
    pub fn kind(&self) -> ExecErrorKind {
        self.0.kind
    }

    /// The name of the template that was executing, which may be one that the text defines.
    pub fn executing(&self) -> &str {
        &self.0.executing
    }
}

impl Deref for ExecError {
    type Target = Problem;

    fn deref(&self) -> &Problem {
        &self.0.problem
    }
}
