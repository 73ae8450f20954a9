//! Finds where a value starts and ends, without its anchor and tag.

use std::ops::Range;

/// The first byte after the anchors, tags, comments and spaces at `at`.
pub(crate) fn skip_properties(text: &str, mut at: usize) -> usize {
    let mut behind_property = false;
    loop {
        let rest = &text[at..];
        match rest.as_bytes().first() {
            Some(b'&' | b'!') => {
                at += rest.find([' ', '\t', '\n', '\r']).unwrap_or(rest.len());
                behind_property = true;
            }
            Some(b' ' | b'\t' | b'\n' | b'\r') if behind_property => at += 1,
            Some(b'#') if behind_property => at += rest.find('\n').unwrap_or(rest.len()),
            _ => return at,
        }
    }
}

/// The byte after the closing quote of the string at `start`; `end` if there is none before it.
pub(crate) fn closing_quote(text: &str, start: usize, end: usize) -> usize {
    let bytes = &text.as_bytes()[..end];
    let Some(quote) = bytes.get(start) else {
        return end;
    };
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if *quote == b'"' => at += 2,
            _ if byte == quote && *quote == b'\'' && bytes.get(at + 1) == Some(quote) => at += 2,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    end
}

/// The `|` or `>` of the block at `range`, searched from `from`. Only indicators, anchors, tags and
/// comments may precede it.
pub(crate) fn block_header(text: &str, from: usize, range: &Range<usize>) -> usize {
    let mut at = from;
    while at < range.end {
        let rest = &text[at..range.end];
        at += match rest.as_bytes()[0] {
            b'|' | b'>' => return at,
            b'#' => rest.find('\n').unwrap_or(rest.len()),
            b'&' | b'!' => rest.find([' ', '\t', '\n', '\r']).unwrap_or(rest.len()),
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    range.start
}
