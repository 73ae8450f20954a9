//! What an execution tells besides its output.

use std::ops::Range;

/// A place where a template reads something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// What is read, from the data's root where that can be told: `.Vars.A.B`.
    pub path: String,
    /// The byte of the template's text where the expression begins.
    pub offset: usize,
    /// The name of the text that the offset points into.
    pub template: String,
}

/// A place where a template calls another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name that is called.
    pub name: String,
    /// The name of the text that the call is in.
    pub template: String,
    /// The byte of that text where the action begins.
    pub offset: usize,
    /// The name of the text that defines the called template; none if it isn't defined.
    pub target: Option<String>,
    /// Where it isn't defined: the nearest name, if any is near.
    pub nearest: Option<String>,
}

/// What an execution read that wasn't there, each place once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Values that aren't known yet. Where there is one, the output means nothing.
    pub unknown: Vec<Access>,
    /// Keys that lenient maps don't have, except where the template only tests them.
    pub unset: Vec<Access>,
    /// The bytes of the output that mustn't be shown, in order. Told of
    /// [traced](crate::Template::render_traced) executions only.
    pub sensitive: Vec<Range<usize>>,
}

/// The output of an execution and what is to be said about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The bytes, which need not be UTF-8.
    pub output: Vec<u8>,
    /// What was read that wasn't there.
    pub report: Report,
}

impl Rendered {
    /// Whether the output is known, that is, depends on no unknown value.
    pub fn is_known(&self) -> bool {
        self.report.unknown.is_empty()
    }
}
