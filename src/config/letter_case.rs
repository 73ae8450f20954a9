//! Renames keys that differ from the schema's in letter case only, since the Nstance server reads
//! them in any case.
//!
//! In: the document of a configuration. Out: the document with the schema's keys, and a warning for
//! each renamed one. Must not: touch names in maps, which are exact.

use super::node::{Entry, Node, NodeValue};
use super::schema::{Shape, Table, tables};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Renames the keys of a whole configuration.
pub(super) fn settle(root: &mut Node, findings: &mut Diagnostics) {
    object(root, &tables::TOP, findings);
}

fn object(node: &mut Node, table: &'static Table, findings: &mut Diagnostics) {
    let NodeValue::Object(entries) = &mut node.value else {
        return;
    };
    for index in 0..entries.len() {
        rename(entries, index, table.names(), findings);
    }
    for entry in entries {
        if let Some(key) = table.key(&entry.key) {
            value(&mut entry.value, key.shape, findings);
        }
    }
}

/// Gives an entry the known name that its key differs from in letter case only, with a warning. An
/// error if the name is there, too.
pub(crate) fn rename(
    entries: &mut [Entry],
    index: usize,
    names: impl Iterator<Item = &'static str> + Clone,
    findings: &mut Diagnostics,
) {
    let entry = &entries[index];
    if names.clone().any(|name| *name == *entry.key) {
        return;
    }
    let mut names = names.filter(|name| name.eq_ignore_ascii_case(&entry.key));
    let Some(known) = names.next() else {
        return;
    };
    let summary = format!("`{}` is read as `{known}`", entry.key);
    if let Some(first) = entries.iter().find(|first| &*first.key == known) {
        findings.push(
            Diagnostic::error(format!("`{known}` is given twice"))
                .at(entry.key_span, summary)
                .related(first.key_span, "it is given here, too")
                .hint("Remove one of the two"),
        );
        return;
    }
    findings.push(
        Diagnostic::warning(summary)
            .at(entry.key_span, "letter case differs")
            .hint(format!("Write `{known}`")),
    );
    entries[index].key = known.into();
}

fn value(node: &mut Node, shape: Shape, findings: &mut Diagnostics) {
    match shape {
        Shape::Object(table) | Shape::TextOr(table) | Shape::WordOr(_, table) => {
            object(node, table, findings);
        }
        Shape::Groups => groups(node, findings),
        Shape::Snippets => each(node, &mut |snippet| {
            object(snippet, &tables::SNIPPET, findings);
        }),
        Shape::Named(inner)
        | Shape::Images(inner)
        | Shape::Files(inner)
        | Shape::Slots(inner)
        | Shape::List(inner)
        | Shape::Distinct(inner)
        | Shape::Some(inner) => each(node, &mut |node| value(node, *inner, findings)),
        _ => {}
    }
}

/// Calls a function with each member of an object or a list.
fn each(node: &mut Node, call: &mut dyn FnMut(&mut Node)) {
    match &mut node.value {
        NodeValue::Object(entries) => entries.iter_mut().for_each(|entry| call(&mut entry.value)),
        NodeValue::Array(items) => items.iter_mut().for_each(call),
        _ => {}
    }
}

fn groups(node: &mut Node, findings: &mut Diagnostics) {
    each(node, &mut |member| {
        if has_group_keys(member) {
            object(member, &tables::GROUP, findings);
        } else {
            each(member, &mut |group| object(group, &tables::GROUP, findings));
        }
    });
}

/// Whether an object of `groups` is a group rather than a tenant.
fn has_group_keys(node: &Node) -> bool {
    let NodeValue::Object(fields) = &node.value else {
        return false;
    };
    let is_one = |field: &Entry| {
        let mut keys = tables::GROUP.keys.iter();
        keys.any(|key| {
            key.name.eq_ignore_ascii_case(&field.key) && key.shape.takes(&field.value.value)
        })
    };
    fields.iter().any(is_one)
}
