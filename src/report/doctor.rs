//! Shows the doctor's findings as text or JSON.
//!
//! In: an [`Examination`]. Out: text or JSON; its plan is shown like any other. Must not: print, or
//! omit a finding from the JSON.

use serde_json::{Value, json};

use super::json::{FORMAT_VERSION, plan as plan_json};
use super::table;
use super::text::{self, Style};
use crate::doctor::{Examination, Finding, Severity};
use crate::plan::change::Action;

/// The maximum number of similar findings in the text.
const MOST_ALIKE: usize = 20;

/// The text of `nstance doctor`.
pub fn text(examination: &Examination, style: Style<'_>) -> String {
    let rows: Vec<[String; 2]> = examination
        .verdicts
        .iter()
        .map(|(check, verdict)| [check.as_str().to_owned(), verdict.clone()])
        .collect();
    let mut text = table(&["CHECK", "FOUND"], &rows);
    for alike in examination.findings.chunk_by(are_alike) {
        text.push('\n');
        text.push_str(&findings_text(alike, style));
    }
    if let Some(plan) = &examination.repair {
        text.push_str("\nWhat would repair it:\n\n");
        text.push_str(&text::plan(plan, style));
    } else if examination.is_healthy() {
        text.push_str("\nNothing is wrong.\n");
    }
    text
}

/// Whether two findings differ only in their subject.
fn are_alike(one: &Finding, other: &Finding) -> bool {
    let what = |finding: &Finding| {
        (
            finding.check,
            finding.kind,
            finding.severity,
            finding.repair,
        )
    };
    what(one) == what(other) && one.meaning == other.meaning && one.advice == other.advice
}

fn findings_text(alike: &[Finding], style: Style<'_>) -> String {
    let mut text = String::new();
    for finding in alike.iter().take(MOST_ALIKE) {
        let severity = style.severity(finding.severity);
        text.push_str(&format!("{severity}: {}\n", finding.summary));
    }
    let more = alike.len().saturating_sub(MOST_ALIKE);
    if more > 0 {
        text.push_str(&format!("and {more} more; all: nstance doctor --json\n"));
    }
    let Some(finding) = alike.first() else {
        return text;
    };
    text.push_str(&format!("  {}\n", finding.meaning));
    if let Some(action) = finding.repair {
        text.push_str(&format!("  repair: {}\n", repair(action)));
    }
    for advice in &finding.advice {
        text.push_str(&format!("  hint: {advice}\n"));
    }
    text
}

/// The repair of a finding by the proposed plan.
fn repair(action: Action) -> &'static str {
    match action {
        Action::Adopt => "record it",
        Action::Forget => "forget it",
        Action::Delete => "delete it",
        Action::Update => "give it its tags",
        Action::Create | Action::CreateThenDelete | Action::DeleteThenCreate => "make it anew",
        Action::NoOp => "leave it",
    }
}

/// The document of `nstance doctor --json`.
pub fn json(examination: &Examination, diagnostics: Value) -> Value {
    let checks: Vec<Value> = examination
        .verdicts
        .iter()
        .map(|(check, verdict)| json!({"check": check.as_str(), "found": verdict}))
        .collect();
    let findings: Vec<Value> = examination
        .findings
        .iter()
        .map(|finding| {
            json!({
                "check": finding.check.as_str(),
                "kind": finding.kind,
                "severity": finding.severity.as_str(),
                "address": finding.address,
                "provider_id": finding.provider_id,
                "summary": finding.summary,
                "detail": finding.meaning,
                "repair": finding.repair.map(action_name),
                "hints": finding.advice,
            })
        })
        .collect();
    let mut document = json!({
        "format_version": FORMAT_VERSION,
        "healthy": examination.is_healthy(),
        "checks": checks,
        "findings": findings,
    });
    document["repair"] = match &examination.repair {
        Some(plan) => plan_json(plan, json!([])),
        None => Value::Null,
    };
    document["diagnostics"] = diagnostics;
    document
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::Adopt => "adopt",
        Action::Forget => "forget",
        Action::Delete => "delete",
        Action::Update => "update",
        Action::Create => "create",
        Action::CreateThenDelete | Action::DeleteThenCreate => "replace",
        Action::NoOp => "no-op",
    }
}

impl Style<'_> {
    fn severity(self, severity: Severity) -> String {
        match severity {
            Severity::Error => self.danger("error"),
            Severity::Warning => self.warning("warning"),
            Severity::Note => self.bold("note"),
        }
    }
}
