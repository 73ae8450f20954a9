//! YAML 1.2, read into [`Node`]s.
//!
//! In: the text of one file. Out: its document, each value with its place, or what is wrong with
//! it. May not: know the schema.
//!
//! `saphyr-parser` tells the events; what scalars mean (the core schema), anchors, merge keys and
//! the limits are ours. Where YAML 1.1 would have read a plain scalar otherwise, a warning says so.

mod blanks;
mod build;
mod events;
mod explain;
mod input;
mod lines;
mod marks;
mod properties;
mod scalars;
mod slips;
#[cfg(test)]
mod tests;
mod words;

use super::node::{Alias, Node};
use super::source::{SourceId, Span};
use crate::diagnostic::{Diagnostic, Diagnostics};
pub(in crate::config) use blanks::name_blanks;
use build::{Builder, Stop};
use events::Events;

/// How many values aliases may copy: a few lines could otherwise stand for more than any memory.
const LARGEST_EXPANSION: usize = 1_000_000;

/// How many bytes are checked for control characters without stopping.
const CHECKED_AT_ONCE: usize = 256;

/// Reads a document. `None` where the text can't be parsed; findings then say why. A key that
/// stands twice in an object is an error, and its first value is kept.
pub fn read(source: SourceId, text: &str, findings: &mut Diagnostics) -> Option<Node> {
    read_with_aliases(source, text, findings).0
}

/// The same, with the aliases that were followed: a value behind one keeps the place of its
/// anchor, and what is wrong with it may be wrong at the alias only.
pub fn read_with_aliases(
    source: SourceId,
    text: &str,
    findings: &mut Diagnostics,
) -> (Option<Node>, Vec<Alias>) {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let base = text.len() - body.len();
    if let Some(finding) = control_character(source, body, base) {
        findings.push(finding);
        return (None, Vec::new());
    }
    let read = Events::with(body, |events| {
        let mut builder = Builder::new(source, text, base, events, findings);
        let document = builder.document()?;
        Ok(document.map(|node| (node, builder.into_aliases())))
    });
    match read {
        Err(Stop) => (None, Vec::new()),
        Ok(Some((node, aliases))) => (Some(node), aliases),
        Ok(None) => {
            let end = text.len();
            findings.push(
                Diagnostic::error("the file holds no configuration")
                    .at(
                        Span::new(source, end, end),
                        "expected keys such as `cluster:`",
                    )
                    .hint("`nstance init` writes one to start from"),
            );
            (None, Vec::new())
        }
    }
}

/// Whether a scalar without quotes is this text, to YAML 1.1 too.
pub fn is_plain_text(text: &str) -> bool {
    scalars::resolve(text) == scalars::Plain::Text && scalars::surprise(text).is_none()
}

/// The first character that YAML doesn't allow anywhere.
fn control_character(source: SourceId, body: &str, base: usize) -> Option<Diagnostic> {
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 11 | 12 | 14..=31 | 127);
    // Looking at all bytes of some takes the processor a few steps; stopping within them, many.
    let some = body.as_bytes().chunks(CHECKED_AT_ONCE).position(|some| {
        some.iter()
            .fold(false, |found, byte| found | is_control(byte))
    })? * CHECKED_AT_ONCE;
    let at = some + body.as_bytes()[some..].iter().position(is_control)?;
    let byte = body.as_bytes()[at];
    Some(
        Diagnostic::error(format!(
            "the file contains the control character U+{byte:04X}"
        ))
        .at(
            Span::new(source, base + at, base + at + 1),
            "YAML can't hold it as it is",
        )
        .hint(format!(
            "it is invisible; delete it, or write `\\x{byte:02X}` in a string in double quotes"
        )),
    )
}
