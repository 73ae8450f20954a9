//! How far an apply came.
//!
//! In: counts, failures and events. Out: the section of the page that is written again and again.
//! Must not: know the engine.

use std::collections::{HashMap, VecDeque};

use super::writer::Html;
use crate::clock::Timestamp;
use crate::diagnostic::counted;
use crate::report::text::value::listed;

/// The maximum number of different errors that are shown.
const FAILURES: usize = 50;

/// The maximum number of addresses that are shown for an error.
const ADDRESSES: usize = 5;

/// The maximum number of events that are kept.
const EVENTS: usize = 20;

/// The seconds between two reloads of a page that isn't final.
pub(super) const RELOAD: &str = "5";

/// How an apply stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Changes are under way.
    Running,
    /// A failed rollout goes back.
    RollingBack,
    /// All changes are done.
    Done,
    /// It ended, since a rollout waits.
    Waiting,
    /// It ended with errors.
    Failed,
    /// It was interrupted.
    Interrupted,
}

impl State {
    /// The word on the page.
    fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::RollingBack => "rolling back",
            Self::Done => "done",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether the page will change no more.
    pub fn is_final(self) -> bool {
        match self {
            Self::Running | Self::RollingBack => false,
            Self::Done | Self::Waiting | Self::Failed | Self::Interrupted => true,
        }
    }
}

/// A group that is applied.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// `tenant/group`
    pub name: String,
    /// How many changes it has.
    pub total: usize,
    /// How many of them are done.
    pub done: usize,
    /// How many of them failed.
    pub failed: usize,
    /// Its stage, and what it waits for; empty before it begins.
    pub status: String,
}

/// How far an apply came.
#[derive(Debug, Clone)]
pub struct Live {
    /// How it stands.
    pub state: State,
    /// When it began.
    pub started_at: Timestamp,
    /// When this was written.
    pub written_at: Timestamp,
    /// The groups with changes, in the order of apply.
    pub groups: Vec<Group>,
    /// The errors, each with its address.
    pub failures: Vec<(String, String)>,
    /// The last events, each with its time.
    events: VecDeque<(Timestamp, String)>,
}

impl Live {
    /// An apply that begins.
    pub fn new(now: Timestamp, groups: Vec<Group>) -> Self {
        Self {
            state: State::Running,
            started_at: now,
            written_at: now,
            groups,
            failures: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// Adds an event; drops the oldest one if there are many.
    pub fn event(&mut self, now: Timestamp, text: String) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((now, text));
    }
}

/// Writes the section.
pub(super) fn live(live: &Live, html: &mut Html) {
    html.markup("<section id=live aria-labelledby=live-title class=\"")
        .text(live.state.as_str());
    html.markup("\" data-final=")
        .markup(if live.state.is_final() { "1" } else { "0" });
    html.markup(" data-written=\"")
        .text(&live.written_at.to_string());
    html.markup("\"><h2 id=live-title>Apply: ")
        .text(live.state.as_str())
        .markup("</h2>");
    let (done, failed, total) = live
        .groups
        .iter()
        .fold((0, 0, 0), |(done, failed, total), it| {
            (done + it.done, failed + it.failed, total + it.total)
        });
    html.markup("<p><b>")
        .number(done)
        .text(" of ")
        .text(&counted(total, "change"));
    html.text(" done").markup("</b>");
    if failed > 0 {
        html.markup(", <b class=bad>")
            .number(failed)
            .text(" failed")
            .markup("</b>");
    }
    html.markup(". Started at <time>")
        .text(&live.started_at.to_string());
    html.markup("</time>, as of <time>")
        .text(&live.written_at.to_string());
    html.markup("</time>. <span id=stale class=bad></span></p>");
    if !live.state.is_final() {
        html.markup("<p id=reloading hidden><label><input type=checkbox id=reload checked> ");
        html.text("Reload every ")
            .text(RELOAD)
            .text(" seconds")
            .markup("</label></p>");
    }
    if !live.failures.is_empty() {
        failures(&live.failures, html);
    }
    html.markup(
        "<h3>Groups</h3><table class=g><thead><tr><th scope=col>Group<th scope=col>Progress\
         <th scope=col>Done<th scope=col>Failed<th scope=col>Status<tbody>",
    );
    for group in &live.groups {
        html.markup("<tr><th scope=row><a href=\"#group-")
            .text(&group.name)
            .markup("\">");
        html.text(&group.name)
            .markup("</a><td><progress max=")
            .number(group.total.max(1));
        html.markup(" value=")
            .number(group.done)
            .markup(" aria-label=\"Progress of ");
        html.text(&group.name)
            .markup("\"></progress><td>")
            .number(group.done);
        html.text(" of ").number(group.total);
        html.markup(if group.failed > 0 {
            "<td class=\"fails bad\">"
        } else {
            "<td class=fails>"
        });
        html.number(group.failed).markup("<td>").text(&group.status);
    }
    html.markup("</table>");
    if !live.events.is_empty() {
        html.markup(
            "<details open id=events><summary>Last events</summary><ol class=events reversed>",
        );
        for (time, text) in live.events.iter().rev() {
            html.markup("<li><time>")
                .text(&time.to_string())
                .markup("</time> ");
            html.text(text).markup("</li>");
        }
        html.markup("</ol></details>");
    }
    html.markup("</section>");
}

/// The errors, each once.
fn failures(failures: &[(String, String)], html: &mut Html) {
    let mut errors: Vec<&str> = Vec::new();
    let mut addresses: HashMap<&str, Vec<&str>> = HashMap::new();
    for (address, error) in failures {
        let own = addresses.entry(error).or_insert_with(|| {
            errors.push(error);
            Vec::new()
        });
        own.push(address);
    }
    html.markup("<h3>Failures</h3><ul class=failures>");
    for error in errors.iter().take(FAILURES) {
        html.markup("<li><code>")
            .text(&listed(&addresses[error], ADDRESSES));
        html.markup("</code>: ").text(error).markup("</li>");
    }
    html.markup("</ul>");
    let more = errors.len().saturating_sub(FAILURES);
    if more > 0 {
        html.markup("<p>")
            .text(&counted(more, "more error"))
            .markup("</p>");
    }
}
