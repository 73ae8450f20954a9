//! Writes a document as HCL.
//!
//! In: an evaluated document. Out: its text: named sections as blocks (`template "web" { … }`),
//! everything else as attributes, multi-line texts as heredocs.

use nstance_hcl::{Context, Evaluator, Kind, NoFiles, NoNames, parse_expression};

use super::hcl_layout::lay_out;
use super::{WIDTH, is_short};
use crate::config::decode::{GroupsForm, groups_form};
use crate::config::node::{Entry, Node, NodeValue};

/// Sections whose entries become blocks, with the block type.
const NAMED: &[(&str, &str)] = &[
    ("images", "image"),
    ("templates", "template"),
    ("groups", "group"),
    ("load_balancers", "load_balancer"),
    ("certificates", "certificate"),
];

/// Sections that become one block each.
const SECTIONS: &[&str] = &["cluster", "shard", "defaults", "vars"];

/// The tenant of groups without a tenant.
pub(super) const DEFAULT_TENANT: &str = "default";

/// Writes a document. Omits keys that begin with `$`, which are for JSON editors.
pub(super) fn write(root: &Node) -> String {
    let form = groups_form(root);
    let mut out = String::new();
    for entry in root.entries() {
        let key = &*entry.key;
        if key.starts_with('$') || key == "groups_form" && form.is_some() {
            continue;
        }
        if let Some((kind, blocks)) = blocks_of(entry, form) {
            for (labels, value) in blocks {
                block(kind, &labels, value, &mut out);
            }
        } else if SECTIONS.contains(&key) && is_body(&entry.value) {
            block(key, &[], &entry.value, &mut out);
        } else {
            if out.ends_with("}\n") {
                out.push('\n');
            }
            attribute(entry, 0, &mut out);
        }
    }
    lay_out(&out)
}

type Block<'n> = (Vec<&'n str>, &'n Node);

/// The blocks of a section and their type. Fails with `None` if the section can't be written as
/// blocks.
fn blocks_of(section: &Entry, form: Option<GroupsForm>) -> Option<(&'static str, Vec<Block<'_>>)> {
    let (_, kind) = NAMED.iter().find(|(name, _)| *name == &*section.key)?;
    let nested = match (*kind, form) {
        ("group", form) => form? == GroupsForm::Nested,
        _ => false,
    };
    let mut blocks = Vec::new();
    for entry in section.value.entries() {
        if !nested {
            blocks.push((vec![&*entry.key], &entry.value));
            continue;
        }
        // Blocks can't express a tenant without groups.
        if entry.value.entries().is_empty() {
            return None;
        }
        for group in entry.value.entries() {
            let labels = match &*entry.key {
                DEFAULT_TENANT => vec![&*group.key],
                tenant => vec![tenant, &*group.key],
            };
            blocks.push((labels, &group.value));
        }
    }
    let fits =
        |(labels, body): &Block<'_>| labels.iter().all(|label| is_label(label)) && is_body(body);
    (!blocks.is_empty() && blocks.iter().all(fits)).then_some((*kind, blocks))
}

/// Whether an object can become a block's body: a key `for_each` in it would have another meaning.
fn is_body(node: &Node) -> bool {
    let fits = |entry: &Entry| is_name(&entry.key) && &*entry.key != "for_each";
    matches!(&node.value, NodeValue::Object(entries) if entries.iter().all(fits))
}

/// Whether a text is a valid HCL name, and not a keyword.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !matches!(text, "null" | "true" | "false" | "for" | "if" | "in")
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && !text.contains(['"', '\\', '$', '%']) && !text.chars().any(char::is_control)
}

fn block(kind: &str, labels: &[&str], body: &Node, out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(kind);
    for label in labels {
        out.push_str(&format!(" \"{label}\""));
    }
    out.push_str(" {");
    if !body.entries().is_empty() {
        out.push('\n');
    }
    for entry in body.entries() {
        attribute(entry, 1, out);
    }
    out.push_str("}\n");
}

/// `key = value`
fn attribute(entry: &Entry, depth: usize, out: &mut String) {
    let key = if depth == 0 || is_name(&entry.key) {
        entry.key.to_string()
    } else {
        quoted(&entry.key)
    };
    out.push_str(&format!("{key} = "));
    let text = entry.value.as_str();
    match text.and_then(|text| heredoc(text, depth)) {
        Some(heredoc) => out.push_str(&heredoc),
        None => value(&entry.value, depth, key.chars().count() + 3, out),
    }
    out.push('\n');
}

/// Writes a value that starts at column `used` after the indentation.
fn value(node: &Node, depth: usize, used: usize, out: &mut String) {
    let fits = || 2 * depth + used + on_one_line(node).chars().count() <= WIDTH;
    match &node.value {
        NodeValue::Array(items) if !(items.is_empty() || is_short(node) && fits()) => {
            out.push_str("[\n");
            for item in items {
                value(item, depth + 1, 0, out);
                out.push_str(",\n");
            }
            out.push(']');
        }
        NodeValue::Object(entries) if !entries.is_empty() => {
            out.push_str("{\n");
            for entry in entries {
                attribute(entry, depth + 1, out);
            }
            out.push('}');
        }
        _ => out.push_str(&on_one_line(node)),
    }
}

/// A short value on one line.
fn on_one_line(node: &Node) -> String {
    match &node.value {
        NodeValue::Null => "null".to_owned(),
        NodeValue::Bool(value) => value.to_string(),
        NodeValue::Number(number) => number.to_string(),
        NodeValue::String(text) => quoted(text),
        NodeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(on_one_line).collect();
            format!("[{}]", items.join(", "))
        }
        NodeValue::Object(_) => "{}".to_owned(),
    }
}

/// A quoted text.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for (index, character) in text.char_indices() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '$' | '%' if text[index + 1..].starts_with('{') => {
                quoted.extend([character, character]);
            }
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A text of whole lines as a heredoc; `None` if a heredoc can't express it exactly. `indent` is
/// the depth of its attribute.
fn heredoc(text: &str, indent: usize) -> Option<String> {
    if !text.ends_with('\n') || text.contains('\r') || text.trim().is_empty() {
        return None;
    }
    let escaped = text.replace("${", "$${").replace("%{", "%%{");
    let mut marker = "EOT".to_owned();
    while escaped.lines().any(|line| line.trim() == marker) {
        marker.push_str("_END");
    }
    let outer = "  ".repeat(indent);
    let mut indented = format!("<<-{marker}\n");
    for line in escaped.lines() {
        if !line.is_empty() {
            indented.extend([&*outer, "  ", line]);
        }
        indented.push('\n');
    }
    indented.extend([&*outer, &*marker]);
    let flat = format!("<<{marker}\n{escaped}{marker}");
    [indented, flat]
        .into_iter()
        .find(|heredoc| gives(heredoc, text))
}

/// Whether an expression evaluates to this text.
fn gives(expression: &str, text: &str) -> bool {
    let context = Context::new(&NoFiles);
    let parsed = parse_expression(&format!("{expression}\n"), 0).ok();
    let value = parsed.and_then(|parsed| Evaluator::new(&NoNames, &context).evaluate(&parsed).ok());
    value.is_some_and(|value| matches!(&value.kind, Kind::String(found) if **found == *text))
}
