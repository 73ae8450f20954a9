//! Which bytes of a template's output must not be shown.
//!
//! In: paths of the data and byte ranges of the texts that are sensitive. Out: a [`Trace`], the
//! operations that handle them, which an execution records the output of. What can't be followed
//! counts as sensitive.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::code::{Code, Op};
use crate::reads::covers;
use crate::template::Set;
use crate::value::ReadSite;

/// What is sensitive of the data and the texts of templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sensitive {
    paths: BTreeSet<String>,
    texts: BTreeMap<String, Vec<Range<usize>>>,
}

impl Sensitive {
    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.texts.is_empty()
    }

    /// Adds the value at a path from the data's root, such as `.Vars.A`, and all that is in it. An
    /// item of a list, or of a map under a key with a dot in it, has no path: add the path of the
    /// list or map.
    pub fn add_path(&mut self, path: impl Into<String>) {
        self.paths.insert(path.into());
    }

    /// Adds bytes of the text of this name: one parsed as a template, or of a library.
    pub fn add_text(
        &mut self,
        name: impl Into<String>,
        ranges: impl IntoIterator<Item = Range<usize>>,
    ) {
        let ranges = ranges.into_iter().filter(|range| !range.is_empty());
        let ranges: Vec<_> = ranges.collect();
        if !ranges.is_empty() {
            self.texts.entry(name.into()).or_default().extend(ranges);
        }
    }

    pub(crate) fn has_paths(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Whether the value at a path is sensitive as a whole, and so whether there is anything in it.
    pub(crate) fn holds_whole(&self, path: &str) -> bool {
        self.paths.iter().any(|known| covers(known, path))
    }

    /// Whether the value at a path is sensitive, or something in it is.
    pub fn holds_part(&self, path: &str) -> bool {
        let mut paths = self.paths.iter();
        paths.any(|known| covers(known, path) || covers(path, known))
    }

    /// The sensitive bytes of a code's text.
    pub(crate) fn text(&self, code: &Code) -> &[Range<usize>] {
        let ranges = self.texts.get(&*code.source.name);
        ranges.map_or(&[], Vec::as_slice)
    }

    /// Whether all sensitive bytes of the texts are written as they are: no action has them.
    pub(crate) fn is_literal(&self, set: &Set) -> bool {
        let literals: Vec<_> = (set.base..set.end())
            .map(|number| set.code(number))
            .flat_map(|code| code.ops.iter().map(move |op| (code, op)))
            .filter_map(|(code, op)| match op {
                Op::Text { start, end } => {
                    Some((&*code.source.name, *start as usize..*end as usize))
                }
                _ => None,
            })
            .collect();
        let is_written = |name: &str, range: &Range<usize>| {
            let mut literals = literals.iter().filter(|(text, _)| *text == name);
            literals.any(|(_, literal)| literal.start <= range.start && range.end <= literal.end)
        };
        let is_used = |name: &str| {
            let mut codes = (set.base..set.end()).map(|number| set.code(number));
            codes.any(|code| &*code.source.name == name)
        };
        self.texts
            .iter()
            .filter(|(name, _)| is_used(name))
            .all(|(name, ranges)| ranges.iter().all(|range| is_written(name, range)))
    }
}

/// The operations of a template that handle what is sensitive.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// All operations do, because the analysis gave up.
    pub(crate) everything: bool,
    /// Codes all of whose operations do.
    pub(crate) whole: BTreeSet<u32>,
    pub(crate) operations: BTreeSet<ReadSite>,
    /// Codes whose text has sensitive bytes, and which.
    pub(crate) texts: BTreeMap<u32, Vec<Range<usize>>>,
    /// The end of the set that was followed. Nothing is known of later codes.
    pub(crate) end: u32,
}

impl Trace {
    /// Whether an operation handles what is sensitive.
    pub(crate) fn touches(&self, site: ReadSite) -> bool {
        self.everything
            || site.code >= self.end
            || self.whole.contains(&site.code)
            || self.operations.contains(&site)
    }

    /// Records which bytes an operation wrote, from `start` on, mustn't be shown.
    pub(crate) fn record(
        &self,
        site: ReadSite,
        op: Op,
        output: Range<usize>,
        found: &mut Vec<Range<usize>>,
    ) {
        if self.touches(site) {
            push(found, output);
            return;
        }
        let (Op::Text { start, end }, Some(ranges)) = (op, self.texts.get(&site.code)) else {
            return;
        };
        let (start, end) = (start as usize, end as usize);
        for range in ranges {
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                push(
                    found,
                    output.start + from - start..output.start + to - start,
                );
            }
        }
    }
}

/// Adds a range, joined with the last one where they touch.
fn push(found: &mut Vec<Range<usize>>, range: Range<usize>) {
    match found.last_mut() {
        _ if range.is_empty() => {}
        Some(last) if last.end >= range.start && last.start <= range.start => {
            last.end = last.end.max(range.end);
        }
        _ => found.push(range),
    }
}

/// Forgets what was found from `start` on.
pub(crate) fn truncate(found: &mut Vec<Range<usize>>, start: usize) {
    found.retain(|range| range.start < start);
    for range in found {
        range.end = range.end.min(start);
    }
}
