//! Decodes `userdata` and the snippets of `templates_lib`: a text or an object; for userdata also a
//! list of parts.
//!
//! In: an object that may have the key, or a snippet. Out: [`Userdata`], [`TextSource`]. Must not:
//! unpack or fetch its content.

use std::sync::Arc;

use crate::config::model::{
    Compress, Encoding, Includes, Joining, MAIN_TEMPLATE, TextSource, Userdata, UserdataPart,
    UserdataSource,
};
use crate::config::node::{Entry, Node, NodeValue, Sensitivity};
use crate::config::schema::tables;
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics};

use super::reader::{Object, filled_text, wrong_type};

/// The `userdata` of an object.
pub(super) fn userdata(owner: &Object<'_>, findings: &mut Diagnostics) -> Option<Userdata> {
    let entry = owner.get("userdata")?;
    let span = entry.value.span;
    match &entry.value.value {
        NodeValue::String(text) => {
            if text.is_empty() {
                findings.push(
                    Diagnostic::error("the userdata is empty")
                        .at(span, "expected some text")
                        .hint("leave `userdata` out where there is none"),
                );
                return None;
            }
            Some(Userdata {
                span,
                parts: vec![bare(plain(text, &entry.value))],
                is_list: false,
                merge: None,
                includes: Includes::Keep,
                compress: None,
            })
        }
        NodeValue::Object(_) => {
            let object = Object::open(
                &entry.value,
                entry.key_span,
                "`userdata`",
                &tables::USERDATA_TABLE,
                findings,
            )?;
            let compress = object.choice(
                "compress",
                &[
                    ("auto", Compress::Auto),
                    ("always", Compress::Always),
                    ("never", Compress::Never),
                ],
                findings,
            );
            let choices = [
                Joining::Replace,
                Joining::Append,
                Joining::CloudInit,
                Joining::Nstance,
            ]
            .map(|joining| (joining.as_str(), joining));
            let merge = object.choice("merge", &choices, findings);
            let includes = object.choice(
                "includes",
                &[("keep", Includes::Keep), ("fetch", Includes::Fetch)],
                findings,
            );
            let listed = object.get("parts");
            let parts = match listed {
                Some(list) => {
                    beside_parts(&object, list, findings);
                    parts(list, findings)
                }
                None if object.lacks("parts") => vec![bare(encoded(&object, span, findings)?)],
                None => return None,
            };
            Some(Userdata {
                span,
                parts,
                is_list: listed.is_some(),
                merge,
                includes: includes.map_or(Includes::Keep, |includes| includes.value),
                compress: compress.map(|compress| compress.value),
            })
        }
        _ => {
            wrong_type(
                &entry.value,
                "`userdata`",
                "a string or an object",
                findings,
            );
            None
        }
    }
}

/// Rejects the keys of a single text beside `parts`.
fn beside_parts(object: &Object<'_>, list: &Entry, findings: &mut Diagnostics) {
    for key in ["content", "source", "encoding"] {
        if let Some(entry) = object.get(key) {
            findings.push(
                Diagnostic::error(format!("`userdata` has both `{key}` and `parts`"))
                    .at(entry.key_span, "each part has its own")
                    .related(list.key_span, "the parts stand here")
                    .hint("make it one of the parts, or leave it out"),
            );
        }
    }
}

/// The valid items of `parts`.
fn parts(list: &Entry, findings: &mut Diagnostics) -> Vec<UserdataPart> {
    let NodeValue::Array(items) = &list.value.value else {
        wrong_type(&list.value, "`parts`", "a list of parts", findings);
        return Vec::new();
    };
    if items.is_empty() {
        findings.push(
            Diagnostic::error("`parts` is empty")
                .at(list.value.span, "expected one part at least")
                .hint("leave `userdata` out where there is none"),
        );
    }
    let parts = items.iter().filter_map(|item| part(item, findings));
    parts.collect()
}

fn part(item: &Node, findings: &mut Diagnostics) -> Option<UserdataPart> {
    let span = item.span;
    let name = "a part of the userdata";
    match &item.value {
        NodeValue::String(text) if text.is_empty() => {
            findings
                .push(Diagnostic::error(format!("{name} is empty")).at(span, "expected some text"));
            None
        }
        NodeValue::String(text) => Some(bare(plain(text, item))),
        NodeValue::Object(_) => {
            let object = Object::open(item, span, name, &tables::USERDATA_PART, findings)?;
            let text = encoded(&object, span, findings);
            let mut filled = |key| {
                let entry = object.get(key)?;
                filled_text(entry, findings)
            };
            let (content_type, filename) = (filled("type"), filled("filename"));
            let merge = filled("merge");
            Some(UserdataPart {
                text: text?,
                content_type,
                filename,
                merge,
            })
        }
        _ => {
            wrong_type(item, name, "a string or an object", findings);
            None
        }
    }
}

fn bare(text: TextSource) -> UserdataPart {
    UserdataPart {
        text,
        content_type: None,
        filename: None,
        merge: None,
    }
}

/// One snippet of `templates_lib`; it may be empty.
pub(super) fn snippet(entry: &Entry, findings: &mut Diagnostics) -> Option<TextSource> {
    if entry.key.is_empty() || &*entry.key == MAIN_TEMPLATE {
        let reason = if entry.key.is_empty() {
            "it is empty"
        } else {
            "each text itself has this name"
        };
        findings.push(
            Diagnostic::error(format!("`{}` can't be the name of a snippet", entry.key))
                .at(entry.key_span, reason),
        );
    }
    let span = entry.value.span;
    match &entry.value.value {
        NodeValue::String(text) => Some(plain(text, &entry.value)),
        NodeValue::Object(_) => {
            let name = format!("snippet `{}`", entry.key);
            let table = &tables::SNIPPET;
            let object = Object::open(&entry.value, entry.key_span, name, table, findings)?;
            encoded(&object, span, findings)
        }
        _ => {
            let name = format!("snippet `{}`", entry.key);
            wrong_type(&entry.value, &name, "a string or an object", findings);
            None
        }
    }
}

fn plain(text: &Arc<str>, node: &Node) -> TextSource {
    TextSource {
        span: node.span,
        source: None,
        encoding: None,
        content: Spanned::new(Arc::clone(text), node.span),
        sensitivity: node.sensitivity.clone(),
    }
}

/// `source`, `encoding` and `content`.
fn encoded(object: &Object<'_>, span: Span, findings: &mut Diagnostics) -> Option<TextSource> {
    let source = object.filled_choice(
        "source",
        &[
            ("inline", UserdataSource::Inline),
            ("url", UserdataSource::Url),
        ],
        findings,
    );
    let encoding = object.filled_choice(
        "encoding",
        &[
            ("plain", Encoding::Plain),
            ("base64", Encoding::Base64),
            ("gzip", Encoding::Gzip),
            ("base64+gzip", Encoding::Base64Gzip),
        ],
        findings,
    );
    let content = object.required_text("content", findings)?;
    let written = object.get("content").map(|entry| &entry.value.sensitivity);
    let mut text = TextSource {
        span,
        source: source.map(|source| source.value),
        encoding: encoding.map(|encoding| encoding.value),
        content,
        sensitivity: written.cloned().unwrap_or_default(),
    };
    if text.is_url() {
        text.sensitivity = Sensitivity::Open;
    } else if text
        .encoding
        .is_some_and(|encoding| encoding != Encoding::Plain)
    {
        text.sensitivity = text.sensitivity.of_whole();
    }
    Some(text)
}
