//! YAML 1.2, read into [`Node`]s.
//!
//! In: the text of one file. Out: its document, each value with its place, or what is wrong with
//! it. May not: know the schema.
//!
//! `saphyr-parser` tells the events; what scalars mean (the core schema), anchors, merge keys and
//! the limits are ours. Where YAML 1.1 would have read a plain scalar otherwise, a warning says so.

mod blanks;
mod build;
mod cut;
mod events;
mod explain;
mod input;
mod lines;
mod marks;
mod mend;
mod properties;
mod scalars;
mod slips;
#[cfg(test)]
mod tests;
mod words;

use memchr::memmem;

use super::halves;
use super::node::{Alias, Node};
use super::source::{SourceId, Span};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::threads::{WORTH_A_THREAD, both, cores};
pub(in crate::config) use blanks::name_blanks;
use build::{Builder, Stop};
use cut::Cut;
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
    if body.len() >= WORTH_A_THREAD
        && cores() > 1
        && let Some(cut) = Cut::find(body)
        && let Some((node, aliases)) = in_halves(source, text, base, &cut, findings)
    {
        return (Some(node), aliases);
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

/// The same, but goes on after mistakes where it helps to leave out single values: then there is a
/// document, and each mistake is among the findings.
pub(super) fn read_on(
    source: SourceId,
    text: &str,
    findings: &mut Diagnostics,
) -> (Option<Node>, Vec<Alias>) {
    let mut found = Diagnostics::default();
    let read = read_with_aliases(source, text, &mut found);
    if read.0.is_none()
        && let Some(first) = found.iter().last().cloned()
        && let Some((root, aliases)) = mend::mended(source, text, first, findings)
    {
        return (Some(root), aliases);
    }
    findings.extend(found);
    read
}

/// Reads a document as two. `None`, and no findings, where something is wrong with it.
fn in_halves(
    source: SourceId,
    text: &str,
    base: usize,
    cut: &Cut<'_>,
    findings: &mut Diagnostics,
) -> Option<(Node, Vec<Alias>)> {
    if ["\n---", "\n..."]
        .iter()
        .any(|marker| memmem::find(text.as_bytes(), marker.as_bytes()).is_some())
    {
        // The other half may be another document.
        return None;
    }
    let at = base + cut.at;
    let (second, start) = halves::second(text, at, &cut.under.concat())?;
    let depth = cut.under.len();
    let read = |text: &str, base: usize| {
        let mut findings = Diagnostics::default();
        let events = Events::in_turn(&text[base..]);
        let mut builder = Builder::new(source, text, base, events, &mut findings);
        let node = builder.document().ok()??;
        // The place of a merge key among the entries counts, and its entries are the weaker ones.
        if builder.has_merge_within(depth) {
            return None;
        }
        let expanded = builder.expanded();
        let aliases = builder.into_aliases();
        (!findings.has_errors()).then_some((node, aliases, expanded, findings))
    };
    // Where a text of several lines ends, the parser says by what follows: an indentation, at least.
    let first = &text[..at + cut.indent];
    let (first, second) = both(|| read(first, base), || read(&second, start));
    let (mut whole, mut aliases, expanded, found) = first?;
    let (node, more_aliases, more_expanded, more_found) = second?;
    if expanded + more_expanded > LARGEST_EXPANSION {
        return None;
    }
    halves::join(&mut whole, node, depth)?;
    aliases.extend(more_aliases);
    findings.extend(found);
    findings.extend(more_found);
    Some((whole, aliases))
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
