//! The lines that a finding is about, cut to what a screen can hold.
//!
//! In: labels on whole files. Out: [`Excerpts`], small files in their place, and the labels moved
//! into them. May not: lose a line's number or a column.
//!
//! Userdata is often a page of text in one JSON string. Of a long line only the surroundings of
//! its labels are kept, and of a place that spans lines only the first.

use std::collections::BTreeMap;
use std::ops::Range;

use codespan_reporting::diagnostic::{Label, LabelStyle};
use codespan_reporting::files::{Error, Files};

use crate::config::source::{Source, SourceId, SourceMap, Span};
use crate::marks::HIDDEN;
use crate::redact;

/// Lines up to this many characters are shown whole.
const WIDEST_LINE: usize = 140;
/// How much of a longer one is shown before a label's start.
const BEFORE: usize = 40;
/// How much of it is shown from a label's start.
const AFTER: usize = 60;

/// Stands where something was cut out.
const CUT: &str = "…";

/// One file, reduced to the lines in question.
struct Excerpt {
    id: SourceId,
    name: String,
    text: String,
    /// Of each line: where it starts in `text`, its number in the file.
    lines: Vec<(usize, usize)>,
    /// Of each label, by where it starts in `text`: the column in the file.
    columns: BTreeMap<usize, usize>,
}

/// The files of one finding.
pub(super) struct Excerpts(Vec<Excerpt>);

/// A label on one line of a file.
struct Place {
    /// Its number among all labels.
    index: usize,
    /// Bytes of the line.
    range: Range<usize>,
    column: usize,
}

impl Excerpts {
    /// Cuts the lines of `labels` out of their files; gives the labels as they stand in them.
    pub(super) fn new(
        sources: &SourceMap,
        labels: &[(LabelStyle, Span, &str)],
    ) -> (Self, Vec<Label<SourceId>>) {
        let mut files: BTreeMap<SourceId, BTreeMap<usize, Vec<Place>>> = BTreeMap::new();
        for (index, (_, span, _)) in labels.iter().enumerate() {
            let source = sources.get(span.source);
            let position = source.position(span.start as usize);
            let line = line_range(source, source.line_start(position.line));
            // A line's end, which may be two characters, is where the line ends.
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
            .map(|(id, lines)| excerpt(id, sources, lines, &mut moved))
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
        // A gap of several lines makes the renderer draw a break; it would show a single one.
        if previous.is_some_and(|previous| number > previous + 1) {
            for filler in [number - 1, number - 1] {
                excerpt.lines.push((excerpt.text.len(), filler));
                excerpt.text.push('\n');
            }
        }
        previous = Some(number);
        let start = source.line_start(number);
        let range = line_range(source, start);
        let line = &source.text[range];
        let at = excerpt.text.len();
        excerpt.lines.push((at, number));
        let shown = match sources.shown_of_line(id, start, line) {
            shown if !redact::catches(shown) => shown,
            shown => {
                let name = shown.find(['=', ':']).map(|end| &shown[..=end]);
                name.filter(|name| !redact::catches(name)).unwrap_or("")
            }
        };
        let shortened = if shown.len() < line.len() {
            concealed(shown, &places)
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

/// The bytes of the line that starts at `start`, its end left out.
fn line_range(source: &Source, start: usize) -> Range<usize> {
    let rest = &source.text[start..];
    let line = rest.split('\n').next().unwrap_or(rest);
    start..start + line.strip_suffix('\r').unwrap_or(line).len()
}

struct Shortened {
    text: String,
    /// Where the places went, in their order.
    ranges: Vec<Range<usize>>,
}

/// The beginning of a line whose rest mustn't be shown; places in the rest are its end.
fn concealed(shown: &str, places: &[Place]) -> Shortened {
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

/// Keeps the surroundings of the places, and makes every character printable.
fn shorten(line: &str, places: &[Place]) -> Shortened {
    let keep = kept(line, places);
    let mut text = String::new();
    let mut starts = vec![None; places.len()];
    let mut ends = vec![None; places.len()];
    let mut inside = true;
    for (offset, character) in line.char_indices() {
        let now = keep.iter().any(|range| range.contains(&offset));
        if inside && !now {
            text.push_str(CUT);
        }
        inside = now;
        for (index, place) in places.iter().enumerate() {
            if offset >= place.range.start && starts[index].is_none() {
                starts[index] = Some(text.len());
            }
            if offset >= place.range.end && ends[index].is_none() {
                ends[index] = Some(text.len());
            }
        }
        if now {
            text.push(match character {
                '\t' => '\t',
                _ if character.is_control() => char::REPLACEMENT_CHARACTER,
                _ => character,
            });
        }
    }
    let ranges = starts
        .into_iter()
        .zip(ends)
        .map(|(start, end)| {
            let start = start.unwrap_or(text.len());
            start..end.unwrap_or(text.len()).max(start)
        })
        .collect();
    Shortened { text, ranges }
}

/// The parts of a line that are shown, by byte.
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
    places
        .iter()
        .map(|place| back(place.range.start, BEFORE)..forth(place.range.start, AFTER))
        .collect()
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
        // Only the starts of labels are ever shown.
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
    use crate::config::source::{SourceMap, Span};
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
        // A label that is long itself, up to the end of the line.
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
        // Past the end, and inside a character.
        assert!(shown("é", (7, 9), &[(1, 1)]).contains("c.jsonc:1:2"));
        // Behind half of a line's end, where the file ends with it; of a line that is cut as well.
        assert!(shown("a\r", (2, 2), &[]).contains("c.jsonc:1:3"));
        let long = "x".repeat(super::WIDEST_LINE + 20) + "\r";
        let end = long.len();
        let expected = format!("c.jsonc:1:{}", end + 1);
        assert!(shown(&long, (end, end), &[]).contains(&expected));
    }
}
