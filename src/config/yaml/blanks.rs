//! Blanks that look like a space and are none to YAML: no-break spaces and the like.
//!
//! In: a place that the parser complains of, or findings about values. Out: which character stands
//! there. May not: speak of one where nothing is wrong: in a text they are characters like others.

use super::explain::Context;
use super::lines::Lines;
use crate::config::source::{Language, SourceMap, Span};
use crate::diagnostic::{Diagnostic, Label, Severity};

/// In a longer text they are hardly what is wrong. In bytes.
const LONGEST: usize = 200;

const SUMMARY: &str = "a character that looks like a space is none to YAML";

/// What such a character is called.
fn name(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{a0}' => "a no-break space",
        '\u{2000}'..='\u{2006}' | '\u{2008}'..='\u{200a}' | '\u{205f}' => "a typographic space",
        '\u{2007}' => "a figure space",
        '\u{200b}' => "a zero-width space",
        '\u{200c}' | '\u{200d}' | '\u{2060}' => "an invisible character",
        '\u{202f}' => "a narrow no-break space",
        '\u{3000}' => "an ideographic space",
        '\u{feff}' => "a byte order mark, which is invisible",
        _ => return None,
    })
}

fn is_blank(character: char) -> bool {
    name(character).is_some()
}

/// What stands at the start of `rest`, as in "this is a no-break space, U+00A0".
fn words(rest: &str) -> Option<(String, usize)> {
    let character = rest.chars().next()?;
    let words = format!(
        "this is {}, U+{:04X}",
        name(character)?,
        u32::from(character)
    );
    Some((words, character.len_utf8()))
}

fn hint(rest: &str) -> &'static str {
    match rest.chars().next() {
        Some('\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}') => "delete it",
        _ => "write an ordinary space",
    }
}

/// One that the parser stumbled over: at the place, or where the lines around it need a space.
pub(super) fn stumbled_over(context: &Context<'_>) -> Option<Diagnostic> {
    let lines = context.lines();
    let own = lines.start(context.at);
    let next = own + lines.line(own).len() + 1;
    let starts = [
        Some(own),
        lines.above(own),
        (next < context.text.len()).then_some(next),
    ];
    let before = &context.text[..context.at];
    let at = if context.rest(context.at).starts_with(is_blank) {
        context.at
    } else if before.ends_with(is_blank) {
        before.trim_end_matches(is_blank).len()
    } else {
        starts
            .into_iter()
            .flatten()
            .find_map(|start| Some(start + in_place_of_space(lines.line(start))?))?
    };
    let rest = context.rest(at);
    let (words, length) = words(rest)?;
    Some(
        Diagnostic::error(SUMMARY)
            .at(context.span(at, at + length), words)
            .hint(hint(rest)),
    )
}

/// Where one stands in a line's indentation, behind the `-` of an item, or behind the `:` of a key.
fn in_place_of_space(line: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &line[at..];
        let blanks = rest.len() - rest.trim_start_matches(|c| c == ' ' || is_blank(c)).len();
        if let Some(found) = rest[..blanks].find(is_blank) {
            return Some(at + found);
        }
        at += blanks;
        match line[at..].strip_prefix('-') {
            Some(rest) if rest.starts_with(|c| c == ' ' || is_blank(c)) => at += 1,
            _ => break,
        }
    }
    let key = line[at..].find([':', '#', '"', '\''])?;
    let behind = line[at + key..].strip_prefix(':')?;
    let value = behind.trim_start_matches(' ');
    value
        .starts_with(is_blank)
        .then(|| line.len() - value.len())
}

/// Adds to findings about a key or a text without quotes that there is one in it.
pub(in crate::config) fn name_blanks(sources: &SourceMap, findings: &mut [Diagnostic]) {
    for finding in findings {
        let Some(place) = finding.label.as_ref().map(|label| label.span) else {
            continue;
        };
        // What stumbled over one says so.
        let is_told = finding.summary == SUMMARY;
        if is_told || sources.get(place.source).language != Language::Yaml {
            continue;
        }
        let text = sources.text(place);
        let is_plain = text.len() <= LONGEST && !text.starts_with(['"', '\'', '|', '>']);
        let within = text.find(is_blank).filter(|_| is_plain);
        let lines = Lines::new(&sources.get(place.source).text);
        let own = lines.start(place.start as usize);
        // Of a value, its key may be what is wrong.
        let before = || {
            let at = own + in_place_of_space(lines.line(own))?;
            (at < place.start as usize).then_some(at)
        };
        let within = within.map(|at| place.start as usize + at);
        let Some(start) = within.or_else(before) else {
            continue;
        };
        // A warning may be of something else in the text.
        let is_edge = within == Some(place.start as usize)
            || text.ends_with(is_blank)
            || in_place_of_space(lines.line(own)).is_some();
        if finding.severity != Severity::Error && !is_edge {
            continue;
        }
        let rest = &sources.get(place.source).text[start..];
        if let Some((text, length)) = words(rest) {
            let span = Span::new(place.source, start, start + length);
            finding.related.push(Label { span, text });
            let hint = format!("to YAML this is a letter: {}", hint(rest));
            finding.hints.insert(0, hint);
        }
    }
}
