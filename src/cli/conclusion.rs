//! How an apply ended, in words and in an exit code.
//!
//! In: an outcome. Out: what was done, what failed, what was not tried. May not: do anything more.

use super::exit;
use super::session::{self, Session};
use crate::apply::engine::{Outcome, TaskEnd, action_name};
use crate::diagnostic::Diagnostic;
use crate::plan::change::{Mode, Plan};
use crate::report::diagnostic;
use crate::report::events::{self, Done};

/// Says what was done, what failed, and what was not tried.
pub fn conclude(session: &Session<'_>, plan: &Plan, outcome: &Outcome, signal: Option<u8>) -> u8 {
    let done = Done {
        added: outcome.done.added(),
        changed: outcome.done.update,
        destroyed: outcome.done.destroyed(),
        adopted: outcome.done.adopt,
        forgotten: outcome.done.forget,
    };
    if session.globals.json {
        let now = session.clock.now();
        session::print(&format!(
            "{}\n",
            events::apply_summary(now, plan.mode, done)
        ));
    } else {
        let text = match (outcome.is_complete(), plan.mode) {
            (true, Mode::Destroy) => {
                format!("Destroy complete! Resources: {} destroyed.", done.destroyed)
            }
            (true, _) => events::done_text(done),
            (false, _) => events::done_text(done).replace("Apply complete!", "Apply incomplete."),
        };
        session::print(&format!("\n{text}\n"));
    }
    if outcome.is_complete() {
        return if plan.errored() {
            exit::ERROR
        } else {
            exit::SUCCESS
        };
    }
    let mut lines = Vec::new();
    let mut not_tried = 0;
    for (task, end) in &outcome.undone {
        let change = &plan.changes[*task];
        let what = format!("{} of {}", action_name(change.action), change.address);
        match end {
            TaskEnd::Failed(error) => lines.push(format!("{what} failed: {error}")),
            TaskEnd::Unfinished(error) => lines.push(format!("{what} is half done: {error}")),
            TaskEnd::Unsettled(error) => {
                lines.push(format!("{what}: whether it happened isn't known: {error}"));
            }
            TaskEnd::NotTried => not_tried += 1,
            TaskEnd::Done => {}
        }
    }
    let shown = lines.len().min(20);
    let mut detail = lines[..shown].join("\n");
    if lines.len() > shown {
        detail.push_str(&format!("\nand {} more", lines.len() - shown));
    }
    if not_tried > 0 {
        if !detail.is_empty() {
            detail.push('\n');
        }
        detail.push_str(&format!("{not_tried} changes were not tried"));
    }
    let summary = if outcome.stopped && lines.is_empty() {
        "stopped before everything was done"
    } else {
        "not everything could be done"
    };
    let finding = Diagnostic::error(summary)
        .detail(detail)
        .hint("Run apply again: it goes on from here");
    if session.globals.json {
        let now = session.clock.now();
        let findings = diagnostic::to_json(&finding.into(), &session.loaded.sources);
        for event in findings.as_array().into_iter().flatten() {
            session::print(&format!("{}\n", events::diagnostic(now, event.clone())));
        }
    } else {
        session.tell(&finding.into());
    }
    signal.unwrap_or(exit::ERROR)
}
