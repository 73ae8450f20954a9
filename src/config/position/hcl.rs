//! Maps HCL's quoted strings and heredocs.
//!
//! In: the text of one expression. Out: its pieces, if it is a string without interpolation. Must
//! not: evaluate anything.

use std::ops::Range;

use super::{Sink, from_hex, up_to};
use crate::config::source::Hole;

/// Walks the literal, whose first byte is `base` of the file. Fails with `None` if it isn't a
/// literal, or has `${…}` or `%{…}` outside of `holes`.
pub(super) fn walk(
    literal: &str,
    base: usize,
    holes: &[Hole],
    sink: Sink<'_>,
) -> Option<Range<usize>> {
    let end = base + literal.len();
    if let Some(inner) = literal.strip_prefix('"') {
        let inner = inner.strip_suffix('"')?;
        let constant = is_constant(inner, base + 1, true, holes);
        if constant {
            characters(inner, base + 1, true, sink);
        }
        return constant.then(|| end - 1..end);
    }
    let body = literal.strip_prefix("<<")?;
    let (flush, body) = match body.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, body),
    };
    let (marker, body) = body.split_once('\n')?;
    let marker = marker.trim();
    let start = end - body.len();
    if marker.is_empty() || !is_constant(body, start, false, holes) {
        return None;
    }
    // The closing marker is the last line.
    let closing = body.trim_end().rfind('\n').map_or(0, |at| at + 1);
    if body[closing..].trim() != marker {
        return None;
    }
    // A line break within an interpolation doesn't start a line of the text.
    let lines = || {
        let mut at = start;
        body[..closing].split_inclusive('\n').map(move |line| {
            let begins = at;
            at += line.len();
            let inside = hole_at(holes, begins).is_some_and(|hole| begins > hole.start as usize);
            (begins, line, !inside && !line.trim().is_empty())
        })
    };
    let indent = if flush {
        lines()
            .filter(|(.., counts)| *counts)
            .map(|(_, line, _)| line.len() - line.trim_start().len())
            .min()
            .unwrap_or(0)
    } else {
        0
    };
    for (at, line, counts) in lines() {
        let skipped = if counts { indent } else { 0 };
        characters(&line[skipped..], at + skipped, false, sink);
    }
    Some(start + closing..start + closing)
}

/// The interpolation at a byte of the file.
fn hole_at(holes: &[Hole], byte: usize) -> Option<&Hole> {
    let next = holes.partition_point(|hole| hole.end as usize <= byte);
    let hole = holes.get(next)?;
    (hole.start as usize <= byte).then_some(hole)
}

/// Whether the template, whose first byte is `base` of the file, has no sequences outside of
/// `holes`.
fn is_constant(text: &str, base: usize, escapes: bool, holes: &[Hole]) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['$', '%', '\\']) {
        rest = &rest[at..];
        if let Some(hole) = hole_at(holes, base + text.len() - rest.len()) {
            rest = text.get(hole.end as usize - base..).unwrap_or_default();
            continue;
        }
        let length = match rest.as_bytes() {
            [b'\\', ..] if escapes => 2,
            [b'$', b'$', b'{', ..] | [b'%', b'%', b'{', ..] => 3,
            [b'$' | b'%', b'{', ..] => return false,
            _ => 1,
        };
        rest = &rest[up_to(rest, length).max(1)..];
    }
    true
}

/// Reports characters and escapes: `$${`, `%%{` and, in quotes, backslash escapes.
fn characters(text: &str, base: usize, escapes: bool, sink: Sink<'_>) {
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut buffer = [0; 4];
        let (read, decoded): (usize, &str) = match rest.as_bytes() {
            [b'$', b'$', b'{', ..] => (3, "${"),
            [b'%', b'%', b'{', ..] => (3, "%{"),
            [b'\\', next, ..] if escapes => {
                let (read, decoded) = match next {
                    b'n' => (2, '\n'),
                    b'r' => (2, '\r'),
                    b't' => (2, '\t'),
                    b'u' => (6, from_hex(&rest[2..], 4)),
                    b'U' => (10, from_hex(&rest[2..], 8)),
                    _ => {
                        let next = rest[1..].chars().next().unwrap_or('\\');
                        (1 + next.len_utf8(), next)
                    }
                };
                (up_to(rest, read), &*decoded.encode_utf8(&mut buffer))
            }
            _ => (character.len_utf8(), &rest[..character.len_utf8()]),
        };
        sink(base + at..base + at + read, decoded);
        at += read;
    }
}
