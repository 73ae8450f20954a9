//! HCL's quoted strings and heredocs.
//!
//! In: the text of one expression. Out: its pieces, if it is a string without interpolation. May
//! not: evaluate anything.

use std::ops::Range;

use super::{Sink, from_hex, up_to};

/// Goes through the literal, whose first byte is `base` of the file. `None` if it holds `${…}` or
/// `%{…}`, or is no literal at all.
pub(super) fn walk(literal: &str, base: usize, sink: Sink<'_>) -> Option<Range<usize>> {
    let end = base + literal.len();
    if let Some(inner) = literal.strip_prefix('"') {
        let inner = inner.strip_suffix('"')?;
        let constant = is_constant(inner, true);
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
    if marker.is_empty() || !is_constant(body, false) {
        return None;
    }
    let start = end - body.len();
    // The closing marker is the last line of the literal.
    let closing = body.trim_end().rfind('\n').map_or(0, |at| at + 1);
    if body[closing..].trim() != marker {
        return None;
    }
    let lines = || body[..closing].split_inclusive('\n');
    let indent = if flush {
        lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| line.len() - line.trim_start().len())
            .min()
            .unwrap_or(0)
    } else {
        0
    };
    let mut at = start;
    for line in lines() {
        let skipped = if line.trim().is_empty() { 0 } else { indent };
        characters(&line[skipped..], at + skipped, false, sink);
        at += line.len();
    }
    Some(at..at)
}

/// Whether nothing in the template is left to evaluate.
fn is_constant(text: &str, escapes: bool) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['$', '%', '\\']) {
        rest = &rest[at..];
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

/// Characters, the escapes of template markers and, in quotes, those with a backslash.
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
