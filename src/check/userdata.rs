//! Checks that a userdata's source, encoding and content agree.
//!
//! In: one userdata as written. Out: findings. Must not: fetch it, or parse its text.

use std::io::{self, Read as _};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use crate::config::model::{Encoding, TextSource, Userdata};
use crate::config::position;
use crate::config::source::Spanned;
use crate::diagnostic::{Diagnostic, Diagnostics};

use super::Checker;

/// Base64 with the rules of Go's `base64.StdEncoding`.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The most unpacked bytes that are checked; every cloud's limit is lower.
const LARGEST_USERDATA: u64 = 64 << 20;

impl Checker<'_> {
    /// Checks a snippet. It must not come from the network, since every text depends on it.
    pub(super) fn snippet(&self, snippet: &TextSource, findings: &mut Diagnostics) {
        let content = &snippet.content;
        if snippet.is_url() && !(content.starts_with("file:") && content.len() > "file:".len()) {
            findings.push(
                Diagnostic::error("a snippet can only come from a file")
                    .at(content.span, "expected `file:…`")
                    .hint("a file beside the configuration is `file:NAME`"),
            );
            return;
        }
        self.text(snippet, findings);
    }

    pub(super) fn userdata(&self, userdata: &Userdata, findings: &mut Diagnostics) {
        for part in &userdata.parts {
            self.text(&part.text, findings);
            let headers = [
                ("type", &part.content_type),
                ("filename", &part.filename),
                ("merge", &part.merge),
            ];
            for (key, value) in headers {
                if let Some(value) = value {
                    self.header(key, value, findings);
                }
            }
        }
    }

    /// Checks a value that becomes a MIME header: it must be a single line.
    fn header(&self, key: &str, value: &Spanned<Arc<str>>, findings: &mut Diagnostics) {
        let Some(offset) = value.find(|c: char| c.is_control() || !c.is_ascii()) else {
            return;
        };
        let place = position::within(self.sources, value.span, offset);
        findings.push(
            Diagnostic::error(format!("the `{key}` of a part can't be a header"))
                .at(place, "only printable ASCII can be"),
        );
    }

    fn text(&self, text: &TextSource, findings: &mut Diagnostics) {
        let content = &text.content;
        if text.is_url() {
            let good = ["https://", "http://", "file:"]
                .iter()
                .any(|scheme| content.len() > scheme.len() && content.starts_with(scheme));
            if !good {
                findings.push(
                    Diagnostic::error("the `content` of this userdata isn't a URL")
                        .at(content.span, "expected `https://…`, `http://…` or `file:…`")
                        .hint(
                            "with `\"source\": \"url\"` the content is an address; \
                             a file beside the configuration is `file:NAME`",
                        ),
                );
            }
            return;
        }
        match text.encoding {
            None | Some(Encoding::Plain) => {}
            Some(Encoding::Gzip) => findings.push(
                Diagnostic::error("`\"encoding\": \"gzip\"` needs `\"source\": \"url\"`")
                    .at(text.span, "text can't hold gzipped bytes")
                    .hint("use `base64+gzip` for content that stands here"),
            ),
            Some(encoding @ (Encoding::Base64 | Encoding::Base64Gzip)) => {
                self.base64(content, encoding == Encoding::Base64Gzip, findings);
            }
        }
    }

    /// Checks base64 as Go does: line breaks are ignored, padding is required.
    fn base64(&self, content: &Spanned<Arc<str>>, gzipped: bool, findings: &mut Diagnostics) {
        let mut offsets = Vec::with_capacity(content.len());
        let mut plain = Vec::with_capacity(content.len());
        for (offset, byte) in content.bytes().enumerate() {
            if !matches!(byte, b'\n' | b'\r') {
                offsets.push(offset);
                plain.push(byte);
            }
        }
        match BASE64.decode(&plain) {
            Ok(bytes) => {
                if gzipped {
                    let mut unpacked =
                        flate2::read::MultiGzDecoder::new(&*bytes).take(LARGEST_USERDATA);
                    let whole = io::copy(&mut unpacked, &mut io::sink());
                    if let Err(error) = whole {
                        findings.push(
                            Diagnostic::error("the `content` isn't gzipped")
                                .at(content.span, format!("can't be unpacked: {error}"))
                                .hint("`\"encoding\": \"base64\"` is for content that isn't"),
                        );
                    }
                }
            }
            Err(error) => {
                let (offset, label) = match error {
                    base64::DecodeError::InvalidByte(offset, byte) => {
                        let byte = char::from(byte);
                        (
                            offset,
                            if byte.is_ascii() && !byte.is_ascii_control() {
                                format!("`{byte}` isn't a base64 character here")
                            } else {
                                "not a base64 character".to_owned()
                            },
                        )
                    }
                    base64::DecodeError::InvalidLastSymbol { offset, .. } => (
                        offset,
                        "the last character has bits that nothing uses".to_owned(),
                    ),
                    base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
                        (
                            plain.len(),
                            "it ends too early: its length with `=` must be a multiple of 4"
                                .to_owned(),
                        )
                    }
                };
                let offset = offsets.get(offset).copied().unwrap_or(content.len());
                let place = position::within(self.sources, content.span, offset);
                findings.push(
                    Diagnostic::error("the `content` isn't base64")
                        .at(place, label)
                        .hint("`\"encoding\": \"plain\"` is for text as it is"),
                );
            }
        }
    }
}
