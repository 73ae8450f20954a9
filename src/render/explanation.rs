//! Explains where each value of an instance's userdata comes from, and what was dropped.
//!
//! In: a [`GroupRenderer`] and an instance. Out: an [`Explanation`]. Must not: show secrets, or
//! values that depend on them.

use std::sync::Arc;

use nstance_cloudinit::layers::{Joined, JoinedPart, Place as CloudPlace, Why};
use nstance_cloudinit::value::{Data, Value};

use super::data::InstanceFacts;
use super::instance::Report;
use super::join_cache::joined;
use super::layers::{layer_name, owner};
use super::rendered_layer::RenderedLayer;
use super::renderer::GroupRenderer;
use crate::address::Address;
use crate::config::source::{SourceMap, Span};
use crate::diagnostic::HIDDEN;
use crate::diagnostic::mask::SensitivePieces;

/// The origin of an instance's userdata.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explanation {
    /// Its MIME parts.
    pub parts: Vec<ExplainedPart>,
    /// The values of its cloud-config.
    pub values: Vec<ExplainedValue>,
    /// Values that were written but aren't in the result.
    pub dropped: Vec<DroppedValue>,
    /// The number of bytes from each layer.
    pub shares: Vec<(&'static str, usize)>,
}

/// A MIME part of the result.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedPart {
    /// Its content type.
    pub content_type: String,
    /// Its file name.
    pub filename: Option<String>,
    /// Its length.
    pub bytes: usize,
    /// The layers that it was built from.
    pub layers: Vec<&'static str>,
}

/// A value of the cloud-config.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedValue {
    /// Its path of keys and indices.
    pub path: String,
    /// The value on one line.
    pub value: String,
    /// Where it was written; `None` if it was generated.
    pub written: Option<Written>,
}

/// A value that isn't in the result.
#[derive(Debug, Clone, PartialEq)]
pub struct DroppedValue {
    /// Its path of keys and indices; empty for a whole document.
    pub path: String,
    /// Where it was written.
    pub written: Written,
    /// Why it was dropped.
    pub why: String,
}

/// Where a value was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The layer of the userdata.
    pub layer: &'static str,
    /// The number of the part, from 1, if there are several.
    pub part: Option<usize>,
    /// The line of the rendered part.
    pub line: Option<u32>,
    /// The place in the configuration.
    pub place: Option<Span>,
    /// The file that the part is read from, as `file:NAME`.
    pub file: Option<Arc<str>>,
}

impl GroupRenderer<'_> {
    /// Explains the userdata of an instance. Returns `None` if there is none, or if rendering
    /// fails; the report then has the error.
    pub fn explain_userdata(
        &self,
        address: &Address,
        instance: &InstanceFacts,
        sources: &SourceMap,
        show_sensitive: bool,
        report: &mut Report,
    ) -> Option<Explanation> {
        let mut layers = self.rendered_layers(address, instance, report)?;
        if show_sensitive {
            for layer in &mut layers {
                layer.sensitive.clear();
            }
        }
        let joined = joined(&layers);
        let explainer = Explainer {
            renderer: self,
            layers: &layers,
            joined: &joined,
            sources,
            pieces: SensitivePieces::new(layers.iter().flat_map(RenderedLayer::pieces)),
        };
        Some(explainer.explain())
    }
}

struct Explainer<'a> {
    renderer: &'a GroupRenderer<'a>,
    layers: &'a [RenderedLayer],
    joined: &'a Joined,
    sources: &'a SourceMap,
    /// What must not be shown.
    pieces: SensitivePieces,
}

impl Explainer<'_> {
    fn explain(&self) -> Explanation {
        let mut values = Vec::new();
        if let Some(config) = &self.joined.config {
            self.values(config, &mut String::new(), &mut values);
        }
        let names = self.layers.iter().map(|layer| layer.name);
        Explanation {
            parts: self
                .joined
                .parts
                .iter()
                .map(|part| self.part(part))
                .collect(),
            values,
            dropped: self.dropped(),
            shares: names.zip(self.joined.shares.iter().copied()).collect(),
        }
    }

    fn part(&self, part: &JoinedPart) -> ExplainedPart {
        let layers = part.layers.iter();
        let layers = layers.filter_map(|layer| Some(self.layers.get(*layer)?.name));
        ExplainedPart {
            content_type: part.content_type.clone(),
            filename: part.filename.clone(),
            bytes: part.content.len(),
            layers: layers.collect(),
        }
    }

    /// Collects every scalar and empty container.
    fn values(&self, value: &Value, path: &mut String, found: &mut Vec<ExplainedValue>) {
        let length = path.len();
        match &value.data {
            Data::Map(map) if !map.is_empty() => {
                for (key, value) in map.iter() {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&shown(key));
                    self.values(value, path, found);
                    path.truncate(length);
                }
            }
            Data::List(items) | Data::Tuple(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{index}]"));
                    self.values(item, path, found);
                    path.truncate(length);
                }
            }
            _ => {
                let place = self.joined.place(value.origin);
                let text = shown(value);
                let is_hidden = !self.shows(place.as_ref()) || self.pieces.are_in(&text);
                found.push(ExplainedValue {
                    path: self.shown_path(path),
                    value: if is_hidden { HIDDEN.to_owned() } else { text },
                    written: place.map(|place| self.written(&place)),
                });
            }
        }
    }

    /// Whether the value at a place may be shown.
    fn shows(&self, place: Option<&CloudPlace>) -> bool {
        // Escaped secrets can't be located, so nothing is shown if there are any.
        if !self.layers.iter().any(RenderedLayer::is_sensitive) {
            return true;
        }
        if self.pieces.are_escaped() {
            return false;
        }
        let layer = place.and_then(|place| Some((self.layers.get(place.layer)?, place)));
        layer.is_some_and(|(layer, place)| layer.shows(place))
    }

    /// A path; hidden if one of its keys may be sensitive.
    fn shown_path(&self, path: &str) -> String {
        let is_name = |key: &&str| key.contains(|c: char| !c.is_ascii_digit());
        let mut keys = path.split(['.', '[', ']']).filter(is_name);
        if self.pieces.are_in(path) || keys.any(|key| self.pieces.touch(key)) {
            HIDDEN.to_owned()
        } else {
            path.to_owned()
        }
    }

    fn written(&self, place: &CloudPlace) -> Written {
        let layer = self.layers.get(place.layer);
        let part = self
            .renderer
            .group
            .userdata
            .as_ref()
            .and_then(|userdata| userdata.part(place.layer, place.part));
        let rendered = layer.and_then(|layer| layer.parts.get(place.part));
        let at = part.zip(rendered).map(|(part, rendered)| {
            match part.offset_of(&rendered.content, place) {
                Some(offset) => part.place.at(self.sources, offset),
                None => part.place.span(),
            }
        });
        Written {
            layer: layer.map_or("", |layer| layer.name),
            part: layer
                .is_some_and(|layer| layer.parts.len() > 1)
                .then_some(place.part + 1),
            // The text generated from files has no line in the configuration.
            line: place.line.filter(|_| part.is_some()),
            place: at.or_else(|| layer?.file_at(place.line)),
            file: part.and_then(|part| part.file.clone()),
        }
    }

    fn dropped(&self) -> Vec<DroppedValue> {
        let merged = &self.renderer.group.merged;
        let top = merged.userdata.joined().next();
        let by = top.map_or("", |(layer, _)| layer_name(layer));
        let replaced = merged
            .userdata
            .replaced()
            .map(|(layer, userdata)| DroppedValue {
                path: String::new(),
                written: Written {
                    layer: layer_name(layer),
                    part: None,
                    line: None,
                    place: Some(userdata.place()),
                    file: None,
                },
                why: format!("{} takes its place", owner(by)),
            });
        let lost = self.joined.dropped.iter().map(|dropped| DroppedValue {
            path: self.shown_path(&dropped.path),
            written: self.written(&dropped.place),
            why: self.why(&dropped.why),
        });
        replaced.chain(lost).collect()
    }

    fn why(&self, why: &Why) -> String {
        let told = |place: &Option<CloudPlace>| match place {
            Some(place) => {
                let name = self.layers.get(place.layer).map_or("", |layer| layer.name);
                let line = place.line.map(|line| format!(", line {line}"));
                format!("that of {}{}", owner(name), line.unwrap_or_default())
            }
            None => "another".to_owned(),
        };
        match why {
            Why::Replaced { by_layer } => {
                let name = self.layers.get(*by_layer).map_or("", |layer| layer.name);
                format!("{} takes its place", owner(name))
            }
            Why::Overridden { by } => format!("{} takes its place", told(by)),
            Why::Kept { earlier } => format!("{} stays", told(earlier)),
            Why::Cut => "the list before it is shorter, and keeps its length".to_owned(),
            Why::Repeated => "the list has it already".to_owned(),
            Why::Deleted => "a later layer deletes it".to_owned(),
            Why::Failed => "its part can't be merged".to_owned(),
        }
    }
}

/// A value on one line, as YAML.
fn shown(value: &Value) -> String {
    match &value.data {
        Data::Null => "null".to_owned(),
        Data::Bool(value) => value.to_string(),
        Data::Int(value) => value.to_string(),
        Data::Float(value) => value.to_string(),
        Data::Text(text) => text
            .as_str()
            .map_or_else(|| "(text)".to_owned(), ToOwned::to_owned),
        Data::Bytes(bytes) => format!("({} bytes)", bytes.len()),
        Data::Time(time) => time.text.clone(),
        Data::List(_) | Data::Tuple(_) => "[]".to_owned(),
        Data::Map(_) | Data::Set(_) => "{}".to_owned(),
        Data::Cycle => "(itself)".to_owned(),
    }
}
