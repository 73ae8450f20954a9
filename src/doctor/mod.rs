//! Whether a shard is healthy: its state, its journal, its lock, its files, and the cloud.
//!
//! In: facts that were gathered without changing any. Out: an [`Examination`]: findings, each with
//! what it means and what to do, and one [`Plan`] that repairs what a plan can. The plan is like
//! any other: it is shown, saved and applied in the same way. Must not: ask, read or write
//! anything.
//!
//! [`local`] judges what lies on this machine, [`access`] what we may ask of the cloud, [`cloud`]
//! compares the record with what there is.

pub mod access;
pub mod cloud;
pub mod local;

use crate::plan::change::{Action, Plan};

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// The state's file.
    State,
    /// What was intended and not settled.
    Journal,
    /// The lock.
    Lock,
    /// Who may read and write what.
    Files,
    /// Copies of the state.
    Backups,
    /// Who asks the cloud, and what they may do.
    Access,
    /// What the cloud has.
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

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing can be applied, or something is lost.
    Error,
    /// Something isn't as it should be.
    Warning,
    /// Worth knowing; all is well.
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
    /// By which check.
    pub check: Check,
    /// How bad it is.
    pub severity: Severity,
    /// What it is, in a word for programs, such as `orphan`.
    pub kind: &'static str,
    /// The slot, where it is about one.
    pub address: Option<String>,
    /// The cloud's id of the instance, where it is about one.
    pub provider_id: Option<String>,
    /// One sentence without a full stop: what was found.
    pub summary: String,
    /// What it means.
    pub meaning: String,
    /// What the plan that was proposed does about it.
    pub repair: Option<Action>,
    /// What a person can do about it, a sentence each.
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

/// All that was found.
#[derive(Debug, Default)]
pub struct Examination {
    /// What each check came to, in words, in the order they were done.
    pub verdicts: Vec<(Check, String)>,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// What repairs it, where a plan can.
    pub repair: Option<Plan>,
}

impl Examination {
    /// Whether nothing is wrong. A note is nothing wrong.
    pub fn is_healthy(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.severity == Severity::Note)
    }

    /// Adds what another part of it came to.
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

/// `1 record`, `2 records`
fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
