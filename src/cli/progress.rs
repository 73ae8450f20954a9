//! What is shown while something happens.
//!
//! In: counts and the engine's progress. Out: bars on a terminal, plain lines elsewhere, JSON
//! events with `--json`; all but the events on standard error. May not: hold anything up.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Globals;
use super::session;
use crate::apply::engine::{Progress, Step};
use crate::clock::Clock;
use crate::plan::change::{Action, Plan};
use crate::report::events::{Events, Operation};

/// Whether bars help: on a terminal that nobody records (`CI`).
fn is_interactive(globals: &Globals) -> bool {
    std::io::stderr().is_terminal()
        && std::env::var_os("CI").is_none_or(|value| value.is_empty())
        && !globals.quiet
        && !globals.json
}

/// How many instances were listed so far.
pub struct Listing {
    bar: ProgressBar,
}

impl Listing {
    /// Shows itself on a terminal only: elsewhere it would be noise.
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
        self.bar.set_message(format!("{count} instances listed"));
    }

    /// Clears the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// An apply as it goes.
pub struct ApplyProgress<'a> {
    plan: &'a Plan,
    clock: &'a dyn Clock,
    json: bool,
    quiet: bool,
    verbose: bool,
    bar: ProgressBar,
    events: Events,
}

/// Beyond as many changes single lines help nobody; a bar and failures remain.
const LINES_UP_TO: usize = 200;

impl<'a> ApplyProgress<'a> {
    /// Progress of one plan.
    pub fn new(globals: &Globals, plan: &'a Plan, clock: &'a dyn Clock) -> Self {
        let total = plan.changes.len() as u64;
        let bar = if is_interactive(globals) {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {elapsed} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        } else {
            ProgressBar::hidden()
        };
        Self {
            plan,
            clock,
            json: globals.json,
            quiet: globals.quiet,
            verbose: globals.verbose,
            bar,
            events: Events::of(plan),
        }
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| session::error(&format!("{text}\n")));
    }

    /// Prints an event with `--json`.
    pub fn event(&self, event: &serde_json::Value) {
        session::print(&format!("{event}\n"));
    }

    /// Shows one step.
    pub fn tell(&mut self, progress: &Progress) {
        if self.json {
            if let Some(event) = self.json_event(progress) {
                self.event(&event);
            }
            return;
        }
        let lines = self.verbose || !self.quiet && self.plan.changes.len() <= LINES_UP_TO;
        match progress {
            Progress::Started { task, step } if lines => {
                let change = &self.plan.changes[*task];
                self.line(&format!(
                    "{}: {}...",
                    change.address,
                    doing(*step, change.action)
                ));
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
                self.line(&format!(
                    "{}: {} complete after {}s{id}",
                    change.address,
                    noun(*step, change.action),
                    elapsed.as_secs()
                ));
            }
            Progress::Retrying { task, error, wait } if lines => {
                let address = &self.plan.changes[*task].address;
                let wait = wait.as_secs_f32();
                self.line(&format!("{address}: trying again in {wait:.1}s: {error}"));
            }
            Progress::Started { .. } | Progress::Completed { .. } | Progress::Retrying { .. } => {}
            Progress::Failed { task, step, error } => {
                let change = &self.plan.changes[*task];
                let noun = noun(*step, change.action);
                self.line(&format!("{}: {noun} failed: {error}", change.address));
            }
            Progress::Ended { .. } => self.bar.inc(1),
            Progress::ExportFailed { address, error } => {
                self.line(&format!("{address}: its files can't be exported: {error}"));
            }
        }
    }

    fn json_event(&self, progress: &Progress) -> Option<serde_json::Value> {
        let now = self.clock.now();
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
            Progress::Retrying { task, .. } => {
                let change = &self.plan.changes[*task];
                let operation = operation(Step::Create, change.action);
                events.apply_progress(now, &change.address, operation, Duration::ZERO)
            }
            Progress::Ended { .. } | Progress::ExportFailed { .. } => return None,
        })
    }

    /// Clears the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn operation(step: Step, action: Action) -> Operation {
    match (step, action) {
        (Step::Record, Action::Forget) => Operation::Forget,
        (Step::Record, _) => Operation::Adopt,
        (_, Action::Update) => Operation::Update,
        (Step::Delete, _) => Operation::Delete,
        (Step::Create | Step::Update, _) => Operation::Create,
    }
}

fn doing(step: Step, action: Action) -> &'static str {
    match operation(step, action) {
        Operation::Create => "Creating",
        Operation::Update => "Modifying",
        Operation::Delete => "Destroying",
        Operation::Adopt => "Adopting",
        Operation::Forget => "Forgetting",
    }
}

fn noun(step: Step, action: Action) -> &'static str {
    match operation(step, action) {
        Operation::Create => "Creation",
        Operation::Update => "Modifications",
        Operation::Delete => "Destruction",
        Operation::Adopt => "Adoption",
        Operation::Forget => "Removal",
    }
}
