//! `userdata`, as a bare string or an object.
//!
//! In: an object that may have the key. Out: [`Userdata`]. May not: decode or fetch its content.

use crate::config::model::{Compress, Encoding, Userdata, UserdataSource};
use crate::config::node::NodeValue;
use crate::config::source::Spanned;
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
            Some(Userdata {
                span,
                source: None,
                encoding: None,
                content: Spanned::new(text.clone(), span),
                compress: Compress::default(),
            })
        }
        NodeValue::Object(_) => {
            let known = &["source", "encoding", "content", "compress"];
            if let Some(merge) = entry.value.get("merge") {
                findings.push(
                    Diagnostic::error("`userdata.merge` isn't supported by this version")
                        .at(merge.span, "layers of userdata replace each other")
                        .hint("remove it"),
                );
            }
            let known_or_refused = &["source", "encoding", "content", "compress", "merge"];
            let known: &[&str] = if entry.value.get("merge").is_some() {
                known_or_refused
            } else {
                known
            };
            let object = Object::of_entry(entry, known, findings)?;
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
            let compress = object.choice(
                "compress",
                &[
                    ("auto", Compress::Auto),
                    ("always", Compress::Always),
                    ("never", Compress::Never),
                ],
                findings,
            );
            let content = object.required_text("content", findings)?;
            Some(Userdata {
                span,
                source: source.map(|source| source.value),
                encoding: encoding.map(|encoding| encoding.value),
                content,
                compress: compress.map(|compress| compress.value).unwrap_or_default(),
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
