//! The shapes of a cloud's requests, and whether args have them.
//!
//! In: a table of members and the args of one layer. Out: findings. May not: know a cloud.

use crate::config::node::{Entry, Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};

/// What a value must be.
#[derive(Debug)]
pub(super) enum Shape {
    /// A string; it may be a template.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Whole,
    /// A whole number too large for some JSON readers, which may therefore stand in a string.
    Long,
    /// A list whose items have a shape.
    List(&'static Shape),
    /// An object from any keys to values of a shape.
    Map(&'static Shape),
    /// An object of known members.
    Structure(Members),
    /// An object or list that is not looked into.
    Object,
    /// What the cloud reports and nobody can set.
    Reported,
}

/// The members of a structure by name.
pub(super) type Members = &'static [(&'static str, Shape)];

/// Checks the members of an object. `owner` is what messages call it, such as `RunInstances`.
/// Null fits everywhere: it takes a lower layer's value away.
pub(super) fn check(entries: &[Entry], members: Members, owner: &str, findings: &mut Diagnostics) {
    for entry in entries {
        match members.iter().find(|(name, _)| *name == &*entry.key) {
            Some((_, shape)) => check_value(&entry.value, &entry.key, shape, entry, findings),
            None => findings.push(unknown_member(entry, members, owner)),
        }
    }
}

/// The finding that a structure has no such member.
pub(super) fn unknown_member(entry: &Entry, members: Members, owner: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("{owner} has no member `{}`", entry.key))
        .at(entry.key_span, "unknown member");
    let settable = members
        .iter()
        .filter(|(_, shape)| !matches!(shape, Shape::Reported))
        .map(|(name, _)| *name);
    // `subnet_id` means `SubnetId`: clouds' tools differ in how they write the same name.
    let squeezed = squeeze(&entry.key);
    let same = settable.clone().find(|name| squeeze(name) == squeezed);
    match same.or_else(|| nearest(&entry.key, settable.clone())) {
        Some(name) => diagnostic.hint(format!("did you mean `{name}`?")),
        None if members.len() <= 16 => diagnostic.hint(format!(
            "its members are {}",
            settable
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        )),
        None => diagnostic,
    }
}

fn squeeze(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

fn check_value(node: &Node, name: &str, shape: &Shape, entry: &Entry, findings: &mut Diagnostics) {
    let wanted = match (shape, &node.value) {
        (Shape::Reported, _) => {
            findings.push(
                Diagnostic::error(format!("`{name}` can't be set"))
                    .at(entry.key_span, "the cloud reports it"),
            );
            return;
        }
        (_, NodeValue::Null)
        | (Shape::Text, NodeValue::String(_))
        | (Shape::Flag, NodeValue::Bool(_))
        | (Shape::Object, NodeValue::Object(_)) => return,
        (Shape::Whole | Shape::Long, NodeValue::Number(number)) if !number.is_f64() => return,
        (Shape::Long, NodeValue::String(text))
            if text.contains("{{") || text.parse::<i64>().is_ok() =>
        {
            return;
        }
        (Shape::List(item), NodeValue::Array(items)) => {
            for node in items {
                check_value(node, name, item, entry, findings);
            }
            return;
        }
        (Shape::Map(value), NodeValue::Object(entries)) => {
            for entry in entries {
                check_value(&entry.value, &entry.key, value, entry, findings);
            }
            return;
        }
        (Shape::Structure(members), NodeValue::Object(entries)) => {
            check(entries, members, &format!("`{name}`"), findings);
            return;
        }
        (Shape::Text, _) => "a string",
        (Shape::Flag, _) => "`true` or `false`",
        (Shape::Whole | Shape::Long, _) => "a whole number",
        (Shape::List(_), _) => "a list",
        (Shape::Map(_) | Shape::Structure(_) | Shape::Object, _) => "an object",
    };
    let found = match (&node.value, shape) {
        (NodeValue::Number(number), Shape::Whole | Shape::Long) => format!("`{number}`"),
        _ => node.type_name().to_owned(),
    };
    let item = if std::ptr::eq(node, &raw const entry.value) {
        ""
    } else {
        "an item of "
    };
    let diagnostic = Diagnostic::error(format!("{item}`{name}` must be {wanted}"))
        .at(node.span, format!("expected {wanted}, found {found}"));
    findings.push(hint_for(diagnostic, node, shape));
}

fn hint_for(diagnostic: Diagnostic, node: &Node, shape: &Shape) -> Diagnostic {
    match (shape, &node.value) {
        (Shape::Text, NodeValue::Number(number)) => {
            diagnostic.hint(format!("put it in quotes: `\"{number}\"`"))
        }
        (Shape::Text, NodeValue::Bool(value)) => {
            diagnostic.hint(format!("put it in quotes: `\"{value}\"`"))
        }
        (Shape::Flag | Shape::Whole | Shape::Long, NodeValue::String(text))
            if text.contains("{{") =>
        {
            diagnostic.hint("a template gives a string; write the value itself")
        }
        (Shape::Flag, NodeValue::String(text)) if matches!(&**text, "true" | "false") => {
            diagnostic.hint(format!("write it without quotes: `{text}`"))
        }
        (Shape::Whole, NodeValue::String(text)) if text.parse::<i64>().is_ok() => {
            diagnostic.hint(format!("write it without quotes: `{text}`"))
        }
        (Shape::List(Shape::Text), NodeValue::String(_)) => {
            diagnostic.hint("put it in brackets: `[\"…\"]`")
        }
        (Shape::List(Shape::Structure(_) | Shape::Object), NodeValue::Object(_)) => {
            diagnostic.hint("put it in brackets: `[{…}]`")
        }
        _ => diagnostic,
    }
}
