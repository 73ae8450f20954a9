//! `userdata`, and the snippets of `templates_lib`: texts, as a bare string or an object.
//!
//! In: an object that may have the key, or a snippet. Out: [`Userdata`]. May not: decode or fetch its content.

use std::sync::Arc;

use crate::config::model::{Compress, Encoding, MAIN_TEMPLATE, Userdata, UserdataSource};
use crate::config::node::{Entry, NodeValue};
use crate::config::schema::tables;
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics};

use super::reader::{Object, wrong_type};

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
            Some(plain(text, span))
        }
        NodeValue::Object(_) => {
            if let Some(merge) = entry.value.get("merge") {
                findings.push(
                    Diagnostic::error("`userdata.merge` isn't supported by this version")
                        .at(merge.span, "layers of userdata replace each other")
                        .hint("remove it"),
                );
            }
            let object = Object::open_beside(
                &entry.value,
                entry.key_span,
                "`userdata`",
                &tables::USERDATA_TABLE,
                &["merge"],
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
            let text = encoded(&object, span, findings)?;
            Some(Userdata {
                compress: compress.map(|compress| compress.value).unwrap_or_default(),
                ..text
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

/// One snippet of `templates_lib`; an empty one is a template that writes nothing.
pub(super) fn snippet(entry: &Entry, findings: &mut Diagnostics) -> Option<Userdata> {
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
        NodeValue::String(text) => Some(plain(text, span)),
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

fn plain(text: &Arc<str>, span: Span) -> Userdata {
    Userdata {
        span,
        source: None,
        encoding: None,
        content: Spanned::new(Arc::clone(text), span),
        compress: Compress::default(),
    }
}

/// `source`, `encoding` and `content`.
fn encoded(object: &Object<'_>, span: Span, findings: &mut Diagnostics) -> Option<Userdata> {
    let source = object.choice(
        "source",
        &[
            ("inline", UserdataSource::Inline),
            ("url", UserdataSource::Url),
        ],
        findings,
    );
    let encoding = object.choice(
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
    Some(Userdata {
        span,
        source: source.map(|source| source.value),
        encoding: encoding.map(|encoding| encoding.value),
        content,
        compress: Compress::default(),
    })
}
