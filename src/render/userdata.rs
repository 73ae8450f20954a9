//! Decodes, composes and packs userdata.
//!
//! In: a configured source, or the body of its URL. Out: template text; and, once rendered, one
//! document with its embedded files. Must not: fetch.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::config::model::{Compress, Encoding, ProviderKind};
use crate::config::source::Span;
use crate::provider::rules::Rules;
use crate::spec::{Content, Userdata};

/// The limit of an unpacked gzip source, in bytes.
const LARGEST_SOURCE: u64 = 16 * 1024 * 1024;

/// Decodes a source.
///
/// Fails if the content doesn't match the encoding, or unpacks to too much. Errors are fragments
/// that complete "its content …".
pub fn decode(bytes: &[u8], encoding: Option<Encoding>) -> Result<Vec<u8>, String> {
    match encoding.unwrap_or(Encoding::Plain) {
        Encoding::Plain => Ok(bytes.to_vec()),
        Encoding::Base64 => from_base64(bytes),
        Encoding::Gzip => gunzip(bytes),
        Encoding::Base64Gzip => gunzip(&from_base64(bytes)?),
    }
}

fn from_base64(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let compact: Vec<u8> = bytes
        .iter()
        .copied()
        .filter(|b| !b.is_ascii_whitespace())
        .collect();
    BASE64
        .decode(compact)
        .map_err(|error| format!("isn't base64: {error}"))
}

fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .take(LARGEST_SOURCE + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| format!("isn't gzip: {error}"))?;
    if unpacked.len() as u64 > LARGEST_SOURCE {
        return Err(format!("unpacks to more than {LARGEST_SOURCE} bytes"));
    }
    Ok(unpacked)
}

/// Gzips without a file name or time, so that equal input gives equal output.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::best());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .expect("a vector takes every write")
}

/// A file embedded in the userdata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedFile<'a> {
    /// Its name in the configuration.
    pub name: &'a str,
    /// Where it is defined.
    pub span: Span,
    /// Whether any part of it is sensitive.
    pub is_sensitive: bool,
    /// Its path on the instance.
    pub path: &'a str,
    /// Its mode, such as `0600`.
    pub permissions: Option<&'a str>,
    /// Its owner, such as `root:root`.
    pub owner: Option<&'a str>,
    /// Whether it is exported if the userdata is too large.
    pub may_be_exported: bool,
    /// Its content.
    pub content: &'a str,
}

/// The MIME boundary. It is constant, so that plans group instances whose parts only differ in
/// their ids. A part that contains it is sent as base64, which can't.
const BOUNDARY: &str = "==nstance-3f9c1b7ae2d04856==";

/// Combines rendered userdata and embedded files. Files alone become a cloud-config; with other
/// userdata they become another MIME part that appends to its `write_files`.
pub fn compose(userdata: Option<Vec<u8>>, files: &[CarriedFile<'_>]) -> Option<Vec<u8>> {
    if files.is_empty() {
        return userdata;
    }
    let alone = userdata.is_none();
    let config = write_files(files, alone);
    let Some(userdata) = userdata else {
        return Some(config.into_bytes());
    };
    let parts = [
        (mime_type(&userdata), userdata),
        ("text/cloud-config", config.into_bytes()),
    ];
    let mut message =
        format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\n\n");
    for (mime, body) in &parts {
        message.push_str(&format!(
            "--{BOUNDARY}\nMIME-Version: 1.0\nContent-Type: {mime}; charset=\"utf-8\"\n"
        ));
        // Plain text keeps plans readable, but only if nothing mangles it.
        if is_plain(body) {
            message.push_str("Content-Transfer-Encoding: 7bit\n\n");
            message.push_str(&String::from_utf8_lossy(body));
            if !body.ends_with(b"\n") {
                message.push('\n');
            }
        } else {
            message.push_str("Content-Transfer-Encoding: base64\n\n");
            for line in BASE64.encode(body).as_bytes().chunks(76) {
                message.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
                message.push('\n');
            }
        }
    }
    message.push_str(&format!("--{BOUNDARY}--\n"));
    Some(message.into_bytes())
}

/// Whether a body survives unencoded: ASCII lines within the length limit of mail, without the
/// boundary.
fn is_plain(body: &[u8]) -> bool {
    const LONGEST_LINE: usize = 998;
    let text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    body.iter().all(text)
        && body
            .split(|byte| *byte == b'\n')
            .all(|line| line.len() <= LONGEST_LINE)
        && !body
            .windows(BOUNDARY.len())
            .any(|window| window == BOUNDARY.as_bytes())
}

/// The files as a cloud-config. Unless `alone`, it includes how to merge it.
pub(super) fn write_files(files: &[CarriedFile<'_>], alone: bool) -> String {
    // A JSON string is always a valid double-quoted YAML string.
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let mut config = String::from("#cloud-config\n");
    if !alone {
        config.push_str("merge_how: \"dict(recurse_list)+list(append)\"\n");
    }
    config.push_str("write_files:\n");
    for file in files {
        config.push_str(&format!("- path: {}\n", quote(file.path)));
        // Text that JSON and YAML quote alike stays readable.
        if file
            .content
            .chars()
            .all(|c| matches!(c, ' '..='~' | '\n' | '\t'))
        {
            config.push_str(&format!("  content: {}\n", quote(file.content)));
        } else {
            let content = BASE64.encode(file.content);
            config.push_str(&format!("  encoding: b64\n  content: \"{content}\"\n"));
        }
        if let Some(permissions) = file.permissions {
            config.push_str(&format!("  permissions: {}\n", quote(permissions)));
        }
        if let Some(owner) = file.owner {
            config.push_str(&format!("  owner: {}\n", quote(owner)));
        }
    }
    config
}

/// The MIME type that cloud-init derives from a document's first bytes.
fn mime_type(bytes: &[u8]) -> &'static str {
    const PREFIXES: [(&str, &str); 9] = [
        ("#cloud-config-archive", "text/cloud-config-archive"),
        ("#cloud-config-jsonp", "text/cloud-config-jsonp"),
        ("## template: jinja", "text/jinja2"),
        ("#cloud-boothook", "text/cloud-boothook"),
        ("#include-once", "text/x-include-once-url"),
        ("#include", "text/x-include-url"),
        ("#part-handler", "text/part-handler"),
        ("#cloud-config", "text/cloud-config"),
        ("#!", "text/x-shellscript"),
    ];
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]).to_lowercase();
    let text = text.trim_start();
    PREFIXES
        .iter()
        .find(|(prefix, _)| text.starts_with(prefix))
        .map_or("text/plain", |(_, m)| m)
}

/// Decides whether a document is gzipped. `reserve` are the bytes that are added to it when it is sent.
///
/// Fails with its size if it is too large for the cloud.
pub fn pack(
    bytes: Vec<u8>,
    reserve: usize,
    compress: Compress,
    rules: Rules,
) -> Result<Userdata, usize> {
    let limit = rules.userdata_limit().unwrap_or(usize::MAX);
    let gzipped = match compress {
        Compress::Always => Some(gzip(&bytes)),
        Compress::Auto if bytes.len() + reserve > limit => Some(gzip(&bytes)),
        Compress::Auto | Compress::Never => None,
    };
    let mut sent = gzipped.as_ref().map_or(bytes.len(), Vec::len);
    // A metadata value must be text; binary data is sent as base64.
    let is_text = gzipped.is_none() && std::str::from_utf8(&bytes).is_ok();
    if rules.kind() == ProviderKind::Gcp && !is_text {
        sent = sent.div_ceil(3) * 4;
    }
    sent += reserve;
    if sent > limit {
        return Err(sent);
    }
    Ok(Userdata {
        content: Content::from_bytes(bytes),
        gzip: gzipped.is_some(),
    })
}

/// The bytes to send, in base64, as API requests contain them.
pub fn sent_base64(userdata: &Userdata) -> String {
    let bytes = userdata.content.to_bytes();
    BASE64.encode(if userdata.gzip { gzip(&bytes) } else { bytes })
}

/// The body of a fetched or read userdata source.
pub type Body = Arc<[u8]>;

/// Bodies of userdata URLs; an absent one was not asked for (`validate` asks no network).
pub type Bodies = HashMap<Arc<str>, Body>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::SourceId;

    #[test]
    fn sources_decode() {
        let packed = gzip(b"#!/bin/sh\n");
        for (bytes, encoding) in [
            (b"#!/bin/sh\n".to_vec(), None),
            (b"#!/bin/sh\n".to_vec(), Some(Encoding::Plain)),
            (b"IyEvYmlu\nL3NoCg==".to_vec(), Some(Encoding::Base64)),
            (packed.clone(), Some(Encoding::Gzip)),
            (
                BASE64.encode(&packed).into_bytes(),
                Some(Encoding::Base64Gzip),
            ),
        ] {
            assert_eq!(decode(&bytes, encoding).unwrap(), b"#!/bin/sh\n");
        }
        assert!(
            decode(b"!", Some(Encoding::Base64))
                .unwrap_err()
                .starts_with("isn't base64")
        );
        assert!(
            decode(b"!", Some(Encoding::Gzip))
                .unwrap_err()
                .starts_with("isn't gzip")
        );
    }

    #[test]
    fn files_alone_are_a_cloud_config() {
        let file = CarriedFile {
            is_sensitive: false,
            may_be_exported: false,
            name: "a",
            span: Span::new(SourceId(0), 0, 0),
            path: "/opt/a \"b\"",
            permissions: Some("0600"),
            owner: None,
            content: "x=1\n",
        };
        let text = String::from_utf8(compose(None, std::slice::from_ref(&file)).unwrap()).unwrap();
        assert_eq!(
            text,
            "#cloud-config\nwrite_files:\n- path: \"/opt/a \\\"b\\\"\"\n  content: \"x=1\\n\"\n  permissions: \"0600\"\n"
        );
        let both = compose(Some(b"#!/bin/sh\n".to_vec()), std::slice::from_ref(&file)).unwrap();
        let both = String::from_utf8(both).unwrap();
        assert!(
            both.starts_with("MIME-Version: 1.0\nContent-Type: multipart/mixed"),
            "{both}"
        );
        assert!(both.contains("text/x-shellscript") && both.contains("text/cloud-config"));
        assert!(both.contains("7bit\n\n#!/bin/sh\n--=="), "{both}");
        let other = CarriedFile {
            content: "é",
            ..file
        };
        let both = compose(Some("#!/bin/sh\n# é\n".into()), &[other]).unwrap();
        let both = String::from_utf8(both).unwrap();
        assert!(
            both.is_ascii() && both.contains("base64\n\nIyEvYmluL3NoCiMgw6kK\n"),
            "{both}"
        );
    }

    #[test]
    fn packing_compresses_only_what_does_not_fit() {
        let rules = Rules::of(ProviderKind::Aws);
        let small = pack(vec![b'a'; 16_384], 0, Compress::Auto, rules).unwrap();
        assert!(!small.gzip);
        let large = pack(vec![b'a'; 16_385], 0, Compress::Auto, rules).unwrap();
        assert!(large.gzip);
        assert_eq!(
            pack(vec![b'a'; 16_385], 0, Compress::Never, rules),
            Err(16_385)
        );
        // A nonce takes its place when the document is sent.
        assert_eq!(
            pack(vec![b'a'; 16_000], 1_024, Compress::Never, rules),
            Err(17_024)
        );
        let nearly = pack(vec![b'a'; 16_000], 1_024, Compress::Auto, rules);
        assert!(nearly.unwrap().gzip);
        assert!(
            pack(b"a".to_vec(), 0, Compress::Always, rules)
                .unwrap()
                .gzip
        );
    }
}
