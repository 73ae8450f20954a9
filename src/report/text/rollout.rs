//! How the changes of each group follow each other.
//!
//! In: a [`Plan`]. Out: lines: the limits, the waves, the checks. Must not: show a change.

use std::sync::Arc;
use std::time::Duration;

use super::paint::Style;
use super::value::visible;
use crate::config::duration::shown;
use crate::config::model::{CanaryPause, Check, OnFailure};
use crate::diagnostic::counted;
use crate::plan::change::{Action, Change, Plan};
use crate::plan::rollout::{Assumed, GroupRollout, Rollout, Wave, is_limited};
use crate::report::collapse::Slots;

/// The maximum number of groups.
const GROUPS: usize = 20;

/// The maximum number of lines; groups that don't fit take one line each.
const LINES: usize = 60;

/// The maximum number of lines about a group's waves.
const WAVES: usize = 6;

/// A section for each group whose changes take turns, unless there is nothing to say about it.
pub(in crate::report) fn sections(plan: &Plan, style: Style<'_>) -> Vec<String> {
    let sections: Vec<Section> = plan
        .rollouts()
        .iter()
        .filter_map(|group| section(plan, group, style))
        .collect();
    let mut lines: Vec<String> = Vec::new();
    let listed = sections.len().min(GROUPS);
    for (index, section) in sections.iter().take(listed).enumerate() {
        // The empty line after it, and one line for each later group.
        let later = listed - index;
        let fits = lines.len() + section.details.len() + 1 + later < LINES;
        if section.details.is_empty() || !fits {
            lines.push(section.headline.clone());
            continue;
        }
        lines.push(format!("{}:", section.headline));
        lines.extend(section.details.iter().map(|line| format!("  {line}")));
        if index + 1 < listed {
            lines.push(String::new());
        }
    }
    if sections.len() > listed {
        let more = counted(sections.len() - listed, "more group");
        lines.push(format!("… and {more}; --json has all"));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

struct Section {
    headline: String,
    details: Vec<String>,
}

/// What to say about a group; `None` if its changes follow the standard policy and there are not
/// several.
fn section(plan: &Plan, group: &GroupRollout<'_>, style: Style<'_>) -> Option<Section> {
    let rollout = group.rollout;
    let name = style.bold(&style.address(visible(group.name)));
    let title = format!("Rollout of {name}");
    if is_plain(rollout) && group.waves.iter().all(|wave| wave.changes.len() == 1) {
        let mut facts = Vec::new();
        if group.waves.len() > 1 {
            facts.push(format!("one at a time{}", order(plan, &group.waves)));
        }
        if !group.waves.is_empty() {
            facts.extend(rollout.assumed.map(assumed));
        }
        if !facts.is_empty() {
            facts.push(health(group));
        }
        return (!facts.is_empty()).then(|| Section {
            headline: format!("{title}: {}", facts.join("; ")),
            details: Vec::new(),
        });
    }
    let mut details = waves(plan, group, style);
    details.extend(rollout.assumed.map(assumed));
    details.push(health(group));
    let ends = [drain(rollout, group.changes), failure(rollout)];
    let ends: Vec<String> = ends.into_iter().flatten().collect();
    if !ends.is_empty() {
        details.push(ends.join("; "));
    }
    let least = rollout.least_duration(&group.waves);
    if least > Duration::ZERO {
        details.push(format!("takes at least {}", shown(least)));
    }
    let size = counted(rollout.size as usize, "instance");
    Some(Section {
        headline: format!("{title} ({size}{})", limits(group)),
        details,
    })
}

/// Whether it is the standard policy, apart from what the changes require.
fn is_plain(rollout: &Rollout) -> bool {
    let mut plain = rollout.clone();
    if plain.assumed.take().is_some() {
        plain.max_unavailable = 0;
    }
    plain.is_standard()
}

/// What comes first, if it is the same for all changes.
fn order(plan: &Plan, waves: &[Wave]) -> &'static str {
    let indices = waves.iter().flat_map(|wave| &wave.changes);
    let mut actions = indices.map(|index| plan.changes[*index].action);
    let Some(first) = actions.next() else {
        return "";
    };
    match first {
        _ if actions.any(|action| action != first) => "",
        Action::CreateThenDelete => ", created first",
        Action::DeleteThenCreate => ", deleted first",
        _ => "",
    }
}

/// `, 4 more at a time, none unavailable`
pub(in crate::report) fn limits(group: &GroupRollout<'_>) -> String {
    let rollout = group.rollout;
    let mut text = match (rollout.max_surge, rollout.max_unavailable) {
        // New instances alone count for neither limit.
        _ if !group.changes.iter().any(is_limited) => String::new(),
        (more, 0) => format!(", {more} more at a time, none unavailable"),
        (0, less) => format!(", {less} unavailable at a time, none more"),
        (more, less) => format!(", {more} more and {less} unavailable at a time"),
    };
    for (limit, word) in [
        (rollout.max_creating, "created"),
        (rollout.max_deleting, "deleted"),
    ] {
        if limit > 0 {
            text.push_str(&format!(", {limit} {word} at a time"));
        }
    }
    text
}

/// A line about waves.
struct Line {
    text: String,
    note: String,
    /// The number of waves that it is about.
    count: usize,
}

/// The waves, equal ones once.
fn waves(plan: &Plan, group: &GroupRollout<'_>, style: Style<'_>) -> Vec<String> {
    let digits = group.waves.len().to_string().len();
    let mut lines: Vec<Line> = Vec::new();
    let mut number = 0;
    for run in group.waves.chunk_by(is_like) {
        let apart = if run.len() > 2 { 1 } else { run.len() };
        for wave in &run[..apart] {
            number += 1;
            let slots = addresses(plan, group, wave, style);
            lines.push(Line {
                text: format!("{number:>digits$}. {slots}"),
                note: note(group.rollout, wave),
                count: 1,
            });
        }
        let more = run.len() - apart;
        number += more;
        if more > 0 {
            let text = match run[0].changes.len() {
                1 => format!("… {more} more, one at a time"),
                several => format!("… {more} more waves of {several}"),
            };
            lines.push(Line {
                text: format!("{:digits$}  {text}", ""),
                note: String::new(),
                count: more,
            });
        }
    }
    if lines.len() > WAVES {
        let rest = lines.split_off(WAVES - 1);
        let rest: usize = rest.iter().map(|line| line.count).sum();
        lines.push(Line {
            text: format!("{:digits$}  … and {}", "", counted(rest, "more wave")),
            note: String::new(),
            count: rest,
        });
    }
    let noted = lines.iter().filter(|line| !line.note.is_empty());
    let width = noted.map(|line| line.text.chars().count()).max();
    let width = width.unwrap_or(0);
    let lines = lines.into_iter().map(|Line { text, note, .. }| {
        if note.is_empty() {
            text
        } else {
            format!("{text:width$}  {}", style.faint(&note))
        }
    });
    lines.collect()
}

/// Whether two waves that follow each other differ only in their slots.
pub(in crate::report) fn is_like(a: &Wave, b: &Wave) -> bool {
    a.changes.len() == b.changes.len()
        && a.is_canary == b.is_canary
        && a.then_pause == b.then_pause
        && a.zone == b.zone
}

/// `default/web/[1..4]`
fn addresses(plan: &Plan, group: &GroupRollout<'_>, wave: &Wave, style: Style<'_>) -> String {
    let indices = wave.changes.iter();
    let mut numbers: Vec<u32> = indices
        .map(|index| plan.changes[*index].address.slot)
        .collect();
    numbers.sort_unstable();
    let mut slots = Slots::default();
    for slot in numbers {
        slots.push(slot);
    }
    style.address(format!("{}/{}", visible(group.name), slots.text()))
}

/// `canary, then paused for 10m`
pub(in crate::report) fn note(rollout: &Rollout, wave: &Wave) -> String {
    let mut notes = Vec::new();
    if wave.is_canary {
        notes.push(match wave.changes.len() {
            1 => "canary".to_owned(),
            _ => "canaries".to_owned(),
        });
    }
    if let Some(zone) = &wave.zone {
        notes.push(format!("zone {}", visible(zone)));
    }
    match rollout.canary_pause {
        Some(CanaryPause::Manual) if wave.then_pause => {
            notes.push("then paused until `nstance rollout promote`".to_owned());
        }
        Some(CanaryPause::For(pause)) if wave.then_pause => {
            notes.push(format!("then paused for {}", shown(pause)));
        }
        _ => {}
    }
    notes.join(", ")
}

/// Why one instance may be unavailable.
pub(in crate::report) fn assumed(why: Assumed) -> String {
    let why = match why {
        Assumed::Exclusive => {
            "only one instance at a time can have a fixed address or network interface"
        }
        Assumed::Restart => "instances restart",
    };
    format!("max_unavailable is taken as 1, because {why}")
}

/// `healthy when a connection to port 80 succeeds for 30s, checked every 5s, within 10m`
pub(in crate::report) fn health(group: &GroupRollout<'_>) -> String {
    let health = &group.rollout.health;
    let mut text = match &health.check {
        Check::Running => "healthy when running".to_owned(),
        Check::Tcp { port } => format!("healthy when a connection to port {port} succeeds"),
        Check::Http {
            tls,
            port,
            path,
            status,
        } => {
            let how = if *tls { " over HTTPS" } else { "" };
            let path = visible(path);
            format!("healthy when GET :{port}{path}{how} returns {status}")
        }
        Check::Command { words } => {
            format!("healthy when `{}` succeeds", visible(program(words)))
        }
    };
    if health.min_healthy_time > Duration::ZERO {
        text.push_str(&format!(" for {}", shown(health.min_healthy_time)));
    }
    if health.check != Check::Running {
        text.push_str(&format!(", checked every {}", shown(health.interval)));
    }
    if let Some(deadline) = health.deadline {
        text.push_str(&format!(", within {}", shown(deadline)));
    }
    if group.has_load_balancers() {
        text.push_str(", and its load balancers see it as healthy");
    }
    text
}

/// The program of a command: its arguments may be secret.
fn program(words: &[Arc<str>]) -> &str {
    words.first().map_or("", |word| word)
}

/// `drained by `drain.sh` for up to 5m`
pub(in crate::report) fn drain(rollout: &Rollout, changes: &[Change]) -> Option<String> {
    let words = rollout.drain.as_deref()?;
    let mut text = format!("drained by `{}`", visible(program(words)));
    let longest = changes.iter().map(|change| change.drain_timeout_ms).max();
    if let Some(longest) = longest.filter(|longest| *longest > 0) {
        let longest = shown(Duration::from_millis(longest));
        text.push_str(&format!(" for up to {longest}"));
    }
    Some(text)
}

/// What failures do, unless the first one stops the group.
pub(in crate::report) fn failure(rollout: &Rollout) -> Option<String> {
    let most = rollout.max_failures;
    let what = match (rollout.on_failure, most) {
        (OnFailure::Continue, u32::MAX) => {
            return Some("failures don't stop the group".to_owned());
        }
        (OnFailure::Stop, 0) => return None,
        (OnFailure::Stop | OnFailure::Continue, _) => "stops the group",
        (OnFailure::Rollback, _) => "rolls the group back",
    };
    Some(match most {
        0 => format!("a failure {what}"),
        most => format!("a failure after the first {most} {what}"),
    })
}
