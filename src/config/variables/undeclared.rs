//! `${var.x}` where no variable is declared: there it is text.
//!
//! In: findings about texts that weren't interpolated. Out: the same, with the reason. May not: speak
//! of texts that nothing is wrong with; for a shell `${x}` means something.

use super::{Part, parts};
use crate::config::source::{Language, SourceMap};
use crate::diagnostic::{Diagnostic, Severity};

/// In a longer text an interpolation is hardly what is wrong. In bytes.
const LONGEST: usize = 200;

/// Adds to errors about a text with `${var.x}` that it isn't interpolated.
pub(in crate::config) fn name_interpolations(sources: &SourceMap, findings: &mut [Diagnostic]) {
    for finding in findings {
        let Some(place) = finding.label.as_ref().map(|label| label.span) else {
            continue;
        };
        let text = sources.text(place);
        if finding.severity != Severity::Error
            || sources.get(place.source).language == Language::Hcl
            || text.len() > LONGEST
        {
            continue;
        }
        let mut parts = parts(text).into_iter();
        if parts.any(|(_, part)| matches!(part, Part::Expression(text) if text.contains("var."))) {
            finding.hints.insert(
                0,
                "no variable is declared, and without any `${…}` is text: declare it below `variables`"
                    .to_owned(),
            );
        }
    }
}
