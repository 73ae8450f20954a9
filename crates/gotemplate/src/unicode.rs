//! What Go's `unicode`, `unicode/utf8` and `strconv` say of characters.

mod tables;

/// Whether a character from U+0080 on is in a set of [`tables`].
fn contains(set: &[u32], character: char) -> bool {
    let changes = set.partition_point(|change| *change <= u32::from(character));
    changes % 2 == 1
}

/// Go's `unicode.IsLetter`.
pub(crate) fn is_letter(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphabetic();
    }
    contains(&tables::LETTERS, character)
}

/// Go's `unicode.IsDigit`.
fn is_digit(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_digit();
    }
    contains(&tables::DECIMAL_DIGITS, character)
}

/// The lexer's "alphanumeric": letter, digit or underscore.
pub(crate) fn is_alphanumeric(character: char) -> bool {
    character == '_' || is_letter(character) || is_digit(character)
}

/// Go's `strconv.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub(crate) fn is_print(character: char) -> bool {
    if character.is_ascii() {
        return (' '..='~').contains(&character);
    }
    contains(&tables::PRINTABLE, character)
}

/// Go's `utf8.DecodeRune` on bytes that aren't empty: the character, or none where the first byte
/// doesn't begin one, and the number of bytes it takes (1 where none).
pub(crate) fn decode(bytes: &[u8]) -> (Option<char>, usize) {
    let first = bytes[0];
    if first.is_ascii() {
        return (Some(first.into()), 1);
    }
    for length in 2..=bytes.len().min(4) {
        if let Ok(text) = std::str::from_utf8(&bytes[..length]) {
            return (text.chars().next(), length);
        }
    }
    (None, 1)
}

/// Go's `utf8.RuneCount`: each byte that isn't part of a character counts as one.
pub(crate) fn count(bytes: &[u8]) -> usize {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.chars().count();
    }
    let (mut rest, mut count) = (bytes, 0);
    while !rest.is_empty() {
        rest = &rest[decode(rest).1..];
        count += 1;
    }
    count
}

/// The first `limit` characters of bytes.
pub(crate) fn truncate(bytes: &[u8], limit: usize) -> &[u8] {
    let mut end = 0;
    for _ in 0..limit {
        if end >= bytes.len() {
            break;
        }
        end += decode(&bytes[end..]).1;
    }
    &bytes[..end]
}

/// Go's `%#U`: `U+007B '{'`.
pub(crate) fn describe(character: char) -> String {
    let code = u32::from(character);
    if is_print(character) {
        format!("U+{code:04X} '{character}'")
    } else {
        format!("U+{code:04X}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_what_unicode_says() {
        for (character, alphanumeric, print) in [
            ('a', true, true),
            ('_', true, true),
            (' ', false, true),
            ('\u{7f}', false, false),
            ('\u{a0}', false, false),
            ('\u{ad}', false, false),
            ('é', true, true),
            ('٣', true, true),
            ('Ⅷ', false, true),
            ('\u{301}', false, true),
            ('日', true, true),
            ('😀', false, true),
            ('\u{200b}', false, false),
            ('\u{fffd}', false, true),
            ('\u{10ffff}', false, false),
        ] {
            let found = (is_alphanumeric(character), is_print(character));
            assert_eq!(found, (alphanumeric, print), "{character:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_characters_count_one_each() {
        assert_eq!(count(b"a\xff\xc3\xa9\xe2\x82"), 5);
        assert_eq!(truncate("héllo".as_bytes(), 2), "hé".as_bytes());
        assert_eq!(truncate(b"\xff\xffa", 2), b"\xff\xff");
        assert_eq!(describe('{'), "U+007B '{'");
        assert_eq!(describe('\u{a0}'), "U+00A0");
    }
}
