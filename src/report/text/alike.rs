//! Whether two instances' values say the same apart from who the instances are.
//!
//! In: values of two instances, and what is each one's own. Out: yes or no. May not: render.
//!
//! A thousand instances whose userdata holds their own id are one change to a reader. Two texts
//! are walked side by side; where they part, both must be at their own id, address, zone or number,
//! which is then skipped. Nothing is copied, so that 100,000 texts take no longer than reading them.

use serde_json::Value;

use crate::plan::change::{Change, Side};

/// The characters of an instance id that templates know as its short id.
const SHORT_ID: usize = 8;

/// What is an instance's own.
pub(super) struct Own<'a> {
    words: [Option<&'a str>; 14],
    numbers: [u64; 3],
}

impl<'a> Own<'a> {
    /// What the sides of a change call their own, in a group spread over `zones` zones.
    pub(super) fn of(change: &'a Change, zones: usize) -> Self {
        let sides = [change.before.as_deref(), change.after.as_deref()];
        Self::of_sides(sides, change.address.slot, zones)
    }

    /// What the sides of one slot's instance call their own.
    pub(super) fn of_sides(sides: [Option<&'a Side>; 2], slot: u32, zones: usize) -> Self {
        let mut words = [None; 14];
        for (side, words) in sides.into_iter().zip(words.chunks_mut(7)) {
            if let Some(side) = side {
                words.copy_from_slice(&side_words(side));
            }
        }
        let slot = u64::from(slot);
        Self {
            words,
            numbers: [slot, slot + 1, slot / zones.max(1) as u64],
        }
    }
}

fn side_words(side: &Side) -> [Option<&str>; 7] {
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

/// Where both texts go on after each one's own word, if they part inside of it.
fn skip_word(
    a: &[u8],
    at_a: usize,
    own_a: &Own<'_>,
    b: &[u8],
    at_b: usize,
    own_b: &Own<'_>,
) -> Option<(usize, usize)> {
    own_a
        .words
        .iter()
        .zip(&own_b.words)
        .find_map(|(word_a, word_b)| {
            let (word_a, word_b) = (word_a.as_ref()?.as_bytes(), word_b.as_ref()?.as_bytes());
            let shared = common_prefix(word_a, word_b);
            let (start_a, start_b) = (at_a.checked_sub(shared)?, at_b.checked_sub(shared)?);
            let past = (start_a + word_a.len(), start_b + word_b.len());
            // A word that both share would be skipped without getting on.
            let parts = word_a != word_b;
            (parts && a[start_a..].starts_with(word_a) && b[start_b..].starts_with(word_b))
                .then_some(past)
        })
}

/// Where both texts go on after each one's own number, if they part inside of one; leading zeros
/// don't matter.
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
    let own = own_a
        .numbers
        .iter()
        .zip(&own_b.numbers)
        .any(|(own_a, own_b)| number_a == *own_a && number_b == *own_b);
    // Behind an equal number nothing would be skipped.
    (own && (end_a > at_a || end_b > at_b)).then_some((end_a, end_b))
}

/// The number that a position lies in or right behind, and where it ends.
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

    fn own<'a>(id: &'a str, zone: &'a str, slot: u64) -> Own<'a> {
        let mut words = [None; 14];
        words[7] = Some(id);
        words[8] = id.get(id.len() - SHORT_ID..);
        words[10] = Some(zone);
        Own {
            words,
            numbers: [slot, slot + 1, slot / 3],
        }
    }

    #[test]
    fn texts_may_differ_in_what_is_their_own() {
        let a = own("knd0aaaaaaaaaaaaaaaaaaaaaa1234", "us-1a", 9);
        let b = own("knd0aaaaaaaaaaaaaaaaaaaaaa5678", "us-1b", 10);
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
            ("web-9 in us-1a", "web-10 in us-1b", true),
            ("web-009", "web-010", true),
            ("n 10", "n 11", true),
            ("3", "3", true),
            ("n 10", "n 12", false),
            ("3x", "3y", false),
            ("9", "10 ", false),
            ("web-9", "web-10 and more", false),
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
        let (a, b) = (
            own("knd0aaaaaaaa1234", "z", 0),
            own("knd0aaaaaaaa5678", "z", 1),
        );
        let filler = "x".repeat(1_000);
        let text = |id: &str, end: &str| format!("{filler}{id}{filler}{id}{filler}{end}");
        let (one, two) = (text("knd0aaaaaaaa1234", "e"), text("knd0aaaaaaaa5678", "e"));
        assert!(texts(&one, &a, &two, &b));
        assert!(!texts(&one, &a, &text("knd0aaaaaaaa5678", "f"), &b));
    }
}
