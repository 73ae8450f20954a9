//! Shows drift.
//!
//! In: a [`Plan`]. Out: the text of `nstance drift`, and a plan's note on drift. Must not: propose
//! a change.

use serde_json::Value;

use super::entry;
use super::paint::{Sign, Style};
use super::userdata;
use super::value::{self, visible};
use crate::address::Address;
use crate::diagnostic::counted;
use crate::plan::change::{Drift, DriftKind, DriftedAttribute, Plan, Summary};
use crate::report::alike::{self, Own, Zones};
use crate::report::collapse::{REMEMBERED, Slots};
use crate::report::events::planned_counts;
use crate::sensitivity::HIDDEN;
use crate::sensitivity::cover::covered;

/// The line limit of drift in a plan.
const LINES_IN_A_PLAN: usize = 60;

/// The line limit of the drift report.
const MOST_LINES: usize = 200;

/// The line limit of a text's diff.
const DIFF_LINES: usize = 20;

/// Drift that is alike in several slots of a group.
pub(in crate::report) struct Block<'a> {
    pub(in crate::report) first: &'a Drift,
    address: Option<Address>,
    slots: Slots,
    pub(in crate::report) count: usize,
}

/// The drift of one instance.
pub(in crate::report) fn of_one(drift: &Drift, style: Style<'_>) -> Vec<String> {
    let blocks = collapse(std::slice::from_ref(drift));
    let blocks = blocks.iter();
    blocks.flat_map(|block| block_lines(block, style)).collect()
}

/// Everything that drifted.
pub(in crate::report) fn lines(plan: &Plan, style: Style<'_>) -> Vec<String> {
    let mut lines = blocks(&collapse(&plan.drift), MOST_LINES, style);
    lines.extend(of_server(plan, style));
    lines.pop();
    lines
}

/// The text of `nstance drift`.
pub fn drift(plan: &Plan, style: Style<'_>) -> String {
    let plan = &*covered(plan);
    let mut lines = blocks(&collapse(&plan.drift), MOST_LINES - 4, style);
    lines.extend(of_server(plan, style));
    lines.push(verdict(plan, None, style));
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// How many instances of the Nstance server there are.
pub(super) fn of_server(plan: &Plan, style: Style<'_>) -> Vec<String> {
    if plan.of_server.is_empty() {
        return Vec::new();
    }
    let ids = plan.of_server.iter();
    let ids: Vec<String> = ids.map(|it| visible(&it.provider_id)).collect();
    let count = counted(ids.len(), "instance");
    let ids = value::listed(&ids, 5);
    vec![
        style.title(&format!("{count} of the Nstance server, left alone: {ids}")),
        String::new(),
    ]
}

/// The commands that mend the drift; `None` if there is nothing to mend. `given` are the global
/// options, `planned` counts what differs from the configuration.
pub fn mend<'p>(
    plans: impl IntoIterator<Item = (&'p Plan, Summary)>,
    given: &str,
) -> Option<String> {
    let mut duplicates = false;
    let mut others = false;
    for (plan, planned) in plans {
        let counting = plan.drift.iter().filter(|drift| !drift.accepted);
        for drift in counting {
            match drift.kind {
                DriftKind::Duplicate => duplicates = true,
                DriftKind::Changed | DriftKind::Missing | DriftKind::Unknown => others = true,
            }
        }
        others |= planned.has_changes();
    }
    if others {
        Some(format!(
            "`nstance plan{given}` shows what restores the configuration; \
             `nstance plan{given} --refresh-only` shows what records it as it is"
        ))
    } else {
        duplicates.then(|| {
            "To resolve a duplicate, delete the instance that isn't needed, or give it a slot: \
             `nstance import ADDR PROVIDER_ID`"
                .to_owned()
        })
    }
}

/// The line that says how much drifted; `planned` counts what differs from the configuration.
pub(in crate::report) fn verdict(
    plan: &Plan,
    planned: Option<&Summary>,
    style: Style<'_>,
) -> String {
    let counted_of = |kind: DriftKind| {
        plan.drift
            .iter()
            .filter(|drift| drift.kind == kind && !drift.accepted)
            .count()
    };
    let accepted = plan.drift.iter().filter(|drift| drift.accepted);
    let (by_accept, ignored): (Vec<_>, Vec<_>) =
        accepted.partition(|drift| !drift.accepted_because.is_empty());
    let accepted = [
        (ignored.len(), "ignore_changes"),
        (by_accept.len(), "the configuration"),
    ];
    let accepted: Vec<String> = accepted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, by)| format!("{count} accepted by {by}"))
        .collect();
    let accepted = match &accepted[..] {
        [] => String::new(),
        some => format!(" ({}.)", some.join(", ")),
    };
    let kinds = DriftKind::ALL;
    let counts: Vec<String> = kinds
        .iter()
        .map(|kind| format!("{} {}", counted_of(*kind), kind.as_str()))
        .collect();
    let counts = counts.join(", ");
    match planned.filter(|planned| planned.has_changes()) {
        Some(planned) => format!(
            "{} {counts}; {}.{accepted}",
            style.bold("Drift:"),
            planned_counts(planned)
        ),
        None if kinds.iter().all(|kind| counted_of(*kind) == 0) => {
            format!("{}{accepted}", style.success("No drift."))
        }
        None => format!("{} {counts}.{accepted}", style.bold("Drift:")),
    }
}

/// A plan's note on drift.
pub(super) fn note(plan: &Plan, style: Style<'_>) -> Vec<String> {
    if plan.drift.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        format!(
            "{} Objects have changed outside of nstance",
            style.bold("Note:")
        ),
        String::new(),
        "nstance detected the following changes made outside of nstance since the last".to_owned(),
        "\"nstance apply\":".to_owned(),
        String::new(),
    ];
    lines.extend(blocks(&collapse(&plan.drift), LINES_IN_A_PLAN, style));
    lines.push("─".repeat(style.columns().min(80)));
    lines.push(String::new());
    lines
}

/// Collapses drift; blocks are ordered by address.
pub(in crate::report) fn collapse(drift: &[Drift]) -> Vec<Block<'_>> {
    let mut sorted: Vec<(Option<Address>, &Drift)> = drift
        .iter()
        .map(|drift| (drift.address.parse().ok(), drift))
        .collect();
    // Sorted by slot number, not as text; invalid addresses come first.
    sorted.sort_by(|(a, x), (b, y)| (a, &x.address).cmp(&(b, &y.address)));
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for (address, drift) in sorted {
        let mut recent = blocks.iter_mut().rev().take(REMEMBERED);
        let known = recent.find(|block| match (&block.address, &address) {
            (Some(a), Some(b)) => a.group == b.group && alike(block.first, a.slot, drift, b.slot),
            _ => false,
        });
        let slot = address.as_ref().map_or(0, |address| address.slot);
        if let Some(block) = known {
            block.slots.push(slot);
            block.count += 1;
        } else {
            let mut slots = Slots::default();
            slots.push(slot);
            blocks.push(Block {
                first: drift,
                address,
                slots,
                count: 1,
            });
        }
    }
    blocks
}

/// Whether the drift of two instances differs only in their identity.
fn alike(a: &Drift, slot_a: u32, b: &Drift, slot_b: u32) -> bool {
    let zones = &Zones::of(&[]);
    let own_a = &Own::of_sides([a.before.as_deref(), None], slot_a, zones);
    let own_b = &Own::of_sides([b.before.as_deref(), None], slot_b, zones);
    let same = |a: &Option<Value>, b: &Option<Value>| {
        alike::optional(a.as_ref(), own_a, b.as_ref(), own_b)
    };
    a.kind == b.kind
        && a.accepted == b.accepted
        && a.accepted_because == b.accepted_because
        && a.expired == b.expired
        && a.changes.len() == b.changes.len()
        && a.changes.iter().zip(&b.changes).all(|(a, b)| {
            a.path == b.path && same(&a.observed, &b.observed) && same(&a.recorded, &b.recorded)
        })
}

fn blocks(blocks: &[Block<'_>], room: usize, style: Style<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut shown = 0;
    for block in blocks {
        let block = block_lines(block, style);
        if lines.len() + block.len() + 3 > room {
            break;
        }
        lines.extend(block);
        lines.push(String::new());
        shown += 1;
    }
    let rest: usize = blocks[shown..].iter().map(|block| block.count).sum();
    if rest > 0 {
        lines.push(format!("  … and {rest} more; --json has all"));
        lines.push(String::new());
    }
    lines
}

/// What drifted and how, in a sentence.
pub(in crate::report) fn heading(block: &Block<'_>, style: Style<'_>) -> String {
    let drift = block.first;
    let address = match &block.address {
        Some(address) => format!("{}/{}", address.group, block.slots.text()),
        None => visible(&drift.address),
    };
    let which = match block.count {
        1 => visible(&drift.provider_id),
        count => counted(count, "instance"),
    };
    let address = style.bold(&style.address(address));
    let single = block.count == 1;
    let what = match (drift.kind, single) {
        (DriftKind::Changed, true) => format!("{address} has changed ({which})"),
        (DriftKind::Changed, false) => format!("{address} have changed ({which})"),
        (DriftKind::Missing, single) => {
            let (are, gone) = if single {
                ("is", "it was deleted")
            } else {
                ("are", "they were deleted")
            };
            let said = drift
                .changes
                .first()
                .and_then(|it| it.observed.as_ref()?.as_str());
            let why = said.map_or_else(|| gone.to_owned(), visible);
            format!("{address} {are} missing ({which}): {why}")
        }
        (DriftKind::Unknown, true) => format!(
            "{address} is unknown ({which}): it carries this shard's tags and isn't recorded"
        ),
        (DriftKind::Unknown, false) => format!(
            "{address} are unknown ({which}): they carry this shard's tags and aren't recorded"
        ),
        (DriftKind::Duplicate, _) => {
            format!("{address} is duplicate ({which}): another instance has the slot")
        }
    };
    let accepted = if drift.accepted && drift.accepted_because.is_empty() {
        style.faint(" (accepted: ignore_changes)")
    } else {
        String::new()
    };
    format!("{what}{accepted}")
}

fn block_lines(block: &Block<'_>, style: Style<'_>) -> Vec<String> {
    let drift = block.first;
    let mut lines = vec![style.title(&heading(block, style))];
    let accepted = drift.accepted_because.iter().map(|it| ("accepted", it));
    let expired = drift.expired.iter().map(|it| ("was accepted", it));
    lines.extend(accepted.chain(expired).map(|(is, because)| {
        let until = because.until.as_ref();
        let until = until.map_or_else(String::new, |until| format!(" until {}", visible(until)));
        let reason = visible(&because.reason);
        style.remark(&format!("{is}{until}: {reason}; {}", because.written_at))
    }));
    // The heading already has the reason why an instance is missing.
    let changes = drift.changes.iter();
    for change in changes.filter(|_| drift.kind != DriftKind::Missing) {
        attribute(change, style, &mut lines);
    }
    lines
}

fn attribute(change: &DriftedAttribute, style: Style<'_>, lines: &mut Vec<String>) {
    let sign = match (&change.recorded, &change.observed) {
        (None, _) => Sign::Create,
        (_, None) => Sign::Delete,
        _ => Sign::Update,
    };
    let path = visible(&change.path);
    let sides = (&change.recorded, &change.observed);
    if let Some(parts) = userdata::changed(sign, &change.path, sides, DIFF_LINES) {
        let mut written = Vec::new();
        entry::write(&[parts], 0, style, &mut written);
        // Drift is indented less than a plan.
        let outdented = |line: &String| line.replacen("  ", "", 1);
        lines.extend(written.iter().map(outdented));
        return;
    }
    if let (Some(Value::String(old)), Some(Value::String(new))) =
        (&change.recorded, &change.observed)
        && (old.contains('\n') || new.contains('\n'))
    {
        lines.push(style.row(4, sign, &format!("{path}:")));
        let diff = value::line_diff(old, new, DIFF_LINES);
        lines.extend(diff.iter().map(|it| style.text_row(8, it.sign, &it.text)));
        return;
    }
    // Both sides are masked, so the difference isn't visible.
    if change.recorded == change.observed {
        lines.push(style.row(4, sign, &format!("{path}: {HIDDEN}")));
        return;
    }
    let room = style
        .columns()
        .saturating_sub(12 + path.chars().count())
        .max(40);
    let (recorded, observed) = match (&change.recorded, &change.observed) {
        (Some(Value::String(old)), Some(Value::String(new)))
            if old.chars().count() + new.chars().count() > room =>
        {
            value::around_difference(old, new, room / 2)
        }
        (recorded, observed) => {
            let text = |value: &Option<Value>| match value {
                Some(value) => value::short(value, room / 2),
                None => "(none)".to_owned(),
            };
            (text(recorded), text(observed))
        }
    };
    lines.push(style.row(4, sign, &format!("{path}: {recorded} → {observed}")));
}
