//! User data, opened: what is packed is unpacked, what holds parts is taken apart, at any depth.
//!
//! In: bytes, as a machine or a cloud has them. Out: a tree of [`Opened`] parts. May not: refuse
//! anything, fetch what is included without a way to, or merge.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::detect::{ARCHIVE, INCLUDE, INCLUDE_ONCE, SHELL_SCRIPT, detect_bytes};
use crate::mime::{Body, Message};
use crate::userdata::{
    Fetch, MOST_INCLUDES, NOT_MULTIPART, Taken, included_in, is_message, is_packed, take_apart,
    unpack,
};

/// How deep parts may be in parts.
const DEEPEST: u32 = 20;
/// How much all parts together may unpack to.
const LARGEST: usize = 64 << 20;

/// How something was packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Packing {
    /// As base64, as a whole. Within a message it is the message's own affair.
    Base64,
    /// By gzip.
    Gzip,
}

impl Packing {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base64 => "base64",
            Self::Gzip => "gzip",
        }
    }
}

/// User data, or a part of it, opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opened {
    /// What it is: its type, or what it begins like.
    pub content_type: String,
    /// Its name, if it has one.
    pub filename: Option<String>,
    /// Its headers, as spelled; those of a message that holds it say how it is encoded.
    pub headers: Vec<(String, String)>,
    /// How it was packed, the outermost first.
    pub packing: Vec<Packing>,
    /// How many bytes it had as it was found.
    pub packed_size: usize,
    /// What it says, unpacked; of what holds parts, its text as it stands.
    pub content: Vec<u8>,
    /// The parts that it holds, or includes.
    pub parts: Vec<Opened>,
    /// Where it was fetched from, if something includes it.
    pub url: Option<String>,
    /// What is wrong with it.
    pub problem: Option<String>,
}

impl Opened {
    /// Parts that hold no others, in order.
    pub fn leaves(&self) -> Vec<&Opened> {
        if self.parts.is_empty() {
            return vec![self];
        }
        self.parts.iter().flat_map(Self::leaves).collect()
    }
}

/// Opens user data.
pub fn open(bytes: &[u8]) -> Opened {
    open_fetching(bytes, None)
}

/// Opens user data, and what it includes if there is a way to fetch it.
pub fn open_fetching(bytes: &[u8], fetch: Option<&Fetch<'_>>) -> Opened {
    let mut opener = Opener {
        left: LARGEST,
        fetch,
        fetched: 0,
    };
    opener.whole(bytes, 0)
}

struct Opener<'f> {
    left: usize,
    fetch: Option<&'f Fetch<'f>>,
    /// How often something was fetched.
    fetched: usize,
}

impl Opener<'_> {
    fn whole(&mut self, bytes: &[u8], depth: u32) -> Opened {
        let mut opened = Opened {
            packed_size: bytes.len(),
            ..Opened::default()
        };
        let mut content = bytes.to_vec();
        while opened.packing.len() < DEEPEST as usize {
            let (packing, unpacked) = if let Some(unpacked) = unpack(&content) {
                (Packing::Gzip, unpacked)
            } else if let Some(decoded) = decoded(&content) {
                (Packing::Base64, decoded)
            } else {
                break;
            };
            if !self.takes(unpacked.len()) {
                opened.problem = Some("it unpacks to more than 64 MiB".to_owned());
                break;
            }
            opened.packing.push(packing);
            content = unpacked;
        }
        if content.starts_with(&[0x1f, 0x8b]) && opened.problem.is_none() {
            opened.problem = Some("it is damaged gzip".to_owned());
        }
        opened.content = content;
        if is_message(&opened.content) && depth < DEEPEST {
            match std::str::from_utf8(&opened.content) {
                Ok(text) => {
                    let message = Message::parse(text);
                    let found = self.message(&message, depth);
                    opened.content_type = found.content_type;
                    opened.headers = found.headers;
                    opened.filename = found.filename;
                    opened.parts = found.parts;
                    if opened.parts.is_empty() {
                        opened.content = found.content;
                    }
                    opened.problem = opened.problem.or(found.problem);
                }
                Err(_) => {
                    "application/octet-stream".clone_into(&mut opened.content_type);
                    opened.problem = Some("it is a message, and isn't UTF-8".to_owned());
                }
            }
            return opened;
        }
        opened.content_type = kind(NOT_MULTIPART, &opened.content);
        self.open_more(&mut opened, depth);
        opened
    }

    fn takes(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.left;
        self.left = self.left.saturating_sub(bytes);
        fits
    }

    fn message(&mut self, message: &Message, depth: u32) -> Opened {
        let mut opened = Opened {
            content_type: message.content_type(),
            filename: message.filename(),
            headers: message.headers.clone(),
            ..Opened::default()
        };
        match &message.body {
            Body::Parts(parts) => {
                opened.parts = parts
                    .iter()
                    .map(|part| self.message(part, depth + 1))
                    .collect();
                opened.packed_size = opened.parts.iter().map(|part| part.packed_size).sum();
            }
            Body::Text(text) => {
                opened.packed_size = text.len();
                opened.content = message.payload();
                if is_packed(&opened.content_type) {
                    let whole = self.whole(&opened.content, depth + 1);
                    let is_gzip = whole.packing.first() == Some(&Packing::Gzip);
                    if !is_gzip {
                        opened.problem = Some("it isn't gzip".to_owned());
                    }
                    opened.content_type = whole.content_type;
                    opened.packing = whole.packing;
                    opened.content = whole.content;
                    opened.parts = whole.parts;
                    opened.problem = opened.problem.or(whole.problem);
                    return opened;
                }
                opened.content_type = kind(&opened.content_type, &opened.content);
                self.open_more(&mut opened, depth);
            }
        }
        opened
    }
}

impl Opener<'_> {
    /// What an archive holds, or a list of addresses includes.
    fn open_more(&mut self, opened: &mut Opened, depth: u32) {
        open_archive(opened, depth);
        let Some(fetch) = self.fetch else { return };
        if !matches!(&*opened.content_type, INCLUDE | INCLUDE_ONCE) || depth >= DEEPEST {
            return;
        }
        let text = String::from_utf8_lossy(&opened.content).into_owned();
        for (_, url) in included_in(&text) {
            self.fetched += 1;
            if self.fetched > MOST_INCLUDES {
                opened.problem = Some(format!("more than {MOST_INCLUDES} addresses are included"));
                return;
            }
            match fetch(url) {
                Ok(body) if self.takes(body.len()) => {
                    let mut included = self.whole(&body, depth + 1);
                    included.url = Some(url.to_owned());
                    opened.parts.push(included);
                }
                Ok(_) => opened.problem = Some("it includes more than 64 MiB".to_owned()),
                Err(why) => opened.problem = Some(format!("{url} can't be fetched: {why}")),
            }
        }
    }
}

/// The parts of an archive.
fn open_archive(opened: &mut Opened, depth: u32) {
    if opened.content_type != ARCHIVE || depth >= DEEPEST {
        return;
    }
    let archive = crate::parts::Part {
        content_type: ARCHIVE.to_owned(),
        filename: String::new(),
        headers: Vec::new(),
        content: opened.content.clone(),
    };
    match take_apart(&[], Some(archive), None) {
        Ok(parts) => {
            opened.parts = parts
                .into_iter()
                .map(|Taken { part, .. }| Opened {
                    content_type: part.content_type,
                    filename: Some(part.filename).filter(|name| !name.is_empty()),
                    headers: part.headers,
                    packed_size: part.content.len(),
                    content: part.content,
                    ..Opened::default()
                })
                .collect();
            if opened.parts.is_empty() {
                opened.problem = Some("it is no list of parts".to_owned());
            }
        }
        Err(error) => opened.problem = Some(error.to_string()),
    }
}

/// What cloud-init takes a part for: some types are looked into.
fn kind(declared: &str, content: &[u8]) -> String {
    let is_unsure = matches!(declared, NOT_MULTIPART | "text/plain" | SHELL_SCRIPT);
    let found = if is_unsure {
        detect_bytes(content)
    } else {
        None
    };
    match (found, declared) {
        (Some(kind), _) => kind,
        (None, NOT_MULTIPART) if std::str::from_utf8(content).is_ok() => "text/plain",
        (None, NOT_MULTIPART) => "application/octet-stream",
        (None, declared) => declared,
    }
    .to_owned()
}

/// What base64 stands for, if it is something that user data is: a word may look like base64 too.
fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let kept: Vec<u8> = bytes
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let decoded = BASE64.decode(kept).ok()?;
    let is_known = decoded.starts_with(&[0x1f, 0x8b])
        || is_message(&decoded)
        || detect_bytes(&decoded).is_some();
    is_known.then_some(decoded)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    const CONFIG: &[u8] = b"#cloud-config\na: 1\n";

    #[test]
    fn what_is_packed_is_unpacked() {
        let base64 = |bytes: &[u8]| BASE64.encode(bytes).into_bytes();
        for (bytes, packing) in [
            (CONFIG.to_vec(), &[][..]),
            (gzip(CONFIG), &[Packing::Gzip]),
            (base64(CONFIG), &[Packing::Base64]),
            (base64(&gzip(CONFIG)), &[Packing::Base64, Packing::Gzip]),
            (gzip(&base64(CONFIG)), &[Packing::Gzip, Packing::Base64]),
        ] {
            let opened = open(&bytes);
            assert_eq!(opened.packing, packing);
            assert_eq!(opened.content, CONFIG);
            assert_eq!(opened.content_type, "text/cloud-config");
            assert_eq!(opened.packed_size, bytes.len());
            assert_eq!(opened.problem, None);
        }
    }

    #[test]
    fn parts_in_parts_are_found() {
        let inner = format!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\
             Content-Type: multipart/alternative; boundary=y\n\n--y\n\
             Content-Type: text/cloud-config-archive\n\n- '#!/bin/sh'\n- content: 'a: 1'\n  \
             filename: b\n--y--\n--x\n\
             Content-Type: application/gzip\nContent-Transfer-Encoding: base64\nMerge-Type: list()\n\n\
             {}\n--x--\n",
            BASE64.encode(gzip(CONFIG))
        );
        let opened = open(inner.as_bytes());
        let leaves = opened.leaves();
        let found: Vec<(&str, Option<&str>, usize)> = leaves
            .iter()
            .map(|leaf| {
                let name = leaf.filename.as_deref();
                (&*leaf.content_type, name, leaf.content.len())
            })
            .collect();
        assert_eq!(
            found,
            [
                ("text/x-shellscript", None, 9),
                ("text/cloud-config", Some("b"), 4),
                ("text/cloud-config", None, CONFIG.len()),
            ]
        );
        assert_eq!(opened.parts[1].packing, [Packing::Gzip]);
        assert_eq!(opened.parts[0].content_type, "multipart/alternative");
    }

    #[test]
    fn what_is_damaged_is_told() {
        let mut damaged = gzip(&[CONFIG, &[b'#'; 500]].concat());
        damaged.truncate(20);
        assert_eq!(open(&damaged).problem.unwrap(), "it is damaged gzip");
        assert_eq!(open(&damaged).content_type, "application/octet-stream");
        assert_eq!(open(b"root").content_type, "text/plain");
        assert_eq!(open(b"").content_type, "text/plain");
        let archive = open(b"#cloud-config-archive\na: 1\n");
        assert_eq!(archive.problem.unwrap(), "it is no list of parts");
    }

    #[test]
    fn what_is_included_is_fetched_when_asked() {
        let text = b"#include\n# a comment\nhttp://a\nhttp://gone\n";
        assert_eq!(open(text).parts, []);
        let fetch = |url: &str| match url {
            "http://a" => Ok(b"#include-once http://b".to_vec()),
            "http://b" => Ok(gzip(CONFIG)),
            _ => Err("there is nothing".to_owned()),
        };
        let opened = open_fetching(text, Some(&fetch));
        assert_eq!(
            opened.problem.as_deref(),
            Some("http://gone can't be fetched: there is nothing")
        );
        let [inner] = &opened.parts[..] else {
            panic!("{opened:?}");
        };
        assert_eq!(inner.url.as_deref(), Some("http://a"));
        let leaves = opened.leaves();
        assert_eq!(leaves.len(), 1);
        assert_eq!(leaves[0].url.as_deref(), Some("http://b"));
        assert_eq!(leaves[0].content, CONFIG);
        // Which ends somewhere.
        let itself = |url: &str| Ok(format!("#include\n{url}\n{url}\n").into_bytes());
        let endless = open_fetching(b"#include x", Some(&itself));
        assert!(endless.leaves().len() <= MOST_INCLUDES);
    }
}
