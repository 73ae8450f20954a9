//! Input variables: declarations and given values.
//!
//! In: `variable` blocks and `variables` keys, the environment, files and options of the command
//! line. Out: [`Settled`]: a value for each variable, its origin, sensitive texts. Must not:
//! prompt.

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
use crate::dialect::bosh;

pub(super) use declare::{Declarations, Reading};
pub(super) use interpolate::{interpolate, name_interpolations};
pub(super) use settle::settle;
pub(super) use validate::validate;

/// Given values.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// `NSTANCE_VAR_x`, without the prefix.
    pub environment: Vec<(String, String)>,
    /// `--var-file`, in order.
    pub files: Vec<PathBuf>,
    /// `--var`, in order.
    pub command_line: Vec<(String, String)>,
    /// Whether only the cluster, the shard and the load balancers matter: then variables that these
    /// don't read need no value.
    pub identity_only: bool,
    /// `--groups`: a file of the Nstance server's dynamic groups.
    pub groups: Option<PathBuf>,
    /// `--nonce-command`, which comes before the configuration's; empty if it isn't given.
    pub nonce_command: Vec<String>,
    /// `--strict`: warnings are errors.
    pub strict: bool,
    /// `--server-compatible`: warn of what today's Nstance server doesn't know.
    pub server_compatible: bool,
    /// `--from`: whose language the configuration is written in; `None` means by its shape.
    pub from: Option<Dialect>,
    /// What `--from bosh` reads besides the manifest, which isn't set here.
    pub deployment: bosh::Inputs,
    /// The id of the errand of a deployment that runs; the others have no instances.
    pub errand: Option<String>,
    /// `--ruby`: the program that evaluates ERB; `None` means `ruby` on `PATH`.
    pub ruby: Option<PathBuf>,
}

/// Whose language a configuration is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// nstance's own.
    Nstance,
    /// That of instance groups of Yandex Cloud.
    Yandex,
    /// That of BOSH's deployment manifests.
    Bosh,
}

impl Given {
    /// Values of `--var` only.
    pub fn vars(vars: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            command_line: vars.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// The origin of a variable's value.
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
    /// Where it is declared; `None` for an entry of top-level `vars`.
    pub declared: Option<Span>,
    /// `description`
    pub description: Option<Arc<str>>,
    /// Its type, as written.
    pub of: Option<String>,
    /// Whether it is sensitive; then `value` is empty.
    pub sensitive: bool,
    /// Its value, unless it is sensitive.
    pub value: Option<Json>,
    /// The origin of its value.
    pub origin: Origin,
}

/// Texts of sensitive values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(pub Vec<Arc<str>>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} hidden)", self.0.len())
    }
}
