//! Layers of userdata as they are rendered for one instance.
//!
//! In: the parts of a layer. Out: [`RenderedLayer`], which knows what of it is sensitive, and where the
//! files in it are defined. Must not: know templates.

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use nstance_cloudinit::layers::{LayerPart, Mode, Place as CloudPlace};
use nstance_cloudinit::userdata::Bodies as CloudBodies;

use super::userdata::{self, CarriedFile};
use crate::config::source::Span;
use crate::sensitivity::TextMark;

/// What messages call the files that travel in the userdata.
pub(super) const FILES: &str = "files";

/// A layer as it is rendered for an instance.
#[derive(Debug, Clone)]
pub(super) struct RenderedLayer {
    /// What messages call it.
    pub(super) name: &'static str,
    pub(super) mode: Mode,
    pub(super) parts: Vec<LayerPart>,
    /// What its parts include, where that is fetched: the same for all that are joined together with
    /// one [`Joins`].
    pub(super) included: Option<Arc<CloudBodies>>,
    /// Of files, the line of the text that each begins at, and where it is defined; in order.
    pub(super) files: Vec<(u32, Span)>,
    /// The bytes of each part that are sensitive, where that was asked for.
    pub(super) sensitive: Vec<Vec<Range<usize>>>,
}

impl RenderedLayer {
    /// The files that travel in the userdata; they join the cloud-config below, or say themselves
    /// how the machine is to merge them.
    pub(super) fn of_files(files: &[CarriedFile<'_>], joins: bool) -> Self {
        let content = userdata::write_files(files, joins);
        let lines = content.lines().zip(1..);
        // Each begins so, and what it says is quoted.
        let starts = lines.filter(|(line, _)| line.starts_with("- path: "));
        let spans = files.iter().map(|file| file.span);
        Self {
            name: FILES,
            files: starts.map(|(_, line)| line).zip(spans).collect(),
            mode: if joins { Mode::Nstance } else { Mode::Append },
            sensitive: files
                .iter()
                .any(|file| file.is_sensitive)
                .then(|| iter::once(0..content.len()).collect())
                .into_iter()
                .collect(),
            parts: vec![LayerPart::new(content)],
            included: None,
        }
    }

    /// Where the file is defined that a line is of.
    pub(super) fn file_at(&self, line: Option<u32>) -> Option<Span> {
        let line = line?;
        let files = self.files.iter().rev();
        let mut begun = files.filter(|(start, _)| *start <= line);
        begun.next().map(|(_, span)| *span)
    }
    /// Whether anything in it is sensitive.
    pub(super) fn is_sensitive(&self) -> bool {
        self.sensitive.iter().any(|ranges| !ranges.is_empty())
    }

    /// The sensitive pieces of its parts; none of files, which are sensitive as a whole.
    pub(super) fn pieces(&self) -> Vec<String> {
        if self.name == FILES {
            return Vec::new();
        }
        let parts = self.parts.iter().zip(&self.sensitive);
        parts
            .flat_map(|(part, ranges)| {
                let pieces = ranges
                    .iter()
                    .filter_map(|range| part.content.get(range.clone()));
                pieces.flat_map(|piece| {
                    let piece = String::from_utf8_lossy(piece);
                    // What is found is told of lines.
                    piece
                        .lines()
                        .map(|line| line.trim().to_owned())
                        .collect::<Vec<_>>()
                })
            })
            .collect()
    }

    /// Whether a place in it is known, and on a line without anything sensitive.
    pub(super) fn shows(&self, place: &CloudPlace) -> bool {
        let ranges = self
            .sensitive
            .get(place.part)
            .map_or(&[][..], Vec::as_slice);
        if ranges.is_empty() {
            return true;
        }
        let (Some(line), None) = (place.line, &place.within) else {
            return false;
        };
        let text = self
            .parts
            .get(place.part)
            .map(|part| String::from_utf8_lossy(&part.content));
        let mark = TextMark::of_bytes(text.as_deref().unwrap_or_default(), ranges);
        !mark.hides((line as usize).saturating_sub(1))
    }
}
