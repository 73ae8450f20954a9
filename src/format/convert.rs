//! One configuration file in another language.
//!
//! In: the text of one file. Out: the text that means the same in another language, its comments
//! and the order of its keys kept; every result was read again and compared. May not: evaluate
//! expressions.

use serde_json::Value as Json;

use super::attach::attach;
use super::document::{Document, Value, Wording};
use super::{comments, from_hcl, hcl, jsonc, yaml};
use crate::config;
use crate::config::decode::{GroupsForm, groups_form};
use crate::config::node::Node;
use crate::config::source::{Language, SourceId, SourceMap};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// A text in another language.
#[derive(Debug)]
pub struct Converted {
    /// The text.
    pub text: String,
    /// Warnings: about the source, and what the target can't hold.
    pub findings: Diagnostics,
}

/// Converts a source.
pub fn convert(
    sources: &SourceMap,
    source: SourceId,
    to: Language,
) -> Result<Converted, Diagnostics> {
    let mut findings = Diagnostics::default();
    let from = sources.get(source);
    let (mut document, form) = read(from.language, source, &from.text, &mut findings)?;
    if !matches!(document.root, Value::Object(_)) {
        findings.push(Diagnostic::error(format!(
            "a configuration must be an object: {}",
            from.name
        )));
        return Err(findings);
    }
    if to == Language::Hcl || from.language == Language::Hcl {
        refuse_variables(&document, &from.name, &mut findings)?;
    }
    let meant = document.root.to_json();
    comments::mark(
        &mut document,
        if to == Language::Jsonc { "//" } else { "#" },
    );
    let mut dropped = Vec::new();
    let text = match to {
        Language::Yaml => {
            comments::without_brackets(&mut document);
            if let Value::Object(root) = &mut document.root {
                comments::into_tails(root);
            }
            yaml::write(&document)
        }
        Language::Hcl => {
            comments::without_brackets(&mut document);
            let (text, left) = hcl::write(&document, form);
            dropped = left;
            text
        }
        Language::Jsonc | Language::Plain => jsonc::write(&document, Wording::Meant),
    };
    if let Some(key) = dropped.iter().find(|key| *key != "$schema") {
        findings.push(
            Diagnostic::error(format!("HCL can't hold the key `{key}`: {}", from.name))
                .hint("names in HCL are letters, digits, `_` and `-`"),
        );
        return Err(findings);
    }
    for key in &dropped {
        findings.push(Diagnostic::warning(format!(
            "HCL can't hold the key `{key}`: it is left out"
        )));
    }
    compare(&text, to, meant, form, &dropped).map_err(|reason| {
        let mut failed = Diagnostics::default();
        failed.push(
            Diagnostic::error(format!("{} can't be written in this language", from.name))
                .detail(reason),
        );
        failed
    })?;
    Ok(Converted { text, findings })
}

fn read(
    language: Language,
    source: SourceId,
    text: &str,
    findings: &mut Diagnostics,
) -> Result<(Document, hcl::Groups), Diagnostics> {
    let root: Option<Node> = match language {
        Language::Hcl => {
            return from_hcl::read(source, text).map(|document| (document, hcl::Groups::Nested));
        }
        Language::Yaml => config::yaml::read(source, text, findings),
        Language::Jsonc | Language::Plain => config::jsonc::read(source, text, findings),
    };
    match root.filter(|_| !findings.has_errors()) {
        None => Err(std::mem::take(findings)),
        Some(root) => {
            let form = match groups_form(&root) {
                Some(GroupsForm::Nested) => hcl::Groups::Nested,
                Some(GroupsForm::Flat) => hcl::Groups::Flat,
                None => hcl::Groups::Unknown,
            };
            Ok((attach(&root, text, language, Wording::Meant), form))
        }
    }
}

/// In other languages variables are written otherwise, and texts with `${ }` then mean something.
fn refuse_variables(
    document: &Document,
    name: &str,
    findings: &mut Diagnostics,
) -> Result<(), Diagnostics> {
    let Value::Object(root) = &document.root else {
        return Ok(());
    };
    let has = |key| {
        root.items
            .iter()
            .any(|item| item.key.as_deref() == Some(key))
    };
    if !has("variables") {
        return Ok(());
    }
    findings.push(
        Diagnostic::error(format!("variables can't be converted to HCL: {name}"))
            .hint("write their values in their place, or convert between JSONC and YAML"),
    );
    Err(std::mem::take(findings))
}

/// Reads what was written, and says where it isn't what was meant.
fn compare(
    text: &str,
    language: Language,
    mut meant: Json,
    form: hcl::Groups,
    dropped: &[String],
) -> Result<(), String> {
    let mut sources = SourceMap::default();
    let source = sources.add_value("the result", text);
    let mut findings = Diagnostics::default();
    let read = read(language, source, text, &mut findings);
    let written = match read {
        Ok((document, _)) => document.root.to_json(),
        Err(findings) => {
            let first = findings
                .iter()
                .next()
                .map(|finding| finding.summary.clone());
            return Err(first.unwrap_or_default());
        }
    };
    if let Some(top) = meant.as_object_mut() {
        for key in dropped {
            top.shift_remove(key);
        }
    }
    if written == meant || language == Language::Hcl && written == in_blocks(meant.clone(), form) {
        return Ok(());
    }
    Err(difference(&meant, &written, "").unwrap_or_default())
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
        _ if a == b => None,
        _ => Some(format!(
            "it can't hold the value of `{}`",
            path.trim_start_matches('.')
        )),
    }
}
