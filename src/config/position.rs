//! Maps a byte of a string's value to its place in the file.
//!
//! In: the span of a string, in any configuration language, and an offset in its value. Out: the
//! span of the character, escape or line break that produced the byte. Must not: validate the text,
//! which a reader accepted.
//!
//! Each language has a `walk`, which goes through a literal and reports pieces: a range of the file
//! and the text that it produces. Anything but a literal (an alias, an expression) can't be mapped,
//! so its whole span is used for every byte.

mod hcl;
mod json;
#[cfg(test)]
mod tests;
mod yaml;

use std::ops::Range;

use super::source::{Hole, Language, SourceMap, Span};

/// Receives one piece: the bytes of the file, and the text they produce.
type Sink<'a> = &'a mut dyn FnMut(Range<usize>, &str);

/// The place of byte `offset` of the string at `span`. Offsets past the end mean the closing quote,
/// or the end of the text.
pub fn within(sources: &SourceMap, span: Span, offset: usize) -> Span {
    several(sources, span, &[offset])[0]
}

/// The word that begins at `place` in the string at `literal`.
pub fn word_at(sources: &SourceMap, literal: Span, place: Span) -> Span {
    let text = sources.text(place);
    let Some(first) = text.chars().next() else {
        return place;
    };
    // An escape, or a place that can't be mapped: show it as it is.
    if text.len() > first.len_utf8() || place.end > literal.end || place.source != literal.source {
        return place;
    }
    let rest = sources.text(Span {
        end: literal.end,
        ..place
    });
    // Escapes and the closing quote end a word too.
    let rest = if sources.text(literal).starts_with('"') {
        rest.split(['"', '\\']).next().unwrap_or_default()
    } else {
        rest
    };
    let line = rest.lines().next().unwrap_or_default();
    let action = line.strip_prefix("{{").and_then(|line| line.find("}}"));
    let length = action.map_or_else(|| word(line), |end| end + "{{}}".len());
    Span {
        end: place.start + length.max(text.len()) as u32,
        ..place
    }
}

/// The length of the word at the start of a text.
pub fn word(text: &str) -> usize {
    let Some(first) = text.chars().next() else {
        return 0;
    };
    if matches!(first, '"' | '\'') {
        return text[1..].find(first).map_or(text.len(), |end| end + 2);
    }
    let is_end = |char: char| char.is_whitespace() || matches!(char, ',' | ']' | '}');
    let end = text.find(is_end).unwrap_or(text.len());
    let word = &text[..end];
    word.strip_suffix(':')
        .unwrap_or(word)
        .len()
        .max(first.len_utf8())
}

/// The places of several bytes in ascending order, in one pass.
pub(super) fn several(sources: &SourceMap, span: Span, offsets: &[usize]) -> Vec<Span> {
    let source = sources.get(span.source);
    let range = span.start as usize..span.end as usize;
    let Some(holes) = sources.holes(span) else {
        return vec![span; offsets.len()];
    };
    let mut found: Vec<Span> = Vec::with_capacity(offsets.len());
    let mut written = 0;
    let mut tell = |range: Range<usize>, length: usize| {
        written += length;
        while offsets
            .get(found.len())
            .is_some_and(|offset| *offset < written)
        {
            found.push(Span::new(span.source, range.start, range.end));
        }
    };
    let mut rest = holes.iter().peekable();
    let mut inside = false;
    let end = walk(
        source.language,
        &source.text,
        range,
        holes,
        &mut |range, decoded| {
            while rest
                .next_if(|hole| range.start >= hole.end as usize)
                .is_some()
            {
                inside = false;
            }
            match rest.peek() {
                Some(hole) if range.start >= hole.start as usize => {
                    if !inside {
                        inside = true;
                        tell(hole.start as usize..hole.end as usize, hole.length as usize);
                    }
                }
                _ => tell(range, decoded.len()),
            }
        },
    );
    let Some(end) = end else {
        return vec![span; offsets.len()];
    };
    found.resize(offsets.len(), Span::new(span.source, end.start, end.end));
    found
}

/// Walks the literal at `range`; treats interpolations in `holes` as text. Returns the range after
/// the last character: the closing quote, or an empty range. Fails with `None` if there is no
/// literal.
fn walk(
    language: Language,
    text: &str,
    range: Range<usize>,
    holes: &[Hole],
    sink: Sink<'_>,
) -> Option<Range<usize>> {
    let literal = text.get(range.clone())?;
    let quoted = literal.len() >= 2 && literal.starts_with('"') && literal.ends_with('"');
    match language {
        Language::Jsonc if quoted => {
            let inner = range.start + 1..range.end - 1;
            json::walk(&text[inner.clone()], inner.start, sink);
            Some(inner.end..range.end)
        }
        Language::Yaml => yaml::walk(text, range, sink),
        Language::Hcl => hcl::walk(literal, range.start, holes, sink),
        Language::Plain => {
            as_it_is(literal, range.start, sink);
            Some(range.end..range.end)
        }
        Language::Jsonc => None,
    }
}

/// Reports a text without escapes, character by character.
fn as_it_is(text: &str, base: usize, sink: Sink<'_>) {
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        sink(base + at..base + end, &text[at..end]);
    }
}

/// Walks a string with backslash escapes; its first byte is `base` of the file. `escape` returns
/// the length of the escape at the start of a text, and its character.
fn walk_escapes(inner: &str, base: usize, sink: Sink<'_>, escape: impl Fn(&str) -> (usize, char)) {
    let mut at = 0;
    while let Some(character) = inner[at..].chars().next() {
        let mut buffer = [0; 4];
        let (read, decoded) = match character {
            '\\' => escape(&inner[at..]),
            _ => (character.len_utf8(), character),
        };
        sink(
            base + at..base + at + read,
            decoded.encode_utf8(&mut buffer),
        );
        at += read;
    }
}

/// The character for the hexadecimal digits at the start of `text`; the replacement character if
/// they are invalid.
fn from_hex(text: &str, digits: usize) -> char {
    text.get(..digits)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The first `length` bytes of `text`, rounded down to whole characters.
fn up_to(text: &str, length: usize) -> usize {
    let mut length = length.min(text.len());
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    length
}
