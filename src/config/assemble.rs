//! Joins the documents of several files into one.
//!
//! In: documents, in the order read. Out: one document. Named sections are merged, a duplicate name
//! is reported with both places, and override files apply last. Must not: know more of the schema
//! than which sections are maps of names.

use super::decode::reads_as_group;
use super::node::{Entry, Node, NodeValue};
use super::source::Span;
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Sections that may be split over several files. Any other section must be in one file.
const SECTIONS: &[&str] = &[
    "cluster",
    "shard",
    "load_balancers",
    "images",
    "certificates",
    "vars",
    "defaults",
    "templates",
    "templates_lib",
    "groups",
];

/// One parsed file.
#[derive(Debug)]
pub(super) struct Document {
    /// Its document.
    pub(super) root: Node,
    /// Whether it is an override file.
    pub(super) overrides: bool,
}

/// Joins documents; `None` if there are none. A root that isn't an object can't be joined; if it is
/// the only document, it is returned for `decode` to report.
pub(super) fn assemble(documents: Vec<Document>, findings: &mut Diagnostics) -> Option<Node> {
    let (overrides, mut plain): (Vec<_>, Vec<_>) = documents
        .into_iter()
        .partition(|document| document.overrides);
    // Without other files, override files are an ordinary configuration.
    let overrides = if plain.is_empty() {
        plain = overrides;
        Vec::new()
    } else {
        overrides
    };
    let several = plain.len() > 1 || !overrides.is_empty();
    let mut plain = plain.into_iter().map(|document| document.root);
    let mut whole = plain.next()?;
    if several && !is_object(&whole, findings) {
        return None;
    }
    let mut clashes = Diagnostics::default();
    for root in plain {
        if is_object(&root, findings) {
            join_top(&mut whole, root, &mut clashes);
        }
    }
    // Two configurations in one folder clash in much; how to choose one is said once.
    if let Some(first) = clashes.iter_mut().next() {
        let hint = "Or name the files to read: -c FILE";
        first.hints.push(hint.to_owned());
    }
    findings.extend(clashes);
    for document in overrides {
        if is_object(&document.root, findings) {
            replace(&mut whole, document.root);
        }
    }
    Some(whole)
}

fn is_object(root: &Node, findings: &mut Diagnostics) -> bool {
    let fits = matches!(root.value, NodeValue::Object(_));
    if !fits {
        findings.push(
            Diagnostic::error("a configuration file must be an object")
                .at(root.span, format!("this is {}", root.type_name())),
        );
    }
    fits
}

fn entries(node: &mut Node) -> Option<&mut Vec<Entry>> {
    match &mut node.value {
        NodeValue::Object(entries) => Some(entries),
        _ => None,
    }
}

fn into_entries(node: Node) -> Vec<Entry> {
    match node.value {
        NodeValue::Object(entries) => entries,
        _ => Vec::new(),
    }
}

fn join_top(whole: &mut Node, part: Node, findings: &mut Diagnostics) {
    let Some(ours) = entries(whole) else { return };
    for entry in into_entries(part) {
        let Some(first) = ours.iter_mut().find(|first| first.key == entry.key) else {
            ours.push(entry);
            continue;
        };
        let both = [&first.value.value, &entry.value.value];
        let objects = both
            .iter()
            .all(|value| matches!(value, NodeValue::Object(_)));
        if SECTIONS.contains(&&*entry.key) && objects {
            join_section(first, entry, findings);
        } else if entry.key.starts_with('$') {
            // `$schema` may be repeated, since it is for editors only.
        } else {
            findings.push(twice(&entry.key, first.key_span, entry.key_span));
        }
    }
}

fn join_section(first: &mut Entry, second: Entry, findings: &mut Diagnostics) {
    let section = second.key.clone();
    let Some(ours) = entries(&mut first.value) else {
        return;
    };
    // An index, since a linear search for each name would be quadratic.
    let mut places: std::collections::HashMap<_, _> = ours
        .iter()
        .enumerate()
        .map(|(place, entry)| (entry.key.clone(), place))
        .collect();
    for entry in into_entries(second.value) {
        let Some(place) = places.get(&entry.key) else {
            places.insert(entry.key.clone(), ours.len());
            ours.push(entry);
            continue;
        };
        let known = &mut ours[*place];
        // A tenant may have groups in several files; a group must be in one.
        let tenants = &*section == "groups"
            && ![&known.value, &entry.value]
                .iter()
                .any(|node| reads_as_group(node) || !matches!(node.value, NodeValue::Object(_)));
        if tenants {
            join_groups(known, entry, findings);
        } else {
            let path = format!("{section}.{}", entry.key);
            findings.push(twice(&path, known.key_span, entry.key_span));
        }
    }
}

fn join_groups(tenant: &mut Entry, second: Entry, findings: &mut Diagnostics) {
    let name = tenant.key.clone();
    let Some(groups) = entries(&mut tenant.value) else {
        return;
    };
    for group in into_entries(second.value) {
        match groups.iter_mut().find(|known| known.key == group.key) {
            Some(known) => {
                let path = format!("groups.{name}.{}", group.key);
                findings.push(twice(&path, known.key_span, group.key_span));
            }
            None => groups.push(group),
        }
    }
}

/// The error that a name is defined twice.
pub(super) fn twice(path: &str, first: Span, second: Span) -> Diagnostic {
    Diagnostic::error(format!("`{path}` is defined twice"))
        .at(second, "here again")
        .related(first, "it is defined here first")
        .hint(
            "Remove or rename one of the two; a file whose name ends with `_override` may change \
             what others define",
        )
}

/// Merges objects key by key, at any depth; replaces everything else.
fn replace(whole: &mut Node, part: Node) {
    if !matches!(
        (&whole.value, &part.value),
        (NodeValue::Object(_), NodeValue::Object(_))
    ) {
        *whole = part;
        return;
    }
    let Some(ours) = entries(whole) else { return };
    for entry in into_entries(part) {
        match ours.iter_mut().find(|known| known.key == entry.key) {
            Some(known) => replace(&mut known.value, entry.value),
            None => ours.push(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::jsonc;
    use crate::config::source::SourceMap;
    use crate::report::diagnostic::render;

    fn assembled(files: &[(&str, &str)]) -> (Option<serde_json::Value>, String) {
        let mut sources = SourceMap::default();
        let mut findings = Diagnostics::default();
        let documents = files
            .iter()
            .map(|(name, text)| {
                let source = sources.add(*name, *text);
                Document {
                    root: jsonc::read(source, text).unwrap(),
                    overrides: super::super::files::is_override(name.as_ref()),
                }
            })
            .collect();
        let whole = assemble(documents, &mut findings);
        (
            whole.map(|node| node.to_json()),
            render(&findings, &sources, false),
        )
    }

    #[test]
    fn sections_are_joined_name_by_name() {
        let (whole, findings) = assembled(&[
            (
                "a.jsonc",
                r#"{"cluster": {"id": "c"}, "templates": {"x": {}}, "groups": {"t": {"a": {"size": 1}}}}"#,
            ),
            (
                "b_override.jsonc",
                r#"{"groups": {"t": {"a": {"size": 3, "vars": {"B": null}}}}, "strict": true}"#,
            ),
            (
                "c.jsonc",
                r#"{"cluster": {"slug": "s"}, "groups": {"t": {"b": {"size": 1}}, "u": {}}}"#,
            ),
        ]);
        assert_eq!(findings, "");
        assert_eq!(
            whole.unwrap(),
            serde_json::json!({
                "cluster": {"id": "c", "slug": "s"},
                "templates": {"x": {}},
                "groups": {
                    "t": {"a": {"size": 3, "vars": {"B": null}}, "b": {"size": 1}},
                    "u": {},
                },
                "strict": true,
            })
        );
    }

    #[test]
    fn what_is_defined_twice_is_named_with_both_places() {
        let (_, findings) = assembled(&[
            (
                "a.jsonc",
                r#"{"strict": true, "templates": {"x": {}}, "groups": {"web": {"size": 1}}}"#,
            ),
            (
                "b.jsonc",
                r#"{"strict": true, "templates": {"x": {}}, "groups": {"web": {"size": 2}}}"#,
            ),
        ]);
        insta::assert_snapshot!(findings);
        let (_, nested) = assembled(&[
            ("a.jsonc", r#"{"groups": {"t": {"web": {"size": 1}}}}"#),
            ("b.jsonc", r#"{"groups": {"t": {"web": {"size": 2}}}}"#),
        ]);
        assert!(
            nested.contains("`groups.t.web` is defined twice"),
            "{nested}"
        );
        let (_, list) = assembled(&[("a.jsonc", "{}"), ("b.jsonc", "[]")]);
        assert!(list.contains("this is an array"), "{list}");
    }
}
