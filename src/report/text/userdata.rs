//! Shows userdata part by part.
//!
//! In: userdata before and after, as text. Out: an [`Entry`] with the parts that differ,
//! decompressed; `None` if a line diff is just as good. Must not: show a masked line.

use nstance_cloudinit::opened::{Opened, open};
use serde_json::Value;

use super::entry::Entry;
use super::paint::Sign;
use super::value::{self, Line};
use crate::diagnostic::counted;
use crate::plan::diff::USERDATA;
use crate::sensitivity::HIDDEN_LINE;

/// The minimum number of lines for a part.
const LEAST_LINES: usize = 4;

/// Shows a change of userdata of parts, or that is packed, part by part; `None` for anything else.
pub(in crate::report) fn changed(
    sign: Sign,
    path: &str,
    sides: (&Option<Value>, &Option<Value>),
    limit: usize,
) -> Option<Entry> {
    match sides {
        _ if path != USERDATA => None,
        (Some(Value::String(old)), Some(Value::String(new))) => differing(sign, old, new, limit),
        (None, Some(Value::String(new))) => taken_apart(sign, new, limit),
        _ => None,
    }
}

/// What differs between the parts of two userdata; of all texts at most about `limit` lines. `None`
/// where neither consists of parts, or is packed.
fn differing(sign: Sign, old: &str, new: &str, limit: usize) -> Option<Entry> {
    let (old, new) = (opened(old), opened(new));
    if is_plain(old.as_ref()) && is_plain(new.as_ref()) {
        return None;
    }
    let (old, new) = (old?, new?);
    let (old, new) = (parts_of(&old), parts_of(&new));
    let pairs = pairs(&old, &new);
    let differing = pairs.iter().filter(|pair| pair.differs()).count();
    if differing == 0 {
        return None;
    }
    let mut room = Room::new(limit, differing);
    let mut entries: Vec<Entry> = pairs
        .iter()
        .filter(|pair| pair.differs())
        .map(|pair| pair.entry(&mut room))
        .collect();
    let same = pairs.len() - differing;
    if same > 0 {
        let same = counted(same, "unchanged part");
        entries.push(Entry::comment(format!("# ({same} hidden)")));
    }
    Some(Entry::object(sign, USERDATA, entries))
}

/// The parts of userdata; `None` where it has none, and isn't packed.
pub(super) fn taken_apart(sign: Sign, text: &str, limit: usize) -> Option<Entry> {
    let whole = opened(text)?;
    if is_plain(Some(&whole)) {
        return None;
    }
    let parts = parts_of(&whole);
    let mut room = Room::new(limit, parts.len());
    let entries = parts.iter().map(|part| part.entry(sign, &mut room));
    Some(Entry::object(sign, USERDATA, entries.collect()))
}

/// The lines left for the remaining parts.
struct Room {
    lines: usize,
    parts: usize,
}

impl Room {
    fn new(lines: usize, parts: usize) -> Self {
        Self { lines, parts }
    }

    /// The lines of the next part: as many as leave the others their minimum.
    fn lines(&mut self, make: impl FnOnce(usize) -> Vec<Line>) -> Vec<Line> {
        self.parts = self.parts.saturating_sub(1);
        let others = self.parts * LEAST_LINES;
        let lines = make(self.lines.saturating_sub(others).max(LEAST_LINES));
        self.lines = self.lines.saturating_sub(lines.len());
        lines
    }
}

/// Decodes userdata. `None` if a mask damages it: a masked line of base64 makes the rest
/// unreadable.
fn opened(text: &str) -> Option<Opened> {
    let whole = open(text.as_bytes());
    let is_encoded = |part: &&Opened| {
        let mut headers = part.headers.iter();
        headers.any(|(name, value)| {
            name.eq_ignore_ascii_case("content-transfer-encoding")
                && !value.trim().eq_ignore_ascii_case("7bit")
        })
    };
    let leaves = whole.leaves();
    // Masks of changed lines are numbered.
    let hidden = HIDDEN_LINE.trim_end_matches(')');
    let is_spoilt = text.contains(hidden) && leaves.iter().any(is_encoded);
    let is_damaged = leaves.iter().any(|part| part.problem.is_some());
    (!is_spoilt && !is_damaged).then_some(whole)
}

fn is_plain(opened: Option<&Opened>) -> bool {
    opened.is_some_and(|opened| opened.parts.is_empty() && opened.packing.is_empty())
}

/// A part, and its position.
struct Part<'o> {
    opened: &'o Opened,
    /// Its number, from 1.
    number: usize,
    /// The key to match it with: its name, or its type with an index.
    key: (&'o str, Option<usize>),
}

impl Part<'_> {
    fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.opened.content).ok()
    }

    fn title(&self) -> String {
        let kind = &self.opened.content_type;
        match &self.opened.filename {
            Some(name) => format!("{} ({kind})", value::key_text(name)),
            None => format!("part {} ({kind})", self.number),
        }
    }

    fn size(&self) -> String {
        match self.text() {
            Some(text) => format!("({})", counted(text.lines().count(), "line")),
            None => format!("(binary, {})", counted(self.opened.content.len(), "byte")),
        }
    }

    fn entry(&self, sign: Sign, room: &mut Room) -> Entry {
        let name = value::visible(&self.title());
        match self.text() {
            Some(text) => {
                let lines = room.lines(|limit| value::text_lines(text, limit));
                Entry::text(sign, name, lines)
            }
            None => Entry::line(sign, name, self.size()),
        }
    }
}

fn parts_of(whole: &Opened) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for (index, opened) in whole.leaves().into_iter().enumerate() {
        let key = match &opened.filename {
            Some(name) => (&**name, None),
            None => {
                let kind = &*opened.content_type;
                let before = parts.iter().filter(|part| {
                    part.opened.filename.is_none() && part.opened.content_type == kind
                });
                (kind, Some(before.count()))
            }
        };
        parts.push(Part {
            opened,
            number: index + 1,
            key,
        });
    }
    parts
}

/// A part before and after.
enum Pair<'p> {
    Both(&'p Part<'p>, &'p Part<'p>),
    Comes(&'p Part<'p>),
    Goes(&'p Part<'p>),
}

/// Pairs of matching parts in the new order, then removed parts.
fn pairs<'p>(old: &'p [Part<'p>], new: &'p [Part<'p>]) -> Vec<Pair<'p>> {
    let of = |parts: &'p [Part<'p>], key: (&str, Option<usize>)| {
        parts.iter().find(|part| part.key == key)
    };
    let kept = new.iter().map(|part| match of(old, part.key) {
        Some(before) => Pair::Both(before, part),
        None => Pair::Comes(part),
    });
    let gone = old.iter().filter(|part| of(new, part.key).is_none());
    kept.chain(gone.map(Pair::Goes)).collect()
}

impl Pair<'_> {
    fn differs(&self) -> bool {
        match self {
            Self::Both(Part { opened: old, .. }, Part { opened: new, .. }) => {
                old.content != new.content || old.content_type != new.content_type
            }
            Self::Comes(_) | Self::Goes(_) => true,
        }
    }

    fn entry(&self, room: &mut Room) -> Entry {
        let title = |part: &Part<'_>| value::visible(&part.title());
        match self {
            Self::Both(old, new) => match (old.text(), new.text()) {
                (Some(before), Some(after)) if before != after => {
                    let diff = room.lines(|limit| value::line_diff(before, after, limit));
                    Entry::text(Sign::Update, title(new), diff)
                }
                (Some(_), Some(_)) => Entry::line(Sign::Update, title(old), title(new)),
                _ => {
                    let change = format!("{} -> {}", old.size(), new.size());
                    Entry::line(Sign::Update, title(new), change)
                }
            },
            Self::Comes(new) => new.entry(Sign::Create, room),
            Self::Goes(old) => {
                Entry::line(Sign::Delete, title(old), format!("{} -> null", old.size()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
        Content-Type: text/x-shellscript\nContent-Transfer-Encoding: base64\n\n\
        IyEvYmluL3NoCmVjaG8gw6kK\n--b--\n";

    #[test]
    fn only_what_has_parts_or_is_packed_is_opened() {
        let plain = "#!/bin/sh\necho a\n";
        assert!(differing(Sign::Update, plain, "#!/bin/sh\n", 9).is_none());
        assert!(differing(Sign::Update, plain, SCRIPT, 9).is_some());
        // Nothing in it differs.
        assert!(differing(Sign::Update, SCRIPT, &SCRIPT.replace("=b", "=\"b\""), 9).is_none());
        assert!(taken_apart(Sign::Create, plain, 9).is_none());
        assert!(taken_apart(Sign::Create, SCRIPT, 9).is_some());
        assert!(taken_apart(Sign::Create, "IyEvYmluL3NoCg==", 9).is_some());
    }

    #[test]
    fn base64_with_hidden_lines_is_not_opened() {
        for hidden in ["(sensitive line)", "(sensitive line 12)"] {
            let covered = SCRIPT.replace("IyEvYmluL3NoCmVjaG8gw6kK", hidden);
            assert!(taken_apart(Sign::Create, &covered, 9).is_none());
            assert!(differing(Sign::Update, &covered, SCRIPT, 9).is_none());
        }
    }

    #[test]
    fn a_long_part_leaves_the_others_their_least() {
        let mut room = Room::new(20, 3);
        let many = |limit: usize| value::text_lines(&"a\n".repeat(99), limit);
        let few = |_: usize| value::text_lines("a\n", 9);
        assert_eq!(room.lines(many).len(), 12 + 1);
        assert_eq!(room.lines(few).len(), 1);
        assert_eq!(room.lines(many).len(), 6 + 1);
        assert_eq!(room.lines(many).len(), LEAST_LINES + 1);
    }

    #[test]
    fn parts_are_found_again_by_name_or_by_type() {
        let part = |kind: &str, name: Option<&str>, content: &str| Opened {
            content_type: kind.to_owned(),
            filename: name.map(str::to_owned),
            content: content.into(),
            ..Opened::default()
        };
        let whole = |parts: Vec<Opened>| Opened {
            parts,
            ..Opened::default()
        };
        let old = whole(vec![
            part("a", None, "1"),
            part("b", Some("x"), "2"),
            part("a", None, "3"),
        ]);
        let new = whole(vec![
            part("b", Some("y"), "2"),
            part("a", None, "1"),
            part("a", None, "4"),
        ]);
        let (old, new) = (parts_of(&old), parts_of(&new));
        let found: Vec<_> = pairs(&old, &new)
            .iter()
            .map(|pair| match pair {
                Pair::Both(old, new) => (old.number, new.number),
                Pair::Comes(new) => (0, new.number),
                Pair::Goes(old) => (old.number, 0),
            })
            .collect();
        assert_eq!(found, [(0, 1), (1, 2), (3, 3), (2, 0)]);
    }
}
