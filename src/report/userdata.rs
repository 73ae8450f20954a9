//! Shows userdata: the origin of each line, what was lost, its parts.
//!
//! In: joined layers, or decoded userdata. Out: text, JSON, and findings with places. Must not:
//! print, or decide what is wrong.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use nstance_cloudinit::layers::{Dropped, Joined, JoinedPart, LayerFinding, Place, Severity, Why};
use nstance_cloudinit::opened::Opened;
use serde_json::{Value, json};

use crate::config::position::word;
use crate::config::source::{SourceId, SourceMap, Span};
use crate::diagnostic::Diagnostic;

/// The name of a place in messages.
pub type Naming<'n> = dyn Fn(&Place) -> String + 'n;

/// Longer lines aren't aligned.
const WIDEST: usize = 60;

/// A place in the file `name`: `base.yaml:3`, or `base.mime (part-002):3`.
pub fn named(name: &str, place: &Place) -> String {
    let mut text = name.to_owned();
    if let Some(within) = &place.within {
        let _ = write!(text, " ({within})");
    }
    if let Some(line) = place.line {
        let _ = write!(text, ":{line}");
    }
    text
}

/// The bytes of a place in a source: a word if the column is known, else a line. `None` if the
/// place is within encoded data.
pub fn span(sources: &SourceMap, id: SourceId, place: &Place) -> Option<Span> {
    let line = place.line.filter(|_| place.within.is_none())? as usize;
    let text = &sources.get(id).text;
    let start = text
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum::<usize>();
    let line = text[start..].split(['\n', '\r']).next().unwrap_or_default();
    let blanks = line.len() - line.trim_start().len();
    let from = place.column.map_or(blanks, |column| {
        let before = line.chars().take(column as usize - 1);
        before.map(char::len_utf8).sum()
    });
    let rest = &line[from..];
    let end = if place.column.is_some() {
        word(rest)
    } else {
        rest.trim_end().len()
    };
    Some(Span::new(id, start + from, start + from + end.max(1)))
}

/// A finding at its place in a source, if it has one.
pub fn diagnostic(finding: &LayerFinding, span: Option<Span>, name: &Naming<'_>) -> Diagnostic {
    let mut made = match finding.severity {
        Severity::Error => Diagnostic::error(&finding.summary),
        Severity::Warning => Diagnostic::warning(&finding.summary),
    };
    made.detail.clone_from(&finding.detail);
    match (span, &finding.place) {
        (Some(span), _) => made = made.at(span, ""),
        (None, Some(place)) => {
            let place = format!("In {}", name(place));
            let detail = made.detail.map(|detail| format!("{place}\n{detail}"));
            made.detail = detail.or(Some(place));
        }
        (None, None) => {}
    }
    made.hints.extend(finding.hint.clone());
    made
}

/// The origin of each line of the result, and what was lost.
pub fn explained(joined: &Joined, name: &Naming<'_>) -> String {
    let mut text = String::new();
    for (number, part) in joined.parts.iter().enumerate() {
        if joined.parts.len() > 1 {
            if number > 0 {
                text.push('\n');
            }
            let _ = writeln!(text, "--- part {}: {}", number + 1, headline(part));
        }
        let lines = lines(joined, part, name);
        let width = lines
            .iter()
            .map(|(line, _)| line.chars().count())
            .filter(|width| *width <= WIDEST)
            .max()
            .unwrap_or(0);
        for (line, origin) in lines {
            if origin.is_empty() {
                let _ = writeln!(text, "{line}");
            } else {
                let _ = writeln!(text, "{line:width$}  {origin}");
            }
        }
    }
    text.push_str(&lost(joined, name));
    text
}

fn headline(part: &JoinedPart) -> String {
    match &part.filename {
        Some(name) => format!("{}, {name}", part.content_type),
        None => part.content_type.clone(),
    }
}

/// The lines of a part, each with its origin; empty for generated lines, such as the first line of
/// merged userdata.
fn lines(joined: &Joined, part: &JoinedPart, name: &Naming<'_>) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(&part.content);
    let mut found = Vec::new();
    let mut at = 0;
    let mut marks = part.marks.iter().peekable();
    let mut place = None;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if let Some(written) = &part.place {
            place = Some(Place {
                line: Some(written.line.unwrap_or(1) + number as u32),
                ..written.clone()
            });
        }
        while let Some((_, origin)) = marks.next_if(|(start, _)| *start <= at) {
            place = joined.place(*origin);
        }
        let shown = super::diagnostic::printable(line.trim_end_matches(['\n', '\r']));
        found.push((shown, place.as_ref().map(name).unwrap_or_default()));
        at += line.len();
    }
    found
}

/// What was lost, one line each; may be empty.
pub fn lost(joined: &Joined, name: &Naming<'_>) -> String {
    if joined.dropped.is_empty() {
        return String::new();
    }
    let rows: Vec<[String; 3]> = joined
        .dropped
        .iter()
        .map(|dropped| {
            let path = if dropped.path.is_empty() {
                "all of it".to_owned()
            } else {
                super::diagnostic::printable(&dropped.path)
            };
            [name(&dropped.place), path, why(dropped, name)]
        })
        .collect();
    format!(
        "\nLost:\n{}",
        super::table(&["WRITTEN", "WHAT", "WHY"], &rows)
    )
}

fn why(dropped: &Dropped, name: &Naming<'_>) -> String {
    let at = |place: &Option<Place>| {
        place
            .as_ref()
            .map_or_else(|| "something else".to_owned(), name)
    };
    match &dropped.why {
        Why::Replaced { by_layer } => {
            let layer = Place {
                layer: *by_layer,
                ..Place::default()
            };
            format!("{} took its place", name(&layer))
        }
        Why::Overridden { by } => format!("{} took its place", at(by)),
        Why::Kept { earlier } => format!("{} stayed in its place", at(earlier)),
        Why::Cut => "lists were merged index by index, and the earlier one is shorter".to_owned(),
        Why::Repeated => "it is there already".to_owned(),
        Why::Deleted => "a later layer deleted it".to_owned(),
        Why::Failed => "its part can't be merged".to_owned(),
    }
}

/// What was lost, as JSON.
pub fn lost_json(joined: &Joined, name: &Naming<'_>) -> Value {
    let lost = joined.dropped.iter().map(|dropped| {
        let kind = match dropped.why {
            Why::Replaced { .. } => "replaced",
            Why::Overridden { .. } => "overridden",
            Why::Kept { .. } => "kept",
            Why::Cut => "cut",
            Why::Repeated => "repeated",
            Why::Deleted => "deleted",
            Why::Failed => "failed",
        };
        json!({
            "written": name(&dropped.place),
            "path": dropped.path,
            "kind": kind,
            "why": why(dropped, name),
        })
    });
    lost.collect()
}

/// The lines of each part, as JSON.
pub fn lines_json(joined: &Joined, name: &Naming<'_>) -> Value {
    let parts = joined.parts.iter().map(|part| {
        let lines: Value = lines(joined, part, name)
            .into_iter()
            .map(|(line, written)| {
                let written = Some(written).filter(|written| !written.is_empty());
                json!({"text": line, "written": written})
            })
            .collect();
        json!({"content_type": part.content_type, "filename": part.filename, "lines": lines})
    });
    parts.collect()
}

/// The contents of userdata: a tree of its parts, then the text of each.
pub fn opened(opened: &Opened) -> String {
    let mut text = String::new();
    let mut number = 0;
    branch(opened, 0, &mut number, &mut text);
    let leaves = opened.leaves();
    for (index, leaf) in leaves.iter().enumerate() {
        let _ = writeln!(text, "\n--- part {} of {}", index + 1, leaves.len());
        match std::str::from_utf8(&leaf.content) {
            Ok(content) => {
                for line in content.split_inclusive('\n') {
                    let line = line.trim_end_matches('\n');
                    let _ = writeln!(text, "{}", visible(line));
                }
            }
            Err(_) => {
                let _ = writeln!(text, "(no text: `--part {}` writes its bytes)", index + 1);
            }
        }
    }
    text
}

/// A line with control characters made visible.
fn visible(line: &str) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let pieces: Vec<String> = line.split('\t').map(super::diagnostic::printable).collect();
    pieces.join("\t")
}

fn branch(opened: &Opened, depth: usize, number: &mut usize, text: &mut String) {
    let mut words = Vec::new();
    for packing in &opened.packing {
        words.push(packing.name().to_owned());
    }
    words.push(opened.content_type.clone());
    words.extend(opened.filename.clone());
    words.extend(opened.url.clone());
    let content = if opened.parts.is_empty() {
        opened.content.len()
    } else {
        opened.packed_size
    };
    words.push(format!("{content} bytes"));
    let encodings = [
        "content-transfer-encoding",
        "merge-type",
        "x-merge-type",
        "launch-index",
    ];
    for (name, value) in &opened.headers {
        if encodings.contains(&&*name.to_lowercase()) {
            words.push(format!("{name}: {value}"));
        }
    }
    let label = if opened.parts.is_empty() {
        *number += 1;
        format!("part {number}: ")
    } else {
        String::new()
    };
    let line = super::diagnostic::printable(&words.join(", "));
    let _ = writeln!(text, "{:indent$}{label}{line}", "", indent = depth * 2);
    if let Some(problem) = &opened.problem {
        let _ = writeln!(text, "{:indent$}  but {problem}", "", indent = depth * 2);
    }
    for part in &opened.parts {
        branch(part, depth + 1, number, text);
    }
}

/// The contents of userdata, as JSON.
pub fn opened_json(opened: &Opened) -> Value {
    let mut document = json!({"format_version": "1.0"});
    fill(&mut document, opened);
    document
}

fn fill(document: &mut Value, opened: &Opened) {
    let packing: Vec<&str> = opened.packing.iter().map(|one| one.name()).collect();
    document["content_type"] = opened.content_type.clone().into();
    document["filename"] = opened.filename.clone().into();
    document["packing"] = packing.into();
    document["packed_size"] = opened.packed_size.into();
    document["size"] = opened.content.len().into();
    let headers = opened.headers.iter();
    document["headers"] = headers
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    document["url"] = opened.url.clone().into();
    document["problem"] = opened.problem.clone().into();
    if opened.parts.is_empty() {
        match std::str::from_utf8(&opened.content) {
            Ok(text) => document["content"] = text.into(),
            Err(_) => document["content_base64"] = BASE64.encode(&opened.content).into(),
        }
        return;
    }
    let parts = opened.parts.iter().map(|part| {
        let mut document = json!({});
        fill(&mut document, part);
        document
    });
    document["parts"] = parts.collect();
}
