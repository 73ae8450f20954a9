//! What was last good of a group: its part of the evaluated document, its images and the bodies that
//! it fetched.
//!
//! In: the evaluated document of a configuration. Out: a text for the state, and later instances
//! rendered from it. Must not: ask a cloud, or fetch anything.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::compile::compile_alone;
use super::renderer;
use crate::address::GroupName;
use crate::clock::Timestamp;
use crate::config::load::restore;
use crate::config::model::Config;
use crate::config::node::{Entry, Node, NodeValue, Sensitivity};
use crate::config::source::{SourceId, SourceMap, Span};
use crate::diagnostic::Diagnostics;
use crate::merge::zones::Place;
use crate::plan::change::{Change, Fallback, InstanceView, LastGood};
use crate::plan::inputs::new_instance_id;
use crate::plan::rollout::rolls_back;
use crate::provider::rules::Rules;
use crate::render::erb::Erb;
use crate::render::instance::Report;
use crate::render::links::{LinkSet, Unknown};
use crate::render::userdata::Bodies;

/// The text in the state.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    /// The document with this group only.
    document: Value,
    /// The ids of its images.
    images: BTreeMap<String, String>,
    /// Its bodies by URL, in base64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    bodies: BTreeMap<String, String>,
}

/// The text of a group, to be kept once its instances are as planned. `None` if the document has no
/// such group.
pub(super) fn text_of(
    document: &Node,
    group: &GroupName,
    images: &BTreeMap<String, String>,
    bodies: &Bodies,
) -> Option<LastGood> {
    let document = with_group_only(document, group)?;
    let encoded = |(url, body): (&Arc<str>, &Arc<[u8]>)| (url.to_string(), BASE64.encode(body));
    // A URL is read where it is written.
    let text = document.to_json().to_string();
    let read = bodies.iter().filter(|(url, _)| text.contains(&***url));
    let stored = Stored {
        document: encode(&document),
        images: images.clone(),
        bodies: read.map(encoded).collect(),
    };
    Some(LastGood {
        text: serde_json::to_string(&stored).ok()?,
        is_sensitive: is_sensitive(&document),
    })
}

/// Whether any part of a node is sensitive.
fn is_sensitive(node: &Node) -> bool {
    let below = match &node.value {
        NodeValue::Array(items) => items.iter().any(is_sensitive),
        NodeValue::Object(entries) => entries.iter().any(|entry| is_sensitive(&entry.value)),
        _ => false,
    };
    below || !node.sensitivity.is_open()
}

/// The document without the other groups; copies nothing of them.
fn with_group_only(document: &Node, group: &GroupName) -> Option<Node> {
    let groups = entry(document, "groups")?;
    let only = match entry(groups, group.tenant()) {
        Some(tenant) => {
            let own = entry(tenant, group.name())?.clone();
            object(group.tenant(), object(group.name(), own))
        }
        // Groups without tenants.
        None => object(group.name(), entry(groups, group.name())?.clone()),
    };
    let mut rest: Vec<Entry> = document
        .entries()
        .iter()
        .filter(|entry| &*entry.key != "groups")
        .cloned()
        .collect();
    rest.extend(object("groups", only).entries().iter().cloned());
    Some(Node {
        span: document.span,
        value: NodeValue::Object(rest),
        sensitivity: document.sensitivity.clone(),
    })
}

fn entry<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let mut entries = node.entries().iter();
    entries
        .find(|entry| &*entry.key == key)
        .map(|entry| &entry.value)
}

/// An object with one entry.
fn object(key: &str, value: Node) -> Node {
    let span = value.span;
    Node {
        span,
        value: NodeValue::Object(vec![Entry {
            key: key.into(),
            key_span: span,
            value,
        }]),
        sensitivity: Sensitivity::Open,
    }
}

/// A node with its sensitive parts: objects and sensitive values are objects with one key.
fn encode(node: &Node) -> Value {
    let value = match &node.value {
        NodeValue::Array(items) => items.iter().map(encode).collect(),
        NodeValue::Object(entries) => {
            let entries = entries.iter();
            let pairs: Vec<Value> = entries
                .map(|entry| json!([&*entry.key, encode(&entry.value)]))
                .collect();
            json!({"object": pairs})
        }
        _ => node.to_json(),
    };
    match &node.sensitivity {
        Sensitivity::Open => value,
        Sensitivity::Whole => json!({"sensitive": true, "value": value}),
        Sensitivity::Bytes(ranges) => {
            let ranges: Vec<[usize; 2]> = ranges
                .iter()
                .map(|range| [range.start, range.end])
                .collect();
            json!({"sensitive": ranges, "value": value})
        }
    }
}

fn decode(value: &Value) -> Option<Node> {
    let span = Span::new(SourceId(0), 0, 0);
    let (value, sensitivity) = match value.get("sensitive") {
        None => (value, Sensitivity::Open),
        Some(Value::Bool(_)) => (value.get("value")?, Sensitivity::Whole),
        Some(ranges) => {
            let ranges: Vec<[usize; 2]> = serde_json::from_value(ranges.clone()).ok()?;
            let ranges: Vec<Range<usize>> =
                ranges.into_iter().map(|[start, end]| start..end).collect();
            (value.get("value")?, Sensitivity::Bytes(ranges.into()))
        }
    };
    let value = match value {
        Value::Null => NodeValue::Null,
        Value::Bool(flag) => NodeValue::Bool(*flag),
        Value::Number(number) => NodeValue::Number(number.clone()),
        Value::String(text) => NodeValue::String(text.as_str().into()),
        Value::Array(items) => {
            let items: Option<Vec<Node>> = items.iter().map(decode).collect();
            NodeValue::Array(items?)
        }
        Value::Object(object) => {
            let pairs = object.get("object")?.as_array()?;
            let entries: Option<Vec<Entry>> = pairs
                .iter()
                .map(|pair| {
                    Some(Entry {
                        key: pair.get(0)?.as_str()?.into(),
                        key_span: span,
                        value: decode(pair.get(1)?)?,
                    })
                })
                .collect();
            NodeValue::Object(entries?)
        }
    };
    Some(Node {
        span,
        value,
        sensitivity,
    })
}

/// The last good configuration of a group, and what its instances are rendered with.
pub(super) struct GoodGroup<'a> {
    pub(super) name: &'a GroupName,
    pub(super) stored: &'a [u8],
    pub(super) links: Option<&'a LinkSet>,
    pub(super) rules: Rules,
    pub(super) lineage: &'a str,
    pub(super) now: Timestamp,
}

/// Gives changes of a group that can be rolled back the instances to go back to.
///
/// A text that reads an address of a link that isn't known yet leaves a change without one;
/// `pipeline::late` tries again when it is known.
pub(super) fn add_fallbacks<'c>(
    good: &GoodGroup<'_>,
    erb: Arc<Erb>,
    changes: impl Iterator<Item = &'c mut Change>,
) {
    let &GoodGroup {
        name,
        stored,
        links,
        rules,
        lineage,
        now,
    } = good;
    let Some((config, images, bodies)) = read(stored) else {
        return;
    };
    let mut sources = SourceMap::default();
    sources.add("last good", "");
    let mut findings = Diagnostics::default();
    let none = LinkSet::new();
    let links = links.unwrap_or(&none);
    let compiled = compile_alone(&config, links, &sources, &bodies, erb, &mut findings);
    let Some(group) = compiled.groups.iter().find(|own| own.merged.name == *name) else {
        return;
    };
    let renderer =
        renderer(&config, group, &images, rules, lineage).with_links(links, Unknown::Unknown);
    for change in changes.filter(|change| rolls_back(change)) {
        let address = change.address.clone();
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let Some(model) = before.or(after) else {
            continue;
        };
        let generation = after.map_or(model.generation, |view| view.generation) + 1;
        let id = new_instance_id(&group.merged.kind, now, lineage, &address, generation);
        let id: Arc<str> = id.as_str().into();
        let slot = address.slot;
        let place = Place {
            zone: Arc::clone(&model.zone),
            seat: model.seat.clone(),
        };
        let facts = renderer.facts(slot, &id, &place);
        let mut report = Report::default();
        let Some(spec) = renderer.render(&address, &facts, &BTreeMap::new(), &mut report) else {
            continue;
        };
        let marks = renderer.marks(&address, &facts, &BTreeMap::new(), &spec);
        let deferred = renderer.deferred(&spec, slot, &facts).map(Box::new);
        let view = InstanceView {
            instance_id: id,
            provider_id: None,
            generation,
            zone: Arc::clone(&model.zone),
            seat: model.seat.clone(),
            index: facts.index,
            links: BTreeMap::new(),
            manifest_version: before.and_then(|before| before.manifest_version),
            subnet: model.subnet.clone(),
            ip4: None,
            ip6: None,
            created_at: None,
            images: images
                .iter()
                .filter_map(|(name, id)| Some((Arc::clone(name), id.clone()?)))
                .collect(),
            protected: group.merged.protect,
            marks,
            version: None,
            digest: spec.digest(),
            spec: Arc::new(spec.to_body()),
        };
        change.fallback = Some(Box::new(Fallback { view, deferred }));
    }
}

pub(super) type Images = BTreeMap<Arc<str>, Option<Arc<str>>>;

pub(super) fn read(stored: &[u8]) -> Option<(Config, Images, Bodies)> {
    let stored: Stored = serde_json::from_slice(stored).ok()?;
    let config = restore(&decode(&stored.document)?)?;
    let images = stored
        .images
        .into_iter()
        .map(|(name, id)| (Arc::from(name), Some(Arc::from(id))))
        .collect();
    let bodies = stored.bodies.into_iter();
    let bodies: Option<Bodies> = bodies
        .map(|(url, body)| Some((Arc::from(url), BASE64.decode(body).ok()?.into())))
        .collect();
    Some((config, images, bodies?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_survives_with_its_sensitive_parts() {
        let span = Span::new(SourceId(0), 0, 0);
        let node = |value, sensitivity| Node {
            span,
            value,
            sensitivity,
        };
        let text = |text: &str| NodeValue::String(text.into());
        let entry = |key: &str, value| Entry {
            key: key.into(),
            key_span: span,
            value,
        };
        let bytes = Sensitivity::Bytes(vec![1..3, 4..5].into());
        let document = node(
            NodeValue::Object(vec![
                entry("plain", node(text("a"), Sensitivity::Open)),
                entry("secret", node(text("b"), Sensitivity::Whole)),
                entry("object", node(text("abcdef"), bytes)),
                entry(
                    "list",
                    node(
                        NodeValue::Array(vec![
                            node(NodeValue::Null, Sensitivity::Open),
                            node(NodeValue::Bool(true), Sensitivity::Open),
                            node(NodeValue::Number(3.into()), Sensitivity::Whole),
                            node(NodeValue::Object(Vec::new()), Sensitivity::Whole),
                        ]),
                        Sensitivity::Open,
                    ),
                ),
            ]),
            Sensitivity::Open,
        );
        assert_eq!(decode(&encode(&document)), Some(document));
    }
}
