//! Paths into the data, and sets of them.

use std::collections::BTreeMap;

use crate::value::ReadSite;

/// Paths longer than this aren't followed further: a template that calls itself with `.Next` makes
/// them as long as one likes.
pub(super) const LONGEST_PATH: usize = 24;

/// A path from the root; the root itself is empty. Where it isn't exact, it is something within.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Path {
    pub(super) text: String,
    pub(super) exact: bool,
}

/// What a value may be: any of these paths, or none of the data at all; and where the template has
/// each path, or the first place of several.
pub(super) type Paths = BTreeMap<Path, ReadSite>;

/// Adds paths; those that are there already keep their places.
pub(super) fn add(into: &mut Paths, from: &Paths) {
    for (path, site) in from {
        if !into.contains_key(path) {
            into.insert(path.clone(), *site);
        }
    }
}

pub(super) fn root(exact: bool) -> Paths {
    let path = Path {
        text: String::new(),
        exact,
    };
    Paths::from([(
        path,
        ReadSite {
            code: 0,
            operation: 0,
        },
    )])
}

/// Something within what the paths lead to.
pub(super) fn inexact(paths: Paths) -> Paths {
    let within = |(path, site)| {
        (
            Path {
                exact: false,
                ..path
            },
            site,
        )
    };
    paths.into_iter().map(within).collect()
}

pub(super) fn extend(paths: &Paths, name: &str, site: ReadSite) -> Paths {
    let longer = paths.iter().map(|(path, from)| {
        if !path.exact {
            return (path.clone(), *from);
        }
        let text = format!("{}.{name}", path.text);
        let exact = text.matches('.').count() < LONGEST_PATH;
        (Path { text, exact }, site)
    });
    longer.collect()
}
