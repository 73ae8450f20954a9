//! Maps JSON strings.
//!
//! In: the text between the quotes. Out: its pieces.

use super::{Sink, from_hex, up_to, walk_escapes};

/// Walks the text between the quotes, whose first byte is `base` of the file.
pub(super) fn walk(inner: &str, base: usize, sink: Sink<'_>) {
    walk_escapes(inner, base, sink, escape);
}

/// The length of the escape at the start of `rest`, and its character.
fn escape(rest: &str) -> (usize, char) {
    let plain = match rest.as_bytes().get(1) {
        Some(b'u') => return unicode(rest),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(_) => rest[1..].chars().next().unwrap_or('\\'),
        None => '\\',
    };
    (up_to(rest, 1 + plain.len_utf8()), plain)
}

/// `\uXXXX`, or a surrogate pair of them.
fn unicode(rest: &str) -> (usize, char) {
    let unit = |from: usize| {
        rest.get(from..from + 4)
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
    };
    if let (Some(high @ 0xd800..=0xdbff), Some(low)) = (unit(2), unit(8))
        && let Some(Ok(character)) = char::decode_utf16([high, low]).next()
    {
        return (12, character);
    }
    (up_to(rest, 6), from_hex(&rest[2..], 4))
}
