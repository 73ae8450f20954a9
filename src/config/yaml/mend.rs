//! Texts with a mistake or several, mended so that what is behind can be read.
//!
//! In: a text that can't be parsed. Out: its document without the values that are to blame, and each
//! mistake. May not: explain one.
//!
//! A mistake is mostly one value on one line: it is left out, and the parser starts anew. Whether
//! that was right shows when the whole text can be read. Where it can't, the first mistake is all
//! that is told.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::lines::{Lines, key_of, without_dashes};
use crate::config::node::{Alias, Node, NodeValue};
use crate::config::source::{SourceId, Span};
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
    let mut keys = HashMap::new();
    let mut last = 0;
    for _ in 0..MOST {
        let stop = told.last()?.label.as_ref()?.span;
        let at = stop.start as usize;
        let value = match value_at(&text, at) {
            Some(value) => value,
            // No place moves.
            None => {
                let (key, rest) = behind_key(&text, at)?;
                keys.insert(key as u32, Span::new(source, rest.start, rest.end));
                let blanks = " ".repeat(rest.len() - 1);
                text.replace_range(rest.clone(), &format!(":{blanks}"));
                rest.start + 2..rest.end
            }
        };
        if value.start <= last {
            return None;
        }
        last = value.start;
        if !value.is_empty() {
            unknown.insert(value.start as u32);
            let blanks = " ".repeat(value.len() - 1);
            text.replace_range(value, &format!("0{blanks}"));
        }
        let mut found = Diagnostics::default();
        let (root, aliases) = super::read_with_aliases(source, &text, &mut found);
        match root {
            Some(mut root) => {
                leave_out(&mut root, &unknown, &keys);
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
    let key = key_of(item).filter(|_| is_bare);
    if key.is_some_and(|key| key.contains(['{', '['])) {
        return None;
    }
    let value = match key {
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

/// Where the first word of a line stands that should be a key, as those around it have one, and what
/// stands behind it without a colon and a blank.
fn behind_key(text: &str, at: usize) -> Option<(usize, Range<usize>)> {
    let lines = Lines::new(text);
    let (indent, start) = lines.indent(at);
    let end = lines.end(at);
    let begins_text = |line: usize| {
        let line = lines.line(line).trim_end().trim_end_matches(['-', '+']);
        line.ends_with(['|', '>'])
    };
    if start >= end {
        return None;
    }
    let is_keyed = key_of(lines.line(at)).is_some_and(|key| !key.contains(['{', '[']));
    if is_keyed || lines.above(at).is_some_and(begins_text) {
        return None;
    }
    let below = text[end..].find('\n').map(|length| end + length + 1);
    let is_key = |line: usize| lines.indent(line).0 == indent && key_of(lines.line(line)).is_some();
    if !lines.above(at).is_some_and(is_key) && !below.is_some_and(is_key) {
        return None;
    }
    let is_outside = |one: char| !one.is_ascii_alphanumeric() && !matches!(one, '_' | '-' | '.');
    let length = text[start..end].find(is_outside)?;
    let rest = start + length..end;
    (length > 0 && rest.len() > 1).then_some((start, rest))
}

/// Makes what stands at `places` unknown, and what was made a key: whether it is one isn't certain.
fn leave_out(node: &mut Node, places: &HashSet<u32>, keys: &HashMap<u32, Span>) {
    match &mut node.value {
        NodeValue::Array(items) => {
            for item in items {
                leave_out(item, places, keys);
            }
        }
        NodeValue::Object(entries) => {
            for entry in entries {
                match keys.get(&entry.key_span.start) {
                    Some(place) => {
                        entry.key_span = *place;
                        entry.value = Node::unknown(*place);
                    }
                    None => leave_out(&mut entry.value, places, keys),
                }
            }
        }
        _ if places.contains(&node.span.start) => node.value = NodeValue::Unknown,
        _ => {}
    }
}
