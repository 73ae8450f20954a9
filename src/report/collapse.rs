//! Collapses equal changes.
//!
//! In: changes, sorted by address. Out: [`Block`]s, each for slots of one group whose changes
//! differ only in the instances' identity. Must not: render.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::mem::discriminant;

use super::alike::{self, Own, Zones, place};
use crate::plan::change::{Action, AttributeChange, Change, InstanceView, Reason};
use crate::spec::SpecBody;

/// How many different changes of a group are compared with a further one.
pub(super) const REMEMBERED: usize = 8;

/// The maximum number of slot ranges in a heading.
const RANGES: usize = 6;

/// Changes that are alike.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// The change that is shown.
    pub(super) first: &'a Change,
    /// Its slots.
    pub(super) slots: Slots,
    /// The number of instances.
    pub(super) count: usize,
    /// Their zones.
    pub(super) zones: BTreeSet<&'a str>,
    /// Their subnets.
    pub(super) subnets: BTreeSet<&'a str>,
    /// Whether the shown change has values of its own instance.
    pub(super) own_values: bool,
    /// The minimum age in seconds, if age is the reason.
    pub(super) least_age: Option<u64>,
}

/// Slots as inclusive ranges.
#[derive(Debug, Default, Clone)]
pub(super) struct Slots(Vec<(u32, u32)>);

impl Slots {
    pub(super) fn push(&mut self, slot: u32) {
        match self.0.last_mut() {
            Some((_, end)) if *end == slot || end.checked_add(1) == Some(slot) => *end = slot,
            _ => self.0.push((slot, slot)),
        }
    }

    /// `3`, `[0..9]`, `[0..4, 6]`
    pub(super) fn text(&self) -> String {
        let range = |(start, end): &(u32, u32)| match end - start {
            0 => start.to_string(),
            1 => format!("{start}, {end}"),
            _ => format!("{start}..{end}"),
        };
        if let [(start, end)] = self.0[..]
            && start == end
        {
            return start.to_string();
        }
        let mut text = String::from("[");
        for (index, slots) in self.0.iter().take(RANGES).enumerate() {
            let _ = write!(
                text,
                "{}{}",
                if index > 0 { ", " } else { "" },
                range(slots)
            );
        }
        text.push_str(if self.0.len() > RANGES { ", …]" } else { "]" });
        text
    }
}

/// Collapses changes; blocks are ordered by their first change. Stops after about `most` blocks and
/// also returns the remaining changes.
pub(super) fn collapse(changes: &[Change], most: usize) -> (Vec<Block<'_>>, &[Change]) {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut done = 0;
    for group in changes.chunk_by(|a, b| a.address.group == b.address.group) {
        let zones = Zones::of(group);
        let start = blocks.len();
        for change in group {
            let from = start.max(blocks.len().saturating_sub(REMEMBERED));
            // No block that is shown can still grow.
            if from > most {
                return (blocks, &changes[done..]);
            }
            let known = blocks[from..]
                .iter_mut()
                .rev()
                .find(|block| alike_changes(block.first, change, &zones));
            match known {
                Some(block) => block.add(change),
                None => blocks.push(Block::new(change)),
            }
            done += 1;
        }
    }
    (blocks, &[])
}

impl<'a> Block<'a> {
    fn new(first: &'a Change) -> Self {
        let mut block = Self {
            first,
            slots: Slots::default(),
            count: 0,
            zones: BTreeSet::new(),
            subnets: BTreeSet::new(),
            own_values: false,
            least_age: None,
        };
        block.add(first);
        block
    }

    fn add(&mut self, change: &'a Change) {
        self.slots.push(change.address.slot);
        self.count += 1;
        if let Some(side) = place(change) {
            self.zones.insert(&side.zone);
            self.subnets.extend(side.subnet.as_deref());
        }
        self.own_values |= !same_specs(self.first, change);
        for reason in &change.reasons {
            if let Reason::Expired { age_seconds } = reason {
                let least = self.least_age.unwrap_or(u64::MAX).min(*age_seconds);
                self.least_age = Some(least);
            }
        }
    }

    /// `default/web/3`, `default/web/[0..9]`
    pub(super) fn address(&self) -> String {
        format!("{}/{}", self.first.address.group, self.slots.text())
    }
}

fn same_specs(a: &Change, b: &Change) -> bool {
    let digest = |side: &Option<Box<InstanceView>>| side.as_ref().map(|side| side.digest);
    digest(&a.before) == digest(&b.before) && digest(&a.after) == digest(&b.after)
}

/// Whether two changes of a group look the same to a reader.
fn alike_changes(a: &Change, b: &Change, zones: &Zones<'_>) -> bool {
    if a.action != b.action
        || a.deposed.is_some() != b.deposed.is_some()
        || !alike_reasons(&a.reasons, &b.reasons)
        || a.attributes.len() != b.attributes.len()
    {
        return false;
    }
    let (own_a, own_b) = (&Own::of(a, zones), &Own::of(b, zones));
    let same_specs = same_specs(a, b);
    let attributes = a
        .attributes
        .iter()
        .zip(&b.attributes)
        .all(|(x, y)| alike_attributes(x, own_a, y, own_b, same_specs));
    if !attributes {
        return false;
    }
    // An update or replacement shows differences, a deletion little more than the type.
    let sides = match a.action {
        Action::Create | Action::Adopt => (&a.after, &b.after),
        Action::Delete | Action::Forget => {
            return same_specs || instance_type(a) == instance_type(b);
        }
        Action::Update | Action::CreateThenDelete | Action::DeleteThenCreate | Action::NoOp => {
            return true;
        }
    };
    match sides {
        (Some(a), Some(b)) => a.digest == b.digest || alike_specs(&a.spec, own_a, &b.spec, own_b),
        (None, None) => true,
        _ => false,
    }
}

fn instance_type(change: &Change) -> Option<&str> {
    place(change).map(|side| &*side.spec.head.instance_type)
}

fn alike_reasons(a: &[Reason], b: &[Reason]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| match (a, b) {
            (Reason::Expired { .. }, Reason::Expired { .. }) => true,
            (Reason::Moved { from: a }, Reason::Moved { from: b }) => {
                group_part(a) == group_part(b)
            }
            _ => discriminant(a) == discriminant(b) && a == b,
        })
}

/// `default/web/3` without its slot.
pub(super) fn group_part(address: &str) -> &str {
    address.rsplit_once('/').map_or(address, |(group, _)| group)
}

fn alike_attributes(
    a: &AttributeChange,
    own_a: &Own<'_>,
    b: &AttributeChange,
    own_b: &Own<'_>,
    same_specs: bool,
) -> bool {
    if a.path != b.path
        || a.effect != b.effect
        || a.unknown != b.unknown
        || a.written_at != b.written_at
    {
        return false;
    }
    // Parts of a spec with equal digests are equal, so skip comparing them.
    let root = a.path.split('.').next().unwrap_or_default();
    if same_specs && matches!(root, "userdata" | "files" | "args" | "vars") {
        return true;
    }
    alike::optional(a.before.as_ref(), own_a, b.before.as_ref(), own_b)
        && alike::optional(a.after.as_ref(), own_a, b.after.as_ref(), own_b)
}

fn alike_specs(a: &SpecBody, own_a: &Own<'_>, b: &SpecBody, own_b: &Own<'_>) -> bool {
    let texts = |a: &str, b: &str| alike::texts(a, own_a, b, own_b);
    let maybe = |a: Option<&str>, b: Option<&str>| match (a, b) {
        (Some(a), Some(b)) => texts(a, b),
        (None, None) => true,
        _ => false,
    };
    a.head == b.head
        && a.args.len() == b.args.len()
        && a.args
            .iter()
            .zip(&b.args)
            .all(|((key_a, a), (key_b, b))| key_a == key_b && alike::values(a, own_a, b, own_b))
        && a.tags.len() == b.tags.len()
        && a.tags
            .iter()
            .zip(&b.tags)
            .all(|((key_a, a), (key_b, b))| key_a == key_b && texts(a, b))
        && alike::values(&a.vars, own_a, &b.vars, own_b)
        && maybe(userdata(a), userdata(b))
        && a.files.len() == b.files.len()
        && a.files
            .iter()
            .zip(&b.files)
            .all(|((name_a, a), (name_b, b))| {
                name_a == name_b
                    && a.kind == b.kind
                    && maybe(a.content.as_deref(), b.content.as_deref())
            })
}

fn userdata(body: &SpecBody) -> Option<&str> {
    body.userdata
        .as_ref()
        .map(|userdata| userdata.content.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_read_as_ranges() {
        for (slots, expected) in [
            (&[3][..], "3"),
            (&[0, 1], "[0, 1]"),
            (&[0, 1, 2], "[0..2]"),
            (&[0, 1, 2, 4, 7, 8, 9], "[0..2, 4, 7..9]"),
            (&[3, 3], "3"),
            (&[0, 2, 4, 6, 8, 10, 12], "[0, 2, 4, 6, 8, 10, …]"),
        ] {
            let mut ranges = Slots::default();
            for slot in slots {
                ranges.push(*slot);
            }
            assert_eq!(ranges.text(), expected);
        }
    }
}
