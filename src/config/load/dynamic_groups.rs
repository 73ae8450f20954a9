//! Lays the server's dynamic groups (`--groups FILE`) over a configuration's.
//!
//! In: the documents of a configuration and of a groups file: tenant → group. Out: the configuration
//! with these groups. Must not: validate them; decoding does.

use crate::config::decode::{GroupsForm, groups_form};
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::source::Span;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// What the server takes from a dynamic group for a group that the configuration has, too.
const CHANGED: [&str; 3] = ["size", "instance_type", "vars"];

/// Adds the groups of a groups file. Of a group that is configured, only its size, its instance type
/// and its vars count, the vars key by key.
pub(super) fn lay_over(root: &mut Node, groups: Node, findings: &mut Diagnostics) {
    let NodeValue::Object(tenants) = groups.value else {
        findings.push(
            Diagnostic::error("a groups file must be an object")
                .at(groups.span, "expected tenants, each with groups by name"),
        );
        return;
    };
    let is_flat = groups_form(root) == Some(GroupsForm::Flat);
    let Some(entries) = members(root) else {
        return;
    };
    if is_flat {
        nest(entries);
    }
    let configured = section(entries, "groups", groups.span);
    for tenant in tenants {
        let NodeValue::Object(groups) = tenant.value.value else {
            configured.push(tenant);
            continue;
        };
        let known = section(configured, &tenant.key, tenant.key_span);
        for group in groups {
            match known.iter_mut().find(|known| known.key == group.key) {
                Some(known) => change(&mut known.value, group.value),
                None => known.push(group),
            }
        }
    }
}

fn members(node: &mut Node) -> Option<&mut Vec<Entry>> {
    match &mut node.value {
        NodeValue::Object(entries) => Some(entries),
        _ => None,
    }
}

/// Moves groups without a tenant into the tenant `default`.
fn nest(entries: &mut Vec<Entry>) {
    entries.retain(|entry| &*entry.key != "groups_form");
    if let Some(groups) = entries.iter_mut().find(|entry| &*entry.key == "groups") {
        let span = groups.value.span;
        let flat = std::mem::replace(&mut groups.value, empty(span));
        if let Some(tenants) = members(&mut groups.value) {
            tenants.push(Entry {
                key: "default".into(),
                key_span: groups.key_span,
                value: flat,
            });
        }
    }
}

fn empty(span: Span) -> Node {
    Node {
        span,
        value: NodeValue::Object(Vec::new()),
        sensitivity: crate::config::node::Sensitivity::Open,
    }
}

/// The entries of an object at a key, which is made if it is missing.
fn section<'e>(entries: &'e mut Vec<Entry>, key: &str, span: Span) -> &'e mut Vec<Entry> {
    let index = entries
        .iter()
        .position(|entry| &*entry.key == key)
        .unwrap_or_else(|| {
            entries.push(Entry {
                key: key.into(),
                key_span: span,
                value: empty(span),
            });
            entries.len() - 1
        });
    let value = &mut entries[index].value;
    if !matches!(value.value, NodeValue::Object(_)) {
        *value = empty(span);
    }
    members(value).expect("it was made an object")
}

/// Changes a configured group.
fn change(group: &mut Node, dynamic: Node) {
    let (Some(fields), NodeValue::Object(changes)) = (members(group), dynamic.value) else {
        return;
    };
    for change in changes {
        if !CHANGED.contains(&&*change.key) || change.value.value == NodeValue::Null {
            continue;
        }
        match (
            fields.iter_mut().find(|field| field.key == change.key),
            &change.value.value,
        ) {
            (Some(field), NodeValue::Object(_)) => merge(&mut field.value, change.value),
            (Some(field), _) => *field = change,
            (None, _) => fields.push(change),
        }
    }
}

/// Replaces the entries of an object one by one.
fn merge(object: &mut Node, changes: Node) {
    let (Some(entries), NodeValue::Object(changes)) = (members(object), changes.value) else {
        return;
    };
    for change in changes {
        match entries.iter_mut().find(|entry| entry.key == change.key) {
            Some(entry) => *entry = change,
            None => entries.push(change),
        }
    }
}
