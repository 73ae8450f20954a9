//! Converts a configuration to one file in another language.
//!
//! In: the evaluated document of a configuration. Out: a text that reads back as the same document,
//! which is verified. Must not: write files.

use crate::config::decode::{GroupsForm, groups_form};
use crate::config::load::{Evaluated, document_of_text};
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::sensitive::places;
use crate::config::source::{Language, Span};
use crate::config::variables::Given;
use crate::diagnostic::{Diagnostic, Diagnostics};

use super::hcl_writer::DEFAULT_TENANT;
use super::{hcl_writer, is_short, jsonc_layout, yaml_writer};

/// The first line of what is written.
const HEADER: &str = "Written by `nstance convert`: variables, locals and for_each are replaced \
                      by their values.";

/// How many sensitive values an error lists.
const MOST_NAMED: usize = 10;

/// A value's path and place.
type Place = (String, Span);

/// Writes the document in a language.
///
/// Fails if a value is sensitive, or if the language can't express the document.
pub fn convert(document: &Evaluated, to: Language) -> Result<String, Diagnostics> {
    let Some(root) = &document.root else {
        return Err(document.findings.clone());
    };
    if !matches!(root.value, NodeValue::Object(_)) {
        return Err(Diagnostic::error("a configuration must be an object")
            .at(root.span, format!("this is {}", root.type_name()))
            .into());
    }
    let sensitive = sensitive_values(document);
    if let Some((_, first)) = sensitive.first() {
        return Err(refusal(&sensitive, *first).into());
    }
    let root = without_needless_form(root.clone());
    let (name, mark, body) = match to {
        Language::Hcl => ("converted.hcl", "#", hcl_writer::write(&root)),
        Language::Yaml => ("converted.yaml", "#", yaml_writer::write(&root)),
        Language::Jsonc | Language::Plain => {
            let mut lines = String::new();
            write_json(&root, &mut lines);
            ("converted.jsonc", "//", jsonc_layout::lay_out(&lines))
        }
    };
    let text = format!("{mark} {HEADER}\n\n{body}");
    let language = name.rsplit('.').next().unwrap_or_default().to_uppercase();
    let refused = |detail: String| {
        Diagnostic::error(format!("{language} can't hold this configuration")).detail(detail)
    };
    let read = document_of_text(name, &text, &Given::default());
    let Some(read_root) = read.root else {
        let first = read.findings.iter().next();
        let why = first.map_or_else(String::new, |finding| finding.summary.clone());
        return Err(refused(why).into());
    };
    let mut different = Vec::new();
    differences(
        &comparable(root, to),
        &comparable(read_root, to),
        "",
        &mut different,
    );
    match different.first() {
        Some((path, _)) => Err(refused(format!("`{path}` would change")).into()),
        None => Ok(text),
    }
}

/// The sensitive values of a document.
fn sensitive_values(document: &Evaluated) -> Vec<Place> {
    let mut found = Vec::new();
    if let Some(root) = &document.root {
        places(root, &mut |place| found.push((place.name(), place.span())));
    }
    found
}

fn refusal(sensitive: &[Place], first: Span) -> Diagnostic {
    let mut names: Vec<String> = sensitive
        .iter()
        .take(MOST_NAMED)
        .map(|(path, _)| format!("`{path}`"))
        .collect();
    if sensitive.len() > MOST_NAMED {
        names.push(format!("{} more", sensitive.len() - MOST_NAMED));
    }
    Diagnostic::error("sensitive values can't be converted")
        .at(first, "this value is sensitive")
        .detail(format!("Sensitive: {}", names.join(", ")))
        .hint("To write a value in clear text, pass it through `nonsensitive(…)`")
}

/// Finds the values that differ; the order of keys matters.
fn differences(a: &Node, b: &Node, path: &str, found: &mut Vec<Place>) {
    match (&a.value, &b.value) {
        (NodeValue::Object(x), NodeValue::Object(y))
            if x.iter()
                .map(|entry| &entry.key)
                .eq(y.iter().map(|entry| &entry.key)) =>
        {
            for (x, y) in x.iter().zip(y) {
                let dot = if path.is_empty() { "" } else { "." };
                differences(&x.value, &y.value, &format!("{path}{dot}{}", x.key), found);
            }
        }
        (NodeValue::Array(x), NodeValue::Array(y)) if x.len() == y.len() => {
            for (index, (x, y)) in x.iter().zip(y).enumerate() {
                differences(x, y, &format!("{path}[{index}]"), found);
            }
        }
        (x, y) if x != y => found.push((path.to_owned(), a.span)),
        _ => {}
    }
}

/// Removes `groups_form` if it only repeats the default for `groups`.
fn without_needless_form(root: Node) -> Node {
    let form = groups_form(&root);
    let without = without_keys(root.clone(), |key| key == "groups_form");
    if groups_form(&without) == form {
        without
    } else {
        root
    }
}

fn without_keys(mut root: Node, is_dropped: impl Fn(&str) -> bool) -> Node {
    if let NodeValue::Object(entries) = &mut root.value {
        entries.retain(|entry| !is_dropped(&entry.key));
    }
    root
}

/// The document in the form used for comparison. In HCL, groups without a tenant belong to the
/// tenant `default`, and keys for JSON editors (`$schema`) don't exist.
fn comparable(root: Node, to: Language) -> Node {
    let form = groups_form(&root);
    let is_hcl = to == Language::Hcl;
    let mut root = without_keys(root, |key| {
        key == "groups_form" || is_hcl && key.starts_with('$')
    });
    if is_hcl
        && form == Some(GroupsForm::Flat)
        && let NodeValue::Object(entries) = &mut root.value
        && let Some(groups) = entries.iter_mut().find(|entry| &*entry.key == "groups")
        && !groups.value.entries().is_empty()
    {
        let span = groups.value.span;
        let flat = std::mem::replace(&mut groups.value.value, NodeValue::Null);
        groups.value.value = NodeValue::Object(vec![Entry {
            key: DEFAULT_TENANT.into(),
            key_span: span,
            value: Node::new(span, flat),
        }]);
    }
    root
}

/// Writes JSON with the line breaks that its layout keeps.
fn write_json(node: &Node, out: &mut String) {
    let line = if is_short(node) { "" } else { "\n" };
    match &node.value {
        NodeValue::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(line);
                write_json(item, out);
            }
            out.extend([line, "]"]);
        }
        NodeValue::Object(entries) => {
            out.push('{');
            for (index, entry) in entries.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.extend([line, &quoted(&entry.key), ":"]);
                write_json(&entry.value, out);
            }
            out.extend([line, "}"]);
        }
        NodeValue::String(text) => out.push_str(&quoted(text)),
        NodeValue::Number(number) => out.push_str(&number.to_string()),
        NodeValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        NodeValue::Null => out.push_str("null"),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
