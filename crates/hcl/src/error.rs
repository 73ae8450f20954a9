//! Where something is written, and what is wrong with it.
//!
//! Comes in: what any part of the crate found. Goes out: [`Error`], which a caller turns into its
//! own kind of diagnostic. Nothing here knows about files beyond their number.

use std::fmt;

/// Bytes of a text: from `start` up to but without `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The caller's number for the text.
    pub file: u32,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// From two offsets; texts that are too long for them are refused before any is made.
    pub fn new(file: u32, start: usize, end: usize) -> Self {
        Self {
            file,
            start: start as u32,
            end: end as u32,
        }
    }

    /// From the start of this one to the end of `other`.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self {
            end: other.end.max(self.end),
            ..self
        }
    }

    /// The place just behind.
    #[must_use]
    pub fn after(self) -> Self {
        Self {
            start: self.end,
            ..self
        }
    }

    /// As indices of the text.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// What is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where.
    pub span: Span,
    /// What is wrong, as a sentence without its full stop: "The function `uper` doesn't exist".
    pub summary: String,
    /// What stands at the place, in a few words; may be empty.
    pub detail: String,
    /// Other places that belong to it, each with what it is.
    pub related: Vec<(Span, String)>,
    /// What would be right.
    pub hint: Option<String>,
}

impl Error {
    pub fn new(span: Span, summary: impl Into<String>) -> Self {
        Self {
            span,
            summary: summary.into(),
            detail: String::new(),
            related: Vec::new(),
            hint: None,
        }
    }

    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn related(mut self, span: Span, what: impl Into<String>) -> Self {
        self.related.push((span, what.into()));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// The name among `known` that `wanted` was probably meant to be.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the name may be wrong: enough for a slip of the finger, too little for a guess.
    let length = wanted.chars().count();
    let allowed = (length / 3).max(1);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(wanted, name), name))
        // One letter is like any other.
        .filter(|(distance, _)| *distance <= allowed && *distance < length)
        .min()
        .map(|(_, name)| name)
}
