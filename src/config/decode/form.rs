//! Decides whether `groups` is nested (tenant → group) or flat.
//!
//! In: the entries of `groups`. Out: the [`Form`] that fits, or an error if none or both do. Must
//! not: report errors within groups; decoding the groups does.

use crate::config::node::{Entry, Node, NodeValue};
use crate::config::schema::Key;
use crate::config::schema::tables::GROUP;
use crate::diagnostic::{Diagnostic, Diagnostics, nearest};

use super::groups::Form;

/// Which forms an entry of `groups` fits.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Reading {
    group: bool,
    tenant: bool,
}

/// Decides the form for the whole map. Fails with `None` and a finding if none or both fit.
pub(super) fn decide(
    section: &Entry,
    entries: &[Entry],
    findings: &mut Diagnostics,
) -> Option<Form> {
    let readings: Vec<Reading> = entries
        .iter()
        .map(|entry| Reading {
            group: reads_as_group(&entry.value),
            tenant: reads_as_tenant(&entry.value),
        })
        .collect();
    let flat = readings.iter().all(|reading| reading.group);
    let nested = readings.iter().all(|reading| reading.tenant);
    match (nested, flat) {
        (true, false) => Some(Form::Nested),
        (false, true) => Some(Form::Flat),
        (true, true) if entries.iter().all(|entry| is_empty(&entry.value)) => Some(Form::Flat),
        (true, true) => {
            findings.push(
                Diagnostic::error("`groups` can be read in two ways")
                    .at(
                        section.key_span,
                        "as tenants with groups, or as groups without tenants",
                    )
                    .hint(
                        "say which with `\"groups_form\": \"nested\"` or \
                         `\"groups_form\": \"flat\"` beside it",
                    ),
            );
            None
        }
        (false, false) => unfitting(section, entries, &readings, findings),
    }
}

/// The form of a document's `groups`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupsForm {
    /// Tenant → group → fields.
    Nested,
    /// Group → fields.
    Flat,
}

/// The form of a document's `groups`; `None` if it is ambiguous.
pub fn groups_form(root: &Node) -> Option<GroupsForm> {
    let section = members(root)?
        .iter()
        .find(|entry| &*entry.key == "groups")?;
    match root.get("groups_form").and_then(Node::as_str) {
        Some("nested") => return Some(GroupsForm::Nested),
        Some("flat") => return Some(GroupsForm::Flat),
        Some(_) => return None,
        None => {}
    }
    let entries = members(&section.value)?;
    match decide(section, entries, &mut Diagnostics::default())? {
        Form::Nested => Some(GroupsForm::Nested),
        Form::Flat => Some(GroupsForm::Flat),
    }
}

/// Handles `groups` that fit no form. Either both forms are mixed, or some group has an error;
/// decoding in the intended form explains that error best.
fn unfitting(
    section: &Entry,
    entries: &[Entry],
    readings: &[Reading],
    findings: &mut Diagnostics,
) -> Option<Form> {
    let only_group = readings.iter().position(|r| r.group && !r.tenant);
    let only_tenant = readings.iter().position(|r| r.tenant && !r.group);
    match (only_group, only_tenant) {
        (Some(group), Some(tenant)) => {
            let (group, tenant) = (&entries[group], &entries[tenant]);
            findings.push(
                Diagnostic::error("`groups` mixes groups with tenants")
                    .at(group.key_span, format!("`{}` reads as a group", group.key))
                    .related(
                        tenant.key_span,
                        format!("`{}` reads as a tenant with groups", tenant.key),
                    )
                    .hint(format!(
                        "put `{}` into a tenant: `\"default\": {{\"{}\": …}}`",
                        group.key, group.key
                    )),
            );
            return None;
        }
        (Some(_), None) => return Some(Form::Flat),
        (None, Some(_)) => return Some(Form::Nested),
        (None, None) => {}
    }
    let guess = guess(entries);
    if guess.is_none() {
        findings.push(
            Diagnostic::error("`groups` can't be read")
                .at(
                    section.key_span,
                    "neither tenants with groups, nor groups without tenants",
                )
                .hint(
                    "a group's place is \
                     `\"groups\": {\"TENANT\": {\"GROUP\": {\"template\": …}}}`, \
                     or `\"groups\": {\"GROUP\": {\"template\": …}}` for the tenant `default`",
                ),
        );
    }
    guess
}

/// Guesses the form from which level has more group keys, including misspelled ones.
fn guess(entries: &[Entry]) -> Option<Form> {
    for is_one in [is_group_key, is_near_a_group_key] {
        let outer: usize = entries
            .iter()
            .map(|entry| count(&entry.value, is_one))
            .sum();
        let inner: usize = entries
            .iter()
            .filter_map(|entry| members(&entry.value))
            .flatten()
            .map(|entry| count(&entry.value, is_one))
            .sum();
        if inner > outer {
            return Some(Form::Nested);
        }
        if outer > inner {
            return Some(Form::Flat);
        }
    }
    // `default` is the tenant of groups without one, and rarely a group.
    let is_default = |entry: &Entry| &*entry.key == "default" && members(&entry.value).is_some();
    let is_nested = entries.iter().any(is_default);
    is_nested.then_some(Form::Nested)
}

fn members(node: &Node) -> Option<&[Entry]> {
    match &node.value {
        NodeValue::Object(entries) => Some(entries),
        _ => None,
    }
}

fn is_empty(node: &Node) -> bool {
    members(node).is_some_and(<[Entry]>::is_empty)
}

fn is_group_key(key: &str) -> bool {
    GROUP.key(key).is_some()
}

fn is_near_a_group_key(key: &str) -> bool {
    nearest(key, GROUP.names()).is_some()
}

/// Counts an object's keys that fulfil `is_one`.
fn count(node: &Node, is_one: fn(&str) -> bool) -> usize {
    let keys = members(node).unwrap_or_default().iter();
    keys.filter(|entry| is_one(&entry.key)).count()
}

fn reads_as_tenant(node: &Node) -> bool {
    match &node.value {
        NodeValue::Object(groups) => groups.iter().all(|entry| reads_as_group(&entry.value)),
        _ => false,
    }
}

/// Whether an object has only a group's keys, each with a value of the right type.
pub(in crate::config) fn reads_as_group(node: &Node) -> bool {
    match &node.value {
        NodeValue::Object(fields) => fields.iter().all(fits),
        _ => false,
    }
}

fn fits(field: &Entry) -> bool {
    let value = &field.value.value;
    let takes = |key: &Key| *value == NodeValue::Null || key.shape.takes(value);
    GROUP.key(&field.key).is_some_and(takes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{jsonc, source::SourceId};

    #[test]
    fn the_form_is_decided_by_what_fits() {
        for (text, form) in [
            ("{}", Some(Form::Flat)),
            (r#"{"a": {}}"#, Some(Form::Flat)),
            (
                r#"{"blue": {}, "green": {"template": "default"}}"#,
                Some(Form::Flat),
            ),
            (r#"{"default": {"web": {"size": 1}}}"#, Some(Form::Nested)),
            (
                r#"{"default": {"web": {}}, "other": {}}"#,
                Some(Form::Nested),
            ),
            // A group key can also be a group's name: the content decides.
            (
                r#"{"default": {"args": {"size": 1}}, "b": {"web": {}}}"#,
                Some(Form::Nested),
            ),
            (r#"{"web": {"args": {"ImageId": "x"}}}"#, Some(Form::Flat)),
            (r#"{"a": {"vars": {}}}"#, None),
            (r#"{"a": {"args": {"size": 1}}}"#, None),
            (r#"{"a": {"size": 1}, "b": {"web": {"size": 1}}}"#, None),
            (r#"{"a": 1}"#, None),
            // An error in one group doesn't hide the intended form.
            (
                r#"{"a": {"web": {"sise": 1, "template": "x"}}}"#,
                Some(Form::Nested),
            ),
            (r#"{"a": {"sise": 1, "template": "x"}}"#, Some(Form::Flat)),
            (
                r#"{"a": {"size": "1"}, "b": {"size": 1}}"#,
                Some(Form::Flat),
            ),
            // Nor does an error in the only key of the only group.
            (
                r#"{"default": {"web": {"tmplate": "x"}}}"#,
                Some(Form::Nested),
            ),
            (r#"{"t": {"web": {"tmplate": "x"}}}"#, Some(Form::Nested)),
            (r#"{"web": {"tmplate": "x"}}"#, Some(Form::Flat)),
            (r#"{"default": {"web": null}}"#, Some(Form::Nested)),
        ] {
            let mut findings = Diagnostics::default();
            let text = format!("{{\"groups\": {text}}}");
            let root = jsonc::read(SourceId(0), &text).unwrap();
            let NodeValue::Object(top) = &root.value else {
                panic!("not an object")
            };
            let NodeValue::Object(entries) = &top[0].value.value else {
                panic!("not an object")
            };
            assert_eq!(decide(&top[0], entries, &mut findings), form, "{text}");
            assert_eq!(form.is_none(), findings.has_errors(), "{text}");
        }
    }
}
