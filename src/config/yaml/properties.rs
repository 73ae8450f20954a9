//! What stands before and around a value: tags, anchors, quotes, the heads of blocks.
//!
//! In: the text, and where the parser says that a value is. Out: where it is itself, and what its
//! tag says. May not: read values.

use std::ops::Range;

use saphyr_parser::Tag;

/// The name of a tag of YAML's own; `str` for `!` alone.
pub(super) fn core_tag(tag: &Tag) -> Option<&str> {
    if is_non_specific(tag) {
        return Some("str");
    }
    match tag.handle.as_str() {
        "tag:yaml.org,2002:" => Some(&tag.suffix),
        "" => tag.suffix.strip_prefix("tag:yaml.org,2002:"),
        _ => None,
    }
}

pub(super) fn is_non_specific(tag: &Tag) -> bool {
    matches!(
        (tag.handle.as_str(), tag.suffix.as_str()),
        ("", "!") | ("!", "")
    )
}

/// A tag as it is written.
pub(super) fn shown(tag: &Tag) -> String {
    match tag.handle.as_str() {
        "tag:yaml.org,2002:" => format!("!!{}", tag.suffix),
        "" => format!("!<{}>", tag.suffix),
        handle => format!("{handle}{}", tag.suffix),
    }
}

/// The first byte behind the anchors, tags, comments and blanks at `at`.
pub(super) fn skip_properties(text: &str, mut at: usize) -> usize {
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

/// The byte behind the quote that closes the string at `start`; `end` if none does before it.
pub(super) fn closing_quote(text: &str, start: usize, end: usize) -> usize {
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

/// The `|` or `>` of the block that the parser names as `range`, looked for from `from`: what
/// stands before it are marks of keys and items, anchors, tags and comments.
pub(super) fn block_header(text: &str, from: usize, range: &Range<usize>) -> usize {
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
