//! Reports the outcome of an apply.
//!
//! In: outcomes. Out: texts about what was done, failed or not tried, and the exit code. Must not:
//! change anything.

use std::time::Duration;

use serde_json::{Value, json};

use super::console;
use super::exit;
use super::fleet::Fleet;
use super::session::{self, Session};
use crate::apply::driver::Applied;
use crate::apply::engine::{Outcome, TaskEnd, action_name};
use crate::clock::Timestamp;
use crate::diagnostic::{Diagnostic, counted};
use crate::plan::change::{Mode, Plan};
use crate::report::events::{self, Done};
use crate::report::text::{self, ShardEnd};

/// The outcome of an apply in one shard.
#[derive(Debug, Clone, Copy)]
pub struct ShardOutcome {
    /// How it ended.
    pub end: ShardEnd,
    /// The number of changes done, if known.
    pub done: Option<Done>,
    /// The exit code.
    pub code: u8,
    /// When it began and ended, if it was tried.
    pub span: Option<Span>,
}

/// When an apply began and ended.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The beginning.
    pub begun: Timestamp,
    /// The end.
    pub ended: Timestamp,
}

impl Span {
    fn elapsed(self) -> Duration {
        self.ended.since(self.begun)
    }

    /// From the beginning of the first to the end of the last.
    fn of_all(spans: impl Iterator<Item = Self>) -> Option<Self> {
        spans.reduce(|all, one| Self {
            begun: all.begun.min(one.begun),
            ended: all.ended.max(one.ended),
        })
    }
}

impl ShardOutcome {
    /// There were no changes.
    pub fn unchanged(plan: &Plan) -> Self {
        Self {
            end: ShardEnd::Unchanged,
            done: Some(Done::default()),
            code: success(plan),
            span: None,
        }
    }

    /// The apply couldn't start.
    pub fn failed() -> Self {
        Self {
            end: ShardEnd::Failed,
            done: Some(Done::default()),
            code: exit::ERROR,
            span: None,
        }
    }

    /// The shard wasn't applied, because of a signal or another shard's failure.
    pub fn not_tried(signal: Option<u8>) -> Self {
        Self {
            end: ShardEnd::NotTried,
            done: Some(Done::default()),
            code: signal.unwrap_or(exit::ERROR),
            span: None,
        }
    }
}

/// The exit code if all planned changes are done.
fn success(plan: &Plan) -> u8 {
    if plan.errored() {
        exit::ERROR
    } else {
        exit::SUCCESS
    }
}

/// Reports that there were no changes.
pub fn nothing_to_do(session: &Session<'_>, mode: Mode) {
    let done = Done::default();
    if session.globals.json {
        let now = session.clock.now();
        session.event(events::apply_summary(now, mode, done, true, Duration::ZERO));
    } else {
        console::print(&format!("\n{}\n", events::done_text(mode, done, true)));
    }
}

/// Reports the outcome of each shard, and the total.
pub fn conclude_all(fleet: &Fleet<'_>, mode: Mode, ends: &[ShardOutcome]) {
    let mut total = Done::default();
    for done in ends.iter().filter_map(|ended| ended.done) {
        total.add(done);
    }
    let is_complete = ends
        .iter()
        .all(|ended| matches!(ended.end, ShardEnd::Done | ShardEnd::Unchanged));
    if fleet.globals.json {
        let shards = fleet.shards.iter().zip(ends);
        let shards: Vec<Value> = shards
            .map(|(session, ended)| {
                let identity = session.identity();
                json!({
                    "cluster": identity.cluster,
                    "shard": identity.shard,
                    "status": ended.end.as_str(),
                    "changes": ended.done.map(events::done_json),
                })
            })
            .collect();
        let now = session::clock(fleet.globals).now();
        let span = Span::of_all(ends.iter().filter_map(|ended| ended.span));
        let elapsed = span.map_or(Duration::ZERO, Span::elapsed);
        let mut event = events::apply_summary(now, mode, total, is_complete, elapsed);
        event["shards"] = shards.into();
        console::print_json_line(&event);
        return;
    }
    let shards = fleet.names().into_iter().zip(ends);
    let shards: Vec<_> = shards
        .map(|(name, ended)| (name, ended.end, ended.done))
        .collect();
    console::print(&format!(
        "\n{}\n{}\n",
        text::ends(&shards, fleet.globals.style()),
        events::done_text(mode, total, is_complete)
    ));
}

/// Reports what was done, what failed, and what was not tried.
///
/// `goes_back` means that the plan is the way back of an earlier rollout.
pub fn conclude(
    session: &Session<'_>,
    plan: &Plan,
    applied: &Applied,
    goes_back: bool,
    signal: Option<u8>,
    span: Span,
) -> ShardOutcome {
    let outcome = &applied.outcome;
    let done = Done {
        added: outcome.done.added(),
        changed: outcome.done.update,
        destroyed: outcome.done.destroyed(),
        adopted: outcome.done.adopt,
        forgotten: outcome.done.forget,
    };
    let is_complete = outcome.is_complete();
    if session.globals.json {
        let now = session.clock.now();
        let elapsed = span.elapsed();
        session.event(events::apply_summary(
            now,
            plan.mode,
            done,
            is_complete,
            elapsed,
        ));
    } else {
        let line = events::done_text(plan.mode, done, is_complete);
        console::print(&match &session.label {
            Some(label) => format!("{label}: {line}\n"),
            None => format!("\n{line}\n"),
        });
    }
    if is_complete && goes_back {
        tell(session, rolled_back(session, plan, true));
        return ShardOutcome {
            end: ShardEnd::Failed,
            done: Some(done),
            code: exit::ERROR,
            span: Some(span),
        };
    }
    if is_complete {
        return ShardOutcome {
            end: ShardEnd::Done,
            done: Some(done),
            code: success(plan),
            span: Some(span),
        };
    }
    if outcome.waits() {
        tell(session, waiting(session, plan, outcome));
        return ShardOutcome {
            end: ShardEnd::Waiting,
            done: Some(done),
            code: exit::WAITING,
            span: Some(span),
        };
    }
    let mut lines = Vec::new();
    let mut not_tried = 0;
    for (task, end) in &outcome.undone {
        let change = &plan.changes[*task];
        let what = format!(
            "{} of {}",
            action_name(change.action),
            session.name(&change.address)
        );
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
        let (changes, were) = match not_tried {
            1 => ("change", "was"),
            _ => ("changes", "were"),
        };
        detail.push_str(&format!("{not_tried} {changes} {were} not tried"));
    }
    for (group, failed) in outcome.blocked.iter().take(20) {
        let [group, failed] = [group, failed].map(|index| session.name(&plan.groups[*index].name));
        detail.push_str(&format!(
            "\n{group} wasn't changed, because {failed} isn't finished"
        ));
    }
    let summary = if outcome.stopped && lines.is_empty() {
        "stopped before everything was done"
    } else {
        "apply finished with errors"
    };
    let finding = Diagnostic::error(summary).detail(detail);
    match &applied.back {
        None => tell(
            session,
            finding.hint("Run `nstance apply` again to continue"),
        ),
        Some((way, came)) => {
            tell(session, finding);
            tell(session, rolled_back(session, way, came.is_complete()));
        }
    }
    let failed = |end: &TaskEnd| matches!(end, TaskEnd::Failed(_) | TaskEnd::Unsettled(_));
    let only_stopped = outcome.stopped && !outcome.undone.iter().any(|(_, end)| failed(end));
    let (end, code) = match signal {
        // In a run over one shard, the signal determines the exit code even after failures.
        Some(code) if only_stopped || session.label.is_none() => (ShardEnd::Interrupted, code),
        _ => (ShardEnd::Failed, exit::ERROR),
    };
    ShardOutcome {
        end,
        done: Some(done),
        code,
        span: Some(span),
    }
}

/// Reports a finding, as an event with `--json`.
pub fn tell(session: &Session<'_>, finding: Diagnostic) {
    if session.globals.json {
        session.finding_events(&finding.into());
    } else {
        session.tell(&finding.into());
    }
}

/// The message that groups went back, or that they couldn't.
fn rolled_back(session: &Session<'_>, way: &Plan, is_complete: bool) -> Diagnostic {
    let names: Vec<String> = way
        .groups
        .iter()
        .map(|group| session.name(&group.name))
        .collect();
    let what = match &names[..] {
        [_] => "was rolled back to its last good configuration",
        _ => "were rolled back to their last good configurations",
    };
    let names = names.join(", ");
    if is_complete {
        Diagnostic::error(format!("{names} {what}"))
            .hint("Change the configuration, or try it again with `nstance apply --retry`")
    } else {
        Diagnostic::error(format!("the rollback of {names} isn't finished"))
            .hint("`nstance rollout status` shows how far it came; `nstance apply` continues it")
    }
}

/// The message that a rollout waits, and for what.
fn waiting(session: &Session<'_>, plan: &Plan, outcome: &Outcome) -> Diagnostic {
    let lines: Vec<String> = outcome
        .waiting
        .iter()
        .map(|(group, why)| {
            let name = session.name(&plan.groups[*group].name);
            format!("{name} waits for {why}")
        })
        .collect();
    let left = outcome.undone.len();
    Diagnostic::warning("the rollout waits")
        .detail(format!(
            "{}\n{} left",
            lines.join("\n"),
            counted(left, "change")
        ))
        .hint("After that, run `nstance apply` again to continue")
}
