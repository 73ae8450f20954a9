//! Shows progress.
//!
//! In: counts and the engine's progress. Out: bars on a terminal, plain lines elsewhere, JSON
//! events with `--json`; everything but events goes to standard error. Must not: block.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::Globals;
use super::console;
use super::outcome;
use super::session::Session;
use super::tally::Tally;
use crate::address::Address;
use crate::apply::engine::{GroupStage, GroupStatus, NextPause, Progress, Starts, Step};
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

/// The width of a terminal that doesn't tell it.
const USUAL_WIDTH: usize = 80;

/// What the terminal shows itself when somebody presses Ctrl-C, at the end of the last line.
const ECHO: &str = "^C";

/// The width of lines on the terminal, in columns. A line that is full would wrap with the echo.
fn line_width() -> usize {
    terminal_width().saturating_sub(ECHO.len())
}

/// The width of the terminal, in columns.
fn terminal_width() -> usize {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stderr())
        && size.ws_col > 0
    {
        return size.ws_col.into();
    }
    USUAL_WIDTH
}

/// Bars at the bottom of the terminal. While they exist, everything is printed above them.
struct Bars(MultiProgress);

impl Bars {
    fn new() -> Self {
        let bars = MultiProgress::new();
        console::show_bars(Some(bars.clone()));
        Self(bars)
    }

    /// Adds lines of text.
    fn add(&self) -> ProgressBar {
        let bar = self.0.add(ProgressBar::new_spinner());
        let style = ProgressStyle::with_template("{msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        console::show_bars(None);
    }
}

/// Shows the number of instances listed so far.
pub struct Listing {
    bar: ProgressBar,
    _bars: Option<Bars>,
}

impl Listing {
    /// Visible on a terminal only.
    pub fn new(globals: &Globals, cloud: Option<&str>) -> Self {
        let shown = is_interactive(globals);
        let Some(cloud) = cloud.filter(|_| shown) else {
            return Self {
                bar: ProgressBar::hidden(),
                _bars: None,
            };
        };
        let bars = Bars::new();
        let bar = bars.add();
        bar.set_style(ProgressStyle::default_spinner());
        bar.set_message(format!("Asking {cloud} what there is"));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self {
            bar,
            _bars: Some(bars),
        }
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

/// Where the progress of a run is shown: lines above, and on a terminal the lines of each shard
/// below.
pub struct Board {
    bars: Option<Bars>,
    /// Each instance gets its own lines.
    lines: bool,
    /// Groups get lines at a steady pace.
    is_paced: bool,
    quiet: bool,
    /// The number of shards that are applied now.
    shards: AtomicUsize,
}

/// Up to this many changes, each gets its own lines; beyond, only groups and failures are shown.
const LINES_UP_TO: usize = 200;

/// The maximum number of groups on a terminal.
const GROUPS_SHOWN: usize = 8;

/// How often the lines on a terminal change.
const REDRAW: Duration = Duration::from_millis(100);

/// From this time on, an apply ends with a summary of the time it took.
const SUMMARY_FROM: Duration = Duration::from_secs(10);

impl Board {
    /// A board for this many changes.
    pub fn new(globals: &Globals, changes: usize) -> Self {
        let lines = globals.verbose || !globals.quiet && changes <= LINES_UP_TO;
        Self {
            bars: is_interactive(globals).then(Bars::new),
            lines,
            is_paced: !lines && !globals.quiet && !globals.json,
            quiet: globals.quiet,
            shards: AtomicUsize::new(0),
        }
    }

    /// The maximum number of groups of one shard on a terminal.
    fn groups_shown(&self) -> usize {
        (GROUPS_SHOWN / self.shards.load(Ordering::Relaxed).max(1)).max(1)
    }
}

/// The progress of one shard's apply.
pub struct ApplyProgress<'a> {
    session: &'a Session<'a>,
    board: &'a Board,
    plan: Cow<'a, Plan>,
    tally: Tally,
    /// On a terminal, its lines, and when they last changed.
    bar: Option<ProgressBar>,
    drawn_at: Option<Instant>,
    events: Events,
    /// Subnets for which a capacity note was shown.
    elsewhere: BTreeSet<Arc<str>>,
}

impl<'a> ApplyProgress<'a> {
    /// Progress of one plan.
    pub fn new(
        session: &'a Session<'a>,
        board: &'a Board,
        plan: &'a Plan,
        starts: &Starts,
    ) -> Self {
        board.shards.fetch_add(1, Ordering::Relaxed);
        let name = |group: &str| session.name(group);
        let mut tally = Tally::new(plan, starts, session.clock.now(), name);
        tally.limit_creations(session.config().shard.create_rate_limit);
        Self {
            session,
            board,
            plan: Cow::Borrowed(plan),
            tally,
            bar: board.bars.as_ref().map(Bars::add),
            drawn_at: None,
            events: Events::of(plan).in_shard(session.label.as_deref()),
            elsewhere: BTreeSet::new(),
        }
    }

    /// Prints a line about an instance.
    fn line(&self, address: &Address, text: &str) {
        let address = self.session.name(address);
        console::error(&format!("{address}: {text}\n"));
    }

    /// Shows the steps of the way back from now on.
    pub fn go_back(&mut self, way: &Plan) {
        if matches!(self.plan, Cow::Borrowed(_)) {
            self.plan = Cow::Owned(way.clone());
            let session = self.session;
            let name = |group: &str| session.name(group);
            self.tally.go_back(way, session.clock.now(), name);
            for (index, group) in way.groups.iter().enumerate() {
                if self.session.globals.json {
                    let now = self.session.clock.now();
                    let (done, total) = self.tally.counts(index);
                    let name = &group.name;
                    let stage = "rolling-back";
                    let event = self
                        .events
                        .rollout_progress(now, name, stage, done, total, "");
                    self.session.event(event);
                    continue;
                }
                let name = self.session.name(&group.name);
                console::error(&format!("{name}: rolling back\n"));
            }
        }
    }

    /// Shows one step.
    pub fn tell(&mut self, progress: &Progress) {
        let now = self.session.clock.now();
        self.tally.count(&self.plan, progress, now);
        if let Progress::Unused { load_balancer } = progress {
            let warning = Diagnostic::warning(format!(
                "`{load_balancer}` has no listener; nstance doesn't wait for its verdict"
            ));
            return outcome::tell(self.session, warning);
        }
        if self.session.globals.json {
            if let Some(event) = self.json_event(progress) {
                self.session.event(event);
            }
            return;
        }
        self.print(progress);
        if self.board.is_paced {
            for line in self.tally.due(self.bar.is_some(), now) {
                console::error(&format!("{line}\n"));
            }
        }
        self.draw();
    }

    /// Shows what changed in the lines on a terminal.
    fn draw(&mut self) {
        let Some(bar) = &self.bar else { return };
        if self.drawn_at.is_some_and(|at| at.elapsed() < REDRAW) {
            return;
        }
        self.drawn_at = Some(Instant::now());
        let name = self.session.label.as_deref().unwrap_or("all groups");
        let most = self.board.groups_shown();
        let now = self.session.clock.now();
        let lines = self.tally.bars(name, line_width(), most, now);
        bar.set_message(redact::text(&lines.join("\n")).into_owned());
    }

    /// Prints the lines of one step.
    fn print(&mut self, progress: &Progress) {
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
            | Progress::Tick
            | Progress::Ended { .. }
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
                if self.board.is_paced && !self.tally.shows_failure() {
                    return;
                }
                let change = &self.plan.changes[*task];
                let noun = noun(*step, change);
                self.line(&change.address, &format!("{noun} failed: {error}"));
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

    /// Prints a line about a group's rollout.
    fn group_line(&mut self, group: usize, stage: GroupStage) {
        let (done, total) = self.tally.counts(group);
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
        console::error(&format!("{name}: {text}\n"));
    }

    /// Prints a group's status, unless its line on a terminal or its next plain line has it.
    fn status_line(&mut self, group: usize, status: &GroupStatus) {
        if self.board.quiet || self.board.is_paced || self.bar.is_some() {
            return;
        }
        let (done, total) = self.tally.counts(group);
        let text = status_text(status, done, total);
        let name = self.session.name(&self.plan.groups[group].name);
        console::error(&format!("{name}: {text}\n"));
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
                let (done, total) = self.tally.counts(*group);
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
                let (done, total) = self.tally.counts(*group);
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
            Progress::Ended { .. }
            | Progress::Tick
            | Progress::Unused { .. }
            | Progress::ExportFailed { .. } => return None,
        })
    }

    /// Removes the lines on a terminal, and prints the last plain lines.
    pub fn finish(&mut self) {
        self.board.shards.fetch_sub(1, Ordering::Relaxed);
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let lines = self.tally.last(self.session.clock.now());
        if self.board.is_paced {
            for line in lines {
                console::error(&format!("{line}\n"));
            }
        }
    }

    /// Prints how long everything took, if it took long.
    pub fn summarize(&self) {
        let globals = self.session.globals;
        let now = self.session.clock.now();
        // A fixed clock only moves by waiting.
        let is_long = globals.now.is_none() && self.tally.elapsed(now) >= SUMMARY_FROM;
        if !globals.json && (globals.verbose || is_long && !globals.quiet) {
            let label = self.session.label.as_ref();
            let shard = label.map_or_else(String::new, |label| format!("{label}: "));
            console::error(&format!("\n{shard}{}", self.tally.summary(now)));
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

pub(super) fn operation(step: Step, action: Action) -> Operation {
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
