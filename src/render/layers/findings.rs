//! Reports findings about joined userdata at the line where it was written.
//!
//! In: findings with a place in rendered text. Out: notes with a place in the configuration. Must
//! not: add or drop findings.

use nstance_cloudinit::detect::missing_first_line;
use nstance_cloudinit::layers::{LayerFinding, Place as CloudPlace, Severity as FindingSeverity};

use super::{CompiledPart, CompiledUserdata, PartText};
use crate::address::Address;
use crate::credentials::shown_url;
use crate::diagnostic::mask::SensitivePieces;
use crate::diagnostic::{MASKED_REASON, Severity};
use crate::render::cache::Place;
use crate::render::instance::{Execution, Note, Report};
use crate::render::join_cache::Joint;
use crate::render::rendered_layer::{FILES, RenderedLayer};

impl CompiledUserdata {
    /// Reports findings. Returns whether none of them is an error.
    pub(super) fn tell_all(
        &self,
        joint: &Joint,
        layers: &mut [RenderedLayer],
        execution: &mut Execution<'_>,
    ) -> bool {
        if !joint.findings.is_empty() {
            self.trace(layers, execution);
        }
        for finding in &joint.findings {
            self.tell(finding, layers, execution.report, execution.address);
        }
        let sound = |finding: &LayerFinding| finding.severity != FindingSeverity::Error;
        joint.findings.iter().all(sound)
    }

    /// Warns of userdata that cloud-init ignores because of its first line.
    pub(super) fn tell_ignored(&self, rendered: &[u8], execution: &mut Execution<'_>) {
        let text = std::str::from_utf8(rendered).ok();
        let Some((line, part)) = text.and_then(missing_first_line).zip(self.part(0, 0)) else {
            return;
        };
        let note = Note {
            severity: Severity::Warning,
            is_strict: true,
            summary: "cloud-init ignores this userdata".to_owned(),
            label: "its first line isn't one that cloud-init knows".to_owned(),
            detail: None,
            hint: Some(format!("Begin it with the line `{line}`")),
        };
        execution
            .report
            .note(part.place, 0, note, execution.address);
    }

    pub(super) fn tell(
        &self,
        finding: &LayerFinding,
        layers: &[RenderedLayer],
        report: &mut Report,
        address: &Address,
    ) {
        let (mut place, mut offset) = (Place::Behind(self.span), 0);
        let mut what = "in the userdata as a whole".to_owned();
        if let Some(found) = &finding.place {
            what = told(found, layers);
            if let Some(file) = layers[found.layer].file_at(found.line) {
                place = Place::Behind(file);
            }
            if let Some(part) = self.part(found.layer, found.part) {
                let rendered = &layers[found.layer].parts[found.part].content;
                let exact = part.offset_of(rendered, found);
                (place, offset) = (part.place, exact.unwrap_or(0));
                let is_seen = exact.is_some() && matches!(place, Place::Literal(_));
                if let Some(line) = found.line.filter(|_| !is_seen) {
                    let rendered = match part.text {
                        PartText::Template(..) if exact.is_none() => " as rendered",
                        _ => "",
                    };
                    what = format!("line {line}{rendered}, {what}");
                }
            }
        }
        if !finding.path.is_empty() {
            what = format!("`{}`, {what}", finding.path);
        }
        let note = Note {
            severity: match finding.severity {
                FindingSeverity::Error => Severity::Error,
                FindingSeverity::Warning => Severity::Warning,
            },
            is_strict: false,
            summary: finding.summary.clone(),
            label: what,
            detail: finding.detail.clone(),
            hint: finding.hint.clone(),
        };
        report.note(place, offset, masked(note, finding, layers), address);
    }
}

/// The note without what it says of anything sensitive.
fn masked(note: Note, finding: &LayerFinding, layers: &[RenderedLayer]) -> Note {
    if !layers.iter().any(RenderedLayer::is_sensitive) {
        return note;
    }
    let pieces = SensitivePieces::new(layers.iter().flat_map(RenderedLayer::pieces));
    let place = finding.place.as_ref();
    let is_open = place.is_some_and(|place| layers[place.layer].shows(place));
    if !is_open {
        return Note {
            severity: note.severity,
            is_strict: note.is_strict,
            summary: "something is wrong with the userdata".to_owned(),
            label: MASKED_REASON.to_owned(),
            detail: None,
            hint: None,
        };
    }
    Note {
        severity: note.severity,
        is_strict: note.is_strict,
        summary: pieces.redact(&note.summary),
        label: pieces.redact(&note.label),
        detail: note.detail.map(|detail| pieces.redact(&detail)),
        hint: note.hint.filter(|hint| pieces.redact(hint) == **hint),
    }
}

impl CompiledPart {
    /// Where a place in rendered text was written, as an offset in the source text; `None` if that
    /// isn't certain.
    pub(in crate::render) fn offset_of(
        &self,
        rendered: &[u8],
        place: &CloudPlace,
    ) -> Option<usize> {
        if place.within.is_some() {
            return None;
        }
        let index = (place.line? as usize).checked_sub(1)?;
        let (text, index) = match &self.text {
            PartText::Constant(bytes) => (&bytes[..], index),
            PartText::Template(_, text) => {
                let written = written_line(text, rendered, index)?;
                (text.as_bytes(), written)
            }
            PartText::Absent => return None,
        };
        let start: usize = lines(text).take(index).map(<[u8]>::len).sum();
        let line = lines(text).nth(index).unwrap_or_default();
        let same = lines(rendered).nth(place.line? as usize - 1) == Some(line);
        let column = place.column.filter(|_| same).unwrap_or(1) as usize - 1;
        Some(start + bytes_before(line, column))
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// The number of bytes before a character of a line; at least its indentation.
fn bytes_before(line: &[u8], characters: usize) -> usize {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let indentation = line.iter().take_while(blank).count();
    let text = std::str::from_utf8(line).unwrap_or_default();
    let before = text.char_indices().nth(characters).map_or(0, |(at, _)| at);
    before.max(indentation)
}

/// The line of a template that a rendered line comes from; `None` if that isn't certain.
fn written_line(template: &str, rendered: &[u8], index: usize) -> Option<usize> {
    let template = template.as_bytes();
    let wanted = lines(rendered).nth(index)?;
    // If no action added or removed a line, line numbers are equal.
    if lines(template).nth(index) == Some(wanted)
        || lines(template).count() == lines(rendered).count()
    {
        return Some(index);
    }
    let is_filled = |line: &[u8]| !line.trim_ascii().is_empty();
    let mut same = lines(template)
        .enumerate()
        .filter(|(_, line)| is_filled(line) && *line == wanted);
    match (same.next(), same.next()) {
        (Some((index, _)), None) => Some(index),
        _ => None,
    }
}

/// The layer and part of a place, in words.
fn told(place: &CloudPlace, layers: &[RenderedLayer]) -> String {
    let layer = layers.get(place.layer);
    let mut what = format!(
        "in the userdata of {}",
        owner(layer.map_or(FILES, |layer| layer.name))
    );
    if layer.is_some_and(|layer| layer.parts.len() > 1) {
        what = format!("in part {} of {}", place.part + 1, &what["in ".len()..]);
    }
    match &place.within {
        Some(name) => format!("in `{}`, {what}", shown_url(name)),
        None => what,
    }
}

/// The layer's userdata, in words.
pub(in crate::render) fn owner(layer: &str) -> String {
    match layer {
        "defaults" => "`defaults`".to_owned(),
        FILES => "the files".to_owned(),
        layer => format!("the {layer}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendered_line_is_found_where_it_was_written() {
        let template = "a\n{{ if .X }}\nb\n{{ end }}\nc\nc\nd\n";
        let rendered = b"a\n\nb\n\nc\nc\nd\n";
        // The number of lines is equal, so each keeps its number.
        for index in 0..7 {
            assert_eq!(written_line(template, rendered, index), Some(index));
        }
        let shorter = b"a\nb\nc\nc\nd\n";
        for (index, written) in [
            (0, Some(0)),
            (1, Some(2)),
            // This line occurs twice.
            (2, None),
            (4, Some(6)),
            (9, None),
        ] {
            assert_eq!(written_line(template, shorter, index), written, "{index}");
        }
    }

    #[test]
    fn a_column_counts_characters() {
        let line = "  é: ü\n".as_bytes();
        assert_eq!(bytes_before(line, 0), 2);
        assert_eq!(bytes_before(line, 5), 6);
        assert_eq!(bytes_before(line, 99), 2);
        assert_eq!(bytes_before(b"\xff\xff", 1), 0);
    }
}
