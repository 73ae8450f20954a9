//! Why a text is no YAML that cloud-init reads.

use std::fmt;

/// A place in a text. Lines and columns count from 0, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Mark {
    /// The byte.
    pub byte: usize,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// What Python would raise. cloud-init treats most of them alike and lets some through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A mistake in the YAML, or a `ValueError` or `TypeError` while a value is made.
    Yaml,
    /// `!!int` or `!!float` of nothing.
    Index,
    /// `!!bool` of what is none.
    Key,
    /// `!!timestamp` of what is none.
    Attribute,
}

/// A text that can't be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// What Python would raise.
    pub kind: Kind,
    /// Where.
    pub mark: Mark,
    /// What is wrong.
    pub problem: String,
    /// What was being read, and where that began.
    pub context: Option<(&'static str, Mark)>,
}

impl YamlError {
    pub(super) fn new(mark: Mark, problem: impl Into<String>) -> Self {
        Self {
            kind: Kind::Yaml,
            mark,
            problem: problem.into(),
            context: None,
        }
    }

    pub(super) fn within(mut self, what: &'static str, since: Mark) -> Self {
        self.context = Some((what, since));
        self
    }

    pub(super) fn of_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// What is wrong, without saying where.
    pub fn without_place(&self) -> String {
        match self.context {
            Some((what, since)) if since != self.mark => {
                let line = since.line + 1;
                format!("{}, {what} (line {line})", self.problem)
            }
            Some((what, _)) => format!("{}, {what}", self.problem),
            None => self.problem.clone(),
        }
    }
}

impl fmt::Display for YamlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.mark.line + 1, self.mark.column + 1);
        let problem = self.without_place();
        write!(formatter, "line {line}, column {column}: {problem}")
    }
}

impl std::error::Error for YamlError {}
