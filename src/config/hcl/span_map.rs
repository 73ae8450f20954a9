//! Maps spans of the HCL crate to the configuration.
//!
//! In: spans and errors of `nstance_hcl`. Their file numbers are those of the [`SourceMap`], or of
//! snippets: expressions within strings of other languages. Out: spans and findings. Must not:
//! evaluate anything.

use std::cell::RefCell;

use crate::config::position;
use crate::config::source::{SourceId, SourceMap, Span};
use crate::diagnostic::Diagnostic;

/// The first file number of snippets.
const SNIPPETS: u32 = 1 << 31;

/// The places of snippets.
#[derive(Debug, Default)]
pub(in crate::config) struct Places {
    snippets: RefCell<Vec<(Span, usize)>>,
}

impl Places {
    /// A file number for a text that begins at byte `offset` of the string at `span`.
    pub(in crate::config) fn snippet(&self, span: Span, offset: usize) -> u32 {
        let mut snippets = self.snippets.borrow_mut();
        snippets.push((span, offset));
        SNIPPETS + (snippets.len() - 1) as u32
    }

    /// The span in the configuration.
    pub(in crate::config) fn span(&self, sources: &SourceMap, span: nstance_hcl::Span) -> Span {
        if span.file < SNIPPETS {
            return Span {
                source: SourceId(span.file),
                start: span.start,
                end: span.end,
            };
        }
        let snippets = self.snippets.borrow();
        let (literal, offset) = snippets[(span.file - SNIPPETS) as usize];
        let byte = |at: u32| position::within(sources, literal, offset + at as usize);
        let first = byte(span.start);
        if span.end <= span.start {
            return Span {
                end: first.start,
                ..first
            };
        }
        Span {
            end: byte(span.end - 1).end,
            ..first
        }
    }

    /// The finding for an error.
    pub(in crate::config) fn finding(
        &self,
        sources: &SourceMap,
        error: &nstance_hcl::Error,
    ) -> Diagnostic {
        let mut finding = Diagnostic::error(fragment(&error.summary))
            .at(self.span(sources, error.span), error.detail.clone());
        for (span, what) in &error.related {
            finding = finding.related(self.span(sources, *span), what.clone());
        }
        finding.hints.extend(error.hint.clone());
        finding
    }
}

/// Converts a span to one of the HCL crate.
pub(in crate::config) fn named(span: Span) -> nstance_hcl::Span {
    nstance_hcl::Span {
        file: span.source.0,
        start: span.start,
        end: span.end,
    }
}

/// Lowers the first letter of a message, except of names and acronyms.
fn fragment(sentence: &str) -> String {
    let mut characters = sentence.chars();
    match (characters.next(), characters.clone().next()) {
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => sentence.to_owned(),
    }
}
