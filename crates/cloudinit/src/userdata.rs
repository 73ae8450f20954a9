//! Whole user data: what a machine gets, taken apart and merged.
//!
//! In: bytes, and what is known of the machine. Out: its parts and the cloud-config that comes of
//! them, or why all of it is lost. May not: fetch anything that it isn't given a way to.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::rc::Rc;
use std::sync::Arc;

use crate::detect::{
    ARCHIVE, CLOUD_CONFIG, INCLUDE, INCLUDE_ONCE, JINJA, JSON_PATCH, SHELL_SCRIPT, detect,
    detect_bytes,
};
use crate::error::{Class, Error};
use crate::mime::Message;
use crate::parts::{Buffer, Part};
use crate::value::{Data, Value};
use crate::yaml;

/// The most that anything may unpack to.
const LARGEST: u64 = 64 << 20;
/// How deep what is included may include more.
const DEEPEST: u32 = 10;
/// How many addresses may be included together.
pub(crate) const MOST_INCLUDES: usize = 1000;
/// The type of what is no message.
pub(crate) const NOT_MULTIPART: &str = "text/x-not-multipart";
/// Types of packed parts.
const PACKED: [&str; 8] = [
    "application/gzip",
    "application/gzip-compressed",
    "application/gzipped",
    "application/x-compress",
    "application/x-compressed",
    "application/x-gunzip",
    "application/x-gzip",
    "application/x-gzip-compressed",
];

/// Renders a template; `None`: it can't be rendered.
pub type Render<'m> = dyn Fn(&str) -> Option<String> + 'm;
/// Fetches what an address stands for.
pub type Fetch<'m> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'm;

/// What is known of the machine.
#[derive(Default)]
pub struct Machine<'m> {
    /// Its number among those launched together: parts for others are left out.
    pub launch_index: Option<i64>,
    /// Renders a Jinja template, its first line taken away.
    pub render: Option<&'m Render<'m>>,
    /// Fetches what is included.
    pub fetch: Option<&'m Fetch<'m>>,
}

/// What became of user data.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The parts, in order.
    pub parts: Vec<Part>,
    /// The cloud-config; `None`: no part is one.
    pub merged: Option<Value>,
    /// The parts that were left out, by their number among those that are merged, from 1.
    pub failed: Vec<(u32, Error)>,
}

/// Takes user data apart and merges it, as the machine will.
pub fn process(raw: &[u8], machine: &Machine<'_>) -> Result<Outcome, Error> {
    let parts = explode(raw, machine)?;
    let mut outcome = Outcome::default();
    let mut buffer = Buffer::new();
    let mut number = 0;
    for (layer, part) in parts.iter().enumerate() {
        let Some(part) = on_the_machine(part, machine) else {
            continue;
        };
        if !part.is_merged() {
            continue;
        }
        number += 1;
        if let Err(error) = buffer.add(&part, layer as u32) {
            outcome.failed.push((number, error));
        }
    }
    outcome.merged = buffer.value().cloned();
    outcome.parts = parts;
    Ok(outcome)
}

/// What a part is once it was rendered; `None`: nothing that is known.
fn on_the_machine(part: &Part, machine: &Machine<'_>) -> Option<Part> {
    if part.content_type != JINJA {
        return Some(part.clone());
    }
    let text = std::str::from_utf8(&part.content).ok()?;
    let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    let rendered = machine.render?(rest)?;
    // A patch goes to the handler of cloud-configs, as one of these.
    let content_type = match detect(&rendered)? {
        CLOUD_CONFIG | JSON_PATCH => CLOUD_CONFIG,
        other => other,
    };
    Some(Part {
        content_type: content_type.to_owned(),
        content: rendered.into_bytes(),
        ..part.clone()
    })
}

/// Takes user data apart. What is included is fetched where there is a way to; else it stays a part.
pub fn explode(raw: &[u8], machine: &Machine<'_>) -> Result<Vec<Part>, Error> {
    let mut exploder = Exploder::new(machine);
    exploder.blob(raw)?;
    let mut parts = exploder.parts;
    for (index, numbered) in parts.iter_mut().enumerate() {
        if numbered.part.filename.is_empty() {
            numbered.part.filename = format!("part-{:03}", index + 1);
        }
    }
    let wanted = machine.launch_index;
    parts.retain(|part| match (wanted, part.launch_index) {
        (Some(wanted), Some(index)) => wanted == index,
        _ => true,
    });
    Ok(parts.into_iter().map(|numbered| numbered.part).collect())
}

/// A part of what is sent.
pub(crate) struct Taken {
    pub(crate) part: Part,
    /// What was fetched that it is in; `None`: it is in what was taken apart.
    pub(crate) included: Option<Rc<Included>>,
}

/// What an address that is included stands for.
pub(crate) struct Included {
    pub(crate) url: String,
    pub(crate) body: Vec<u8>,
}

/// Takes user data apart for whoever sends it: nothing is left out, what has no name gets none, and
/// without a way to fetch it what is included stays a part. With a part's `headers` it is that part;
/// without any it is found out what it is.
pub(crate) fn take_apart(
    raw: &[u8],
    part: Option<Part>,
    fetch: Option<&Fetch<'_>>,
) -> Result<Vec<Taken>, Error> {
    let machine = Machine {
        fetch,
        ..Machine::default()
    };
    let mut exploder = Exploder::new(&machine);
    match part {
        None => exploder.blob(raw)?,
        Some(part) if is_packed(&part.content_type) => exploder.packed(part)?,
        Some(part) => exploder.part(part)?,
    }
    let taken = exploder.parts.into_iter().map(|numbered| Taken {
        part: numbered.part,
        included: numbered.included,
    });
    Ok(taken.collect())
}

/// What is included by user data, directly or by what that includes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gathered {
    /// What each address stands for.
    pub bodies: Bodies,
    /// Addresses of which nothing is known, in order.
    pub missing: Vec<String>,
}

/// What addresses stand for.
pub type Bodies = BTreeMap<String, Arc<[u8]>>;

/// Asks `fetch` once for each address that user data includes, and for those that these include.
/// With a content type it is of that type; without one it is found out what it is.
pub fn gather(
    raw: &[u8],
    content_type: Option<&str>,
    fetch: &mut dyn FnMut(&str) -> Option<Arc<[u8]>>,
) -> Gathered {
    let mut gathered = Gathered::default();
    let mut next = addresses(raw, content_type);
    let mut bytes = 0;
    for _ in 0..DEEPEST {
        for url in std::mem::take(&mut next) {
            let is_known = gathered.bodies.contains_key(&url) || gathered.missing.contains(&url);
            // What is beyond the limits is told when it is taken apart.
            if is_known || gathered.bodies.len() >= MOST_INCLUDES || bytes > LARGEST {
                continue;
            }
            match fetch(&url) {
                Some(body) => {
                    bytes += body.len() as u64;
                    next.extend(addresses(&body, None));
                    gathered.bodies.insert(url, body);
                }
                None => gathered.missing.push(url),
            }
        }
    }
    gathered
}

/// The addresses that user data includes itself. With a content type it is of that type; without one
/// it is found out what it is.
pub fn addresses(raw: &[u8], content_type: Option<&str>) -> Vec<String> {
    let whole = content_type
        .map(str::to_lowercase)
        .filter(|kind| !kind.starts_with("multipart/"))
        .map(|content_type| Part {
            content_type,
            filename: String::new(),
            headers: Vec::new(),
            content: raw.to_vec(),
        });
    let parts = take_apart(raw, whole, None).unwrap_or_default();
    let includes = |taken: &&Taken| matches!(&*taken.part.content_type, INCLUDE | INCLUDE_ONCE);
    let texts = parts.iter().filter(includes);
    let texts = texts.filter_map(|taken| taken.part.text().ok());
    texts
        .flat_map(|text| included_in(text).map(|(_, url)| url.to_owned()))
        .collect()
}

/// The addresses of a list of them, each with its line.
pub(crate) fn included_in(text: &str) -> impl Iterator<Item = (u32, &str)> {
    fn without<'t>(line: &'t str, marker: &str) -> Option<&'t str> {
        let (start, rest) = line.split_at_checked(marker.len())?;
        start.eq_ignore_ascii_case(marker).then_some(rest)
    }
    text.lines().enumerate().filter_map(|(number, line)| {
        let url = without(line, "#include-once").or_else(|| without(line, "#include"));
        let url = url.unwrap_or(line).trim();
        let is_url = !url.is_empty() && !url.starts_with('#');
        is_url.then_some((number as u32 + 1, url))
    })
}

/// Whether bytes are taken for a MIME message.
pub(crate) fn is_message(bytes: &[u8]) -> bool {
    let start = bytes[..bytes.len().min(4096)].to_ascii_lowercase();
    let phrase = b"mime-version:";
    start.windows(phrase.len()).any(|window| window == phrase)
}

/// Whether a part of that type is unpacked first.
pub(crate) fn is_packed(content_type: &str) -> bool {
    PACKED.contains(&content_type)
}

struct Numbered {
    part: Part,
    launch_index: Option<i64>,
    included: Option<Rc<Included>>,
}

struct Exploder<'m> {
    machine: &'m Machine<'m>,
    parts: Vec<Numbered>,
    depth: u32,
    /// What was fetched that is being taken apart.
    within: Option<Rc<Included>>,
    /// How many addresses were included, and how many bytes these had.
    includes: usize,
    bytes: u64,
}

impl<'m> Exploder<'m> {
    fn new(machine: &'m Machine<'m>) -> Self {
        Self {
            machine,
            parts: Vec::new(),
            depth: 0,
            within: None,
            includes: 0,
            bytes: 0,
        }
    }

    fn blob(&mut self, raw: &[u8]) -> Result<(), Error> {
        let unpacked = unpack(raw);
        let bytes = unpacked.as_deref().unwrap_or(raw);
        if is_message(bytes) {
            let text = std::str::from_utf8(bytes).map_err(|error| {
                let at = error.valid_up_to();
                let message = format!("it is a MIME message and isn't UTF-8 (byte {at})");
                Error::new(Class::Decode, message)
            })?;
            let message = Message::parse(text);
            for message in message.walk() {
                let content_type = message.content_type();
                if !content_type.starts_with("multipart/") {
                    self.message(message, content_type)?;
                }
            }
            return Ok(());
        }
        let part = Part {
            content_type: NOT_MULTIPART.to_owned(),
            filename: String::new(),
            headers: Vec::new(),
            content: bytes.to_vec(),
        };
        self.part(part)
    }

    fn message(&mut self, message: &Message, content_type: String) -> Result<(), Error> {
        let part = Part {
            content_type,
            filename: message.filename().unwrap_or_default(),
            headers: message.headers.clone(),
            content: message.payload(),
        };
        if is_packed(&part.content_type) {
            return self.packed(part);
        }
        self.part(part)
    }

    fn packed(&mut self, mut part: Part) -> Result<(), Error> {
        part.content = unpack(&part.content).ok_or_else(|| {
            let message = format!("a part of type {} isn't gzip", part.content_type);
            Error::new(Class::Runtime, message)
        })?;
        // Of the headers only these are kept.
        part.headers
            .retain(|(name, _)| name.eq_ignore_ascii_case("launch-index"));
        "text/plain".clone_into(&mut part.content_type);
        self.part(part)
    }

    fn part(&mut self, mut part: Part) -> Result<(), Error> {
        let unsure = ["text/plain", NOT_MULTIPART, SHELL_SCRIPT];
        if unsure.contains(&&*part.content_type)
            && let Some(kind) = detect(&String::from_utf8_lossy(&part.content))
        {
            kind.clone_into(&mut part.content_type);
        }
        match &*part.content_type {
            ARCHIVE => self.archive(&part),
            INCLUDE | INCLUDE_ONCE if self.machine.fetch.is_some() => self.include(&part),
            _ => {
                self.attach(part);
                Ok(())
            }
        }
    }

    fn attach(&mut self, part: Part) {
        let header = part
            .headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("launch-index"));
        let launch_index = match header {
            // All parts are wanted.
            _ if self.machine.launch_index.is_none() => None,
            Some((_, value)) => value.trim().parse().ok(),
            None if part.content_type == CLOUD_CONFIG => index_in(&part),
            None => None,
        };
        self.parts.push(Numbered {
            part,
            launch_index,
            included: self.within.clone(),
        });
    }

    /// A list of parts.
    fn archive(&mut self, part: &Part) -> Result<(), Error> {
        let loaded = part.text().ok().and_then(|text| yaml::load(text, 0).ok());
        let entries = match loaded.map(|value| value.data) {
            Some(Data::List(items)) => items.to_vec(),
            Some(Data::Set(set)) => set.iter().map(|(key, _)| key.clone()).collect(),
            _ => Vec::new(),
        };
        for entry in entries {
            if let Some(part) = entry_part(&entry)? {
                self.attach(part);
            }
        }
        Ok(())
    }

    fn include(&mut self, part: &Part) -> Result<(), Error> {
        let Some(fetch) = self.machine.fetch else {
            return Ok(());
        };
        let failed = |message: String| Err(Error::new(Class::Runtime, message));
        if self.depth == DEEPEST {
            return failed(format!(
                "what is included includes more, over {DEEPEST} times"
            ));
        }
        for (line, url) in included_in(part.text()?) {
            self.includes += 1;
            if self.includes > MOST_INCLUDES {
                return failed(format!("more than {MOST_INCLUDES} addresses are included"));
            }
            let body = fetch(url).map_err(|why| {
                let message = format!("{url} can't be fetched: {why}");
                let error = Error::new(Class::Runtime, message);
                // Lines of what was fetched are nobody's.
                if self.depth == 0 {
                    error.at(line)
                } else {
                    error
                }
            })?;
            self.bytes += body.len() as u64;
            if self.bytes > LARGEST {
                return failed(format!("what is included has more than {LARGEST} bytes"));
            }
            let included = Rc::new(Included {
                url: url.to_owned(),
                body,
            });
            let outer = self.within.replace(Rc::clone(&included));
            self.depth += 1;
            self.blob(&included.body)?;
            self.depth -= 1;
            self.within = outer;
        }
        Ok(())
    }
}

/// One part of an archive; `None`: the entry is passed over.
fn entry_part(entry: &Value) -> Result<Option<Part>, Error> {
    let wrong = |class, message: &str| Err(Error::new(class, message).at(entry.origin.line));
    let map = match &entry.data {
        Data::Text(_) => None,
        Data::Map(map) => Some(map),
        _ => return Ok(None),
    };
    let member = |name: &str| map.and_then(|map| map.named(name));
    let content = match map {
        None => entry.clone(),
        Some(_) => member("content")
            .cloned()
            .unwrap_or_else(|| Value::from("")),
    };
    let (bytes, is_binary) = match &content.data {
        Data::Text(text) => (text.to_string().into_bytes(), false),
        Data::Bytes(bytes) => (bytes.to_vec(), true),
        _ => {
            return wrong(
                Class::Attribute,
                "`content` of an archive's part is a string",
            );
        }
    };
    let content_type = match member("type").map(|value| &value.data) {
        Some(Data::Text(text)) if text.as_str() != Some("") => text.to_string(),
        Some(Data::Text(_) | Data::Null) | None => {
            let otherwise = if is_binary {
                "application/octet-stream"
            } else {
                CLOUD_CONFIG
            };
            detect_bytes(&bytes).unwrap_or(otherwise).to_owned()
        }
        Some(_) => return wrong(Class::Attribute, "`type` of an archive's part is a string"),
    };
    if !content_type.contains('/') {
        return wrong(
            Class::Value,
            "`type` of an archive's part is such as `text/cloud-config`",
        );
    }
    if is_binary && content_type.starts_with("text/") && std::str::from_utf8(&bytes).is_err() {
        return wrong(Class::Decode, "`content` of an archive's part isn't UTF-8");
    }
    let mut headers = Vec::new();
    let mut filename = String::new();
    for (key, value) in map.iter().flat_map(|map| map.iter()) {
        let Some(key) = key.as_str() else {
            return wrong(Class::Attribute, "keys of an archive's part are strings");
        };
        match &*key.to_lowercase() {
            "content" | "type" | "content-disposition" | "number-attachments" | "content-type" => {}
            "filename" => {
                if key == "filename" {
                    value.as_str().unwrap_or_default().clone_into(&mut filename);
                }
            }
            "launch-index" => {
                if key == "launch-index" {
                    headers.push(("Launch-Index".to_owned(), shown(value)));
                }
            }
            _ => match value.as_str() {
                Some(value) => headers.push((key.to_owned(), value.to_owned())),
                None => return wrong(Class::Type, "headers of an archive's part are strings"),
            },
        }
    }
    Ok(Some(Part {
        content_type: content_type.to_lowercase(),
        filename,
        headers,
        content: bytes,
    }))
}

/// Python's `str(value)`, as far as a number may come of it.
fn shown(value: &Value) -> String {
    match &value.data {
        Data::Int(value) => value.to_string(),
        Data::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Data::Text(text) => text.to_string(),
        _ => String::new(),
    }
}

/// The key `launch-index` of a cloud-config.
fn index_in(part: &Part) -> Option<i64> {
    let value = yaml::load(part.text().ok()?, 0).ok()?;
    let index = value.as_map()?.named("launch-index")?;
    match &index.data {
        Data::Int(index) => i64::try_from(index).ok(),
        Data::Bool(index) => Some(i64::from(*index)),
        Data::Float(index) => Some(*index as i64),
        Data::Text(text) => text.as_str()?.trim().parse().ok(),
        _ => None,
    }
}

/// Unpacks gzip; `None`: it isn't gzip, or is damaged, or far too large.
pub(crate) fn unpack(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return None;
    }
    let mut unpacked = Vec::new();
    let mut reader = flate2::bufread::MultiGzDecoder::new(bytes).take(LARGEST + 1);
    reader.read_to_end(&mut unpacked).ok()?;
    (unpacked.len() as u64 <= LARGEST).then_some(unpacked)
}
