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
#[error("{}", .0.problem)]
pub struct ParseError(Box<ParseDetail>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ParseDetail {
    problem: Problem,
    earlier: Option<Earlier>,
}

/// The definition that a second one of the same name clashes with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The name of the text that it is in.
    pub template: String,
    /// The byte of that text where it begins.
    pub offset: usize,
}

impl ParseError {
    pub(crate) fn new(problem: Problem) -> Self {
        Self(Box::new(ParseDetail {
            problem,
            earlier: None,
        }))
    }

    pub(crate) fn with_earlier(mut self, earlier: Earlier) -> Self {
        self.0.earlier = Some(earlier);
        self
    }

    /// Where the texts of a library define a name twice: the other definition.
    pub fn earlier(&self) -> Option<&Earlier> {
        self.0.earlier.as_ref()
    }
}

impl Deref for ParseError {
    type Target = Problem;

    fn deref(&self) -> &Problem {
        &self.0.problem
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
    context: Context,
}

/// What was going on when an execution failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) executing: String,
    pub(crate) expression: String,
    pub(crate) found: Vec<Found>,
    pub(crate) callers: Vec<Caller>,
    pub(crate) is_sensitive: bool,
}

/// A value that an expression read before it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The path from the data's root, such as `.Vars.A`, or else the expression as it is written.
    pub path: String,
    /// The type, for people: `a string`, `a list of 2 items`.
    pub kind: String,
    /// The value as a template would write it, one line, cut where it is long. None for values
    /// whose kind says it all.
    pub value: Option<String>,
}

/// A template that was waiting for another when an execution failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of the text that the call is in.
    pub template: String,
    /// The byte of that text where the action begins.
    pub offset: usize,
    /// The name that is called.
    pub called: String,
}

impl ExecError {
    pub(crate) fn new(problem: Problem, kind: ExecErrorKind, context: Context) -> Self {
        Self(Box::new(ExecDetail {
            problem,
            kind,
            context,
        }))
    }

    /// Why.
    pub fn kind(&self) -> ExecErrorKind {
        self.0.kind
    }

    /// The name of the template that was executing, which may be one that the text defines.
    pub fn executing(&self) -> &str {
        &self.0.context.executing
    }

    /// The expression that failed, as Go prints it: `index .Vars.LIST 5`.
    pub fn expression(&self) -> &str {
        &self.0.context.expression
    }

    /// What it read, as far as that was there; a function's arguments in their order, constants
    /// left out.
    pub fn found(&self) -> &[Found] {
        &self.0.context.found
    }

    /// Whether what failed handled something sensitive: then the message, the hint and what was
    /// found mustn't be shown. Told of [traced](crate::Template::render_traced) executions only.
    pub fn is_sensitive(&self) -> bool {
        self.0.context.is_sensitive
    }

    /// The templates that called the one that failed, the nearest first. Of very many, the first
    /// few and the outermost.
    pub fn callers(&self) -> &[Caller] {
        &self.0.context.callers
    }
}

impl Deref for ExecError {
    type Target = Problem;

    fn deref(&self) -> &Problem {
        &self.0.problem
    }
}
