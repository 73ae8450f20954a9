//! Reports the outcome of an apply.
//!
//! In: outcomes. Out: texts about what was done, failed or not tried, and the exit code. Must not:
//! change anything.

use std::time::Duration;

use serde_json::{Value, json};

use super::console;
use super::exit;
use super::fleet::Fleet;
use super::reports::Found;
use super::session::{self, Session};
use crate::apply::driver::Applied;
use crate::apply::engine::{Outcome, TaskEnd, action_name};
use crate::clock::Timestamp;
use crate::diagnostic::{Diagnostic, counted};
use crate::plan::change::{Mode, Plan, Summary};
use crate::report::events::{self, Done};
use crate::report::review::{self, Undone};
use crate::report::text::{self, ShardEnd};

/// The outcome of an apply in one shard.
#[derive(Debug, Clone)]
pub struct ShardOutcome {
    /// How it ended.
    pub end: ShardEnd,
    /// The number of changes done, if known.
    pub done: Option<Done>,
    /// The changes that weren't done.
    pub undone: Vec<Undone>,
    /// The exit code.
    pub code: u8,
    /// When it began and ended, if it was tried.
    pub span: Option<Span>,
    /// The plan, if the shard got as far.
    pub plan: Option<Box<Plan>>,
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
    fn new(end: ShardEnd, done: Option<Done>, code: u8) -> Self {
        Self {
            end,
            done,
            undone: Vec::new(),
            code,
            span: None,
            plan: None,
        }
    }

    /// For the reports of the run.
    pub fn found(self) -> Found {
        let applied = review::Applied {
            end: self.end,
            done: self.done.unwrap_or_default(),
            elapsed: self.span.map_or(Duration::ZERO, Span::elapsed),
            undone: self.undone,
        };
        let plan = self.plan.map(|plan| *plan);
        Found {
            planned: plan.as_ref().map_or_else(Summary::default, |it| it.summary),
            plan,
            applied: Some(applied),
        }
    }

    /// There were no changes.
    pub fn unchanged(plan: &Plan) -> Self {
        Self::new(ShardEnd::Unchanged, Some(Done::default()), success(plan))
    }

    /// The apply couldn't start.
    pub fn failed() -> Self {
        Self::new(ShardEnd::Failed, Some(Done::default()), exit::ERROR)
    }

    /// The apply failed without a result.
    pub fn broken(code: u8) -> Self {
        Self::new(ShardEnd::Failed, None, code)
    }

    /// The shard wasn't applied, because of a signal or another shard's failure.
    pub fn not_tried(signal: Option<u8>) -> Self {
        let code = signal.unwrap_or(exit::ERROR);
        Self::new(ShardEnd::NotTried, Some(Done::default()), code)
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
    let at_end = |outcome: ShardOutcome| ShardOutcome {
        span: Some(span),
        ..outcome
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
        return at_end(ShardOutcome::new(ShardEnd::Failed, Some(done), exit::ERROR));
    }
    if is_complete {
        return at_end(ShardOutcome::new(ShardEnd::Done, Some(done), success(plan)));
    }
    if outcome.waits() {
        tell(session, waiting(session, plan, outcome));
        return ShardOutcome {
            undone: undone(session, plan, outcome),
            ..at_end(ShardOutcome::new(
                ShardEnd::Waiting,
                Some(done),
                exit::WAITING,
            ))
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
        undone: undone(session, plan, outcome),
        ..at_end(ShardOutcome::new(end, Some(done), code))
    }
}

/// The changes that weren't done, for reports.
fn undone(session: &Session<'_>, plan: &Plan, outcome: &Outcome) -> Vec<Undone> {
    let undone = outcome.undone.iter();
    undone
        .map(|(task, end)| {
            let change = &plan.changes[*task];
            let error = match end {
                TaskEnd::Failed(error) | TaskEnd::Unfinished(error) => Some(error.clone()),
                TaskEnd::Unsettled(error) => {
                    Some(format!("whether it happened isn't known: {error}"))
                }
                TaskEnd::NotTried | TaskEnd::Done => None,
            };
            Undone {
                address: session.name(&change.address),
                action: action_name(change.action),
                error,
            }
        })
        .collect()
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
