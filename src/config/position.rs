//! From a byte of a string's value back to the place in the file that gave it.
//!
//! In: the span of a string, in any configuration language, and an offset in what it stands for.
//! Out: the span of the character, escape or line break that gave that byte. Must not: judge the
//! text; a reader took it already.
//!
//! Each language has a `walk`: it goes through a literal and tells, piece by piece, which bytes of
//! the text gave which text of the value. What isn't a literal (an alias, an expression) has no
//! such way back: its whole span stands for every byte of it.

mod hcl;
mod json;
#[cfg(test)]
mod tests;
mod yaml;

use std::ops::Range;

use super::source::{Hole, Language, SourceMap, Span};

/// Takes one piece: the bytes of the file, and the text they stand for.
type Sink<'a> = &'a mut dyn FnMut(Range<usize>, &str);

/// The place of byte `offset` of the string that `span` covers. Offsets past the end mean the
/// closing quote, or where the text ends.
pub fn within(sources: &SourceMap, span: Span, offset: usize) -> Span {
    several(sources, span, &[offset])[0]
}

/// The word that begins with the character at `place` of the string that `literal` covers.
pub fn word_at(sources: &SourceMap, literal: Span, place: Span) -> Span {
    let text = sources.text(place);
    let Some(first) = text.chars().next() else {
        return place;
    };
    // An escape, or what has no way back: that is all there is to show.
    if text.len() > first.len_utf8() || place.end > literal.end || place.source != literal.source {
        return place;
    }
    let rest = sources.text(Span {
        end: literal.end,
        ..place
    });
    // Escapes and the closing quote end a word as well.
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

/// How long the word is that a text begins with.
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

/// The places of several bytes, in ascending order, for one way through the string.
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

/// Goes through the literal at `range`, what stands in `holes` included as if it were text; gives
/// what stands behind its last character: the closing quote, or nothing at all. `None` where there
/// is no literal.
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

/// Text that stands for itself, character by character.
fn as_it_is(text: &str, base: usize, sink: Sink<'_>) {
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        sink(base + at..base + end, &text[at..end]);
    }
}

/// Goes through a string whose escapes begin with a backslash; its first byte is `base` of the file.
/// `escape` gives the length of the one at the start of a text, and the character it stands for.
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

/// The character behind the hexadecimal digits at the start of `text`; the replacement character
/// where they mean none.
fn from_hex(text: &str, digits: usize) -> char {
    text.get(..digits)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The first `length` bytes of `text`, or as many whole characters of them as there are.
fn up_to(text: &str, length: usize) -> usize {
    let mut length = length.min(text.len());
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    length
}
