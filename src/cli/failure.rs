//! Failures of commands: findings with places, and an exit code.
//!
//! In: errors of every stage. Out: one [`Failure`], or [`Failures`] of several configurations, each
//! with its source texts. Must not: print.

use crate::apply::driver::DriveError;
use crate::apply::recover::RecoverError;
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::pipeline::PlanError;
use crate::plan::file::PlanFileError;
use crate::provider::sim::SimError;
use nstance_state::StateError;

use super::exit::{self, worst};

/// The failure of a command.
#[derive(Debug)]
pub struct Failure {
    /// The findings.
    pub findings: Diagnostics,
    /// The exit code.
    pub code: u8,
}

impl Failure {
    /// A failure with one finding.
    pub fn new(diagnostic: Diagnostic) -> Self {
        Self {
            findings: diagnostic.into(),
            code: exit::ERROR,
        }
    }

    /// A failure with only a summary.
    pub fn say(summary: impl Into<String>) -> Self {
        Self::new(Diagnostic::error(summary))
    }
}

/// The failures of a run, each with its source texts.
#[derive(Debug, Default)]
pub struct Failures(Vec<(Failure, SourceMap)>);

impl Failures {
    /// Adds the failure of one configuration.
    pub fn push(&mut self, failure: Failure, sources: SourceMap) {
        self.0.push((failure, sources));
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The failures in order.
    pub fn iter(&self) -> std::slice::Iter<'_, (Failure, SourceMap)> {
        self.0.iter()
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        worst(self.0.iter().map(|(failure, _)| failure.code))
    }
}

impl<'a> IntoIterator for &'a Failures {
    type Item = &'a (Failure, SourceMap);
    type IntoIter = std::slice::Iter<'a, (Failure, SourceMap)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Failure> for Failures {
    /// A failure without places.
    fn from(failure: Failure) -> Self {
        Self(vec![(failure, SourceMap::default())])
    }
}

impl From<Diagnostics> for Failure {
    fn from(findings: Diagnostics) -> Self {
        Self {
            findings,
            code: exit::ERROR,
        }
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::new(diagnostic)
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        let mut diagnostic = Diagnostic::error(error.to_string());
        diagnostic.hints.extend(error.hint());
        if matches!(error, StateError::Corrupt { .. }) {
            diagnostic = diagnostic.hint("What there is to restore: nstance doctor");
        }
        Self::new(diagnostic)
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Self {
        let mut diagnostic = Diagnostic::error(error.to_string());
        diagnostic.hints.extend(error.hint());
        Self::new(diagnostic)
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Findings(findings) => findings.into(),
            PlanError::State(error) => error.into(),
            PlanError::Cloud {
                error: ref cause, ..
            } => {
                let mut finding = Diagnostic::error(error.to_string());
                finding.hints.extend(cause.hint.clone().map(String::from));
                finding.into()
            }
        }
    }
}

impl From<RecoverError> for Failure {
    fn from(error: RecoverError) -> Self {
        let hint = match &error {
            RecoverError::Cloud { .. } => {
                "Try again when the cloud answers; until then nothing is changed"
            }
            RecoverError::Store(_) | RecoverError::Unreadable { .. } => {
                "Keep a copy of the state before anything else"
            }
        };
        Self::new(Diagnostic::error(error.to_string()).hint(hint))
    }
}

impl From<DriveError> for Failure {
    fn from(error: DriveError) -> Self {
        let hint = "Run `nstance apply` again to continue";
        Self::new(Diagnostic::error(error.to_string()).hint(hint))
    }
}

impl Failure {
    /// A plan file that can't be read.
    pub fn plan_file(path: &std::path::Path, error: &PlanFileError) -> Self {
        let name = path.display();
        let diagnostic = match error {
            PlanFileError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Diagnostic::error(format!("no such plan file: {name}"))
                    .hint("Save a plan: nstance plan --out FILE")
            }
            PlanFileError::Io(error) => {
                Diagnostic::error(format!("the plan can't be read: {error}: {name}"))
            }
            PlanFileError::NoKey { reason, .. } => {
                let mut diagnostic =
                    Diagnostic::error(format!("the plan can't be opened: {error}: {name}"));
                diagnostic.hints.extend(reason.hint.clone());
                diagnostic
            }
            PlanFileError::NotAPlan => Diagnostic::error(format!("not a saved plan: {name}"))
                .hint("Save a plan: nstance plan --out FILE"),
            other => Diagnostic::error(format!("the plan can't be used: {other}: {name}"))
                .hint("Save a plan: nstance plan --out FILE"),
        };
        Self::new(diagnostic)
    }

    /// A plan that can't be saved.
    pub fn unsaved_plan(path: &std::path::Path, error: &PlanFileError) -> Self {
        let why = match error {
            // The original message names a temporary file, which would confuse the user.
            PlanFileError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "there is no such folder".to_owned()
            }
            PlanFileError::Io(error) => error.kind().to_string(),
            other => other.to_string(),
        };
        let name = path.display();
        let finding = Diagnostic::error(match error {
            PlanFileError::Occupied(what) => format!("will not overwrite {name}: {what}"),
            _ => format!("the plan can't be saved: {why}: {name}"),
        });
        Self::new(match error {
            PlanFileError::Secret => finding
                .hint("Give plan and apply a key: NSTANCE_STATE_KEY=nstance-key-1-$(openssl rand -hex 32)")
                .hint("Or apply without a saved plan: that makes .nstance/key, for later ones too"),
            PlanFileError::Occupied(_) => finding.hint("Name a new file, or a saved plan"),
            _ => finding,
        })
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::say(error.to_string())
    }
}
