//! What a run found, for reports that are read elsewhere: in a pull request, in a CI log.
//!
//! In: the plans, findings and results of all shards. Out: [`Run`], its verdict and its counts. Must
//! not: know a format.

use std::time::Duration;

use serde_json::{Value, json};

use super::events::{self, Done, planned_counts};
use super::text::{self, ShardEnd, Signs, Style};
use crate::config::source::SourceMap;
use crate::diagnostic::{Diagnostics, Severity};
use crate::plan::change::{DriftKind, Mode, Plan, Summary};

/// A finished run over one or several shards.
#[derive(Debug)]
pub struct Run<'a> {
    /// What it did.
    pub subject: Subject,
    /// Its shards in the given order.
    pub shards: Vec<Shard<'a>>,
    /// The commands that mend the drift.
    pub mend: Option<String>,
    /// The URL of the CI job.
    pub link: Option<String>,
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// It planned.
    Plan,
    /// It looked for drift.
    Drift {
        /// Whether planned changes count, too.
        against_config: bool,
    },
    /// It applied plans.
    Apply,
}

impl Subject {
    /// Drift from the record.
    pub(super) const OF_RECORD: Self = Self::Drift {
        against_config: false,
    };

    /// Drift from the configuration.
    pub(super) const OF_CONFIG: Self = Self::Drift {
        against_config: true,
    };

    /// The command.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Drift { .. } => "drift",
            Self::Apply => "apply",
        }
    }
}

/// One shard of a run.
#[derive(Debug)]
pub struct Shard<'a> {
    /// `cluster.id` and `shard.id`; `None` if the configuration is invalid.
    pub identity: Option<(String, String)>,
    /// The prefix of its addresses, in a run over several shards.
    pub label: Option<String>,
    /// Its plan; `None` if planning failed.
    pub plan: Option<Plan>,
    /// The counts of the planned changes; in `drift` without accepted drift.
    pub planned: Summary,
    /// All findings.
    pub findings: Diagnostics,
    /// Their source texts.
    pub sources: &'a SourceMap,
    /// What was applied; `None` if nothing was, or the run only planned.
    pub applied: Option<Applied>,
}

/// The result of an apply.
#[derive(Debug, Clone)]
pub struct Applied {
    /// How it ended.
    pub end: ShardEnd,
    /// The number of changes done.
    pub done: Done,
    /// How long it took.
    pub elapsed: Duration,
    /// The changes that weren't done.
    pub undone: Vec<Undone>,
}

/// A change that wasn't done.
#[derive(Debug, Clone)]
pub struct Undone {
    /// Its address.
    pub address: String,
    /// `create`, `update`, …
    pub action: &'static str,
    /// The error; `None` if it wasn't tried.
    pub error: Option<String>,
}

impl Applied {
    fn to_json(&self) -> Value {
        let undone = self.undone.iter().map(|undone| {
            json!({"address": undone.address, "action": undone.action, "error": undone.error})
        });
        json!({
            "status": self.end.as_str(),
            "changes": events::done_json(self.done),
            "elapsed_seconds": self.elapsed.as_secs(),
            "undone": undone.collect::<Vec<_>>(),
        })
    }
}

impl Shard<'_> {
    /// `cluster/shard`
    pub(super) fn name(&self) -> Option<String> {
        let (cluster, shard) = self.identity.as_ref()?;
        Some(format!("{cluster}/{shard}"))
    }

    /// The style of its texts.
    pub(super) fn style(&self, signs: Signs) -> Style<'_> {
        Style {
            color: false,
            width: 120,
            shard: self.label.as_deref(),
            signs,
        }
    }

    /// Its findings, with its name in a run over several shards.
    pub(super) fn named_findings(&self) -> Diagnostics {
        let mut findings = self.findings.clone();
        if let Some(label) = &self.label {
            for finding in &mut findings {
                finding.summary = format!("{label}: {}", finding.summary);
            }
        }
        findings
    }

    fn failed(&self) -> bool {
        self.plan.as_ref().is_none_or(Plan::errored) || self.findings.has_errors()
    }
}

impl Run<'_> {
    /// Whether there was an error.
    pub(super) fn failed(&self) -> bool {
        self.shards.iter().any(Shard::failed)
    }

    /// Whether every shard has a plan.
    pub fn is_planned(&self) -> bool {
        self.shards.iter().all(|shard| shard.plan.is_some())
    }

    /// The number of findings of a severity.
    pub(super) fn findings(&self, severity: Severity) -> usize {
        let findings = self.shards.iter().flat_map(|shard| &shard.findings);
        findings
            .filter(|finding| finding.severity == severity)
            .count()
    }

    /// The counts of all shards' planned changes.
    pub(super) fn planned(&self) -> Summary {
        let mut sum = Summary::default();
        for shard in &self.shards {
            sum.add(&shard.planned);
        }
        sum
    }

    /// The counts of all that was applied.
    pub(super) fn done(&self) -> Done {
        let mut sum = Done::default();
        for applied in self.shards.iter().filter_map(|it| it.applied.as_ref()) {
            sum.add(applied.done);
        }
        sum
    }

    /// Whether everything that was planned is applied.
    fn is_complete(&self) -> bool {
        let complete = |shard: &Shard<'_>| match &shard.applied {
            Some(applied) => matches!(applied.end, ShardEnd::Done | ShardEnd::Unchanged),
            None => false,
        };
        self.shards.iter().all(complete)
    }

    /// The number of drifted instances of a kind that aren't accepted.
    pub(super) fn drifted(&self, kind: DriftKind) -> usize {
        let plans = self.shards.iter().filter_map(|shard| shard.plan.as_ref());
        let drift = plans.flat_map(|plan| &plan.drift);
        drift.filter(|it| it.kind == kind && !it.accepted).count()
    }

    /// Whether there is drift.
    pub(super) fn has_drift(&self) -> bool {
        let planned = self.subject == Subject::OF_CONFIG && self.planned().has_changes();
        planned || DriftKind::ALL.iter().any(|kind| self.drifted(*kind) > 0)
    }

    /// The result in one line.
    pub(super) fn verdict(&self) -> String {
        match self.subject {
            Subject::Plan => {
                let planned = self.planned();
                if planned.has_changes() {
                    format!("Plan: {}", planned_counts(&planned))
                } else if self.failed() {
                    "Planning failed".to_owned()
                } else {
                    "No changes".to_owned()
                }
            }
            Subject::Drift { .. } if self.has_drift() => {
                let kinds = DriftKind::ALL.iter();
                let kinds: Vec<String> = kinds
                    .map(|kind| format!("{} {}", self.drifted(*kind), kind.as_str()))
                    .collect();
                let mut line = format!("Drift: {}", kinds.join(", "));
                if self.subject == Subject::OF_CONFIG && self.planned().has_changes() {
                    line.push_str(&format!("; {}", planned_counts(&self.planned())));
                }
                line
            }
            Subject::Drift { .. } if self.shards.iter().any(|shard| shard.plan.is_none()) => {
                "Looking for drift failed".to_owned()
            }
            Subject::Drift { .. } => "No drift".to_owned(),
            Subject::Apply => {
                let plans = self.shards.iter().filter_map(|shard| shard.plan.as_ref());
                let mode = plans.map(|plan| plan.mode).next().unwrap_or(Mode::Normal);
                let text = events::done_text(mode, self.done(), self.is_complete());
                text.trim_end_matches('.').to_owned()
            }
        }
    }

    /// The run's text, without colors.
    pub fn text(&self) -> String {
        let mut texts = Vec::new();
        for shard in &self.shards {
            let style = shard.style(Signs::Indented);
            let mut text = String::new();
            if let (Some(_), Some((cluster, name))) = (&shard.label, &shard.identity) {
                text = format!("{}\n\n", text::heading(cluster, name, style));
            }
            if let Some(plan) = &shard.plan {
                text.push_str(&match self.subject {
                    Subject::Drift {
                        against_config: true,
                    } => text::drift_from_config(plan, &shard.planned, style),
                    Subject::Drift { .. } => text::drift(plan, style),
                    Subject::Plan | Subject::Apply => text::plan(plan, style),
                });
            }
            if !shard.findings.is_empty() {
                text.push('\n');
                text.push_str(&super::diagnostic::render(
                    &shard.named_findings(),
                    shard.sources,
                    false,
                ));
            }
            texts.push(text);
        }
        if self.subject == Subject::Apply || self.shards.len() > 1 {
            texts.push(format!("{}.\n", self.verdict()));
        }
        texts.extend(self.mend.as_ref().map(|line| format!("{line}\n")));
        texts.join("\n")
    }

    /// The run's document; a list for several shards.
    pub fn json(&self) -> Value {
        let documents = self.shards.iter().map(|shard| {
            let findings = super::diagnostic::to_json(&shard.findings, shard.sources);
            let mut document = match (&shard.plan, self.subject) {
                (None, _) => super::json::errors(findings),
                (Some(plan), Subject::Drift { against_config }) => {
                    let planned = against_config.then_some(&shard.planned);
                    super::json::drift(plan, planned, findings)
                }
                (Some(plan), Subject::Plan | Subject::Apply) => super::json::plan(plan, findings),
            };
            if let Some(applied) = &shard.applied {
                document["applied"] = applied.to_json();
            }
            if let (Some(_), Some((cluster, name))) = (&shard.label, &shard.identity) {
                document["cluster"] = json!(cluster);
                document["shard"] = json!(name);
            }
            document
        });
        let mut documents: Vec<Value> = documents.collect();
        match documents.len() {
            1 => documents.remove(0),
            _ => documents.into(),
        }
    }

    /// GitLab's Terraform report: the artifact whose counts a merge request shows.
    pub fn gitlab(&self) -> Value {
        let (create, update, delete) = match self.subject {
            Subject::Apply => {
                let done = self.done();
                (done.added, done.changed, done.destroyed)
            }
            Subject::Plan | Subject::Drift { .. } => {
                let planned = self.planned();
                (planned.added(), planned.update, planned.destroyed())
            }
        };
        json!({"create": create, "update": update, "delete": delete})
    }
}
