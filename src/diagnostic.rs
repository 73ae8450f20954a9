//! What is wrong, where, and what would be right.
//!
//! In: findings of every stage. Out: [`Diagnostic`]s, collected in one [`Diagnostics`], so that
//! one run shows everything that is wrong. Must not: print (that is `report`).

mod gather;
pub mod mask;

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::config::source::Span;

pub use gather::gather;

/// What stands for a value that is hidden.
pub const HIDDEN: &str = "(sensitive value)";

/// What is said of what depends on a sensitive value.
pub const CONCEALED: &str = "why isn't shown, since it depends on a sensitive value";

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is done.
    Error,
    /// Worth knowing; the work goes on.
    Warning,
}

/// A place in the configuration with a word on what is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is there; may be empty.
    pub text: String,
}

/// What a value should be that is the same but for quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conversion {
    /// Text.
    String,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// One sentence without a full stop: what is wrong.
    pub summary: String,
    /// More, where a sentence is not enough.
    pub detail: Option<String>,
    /// What it is about: `tenant/group` or `tenant/group/slot`.
    pub address: Option<String>,
    /// The place, if it has one.
    pub label: Option<Label>,
    /// Other places that belong to it, such as a first definition.
    pub related: Vec<Label>,
    /// What to do; one sentence each.
    pub hints: Vec<String>,
    /// Set where the one hint says to add quotes, or to take them away.
    pub conversion: Option<Conversion>,
}

impl Diagnostic {
    /// An error that says `summary`.
    pub fn error(summary: impl Into<String>) -> Self {
        Self::new(Severity::Error, summary.into())
    }

    /// A warning that says `summary`.
    pub fn warning(summary: impl Into<String>) -> Self {
        Self::new(Severity::Warning, summary.into())
    }

    /// A finding of that severity.
    pub fn of(severity: Severity, summary: impl Into<String>) -> Self {
        Self::new(severity, summary.into())
    }

    fn new(severity: Severity, summary: String) -> Self {
        Self {
            severity,
            summary,
            detail: None,
            address: None,
            label: None,
            related: Vec::new(),
            hints: Vec::new(),
            conversion: None,
        }
    }

    /// The place, with a word on what is there.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.label = Some(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Another place that belongs to it.
    #[must_use]
    pub fn related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// That a number or a boolean should be text.
    #[must_use]
    pub fn quote_it(mut self, value: impl Display) -> Self {
        self.conversion = Some(Conversion::String);
        self.hint(format!("put it in quotes: `\"{value}\"`"))
    }

    /// That a text should be what it says.
    #[must_use]
    pub fn unquote_it(mut self, text: &str, to: Conversion) -> Self {
        self.conversion = Some(to);
        self.hint(format!("write it without quotes: `{text}`"))
    }

    /// More than a sentence.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// What it is about.
    #[must_use]
    pub fn about(mut self, address: &(impl ToString + ?Sized)) -> Self {
        self.address = Some(address.to_string());
        self
    }
}

/// A part failed, and the error is reported: errors that follow from it are suppressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported;

/// All values, or [`Reported`] if one failed. Every value is made before that is decided, so that
/// all failures are reported.
pub fn all<T>(results: impl Iterator<Item = Result<T, Reported>>) -> Result<Vec<T>, Reported> {
    let results: Vec<_> = results.collect();
    results.into_iter().collect()
}

/// Findings in the order they were made. Most of these lists are of one group, and stay empty: an
/// empty one takes next to no room.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics(Option<Box<Found>>);

#[derive(Debug, Clone, Default)]
struct Found {
    list: Vec<Diagnostic>,
    /// The hash of each, so that a new one isn't compared with all before it: a file can be wrong
    /// in a hundred thousand places.
    hashes: HashSet<u64>,
}

impl Diagnostics {
    /// Adds a finding, unless the very same was made before.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let found = self.0.get_or_insert_default();
        let mut hasher = DefaultHasher::new();
        diagnostic.hash(&mut hasher);
        let new = found.hashes.insert(hasher.finish());
        if new || !found.list.contains(&diagnostic) {
            found.list.push(diagnostic);
        }
    }

    /// What was made, or nothing, and the error among the findings.
    pub fn keep<T>(&mut self, made: Result<T, Box<Diagnostic>>) -> Option<T> {
        made.map_err(|error| self.push(*error)).ok()
    }

    /// Adds all of another's.
    pub fn extend(&mut self, other: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in other {
            self.push(diagnostic);
        }
    }

    fn list(&self) -> &[Diagnostic] {
        self.0.as_ref().map_or(&[], |found| &found.list)
    }

    /// Whether any is an error.
    pub fn has_errors(&self) -> bool {
        self.iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list().len()
    }

    /// Each in turn.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list().iter()
    }

    /// Each in turn, to change.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Diagnostic> {
        let list = self.0.as_mut().map(|found| &mut found.list[..]);
        list.unwrap_or_default().iter_mut()
    }
}

impl PartialEq for Diagnostics {
    fn eq(&self, other: &Self) -> bool {
        self.list() == other.list()
    }
}

impl Eq for Diagnostics {}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        let list = self.0.map(|found| found.list);
        list.unwrap_or_default().into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Diagnostics {
    type Item = &'a mut Diagnostic;
    type IntoIter = std::slice::IterMut<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        let mut diagnostics = Self::default();
        diagnostics.push(diagnostic);
        diagnostics
    }
}

/// The known name nearest to a mistyped one, if any is near enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1) + 1;
    known
        .into_iter()
        .map(|candidate| {
            (
                strsim::osa_distance(&folded, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| {
            *distance <= allowed
                && *distance < candidate.chars().count().max(2)
                && *distance < name.chars().count().max(1)
        })
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_slips_and_refuses_strangers() {
        let known = ["templates", "groups", "images", "SubnetId"];
        for (name, expected) in [
            ("template", Some("templates")),
            ("grups", Some("groups")),
            ("subnet_id", Some("SubnetId")),
            ("frobnicate", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
    }
}
