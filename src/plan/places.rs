//! Deals the slots of a group to its zones, and gives each its number and tag.
//!
//! In: the zones, the wanted size, what fills the slots now. Out: the slots by what happens to them,
//! each with its place. Must not: look at specs.
//!
//! A group grows into the lowest free slots and shrinks from the highest. A slot keeps zone, number
//! and tag for life, unless the group no longer lists the zone or the tag. It follows its tag to
//! another zone, so that no two slots exchange tags and what is configured for them. With
//! `rebalance`, slots also move so that zones stay even, and each zone uses the first tags of its
//! list.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::merge::zones::{Place, Seat, Zone, share};

/// The slots of a group by what happens to them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Slots {
    /// Filled and wanted, with their wanted places.
    pub(super) kept: Vec<(u32, Place)>,
    /// Empty and wanted.
    pub(super) grown: Vec<(u32, Place)>,
    /// Filled and no longer wanted.
    pub(super) surplus: Vec<u32>,
}

/// Arranges `size` slots. `filled` are the filled ones with their places; a number of 0 means that
/// it isn't known.
pub(super) fn arrange(
    zones: &[Zone],
    rebalances: bool,
    size: u32,
    filled: &BTreeMap<u32, Place>,
) -> Slots {
    let filled = &*with_tags_that_moved(zones, filled);
    let stays = if rebalances {
        stays_even(zones, size, filled)
    } else {
        filled.keys().copied().take(size as usize).collect()
    };
    let mut seats = Seats::new(zones);
    let mut slots = Slots::default();
    // Slots without a place of their own get one after all others have theirs.
    let mut homeless = Vec::new();
    for slot in &stays {
        match seats.keep(&filled[slot]) {
            Some(place) => slots.kept.push((*slot, place)),
            None => homeless.push(*slot),
        }
    }
    // Those with a tag come before those that take what is free.
    homeless.sort_by_key(|slot| !is_listed(zones, &filled[slot]));
    for slot in homeless {
        let place = seats.give_to(slot, &filled[&slot]);
        slots.kept.push((slot, place));
    }
    let mut free = (0..).filter(|slot| !stays.contains(slot));
    let missing = (size as usize).saturating_sub(stays.len());
    for slot in free.by_ref().take(missing) {
        let place = if rebalances {
            seats.give_even(size)
        } else {
            seats.give(slot as usize % zones.len())
        };
        // A slot that had to leave its place gets another one.
        if filled.contains_key(&slot) {
            slots.kept.push((slot, place));
        } else {
            slots.grown.push((slot, place));
        }
    }
    slots.kept.sort_unstable_by_key(|(slot, _)| *slot);
    let is_kept = |slot: &u32| slots.kept.binary_search_by_key(slot, |kept| kept.0).is_ok();
    slots.surplus = filled.keys().copied().filter(|it| !is_kept(it)).collect();
    slots
}

/// Whether a place's zone lists its tag.
fn is_listed(zones: &[Zone], place: &Place) -> bool {
    let mut zones = zones.iter().filter(|zone| zone.name == place.zone);
    zones.any(|zone| zone.tags.contains(&place.seat.tag))
}

/// The filled slots, those whose tag moved to another zone in that zone, with an unknown number.
fn with_tags_that_moved<'f>(
    zones: &[Zone],
    filled: &'f BTreeMap<u32, Place>,
) -> Cow<'f, BTreeMap<u32, Place>> {
    let zone_of: HashMap<&str, &Zone> = zones
        .iter()
        .flat_map(|zone| zone.tags.iter().map(move |tag| (&**tag, zone)))
        .collect();
    if zone_of.is_empty() {
        return Cow::Borrowed(filled);
    }
    let follow = |(slot, place): (&u32, &Place)| {
        let zone = zone_of.get(&*place.seat.tag);
        let place = match zone.filter(|zone| zone.name != place.zone) {
            Some(zone) => Place {
                zone: Arc::clone(&zone.name),
                seat: Seat {
                    number: 0,
                    tag: Arc::clone(&place.seat.tag),
                },
            },
            None => place.clone(),
        };
        (*slot, place)
    };
    Cow::Owned(filled.iter().map(follow).collect())
}

/// The slots that keep their places if zones are to be even.
fn stays_even(zones: &[Zone], size: u32, filled: &BTreeMap<u32, Place>) -> BTreeSet<u32> {
    let mut stays = BTreeSet::new();
    for (index, zone) in zones.iter().enumerate() {
        let wanted = share(zones.len(), size, index);
        let tags = &zone.tags[..wanted.min(zone.tags.len())];
        let fits = |place: &Place| {
            place.zone == zone.name && (zone.tags.is_empty() || tags.contains(&place.seat.tag))
        };
        let mut own: Vec<(u32, u32)> = filled
            .iter()
            .filter(|(_, place)| fits(place))
            .map(|(slot, place)| (place.seat.number, *slot))
            .collect();
        own.sort_unstable();
        stays.extend(own.into_iter().take(wanted).map(|(_, slot)| slot));
    }
    stays
}

/// The numbers and tags that are taken.
struct Seats<'z> {
    zones: &'z [Zone],
    index_of: HashMap<&'z str, usize>,
    taken: Vec<Taken>,
}

#[derive(Default)]
struct Taken {
    slots: usize,
    numbers: BTreeSet<u32>,
    /// All numbers below it are taken.
    lowest: u32,
    tags: BTreeSet<Arc<str>>,
}

impl<'z> Seats<'z> {
    fn new(zones: &'z [Zone]) -> Self {
        let index_of = zones.iter().enumerate();
        Self {
            zones,
            index_of: index_of.map(|(index, zone)| (&*zone.name, index)).collect(),
            taken: zones.iter().map(|_| Taken::default()).collect(),
        }
    }

    /// The place of a slot that stays where it is; `None` if it can't.
    fn keep(&mut self, place: &Place) -> Option<Place> {
        let index = *self.index_of.get(&*place.zone)?;
        let tags = &self.zones[index].tags;
        let Seat { number, tag } = &place.seat;
        let taken = &mut self.taken[index];
        let is_tagged = if tags.is_empty() {
            tag.is_empty()
        } else {
            tags.contains(tag) && !taken.tags.contains(tag)
        };
        if *number == 0 || !is_tagged || !taken.numbers.insert(*number) {
            return None;
        }
        taken.slots += 1;
        taken.tags.insert(Arc::clone(tag));
        Some(place.clone())
    }

    /// A new place for a filled slot: in its zone if the group lists it.
    fn give_to(&mut self, slot: u32, place: &Place) -> Place {
        let same = self.index_of.get(&*place.zone).copied();
        let index = same.unwrap_or(slot as usize % self.zones.len());
        let mut given = self.give(index);
        // A tag comes and goes without another number.
        let number = place.seat.number;
        let taken = &mut self.taken[index];
        if same.is_some() && number != 0 && taken.numbers.insert(number) {
            taken.numbers.remove(&given.seat.number);
            taken.lowest = taken.lowest.min(given.seat.number - 1);
            given.seat.number = number;
        }
        let tag = &place.seat.tag;
        if self.zones[index].tags.contains(tag) && taken.tags.insert(Arc::clone(tag)) {
            taken.tags.remove(&given.seat.tag);
            given.seat.tag = Arc::clone(tag);
        }
        given
    }

    /// The next place in the first zone, in dealing order, that lacks slots.
    fn give_even(&mut self, size: u32) -> Place {
        let count = self.zones.len();
        let lacks = |index: &usize| self.taken[*index].slots < share(count, size, *index);
        let next = (0..count).filter(lacks).min_by_key(|index| {
            // The round of its next slot, then the order of zones.
            (self.taken[*index].slots, *index)
        });
        self.give(next.unwrap_or(0))
    }

    /// The next place in a zone: the lowest free number and the first free tag.
    fn give(&mut self, index: usize) -> Place {
        let zone = &self.zones[index];
        let taken = &mut self.taken[index];
        let mut number = taken.lowest + 1;
        while !taken.numbers.insert(number) {
            number += 1;
        }
        taken.lowest = number;
        taken.slots += 1;
        let mut tags = zone.tags.iter();
        let tag = tags.find(|tag| !taken.tags.contains(*tag)).cloned();
        taken.tags.extend(tag.clone());
        Place {
            zone: Arc::clone(&zone.name),
            seat: Seat {
                number,
                tag: tag.unwrap_or_default(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `a`, or `a:one,two`.
    fn zones(texts: &[&str]) -> Vec<Zone> {
        let zone = |text: &&str| {
            let (name, tags) = text.split_once(':').unwrap_or((text, ""));
            let tags = tags.split(',').filter(|tag| !tag.is_empty());
            Zone {
                name: name.into(),
                tags: tags.map(Arc::from).collect(),
            }
        };
        texts.iter().map(zone).collect()
    }

    /// `SLOT=ZONE/NUMBER`, or `SLOT=ZONE/NUMBER/TAG`.
    fn filled(text: &str) -> BTreeMap<u32, Place> {
        let one = |text: &str| {
            let (slot, place) = text.split_once('=').unwrap();
            let mut parts = place.split('/');
            let zone = parts.next().unwrap().into();
            let number = parts.next().unwrap().parse().unwrap();
            let tag = parts.next().unwrap_or_default().into();
            let seat = Seat { number, tag };
            (slot.parse().unwrap(), Place { zone, seat })
        };
        text.split_whitespace().map(one).collect()
    }

    fn told(slots: &Slots) -> String {
        let place = |sign: &str, (slot, place): &(u32, Place)| {
            let Seat { number, tag } = &place.seat;
            let tag = if tag.is_empty() {
                String::new()
            } else {
                format!("/{tag}")
            };
            format!("{sign}{slot}={}/{number}{tag}", place.zone)
        };
        let kept = slots.kept.iter().map(|it| place("", it));
        let grown = slots.grown.iter().map(|it| place("+", it));
        let surplus = slots.surplus.iter().map(|slot| format!("-{slot}"));
        let all: Vec<String> = kept.chain(grown).chain(surplus).collect();
        all.join(" ")
    }

    #[test]
    fn groups_grow_low_and_shrink_high() {
        for (before, size, wanted) in [
            ("", 3, "+0=z/1 +1=z/2 +2=z/3"),
            ("0=z/1 1=z/2 2=z/3", 2, "0=z/1 1=z/2 -2"),
            ("0=z/1 2=z/3", 2, "0=z/1 2=z/3"),
            ("0=z/1 2=z/3", 3, "0=z/1 2=z/3 +1=z/2"),
            ("1=z/2 5=z/6", 4, "1=z/2 5=z/6 +0=z/1 +2=z/3"),
            ("1=z/2 5=z/6 7=z/8", 1, "1=z/2 -5 -7"),
            ("4=z/5", 0, "-4"),
        ] {
            let slots = arrange(&zones(&["z"]), false, size, &filled(before));
            assert_eq!(told(&slots), wanted, "{before} to {size}");
            let even = arrange(&zones(&["z"]), true, size, &filled(before));
            assert_eq!(told(&even), wanted, "{before} to {size}, even");
        }
    }

    #[test]
    fn slots_keep_their_places() {
        for (listed, before, size, wanted) in [
            // They go round.
            (&["a", "b"][..], "", 3, "+0=a/1 +1=b/1 +2=a/2"),
            // A further zone moves none, and one that is gone all of its slots.
            (
                &["a", "b"],
                "0=a/1 1=a/2 2=a/3",
                4,
                "0=a/1 1=a/2 2=a/3 +3=b/1",
            ),
            (
                &["b"],
                "0=a/1 1=b/1 2=a/2 3=b/2",
                4,
                "0=b/3 1=b/1 2=b/4 3=b/2",
            ),
            // Holes get the numbers and tags that are free.
            (
                &["a:x,y", "b:u,v"],
                "0=a/1/x 3=b/2/v",
                4,
                "0=a/1/x 3=b/2/v +1=b/1/u +2=a/2/y",
            ),
            // A tag that is gone is exchanged for a free one.
            (
                &["a:two,three"],
                "0=a/1/one 1=a/2/two",
                2,
                "0=a/1/three 1=a/2/two",
            ),
            // A tag in front of the list changes nothing.
            (
                &["a:zero,one,two"],
                "0=a/1/one 1=a/2/two",
                2,
                "0=a/1/one 1=a/2/two",
            ),
            // Slots follow their tags to another zone.
            (
                &["a:p,q", "b:x,y"],
                "0=a/1/x 1=b/1/p 2=a/2/y 3=b/2/q",
                4,
                "0=b/1/x 1=a/1/p 2=b/2/y 3=a/2/q",
            ),
            // So do those that stay behind others.
            (
                &["a:p", "b:x,q"],
                "0=a/1/x 1=b/1/q 2=a/2/p",
                3,
                "0=b/2/x 1=b/1/q 2=a/2/p",
            ),
            // Tags come and go.
            (&["a:x,y"], "0=a/1 1=a/2", 2, "0=a/1/x 1=a/2/y"),
            (&["a"], "0=a/1/x 1=a/2/y", 2, "0=a/1 1=a/2"),
            // Numbers that aren't known.
            (&["a"], "0=a/0 1=a/1", 2, "0=a/2 1=a/1"),
        ] {
            let slots = arrange(&zones(listed), false, size, &filled(before));
            assert_eq!(told(&slots), wanted, "{listed:?}: {before} to {size}");
        }
    }

    #[test]
    fn even_zones_move_slots() {
        for (listed, before, size, wanted) in [
            (&["a", "b"][..], "0=a/1 1=a/2 2=a/3", 3, "0=a/1 1=a/2 2=b/1"),
            // Another order moves the remainder only.
            (&["b", "a"], "0=a/1 1=b/1 2=a/2", 3, "0=a/1 1=b/1 2=b/2"),
            (&["b"], "0=a/1 1=a/2", 2, "0=b/1 1=b/2"),
            // The first tags of the list are wanted.
            (
                &["a:two,three"],
                "0=a/1/one 1=a/2/two",
                2,
                "0=a/1/three 1=a/2/two",
            ),
            (
                &["a:zero,one,two"],
                "0=a/1/one 1=a/2/two",
                2,
                "0=a/1/one 1=a/2/zero",
            ),
            (&["a:x,y"], "0=a/1/x 1=a/2/y", 1, "0=a/1/x -1"),
            // Slots follow their tags to another zone.
            (
                &["a:p,q", "b:x,y"],
                "0=a/1/x 1=b/1/p 2=a/2/y 3=b/2/q",
                4,
                "0=b/1/x 1=a/1/p 2=b/2/y 3=a/2/q",
            ),
        ] {
            let slots = arrange(&zones(listed), true, size, &filled(before));
            assert_eq!(told(&slots), wanted, "{listed:?}: {before} to {size}");
        }
    }

    proptest! {
        /// Whatever came before: the size is reached, places are distinct, and a second look
        /// changes nothing.
        #[test]
        fn places_are_distinct_and_stable(
            count in 1_usize..4,
            later in 1_usize..4,
            sizes in (0_u32..12, 0_u32..12),
            tagged in any::<(bool, bool)>(),
            holes in prop::collection::btree_set(0_u32..12, 0..4),
            rebalances in any::<bool>(),
        ) {
            let of = |count: usize, tagged: bool| -> Vec<Zone> {
                let names = ["c", "a", "b"].into_iter().take(count);
                names.map(|name| Zone {
                    name: name.into(),
                    tags: (0..if tagged { 12 } else { 0 })
                        .map(|it| Arc::from(format!("{name}{it}")))
                        .collect(),
                }).collect()
            };
            let first = arrange(&of(count, tagged.0), rebalances, sizes.0, &BTreeMap::new());
            let mut filled: BTreeMap<u32, Place> = first.grown.into_iter().collect();
            filled.retain(|slot, _| !holes.contains(slot));
            let zones = of(later, tagged.1);
            let slots = arrange(&zones, rebalances, sizes.1, &filled);
            let all: BTreeMap<u32, Place> = slots.kept.iter().chain(&slots.grown).cloned().collect();
            prop_assert_eq!(all.len(), sizes.1 as usize);
            let seats: BTreeSet<_> = all.values()
                .map(|place| (place.zone.to_string(), place.seat.number)).collect();
            prop_assert_eq!(seats.len(), all.len());
            if tagged.1 {
                let tags: BTreeSet<_> = all.values().map(|place| &place.seat.tag).collect();
                prop_assert_eq!(tags.len(), all.len());
            }
            if rebalances {
                for (index, zone) in zones.iter().enumerate() {
                    let own = all.values().filter(|place| place.zone == zone.name).count();
                    prop_assert_eq!(own, share(zones.len(), sizes.1, index));
                }
            }
            let again = arrange(&zones, rebalances, sizes.1, &all);
            prop_assert_eq!(again.kept, all.into_iter().collect::<Vec<_>>());
            prop_assert!(again.grown.is_empty() && again.surplus.is_empty());
        }

        /// Without `rebalance`, further zones and tags move no slot, and neither does another size.
        #[test]
        fn what_is_added_moves_no_slot(
            counts in (1_usize..4, 0_usize..3),
            sizes in (0_u32..12, 0_u32..12),
            tagged in any::<bool>(),
            new_tags in 0_usize..3,
            holes in prop::collection::btree_set(0_u32..12, 0..4),
        ) {
            let of = |zones: usize, new_tags: usize| -> Vec<Zone> {
                let zone = |index: usize| {
                    let own = (0..if tagged { 12 } else { 0 }).map(|it| format!("z{index}-{it}"));
                    let new = (0..if tagged { new_tags } else { 0 }).map(|it| format!("n{index}-{it}"));
                    Zone {
                        name: format!("z{index}").into(),
                        tags: new.chain(own).map(Arc::from).collect(),
                    }
                };
                (0..zones).map(zone).collect()
            };
            let first = arrange(&of(counts.0, 0), false, sizes.0, &BTreeMap::new());
            let mut filled: BTreeMap<u32, Place> = first.grown.into_iter().collect();
            filled.retain(|slot, _| !holes.contains(slot));
            let slots = arrange(&of(counts.0 + counts.1, new_tags), false, sizes.1, &filled);
            for (slot, place) in &slots.kept {
                prop_assert_eq!(place, &filled[slot]);
            }
        }
    }
}
