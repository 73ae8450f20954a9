//! Input variables: what a configuration asks for, and what it is given.
//!
//! In: `variable` blocks and `variables` keys, the environment, files and options of the command
//! line. Out: [`Settled`]: a value for each variable, where it came from, what mustn't be shown.
//! Must not: ask anybody.

mod declare;
mod given;
mod interpolate;
mod settle;
#[cfg(test)]
mod tests;
mod validate;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;

use super::source::Span;

pub(super) use declare::{Declarations, Reading};
pub(super) use interpolate::{interpolate, name_interpolations};
pub(super) use settle::settle;
pub(super) use validate::validate;

/// Values from outside of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// `NSTANCE_VAR_x`, without that prefix.
    pub environment: Vec<(String, String)>,
    /// `--var-file`, in order.
    pub files: Vec<PathBuf>,
    /// `--var`, in order.
    pub command_line: Vec<(String, String)>,
}

impl Given {
    /// Values of `--var` alone.
    pub fn vars(vars: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            command_line: vars.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Where a variable's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Its declaration.
    Default(Span),
    /// `NSTANCE_VAR_x`
    Environment,
    /// A `--var-file`.
    File(Span),
    /// `--var`
    CommandLine,
}

/// A variable and its value.
#[derive(Debug, Clone)]
pub struct Setting {
    /// What it is called.
    pub name: Arc<str>,
    /// Where it is declared; an entry of top-level `vars` isn't.
    pub declared: Option<Span>,
    /// `description`
    pub description: Option<Arc<str>>,
    /// Its type, as written.
    pub of: Option<String>,
    /// Whether it mustn't be shown: then `value` is empty.
    pub sensitive: bool,
    /// Its value, if it may be shown.
    pub value: Option<Json>,
    /// Where the value comes from.
    pub origin: Origin,
}

/// Texts that mustn't be shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(pub Vec<Arc<str>>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} hidden)", self.0.len())
    }
}
