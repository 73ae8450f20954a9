//! The names that placeholders of a specification may have, and their values in an instance.
//!
//! In: the document, even an invalid one. Out: [`Names`]. Must not: report; the schema's reader
//! does.

use std::sync::Arc;

use indexmap::IndexMap;

use super::deal::Slot;
use crate::config::node::{Node, NodeValue};
use crate::render::placeholders::{self, GROUP_LABEL, INSTANCE_LABEL, SYSTEM};

/// All names that are known before an instance is.
pub(super) struct Names {
    /// The user's variables.
    pub(super) variables: IndexMap<Arc<str>, Arc<str>>,
    group_labels: IndexMap<Arc<str>, Arc<str>>,
    /// Keys of the instance template's labels, with their texts.
    instance_labels: IndexMap<Arc<str>, Arc<str>>,
    has_tags: bool,
}

/// What differs in one instance.
pub(super) struct Instance<'s> {
    pub(super) group_id: &'s str,
    pub(super) short_id: &'s str,
    pub(super) slot: &'s Slot,
    /// Its labels, rendered; `None` while they are.
    pub(super) labels: Option<IndexMap<Arc<str>, String>>,
}

impl Names {
    /// The names of a document.
    pub(super) fn of(root: &Node) -> Self {
        let labels = |owner: Option<&Node>| texts(owner.and_then(|owner| owner.get("labels")));
        let pair = |variable: &Node| {
            let text = |key| variable.get(key)?.as_str();
            Some((
                text("key")?.into(),
                text("value").unwrap_or_default().into(),
            ))
        };
        let zones = items(
            root.get("allocation_policy")
                .and_then(|policy| policy.get("zones")),
        );
        Self {
            variables: items(root.get("variables"))
                .iter()
                .filter_map(pair)
                .collect(),
            group_labels: labels(Some(root)),
            instance_labels: labels(root.get("instance_template")),
            has_tags: zones
                .iter()
                .any(|zone| !items(zone.get("instance_tags_pool")).is_empty()),
        }
    }

    /// Whether placeholders with this name are replaced.
    pub(super) fn is_known(&self, name: &str) -> bool {
        if let Some(label) = name.strip_prefix(GROUP_LABEL) {
            return self.group_labels.contains_key(label);
        }
        if let Some(label) = name.strip_prefix(INSTANCE_LABEL) {
            return self.instance_labels.contains_key(label);
        }
        self.variables.contains_key(name)
            || (is_system(name) && (self.has_tags || name != "instance.tag"))
    }

    /// All names, for suggestions.
    pub(super) fn all(&self) -> Vec<String> {
        let system = SYSTEM.iter().map(|(name, _)| (*name).to_owned());
        let group = self.group_labels.keys();
        let instance = self.instance_labels.keys();
        system
            .chain(self.variables.keys().map(ToString::to_string))
            .chain(group.map(|key| format!("{GROUP_LABEL}{key}")))
            .chain(instance.map(|key| format!("{INSTANCE_LABEL}{key}")))
            .filter(|name| self.is_known(name))
            .collect()
    }

    /// A text with its placeholders replaced.
    pub(super) fn render(&self, text: &str, instance: &Instance<'_>) -> String {
        placeholders::substitute(
            text,
            &[&|name| self.system(name, instance), &|name| {
                self.variables.get(name).map(ToString::to_string)
            }],
        )
    }

    /// Renders an instance's labels.
    pub(super) fn render_labels(&self, instance: &mut Instance<'_>) {
        let labels = self.instance_labels.iter();
        let labels = labels.map(|(key, text)| (Arc::clone(key), self.render(text, instance)));
        instance.labels = Some(labels.collect());
    }

    /// The value of a system variable.
    fn system(&self, name: &str, instance: &Instance<'_>) -> Option<String> {
        if let Some(label) = name.strip_prefix(GROUP_LABEL) {
            return self.group_labels.get(label).map(ToString::to_string);
        }
        if let Some(label) = name.strip_prefix(INSTANCE_LABEL) {
            return instance.labels.as_ref()?.get(label).cloned();
        }
        let Slot { index, place } = instance.slot;
        match name {
            "instance_group.id" => Some(instance.group_id.to_owned()),
            "instance.index" => Some(index.to_string()),
            "instance.index_in_zone" => Some(place.seat.number.to_string()),
            "instance.short_id" => Some(instance.short_id.to_owned()),
            "instance.tag" => Some(place.seat.tag.to_string()).filter(|tag| !tag.is_empty()),
            "instance.zone_id" => Some(place.zone.to_string()),
            _ => None,
        }
    }
}

/// Whether this is a system variable other than a label.
pub(super) fn is_system(name: &str) -> bool {
    SYSTEM.iter().any(|(system, _)| *system == name)
}

/// The items of a list; empty if there is none.
pub(super) fn items(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.value) {
        Some(NodeValue::Array(items)) => items,
        _ => &[],
    }
}

fn texts(node: Option<&Node>) -> IndexMap<Arc<str>, Arc<str>> {
    let entries = node.map(Node::entries).unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            let text = entry.value.as_str().unwrap_or_default();
            (Arc::clone(&entry.key), text.into())
        })
        .collect()
}
