//! Checks args against the shapes of a cloud's requests.
//!
//! In: a table of members and the args of one layer. Out: findings. Must not: know a cloud.

use crate::config::letter_case::rename;
use crate::config::node::{Entry, Node, NodeValue};
use crate::diagnostic::{Conversion, Diagnostic, Diagnostics, nearest};

/// The shape of a value.
#[derive(Debug)]
pub(super) enum Shape {
    /// A string; it may be a template.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Whole,
    /// A whole number too large for some JSON readers; a string is accepted too.
    Long,
    /// A whole number within inclusive bounds.
    Between(i64, i64),
    /// A time, such as `2026-01-31T09:00:00Z`.
    Time,
    /// A string of a known set. The cloud may accept more, so others get a warning.
    Choice(&'static [&'static str]),
    /// A required member.
    Required(&'static Shape),
    /// A deprecated member, with the cloud's note.
    Deprecated(&'static str, &'static Shape),
    /// A list whose items have a shape.
    List(&'static Shape),
    /// An object with arbitrary keys, and values of a shape.
    Map(&'static Shape),
    /// An object with known members.
    Structure(Members),
    /// An object or list that isn't checked.
    Object,
    /// A value that the cloud reports and users can't set.
    Reported,
}

/// The members of a structure, sorted by name.
pub(super) type Members = &'static [(&'static str, Shape)];

/// Checks the members of an object. `owner` is its name in messages, such as `RunInstances`. Null
/// is always valid, since it removes a lower layer's value.
pub(super) fn check(entries: &[Entry], members: Members, owner: &str, findings: &mut Diagnostics) {
    for entry in entries {
        match find(members, &entry.key) {
            Some(shape) => check_value(&entry.value, &entry.key, shape, entry, findings),
            None => findings.push(unknown_member(entry, members, owner)),
        }
    }
}

/// Renames members that differ from the known ones in letter case only, at any depth, with a warning
/// for each.
pub(super) fn settle(node: &mut Node, shape: &Shape, findings: &mut Diagnostics) {
    match (shape, &mut node.value) {
        (Shape::Required(shape) | Shape::Deprecated(_, shape), _) => settle(node, shape, findings),
        (Shape::List(shape), NodeValue::Array(items)) => {
            for item in items {
                settle(item, shape, findings);
            }
        }
        (Shape::Map(shape), NodeValue::Object(entries)) => {
            for entry in entries {
                settle(&mut entry.value, shape, findings);
            }
        }
        (Shape::Structure(members), NodeValue::Object(entries)) => {
            for index in 0..entries.len() {
                let names = members.iter().map(|(name, _)| *name);
                rename(entries, index, names, findings);
            }
            for entry in entries {
                if let Some(shape) = find(members, &entry.key) {
                    settle(&mut entry.value, shape, findings);
                }
            }
        }
        _ => {}
    }
}

/// The shape of a member. Uses a binary search, since lists may have thousands of structures.
pub(super) fn find(members: Members, name: &str) -> Option<&'static Shape> {
    let index = members
        .binary_search_by(|(known, _)| (*known).cmp(name))
        .ok()?;
    Some(&members[index].1)
}

/// Reports missing members of a list item. Other objects merge with lower layers, which may have
/// them; lists don't.
fn check_required(
    item: &Node,
    entries: &[Entry],
    members: Members,
    name: &str,
    findings: &mut Diagnostics,
) {
    for (member, shape) in members {
        let is_set = |entry: &Entry| &*entry.key == *member && entry.value.value != NodeValue::Null;
        if is_required(shape) && !entries.iter().any(is_set) {
            findings.push(
                Diagnostic::error(format!("an item of `{name}` lacks `{member}`"))
                    .at(item.span, format!("`{member}` is missing")),
            );
        }
    }
}

fn is_required(shape: &Shape) -> bool {
    match shape {
        Shape::Required(_) => true,
        Shape::Deprecated(_, shape) => is_required(shape),
        _ => false,
    }
}

/// How many members or values a hint lists.
const MOST_LISTED: usize = 16;

/// The error that a structure has no such member.
pub(super) fn unknown_member(entry: &Entry, members: Members, owner: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(format!("{owner} has no member `{}`", entry.key))
        .at(entry.key_span, "unknown member");
    let settable = members
        .iter()
        .filter(|(_, shape)| !matches!(shape, Shape::Reported | Shape::Deprecated(..)))
        .map(|(name, _)| *name);
    // `subnet_id` means `SubnetId`: the clouds' tools use different spellings.
    let squeezed = squeeze(&entry.key);
    let same = settable.clone().find(|name| squeeze(name) == squeezed);
    let near = same.or_else(|| nearest(&entry.key, settable.clone()));
    if members.len() > MOST_LISTED {
        return diagnostic.suggest(near);
    }
    diagnostic.suggest_or_list(near, "its members are", settable)
}

fn squeeze(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

fn check_value(node: &Node, name: &str, shape: &Shape, entry: &Entry, findings: &mut Diagnostics) {
    let wanted = match (shape, &node.value) {
        (Shape::Required(shape), _) => {
            check_value(node, name, shape, entry, findings);
            return;
        }
        (Shape::Deprecated(reason, shape), value) => {
            if *value != NodeValue::Null {
                findings.push(
                    Diagnostic::warning(format!("`{name}` is deprecated"))
                        .at(entry.key_span, "deprecated")
                        .detail(*reason),
                );
            }
            check_value(node, name, shape, entry, findings);
            return;
        }
        (Shape::Choice(known), NodeValue::String(text)) => {
            check_choice(node, name, known, text, findings);
            return;
        }
        (Shape::Between(low, high), NodeValue::Number(number)) if !number.is_f64() => {
            if number
                .as_i64()
                .is_none_or(|number| !(*low..=*high).contains(&number))
            {
                findings.push(out_of_bounds(node, name, *low, *high));
            }
            return;
        }
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
        (Shape::Time, NodeValue::String(text))
            if text.contains("{{") || text.parse::<jiff::Timestamp>().is_ok() =>
        {
            return;
        }
        (Shape::Long, NodeValue::String(text))
            if text.contains("{{") || text.parse::<i64>().is_ok() =>
        {
            return;
        }
        (Shape::List(item), NodeValue::Array(items)) => {
            for node in items {
                check_value(node, name, item, entry, findings);
                if let (Shape::Structure(members), NodeValue::Object(entries)) = (item, &node.value)
                {
                    check_required(node, entries, members, name, findings);
                }
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
        (Shape::Text | Shape::Choice(_), _) => "a string",
        (Shape::Time, _) => "a time such as `2026-01-31T09:00:00Z`",
        (Shape::Flag, _) => "`true` or `false`",
        (Shape::Whole | Shape::Long | Shape::Between(..), _) => "a whole number",
        (Shape::List(_), _) => "a list",
        (Shape::Map(_) | Shape::Structure(_) | Shape::Object, _) => "an object",
    };
    let found = match (&node.value, shape) {
        (NodeValue::Number(number), Shape::Whole | Shape::Long | Shape::Between(..)) => {
            format!("`{number}`")
        }
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

/// Warns about a value that isn't in the table. Skips templates, whose value isn't known yet.
fn check_choice(
    node: &Node,
    name: &str,
    known: &'static [&'static str],
    text: &str,
    findings: &mut Diagnostics,
) {
    if known.contains(&text) || text.contains("{{") {
        return;
    }
    let diagnostic = Diagnostic::warning(format!("`{name}` has no value `{text}` that we know"))
        .at(node.span, "the cloud may be newer, or refuse it");
    let mut values = known.iter().copied();
    let same = values.find(|value| squeeze(value) == squeeze(text));
    let near = same.or_else(|| nearest(text, known.iter().copied()));
    findings.push(if known.len() > MOST_LISTED {
        diagnostic.suggest(near)
    } else {
        diagnostic.suggest_or_list(near, "its values are", known.iter().copied())
    });
}

fn out_of_bounds(node: &Node, name: &str, low: i64, high: i64) -> Diagnostic {
    // A bound that equals the type's limit is obvious.
    let wanted = if high == i64::from(i32::MAX) {
        format!("{low} or more")
    } else {
        format!("between {low} and {high}")
    };
    Diagnostic::error(format!("`{name}` must be {wanted}")).at(node.span, "out of bounds")
}

fn hint_for(diagnostic: Diagnostic, node: &Node, shape: &Shape) -> Diagnostic {
    match (shape, &node.value) {
        (Shape::Text | Shape::Choice(_), NodeValue::Number(number)) => diagnostic.quote_it(number),
        (Shape::Text | Shape::Choice(_), NodeValue::Bool(value)) => diagnostic.quote_it(value),
        (
            Shape::Flag | Shape::Whole | Shape::Long | Shape::Between(..),
            NodeValue::String(text),
        ) if text.contains("{{") => {
            diagnostic.hint("a template gives a string; write the value itself")
        }
        (Shape::Flag, NodeValue::String(text)) if matches!(&**text, "true" | "false") => {
            diagnostic.unquote_it(text, Conversion::Bool)
        }
        (Shape::Whole | Shape::Between(..), NodeValue::String(text))
            if text.parse::<i64>().is_ok() =>
        {
            diagnostic.unquote_it(text, Conversion::Number)
        }
        (Shape::List(Shape::Text | Shape::Choice(_)), NodeValue::String(_)) => {
            diagnostic.hint("put it in brackets: `[\"…\"]`")
        }
        (Shape::List(Shape::Structure(_) | Shape::Object), NodeValue::Object(_)) => {
            diagnostic.hint("put it in brackets: `[{…}]`")
        }
        _ => diagnostic,
    }
}

/// Panics if a table isn't sorted, at any depth: [`find`] would miss members.
#[cfg(test)]
pub(super) fn assert_sorted(members: Members) {
    fn look_into(shape: &Shape) {
        match shape {
            Shape::Structure(members) => assert_sorted(members),
            Shape::List(shape)
            | Shape::Map(shape)
            | Shape::Required(shape)
            | Shape::Deprecated(_, shape) => look_into(shape),
            _ => {}
        }
    }
    assert!(members.is_sorted_by_key(|(name, _)| *name), "{members:?}");
    for (_, shape) in members {
        look_into(shape);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::jsonc;
    use crate::config::source::SourceId;
    use crate::diagnostic::Severity;

    const DISK: Members = &[
        ("Kind", Shape::Choice(&["gp2", "gp3", "io2"])),
        ("Name", Shape::Required(&Shape::Text)),
        ("Size", Shape::Between(1, 16_384)),
    ];

    const MACHINE: Members = &[
        ("Boot", Shape::Structure(DISK)),
        ("Count", Shape::Between(1, 2_147_483_647)),
        ("Disks", Shape::List(&Shape::Structure(DISK))),
        (
            "Gpus",
            Shape::Deprecated("There are none.", &Shape::List(&Shape::Text)),
        ),
        ("Until", Shape::Time),
    ];

    #[test]
    fn what_the_model_says_is_told() {
        assert_sorted(MACHINE);
        for (text, wanted) in [
            (
                r#"{"Disks": [{"Name": "a", "Kind": "gp3", "Size": 8}]}"#,
                &[] as &[&str],
            ),
            (
                r#"{"Disks": [{"Name": "a", "Kind": "{{ .Vars.KIND }}"}]}"#,
                &[],
            ),
            (
                r#"{"Disks": [{"Name": "a", "Kind": "gp4"}]}"#,
                &["warning: `Kind` has no value `gp4` that we know (did you mean `gp2`?)"],
            ),
            (
                r#"{"Disks": [{"Name": "a", "Kind": "GP3"}]}"#,
                &["warning: `Kind` has no value `GP3` that we know (did you mean `gp3`?)"],
            ),
            (
                r#"{"Disks": [{"Name": "a", "Kind": "magnetic"}]}"#,
                &[
                    "warning: `Kind` has no value `magnetic` that we know (its values are `gp2`, `gp3`, `io2`)",
                ],
            ),
            (
                r#"{"Disks": [{"Name": "a", "Kind": 3}]}"#,
                &["error: `Kind` must be a string (put it in quotes: `\"3\"`)"],
            ),
            (
                r#"{"Disks": [{"Name": null}, {}]}"#,
                &[
                    "error: an item of `Disks` lacks `Name`",
                    "error: an item of `Disks` lacks `Name`",
                ],
            ),
            // A lower layer may have the other members.
            (r#"{"Boot": {"Size": 8}}"#, &[]),
            (
                r#"{"Boot": {"Size": 0, "Name": 1}, "Count": 0}"#,
                &[
                    "error: `Size` must be between 1 and 16384",
                    "error: `Name` must be a string (put it in quotes: `\"1\"`)",
                    "error: `Count` must be 1 or more",
                ],
            ),
            (
                r#"{"Boot": {"Size": 1.5}, "Count": "2"}"#,
                &[
                    "error: `Size` must be a whole number",
                    "error: `Count` must be a whole number (write it without quotes: `2`)",
                ],
            ),
            (r#"{"Gpus": null}"#, &[]),
            (
                r#"{"Gpus": [1]}"#,
                &[
                    "warning: `Gpus` is deprecated",
                    "error: an item of `Gpus` must be a string (put it in quotes: `\"1\"`)",
                ],
            ),
            (r#"{"Until": "2026-01-31T09:00:00Z"}"#, &[]),
            (
                r#"{"Until": "tomorrow"}"#,
                &["error: `Until` must be a time such as `2026-01-31T09:00:00Z`"],
            ),
        ] {
            let mut findings = Diagnostics::default();
            let node = jsonc::read(SourceId(0), text).unwrap();
            let NodeValue::Object(entries) = &node.value else {
                panic!("{text} is no object");
            };
            check(entries, MACHINE, "Machine", &mut findings);
            let told: Vec<String> = findings.iter().map(tell).collect();
            assert_eq!(told, wanted, "{text}");
        }
    }

    fn tell(finding: &Diagnostic) -> String {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let hint = finding
            .hints
            .first()
            .map(|hint| format!(" ({hint})"))
            .unwrap_or_default();
        format!("{severity}: {}{hint}", finding.summary)
    }
}
