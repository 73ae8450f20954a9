//! Decodes `files`, with the keys that each kind requires.
//!
//! In: an object that may have the key. Out: [`File`]s by name. Must not: render them.

use std::sync::Arc;

use crate::config::model::{Deliver, ErbContent, File, FileContent, Named};
use crate::config::node::{Entry, Node, NodeValue, Sensitivity};
use crate::config::schema::tables;
use crate::config::source::Spanned;
use crate::diagnostic::{Diagnostic, Diagnostics};

use super::reader::{Object, filled_text, text, wrong_type};

/// The folder of the agent's files.
const AGENT_FOLDER: &str = "/opt/nstance-agent/";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Env,
    Json,
    String,
    Erb,
    Secret,
    Storage,
    Certificate,
}

const KINDS: &[(&str, Kind)] = &[
    ("env", Kind::Env),
    ("json", Kind::Json),
    ("string", Kind::String),
    ("erb", Kind::Erb),
    ("secret", Kind::Secret),
    ("storage", Kind::Storage),
    ("certificate", Kind::Certificate),
];

impl Kind {
    fn name(self) -> &'static str {
        KINDS
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(name, _)| name)
    }

    /// The keys for the file's content.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Env | Self::Json | Self::String => &["template"],
            Self::Erb => &["template", "properties", "context", "instances"],
            Self::Secret | Self::Storage => &["source"],
            Self::Certificate => &["template", "key"],
        }
    }

    /// Whether nstance knows the content, rather than only the server.
    fn is_rendered(self) -> bool {
        matches!(self, Self::Env | Self::Json | Self::String | Self::Erb)
    }
}

pub(super) fn files(owner: &Object<'_>, findings: &mut Diagnostics) -> Named<File> {
    owner.named("files", findings, |entry, findings| {
        check_name(entry, findings);
        file(entry, findings)
    })
}

/// Checks a file's name, which becomes part of a path here and on the instance.
fn check_name(entry: &Entry, findings: &mut Diagnostics) {
    let name = &*entry.key;
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        // It is exported below a folder, never outside.
        "a part of it is empty, `.` or `..`"
    } else if name.contains('\\') {
        "it contains a path separator"
    } else if name.chars().any(char::is_control) {
        "it contains a control character"
    } else if name.len() > 255 {
        "it is longer than 255 bytes"
    } else {
        return;
    };
    findings.push(
        Diagnostic::error(format!("`{name}` can't be the name of a file"))
            .at(entry.key_span, reason)
            .hint("a path on the instance goes into `path`, with `\"deliver\": \"userdata\"`"),
    );
}

fn file(entry: &Entry, findings: &mut Diagnostics) -> Option<File> {
    let name = format!("file `{}`", entry.key);
    let object = Object::open(&entry.value, entry.key_span, name, &tables::FILE, findings)?;
    if object.get("kind").is_none() {
        let kinds = "kinds are `env`, `json`, `string`, `erb`, `secret`, `storage`, `certificate`";
        object.report_missing("kind", Some(kinds), findings);
    }
    let kind = object.choice("kind", KINDS, findings);
    let Some(kind) = kind.map(|kind| kind.value) else {
        check_content_of_any_kind(&object, findings);
        deliver(&object, entry, None, findings);
        return None;
    };
    for key in [
        "template",
        "source",
        "key",
        "properties",
        "context",
        "instances",
    ] {
        if let Some(stray) = object.get(key).filter(|_| !kind.fields().contains(&key)) {
            findings.push(
                Diagnostic::error(format!("a file of kind `{}` has no `{key}`", kind.name()))
                    .at(stray.key_span, "means nothing to this kind")
                    .hint(format!(
                        "it takes {}",
                        kind.fields()
                            .iter()
                            .map(|field| format!("`{field}`"))
                            .collect::<Vec<_>>()
                            .join(" and ")
                    )),
            );
        }
    }
    let deliver = deliver(&object, entry, Some(kind), findings);
    let content = content(&object, kind, findings)?;
    let is_sensitive = |key: &&str| {
        let entry = object.get(key);
        entry.is_some_and(|entry| !entry.value.sensitivity.is_open())
    };
    let text = object.get("template").filter(|_| kind == Kind::String);
    let mut keys = OF_USERDATA.iter().chain(&["source", "key"]);
    let is_template_whole = matches!(kind, Kind::Certificate | Kind::Erb);
    let is_whole = keys.any(is_sensitive) || is_template_whole && is_sensitive(&"template");
    let sensitivity = if is_whole {
        Sensitivity::Whole
    } else {
        text.map(|entry| entry.value.sensitivity.clone())
            .unwrap_or_default()
    };
    Some(File {
        content,
        deliver: deliver.unwrap_or_default(),
        sensitivity,
    })
}

/// Reports errors that don't depend on the file's kind.
fn check_content_of_any_kind(object: &Object<'_>, findings: &mut Diagnostics) {
    if let Some(entry) = object.get("source") {
        filled_text(entry, findings);
    }
    if let Some(template) = object.get("template").map(|entry| &entry.value)
        && !matches!(template.value, NodeValue::Object(_) | NodeValue::String(_))
    {
        wrong_type(template, "`template`", "an object or a string", findings);
    }
}

fn content(object: &Object<'_>, kind: Kind, findings: &mut Diagnostics) -> Option<FileContent> {
    let field = kind.fields()[0];
    let Some(entry) = object.get(field) else {
        object.report_missing(field, None, findings);
        return None;
    };
    match kind {
        Kind::Env => env(object, entry, findings).map(FileContent::Env),
        Kind::Json => {
            if matches!(entry.value.value, NodeValue::Object(_)) {
                return Some(FileContent::Json(entry.value.clone()));
            }
            wrong_type(
                &entry.value,
                &format!("the `template` of {}", object.name()),
                "an object",
                findings,
            );
            None
        }
        Kind::String => match &entry.value.value {
            NodeValue::Object(_) => {
                wrong_type(
                    &entry.value,
                    &format!("the `template` of {}", object.name()),
                    "a string",
                    findings,
                );
                None
            }
            _ => text(entry, findings).map(FileContent::String),
        },
        Kind::Erb => {
            let properties = object.object("properties", findings);
            let context = object.object("context", findings);
            let instances = instances(object, findings);
            text(entry, findings).map(|template| {
                FileContent::Erb(ErbContent {
                    template,
                    properties,
                    context,
                    instances,
                })
            })
        }
        Kind::Secret => filled_text(entry, findings).map(FileContent::Secret),
        Kind::Storage => filled_text(entry, findings).map(FileContent::Storage),
        Kind::Certificate => {
            let key = object.get("key").and_then(|entry| key(entry, findings));
            filled_text(entry, findings).map(|template| FileContent::Certificate { template, key })
        }
    }
}

/// The `instances` of an ERB file: a list of objects.
fn instances(object: &Object<'_>, findings: &mut Diagnostics) -> Option<Node> {
    let node = &object.get("instances")?.value;
    let is_object = |item: &Node| matches!(item.value, NodeValue::Object(_));
    match &node.value {
        NodeValue::Array(items) if items.iter().all(is_object) => Some(node.clone()),
        _ => {
            let wanted = "a list of objects";
            let what = format!("the `instances` of {}", object.name());
            wrong_type(node, &what, wanted, findings);
            None
        }
    }
}

/// A certificate's key: `{source, name}`, or a text in its old form.
fn key(entry: &Entry, findings: &mut Diagnostics) -> Option<Node> {
    if matches!(entry.value.value, NodeValue::String(_)) {
        filled_text(entry, findings)?;
    } else {
        let object = Object::of_entry(entry, &tables::CERTIFICATE_KEY, findings)?;
        object.text("source", findings);
        object.text("name", findings);
    }
    Some(entry.value.clone())
}

fn env(object: &Object<'_>, entry: &Entry, findings: &mut Diagnostics) -> Option<Node> {
    let NodeValue::Object(variables) = &entry.value.value else {
        wrong_type(
            &entry.value,
            &format!("the `template` of {}", object.name()),
            "an object of strings",
            findings,
        );
        return None;
    };
    for variable in variables {
        let name = &*variable.key;
        let identifier = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !identifier {
            findings.push(
                Diagnostic::warning(format!("`{name}` isn't the name of a shell variable"))
                    .at(variable.key_span, "not a shell identifier")
                    .hint("names are letters, digits and `_`, and don't start with a digit"),
            );
        }
        if let Some(value) = text(variable, findings)
            && value.contains(['\n', '\r'])
        {
            findings.push(
                Diagnostic::warning(format!("the value of `{name}` has a line break"))
                    .at(value.span, "a line of an env file can't hold it")
                    .hint("use a file of kind `string`, or encode the value"),
            );
        }
    }
    Some(entry.value.clone())
}

/// Keys that require `"deliver": "userdata"`.
const OF_USERDATA: [&str; 3] = ["path", "permissions", "owner"];

fn deliver(
    object: &Object<'_>,
    file: &Entry,
    kind: Option<Kind>,
    findings: &mut Diagnostics,
) -> Option<Deliver> {
    let choices = [
        ("export", None),
        ("userdata", Some(false)),
        ("auto", Some(true)),
    ];
    let chosen = object.choice("deliver", &choices, findings);
    let or_export = chosen.and_then(|chosen| chosen.value).unwrap_or_default();
    let by_userdata = chosen.map(|chosen| Spanned::new(chosen.value.is_some(), chosen.span));
    let [path, permissions, owner] = OF_USERDATA.map(|key| object.text(key, findings));
    if let Some(by_userdata) = by_userdata.filter(|by_userdata| by_userdata.value)
        && let Some(kind) = kind.filter(|kind| !kind.is_rendered())
    {
        findings.push(
            Diagnostic::error(format!(
                "a file of kind `{}` can't be delivered by userdata",
                kind.name()
            ))
            .at(by_userdata.span, "its content is known to the server only")
            .hint("leave `deliver` out"),
        );
        return None;
    }
    // If `deliver` is invalid or misspelled, these keys can't be checked.
    let is_exported = match by_userdata {
        Some(by_userdata) => !by_userdata.value,
        None => object.lacks("deliver"),
    };
    if is_exported {
        report_stray(object, findings);
    }
    // Without `deliver`, the user probably forgot it, so check the values too.
    if by_userdata.is_none_or(|by_userdata| by_userdata.value) {
        check_path(path.as_ref(), findings);
        check_permissions(permissions.as_ref(), findings);
    }
    by_userdata?.value.then(|| Deliver::Userdata {
        path: path.map_or_else(
            || Arc::from(format!("{AGENT_FOLDER}{}", file.key)),
            |path| path.value,
        ),
        permissions: permissions.map(|permissions| permissions.value),
        owner: owner.map(|owner| owner.value),
        or_export,
    })
}

/// Reports all keys that have no effect on an exported file, in one finding.
fn report_stray(object: &Object<'_>, findings: &mut Diagnostics) {
    let stray: Vec<&Entry> = OF_USERDATA
        .iter()
        .filter_map(|key| object.get(key))
        .collect();
    let names: Vec<String> = stray
        .iter()
        .map(|entry| format!("`{}`", entry.key))
        .collect();
    let (Some(first), [most @ .., last]) = (stray.first(), &names[..]) else {
        return;
    };
    let summary = match most {
        [] => format!("{last} needs `\"deliver\": \"userdata\"`"),
        _ => format!(
            "{} and {last} need `\"deliver\": \"userdata\"`",
            most.join(", ")
        ),
    };
    findings
        .push(Diagnostic::error(summary).at(first.key_span, "a file that is exported has none"));
}

fn check_path(path: Option<&Spanned<Arc<str>>>, findings: &mut Diagnostics) {
    if let Some(path) = path.filter(|path| !path.starts_with('/')) {
        findings.push(
            Diagnostic::error("`path` must be absolute")
                .at(path.span, "doesn't start with `/`")
                .hint(format!("`{AGENT_FOLDER}{}` would do", path.value)),
        );
    }
}

fn check_permissions(permissions: Option<&Spanned<Arc<str>>>, findings: &mut Diagnostics) {
    let is_octal = |text: &str| {
        (3..=5).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'))
    };
    if let Some(permissions) = permissions.filter(|permissions| !is_octal(permissions)) {
        findings.push(
            Diagnostic::error(format!("`{}` can't be `permissions`", permissions.value))
                .at(permissions.span, "expected octal digits, such as `0644`"),
        );
    }
}
