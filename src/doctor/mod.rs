//! Checks whether a shard is healthy: its state, journal, lock, files, and the cloud.
//!
//! In: facts. Out: an [`Examination`]: findings, each with its meaning and advice, and one [`Plan`]
//! that repairs what a plan can. It is shown, saved and applied like any other plan. Must not: do
//! I/O.
//!
//! [`local`] checks local files, [`access`] the cloud's permissions, [`cloud`] compares the record
//! with the cloud.

pub mod access;
pub mod cloud;
pub mod local;

use crate::plan::change::{Action, Plan};

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// The state's file.
    State,
    /// Open intents.
    Journal,
    /// The lock.
    Lock,
    /// Permissions of files.
    Files,
    /// Copies of the state.
    Backups,
    /// Cloud credentials and their permissions.
    Access,
    /// The cloud's instances.
    Cloud,
}

impl Check {
    /// The name in JSON and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Journal => "journal",
            Self::Lock => "lock",
            Self::Files => "files",
            Self::Backups => "backups",
            Self::Access => "access",
            Self::Cloud => "cloud",
        }
    }
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Apply is impossible, or data is lost.
    Error,
    /// A problem.
    Warning,
    /// Information only.
    Note,
}

impl Severity {
    /// The name in JSON and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The check that found it.
    pub check: Check,
    /// Its severity.
    pub severity: Severity,
    /// Its kind for programs, such as `orphan`.
    pub kind: &'static str,
    /// The address concerned, if any.
    pub address: Option<String>,
    /// The provider id of the instance concerned, if any.
    pub provider_id: Option<String>,
    /// What was found: one sentence without a full stop.
    pub summary: String,
    /// What it means.
    pub meaning: String,
    /// The repair by the proposed plan.
    pub repair: Option<Action>,
    /// What the user can do, one sentence each.
    pub advice: Vec<String>,
}

impl Finding {
    fn new(
        check: Check,
        severity: Severity,
        kind: &'static str,
        summary: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self {
            check,
            severity,
            kind,
            address: None,
            provider_id: None,
            summary: summary.into(),
            meaning: meaning.into(),
            repair: None,
            advice: Vec::new(),
        }
    }

    fn about(mut self, address: &(impl ToString + ?Sized), provider_id: Option<&str>) -> Self {
        self.address = Some(address.to_string());
        self.provider_id = provider_id.map(str::to_owned);
        self
    }

    fn repaired_by(mut self, action: Option<Action>) -> Self {
        self.repair = action;
        self
    }

    fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }
}

/// The results of all checks.
#[derive(Debug, Default)]
pub struct Examination {
    /// The result of each check as a text, in order.
    pub verdicts: Vec<(Check, String)>,
    /// The findings, most severe first.
    pub findings: Vec<Finding>,
    /// The repair plan.
    pub repair: Option<Plan>,
}

impl Examination {
    /// Whether there are no problems; notes don't count.
    pub fn is_healthy(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.severity == Severity::Note)
    }

    /// Adds another part's results.
    pub fn add(&mut self, other: Self) {
        self.verdicts.extend(other.verdicts);
        self.findings.extend(other.findings);
        self.findings.sort_by_key(|finding| finding.severity);
        self.repair = self.repair.take().or(other.repair);
    }

    fn say(&mut self, check: Check, verdict: impl Into<String>) {
        self.verdicts.push((check, verdict.into()));
    }
}
