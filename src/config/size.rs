//! How much a configuration's values take, references and expressions followed.
//!
//! In: values on their way into documents; a whole document. Out: whether there is room for them.
//! Must not: know what they are for.
//!
//! Files are limited when they are read. An alias, a local or a function can make any number of
//! copies of what a file says once, and each copy is rendered, compared and shown by itself.

use super::node::{Node, NodeValue};
use super::source::Span;
use crate::diagnostic::Diagnostic;

/// The most that all values together may take, in bytes: twice what files may have.
pub(super) const LARGEST: usize = 128 << 20;

/// What a value takes besides its text.
const EACH: usize = 16;

/// What a value takes, without what is in it.
pub(super) fn of(text: usize) -> usize {
    EACH + text
}

/// The finding that values take more than there is room for.
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

/// The first value that there is no room for.
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
