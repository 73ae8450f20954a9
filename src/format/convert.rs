//! One configuration file in another language.
//!
//! In: the text of one file, and what it includes. Out: the text that means the same in another
//! language, its comments and the order of its keys kept; every result was read again and
//! compared, its expressions evaluated. May not: write anything.

use std::path::PathBuf;

use serde_json::Value as Json;

use super::attach::attach;
use super::document::{Document, Item, Value, Wording};
use super::from_hcl_values::Note;
use super::hcl_expression::plain;
use super::hcl_text::interpolated;
use super::{comments, from_hcl, hcl, jsonc, yaml};
use crate::config;
use crate::config::conversion::{Input, Meaning, Names};
use crate::config::decode::{GroupsForm, groups_form};
use crate::config::node::{Node, NodeValue};
use crate::config::source::{Language, SourceId, SourceMap};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};

/// A text in another language.
#[derive(Debug)]
pub struct Converted {
    /// The text.
    pub text: String,
    /// Warnings: about the source, and what the target can't hold.
    pub findings: Diagnostics,
    /// What isn't said as before: expressions that became values, in the order of the source.
    pub notes: Vec<Note>,
}

/// What is written, before it is.
struct Work {
    document: Document,
    form: hcl::Groups,
    notes: Vec<Note>,
    interpolated: bool,
}

/// Converts a file. The sources are those that findings and notes point into.
pub fn convert(input: &Input<'_>, to: Language) -> (SourceMap, Result<Converted, Diagnostics>) {
    let name = input.file.display().to_string();
    let from = Language::of_file(&name);
    let (sources, result) = input.with_names(|names, findings| {
        if findings.has_errors() {
            return None;
        }
        if (from, to) == (Language::Hcl, Language::Hcl) {
            return Some((super::hcl_layout::lay_out(input.text), Vec::new()));
        }
        let work = read(from, to, input.text, names, findings)?;
        if !matches!(work.document.root, Value::Object(_)) {
            findings.push(Diagnostic::error(format!(
                "a configuration must be an object: {name}"
            )));
            return None;
        }
        written(input, (from, to), work, findings)
    });
    let result = result.and_then(|(made, findings)| match made {
        Some((text, mut notes)) => {
            notes.sort_by_key(|note: &Note| note.span);
            Ok(Converted {
                text,
                findings,
                notes,
            })
        }
        None => Err(findings),
    });
    (sources, result)
}

/// Reads the file that is source 0.
fn read(
    from: Language,
    to: Language,
    text: &str,
    names: &Names<'_>,
    findings: &mut Diagnostics,
) -> Option<Work> {
    let source = SourceId(0);
    // What is to be said of the text was said when names were collected.
    let mut again = Diagnostics::default();
    let root = match from {
        Language::Hcl => {
            return match from_hcl::read(text, names) {
                Ok((document, notes)) => Some(Work {
                    document,
                    form: hcl::Groups::Nested,
                    notes,
                    interpolated: names.interpolated,
                }),
                Err(found) => {
                    findings.extend(found);
                    None
                }
            };
        }
        Language::Yaml => config::yaml::read(source, text, &mut again),
        Language::Jsonc | Language::Plain => config::jsonc::read(source, text, &mut again),
    }?;
    if to == Language::Hcl {
        let before = findings.len();
        for entry in root.entries() {
            if !matches!(&*entry.key, "variables" | "include") {
                expressions(&entry.value, names.interpolated, findings);
            }
        }
        if findings
            .iter()
            .skip(before)
            .any(|finding| finding.severity == Severity::Error)
        {
            return None;
        }
    }
    let form = match groups_form(&root) {
        Some(GroupsForm::Nested) => hcl::Groups::Nested,
        Some(GroupsForm::Flat) => hcl::Groups::Flat,
        None => hcl::Groups::Unknown,
    };
    Some(Work {
        document: attach(&root, text, from, Wording::Meant),
        form,
        notes: Vec::new(),
        interpolated: names.interpolated,
    })
}

/// Finds strings that can't be expressions where they must be, and such as look like some where
/// they aren't.
fn expressions(node: &Node, are_some: bool, findings: &mut Diagnostics) {
    match &node.value {
        NodeValue::Array(items) => {
            for item in items {
                expressions(item, are_some, findings);
            }
        }
        NodeValue::Object(entries) => {
            for entry in entries {
                expressions(&entry.value, are_some, findings);
            }
        }
        NodeValue::String(text) if are_some && text.contains("${") => {
            if let Err(reason) = interpolated(text) {
                findings.push(
                    Diagnostic::error("this can't be an expression of HCL")
                        .at(node.span, reason)
                        .hint("for a literal `${` write `$${`"),
                );
            }
        }
        NodeValue::String(text) if text.contains("${var.") => {
            findings.push(
                Diagnostic::warning("`${ }` stays text")
                    .at(node.span, "no variables are declared in what is read"),
            );
        }
        _ => {}
    }
}

/// Writes, and reads what was written.
fn written(
    input: &Input<'_>,
    (from, to): (Language, Language),
    mut work: Work,
    findings: &mut Diagnostics,
) -> Option<(String, Vec<Note>)> {
    let name = input.file.display();
    comments::mark(
        &mut work.document,
        if to == Language::Jsonc { "//" } else { "#" },
    );
    let original = input.meaning().ok();
    let (mut text, dropped) = text_of(&mut work, to);
    if let Some(key) = dropped.iter().find(|key| *key != "$schema") {
        findings.push(
            Diagnostic::error(format!("HCL can't hold the key `{key}`: {name}"))
                .hint("names in HCL are letters, digits, `_` and `-`"),
        );
        return None;
    }
    for key in &dropped {
        findings.push(Diagnostic::warning(format!(
            "HCL can't hold the key `{key}`: it is left out"
        )));
    }
    let mut result = meaning_of(input, to, &text);
    if from == Language::Hcl
        && let (Some(original), Ok(other)) = (&original, &result)
        && original.form != other.form
        && let Value::Object(root) = &mut work.document.root
    {
        // Blocks say how groups are laid out; elsewhere it may have to be said.
        root.items.push(Item {
            key: Some("groups_form".into()),
            value: Value::Text("nested".into()),
            ..Item::default()
        });
        text = text_of(&mut work, to).0;
        result = meaning_of(input, to, &text);
    }
    let compared = compare_texts(input, to, &text, &work, &dropped, original.is_some());
    let compared = compared.and_then(|()| match (original, result) {
        (None, _) => Ok(()),
        (Some(_), Err(found)) => Err(first(&found)),
        (Some(original), Ok(result)) => compare(&original, &result, to, &work, &dropped),
    });
    match compared {
        Ok(()) => Some((text, work.notes)),
        Err(reason) => {
            *findings = Diagnostics::default();
            findings.push(
                Diagnostic::error(format!("{name} can't be written in this language"))
                    .detail(reason),
            );
            None
        }
    }
}

fn text_of(work: &mut Work, to: Language) -> (String, Vec<String>) {
    let document = &mut work.document;
    match to {
        Language::Yaml => {
            comments::without_brackets(document);
            if let Value::Object(root) = &mut document.root {
                comments::into_tails(root);
            }
            (yaml::write(document), Vec::new())
        }
        Language::Hcl => {
            comments::without_brackets(document);
            hcl::write(document, work.form, work.interpolated)
        }
        Language::Jsonc | Language::Plain => (jsonc::write(document, Wording::Meant), Vec::new()),
    }
}

fn first(findings: &Diagnostics) -> String {
    let first = findings.iter().next();
    first.map_or_else(String::new, |finding| finding.summary.clone())
}

/// Where the result would lie, beside the source.
fn beside(input: &Input<'_>, to: Language) -> PathBuf {
    let stem = input.file.file_stem().unwrap_or_default();
    let extension = match to {
        Language::Yaml => "yaml",
        Language::Hcl => "hcl",
        Language::Jsonc | Language::Plain => "jsonc",
    };
    let name = format!("{} converted.{extension}", stem.to_string_lossy());
    input.file.with_file_name(name)
}

fn meaning_of(input: &Input<'_>, to: Language, text: &str) -> Result<Meaning, Diagnostics> {
    let file = &*beside(input, to);
    Input {
        file,
        text,
        ..*input
    }
    .meaning()
}

/// Reads what was written, and says where it isn't what was to be written.
fn compare_texts(
    input: &Input<'_>,
    to: Language,
    text: &str,
    work: &Work,
    dropped: &[String],
    is_evaluated: bool,
) -> Result<(), String> {
    let mut meant = work.document.root.to_json();
    if to == Language::Hcl
        && let Some(top) = meant.as_object_mut()
    {
        for key in dropped {
            top.shift_remove(key);
        }
        if work.interpolated {
            // Expressions are written in another way: what they give is compared.
            if is_evaluated {
                return Ok(());
            }
        }
        top.shift_remove("variables");
    }
    let mut found = Diagnostics::default();
    let root = match to {
        Language::Hcl => {
            let file = &*beside(input, to);
            let result = Input {
                file,
                text,
                ..*input
            };
            let (_, result) =
                result.with_names(|names, findings| read(to, to, text, names, findings));
            let work = result.map_err(|found| first(&found))?.0;
            work.map(|work| work.document.root.to_json())
        }
        Language::Yaml => config::yaml::read(SourceId(0), text, &mut found).map(|n| n.to_json()),
        Language::Jsonc | Language::Plain => {
            config::jsonc::read(SourceId(0), text, &mut found).map(|n| n.to_json())
        }
    };
    let Some(mut written) = root else {
        return Err(first(&found));
    };
    if to == Language::Hcl {
        if let Some(top) = written.as_object_mut() {
            top.shift_remove("variables");
        }
        if work.interpolated {
            canonical(&mut written);
            canonical(&mut meant);
        }
    }
    if same(&written, &meant)
        || to == Language::Hcl && same(&written, &in_blocks(meant.clone(), work.form))
    {
        return Ok(());
    }
    Err(difference(&meant, &written, "").unwrap_or_default())
}

/// Strings as the expressions of HCL that give them.
fn canonical(tree: &mut Json) {
    match tree {
        Json::String(text) => {
            if let Ok(expression) = interpolated(text) {
                *text = plain(&expression);
            }
        }
        Json::Array(items) => items.iter_mut().for_each(canonical),
        Json::Object(entries) => entries.values_mut().for_each(canonical),
        scalar => *scalar = Json::String(scalar.to_string()),
    }
}

/// Says where two configurations aren't the same.
fn compare(
    original: &Meaning,
    result: &Meaning,
    to: Language,
    work: &Work,
    dropped: &[String],
) -> Result<(), String> {
    let tree = |meaning: &Meaning| {
        let mut tree = meaning.root.to_json();
        if let Some(top) = tree.as_object_mut() {
            top.shift_remove("groups_form");
            for key in dropped {
                top.shift_remove(key);
            }
        }
        tree
    };
    let (mut meant, written) = (tree(original), tree(result));
    if to == Language::Hcl && !same(&meant, &written) {
        meant = in_blocks(meant, work.form);
    }
    if !same(&meant, &written) {
        return Err(difference(&meant, &written, "").unwrap_or_default());
    }
    if original.variables != result.variables {
        return Err("it can't hold its variables".to_owned());
    }
    if original.secrets != result.secrets {
        return Err("it can't hold what is sensitive".to_owned());
    }
    if original.files != result.files {
        return Err("it can't hold what it includes".to_owned());
    }
    Ok(())
}

/// The order of keys counts.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Object(x), Json::Object(y)) => {
            x.keys().eq(y.keys()) && x.iter().all(|(key, value)| same(value, &y[key]))
        }
        (Json::Array(x), Json::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
        }
        _ => a == b,
    }
}

/// What groups are where blocks say their tenants.
fn in_blocks(mut tree: Json, form: hcl::Groups) -> Json {
    if let Some(top) = tree.as_object_mut() {
        top.shift_remove("groups_form");
        if form == hcl::Groups::Flat
            && let Some(groups) = top.get_mut("groups").and_then(Json::as_object_mut)
        {
            let flat = std::mem::take(groups);
            groups.insert(hcl::DEFAULT_TENANT.to_owned(), Json::Object(flat));
        }
    }
    tree
}

/// The path of the first value that differs.
fn difference(a: &Json, b: &Json, path: &str) -> Option<String> {
    match (a, b) {
        (Json::Object(x), Json::Object(y)) if x.keys().eq(y.keys()) => x
            .iter()
            .find_map(|(key, value)| difference(value, &y[key], &format!("{path}.{key}"))),
        (Json::Array(x), Json::Array(y)) if x.len() == y.len() => x
            .iter()
            .zip(y)
            .enumerate()
            .find_map(|(index, (x, y))| difference(x, y, &format!("{path}[{index}]"))),
        _ if same(a, b) => None,
        _ => Some(format!(
            "it can't hold the value of `{}`",
            path.trim_start_matches('.')
        )),
    }
}
