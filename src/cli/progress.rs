//! What is shown while something happens.
//!
//! In: counts and the engine's progress. Out: bars on a terminal, plain lines elsewhere, JSON
//! events with `--json`; all but the events on standard error. May not: hold anything up.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Globals;
use super::session;
use crate::apply::engine::{Progress, action_name};
use crate::clock::Clock;
use crate::plan::change::{Action, Plan};
use crate::report::events;

/// How many instances were listed so far.
pub struct Listing {
    bar: ProgressBar,
}

impl Listing {
    /// Shows itself on a terminal only: elsewhere it would be noise.
    pub fn new(globals: &Globals, cloud: Option<&str>) -> Self {
        let shown = std::io::stderr().is_terminal() && !globals.quiet && !globals.json;
        let Some(cloud) = cloud.filter(|_| shown) else {
            return Self { bar: ProgressBar::hidden() };
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
}

/// Beyond as many changes single lines help nobody; a bar and failures remain.
const LINES_UP_TO: usize = 200;

impl<'a> ApplyProgress<'a> {
    /// Progress of one plan.
    pub fn new(globals: &Globals, plan: &'a Plan, clock: &'a dyn Clock) -> Self {
        let total = plan.changes.len() as u64;
        let bar = if std::io::stderr().is_terminal() && !globals.json && !globals.quiet {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {elapsed} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        } else {
            ProgressBar::hidden()
        };
        Self { plan, clock, json: globals.json, quiet: globals.quiet, verbose: globals.verbose, bar }
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
            Progress::Started { task } => {
                let change = &self.plan.changes[*task];
                if lines {
                    self.line(&format!("{}: {}...", change.address, doing(change.action)));
                }
            }
            Progress::Completed { task, provider_id, elapsed } => {
                let change = &self.plan.changes[*task];
                self.bar.inc(1);
                if lines {
                    let id = provider_id
                        .as_deref()
                        .map(|id| format!(" [id={id}]"))
                        .unwrap_or_default();
                    self.line(&format!(
                        "{}: {} complete after {}s{id}",
                        change.address,
                        noun(change.action),
                        elapsed.as_secs()
                    ));
                }
            }
            Progress::Retrying { task, error, wait } => {
                if lines {
                    let address = &self.plan.changes[*task].address;
                    self.line(&format!(
                        "{address}: trying again in {:.1}s: {error}",
                        wait.as_secs_f32()
                    ));
                }
            }
            Progress::Failed { task, error } => {
                let change = &self.plan.changes[*task];
                self.line(&format!("{}: {} failed: {error}", change.address, noun(change.action)));
            }
            Progress::ExportFailed { address, error } => {
                self.line(&format!("{address}: its files can't be exported: {error}"));
            }
        }
    }

    fn json_event(&self, progress: &Progress) -> Option<serde_json::Value> {
        let now = self.clock.now();
        let change = |task: &usize| &self.plan.changes[*task];
        Some(match progress {
            Progress::Started { task } => events::apply_start(now, self.plan, change(task)),
            Progress::Completed { task, provider_id, elapsed } => events::apply_complete(
                now,
                self.plan,
                change(task),
                provider_id.as_deref(),
                *elapsed,
            ),
            Progress::Failed { task, error } => {
                events::apply_errored(now, self.plan, change(task), error)
            }
            Progress::Retrying { task, error, .. } => {
                events::apply_progress(now, self.plan, change(task), error)
            }
            Progress::ExportFailed { .. } => return None,
        })
    }

    /// Clears the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn doing(action: Action) -> &'static str {
    match action {
        Action::Create => "Creating",
        Action::Update => "Modifying",
        Action::CreateThenDelete | Action::DeleteThenCreate => "Replacing",
        Action::Delete => "Destroying",
        Action::Adopt => "Adopting",
        Action::Forget => "Forgetting",
        Action::NoOp => "Leaving",
    }
}

fn noun(action: Action) -> &'static str {
    match action {
        Action::Create => "Creation",
        Action::Update => "Modifications",
        Action::CreateThenDelete | Action::DeleteThenCreate => "Replacement",
        Action::Delete => "Destruction",
        Action::Adopt => "Adoption",
        Action::Forget | Action::NoOp => action_name(action),
    }
}
