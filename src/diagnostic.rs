//! Findings: what is wrong, where, and how to fix it.
//!
//! In: findings of every stage. Out: [`Diagnostic`]s, collected in a [`Diagnostics`], so that one
//! run reports all of them. Must not: print (`report` does).

mod gather;
pub mod mask;

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::config::source::Span;

pub use gather::gather;

/// Shown in place of a sensitive value.
pub const HIDDEN: &str = "(sensitive value)";

/// Shown in place of a reason that depends on a sensitive value.
pub const MASKED_REASON: &str = "why isn't shown, since it depends on a sensitive value";

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The command stops before it changes anything.
    Error,
    /// The command continues.
    Warning,
}

/// A place in the configuration and a text about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The text; may be empty.
    pub text: String,
}

/// The type that a value needs, if only its quotes are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conversion {
    /// Text.
    String,
    /// A boolean: `true` or `false`.
    Bool,
    /// A number.
    Number,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// What is wrong: one sentence without a full stop.
    pub summary: String,
    /// Details, if one sentence is not enough.
    pub detail: Option<String>,
    /// The address concerned: `tenant/group` or `tenant/group/slot`.
    pub address: Option<String>,
    /// The place, if it has one.
    pub label: Option<Label>,
    /// Further places, such as a first definition.
    pub related: Vec<Label>,
    /// How to fix it; one sentence each.
    pub hints: Vec<String>,
    /// Set if the only hint is to add or remove quotes.
    pub conversion: Option<Conversion>,
}

impl Diagnostic {
    /// An error with this summary.
    pub fn error(summary: impl Into<String>) -> Self {
        Self::new(Severity::Error, summary.into())
    }

    /// A warning with this summary.
    pub fn warning(summary: impl Into<String>) -> Self {
        Self::new(Severity::Warning, summary.into())
    }

    /// A finding with this severity and summary.
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

    /// Sets the place and the text about it.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.label = Some(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Adds a further place.
    #[must_use]
    pub fn related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Asks whether the nearest name was meant, if there is one.
    #[must_use]
    pub fn suggest(self, near: Option<&str>) -> Self {
        match near {
            Some(near) => self.hint(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    /// Asks whether the nearest name was meant; without one, lists all names behind `lead`.
    #[must_use]
    pub fn suggest_or_list<'n>(
        self,
        near: Option<&str>,
        lead: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        if near.is_some() {
            return self.suggest(near);
        }
        let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
        self.hint(format!("{lead} {}", names.join(", ")))
    }

    /// Adds the hint to quote a number or a boolean.
    #[must_use]
    pub fn quote_it(mut self, value: impl Display) -> Self {
        self.conversion = Some(Conversion::String);
        self.hint(format!("put it in quotes: `\"{value}\"`"))
    }

    /// Adds the hint to remove a text's quotes.
    #[must_use]
    pub fn unquote_it(mut self, text: &str, to: Conversion) -> Self {
        self.conversion = Some(to);
        self.hint(format!("write it without quotes: `{text}`"))
    }

    /// Sets the details.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Sets the address.
    #[must_use]
    pub fn about(mut self, address: &(impl ToString + ?Sized)) -> Self {
        self.address = Some(address.to_string());
        self
    }
}

/// An operation failed and its error was already reported; callers must not report it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported;

/// All values, or [`Reported`] if one failed. Consumes the whole iterator, so that every failure is
/// reported.
pub fn all<T>(results: impl Iterator<Item = Result<T, Reported>>) -> Result<Vec<T>, Reported> {
    let results: Vec<_> = results.collect();
    results.into_iter().collect()
}

/// Findings in the order they were made. Most lists belong to one group and stay empty, so an empty
/// one is a null pointer.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics(Option<Box<Found>>);

#[derive(Debug, Clone, Default)]
struct Found {
    list: Vec<Diagnostic>,
    /// The hash of each, to find duplicates in constant time: a file can have 100,000 errors.
    hashes: HashSet<u64>,
}

impl Diagnostics {
    /// Adds a finding, unless it is a duplicate.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let found = self.0.get_or_insert_default();
        let mut hasher = DefaultHasher::new();
        diagnostic.hash(&mut hasher);
        let new = found.hashes.insert(hasher.finish());
        if new || !found.list.contains(&diagnostic) {
            found.list.push(diagnostic);
        }
    }

    /// The value; on failure adds the error to the findings and returns `None`.
    pub fn keep<T>(&mut self, made: Result<T, Box<Diagnostic>>) -> Option<T> {
        made.map_err(|error| self.push(*error)).ok()
    }

    /// Adds all findings of another list.
    pub fn extend(&mut self, other: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in other {
            self.push(diagnostic);
        }
    }

    fn list(&self) -> &[Diagnostic] {
        self.0.as_ref().map_or(&[], |found| &found.list)
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// How many of them are errors.
    pub fn errors(&self) -> usize {
        let errors = self
            .iter()
            .filter(|finding| finding.severity == Severity::Error);
        errors.count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list().len()
    }

    /// The findings in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list().iter()
    }

    /// The findings in order, mutable.
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

/// `1 instance`, `2 instances`.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// The known name that a name is likely to be a misspelling of.
pub fn typo<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = nearest(name, known)?;
    let distance = strsim::osa_distance(&name.to_lowercase(), near);
    (distance <= (name.chars().count() / 4).max(1)).then_some(near)
}

/// The known name nearest to a misspelled one; `None` if none is near enough.
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
