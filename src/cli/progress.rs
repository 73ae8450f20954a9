//! Shows progress.
//!
//! In: counts and the engine's progress. Out: bars on a terminal, plain lines elsewhere, JSON
//! events with `--json`; everything but events goes to standard error. Must not: block.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::Globals;
use super::console;
use super::outcome;
use super::session::Session;
use crate::address::Address;
use crate::apply::engine::{GroupStage, GroupStatus, NextPause, Progress, Starts, Step};
use crate::apply::steps::Start;
use crate::config::duration::shown;
use crate::config::model::CanaryPause;
use crate::diagnostic::{Diagnostic, counted};
use crate::plan::change::{Action, Change, Plan};
use crate::redact;
use crate::report::events::{Events, Operation};
use crate::report::json;

/// Whether to show bars: on a terminal, but not in CI.
fn is_interactive(globals: &Globals) -> bool {
    std::io::stderr().is_terminal()
        && std::env::var_os("CI").is_none_or(|value| value.is_empty())
        && !globals.quiet
        && !globals.json
}

/// Shows the number of instances listed so far.
pub struct Listing {
    bar: ProgressBar,
}

impl Listing {
    /// Visible on a terminal only.
    pub fn new(globals: &Globals, cloud: Option<&str>) -> Self {
        let shown = is_interactive(globals);
        let Some(cloud) = cloud.filter(|_| shown) else {
            return Self {
                bar: ProgressBar::hidden(),
            };
        };
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::default_spinner());
        bar.set_message(format!("Asking {cloud} what there is"));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }

    /// Shows a count.
    pub fn set(&self, count: usize) {
        self.bar
            .set_message(format!("{} listed", counted(count, "instance")));
    }

    /// Clears the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The display of a run: lines above, and a bar for each shard below.
pub struct Board {
    bars: Option<MultiProgress>,
    lines: bool,
    quiet: bool,
}

/// Up to this many changes, each gets its own lines; beyond, only bars, groups and failures are
/// shown.
const LINES_UP_TO: usize = 200;

impl Board {
    /// A board for this many changes.
    pub fn new(globals: &Globals, changes: usize) -> Self {
        Self {
            bars: is_interactive(globals).then(MultiProgress::new),
            lines: globals.verbose || !globals.quiet && changes <= LINES_UP_TO,
            quiet: globals.quiet,
        }
    }

    /// Prints something above the bars.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bars {
            Some(bars) => bars.suspend(print),
            None => print(),
        }
    }

    fn bar(&self, session: &Session<'_>, changes: usize) -> ProgressBar {
        let Some(bars) = &self.bars else {
            return ProgressBar::hidden();
        };
        let bar = bars.add(ProgressBar::new(changes as u64));
        let style = ProgressStyle::with_template("{prefix}{bar:40} {pos}/{len} {elapsed} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        if let Some(label) = &session.label {
            bar.set_prefix(format!("{label:<16} "));
        }
        bar
    }
}

/// The progress of one shard's apply.
pub struct ApplyProgress<'a> {
    session: &'a Session<'a>,
    board: &'a Board,
    plan: Cow<'a, Plan>,
    bar: ProgressBar,
    events: Events,
    /// Subnets for which a capacity note was shown.
    elsewhere: BTreeSet<Arc<str>>,
    /// How many changes of each group have ended.
    done: BTreeMap<String, usize>,
    /// On a terminal, the line of each group that rolls.
    groups: BTreeMap<usize, ProgressBar>,
}

impl<'a> ApplyProgress<'a> {
    /// Progress of one plan.
    pub fn new(
        session: &'a Session<'a>,
        board: &'a Board,
        plan: &'a Plan,
        starts: &Starts,
    ) -> Self {
        let mut done: BTreeMap<String, usize> = BTreeMap::new();
        for (change, start) in plan.changes.iter().zip(&starts.tasks) {
            if matches!(start, Start::Done { .. }) {
                *done.entry(change.address.group.to_string()).or_default() += 1;
            }
        }
        Self {
            session,
            board,
            plan: Cow::Borrowed(plan),
            bar: board.bar(session, plan.changes.len()),
            events: Events::of(plan).in_shard(session.label.as_deref()),
            elsewhere: BTreeSet::new(),
            done,
            groups: BTreeMap::new(),
        }
    }

    /// Prints a line about an instance.
    fn line(&self, address: &Address, text: &str) {
        let address = self.session.name(address);
        let line = format!("{address}: {text}\n");
        self.board.aside(|| console::error(&line));
    }

    /// Shows the steps of the way back from now on.
    pub fn go_back(&mut self, way: &Plan) {
        if matches!(self.plan, Cow::Borrowed(_)) {
            self.plan = Cow::Owned(way.clone());
            self.done.clear();
            self.clear_groups();
            for (index, group) in way.groups.iter().enumerate() {
                if self.session.globals.json {
                    let now = self.session.clock.now();
                    let (done, total) = self.counts(index);
                    let name = &group.name;
                    let stage = "rolling-back";
                    let event = self
                        .events
                        .rollout_progress(now, name, stage, done, total, "");
                    self.session.event(event);
                    continue;
                }
                let name = self.session.name(&group.name);
                let line = format!("{name}: rolling back\n");
                self.board.aside(|| console::error(&line));
            }
        }
    }

    /// Shows one step.
    pub fn tell(&mut self, progress: &Progress) {
        if let Progress::Unused { load_balancer } = progress {
            let warning = Diagnostic::warning(format!(
                "`{load_balancer}` has no listener; nstance doesn't wait for its verdict"
            ));
            return self.board.aside(|| outcome::tell(self.session, warning));
        }
        if self.session.globals.json {
            if let Some(event) = self.json_event(progress) {
                self.session.event(event);
            }
            return;
        }
        let lines = self.board.lines;
        match progress {
            Progress::Started { task, step } if lines => {
                let change = &self.plan.changes[*task];
                let doing = doing(*step, change);
                self.line(&change.address, &format!("{doing}..."));
            }
            Progress::Completed {
                task,
                step,
                provider_id,
                elapsed,
            } if lines => {
                let change = &self.plan.changes[*task];
                let id = provider_id
                    .as_deref()
                    .map(|id| format!(" [id={id}]"))
                    .unwrap_or_default();
                let noun = noun(*step, change);
                let text = format!("{noun} complete after {}s{id}", elapsed.as_secs());
                self.line(&change.address, &text);
            }
            Progress::Retrying { task, error, wait } if lines => {
                let address = &self.plan.changes[*task].address;
                let wait = wait.as_secs_f32();
                self.line(address, &format!("trying again in {wait:.1}s: {error}"));
            }
            Progress::Still {
                task,
                step,
                elapsed,
            } if lines => {
                let change = &self.plan.changes[*task];
                let doing = doing(*step, change).to_lowercase();
                let text = format!("Still {doing}... [{}s elapsed]", elapsed.as_secs());
                self.line(&change.address, &text);
            }
            Progress::Entered { task, step } if lines => {
                let address = &self.plan.changes[*task].address;
                let doing = match step {
                    Step::Register => "Registering with its load balancers",
                    Step::Deregister => "Deregistering from its load balancers",
                    Step::Drain => "Running the drain command",
                    _ => return,
                };
                self.line(address, &format!("{doing}..."));
            }
            Progress::Waits { task, why } if lines => {
                let address = &self.plan.changes[*task].address;
                self.line(address, &format!("Waiting: {why}"));
            }
            Progress::Group { group, stage, .. } => self.group_line(*group, *stage),
            Progress::Rolls { group, status } => self.status_line(*group, status),
            // Told above.
            Progress::Unused { .. }
            | Progress::Available { .. }
            | Progress::Entered { .. }
            | Progress::Waits { .. }
            | Progress::Started { .. }
            | Progress::Still { .. }
            | Progress::Completed { .. }
            | Progress::Retrying { .. } => {}
            Progress::Elsewhere {
                task,
                error,
                subnet,
            } => {
                // Beyond the line limit, one line per subnet suffices.
                if lines || self.elsewhere.insert(Arc::clone(subnet)) {
                    let address = &self.plan.changes[*task].address;
                    self.line(address, &format!("trying in subnet {subnet}: {error}"));
                }
            }
            Progress::Failed { task, step, error } => {
                let change = &self.plan.changes[*task];
                let noun = noun(*step, change);
                self.line(&change.address, &format!("{noun} failed: {error}"));
            }
            Progress::Ended { task } => {
                self.bar.inc(1);
                self.note_end(*task);
            }
            Progress::Unrecorded { task, provider_id } => {
                let change = &self.plan.changes[*task];
                let text =
                    format!("made as {provider_id}, and not recorded: the next apply records it");
                self.line(&change.address, &text);
            }
            Progress::ExportFailed { address, error } => {
                self.line(address, &format!("its files can't be exported: {error}"));
            }
        }
    }

    /// Counts an ended change of a group that takes turns.
    fn note_end(&mut self, task: usize) {
        let group = self.plan.changes[task].address.group.as_str();
        *self.done.entry(group.to_owned()).or_default() += 1;
    }

    /// How many changes of a group have ended, and how many there are.
    fn counts(&self, group: usize) -> (usize, usize) {
        let name = &self.plan.groups[group].name;
        let changes = self.plan.changes.iter();
        let total = changes.filter(|change| change.address.group.as_str() == name);
        (
            self.done.get(name).copied().unwrap_or_default(),
            total.count(),
        )
    }

    /// Prints a line about a group's rollout.
    fn group_line(&mut self, group: usize, stage: GroupStage) {
        // The next status brings it back.
        if let Some(bar) = self.groups.remove(&group) {
            bar.finish_and_clear();
        }
        let (done, total) = self.counts(group);
        let so_far = format!("{done} of {}", counted(total, "change"));
        let text = match stage {
            GroupStage::Done | GroupStage::Stalled => return,
            GroupStage::Rolling => format!("rollout continues, {so_far} done"),
            GroupStage::CanaryPause => {
                let rollout = self.plan.groups[group].rollout.as_ref();
                match rollout.and_then(|rollout| rollout.canary_pause) {
                    Some(CanaryPause::For(pause)) => {
                        format!("canaries are done, pausing for {}", shown(pause))
                    }
                    _ => "canaries are done, paused until `nstance rollout promote`".to_owned(),
                }
            }
            GroupStage::Promoted => format!("promoted, {so_far} done"),
            GroupStage::Paused => format!("paused by request, {so_far} done"),
            // The instance's own line says why.
            GroupStage::Failed => format!("rollout stopped, {so_far} done"),
            GroupStage::Aborted => format!("rollout aborted by request, {so_far} done"),
        };
        let name = self.session.name(&self.plan.groups[group].name);
        self.board
            .aside(|| console::error(&format!("{name}: {text}\n")));
    }

    /// Shows a group's status: in its line on a terminal, else in a new line.
    fn status_line(&mut self, group: usize, status: &GroupStatus) {
        if self.board.quiet {
            return;
        }
        let (done, total) = self.counts(group);
        let text = status_text(status, done, total);
        let name = self.session.name(&self.plan.groups[group].name);
        let line = format!("{name}: {text}");
        let Some(bars) = &self.board.bars else {
            return console::error(&format!("{line}\n"));
        };
        let bar = self.groups.entry(group).or_insert_with(|| {
            let bar = bars.add(ProgressBar::new_spinner());
            let style = ProgressStyle::with_template("{msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        bar.set_message(redact::text(&line).into_owned());
    }

    fn json_event(&mut self, progress: &Progress) -> Option<serde_json::Value> {
        let now = self.session.clock.now();
        let events = &self.events;
        Some(match progress {
            Progress::Started { task, step } => {
                let change = &self.plan.changes[*task];
                let id = change.before.as_deref().filter(|_| *step != Step::Create);
                let id = id.and_then(|side| side.provider_id.as_deref());
                events.apply_start(now, &change.address, operation(*step, change.action), id)
            }
            Progress::Completed {
                task,
                step,
                provider_id,
                elapsed,
            } => {
                let change = &self.plan.changes[*task];
                let operation = operation(*step, change.action);
                let id = provider_id.as_deref();
                events.apply_complete(now, &change.address, operation, id, *elapsed)
            }
            Progress::Failed { task, step, error } => {
                let change = &self.plan.changes[*task];
                let operation = operation(*step, change.action);
                let errored = events.apply_errored(now, &change.address, operation, Duration::ZERO);
                let mut errored = errored;
                errored["error"] = error.as_str().into();
                errored
            }
            Progress::Still {
                task,
                step,
                elapsed,
            } => {
                let change = &self.plan.changes[*task];
                let operation = operation(*step, change.action);
                events.apply_progress(now, &change.address, operation, *elapsed)
            }
            Progress::Retrying { task, .. } => {
                let change = &self.plan.changes[*task];
                let operation = operation(Step::Create, change.action);
                events.apply_progress(now, &change.address, operation, Duration::ZERO)
            }
            Progress::Elsewhere {
                task,
                error,
                subnet,
            } => {
                let change = &self.plan.changes[*task];
                let operation = operation(Step::Create, change.action);
                let mut event =
                    events.apply_progress(now, &change.address, operation, Duration::ZERO);
                event["error"] = error.as_str().into();
                event["subnet"] = (&**subnet).into();
                event
            }
            Progress::Entered { task, step } => {
                let change = &self.plan.changes[*task];
                let operation = operation(*step, change.action);
                events.rollout_step(now, &change.address, operation, step.as_str(), "")
            }
            Progress::Waits { task, why } => {
                let change = &self.plan.changes[*task];
                let operation = operation(Step::Check, change.action);
                events.rollout_step(now, &change.address, operation, "checking", why)
            }
            Progress::Available { task } => {
                let change = &self.plan.changes[*task];
                let operation = operation(Step::Check, change.action);
                events.rollout_step(now, &change.address, operation, "available", "")
            }
            Progress::Rolls { group, status } => {
                let name = &self.plan.groups[*group].name;
                let (done, total) = self.counts(*group);
                let what = status.wait.as_ref().map_or("", |wait| &wait.what);
                let stage = status.stage.as_str();
                let mut event = events.rollout_progress(now, name, stage, done, total, what);
                let rollout = &mut event["rollout"];
                if let Some(healthy) = status.healthy {
                    rollout["healthy"] = healthy.into();
                }
                if let Some(wait) = &status.wait {
                    rollout["waits_since"] = wait.since.to_string().into();
                }
                if let Some(NextPause { canaries, pause }) = status.next_pause {
                    let pause = json::canary_pause(pause);
                    rollout["next_pause"] =
                        serde_json::json!({"canaries": canaries, "canary_pause": pause});
                }
                event
            }
            Progress::Group {
                group,
                stage,
                detail,
            } => {
                let name = &self.plan.groups[*group].name;
                let (done, total) = self.counts(*group);
                events.rollout_progress(now, name, stage.as_str(), done, total, detail)
            }
            Progress::Unrecorded { task, provider_id } => {
                let change = &self.plan.changes[*task];
                let operation = operation(Step::Create, change.action);
                let why = format!("made as {provider_id}, and not recorded");
                let mut event =
                    events.apply_errored(now, &change.address, operation, Duration::ZERO);
                event["error"] = why.into();
                event
            }
            Progress::Ended { task } => {
                self.note_end(*task);
                return None;
            }
            Progress::Unused { .. } | Progress::ExportFailed { .. } => return None,
        })
    }

    /// Clears the bar and the lines of groups.
    pub fn finish(&mut self) {
        self.bar.finish_and_clear();
        self.clear_groups();
    }

    fn clear_groups(&mut self) {
        for bar in std::mem::take(&mut self.groups).into_values() {
            bar.finish_and_clear();
        }
    }
}

/// `3 of 40 changes done, 39 healthy, waiting since …`
fn status_text(status: &GroupStatus, done: usize, total: usize) -> String {
    let mut text = format!("{done} of {} done", counted(total, "change"));
    if let Some(healthy) = status.healthy {
        text.push_str(&format!(", {healthy} healthy"));
    }
    if status.stage == GroupStage::Paused {
        text.push_str(", paused by request");
    }
    if let Some(wait) = &status.wait {
        text.push_str(&format!(", waiting since {} for {}", wait.since, wait.what));
    }
    if let Some(NextPause { canaries, pause }) = status.next_pause {
        let canaries = match canaries {
            1 => "1 canary".to_owned(),
            several => format!("{several} canaries"),
        };
        text.push_str(&match pause {
            CanaryPause::For(pause) => format!(", pauses for {} after {canaries}", shown(pause)),
            CanaryPause::Manual => format!(", pauses after {canaries} until promoted"),
        });
    }
    text
}

fn operation(step: Step, action: Action) -> Operation {
    match (step, action) {
        (Step::Record, Action::Forget) => Operation::Forget,
        (Step::Record, _) => Operation::Adopt,
        (_, Action::Update) => Operation::Update,
        (_, Action::Delete)
        | (Step::Gate | Step::Deregister | Step::Connections | Step::Drain | Step::Delete, _) => {
            Operation::Delete
        }
        (
            Step::Nonce
            | Step::Create
            | Step::Update
            | Step::Check
            | Step::Register
            | Step::Verdict,
            _,
        ) => Operation::Create,
    }
}

fn doing(step: Step, change: &Change) -> &'static str {
    match operation(step, change.action) {
        // It is recorded already.
        Operation::Adopt if change.before.is_some() => "Refreshing",
        Operation::Adopt => "Adopting",
        operation => operation.under_way(),
    }
}

fn noun(step: Step, change: &Change) -> &'static str {
    match operation(step, change.action) {
        Operation::Adopt if change.before.is_some() => "Refresh",
        Operation::Adopt => "Adoption",
        operation => operation.noun(),
    }
}
