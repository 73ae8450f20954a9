//! Counts the progress of an apply by group, and formats it.
//!
//! In: a plan, the engine's progress, the time. Out: lines for a terminal of some width, paced lines
//! for a log, and a summary. Must not: print, or read the clock.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::progress::operation;
use crate::apply::engine::{GroupStage, GroupStatus, NextPause, Progress, Starts, TaskId};
use crate::apply::steps::Start;
use crate::clock::Timestamp;
use crate::config::duration::shown;
use crate::config::model::CanaryPause;
use crate::diagnostic::counted;
use crate::plan::change::Plan;

/// The rate is that of this time.
const WINDOW: Duration = Duration::from_mins(1);
/// The time left is only estimated from a rate of at least this time.
const ESTIMATE_AFTER: Duration = Duration::from_secs(5);
/// How often plain lines are due.
const PACE: Duration = Duration::from_secs(1);
/// The maximum number of plain lines then.
const LINES_AT_ONCE: usize = 4;
/// When a group that moved gets its next plain line, and one that only waits.
const MOVED: Duration = Duration::from_secs(10);
const WAITED: Duration = Duration::from_secs(30);
/// The maximum number of groups in the summary.
const SUMMARY_GROUPS: usize = 10;
/// The maximum number of slow operations in the summary.
const SLOWEST: usize = 5;

/// The progress of one apply.
#[derive(Debug)]
pub struct Tally {
    groups: Vec<Group>,
    tasks: Vec<Task>,
    begun: Timestamp,
    /// The least time between two creations.
    create_interval: Duration,
    whole: Rate,
    /// The groups of a plan that was given up, for the summary.
    past: Vec<Group>,
    slowest: Vec<(Duration, String)>,
    next_lines: Timestamp,
    /// What was left out of plain lines.
    left_out: LeftOut,
    /// Failures that were shown since the last plain lines.
    failures_shown: usize,
}

#[derive(Debug)]
struct Task {
    group: usize,
    slot: u32,
    is_active: bool,
    /// A step is done, so its end means that the change is.
    is_touched: bool,
    has_failed: bool,
}

#[derive(Debug)]
struct Group {
    /// Its name as shown, with the shard's.
    name: String,
    /// `tenant/group`
    id: String,
    is_rollback: bool,
    total: usize,
    ended: usize,
    done: usize,
    failed: usize,
    begun: Option<Timestamp>,
    over: Option<Timestamp>,
    /// When a change last ended.
    latest: Option<Timestamp>,
    /// The number of changes that are under way.
    active: usize,
    rate: Rate,
    wait: Option<Wait>,
    healthy: Option<usize>,
    next_pause: Option<NextPause>,
    /// When and at which count it last got a plain line.
    told: Option<(Timestamp, usize)>,
    is_told_over: bool,
}

/// What a group waits for.
#[derive(Debug)]
struct Wait {
    what: String,
    /// The change that waits, if it isn't the whole group.
    task: Option<TaskId>,
    /// The change is only slow.
    is_slow: bool,
    /// The group pauses.
    is_pause: bool,
    /// When it ends, if that is known.
    until: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct LeftOut {
    started: usize,
    over: usize,
    failed: usize,
}

/// When changes ended.
#[derive(Debug, Default)]
struct Rate(VecDeque<Timestamp>);

impl Rate {
    fn count(&mut self, now: Timestamp) {
        self.0.push_back(now);
        while let Some(first) = self.0.front()
            && now.since(*first) > WINDOW
        {
            self.0.pop_front();
        }
    }

    /// Changes a minute, of a work that began at `begun`.
    fn per_minute(&self, begun: Timestamp, now: Timestamp) -> f64 {
        let recent = self.0.iter().filter(|at| now.since(**at) <= WINDOW);
        // A group that has just begun has no rate yet.
        let time = now.since(begun).clamp(Duration::from_secs(1), WINDOW);
        recent.count() as f64 * 60.0 / time.as_secs_f64()
    }
}

impl Group {
    /// Whether it is under way. After a failure it may have stopped for good.
    fn is_active(&self) -> bool {
        let pauses = self.wait.as_ref().is_some_and(|wait| wait.is_pause);
        let goes_on = self.active > 0 || self.failed == 0 || pauses;
        self.begun.is_some() && self.over.is_none() && goes_on
    }

    fn begin(&mut self, now: Timestamp) {
        self.begun.get_or_insert(now);
    }

    fn duration(&self, now: Timestamp) -> Duration {
        let begun = self.begun.unwrap_or(now);
        self.over.unwrap_or(now).since(begun)
    }

    /// Its rate, if changes ended lately.
    fn rate_text(&self, now: Timestamp) -> Option<String> {
        let begun = self.begun.unwrap_or(now);
        let rate = self.rate.per_minute(begun, now);
        (rate > 0.0).then(|| rate_text(rate))
    }

    /// What it waits for and what is ahead, in the order of interest.
    fn notes(&self, now: Timestamp) -> Vec<String> {
        let mut notes = Vec::new();
        if self.failed > 0 {
            notes.push(format!("{} failed", self.failed));
        }
        notes.extend(self.wait.as_ref().map(|wait| match wait.until {
            Some(until) => format!("{}, {} left", wait.what, seconds(until.since(now))),
            None => wait.what.clone(),
        }));
        if let Some(healthy) = self.healthy {
            notes.push(format!("{healthy} healthy"));
        }
        if let Some(NextPause { canaries, pause }) = self.next_pause {
            let canaries = match canaries {
                1 => "1 canary".to_owned(),
                several => format!("{several} canaries"),
            };
            notes.push(match pause {
                CanaryPause::For(pause) => format!("pauses for {} after {canaries}", shown(pause)),
                CanaryPause::Manual => format!("pauses after {canaries} until promoted"),
            });
        }
        notes
    }

    fn show_status(&mut self, status: &GroupStatus) {
        self.healthy = status.healthy;
        self.next_pause = status.next_pause;
        self.wait = match (&status.wait, status.stage) {
            (_, GroupStage::CanaryPause) => {
                let pause = || Wait::of_pause("canary pause".to_owned(), None);
                // The stage said how long.
                Some(self.wait.take().unwrap_or_else(pause))
            }
            (_, GroupStage::Paused) => Some(Wait::of_pause("paused by request".to_owned(), None)),
            (Some(wait), _) => {
                let slots = format!("{}/", self.id);
                let what = wait.what.replace(&slots, "slot ");
                Some(Wait::of_group(format!("waits for {what}")))
            }
            (None, _) => None,
        };
    }

    fn enter(&mut self, stage: GroupStage, pause: Option<CanaryPause>, now: Timestamp) {
        let group = |what: &str| Some(Wait::of_group(what.to_owned()));
        self.wait = match (stage, pause) {
            (GroupStage::Rolling | GroupStage::Promoted | GroupStage::Done, _) => None,
            (GroupStage::CanaryPause, Some(CanaryPause::For(pause))) => {
                let what = format!("canary pause of {}", shown(pause));
                Some(Wait::of_pause(what, Some(now.after(pause))))
            }
            (GroupStage::CanaryPause, _) => {
                let what = "canary pause until `nstance rollout promote`".to_owned();
                Some(Wait::of_pause(what, None))
            }
            (GroupStage::Paused, _) => Some(Wait::of_pause("paused by request".to_owned(), None)),
            (GroupStage::Stalled, _) => group("waited too long"),
            (GroupStage::Failed, _) => group("stopped after a failure"),
            (GroupStage::Aborted, _) => group("aborted by request"),
        };
    }
}

impl Wait {
    fn of_pause(what: String, until: Option<Timestamp>) -> Self {
        Self {
            is_pause: true,
            until,
            ..Self::of_group(what)
        }
    }

    fn of_group(what: String) -> Self {
        Self {
            what,
            task: None,
            is_slow: false,
            is_pause: false,
            until: None,
        }
    }

    fn of_task(task: TaskId, what: String) -> Self {
        Self {
            task: Some(task),
            ..Self::of_group(what)
        }
    }
}

impl Tally {
    /// Nothing is done yet, except what an earlier apply did. `name` is how a group is shown.
    pub fn new(
        plan: &Plan,
        starts: &Starts,
        now: Timestamp,
        name: impl Fn(&str) -> String,
    ) -> Self {
        let mut tally = Self {
            groups: Vec::new(),
            tasks: Vec::new(),
            begun: now,
            create_interval: Duration::ZERO,
            whole: Rate::default(),
            past: Vec::new(),
            slowest: Vec::new(),
            next_lines: now,
            left_out: LeftOut::default(),
            failures_shown: 0,
        };
        tally.take(plan, starts, name);
        tally
    }

    /// Sets the least time between two creations, which the lines name.
    pub fn limit_creations(&mut self, interval: Duration) {
        self.create_interval = interval;
    }

    /// Counts the way back of the plan from now on.
    pub fn go_back(&mut self, way: &Plan, now: Timestamp, name: impl Fn(&str) -> String) {
        for mut group in std::mem::take(&mut self.groups) {
            if group.begun.is_some() {
                group.over.get_or_insert(now);
                self.past.push(group);
            }
        }
        self.take(way, &Starts::default(), name);
        for group in &mut self.groups {
            group.is_rollback = true;
        }
    }

    fn take(&mut self, plan: &Plan, starts: &Starts, name: impl Fn(&str) -> String) {
        self.groups = plan
            .groups
            .iter()
            .map(|group| Group {
                name: name(&group.name),
                id: group.name.clone(),
                is_rollback: false,
                total: 0,
                ended: 0,
                done: 0,
                failed: 0,
                begun: None,
                over: None,
                latest: None,
                active: 0,
                rate: Rate::default(),
                wait: None,
                healthy: None,
                next_pause: None,
                told: None,
                is_told_over: false,
            })
            .collect();
        let indices = plan.groups.iter().enumerate();
        let indices: HashMap<&str, usize> = indices
            .map(|(index, group)| (&*group.name, index))
            .collect();
        self.tasks.clear();
        for (id, change) in plan.changes.iter().enumerate() {
            let index = indices.get(change.address.group.as_str()).copied();
            let index = index.unwrap_or_default();
            let start = starts.tasks.get(id);
            self.tasks.push(Task {
                group: index,
                slot: change.address.slot,
                is_active: false,
                is_touched: matches!(start, Some(Start::After { .. })),
                has_failed: false,
            });
            let group = &mut self.groups[index];
            group.total += 1;
            if matches!(start, Some(Start::Done { .. })) {
                group.ended += 1;
                group.done += 1;
            }
        }
    }

    /// How many changes of a group have ended, and how many there are.
    pub fn counts(&self, group: usize) -> (usize, usize) {
        let group = &self.groups[group];
        (group.ended, group.total)
    }

    /// Counts one step.
    pub fn count(&mut self, plan: &Plan, progress: &Progress, now: Timestamp) {
        match progress {
            Progress::Started { task, .. } | Progress::Entered { task, .. } => {
                let is_new = !std::mem::replace(&mut self.tasks[*task].is_active, true);
                let group = self.group_of(*task);
                group.begin(now);
                group.active += usize::from(is_new);
            }
            Progress::Still { task, elapsed, .. } => {
                let elapsed = shown(Duration::from_secs(elapsed.as_secs()));
                let what = format!("slot {} takes {elapsed}", self.tasks[*task].slot);
                let group = self.group_of(*task);
                if group.wait.as_ref().is_none_or(|wait| wait.is_slow) {
                    group.wait = Some(Wait {
                        is_slow: true,
                        ..Wait::of_task(*task, what)
                    });
                }
            }
            Progress::Waits { task, why } => {
                let what = format!("waits for slot {}: {why}", self.tasks[*task].slot);
                self.group_of(*task).wait = Some(Wait::of_task(*task, what));
            }
            Progress::Retrying { task, error, .. } => {
                let what = format!("retries slot {}: {error}", self.tasks[*task].slot);
                self.group_of(*task).wait = Some(Wait::of_task(*task, what));
            }
            Progress::Elsewhere { task, error, .. } => {
                let what = format!("moves slot {}: {error}", self.tasks[*task].slot);
                self.group_of(*task).wait = Some(Wait::of_task(*task, what));
            }
            Progress::Available { task } => self.end_wait(*task),
            Progress::Completed {
                task,
                step,
                elapsed,
                ..
            } => {
                self.tasks[*task].is_touched = true;
                self.end_wait(*task);
                let operation = operation(*step, plan.changes[*task].action);
                self.note_duration(*task, operation.name(), *elapsed);
            }
            Progress::Failed { task, .. } | Progress::Unrecorded { task, .. } => {
                self.tasks[*task].has_failed = true;
            }
            Progress::Ended { task } => self.end(*task, now),
            Progress::Group { group, stage, .. } => {
                let rollout = plan.groups[*group].rollout.as_ref();
                let pause = rollout.and_then(|rollout| rollout.canary_pause);
                self.groups[*group].enter(*stage, pause, now);
            }
            Progress::Rolls { group, status } => {
                self.groups[*group].begin(now);
                self.groups[*group].show_status(status);
            }
            Progress::Unused { .. } | Progress::ExportFailed { .. } | Progress::Tick => {}
        }
    }

    fn group_of(&mut self, task: TaskId) -> &mut Group {
        &mut self.groups[self.tasks[task].group]
    }

    fn end_wait(&mut self, task: TaskId) {
        let wait = &mut self.group_of(task).wait;
        wait.take_if(|wait| wait.task == Some(task));
    }

    fn end(&mut self, task: TaskId, now: Timestamp) {
        self.end_wait(task);
        let Task {
            is_touched,
            has_failed,
            is_active,
            ..
        } = self.tasks[task];
        let group = self.group_of(task);
        group.ended += 1;
        group.active -= usize::from(is_active);
        group.latest = Some(now);
        if has_failed {
            group.begin(now);
            group.failed += 1;
        } else if is_touched {
            group.done += 1;
            group.rate.count(now);
            self.whole.count(now);
        }
        let group = self.group_of(task);
        if group.ended == group.total {
            group.over = Some(now);
        }
    }

    /// Keeps the duration of an operation if it is one of the longest.
    fn note_duration(&mut self, task: TaskId, operation: &str, elapsed: Duration) {
        let place = self.slowest.partition_point(|(other, _)| *other >= elapsed);
        if place < SLOWEST {
            let slot = self.tasks[task].slot;
            let what = format!("{operation} {}/{slot}", self.group_of(task).name);
            self.slowest.insert(place, (elapsed, what));
            self.slowest.truncate(SLOWEST);
        }
    }
}

/// `12/min`
fn rate_text(per_minute: f64) -> String {
    match per_minute {
        rate if rate >= 10.0 => format!("{rate:.0}/min"),
        rate if rate >= 0.1 => format!("{rate:.1}/min"),
        _ => "0/min".to_owned(),
    }
}

/// A duration to the second.
fn seconds(duration: Duration) -> String {
    shown(Duration::from_secs(duration.as_secs()))
}

/// On a terminal.
impl Tally {
    /// A line for each of at most `most` active groups, and one for the whole, none wider than
    /// `width`. `name` is that of the whole.
    pub fn bars(&self, name: &str, width: usize, most: usize, now: Timestamp) -> Vec<String> {
        let active: Vec<&Group> = self
            .groups
            .iter()
            .filter(|group| group.is_active())
            .collect();
        let shown_groups = &active[..active.len().min(most)];
        let [done, total, failed] = self.groups.iter().fold([0; 3], |[a, b, c], group| {
            [a + group.done, b + group.total, c + group.failed]
        });
        // Of all groups, so that the columns stay where they are.
        let names = self.groups.iter().map(|group| group.name.chars().count());
        let longest = names
            .chain([name.chars().count()])
            .max()
            .unwrap_or_default();
        let layout = Layout {
            width,
            name: longest.min((width / 3).max(12)),
            bar: match width {
                0..60 => 0,
                60..120 => 10,
                _ => 24,
            },
            count: total.to_string().len(),
        };
        // A narrow terminal has no room for a column of rates.
        let column = if width < 60 { 0 } else { 7 };
        let mut lines: Vec<String> = shown_groups
            .iter()
            .map(|group| {
                let rate = group.rate_text(now).unwrap_or_default();
                let mut notes = vec![format!("{rate:>column$}")];
                notes.extend(group.notes(now));
                notes.retain(|note| !note.is_empty());
                layout.line(&group.name, group.done, group.total, &notes)
            })
            .collect();
        if active.len() > most {
            let more = counted(active.len() - most, "more group");
            lines.push(cut(&format!("and {more}"), width));
        }
        let mut notes = vec![format!("{:>column$}", seconds(now.since(self.begun)))];
        notes.extend(self.time_left(now).map(|left| format!("~{left} left")));
        notes.extend((failed > 0).then(|| format!("{failed} failed")));
        notes.push(rate_text(self.whole.per_minute(self.begun, now)));
        if !self.create_interval.is_zero() {
            notes.push(format!("a creation every {}", shown(self.create_interval)));
        }
        lines.push(layout.line(name, done, total, &notes));
        lines
    }

    /// The estimated time left, as long as changes end. How long a pause lasts, and what follows it,
    /// can't be estimated.
    fn time_left(&self, now: Timestamp) -> Option<String> {
        let pauses = |group: &Group| group.wait.as_ref().is_some_and(|wait| wait.is_pause);
        let mut active = self.groups.iter().filter(|group| group.is_active());
        if active.all(pauses) {
            return None;
        }
        let rate = self.whole.per_minute(self.begun, now);
        let left: usize = self
            .groups
            .iter()
            .map(|group| group.total - group.ended)
            .sum();
        if rate <= 0.0 || left == 0 || now.since(self.begun) < ESTIMATE_AFTER {
            return None;
        }
        let left = Duration::from_secs_f64(left as f64 * 60.0 / rate);
        // More digits would pretend to know more.
        let step = if left > Duration::from_mins(2) { 60 } else { 5 };
        let rounded = (left.as_secs() + 1).div_ceil(step) * step;
        Some(shown(Duration::from_secs(rounded)))
    }
}

/// The columns of lines on a terminal.
#[derive(Debug, Clone, Copy)]
struct Layout {
    width: usize,
    name: usize,
    bar: usize,
    count: usize,
}

impl Layout {
    fn line(self, name: &str, done: usize, total: usize, notes: &[String]) -> String {
        let name = shortened(name, self.name);
        let bar = match self.bar {
            0 => String::new(),
            width => format!("{} ", bar(done, total, width)),
        };
        let (columns, count) = (self.name, self.count);
        let line = format!(
            "{name:<columns$}  {bar}{done:>count$}/{total:<count$}  {}",
            notes.join("  ")
        );
        cut(line.trim_end(), self.width)
    }
}

fn bar(done: usize, total: usize, width: usize) -> String {
    let full = (done * width).checked_div(total).unwrap_or(width);
    "█".repeat(full) + &"░".repeat(width - full)
}

/// A name of at most `width` characters, without its middle if it is longer.
fn shortened(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept / 2, kept - kept / 2);
    let head: String = name.chars().take(head).collect();
    let tail: String = name.chars().skip(length - tail).collect();
    format!("{head}…{tail}")
}

/// A text as one line of at most `width` characters.
fn cut(text: &str, width: usize) -> String {
    let is_long = text.chars().count() > width;
    let kept = if is_long {
        width.saturating_sub(1)
    } else {
        width
    };
    let kept = text.chars().take(kept);
    let mut line: String = kept.map(|c| if c.is_control() { ' ' } else { c }).collect();
    if is_long && width > 0 {
        line.push('…');
    }
    line
}

/// Without a terminal.
impl Tally {
    /// The plain lines that are due: groups that started, moved, wait or are over. A few a second at
    /// most; further ones are counted. With `only_over`, only groups that are over and what was left
    /// out.
    pub fn due(&mut self, only_over: bool, now: Timestamp) -> Vec<String> {
        if now < self.next_lines {
            return Vec::new();
        }
        self.next_lines = now.after(PACE);
        self.lines(only_over, now)
    }

    /// The last plain lines. Groups that stopped in the middle are over, too.
    pub fn last(&mut self, now: Timestamp) -> Vec<String> {
        for group in &mut self.groups {
            if group.begun.is_some() {
                group.over.get_or_insert(group.latest.unwrap_or(now));
            }
        }
        let mut lines = self.lines(true, now);
        lines.extend(self.take_left_out());
        lines
    }

    /// Whether a failure gets a line of its own; else it is counted.
    pub fn shows_failure(&mut self) -> bool {
        let is_shown = self.failures_shown < LINES_AT_ONCE;
        if is_shown {
            self.failures_shown += 1;
        } else {
            self.left_out.failed += 1;
        }
        is_shown
    }

    fn lines(&mut self, only_over: bool, now: Timestamp) -> Vec<String> {
        self.failures_shown = 0;
        let mut lines: Vec<String> = self.take_left_out().into_iter().collect();
        for group in &mut self.groups {
            let is_full = lines.len() >= LINES_AT_ONCE;
            if group.begun.is_none() || group.is_told_over {
                continue;
            }
            if group.over.is_some() {
                group.is_told_over = true;
                if is_full {
                    self.left_out.over += 1;
                } else {
                    lines.push(over_line(group, now));
                }
                continue;
            }
            if only_over {
                continue;
            }
            let Some((at, ended)) = group.told else {
                group.told = Some((now, group.ended));
                if is_full {
                    self.left_out.started += 1;
                } else {
                    let total = counted(group.total, "change");
                    lines.push(format!("{}: started, {total}", group.name));
                }
                continue;
            };
            let pause = if group.ended > ended { MOVED } else { WAITED };
            // Where there are too many, it is the next one's turn the next time.
            if now.since(at) >= pause && group.is_active() && !is_full {
                group.told = Some((now, group.ended));
                lines.push(moved_line(group, now));
            }
        }
        lines
    }

    fn take_left_out(&mut self) -> Option<String> {
        let LeftOut {
            started,
            over,
            failed,
        } = std::mem::take(&mut self.left_out);
        let parts = [
            (started, "more group", "started"),
            (over, "more group", "ended"),
            (failed, "more change", "failed"),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, what, happened)| format!("{} {happened}", counted(count, what)))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn over_line(group: &Group, now: Timestamp) -> String {
    let Group { done, failed, .. } = group;
    let total = counted(group.total, "change");
    let time = group.duration(now);
    let took = seconds(time);
    if *done == group.total {
        let rate = group.total as f64 * 60.0 / time.max(Duration::from_secs(1)).as_secs_f64();
        return format!(
            "{}: done, {total} in {took}, {}",
            group.name,
            rate_text(rate)
        );
    }
    let failed = match failed {
        0 => String::new(),
        count => format!(", {count} failed"),
    };
    format!("{}: {done} of {total} done{failed}, in {took}", group.name)
}

fn moved_line(group: &Group, now: Timestamp) -> String {
    let total = counted(group.total, "change");
    let mut parts = vec![format!("{}: {} of {total} done", group.name, group.done)];
    parts.extend(group.rate_text(now));
    parts.extend(group.notes(now));
    let line = parts.join(", ");
    line.replace(['\n', '\r'], " ")
}

/// After the apply.
impl Tally {
    /// How long it took.
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        now.since(self.begun)
    }

    /// How long the whole, the longest groups and the slowest operations took.
    pub fn summary(&self, now: Timestamp) -> String {
        let mut groups: Vec<&Group> = self.past.iter().chain(&self.groups).collect();
        groups.retain(|group| group.begun.is_some());
        groups.sort_by_key(|group| std::cmp::Reverse(group.duration(now)));
        let done: usize = groups.iter().map(|group| group.done).sum();
        let mut text = format!(
            "{} in {}\n",
            counted(done, "change"),
            seconds(self.elapsed(now))
        );
        let shown_groups = &groups[..groups.len().min(SUMMARY_GROUPS)];
        // Names come last, so that a narrow terminal doesn't tear the columns apart.
        for group in shown_groups {
            let time = seconds(group.duration(now));
            let counts = format!("{}/{}", group.done, group.total);
            let what = if group.is_rollback { " (rollback)" } else { "" };
            text.push_str(&format!("  {time:>8}  {counts:>9}  {}{what}\n", group.name));
        }
        if groups.len() > SUMMARY_GROUPS {
            let more = counted(groups.len() - SUMMARY_GROUPS, "more group");
            text.push_str(&format!("  and {more}\n"));
        }
        if !self.slowest.is_empty() {
            text.push_str("Slowest operations:\n");
        }
        for (time, what) in &self.slowest {
            text.push_str(&format!("  {:>6.1} s  {what}\n", time.as_secs_f64()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::address::{Address, GroupName};
    use crate::apply::engine::Step;
    use crate::apply::protocol;
    use crate::plan::change::{Action, Change};
    use crate::report::testing::{careful, now, plan_of, with_rollout};

    /// An apply, and the time since it began.
    struct Run {
        plan: Plan,
        tally: Tally,
        at: u64,
    }

    impl Run {
        fn new(groups: &[(&str, u32)]) -> Self {
            let changes = groups.iter().flat_map(|(name, size)| {
                let group: GroupName = name.parse().unwrap();
                (0..*size).map(move |slot| {
                    let address = Address::new(group.clone(), slot);
                    Change::new(address, Action::Create, Vec::new())
                })
            });
            let mut plan = plan_of(changes.collect());
            for (name, size) in groups {
                plan = with_rollout(plan, name, careful(*size));
            }
            let tally = Tally::new(&plan, &Starts::default(), now(), str::to_owned);
            Self { plan, tally, at: 0 }
        }

        fn now(&self) -> Timestamp {
            now().after(Duration::from_secs(self.at))
        }

        fn tell(&mut self, progress: &Progress) {
            let now = self.now();
            self.tally.count(&self.plan, progress, now);
        }

        fn start(&mut self, task: TaskId) {
            let step = Step::Create;
            self.tell(&Progress::Started { task, step });
        }

        fn complete(&mut self, task: TaskId, seconds: u64) {
            self.start(task);
            self.tell(&Progress::Completed {
                task,
                step: Step::Create,
                provider_id: None,
                elapsed: Duration::from_secs(seconds),
            });
            self.tell(&Progress::Ended { task });
        }

        fn fail(&mut self, task: TaskId) {
            self.start(task);
            let (step, error) = (Step::Create, "no".to_owned());
            self.tell(&Progress::Failed { task, step, error });
            self.tell(&Progress::Ended { task });
        }

        fn bars(&self, width: usize) -> String {
            let lines = self.tally.bars("all groups", width, 3, self.now());
            for line in &lines {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            lines.join("\n")
        }

        fn due(&mut self) -> String {
            self.tally.due(false, self.now()).join("\n")
        }
    }

    const GROUPS: [(&str, u32); 5] = [
        ("default/web", 100),
        ("platform/a-group-with-a-long-name", 20),
        ("default/db", 3),
        ("default/cache", 2),
        ("default/idle", 5),
    ];

    /// Two minutes after the beginning: groups that move, wait, pause, and one more.
    fn under_way() -> Run {
        let mut run = Run::new(&GROUPS);
        for task in 0..40 {
            run.at = 60 + u64::try_from(task).unwrap();
            run.complete(task, 2);
        }
        run.fail(40);
        run.start(41);
        run.complete(100, 3);
        run.start(101);
        run.tell(&Progress::Rolls {
            group: 1,
            status: GroupStatus {
                stage: GroupStage::Rolling,
                healthy: Some(19),
                wait: Some(protocol::Wait {
                    what: "platform/a-group-with-a-long-name/1 to be available: HTTP\n503".into(),
                    since: now(),
                }),
                next_pause: Some(NextPause {
                    canaries: 2,
                    pause: CanaryPause::Manual,
                }),
            },
        });
        run.complete(120, 9);
        run.tell(&Progress::Group {
            group: 2,
            stage: GroupStage::CanaryPause,
            detail: String::new(),
        });
        run.start(123);
        run.tally.limit_creations(Duration::from_millis(500));
        run.at = 120;
        run
    }

    #[test]
    fn lines_fit_a_terminal() {
        let run = under_way();
        assert_snapshot!("bars_40", run.bars(40));
        assert_snapshot!("bars_80", run.bars(80));
        assert_snapshot!("bars_200", run.bars(200));
        for width in 0..40 {
            run.bars(width);
        }
    }

    #[test]
    fn what_a_change_waits_for_ends_with_it() {
        let mut run = Run::new(&[("default/web", 2)]);
        let waits = |run: &Run| run.bars(80).lines().next().unwrap().to_owned();
        run.start(0);
        run.tell(&Progress::Still {
            task: 0,
            step: Step::Create,
            elapsed: Duration::from_secs(20),
        });
        assert!(waits(&run).ends_with("slot 0 takes 20s"), "{}", waits(&run));
        run.tell(&Progress::Retrying {
            task: 0,
            error: "Throttled".to_owned(),
            wait: Duration::from_secs(1),
        });
        assert!(waits(&run).ends_with("retries slot 0: Throttled"));
        run.tell(&Progress::Waits {
            task: 1,
            why: "HTTP 503".to_owned(),
        });
        // Another change doesn't end it.
        run.complete(0, 20);
        assert!(waits(&run).ends_with("waits for slot 1: HTTP 503"));
        run.tell(&Progress::Available { task: 1 });
        assert!(waits(&run).ends_with("60/min"), "{}", waits(&run));
    }

    #[test]
    fn the_time_left_follows_from_the_rate() {
        let mut run = Run::new(&[("default/web", 100)]);
        run.complete(0, 1);
        assert_eq!(run.tally.time_left(run.now()), None);
        for task in 1..11 {
            run.at = u64::try_from(task).unwrap();
            run.complete(task, 1);
        }
        assert_eq!(run.tally.time_left(run.now()).unwrap(), "1m25s");
        // In a long pause nobody knows.
        run.at = 200;
        assert_eq!(run.tally.time_left(run.now()), None);
    }

    #[test]
    fn a_pause_shows_how_long_it_lasts() {
        let mut run = Run::new(&[("default/web", 100)]);
        let rollout = run.plan.groups[0].rollout.as_mut().unwrap();
        rollout.canary_pause = Some(CanaryPause::For(Duration::from_secs(90)));
        run.complete(0, 1);
        run.at = 10;
        assert!(run.tally.time_left(run.now()).is_some());
        run.tell(&Progress::Group {
            group: 0,
            stage: GroupStage::CanaryPause,
            detail: String::new(),
        });
        run.at = 20;
        run.tell(&Progress::Rolls {
            group: 0,
            status: GroupStatus {
                stage: GroupStage::CanaryPause,
                healthy: None,
                wait: None,
                next_pause: None,
            },
        });
        let line = run.bars(80).lines().next().unwrap().to_owned();
        assert!(
            line.ends_with("canary pause of 1m30s, 1m20s left"),
            "{line}"
        );
        assert_eq!(run.tally.time_left(run.now()), None);
    }

    #[test]
    fn plain_lines_come_at_a_steady_pace() {
        let mut run = Run::new(&GROUPS);
        let mut log = String::new();
        let mut step = |run: &mut Run, at: u64| {
            run.at = at;
            for line in run.due().lines() {
                log.push_str(&format!("{at:>3} s  {line}\n"));
            }
        };
        for task in [0, 100, 120, 123, 125] {
            run.start(task);
        }
        // Five groups begin at once, and the same second gives no further lines.
        step(&mut run, 0);
        run.complete(123, 1);
        run.complete(124, 1);
        step(&mut run, 0);
        step(&mut run, 1);
        run.complete(0, 2);
        step(&mut run, 9);
        step(&mut run, 10);
        step(&mut run, 11);
        run.tell(&Progress::Waits {
            task: 100,
            why: "HTTP 503".to_owned(),
        });
        step(&mut run, 29);
        step(&mut run, 30);
        step(&mut run, 40);
        // After a failure the group stops, and has nothing more to say.
        run.fail(1);
        step(&mut run, 55);
        run.at = 60;
        for line in run.tally.last(run.now()) {
            log.push_str(&format!(" 60 s  {line}\n"));
        }
        assert_snapshot!("plain", log);
    }

    #[test]
    fn a_flood_of_failures_is_counted() {
        let mut run = Run::new(&[("default/web", 100)]);
        let count = |run: &mut Run, failures: usize| {
            (0..failures).filter(|_| run.tally.shows_failure()).count()
        };
        assert_eq!(run.due(), "");
        assert_eq!(count(&mut run, 10), 4);
        run.at = 1;
        assert_eq!(run.due(), "6 more changes failed");
        assert_eq!(count(&mut run, 2), 2);
        run.at = 2;
        assert_eq!(run.due(), "");
    }

    #[test]
    fn the_summary_names_what_took_long() {
        let mut run = under_way();
        for task in 121..125 {
            run.complete(task, 4);
        }
        let way = plan_of(run.plan.changes[..1].to_vec());
        let way = with_rollout(way, "default/web", careful(1));
        run.tally.go_back(&way, run.now(), str::to_owned);
        run.at = 130;
        run.complete(0, 7);
        assert_snapshot!("summary", run.tally.summary(run.now()));
        let many: Vec<String> = (0..12).map(|index| format!("default/g{index}")).collect();
        let many: Vec<(&str, u32)> = many.iter().map(|name| (&**name, 1)).collect();
        let mut run = Run::new(&many);
        for task in 0..12 {
            run.complete(task, 1);
        }
        assert!(
            run.tally
                .summary(run.now())
                .contains("  and 2 more groups\n")
        );
    }

    #[test]
    fn what_an_earlier_apply_did_is_done() {
        let run = Run::new(&[("default/web", 2), ("default/db", 1)]);
        let done = Start::Done { provider_id: None };
        let after = Start::After {
            step: Step::Create,
            provider_id: None,
            wait: None,
        };
        let starts = Starts {
            tasks: vec![done, after, Start::Todo],
            groups: Vec::new(),
        };
        let mut tally = Tally::new(&run.plan, &starts, now(), str::to_owned);
        assert_eq!(tally.counts(0), (1, 2));
        // Only its wait was left, so no step of it completes.
        let (task, step) = (1, Step::Check);
        tally.count(&run.plan, &Progress::Entered { task, step }, now());
        tally.count(&run.plan, &Progress::Ended { task }, now());
        // This one was never tried.
        tally.count(&run.plan, &Progress::Ended { task: 2 }, now());
        let lines = tally.bars("all", 40, 3, now());
        assert_eq!(lines, ["all          2/3  0s  60/min"]);
    }

    #[test]
    fn long_names_lose_their_middle() {
        for (width, expected) in [(11, "default/web"), (10, "defa…t/web"), (2, "…b"), (1, "…")]
        {
            assert_eq!(shortened("default/web", width), expected);
        }
        assert_eq!(cut("a\nb", 3), "a b");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("abcd", 0), "");
    }
}
