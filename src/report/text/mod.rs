//! Plans and drift as text, with Terraform's words and signs.
//!
//! In: a [`Plan`], and a style. Out: text. Must not: print, query a terminal, or read the
//! environment.

pub(super) mod attribute;
pub(super) mod change;
pub(super) mod drift;
pub(super) mod entry;
pub(super) mod groups;
mod instance;
pub(super) mod notes;
pub(super) mod paint;
pub(super) mod rollout;
mod shards;
#[cfg(test)]
mod tests;
pub(super) mod userdata;
pub(super) mod value;

use std::collections::BTreeSet;

pub use drift::{drift, mend};
pub use instance::instance;
pub use paint::{Signs, Style};
pub use shards::{ShardEnd, drift_total, ends, heading, plan_total};
pub use value::age;

use self::change::Detail;
use crate::diagnostic::counted;
use crate::plan::change::{Action, Change, HoldBack, Mode, Plan, Summary};
use crate::report::collapse::{self, Block};
use crate::sensitivity::cover::covered;

/// The line limit of a plan.
const MOST_LINES: usize = 200;

/// The maximum number of changes that are all shown in full, regardless of the line limit.
const SHOWN_IN_FULL: usize = 100;

/// The text of `nstance plan`.
pub fn plan(plan: &Plan, style: Style<'_>) -> String {
    let plan = &*covered(plan);
    let turns = rollout::sections(plan, style);
    with_end(plan, WILL, turns, notes::footer(plan, style), style)
}

/// The text of `nstance drift --against config`: the plan, with one verdict.
///
/// `planned` counts the changes that aren't accepted drift.
pub fn drift_from_config(plan: &Plan, planned: &Summary, style: Style<'_>) -> String {
    if !plan.summary.has_changes() {
        return drift(plan, style);
    }
    let plan = &*covered(plan);
    let mut end = drift::of_server(plan, style);
    end.push(drift::verdict(plan, Some(planned), style));
    with_end(plan, WOULD, Vec::new(), end, style)
}

/// Before the changes that an apply makes.
const WILL: &str = "nstance will perform the following actions:";
/// Before the changes that only `drift` shows.
const WOULD: &str = "nstance would perform the following actions:";

/// A masked plan; `actions` announces its changes, `turns` has the lines after them, `end` the last
/// ones.
fn with_end(
    plan: &Plan,
    actions: &str,
    turns: Vec<String>,
    end: Vec<String>,
    style: Style<'_>,
) -> String {
    let mut head = notes::files(plan);
    head.extend(notes::manifest(plan, style));
    head.extend(notes::images(plan, style));
    head.extend(drift::note(plan, style));
    let mut tail = turns;
    tail.extend(held_back(plan, style));
    tail.extend(notes::left_out(plan, style));
    tail.extend(notes::deletions(plan, style));
    tail.extend(end);
    if plan.summary.is_applyable() {
        head.extend(legend(plan, actions, style));
        let room = if plan.changes.len() > SHOWN_IN_FULL {
            // Reserves the line about omitted changes, and the empty one after it.
            MOST_LINES.saturating_sub(head.len() + tail.len() + 2)
        } else {
            usize::MAX
        };
        head.extend(blocks(plan, &plan.changes, room, style));
    }
    head.extend(tail);
    let mut text = head.join("\n");
    text.push('\n');
    text
}

fn legend(plan: &Plan, actions: &str, style: Style<'_>) -> Vec<String> {
    let words = [
        (Action::Create, "create"),
        (Action::Update, "update in-place"),
        (Action::Delete, "destroy"),
        (
            Action::DeleteThenCreate,
            "destroy and then create replacement",
        ),
        (
            Action::CreateThenDelete,
            "create replacement and then destroy",
        ),
        (Action::Adopt, "adopt"),
        (Action::Forget, "forget"),
    ];
    let used: BTreeSet<Action> = plan.changes.iter().map(|change| change.action).collect();
    let signs: Vec<String> = words
        .iter()
        .filter(|(action, _)| used.contains(action))
        .map(|(action, words)| format!("{} {words}", style.action_sign(*action)))
        .collect();
    let mut lines = Vec::new();
    if !signs.is_empty() {
        lines.push(
            "nstance generated the following execution plan. Resource actions are indicated with"
                .to_owned(),
        );
        lines.push("the following symbols:".to_owned());
        lines.extend(signs);
        lines.push(String::new());
    }
    lines.push(if plan.errored() {
        "nstance planned the following actions, but then encountered a problem:".to_owned()
    } else {
        actions.to_owned()
    });
    lines.push(String::new());
    lines
}

/// The changes that are held back, by cause, and the option that releases them.
fn held_back(plan: &Plan, style: Style<'_>) -> Vec<String> {
    let by_cause = plan.held_back_by_cause().into_iter();
    by_cause
        .flat_map(|(cause, changes)| held_back_by(plan, &changes, cause, style))
        .collect()
}

/// The changes that one setting holds back.
fn held_back_by(plan: &Plan, changes: &[Change], cause: HoldBack, style: Style<'_>) -> Vec<String> {
    let mut lines = vec![held_back_heading(changes, cause, style), String::new()];
    lines.extend(blocks(plan, changes, MOST_LINES / 2, style));
    lines.extend(how_to_release(changes, cause, style));
    lines.push(String::new());
    lines
}

/// How many changes are held back, and which setting holds them.
pub(super) fn held_back_heading(changes: &[Change], cause: HoldBack, style: Style<'_>) -> String {
    let groups: BTreeSet<&str> = changes
        .iter()
        .map(|change| change.address.group.as_str())
        .collect();
    let replacements = changes.iter().filter(|change| change.action.is_replace());
    let replacements = replacements.count();
    let restarts = changes.len() - replacements;
    let counts = [(replacements, "replacement"), (restarts, "restart")];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| counted(count, noun))
        .collect();
    format!(
        "{} {} in {}, because of `{}`:",
        style.warning("Held back:"),
        counts.join(" and "),
        counted(groups.len(), "group"),
        cause.as_str(),
    )
}

/// What is held back, by cause, and the options that release it; without the changes themselves.
pub(super) fn held_back_lines(plan: &Plan, style: Style<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (cause, changes) in plan.held_back_by_cause() {
        let heading = held_back_heading(&changes, cause, style);
        lines.push(heading.trim_end_matches(':').to_owned());
        lines.extend(how_to_release(&changes, cause, style));
    }
    lines
}

/// When held back changes are made, and the option that releases them.
pub(super) fn how_to_release(changes: &[Change], cause: HoldBack, style: Style<'_>) -> Vec<String> {
    let groups: BTreeSet<&str> = changes
        .iter()
        .map(|change| change.address.group.as_str())
        .collect();
    let groups = groups.into_iter();
    let mut lines = Vec::new();
    let flags: Vec<String> = if groups.len() <= 3 {
        groups
            .map(|group| format!("--allow-replace {}", style.address(value::visible(group))))
            .collect()
    } else {
        vec!["--allow-replace all".to_owned()]
    };
    let flags = flags.join(" ");
    match cause {
        HoldBack::Link => {
            let when = if changes.iter().any(|change| !change.late.is_empty()) {
                " if the addresses change"
            } else {
                ""
            };
            lines.push(format!(
                "They change because a linked group changed. To replace them{when}, pass `{flags}`."
            ));
        }
        HoldBack::Protect => lines.push(format!("To replace them, pass `{flags}`.")),
        HoldBack::Opportunistic => {
            lines.push(
                "Each instance gets its change when it is replaced for another reason.".to_owned(),
            );
            lines.push(format!("To apply the changes now, pass `{flags}`."));
        }
    }
    lines
}

/// The collapsed changes in at most `room` lines, plus one about omitted changes.
fn blocks(plan: &Plan, changes: &[Change], room: usize, style: Style<'_>) -> Vec<String> {
    let (blocks, rest) = collapse::collapse(changes, MOST_LINES);
    let resource_type = plan.rules().resource_type();
    let whole = |block| change::lines(block, resource_type, Detail::FULL, style);
    let mut lines = Vec::new();
    for block in &blocks {
        lines.extend(whole(block));
        lines.push(String::new());
        if lines.len() > room {
            return squeezed(&blocks, rest, resource_type, room, style);
        }
    }
    lines
}

/// The blocks if not all fit: each gets the lines that leave one for each later block.
///
/// `rest` are further changes, which aren't collapsed.
fn squeezed(
    blocks: &[Block<'_>],
    rest: &[Change],
    resource_type: &str,
    room: usize,
    style: Style<'_>,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut shown = 0;
    let mut without_details = 0;
    for (index, block) in blocks.iter().enumerate() {
        let free = room.saturating_sub(lines.len() + 1);
        let spare = free.saturating_sub(blocks.len() - index - 1);
        let space = !lines.last().is_none_or(String::is_empty);
        // A block takes at least its heading, its braces and an empty line on each side.
        let fitting = (spare >= 6)
            .then(|| change::lines(block, resource_type, Detail::BRIEF, style))
            .filter(|lines| lines.len() + 2 <= spare);
        if let Some(block) = fitting {
            if space {
                lines.push(String::new());
            }
            lines.extend(block);
            lines.push(String::new());
        } else if free > 0 {
            lines.push(change::headline(block, style));
            without_details += block.count;
        } else {
            break;
        }
        shown = index + 1;
    }
    if !lines.last().is_none_or(String::is_empty) {
        lines.push(String::new());
    }
    let hidden = &blocks[shown..];
    lines.push(if hidden.is_empty() && rest.is_empty() {
        let changes = counted(without_details, "change");
        format!("  … and the details of {changes}; --json has all")
    } else {
        rest_line(hidden, rest)
    });
    lines.push(String::new());
    lines
}

/// The counts of the omitted blocks and changes.
fn rest_line(blocks: &[Block<'_>], changes: &[Change]) -> String {
    let mut summary = Summary::default();
    let mut groups: BTreeSet<&str> = BTreeSet::new();
    let mut count = 0;
    let blocks = blocks.iter().map(|block| (block.first, block.count));
    for (change, times) in blocks.chain(changes.iter().map(|change| (change, 1))) {
        groups.insert(change.address.group.as_str());
        count += times;
        for _ in 0..times {
            summary.count(change.action);
        }
    }
    format!(
        "  … and {} in {} ({}); --json has all",
        counted(count, "more change"),
        counted(groups.len(), "group"),
        to_do(&summary)
    )
}

/// `2 to replace, 3 to destroy`
pub(super) fn to_do(summary: &Summary) -> String {
    let words = [
        (summary.create, "create"),
        (summary.update, "change"),
        (summary.replace, "replace"),
        (summary.delete, "destroy"),
        (summary.adopt, "adopt"),
        (summary.forget, "forget"),
    ];
    let words = words.iter().filter(|(count, _)| *count > 0);
    let words = words.map(|(count, word)| format!("{count} to {word}"));
    words.collect::<Vec<_>>().join(", ")
}

/// The message that nothing changes, by mode.
fn nothing_to_do(mode: Mode) -> [&'static str; 2] {
    match mode {
        Mode::Normal => [
            "Your infrastructure matches the configuration.",
            "nstance has compared your real infrastructure against your configuration and found no\n\
             differences, so no changes are needed.",
        ],
        Mode::Destroy => [
            "No objects need to be destroyed.",
            "Either you have not created any objects yet or the existing objects were already\n\
             deleted outside of nstance.",
        ],
        Mode::RefreshOnly => [
            "Your infrastructure still matches the configuration.",
            "nstance has checked that the real remote objects still match the result of your most\n\
             recent changes, and found no differences.",
        ],
    }
}
