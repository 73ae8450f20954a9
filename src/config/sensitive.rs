//! Finds sensitive values in a configuration.
//!
//! In: the evaluated document. Out: [`places`], [`MaskedPlaces`] for findings, and an error for each
//! sensitive value where it would be recorded as it is.

use super::decode::form::{GroupsForm, groups_form};
use super::node::{Node, NodeValue, Sensitivity};
use super::source::Span;
use crate::diagnostic::mask::MaskedPlaces;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// A sensitive value of a document.
#[derive(Debug, Clone, Copy)]
pub struct Place<'n> {
    /// Its path of keys; indices as `[0]`.
    path: &'n [String],
    /// Where its key is written; for a list item, the list's key.
    key_span: Span,
    /// The value.
    node: &'n Node,
}

impl Place<'_> {
    /// Its path, such as `groups.web.args.Tags[0]`.
    pub fn name(&self) -> String {
        let mut name = String::new();
        for part in self.path {
            if !name.is_empty() && !part.starts_with('[') {
                name.push('.');
            }
            name.push_str(part);
        }
        name
    }

    /// Where it is written.
    pub fn span(&self) -> Span {
        self.node.span
    }

    /// The sensitive texts and numbers in it.
    fn pieces(&self) -> Vec<String> {
        let mut pieces = Vec::new();
        pieces_of(self.node, &mut pieces);
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }
}

fn pieces_of(node: &Node, pieces: &mut Vec<String>) {
    match &node.value {
        NodeValue::String(text) => {
            let ranges = node.sensitivity.bytes(text);
            pieces.extend(ranges.into_iter().map(|range| text[range].to_owned()));
        }
        NodeValue::Number(number) => pieces.push(number.to_string()),
        NodeValue::Array(items) => items.iter().for_each(|item| pieces_of(item, pieces)),
        NodeValue::Object(entries) => {
            for entry in entries {
                if node.sensitivity == Sensitivity::Whole {
                    pieces.push(entry.key.to_string());
                }
                pieces_of(&entry.value, pieces);
            }
        }
        _ => {}
    }
}

/// Calls `visit` with every sensitive value of a document. Doesn't visit values within a sensitive
/// value.
pub fn places(root: &Node, visit: &mut dyn FnMut(Place<'_>)) {
    below(root, root.span, &mut Vec::new(), visit);
}

fn below(node: &Node, key_span: Span, path: &mut Vec<String>, visit: &mut dyn FnMut(Place<'_>)) {
    if !node.sensitivity.is_open() {
        visit(Place {
            path,
            key_span,
            node,
        });
        return;
    }
    match &node.value {
        NodeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(format!("[{index}]"));
                below(item, key_span, path, visit);
                path.pop();
            }
        }
        NodeValue::Object(entries) => {
            for entry in entries {
                path.push(entry.key.to_string());
                below(&entry.value, entry.key_span, path, visit);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Reports each sensitive value in a place that plans, tables and the record show unmasked.
pub(super) fn find_exposed(root: &Node, findings: &mut Diagnostics) {
    let form = groups_form(root);
    places(root, &mut |place| {
        if may_be_sensitive(place.path, place.node, form) {
            return;
        }
        let key = place.path.iter().rfind(|part| !part.starts_with('['));
        let key = key.map_or("", String::as_str);
        findings.push(
            Diagnostic::error(format!("`{key}` can't be sensitive"))
                .at(place.span(), "it is recorded as it is, and shown")
                .hint("`nonsensitive(…)` says that it may be shown"),
        );
    });
}

/// Whether a value at this path may be sensitive: it is masked wherever it is used, or not used at
/// all.
fn may_be_sensitive(path: &[String], node: &Node, form: Option<GroupsForm>) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path[..] {
        ["vars" | "state" | "certificates", ..]
        | ["templates_lib", _, ..]
        | ["shard", "infra", "options", ..] => true,
        ["defaults", ref keys @ ..] | ["templates", _, ref keys @ ..] => is_content(keys, node),
        ["groups", _, ref keys @ ..] if form == Some(GroupsForm::Flat) => is_content(keys, node),
        ["groups", _, _, ref keys @ ..] if form == Some(GroupsForm::Nested) => {
            is_content(keys, node)
        }
        _ => false,
    }
}

/// Whether keys of a group or template belong to the instances' content.
fn is_content(keys: &[&str], node: &Node) -> bool {
    match keys {
        ["args" | "vars", ..] | ["labels" | "files", _, ..] => true,
        ["userdata", .., "type" | "filename" | "merge"] => false,
        ["userdata", ..] => !matches!(node.value, NodeValue::Object(_)),
        ["overrides", _, keys @ ..] => is_content(keys, node),
        _ => false,
    }
}

/// The sensitive values of a document, for findings.
pub(super) fn masked_places(root: &Node) -> MaskedPlaces {
    let mut values = Vec::new();
    places(root, &mut |place| {
        for span in [place.span(), place.key_span] {
            values.push((span, place.pieces()));
        }
    });
    MaskedPlaces::new(values)
}
