//! A layer, taken apart.
//!
//! In: a layer. Out: its pieces, what they hold read where it is cloud-config, and what is wrong with
//! each by itself. May not: merge.

use super::joiner::Joiner;
use super::{Layer, LayerFinding, LayerPart, Place, Severity, Source, place};
use crate::detect::{
    ARCHIVE, CLOUD_CONFIG, INCLUDE, INCLUDE_ONCE, JINJA, JSON_PATCH, SHELL_SCRIPT, detect_bytes,
};
use crate::error::{Class, Error};
use crate::merge::{Described, Settings};
use crate::parts::{self, Buffer, Config, Part};
use crate::userdata::{Fetch, Included, Taken, is_message, take_apart, unpack};
use crate::value::{Data, Origin};
use crate::yaml;

/// Types that cloud-init has a handler for, beside those that it takes apart.
const HANDLED: [&str; 9] = [
    CLOUD_CONFIG,
    JSON_PATCH,
    JINJA,
    SHELL_SCRIPT,
    PART_HANDLER,
    "text/cloud-boothook",
    "text/x-shellscript-per-boot",
    "text/x-shellscript-per-instance",
    "text/x-shellscript-per-once",
];
const PART_HANDLER: &str = "text/part-handler";

/// A part on its way through the layers.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) part: Part,
    /// The number of its source.
    pub(super) source: usize,
    pub(super) content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    /// No cloud-config.
    Other,
    /// A cloud-config as it was written.
    Config(Box<Config>),
    /// A patch to one.
    Patch(String),
    /// A cloud-config, or a patch, that can't be read: said already.
    Unreadable,
    /// What was merged, and of which sources.
    Merged(Box<Buffer>, Vec<usize>),
}

impl Piece {
    /// Whether it is merged on the machine: a cloud-config, or a patch to one.
    pub(super) fn is_config(&self) -> bool {
        !matches!(self.content, Content::Other)
    }

    /// Whether cloud-config may come of it on the machine that isn't known here, or not on every
    /// machine.
    pub(super) fn is_open(&self) -> bool {
        let indexed = |name: &str| name.eq_ignore_ascii_case("launch-index");
        matches!(&*self.part.content_type, JINJA | INCLUDE | INCLUDE_ONCE)
            || self.part.headers.iter().any(|(name, _)| indexed(name))
            || matches!(&self.content, Content::Config(config)
                if config.value.as_map().is_some_and(|map| map.named("launch-index").is_some()))
    }
}

impl Joiner<'_> {
    /// Takes a layer apart.
    pub(super) fn pieces(&mut self, number: usize, layer: &Layer) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (index, part) in layer.parts.iter().enumerate() {
            if part.content.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            self.part(number, index, part, &mut pieces);
        }
        let has_handler = pieces
            .iter()
            .any(|piece| piece.part.content_type == PART_HANDLER);
        if !has_handler {
            for piece in &pieces {
                self.check_type(piece);
            }
        }
        pieces
    }

    fn part(&mut self, layer: usize, index: usize, part: &LayerPart, pieces: &mut Vec<Piece>) {
        let whole = Place {
            layer,
            part: index,
            ..Place::default()
        };
        let mut headers = part.headers.clone();
        if let Some(merge) = &part.merge {
            headers.insert(0, ("Merge-Type".to_owned(), merge.clone()));
        }
        let declared = part.content_type.as_ref().map(|kind| kind.to_lowercase());
        // A message is one whatever it is said to be; other types are believed.
        let is_whole = declared
            .as_ref()
            .is_none_or(|kind| kind.starts_with("multipart/"));
        let named = (!is_whole).then(|| Part {
            content_type: declared.clone().unwrap_or_default(),
            filename: part.filename.clone().unwrap_or_default(),
            headers: headers.clone(),
            content: part.content.clone(),
        });
        let unpacked = unpack(&part.content);
        let text = unpacked.as_deref().unwrap_or(&part.content);
        if is_whole && is_message(text) {
            self.check_message(&whole, text);
        }
        let included = self.layers[layer].included.as_deref();
        let fetch = included.map(|bodies| {
            move |url: &str| {
                let body = bodies.get(url).map(|body| body.to_vec());
                body.ok_or_else(|| "nothing was fetched from there".to_owned())
            }
        });
        let fetch = fetch.as_ref().map(|fetch| fetch as &Fetch<'_>);
        let mut found = match take_apart(&part.content, named, fetch) {
            Ok(found) => found,
            Err(mut error) => {
                if is_message(text) {
                    // Lines of a part of it.
                    error.line = None;
                }
                let summary = format!("cloud-init would lose all of it: {error}");
                return self.error(Some(at(whole, &error)), summary, None);
            }
        };
        if found.is_empty() {
            let summary = "nothing is in it";
            return self.warning(Some(whole), summary, None);
        }
        let is_fetched = found.iter().any(|taken| taken.included.is_some());
        let holds_parts = found.len() > 1 || is_fetched || found[0].part.content != *text;
        if is_whole && !holds_parts {
            found[0].part.headers.clone_from(&headers);
            found[0].part.filename = part.filename.clone().unwrap_or_default();
        } else if is_whole && !headers.is_empty() {
            let hint = "Say it of the parts in it";
            self.error(
                Some(whole.clone()),
                "headers of what holds parts don't reach them",
                Some(hint),
            );
        }
        for (number, Taken { part, included }) in found.into_iter().enumerate() {
            let (within, lines_before) = match &included {
                Some(included) => placed_within(included, &part),
                None if holds_parts => placed(text, &part, number),
                None => (None, 0),
            };
            self.sources.push(Source {
                layer,
                part: index,
                within,
                lines_before,
                is_fetched: included.is_some(),
            });
            let source = self.sources.len();
            let content = self.read(&part, source);
            pieces.push(Piece {
                part,
                source,
                content,
            });
        }
    }

    fn read(&mut self, part: &Part, source: usize) -> Content {
        let text = match (part.is_merged(), part.text()) {
            (false, _) => return Content::Other,
            (true, Ok(text)) => text,
            (true, Err(error)) => return self.unreadable(source, &error),
        };
        if part.content_type == JSON_PATCH {
            return Content::Patch(text.to_owned());
        }
        match parts::read(part, text, source as u32) {
            Ok(config) => {
                self.check_mergers(&config, source);
                Content::Config(Box::new(config))
            }
            Err(error) => self.unreadable(source, &error),
        }
    }

    fn unreadable(&mut self, source: usize, error: &Error) -> Content {
        let at = self.at(source, error.line, error.column);
        if error.class == Class::Value && error.message == "it is empty" {
            self.warning(at, "this cloud-config is empty", None);
        } else {
            let summary = format!("cloud-init would leave this part out: {error}");
            self.error(at, summary, None);
        }
        Content::Unreadable
    }

    /// The place of a line of a source.
    pub(super) fn at(
        &self,
        source: usize,
        line: Option<u32>,
        column: Option<u32>,
    ) -> Option<Place> {
        let origin = Origin {
            layer: source as u32,
            line: line.unwrap_or(0),
            column: column.unwrap_or(0),
        };
        place(&self.sources, origin)
    }

    /// What is said of merging that has no effect, or a bad one.
    fn check_mergers(&mut self, config: &Config, source: usize) {
        let line = config.described_at.map(|origin| origin.line);
        let column = config.described_at.map(|origin| origin.column);
        let at = self.at(source, line.or(Some(1)), column);
        for described in &config.described {
            self.check_options(described, at.as_ref());
        }
        let mergers = match config.mergers() {
            Ok(Some(mergers)) => mergers,
            Ok(None) => return,
            Err(error) => {
                let summary = format!("cloud-init would leave this part out: {error}");
                return self.error(at, summary, None);
            }
        };
        if !mergers.has_dict() && !self.options.as_documented {
            self.error(
                at,
                "without a merger for `dict` all of this part is lost",
                Some("Add one: `dict(recurse_list)` merges what is in the mapping"),
            );
        }
    }

    fn check_options(&mut self, described: &Described, at: Option<&Place>) {
        let name = described.name.strip_prefix("m_").unwrap_or(&described.name);
        let known: &[&str] = match name {
            "dict" => &["replace", "no_replace", "allow_delete"],
            "list" => &["append", "prepend", "replace", "no_replace"],
            "str" => &["append"],
            _ => return,
        };
        let common = [
            "recurse_dict",
            "recurse_list",
            "recurse_array",
            "recurse_str",
        ];
        let written: Vec<String> = match &described.settings {
            Settings::Names(names) => names.clone(),
            Settings::Value(value) => match &value.data {
                Data::List(items) | Data::Tuple(items) => items
                    .iter()
                    .map(|item| match &item.data {
                        Data::Text(text) => text.to_string(),
                        _ => item.type_name().to_owned(),
                    })
                    .collect(),
                _ => {
                    let kind = value.type_name();
                    let summary = format!("`settings` of the merger `{name}` are {kind}");
                    let hint = "Write them as a list, such as `settings: [append]`";
                    return self.error(at.cloned(), summary, Some(hint));
                }
            },
        };
        for option in written {
            if !known.contains(&&*option) && !common.contains(&&*option) {
                let options: Vec<String> = known
                    .iter()
                    .chain(&common)
                    .map(|known| format!("`{known}`"))
                    .collect();
                let hint = format!("It has {}", options.join(", "));
                self.error(
                    at.cloned(),
                    format!("the merger `{name}` has no option `{option}`"),
                    Some(&hint),
                );
            }
        }
    }

    /// Raw text in a message that isn't ASCII, which Python's `email` spoils.
    fn check_message(&mut self, whole: &Place, bytes: &[u8]) {
        let lines = bytes.split(|byte| *byte == b'\n');
        let Some(line) = lines.into_iter().position(|line| !line.is_ascii()) else {
            return;
        };
        let place = Place {
            line: Some(line as u32 + 1),
            ..whole.clone()
        };
        self.error(
            Some(place),
            "a message has text here that isn't ASCII, which cloud-init spoils",
            Some(
                "Encode the part as base64, or give the parts one by one: they are encoded as needed",
            ),
        );
    }

    fn check_type(&mut self, piece: &Piece) {
        let kind = &*piece.part.content_type;
        let is_include = matches!(kind, INCLUDE | INCLUDE_ONCE | ARCHIVE);
        if HANDLED.contains(&kind) || is_include {
            return;
        }
        let at = self.at(piece.source, Some(1), None);
        let is_unsure = matches!(kind, "text/x-not-multipart" | "text/plain");
        let summary = if is_unsure {
            "cloud-init can't tell what this is, and would leave it out".to_owned()
        } else {
            format!("cloud-init has no handler for {kind}, and would leave this out")
        };
        let text = std::str::from_utf8(&piece.part.content).unwrap_or_default();
        let is_mapping = yaml::load(text, 0).is_ok_and(|value| value.as_map().is_some());
        let hint = if is_unsure && is_mapping {
            "Put `#cloud-config` on its first line"
        } else {
            "Begin it with `#cloud-config`, `#!`, `#cloud-boothook` or `## template: jinja`, or say \
             its type"
        };
        self.error(at, summary, Some(hint));
    }

    pub(super) fn error(
        &mut self,
        place: Option<Place>,
        summary: impl Into<String>,
        hint: Option<&str>,
    ) {
        self.find(Severity::Error, place, summary.into(), hint);
    }

    pub(super) fn warning(
        &mut self,
        place: Option<Place>,
        summary: impl Into<String>,
        hint: Option<&str>,
    ) {
        self.find(Severity::Warning, place, summary.into(), hint);
    }

    fn find(
        &mut self,
        severity: Severity,
        place: Option<Place>,
        summary: String,
        hint: Option<&str>,
    ) {
        self.findings.push(LayerFinding {
            severity,
            place,
            path: String::new(),
            summary,
            detail: None,
            hint: hint.map(ToOwned::to_owned),
        });
    }
}

fn at(mut place: Place, error: &Error) -> Place {
    place.line = error.line;
    place.column = error.column;
    place
}

/// What is longer isn't searched for the places of its parts.
const LONGEST_SEARCHED: usize = 128 << 10;

/// Where a part stands in what holds it: on these lines, where it stands there as it is, once.
fn placed(outer: &[u8], part: &Part, number: usize) -> (Option<String>, u32) {
    let content = &part.content[..];
    let is_blank = content.iter().all(u8::is_ascii_whitespace);
    if !is_blank && outer.len() <= LONGEST_SEARCHED {
        let mut before = 0;
        let mut lines = Vec::new();
        for (number, line) in outer.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if outer[before..].starts_with(content) {
                lines.push(number as u32);
            }
            before += line.len();
        }
        if let [line] = lines[..] {
            return (None, line);
        }
    }
    let name = if part.filename.is_empty() {
        format!("part-{:03}", number + 1)
    } else {
        part.filename.clone()
    };
    (Some(name), 0)
}

/// Where a part stands in what was fetched.
fn placed_within(included: &Included, part: &Part) -> (Option<String>, u32) {
    let unpacked = unpack(&included.body);
    let body = unpacked.as_deref().unwrap_or(&included.body);
    let name = |name: &str| match name {
        "" => included.url.clone(),
        name => format!("{name} of {}", included.url),
    };
    if body == part.content {
        return (Some(name("")), 0);
    }
    match placed(body, part, 0) {
        (None, before) => (Some(name("")), before),
        (Some(_), _) => (Some(name(&part.filename)), 0),
    }
}

/// Whether a part alone says itself what it is.
pub(super) fn says_itself(content_type: &str, content: &[u8]) -> bool {
    !is_message(content) && detect_bytes(content) == Some(content_type)
}

/// Whether a cloud-config that stands alone would come out otherwise without its header `Merge-Type`.
/// What is merged into nothing needs a merger for `dict`, and no more.
pub(super) fn needs_header(part: &Part) -> bool {
    let is_merged = |part: &Part| {
        let config = part.text().and_then(|text| parts::read(part, text, 0));
        let mergers = config.and_then(|config| config.mergers());
        mergers.is_ok_and(|mergers| mergers.is_none_or(|mergers| mergers.has_dict()))
    };
    if part.content_type != CLOUD_CONFIG || part.headers.is_empty() {
        return false;
    }
    let bare = Part::cloud_config(String::new(), part.content.clone());
    is_merged(part) != is_merged(&bare)
}
