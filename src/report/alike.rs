//! Compares values of two instances and ignores what identifies them.
//!
//! In: values of two instances, and the identity of each. Out: whether they are alike. Must not:
//! render.
//!
//! A thousand instances whose userdata contains their own id are one change to a reader. Two texts
//! are compared in parallel; at a difference, both must be at their own id, address, zone or
//! number, which is skipped. Nothing is copied, so that comparing 100,000 texts takes no longer
//! than reading them.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::Value;

use crate::plan::change::{Change, InstanceView};

/// The length of the short id in templates.
const SHORT_ID: usize = 8;

/// The number of zones in a group's changes, counted on first use.
#[derive(Debug)]
pub(super) struct Zones<'a> {
    changes: &'a [Change],
    count: OnceLock<u64>,
}

impl<'a> Zones<'a> {
    /// The zones of one group's changes.
    pub(super) fn of(changes: &'a [Change]) -> Self {
        Self {
            changes,
            count: OnceLock::new(),
        }
    }

    fn count(&self) -> u64 {
        *self.count.get_or_init(|| {
            let zones = self
                .changes
                .iter()
                .filter_map(place)
                .map(|side| &*side.zone);
            zones.collect::<BTreeSet<_>>().len().max(1) as u64
        })
    }
}

/// The side with the instance's placement.
pub(super) fn place(change: &Change) -> Option<&InstanceView> {
    change.after.as_deref().or(change.before.as_deref())
}

/// The identity of an instance, computed on first use.
pub(super) struct Own<'a> {
    sides: [Option<&'a InstanceView>; 2],
    slot: u64,
    zones: &'a Zones<'a>,
    words: OnceCell<Words<'a>>,
}

type Words<'a> = [Option<&'a str>; 14];

impl<'a> Own<'a> {
    /// The identity in both sides of a change.
    pub(super) fn of(change: &'a Change, zones: &'a Zones<'a>) -> Self {
        let sides = [change.before.as_deref(), change.after.as_deref()];
        Self::of_sides(sides, change.address.slot, zones)
    }

    /// The identity in both sides of a slot's instance.
    pub(super) fn of_sides(
        sides: [Option<&'a InstanceView>; 2],
        slot: u32,
        zones: &'a Zones<'a>,
    ) -> Self {
        Self {
            sides,
            slot: slot.into(),
            zones,
            words: OnceCell::new(),
        }
    }

    fn words(&self) -> &Words<'a> {
        self.words.get_or_init(|| {
            let mut words = [None; 14];
            for (side, words) in self.sides.iter().zip(words.chunks_mut(7)) {
                if let Some(side) = side {
                    words.copy_from_slice(&side_words(side));
                }
            }
            words
        })
    }

    /// The slot's index, its number from 1, and its index in its zone.
    fn numbers(&self) -> [u64; 3] {
        [self.slot, self.slot + 1, self.slot / self.zones.count()]
    }
}

fn side_words(side: &InstanceView) -> [Option<&str>; 7] {
    let id = &*side.instance_id;
    [
        Some(id),
        id.len()
            .checked_sub(SHORT_ID)
            .and_then(|start| id.get(start..)),
        side.provider_id.as_deref(),
        Some(&*side.zone),
        side.subnet.as_deref(),
        side.ip4.as_deref(),
        side.ip6.as_deref(),
    ]
}

/// Whether two JSON values are alike.
pub(super) fn values(a: &Value, own_a: &Own<'_>, b: &Value, own_b: &Own<'_>) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => texts(a, own_a, b, own_b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| values(a, own_a, b, own_b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((key_a, a), (key_b, b))| key_a == key_b && values(a, own_a, b, own_b))
        }
        _ => a == b,
    }
}

/// Whether two values that may be absent are alike.
pub(super) fn optional(
    a: Option<&Value>,
    own_a: &Own<'_>,
    b: Option<&Value>,
    own_b: &Own<'_>,
) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => values(a, own_a, b, own_b),
        (None, None) => true,
        _ => false,
    }
}

/// Whether two texts are alike.
pub(super) fn texts(a: &str, own_a: &Own<'_>, b: &str, own_b: &Own<'_>) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let (mut at_a, mut at_b) = (0, 0);
    loop {
        let same = common_prefix(&a[at_a..], &b[at_b..]);
        at_a += same;
        at_b += same;
        if at_a == a.len() && at_b == b.len() {
            return true;
        }
        match skip_word(a, at_a, own_a, b, at_b, own_b)
            .or_else(|| skip_number(a, at_a, own_a, b, at_b, own_b))
        {
            Some(past) => (at_a, at_b) = past,
            None => return false,
        }
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const STRIDE: usize = 128;
    let equal = a
        .chunks(STRIDE)
        .zip(b.chunks(STRIDE))
        .take_while(|(a, b)| a == b)
        .count()
        * STRIDE;
    let start = equal.min(a.len()).min(b.len());
    start
        + a[start..]
            .iter()
            .zip(&b[start..])
            .take_while(|(a, b)| a == b)
            .count()
}

/// The positions after each text's own word, if the difference is within one.
fn skip_word(
    a: &[u8],
    at_a: usize,
    own_a: &Own<'_>,
    b: &[u8],
    at_b: usize,
    own_b: &Own<'_>,
) -> Option<(usize, usize)> {
    own_a
        .words()
        .iter()
        .zip(own_b.words())
        .find_map(|(word_a, word_b)| {
            let (word_a, word_b) = (word_a.as_ref()?.as_bytes(), word_b.as_ref()?.as_bytes());
            // Skipping an equal word would loop forever.
            if word_a == word_b {
                return None;
            }
            let shared = common_prefix(word_a, word_b);
            let (start_a, start_b) = (at_a.checked_sub(shared)?, at_b.checked_sub(shared)?);
            let past = (start_a + word_a.len(), start_b + word_b.len());
            (a[start_a..].starts_with(word_a) && b[start_b..].starts_with(word_b)).then_some(past)
        })
}

/// The positions after each text's own number, if the difference is within one; ignores leading
/// zeros.
fn skip_number(
    a: &[u8],
    at_a: usize,
    own_a: &Own<'_>,
    b: &[u8],
    at_b: usize,
    own_b: &Own<'_>,
) -> Option<(usize, usize)> {
    let (number_a, end_a) = number_at(a, at_a)?;
    let (number_b, end_b) = number_at(b, at_b)?;
    let mut numbers = own_a.numbers().into_iter().zip(own_b.numbers());
    let own = numbers.any(|own| own == (number_a, number_b));
    // After an equal number there is nothing to skip.
    (own && (end_a > at_a || end_b > at_b)).then_some((end_a, end_b))
}

/// The number at or directly before a position, and its end.
fn number_at(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let digit = |byte: &&u8| byte.is_ascii_digit();
    let start = at - text[..at].iter().rev().take_while(digit).count();
    let end = at + text[at..].iter().take_while(digit).count();
    let number = std::str::from_utf8(&text[start..end]).ok()?.parse().ok()?;
    Some((number, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own<'a>(id: &'a str, zone: &'a str, slot: u64, zones: &'a Zones<'a>) -> Own<'a> {
        let mut words = [None; 14];
        words[7] = Some(id);
        words[8] = id.get(id.len() - SHORT_ID..);
        words[10] = Some(zone);
        Own {
            sides: [None, None],
            slot,
            zones,
            words: OnceCell::from(words),
        }
    }

    #[test]
    fn texts_may_differ_in_what_is_their_own() {
        let zones = &Zones {
            changes: &[],
            count: OnceLock::from(3),
        };
        let a = own("knd0aaaaaaaaaaaaaaaaaaaaaa1234", "us-1a", 9, zones);
        let b = own("knd0aaaaaaaaaaaaaaaaaaaaaa5678", "us-1b", 12, zones);
        for (text_a, text_b, expected) in [
            ("same", "same", true),
            ("same", "some", false),
            (
                "id knd0aaaaaaaaaaaaaaaaaaaaaa1234.",
                "id knd0aaaaaaaaaaaaaaaaaaaaaa5678.",
                true,
            ),
            ("aaaa1234", "aaaa5678", true),
            ("aaaa1234", "aaaa5679", false),
            ("web-9 in us-1a", "web-12 in us-1b", true),
            ("web-009", "web-012", true),
            ("n 10", "n 13", true),
            ("n 3", "n 4", true),
            ("3", "3", true),
            ("n 10", "n 12", false),
            ("3x", "3y", false),
            ("9", "12 ", false),
            ("web-9", "web-12 and more", false),
        ] {
            assert_eq!(
                texts(text_a, &a, text_b, &b),
                expected,
                "{text_a} ~ {text_b}"
            );
        }
    }

    #[test]
    fn long_texts_are_compared_to_their_end() {
        let zones = &Zones::of(&[]);
        let (a, b) = (
            own("knd0aaaaaaaa1234", "z", 0, zones),
            own("knd0aaaaaaaa5678", "z", 1, zones),
        );
        let filler = "x".repeat(1_000);
        let text = |id: &str, end: &str| format!("{filler}{id}{filler}{id}{filler}{end}");
        let (one, two) = (text("knd0aaaaaaaa1234", "e"), text("knd0aaaaaaaa5678", "e"));
        assert!(texts(&one, &a, &two, &b));
        assert!(!texts(&one, &a, &text("knd0aaaaaaaa5678", "f"), &b));
    }
}
