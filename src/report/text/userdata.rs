//! Userdata as a plan shows it: opened, part by part.
//!
//! In: userdata before and after, as text. Out: an [`Entry`] with the parts that differ, packed ones
//! unpacked; none where line by line says as much. May not: show a line that was hidden.

use nstance_cloudinit::opened::{Opened, open};

use super::entry::Entry;
use super::paint::Sign;
use super::value::{self, counted};
use crate::marks::HIDDEN_LINE;

/// The least lines that a part gets, however many there are.
const LEAST_LINES: usize = 4;

/// What differs between the parts of two userdata; of all texts at most about `limit` lines. `None`
/// where neither consists of parts, or is packed.
pub(super) fn changed(sign: Sign, name: &str, old: &str, new: &str, limit: usize) -> Option<Entry> {
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
    let limit = (limit / differing).max(LEAST_LINES);
    let mut entries: Vec<Entry> = pairs
        .iter()
        .filter(|pair| pair.differs())
        .map(|pair| pair.entry(limit))
        .collect();
    let same = pairs.len() - differing;
    if same > 0 {
        let same = counted(same, "unchanged part");
        entries.push(Entry::comment(format!("# ({same} hidden)")));
    }
    Some(Entry::object(sign, name, entries))
}

/// The parts of userdata; `None` where it has none, and isn't packed.
pub(super) fn taken_apart(sign: Sign, name: &str, text: &str, limit: usize) -> Option<Entry> {
    let whole = opened(text)?;
    if is_plain(Some(&whole)) {
        return None;
    }
    let parts = parts_of(&whole);
    let limit = (limit / parts.len().max(1)).max(LEAST_LINES);
    let entries = parts.iter().map(|part| part.entry(sign, limit));
    Some(Entry::object(sign, name, entries.collect()))
}

/// Opens userdata that isn't damaged. What hides a line of base64 spoils the rest of it: that isn't
/// opened.
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
    let is_spoilt = text.contains(HIDDEN_LINE) && leaves.iter().any(is_encoded);
    let is_damaged = leaves.iter().any(|part| part.problem.is_some());
    (!is_spoilt && !is_damaged).then_some(whole)
}

fn is_plain(opened: Option<&Opened>) -> bool {
    opened.is_some_and(|opened| opened.parts.is_empty() && opened.packing.is_empty())
}

/// A part, and which of those like it.
struct Part<'o> {
    opened: &'o Opened,
    /// Which part it is, from 1.
    number: usize,
    /// What it is found again by: its name, or its type and how many of that stand before it.
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

    fn entry(&self, sign: Sign, limit: usize) -> Entry {
        let name = value::visible(&self.title());
        match self.text() {
            Some(text) => Entry::text(sign, name, value::text_lines(text, limit)),
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

/// Each part with the one that it was, in the order of what is new; then what is gone.
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

    fn entry(&self, limit: usize) -> Entry {
        let title = |part: &Part<'_>| value::visible(&part.title());
        match self {
            Self::Both(old, new) => match (old.text(), new.text()) {
                (Some(before), Some(after)) if before != after => {
                    let diff = value::line_diff(before, after, limit);
                    Entry::text(Sign::Update, title(new), diff)
                }
                (Some(_), Some(_)) => Entry::line(Sign::Update, title(old), title(new)),
                _ => {
                    let change = format!("{} -> {}", old.size(), new.size());
                    Entry::line(Sign::Update, title(new), change)
                }
            },
            Self::Comes(new) => new.entry(Sign::Create, limit),
            Self::Goes(old) => {
                Entry::line(Sign::Delete, title(old), format!("{} -> null", old.size()))
            }
        }
    }
}
