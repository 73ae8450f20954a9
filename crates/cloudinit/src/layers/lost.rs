//! What a merge lost: values that were in what was merged and aren't in what came of it.
//!
//! In: two values and what came of them. Out: what is lost, as large as possible: a mapping of which
//! nothing is left is one loss. May not: know how it was merged; it compares, by where values were
//! written.

use std::collections::HashMap;

use crate::value::{Data, Origin, Value};

/// More values than this aren't compared: aliases can make few lines stand for any number.
const MOST_VALUES: u32 = 200_000;

/// Something that is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) origin: Origin,
    pub(super) path: String,
    pub(super) reason: Reason,
}

/// Why, as far as the result shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The later value, written there, stands in its place.
    Overridden(Origin),
    /// The earlier value, written there, stands in its place.
    Kept(Origin),
    /// A list has an index less than it needs.
    NotInList,
    /// A list has it already.
    Repeated,
    /// Nothing stands in its place.
    Gone,
}

/// How a merge was done, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// By mergers of cloud-init; whether they put one text behind the other.
    ByMergers { appends: bool },
    /// As `nstance` does it: a list lacks only what it has already.
    Natively,
}

/// What is lost of `base` and `new` in `result`.
pub(super) fn lost(base: &Value, new: Option<&Value>, result: &Value, done: Done) -> Vec<Lost> {
    let mut counts = Counts::default();
    if counts.add(result).is_none() {
        return Vec::new();
    }
    let mut search = Search {
        counts,
        result,
        done,
        is_new: false,
        path: Vec::new(),
        left: MOST_VALUES,
    };
    let mut all = search.of(base);
    search.is_new = true;
    search.path.clear();
    if let Some(new) = new {
        all.extend(search.of(new));
    }
    // Nothing is told of one half of what was too much to be compared.
    if search.left == 0 {
        all.clear();
    }
    all
}

/// A value that holds no others, by where it was written and what it is: on one line there may be
/// several.
type Leaf = (Origin, String);

#[derive(Default)]
struct Counts {
    leaves: HashMap<Leaf, u32>,
    total: u32,
}

impl Counts {
    /// Counts what a value holds; `None`: that is too much.
    fn add(&mut self, value: &Value) -> Option<()> {
        self.total += 1;
        if self.total > MOST_VALUES {
            return None;
        }
        match &value.data {
            Data::List(items) | Data::Tuple(items) if !items.is_empty() => {
                items.iter().try_for_each(|item| self.add(item))
            }
            Data::Map(map) if !map.is_empty() => {
                map.iter().try_for_each(|(_, value)| self.add(value))
            }
            _ => {
                *self.leaves.entry(leaf(value)).or_default() += 1;
                Some(())
            }
        }
    }
}

fn is_scalar(value: &Value) -> bool {
    value.as_map().is_none() && value.as_sequence().is_none()
}

fn leaf(value: &Value) -> Leaf {
    let shown = match &value.data {
        // Where it was written tells long texts apart.
        Data::Text(text) => match text.as_str() {
            Some(text) => text.chars().take(64).collect(),
            None => text.to_string().chars().take(64).collect(),
        },
        Data::List(_) | Data::Tuple(_) => "[]".to_owned(),
        Data::Map(_) => "{}".to_owned(),
        other => format!("{other:?}").chars().take(64).collect(),
    };
    (value.origin, shown)
}

#[derive(Clone)]
enum Step {
    Key(Value),
    Index(usize),
}

struct Search<'v> {
    counts: Counts,
    result: &'v Value,
    done: Done,
    is_new: bool,
    path: Vec<Step>,
    left: u32,
}

/// What came of the search in a value.
struct Found {
    leaves: u32,
    missing: u32,
    lost: Vec<Lost>,
}

impl Search<'_> {
    fn of(&mut self, value: &Value) -> Vec<Lost> {
        self.within(value, None).lost
    }

    /// `key`: where the key was written that the value stands behind.
    fn within(&mut self, value: &Value, key: Option<Origin>) -> Found {
        self.left = self.left.saturating_sub(1);
        let mut found = Found {
            leaves: 0,
            missing: 0,
            lost: Vec::new(),
        };
        if self.left == 0 {
            return found;
        }
        match &value.data {
            Data::List(items) | Data::Tuple(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    self.path.push(Step::Index(index));
                    found.add(self.within(item, None));
                    self.path.pop();
                }
            }
            Data::Map(map) if !map.is_empty() => {
                for (key, item) in map.iter() {
                    self.path.push(Step::Key(key.clone()));
                    found.add(self.within(item, Some(key.origin)));
                    self.path.pop();
                }
            }
            _ => {
                found.leaves = 1;
                if self.is_missing(value) {
                    found.missing = 1;
                    found.lost = self.report(value, value.origin);
                }
                return found;
            }
        }
        if found.missing > 0 && found.missing == found.leaves && !self.path.is_empty() {
            found.lost = self.report(value, key.unwrap_or(value.origin));
        }
        found
    }

    fn is_missing(&mut self, value: &Value) -> bool {
        match self.counts.leaves.get_mut(&leaf(value)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => match (self.at(&self.path), &value.data) {
                // Nothing was said, and nothing is missing.
                (Some(at), Data::Map(_)) => at.as_map().is_none(),
                (Some(at), Data::List(_) | Data::Tuple(_)) => at.as_sequence().is_none(),
                (
                    Some(Value {
                        data: Data::Text(all),
                        ..
                    }),
                    Data::Text(text),
                ) if self.done == (Done::ByMergers { appends: true }) => {
                    let (all, text) = (all.to_string(), text.to_string());
                    !(all.starts_with(&text) || all.ends_with(&text))
                }
                (None, Data::Null) => false,
                // The same was written elsewhere too.
                (Some(at), _) => !is_scalar(at) || at != value,
                (None, _) => true,
            },
        }
    }

    fn report(&self, value: &Value, origin: Origin) -> Vec<Lost> {
        let reason = match self.at(&self.path) {
            Some(there) if there.origin == value.origin => return Vec::new(),
            _ if self.is_new && self.done == Done::Natively => Reason::Repeated,
            Some(there) if self.is_new => Reason::Kept(there.origin),
            Some(there) => Reason::Overridden(there.origin),
            None if self.is_in_list() => Reason::NotInList,
            None => Reason::Gone,
        };
        vec![Lost {
            origin,
            path: shown(&self.path),
            reason,
        }]
    }

    fn is_in_list(&self) -> bool {
        matches!(self.path.last(), Some(Step::Index(_)))
    }

    /// What stands in the result where the path leads.
    fn at(&self, path: &[Step]) -> Option<&Value> {
        path.iter().try_fold(self.result, |value, step| match step {
            Step::Key(key) => value.as_map()?.get(key),
            Step::Index(index) => value.as_sequence()?.get(*index),
        })
    }
}

impl Found {
    fn add(&mut self, other: Self) {
        self.leaves += other.leaves;
        self.missing += other.missing;
        self.lost.extend(other.lost);
    }
}

fn shown(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Index(index) => text.push_str(&format!("[{index}]")),
            Step::Key(key) => {
                if !text.is_empty() {
                    text.push('.');
                }
                match &key.data {
                    Data::Text(key) => text.push_str(&key.to_string()),
                    other => text.push_str(&format!("{other:?}")),
                }
            }
        }
    }
    text
}
