//! What a template can read, worked out from its code alone.
//!
//! In: a set of templates and one of them. Out: the paths it may read, from the data's root. The
//! analysis follows dot through `with`, `range` and template calls, and variables by their names,
//! whatever the order of execution. What it can't follow counts as reading all there is.

mod flow;
mod paths;

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{Code, Op};
use crate::report::{Access, Call};
use crate::sensitive::{Sensitive, Trace};
use crate::template::Set;
use crate::value::ReadSite;
use flow::{Flow, MOST_READS};
use paths::LONGEST_PATH;

/// What a template can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// All the paths that it reads, such as `.Vars.A`. A path stands for all that is under it. A
    /// field of the root that the template only passes on, or looks into, isn't read by that.
    pub paths: Vec<Access>,
    /// Those of the paths that it only tests for their truth there, as in `{{with .Vars}}`: of what
    /// is under them this tells no more than whether there is something.
    pub tested: Vec<Access>,
    /// It may read anything: it uses the root as a whole.
    pub anything: bool,
    /// The names of the functions that it calls.
    pub functions: BTreeSet<String>,
    /// The names of the templates that it calls, whether they are defined or not.
    pub templates: BTreeSet<String>,
    /// Where it calls them, and where those call others.
    pub calls: Vec<Call>,
}

/// Operations are told by their own words: nothing is known of them but that.
impl From<Reads> for Analysis {
    fn from(reads: Reads) -> Self {
        Self {
            reads,
            sites: BTreeMap::new(),
        }
    }
}

impl Reads {
    /// What a template reads that only inserts fields of the root, as most do: no value flows from one
    /// place to another. None of one that does more.
    fn of_fields(code: &Code) -> Option<Self> {
        let mut reads = Vec::new();
        for (place, op) in code.sites.iter().zip(&code.ops) {
            if let Op::PrintField { path } = op {
                reads.push((code.path_text(*path), place.start));
            } else if !op.only_inserts() {
                return None;
            }
        }
        let is_followed = |(path, _): &(String, u32)| path.matches('.').count() < LONGEST_PATH;
        if reads.len() > MOST_READS || !reads.iter().all(is_followed) {
            return None;
        }
        reads.sort_unstable();
        let paths = reads.into_iter().map(|(path, start)| Access {
            path,
            offset: start as usize,
            template: code.source.name.as_ref().to_owned(),
        });
        Some(Self {
            paths: paths.collect(),
            ..Self::default()
        })
    }

    /// Whether it can read something sensitive of the data.
    fn reads_sensitive(&self, sensitive: &Sensitive) -> bool {
        let mut paths = self.paths.iter();
        self.anything || paths.any(|read| sensitive.holds_part(&read.path))
    }

    /// Whether it can read the value at `path`, such as `.Vars.A`, or a part of it.
    pub fn reads(&self, path: &str) -> bool {
        self.anything
            || self
                .paths
                .iter()
                .any(|read| covers(&read.path, path) || covers(path, &read.path))
    }

    /// Whether it can read anything at or under `prefix`: the same as [`Reads::reads`].
    pub fn any_under(&self, prefix: &str) -> bool {
        self.reads(prefix)
    }

    /// The names directly under `prefix` that it reads: of `.Vars`, the vars. None where it may read
    /// all of them. That `prefix` itself is tested doesn't count.
    pub fn names_under(&self, prefix: &str) -> Option<BTreeSet<&str>> {
        let whole = |read: &&Access| covers(&read.path, prefix) && !self.tested.contains(read);
        if self.anything || self.paths.iter().any(|read| whole(&read)) {
            return None;
        }
        let names = self.paths.iter().filter_map(|read| {
            let rest = read.path.strip_prefix(prefix)?.strip_prefix('.')?;
            rest.split('.').next()
        });
        Some(names.collect())
    }
}

/// Whether a path is the other one or contains it.
pub(crate) fn covers(path: &str, other: &str) -> bool {
    other
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What is known of a template's reads, and of each place where it reads.
pub(crate) struct Analysis {
    pub(crate) reads: Reads,
    /// The path that an operation reads, where there is just one.
    sites: BTreeMap<ReadSite, Option<String>>,
}

impl Analysis {
    pub(crate) fn of(set: &Set, main: u32) -> Self {
        let code = set.code(main);
        let reads = Reads::of_fields(code);
        reads.map_or_else(|| Self::followed(set, main), Self::from)
    }

    /// The same, whatever the template does.
    pub(crate) fn followed(set: &Set, main: u32) -> Self {
        Flow::new(set).analyse(main)
    }

    /// The operations that handle what is sensitive; none where there are none.
    pub(crate) fn trace(&self, set: &Set, main: u32, sensitive: &Sensitive) -> Option<Trace> {
        let mut codes = (set.base..set.end()).map(|number| set.code(number));
        let is_concerned = sensitive.has_paths() && self.reads.reads_sensitive(sensitive)
            || codes.any(|code| !sensitive.text(code).is_empty());
        is_concerned.then(|| Flow::new(set).trace(main, sensitive))
    }

    /// The read at an operation, with its path from the root or, failing that, as it is written.
    pub(crate) fn access(&self, code: &Code, site: ReadSite) -> Access {
        let place = code.sites[site.operation as usize];
        let path = match self.sites.get(&site) {
            Some(Some(path)) => path.clone(),
            _ => match code.ops[site.operation as usize] {
                Op::Field { path, .. } | Op::ChainField { path, .. } | Op::PrintField { path } => {
                    code.path_text(path)
                }
                Op::VariableField { name, path, .. } => {
                    format!("{}{}", code.names[name as usize], code.path_text(path))
                }
                _ => crate::parse::show(&code.source, place),
            },
        };
        Access {
            path,
            offset: place.start as usize,
            template: code.source.name.as_ref().to_owned(),
        }
    }
}
