//! Cuts the lines of a finding to the width of a screen.
//!
//! In: labels in whole files. Out: [`Excerpts`], shortened files, with labels moved accordingly.
//! Must not: change a line number or column.
//!
//! Userdata is often a page of text in one JSON string. A long line is reduced to the surroundings
//! of its labels, and a label over several lines to its first. A configuration may be one such line
//! with thousands of findings, so the cost per finding doesn't depend on the line's length.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use codespan_reporting::diagnostic::{Label, LabelStyle};
use codespan_reporting::files::{Error, Files};

use crate::config::source::{SourceId, SourceMap, Span};
use crate::redact;
use crate::sensitivity::HIDDEN;

/// The maximum length of a line shown whole, in characters.
const WIDEST_LINE: usize = 140;
/// The number of characters shown before a label's start in longer lines.
const BEFORE: usize = 40;
/// The number of characters shown from a label's start.
const AFTER: usize = 60;

/// Marks a cut.
const CUT: &str = "…";

/// One file, reduced to the lines of the labels.
struct Excerpt {
    id: SourceId,
    name: String,
    text: String,
    /// For each line: its start in `text`, and its number in the file.
    lines: Vec<(usize, usize)>,
    /// For each label's start in `text`: the column in the file.
    columns: BTreeMap<usize, usize>,
}

/// The files of one finding.
pub(super) struct Excerpts(Vec<Excerpt>);

/// A label on one line of a file.
struct Place {
    /// Its index among all labels.
    index: usize,
    /// Its bytes in the line.
    range: Range<usize>,
    column: usize,
}

/// The visible length of each line, in bytes. Finding secrets requires the whole line, so the
/// result is cached for all findings.
#[derive(Default)]
pub(super) struct Showable(HashMap<(SourceId, usize), usize>);

impl Showable {
    fn of<'l>(
        &mut self,
        sources: &SourceMap,
        (id, number): (SourceId, usize),
        start: usize,
        line: &'l str,
    ) -> &'l str {
        let length = match self.0.entry((id, number)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(showable(sources, id, start, line).len()),
        };
        &line[..length]
    }
}

/// The part of the line at a byte that may be shown: everything before a secret.
fn showable<'l>(sources: &SourceMap, id: SourceId, start: usize, line: &'l str) -> &'l str {
    match sources.shown_of_line(id, start, line) {
        shown if !redact::catches(shown) => shown,
        shown => {
            let name = shown.find(['=', ':']).map(|end| &shown[..=end]);
            name.filter(|name| !redact::catches(name)).unwrap_or("")
        }
    }
}

impl Excerpts {
    /// Cuts the lines of `labels` out of their files; returns the labels in the excerpts. `known`
    /// caches results between findings of the same files.
    pub(super) fn new(
        sources: &SourceMap,
        labels: &[(LabelStyle, Span, &str)],
        known: &mut Showable,
    ) -> (Self, Vec<Label<SourceId>>) {
        let mut files: BTreeMap<SourceId, BTreeMap<usize, Vec<Place>>> = BTreeMap::new();
        for (index, (_, span, _)) in labels.iter().enumerate() {
            let source = sources.get(span.source);
            let position = source.position(span.start as usize);
            let line = source.line_range(position.line);
            // An offset within a line break means the end of the line.
            let first = position.byte.min(line.end);
            let start = first - line.start;
            let end = (span.end as usize).clamp(first, line.end) - line.start;
            files
                .entry(span.source)
                .or_default()
                .entry(position.line)
                .or_default()
                .push(Place {
                    index,
                    range: start..end,
                    column: position.column,
                });
        }
        let mut moved: Vec<Option<Range<usize>>> = vec![None; labels.len()];
        let excerpts = files
            .into_iter()
            .map(|(id, lines)| excerpt(id, sources, lines, known, &mut moved))
            .collect();
        let labels = labels
            .iter()
            .zip(moved)
            .filter_map(|((style, span, text), range)| {
                let mut label = Label::new(*style, span.source, range?);
                label.message = super::diagnostic::printable(text);
                Some(label)
            })
            .collect();
        (Self(excerpts), labels)
    }

    fn get(&self, id: SourceId) -> Result<&Excerpt, Error> {
        self.0
            .iter()
            .find(|excerpt| excerpt.id == id)
            .ok_or(Error::FileMissing)
    }
}

fn excerpt(
    id: SourceId,
    sources: &SourceMap,
    lines: BTreeMap<usize, Vec<Place>>,
    known: &mut Showable,
    moved: &mut [Option<Range<usize>>],
) -> Excerpt {
    let source = sources.get(id);
    let mut excerpt = Excerpt {
        id,
        name: source.name.clone(),
        text: String::new(),
        lines: Vec::new(),
        columns: BTreeMap::new(),
    };
    let mut previous: Option<usize> = None;
    for (number, places) in lines {
        // The renderer draws a break for a gap of several lines, but shows a single missing line.
        if previous.is_some_and(|previous| number > previous + 1) {
            for filler in [number - 1, number - 1] {
                excerpt.lines.push((excerpt.text.len(), filler));
                excerpt.text.push('\n');
            }
        }
        previous = Some(number);
        let range = source.line_range(number);
        let start = range.start;
        let line = &source.text[range];
        let at = excerpt.text.len();
        excerpt.lines.push((at, number));
        let shown = known.of(sources, (id, number), start, line);
        let shortened = if shown.len() < line.len() {
            masked(shown, &places)
        } else {
            shorten(line, &places)
        };
        for (place, range) in places.iter().zip(shortened.ranges) {
            let range = at + range.start..at + range.end;
            excerpt.columns.insert(range.start, place.column);
            moved[place.index] = Some(range);
        }
        excerpt.text.push_str(&shortened.text);
        excerpt.text.push('\n');
    }
    excerpt
}

struct Shortened {
    text: String,
    /// The new ranges of the places, in order.
    ranges: Vec<Range<usize>>,
}

/// The visible start of a line; places in the hidden rest move to its end.
fn masked(shown: &str, places: &[Place]) -> Shortened {
    let shown = shown.chars().map(|c| if c.is_control() { ' ' } else { c });
    let shown: String = shown.collect();
    let end = shown.len();
    let lead = if shown.is_empty() || shown.ends_with(' ') {
        ""
    } else {
        " "
    };
    let ranges = places.iter().map(|place| {
        if place.range.end <= end {
            place.range.clone()
        } else {
            let start = end + lead.len();
            start..start + HIDDEN.len()
        }
    });
    Shortened {
        ranges: ranges.collect(),
        text: format!("{shown}{lead}{HIDDEN}"),
    }
}

/// Keeps the surroundings of the places, and makes control characters visible.
fn shorten(line: &str, places: &[Place]) -> Shortened {
    let mut text = String::new();
    let mut ranges = vec![0..0; places.len()];
    // The start and end of each place, sorted by position.
    let mut edges: Vec<(usize, usize, bool)> = Vec::with_capacity(2 * places.len());
    for (index, place) in places.iter().enumerate() {
        edges.push((place.range.start, index, false));
        edges.push((place.range.end, index, true));
    }
    edges.sort_unstable();
    let mut edges = edges.into_iter().peekable();
    let mut meet = |offset: usize, at: usize| {
        while let Some((_, index, is_end)) = edges.next_if(|(edge, ..)| *edge <= offset) {
            if is_end {
                ranges[index].end = at;
            } else {
                ranges[index].start = at;
            }
        }
    };
    let mut end = 0;
    for range in kept(line, places) {
        if range.start > end {
            text.push_str(CUT);
        }
        end = range.end;
        for (offset, character) in line[range.clone()].char_indices() {
            meet(range.start + offset, text.len());
            text.push(match character {
                '\t' => '\t',
                _ if character.is_control() => char::REPLACEMENT_CHARACTER,
                _ => character,
            });
        }
    }
    if end < line.len() {
        text.push_str(CUT);
    }
    meet(usize::MAX, text.len());
    Shortened { text, ranges }
}

/// The visible parts of a line, in bytes and in order.
fn kept(line: &str, places: &[Place]) -> Vec<Range<usize>> {
    let whole = 0..line.len();
    if line.len() <= WIDEST_LINE || line.chars().nth(WIDEST_LINE).is_none() {
        return vec![whole];
    }
    let back = |from: usize, characters: usize| {
        line[..from]
            .char_indices()
            .rev()
            .nth(characters)
            .map_or(0, |(at, c)| at + c.len_utf8())
    };
    let forth = |from: usize, characters: usize| {
        line[from..]
            .char_indices()
            .nth(characters)
            .map_or(line.len(), |(at, _)| from + at)
    };
    let around = |place: &Place| {
        let start = place.range.start;
        back(start, BEFORE)..forth(start, AFTER)
    };
    let mut around: Vec<Range<usize>> = places.iter().map(around).collect();
    around.sort_unstable_by_key(|range| range.start);
    let mut kept: Vec<Range<usize>> = Vec::with_capacity(around.len());
    for range in around {
        match kept.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => kept.push(range),
        }
    }
    kept
}

impl<'a> Files<'a> for Excerpts {
    type FileId = SourceId;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: SourceId) -> Result<&'a str, Error> {
        Ok(&self.get(id)?.name)
    }

    fn source(&'a self, id: SourceId) -> Result<&'a str, Error> {
        Ok(&self.get(id)?.text)
    }

    fn line_index(&'a self, id: SourceId, byte: usize) -> Result<usize, Error> {
        let lines = &self.get(id)?.lines;
        Ok(lines
            .partition_point(|(start, _)| *start <= byte)
            .saturating_sub(1))
    }

    fn line_number(&'a self, id: SourceId, line: usize) -> Result<usize, Error> {
        let lines = &self.get(id)?.lines;
        lines
            .get(line)
            .or(lines.last())
            .map(|(_, number)| *number)
            .ok_or(Error::LineTooLarge {
                given: line,
                max: lines.len(),
            })
    }

    fn column_number(&'a self, id: SourceId, _line: usize, byte: usize) -> Result<usize, Error> {
        // The renderer only asks for starts of labels.
        Ok(self.get(id)?.columns.get(&byte).copied().unwrap_or(1))
    }

    fn line_range(&'a self, id: SourceId, line: usize) -> Result<Range<usize>, Error> {
        let excerpt = self.get(id)?;
        let start = |line: usize| {
            excerpt
                .lines
                .get(line)
                .map_or(excerpt.text.len(), |(start, _)| *start)
        };
        Ok(start(line)..start(line + 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::diagnostic::{Diagnostic, Diagnostics};
    use crate::report::diagnostic::render;

    fn shown(text: &str, label: (usize, usize), related: &[(usize, usize)]) -> String {
        let mut sources = SourceMap::default();
        let id = sources.add("c.jsonc", text);
        let mut diagnostic = Diagnostic::error("Wrong").at(Span::new(id, label.0, label.1), "here");
        for (start, end) in related {
            diagnostic = diagnostic.related(Span::new(id, *start, *end), "and here");
        }
        render(&Diagnostics::from(diagnostic), &sources, false)
    }

    #[test]
    fn a_long_line_is_cut_around_each_label() {
        let text = format!(
            "{}A{}B{}",
            "x".repeat(1000),
            "y".repeat(1000),
            "é".repeat(1000)
        );
        insta::assert_snapshot!(shown(&text, (2001, 2002), &[(1000, 1001)]), @"
        error: Wrong
          ┌─ c.jsonc:1:2002
        1 │ …xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxAyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyBééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé…
          │                                          -                                                                                                    ^ here
          │                                          │
          │                                          and here
        ");
        // A long label that reaches the end of the line.
        insta::assert_snapshot!(shown(&text, (500, text.len()), &[]), @"
        error: Wrong
          ┌─ c.jsonc:1:501
        1 │ …xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
          │                                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ here
        ");
    }

    #[test]
    fn of_a_place_over_several_lines_the_first_is_shown() {
        insta::assert_snapshot!(shown("{\r\n  \"a\": [\r\n    1\r\n  ]\r\n}\r\n", (10, 23), &[]), @r#"
        error: Wrong
          ┌─ c.jsonc:2:8
        2 │   "a": [
          │        ^ here
        "#);
    }

    #[test]
    fn places_far_apart_have_a_break_between_them() {
        insta::assert_snapshot!(shown("a\nb\nc\nd\n", (6, 7), &[(0, 1)]), @"
        error: Wrong
          ┌─ c.jsonc:4:1
        1 │ a
          │ - and here
          ·
        4 │ d
          │ ^ here
        ");
        insta::assert_snapshot!(shown("a\nb\nc\n", (4, 5), &[(0, 1)]), @"
        error: Wrong
          ┌─ c.jsonc:3:1
        1 │ a
          │ - and here
          ·
        3 │ c
          │ ^ here
        ");
    }

    #[test]
    fn ends_of_files_and_strange_characters_do_no_harm() {
        insta::assert_snapshot!(shown("", (0, 0), &[]), @"
        error: Wrong
          ┌─ c.jsonc:1:1
        1 │
          │ ^ here
        ");
        insta::assert_snapshot!(shown("a\n", (2, 2), &[]), @"
        error: Wrong
          ┌─ c.jsonc:2:1
        2 │
          │ ^ here
        ");
        insta::assert_snapshot!(shown("\tx\u{1b}[31my", (1, 2), &[]), @"
        error: Wrong
          ┌─ c.jsonc:1:2
        1 │     x�[31my
          │     ^ here
        ");
        // Past the end, and within a character.
        assert!(shown("é", (7, 9), &[(1, 1)]).contains("c.jsonc:1:2"));
        // Within a line break at the end of the file; also for a cut line.
        assert!(shown("a\r", (2, 2), &[]).contains("c.jsonc:1:3"));
        let long = "x".repeat(WIDEST_LINE + 20) + "\r";
        let end = long.len();
        let expected = format!("c.jsonc:1:{}", end + 1);
        assert!(shown(&long, (end, end), &[]).contains(&expected));
    }

    /// The reference implementation: character by character through the whole line.
    fn shortened_slowly(line: &str, places: &[Range<usize>]) -> (String, Vec<Range<usize>>) {
        let count = line.chars().count();
        let number = |byte: usize| line[..byte].chars().count();
        let shows = |at: usize| {
            count <= WIDEST_LINE
                || places.iter().any(|place| {
                    let start = number(place.start);
                    (start.saturating_sub(BEFORE)..start + AFTER).contains(&at)
                })
        };
        let mut text = String::new();
        let mut edges = vec![(None, None); places.len()];
        let mut inside = true;
        for (at, (offset, character)) in line.char_indices().enumerate() {
            if inside && !shows(at) {
                text.push_str(CUT);
            }
            inside = shows(at);
            for (place, (start, end)) in places.iter().zip(&mut edges) {
                if offset >= place.start {
                    start.get_or_insert(text.len());
                }
                if offset >= place.end {
                    end.get_or_insert(text.len());
                }
            }
            let printable = character == '\t' || !character.is_control();
            if inside {
                text.push(if printable { character } else { '\u{fffd}' });
            }
        }
        let all = text.len();
        let range = |(start, end): (Option<_>, Option<_>)| {
            let start = start.unwrap_or(all);
            start..end.unwrap_or(all).max(start)
        };
        (text, edges.into_iter().map(range).collect())
    }

    proptest! {
        #[test]
        fn lines_are_shortened_as_slowly(
            line in "[a-cé€😀\t\u{1b}]{0,400}",
            places in prop::collection::vec((0_usize..1700, 0_usize..300), 1..5),
        ) {
            // A place starts with a character, and may end within one.
            let places: Vec<Range<usize>> = places
                .into_iter()
                .map(|(start, length)| {
                    let start = line.floor_char_boundary(start);
                    start..(start + length).min(line.len())
                })
                .collect();
            let given = places.iter().enumerate().map(|(index, range)| {
                Place { index, range: range.clone(), column: 1 }
            });
            let found = shorten(&line, &given.collect::<Vec<_>>());
            let expected = shortened_slowly(&line, &places);
            prop_assert_eq!((found.text, found.ranges), expected);
        }
    }

    #[test]
    fn a_secret_that_a_cut_would_halve_hides_the_line() {
        let secret = "5f-halved-by-a-cut-before-its-last-letter";
        redact::know([secret]);
        let behind = "y".repeat(WIDEST_LINE);
        let text = format!(
            "{{\"a\": \"{secret}{}X\", \"{behind}Y{behind}\"}}",
            "x".repeat(30)
        );
        // One place reaches into the secret, the other is far from it on the same line.
        for letter in ['X', 'Y'] {
            let at = text.find(letter).unwrap();
            let found = shown(&text, (at, at + 1), &[]);
            assert!(found.contains("1 │ {\"a\": (sensitive value)\n"), "{found}");
        }
    }
}
