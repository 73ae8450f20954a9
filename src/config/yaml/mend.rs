//! Texts with a mistake or several, mended so that what is behind can be read.
//!
//! In: a text that can't be parsed. Out: its document without the values that are to blame, and each
//! mistake. May not: explain one.
//!
//! A mistake is mostly one value on one line: it is left out, and the parser starts anew. Whether
//! that was right shows when the whole text can be read. Where it can't, the first mistake is all
//! that is told.

use std::collections::HashSet;
use std::ops::Range;

use super::lines::{Lines, key_of, without_dashes};
use crate::config::node::{Alias, Node, NodeValue};
use crate::config::source::SourceId;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// So many mistakes are mended: each makes the parser start anew.
const MOST: usize = 20;

/// Nor is a text mended that has more bytes.
const LONGEST: usize = 1 << 20;

/// Reads a document of which values were left out, and what stopped the parser at `first`. `None`
/// where that doesn't help.
pub(super) fn mended(
    source: SourceId,
    text: &str,
    first: Diagnostic,
    findings: &mut Diagnostics,
) -> Option<(Node, Vec<Alias>)> {
    if text.len() > LONGEST {
        return None;
    }
    let mut text = text.to_owned();
    let mut told = vec![first];
    let mut unknown = HashSet::new();
    let mut last = 0;
    for _ in 0..MOST {
        let stop = told.last()?.label.as_ref()?.span;
        let value = value_at(&text, stop.start as usize).filter(|value| value.start > last)?;
        last = value.start;
        unknown.insert(value.start as u32);
        // No place moves.
        let blanks = " ".repeat(value.len() - 1);
        text.replace_range(value, &format!("0{blanks}"));
        let mut found = Diagnostics::default();
        let (root, aliases) = super::read_with_aliases(source, &text, &mut found);
        match root {
            Some(mut root) => {
                leave_out(&mut root, &unknown);
                findings.extend(told);
                findings.extend(found);
                return Some((root, aliases));
            }
            None => told.push(found.into_iter().last()?),
        }
    }
    None
}

/// The value on the line of a place, up to the line's end.
fn value_at(text: &str, at: usize) -> Option<Range<usize>> {
    let lines = Lines::new(text);
    let (start, end) = (lines.start(at), lines.end(at));
    let line = text[start..end].trim_end();
    let item = without_dashes(line);
    let is_bare = !item.starts_with(['{', '[', '"', '\'']);
    let value = match key_of(item).filter(|_| is_bare) {
        Some(key) => item[key.len()..]
            .trim_start()
            .strip_prefix(':')?
            .trim_start(),
        // An item of a list, if it is one.
        None if item.len() < line.trim_start().len() => item.trim_start(),
        None => return None,
    };
    let length = value.len();
    // What has a name is used elsewhere.
    (length > 0 && !value.starts_with('&')).then(|| start + line.len() - length..start + line.len())
}

fn leave_out(node: &mut Node, places: &HashSet<u32>) {
    match &mut node.value {
        NodeValue::Array(items) => {
            for item in items {
                leave_out(item, places);
            }
        }
        NodeValue::Object(entries) => {
            for entry in entries {
                leave_out(&mut entry.value, places);
            }
        }
        _ if places.contains(&node.span.start) => node.value = NodeValue::Unknown,
        _ => {}
    }
}
