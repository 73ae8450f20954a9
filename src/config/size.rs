//! Limits the total size of a configuration's values after evaluation.
//!
//! In: values on their way into documents; a whole document. Out: whether they fit. Must not: know
//! their purpose.
//!
//! Files are limited when they are read. But an alias, a local or a function can copy a value any
//! number of times, and each copy is rendered, compared and shown separately.

use super::node::{Node, NodeValue};
use super::source::Span;
use crate::diagnostic::Diagnostic;

/// The size limit of all values, in bytes: twice that of the files.
pub(super) const LARGEST: usize = 128 << 20;

/// The overhead of a value, in bytes.
const EACH: usize = 16;

/// The size of a value with this text length, without its children.
pub(super) fn of(text: usize) -> usize {
    EACH + text
}

/// The error that the values exceed the limit.
pub(super) fn too_large(span: Span) -> Diagnostic {
    let limit = LARGEST >> 20;
    Diagnostic::error("the configuration's values are too large")
        .at(
            span,
            format!("with this one all of them take more than {limit} MiB"),
        )
        .hint(
            "Aliases, references and expressions copy what they stand for; what groups share \
             belongs in `defaults` or a template",
        )
}

/// The first value that exceeds the limit.
pub(super) fn overflow(root: &Node) -> Option<Span> {
    let mut room = LARGEST;
    walk(root, &mut room).err()
}

fn walk(node: &Node, room: &mut usize) -> Result<(), Span> {
    let text = match &node.value {
        NodeValue::String(text) => text.len(),
        _ => 0,
    };
    *room = room.checked_sub(of(text)).ok_or(node.span)?;
    match &node.value {
        NodeValue::Array(items) => items.iter().try_for_each(|item| walk(item, room)),
        NodeValue::Object(entries) => entries
            .iter()
            .try_for_each(|entry| walk(&entry.value, room)),
        _ => Ok(()),
    }
}
