//! Functions beyond Go's: the commonly used part of Sprig 3.2 and of Helm's.
//!
//! In: evaluated arguments, checked for their number and types. Out: values, or the words that
//! Sprig, or Go, has for what is wrong. Nothing here reads the clock, the environment, files or the
//! network, and nothing is random: the names that would are known, and refused with the reason.

mod arguments;
mod case;
mod decimal;
mod defaults;
mod dicts;
mod durations;
mod encoding;
mod equal;
mod json;
mod left_out;
mod lists;
mod networks;
mod numbers;
mod paths;
mod regexes;
mod strings;
mod urls;
mod versions;
mod wrap;
mod yaml;

use std::sync::Arc;

use crate::environment::Environment;
use crate::function::{Action, Budget, Function, FunctionError, Kind, Unknowns};
use crate::value::Value;

/// A function of [`Environment::with_sprig`], for documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Its name.
    pub name: &'static str,
    /// Its arguments; `X…` stands for any number of them.
    pub arguments: &'static str,
    /// What it gives: a sentence without capital and full stop.
    pub summary: &'static str,
    /// What it belongs to.
    pub group: &'static str,
}

type Outcome = Result<Value, FunctionError>;

/// What runs when a function is called.
#[derive(Clone, Copy)]
enum Body {
    Rust(fn(&mut Budget, &[Value]) -> Outcome),
    Include,
    Tpl,
}

/// A function and what it takes.
#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    kinds: &'static [Kind],
    rest: Option<Kind>,
    tests: bool,
    changes: bool,
    unknowns: Unknowns,
    body: Body,
}

const fn entry(
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    kinds: &'static [Kind],
    body: fn(&mut Budget, &[Value]) -> Outcome,
) -> Entry {
    Entry {
        name,
        arguments,
        summary,
        kinds,
        rest: None,
        tests: false,
        changes: false,
        unknowns: Unknowns::Deep,
        body: Body::Rust(body),
    }
}

impl Entry {
    /// The same with any number of arguments more.
    const fn and_any(self, kind: Kind) -> Self {
        Self {
            rest: Some(kind),
            ..self
        }
    }

    /// The same under another name.
    const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same, which only asks of its arguments whether they are there.
    const fn testing(self) -> Self {
        Self {
            tests: true,
            ..self
        }
    }

    /// The same, which changes a dict that it is given.
    const fn changing(self) -> Self {
        Self {
            changes: true,
            ..self
        }
    }

    /// The same, which doesn't look at what is within its arguments.
    const fn shallow(self) -> Self {
        Self {
            unknowns: Unknowns::Shallow,
            ..self
        }
    }

    /// The same, which takes unknown arguments.
    const fn passing(self) -> Self {
        Self {
            unknowns: Unknowns::Passed,
            ..self
        }
    }

    const fn with_body(self, body: Body) -> Self {
        Self { body, ..self }
    }

    fn function(&self) -> Function {
        let action = match self.body {
            Body::Rust(body) => Action::Budgeted(Arc::new(body)),
            Body::Include => Action::Include,
            Body::Tpl => Action::Tpl,
        };
        let function = Function::of_kinds(self.kinds.into(), self.rest, action);
        let mut function = function.with_unknowns(self.unknowns);
        if self.tests {
            function = function.testing();
        }
        if self.changes {
            function = function.changing();
        }
        function
    }
}

const GROUPS: [(&str, &[Entry]); 16] = [
    ("choices and templates", defaults::FUNCTIONS),
    ("strings", strings::FUNCTIONS),
    ("lists", lists::FUNCTIONS),
    ("sequences", defaults::SEQUENCES),
    ("dicts", dicts::FUNCTIONS),
    ("types", defaults::TYPES),
    ("numbers", numbers::FUNCTIONS),
    ("JSON", json::FUNCTIONS),
    ("YAML", yaml::FUNCTIONS),
    ("regular expressions", regexes::FUNCTIONS),
    ("versions", versions::FUNCTIONS),
    ("URLs", urls::FUNCTIONS),
    ("ranges of addresses", networks::FUNCTIONS),
    ("encodings and digests", encoding::FUNCTIONS),
    ("paths", paths::FUNCTIONS),
    ("spans of time", durations::FUNCTIONS),
];

/// All functions that [`Environment::with_sprig`] adds, by groups.
pub fn functions() -> impl Iterator<Item = Listed> {
    GROUPS.iter().flat_map(|(group, entries)| {
        entries.iter().map(|entry| Listed {
            name: entry.name,
            arguments: entry.arguments,
            summary: entry.summary,
            group,
        })
    })
}

/// The names that [`Environment::with_sprig`] refuses, each with the reason.
pub fn left_out() -> impl Iterator<Item = (&'static str, &'static str)> {
    left_out::LEFT_OUT.into_iter()
}

pub(crate) fn add_to(environment: Environment) -> Environment {
    let entries = GROUPS.iter().flat_map(|(_, entries)| entries.iter());
    let environment = entries.fold(environment, |environment, entry| {
        environment.with_function(entry.name, entry.function())
    });
    left_out().fold(environment, |environment, (name, reason)| {
        environment.without_function(name, reason)
    })
}
