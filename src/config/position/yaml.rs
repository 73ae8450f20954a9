//! Maps YAML's five styles of strings.
//!
//! In: a file, and the range of a scalar from its quote, or the `|` or `>` before it. Out: its
//! pieces. Must not: know documents, keys or types.
//!
//! A line ends with a line feed, a carriage return, or both.

use std::ops::Range;

use super::{Sink, as_it_is, from_hex, up_to, walk_escapes};

/// Walks the scalar at `range`. Fails with `None` if there is none (a list, an alias), or if a
/// block's indentation is unknown.
pub(super) fn walk(text: &str, range: Range<usize>, sink: Sink<'_>) -> Option<Range<usize>> {
    let scalar = &text[range.clone()];
    let inner = range.start + 1..range.end.max(range.start + 2) - 1;
    match scalar.as_bytes().first()? {
        quote @ (b'"' | b'\'') => {
            if scalar.len() < 2 || scalar.as_bytes().last() != Some(quote) {
                return None;
            }
            if *quote == b'"' {
                flow(&text[inner.clone()], inner.start, Style::Double, sink);
            } else {
                flow(&text[inner.clone()], inner.start, Style::Single, sink);
            }
            Some(inner.end..range.end)
        }
        b'|' | b'>' => {
            block(text, range.clone(), sink)?;
            Some(range.end..range.end)
        }
        b'[' | b'{' | b'*' | b'&' | b'!' | b'#' | b'%' | b'@' | b'`' | b',' | b']' | b'}' => None,
        _ => {
            flow(scalar, range.start, Style::Plain, sink);
            Some(range.end..range.end)
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Plain,
    Single,
    Double,
}

/// Walks plain and quoted scalars. The first line break becomes a space, further ones remain;
/// spaces around breaks aren't part of the value.
fn flow(inner: &str, base: usize, style: Style, sink: Sink<'_>) {
    // The breaks since the last text; a trailing backslash removes the first.
    let mut breaks: Vec<Range<usize>> = Vec::new();
    let mut joined = false;
    let mut next = Some(Line::at(inner, 0));
    while let Some(line) = next {
        next = line.next(inner);
        let whole = &inner[line.content.clone()];
        let lead = match line.content.start {
            0 => 0,
            _ => whole.len() - whole.trim_start_matches(BLANKS).len(),
        };
        let start = line.content.start + lead;
        let content = &inner[start..line.content.end];
        if content.is_empty() && !breaks.is_empty() && next.is_some() {
            breaks.push(line.ending);
            continue;
        }
        let several = breaks.len() > 1;
        for (index, at) in breaks.drain(..).enumerate() {
            let stands_for = match index {
                0 if joined || several => "",
                0 => " ",
                _ => "\n",
            };
            sink(base + at.start..base + at.end, stands_for);
        }
        joined = style == Style::Double && next.is_some() && ends_escaped(content);
        let content = match next {
            None => content,
            Some(_) if joined => &content[..content.len() - 1],
            Some(_) => trimmed(content, style),
        };
        match style {
            Style::Plain => as_it_is(content, base + start, sink),
            Style::Single => single(content, base + start, sink),
            Style::Double => walk_escapes(content, base + start, sink, escape),
        }
        breaks.push(line.ending);
    }
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Whether an unescaped backslash ends the line.
fn ends_escaped(content: &str) -> bool {
    let backslashes = content.len() - content.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

/// A line without trailing spaces; an escaped space remains.
fn trimmed(content: &str, style: Style) -> &str {
    let bare = content.trim_end_matches(BLANKS);
    if style == Style::Double && bare.len() < content.len() && ends_escaped(bare) {
        return &content[..=bare.len()];
    }
    bare
}

fn single(text: &str, base: usize, sink: Sink<'_>) {
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let read = if text[at..].starts_with("''") {
            2
        } else {
            character.len_utf8()
        };
        let end = at + character.len_utf8();
        sink(base + at..base + at + read, &text[at..end]);
        at += read;
    }
}

/// The length of the escape at the start of `rest`, and its character.
fn escape(rest: &str) -> (usize, char) {
    let (read, character) = match rest.as_bytes().get(1) {
        Some(b'0') => (2, '\0'),
        Some(b'a') => (2, '\u{7}'),
        Some(b'b') => (2, '\u{8}'),
        Some(b't') => (2, '\t'),
        Some(b'n') => (2, '\n'),
        Some(b'v') => (2, '\u{b}'),
        Some(b'f') => (2, '\u{c}'),
        Some(b'r') => (2, '\r'),
        Some(b'e') => (2, '\u{1b}'),
        Some(b'N') => (2, '\u{85}'),
        Some(b'_') => (2, '\u{a0}'),
        Some(b'L') => (2, '\u{2028}'),
        Some(b'P') => (2, '\u{2029}'),
        Some(b'x') => (4, from_hex(&rest[2..], 2)),
        Some(b'u') => (6, from_hex(&rest[2..], 4)),
        Some(b'U') => (10, from_hex(&rest[2..], 8)),
        Some(_) => {
            let next = rest[1..].chars().next().unwrap_or('\\');
            (1 + next.len_utf8(), next)
        }
        None => (1, '\\'),
    };
    (up_to(rest, read), character)
}

/// Walks a literal or folded block. Fails with `None` if its indentation is unknown.
fn block(text: &str, range: Range<usize>, sink: Sink<'_>) -> Option<()> {
    let scalar = &text[range.clone()];
    let folded = scalar.starts_with('>');
    let header = Line::at(scalar, 0);
    let mut keep = false;
    let mut strip = false;
    let mut given = None;
    for character in scalar[1..header.content.end].chars() {
        match character {
            '+' => keep = true,
            '-' => strip = true,
            '1'..='9' => given = character.to_digit(10),
            _ => break,
        }
    }
    let spaces = |line: &Line| {
        let content = &scalar[line.content.clone()];
        content.len() - content.trim_start_matches(' ').len()
    };
    let lines: Vec<Line> = std::iter::successors(header.next(scalar), |line| line.next(scalar))
        .filter(|line| !(line.content.is_empty() && line.ending.is_empty()))
        .collect();
    let indent = match given {
        Some(given) => parent_indent(text, range.start)? + given as usize,
        None => lines
            .iter()
            .find(|line| !scalar[line.content.clone()].trim_matches(' ').is_empty())
            .map_or(usize::MAX, spaces),
    };
    let base = range.start;
    let at = |range: &Range<usize>| base + range.start..base + range.end;
    // The break after the last line of content, and those of empty lines since.
    let mut pending: Option<Range<usize>> = None;
    let mut empty: Vec<Range<usize>> = Vec::new();
    let mut was_indented = false;
    for line in lines {
        let content = line.content.start + spaces(&line).min(indent)..line.content.end;
        if content.is_empty() {
            empty.push(line.ending);
            continue;
        }
        let shown = &scalar[content.clone()];
        let is_indented = shown.starts_with(BLANKS);
        if let Some(ending) = pending.take() {
            if !folded || was_indented || is_indented {
                sink(at(&ending), "\n");
            } else if empty.is_empty() {
                sink(at(&ending), " ");
            }
        }
        for ending in empty.drain(..) {
            sink(at(&ending), "\n");
        }
        as_it_is(shown, base + content.start, sink);
        was_indented = is_indented;
        pending = Some(line.ending);
    }
    // The end of the file isn't a line break.
    if !strip && let Some(ending) = pending.filter(|ending| !ending.is_empty()) {
        sink(at(&ending), "\n");
    }
    if keep {
        for ending in empty.iter().filter(|ending| !ending.is_empty()) {
            sink(at(ending), "\n");
        }
    }
    Some(())
}

/// The column of the list or object that contains a block, from the block's own line; `None` if
/// there is nothing before the `|`.
fn parent_indent(text: &str, header: usize) -> Option<usize> {
    let start = text[..header].rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let line = &text[start..header];
    let mut column = line.len() - line.trim_start_matches(' ').len();
    if line.starts_with("---") {
        return Some(0);
    }
    loop {
        let rest = &line[column..];
        let next = match rest.strip_prefix(['-', '?', ':']) {
            Some(after) if after.starts_with(BLANKS) => {
                rest.len() - after.trim_start_matches(BLANKS).len()
            }
            // The line has no key, so an earlier line determines the indentation.
            _ if rest.is_empty() || rest.starts_with(['&', '!']) => return None,
            _ => return Some(column),
        };
        if column + next == line.len() || rest[next..].starts_with(['&', '!']) {
            return Some(column);
        }
        column += next;
    }
}

/// One line of a scalar: its content and its line break.
#[derive(Clone)]
struct Line {
    content: Range<usize>,
    ending: Range<usize>,
}

impl Line {
    /// The next line; `None` after the last.
    fn next(&self, text: &str) -> Option<Self> {
        (!self.ending.is_empty()).then(|| Self::at(text, self.ending.end))
    }

    fn at(text: &str, start: usize) -> Self {
        let end = text[start..]
            .find(['\n', '\r'])
            .map_or(text.len(), |length| start + length);
        let length = match &text.as_bytes()[end..] {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        Self {
            content: start..end,
            ending: end..end + length,
        }
    }
}
