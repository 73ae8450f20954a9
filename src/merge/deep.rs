//! The deep merge of args and vars.
//!
//! In: objects, lowest layer first. Out: a [`Merged`] tree. Must not: depend on what is merged.
//!
//! The rule is Nstance's `deepMerge`: a higher layer replaces a lower one, except that two objects
//! merge key by key. Arrays and null replace like any other value.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Number, Value};

use super::Layer;
use crate::config::node::{Node, NodeValue, Sensitivity};
use crate::config::source::Span;

/// A merged value, its layer and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The place; for an object built from several layers, the highest one's.
    pub span: Span,
    /// The layer; for an object built from several layers, the highest.
    pub layer: Layer,
    /// The value itself.
    pub value: MergedValue,
    /// Which parts of it are sensitive.
    pub sensitivity: Sensitivity,
}

/// The value of a [`Merged`].
#[derive(Debug, Clone, PartialEq)]
pub enum MergedValue {
    /// `null`; a key set to null remains.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(Arc<str>),
    /// A list; all of it is from one layer.
    Array(Vec<Merged>),
    /// An object, sorted by key.
    Object(BTreeMap<Arc<str>, Merged>),
}

impl Merged {
    fn from_node(node: &Node, layer: Layer) -> Self {
        let value = match &node.value {
            NodeValue::Null => MergedValue::Null,
            NodeValue::Bool(value) => MergedValue::Bool(*value),
            NodeValue::Number(value) => MergedValue::Number(value.clone()),
            NodeValue::String(value) => MergedValue::String(Arc::clone(value)),
            NodeValue::Array(items) => MergedValue::Array(
                items
                    .iter()
                    .map(|item| Self::from_node(item, layer))
                    .collect(),
            ),
            NodeValue::Object(entries) => MergedValue::Object(
                entries
                    .iter()
                    .map(|entry| (Arc::clone(&entry.key), Self::from_node(&entry.value, layer)))
                    .collect(),
            ),
        };
        Self {
            span: node.span,
            layer,
            value,
            sensitivity: node.sensitivity.clone(),
        }
    }

    fn absorb(&mut self, node: &Node, layer: Layer) {
        let (MergedValue::Object(entries), NodeValue::Object(incoming)) =
            (&mut self.value, &node.value)
        else {
            *self = Self::from_node(node, layer);
            return;
        };
        for entry in incoming {
            match entries.get_mut(&entry.key) {
                Some(existing) => existing.absorb(&entry.value, layer),
                None => {
                    entries.insert(Arc::clone(&entry.key), Self::from_node(&entry.value, layer));
                }
            }
        }
        self.span = node.span;
        self.layer = layer;
        if !node.sensitivity.is_open() {
            self.sensitivity = node.sensitivity.clone();
        }
    }

    /// Whether it or a part of it is sensitive.
    pub fn is_sensitive_within(&self) -> bool {
        !self.sensitivity.is_open()
            || match &self.value {
                MergedValue::Array(items) => items.iter().any(Self::is_sensitive_within),
                MergedValue::Object(entries) => entries.values().any(Self::is_sensitive_within),
                _ => false,
            }
    }

    /// The value as JSON.
    pub fn to_json(&self) -> Value {
        match &self.value {
            MergedValue::Null => Value::Null,
            MergedValue::Bool(value) => Value::Bool(*value),
            MergedValue::Number(value) => Value::Number(value.clone()),
            MergedValue::String(value) => Value::String(String::from(&**value)),
            MergedValue::Array(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            MergedValue::Object(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| (String::from(&**key), value.to_json()))
                    .collect(),
            ),
        }
    }

    /// Where the value at a path such as `a.b[0].c` is written. If the path doesn't exist, its
    /// nearest existing parent counts.
    pub fn find(&self, path: &str) -> Option<Span> {
        let mut here = self;
        let mut rest = path;
        while !rest.is_empty() {
            let next = match &here.value {
                MergedValue::Object(entries) => first_key(rest, entries.keys().map(|key| &**key))
                    .map(|(key, rest)| (&entries[key], rest)),
                MergedValue::Array(items) => {
                    first_index(rest).and_then(|(index, rest)| Some((items.get(index)?, rest)))
                }
                _ => None,
            };
            let Some((next, after)) = next else { break };
            here = next;
            rest = after;
        }
        Some(here.span)
    }

    /// The entries, if this is an object.
    pub fn entries(&self) -> Option<&BTreeMap<Arc<str>, Self>> {
        match &self.value {
            MergedValue::Object(entries) => Some(entries),
            _ => None,
        }
    }

    /// Calls `visit` with the path (`a.b[0].c`) of every value that isn't an object, and of empty
    /// objects, in sorted order.
    pub fn leaves<'a>(&'a self, path: &mut String, visit: &mut dyn FnMut(&str, &'a Self)) {
        let length = path.len();
        match &self.value {
            MergedValue::Object(entries) if !entries.is_empty() => {
                for (key, value) in entries {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                    value.leaves(path, visit);
                    path.truncate(length);
                }
            }
            MergedValue::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{index}]"));
                    item.leaves(path, visit);
                    path.truncate(length);
                }
            }
            _ => visit(path, self),
        }
    }
}

/// The key that a path begins with, and the rest of the path. Keys may contain dots: the longest
/// match wins.
pub fn first_key<'k, 'p>(
    path: &'p str,
    keys: impl Iterator<Item = &'k str>,
) -> Option<(&'k str, &'p str)> {
    keys.filter_map(|key| {
        let rest = path.strip_prefix(key)?;
        let ends = rest.is_empty() || rest.starts_with(['.', '[']);
        ends.then(|| (key, rest.strip_prefix('.').unwrap_or(rest)))
    })
    .max_by_key(|(key, _)| key.len())
}

/// The index that a path begins with, and the rest of the path.
pub fn first_index(path: &str) -> Option<(usize, &str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest.strip_prefix('.').unwrap_or(rest)))
}

/// Merges objects, lowest layer first; `None` if there are none.
pub fn merge<'a>(layers: impl IntoIterator<Item = (Layer, Option<&'a Node>)>) -> Option<Merged> {
    let layers = layers.into_iter();
    let mut layers = layers.filter_map(|(layer, node)| Some((layer, node?)));
    let (layer, first) = layers.next()?;
    let mut merged = Merged::from_node(first, layer);
    for (layer, node) in layers {
        merged.absorb(node, layer);
    }
    Some(merged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::config::node::Entry;
    use crate::config::source::SourceId;

    fn node(value: &Value) -> Node {
        let value = match value {
            Value::Null => NodeValue::Null,
            Value::Bool(value) => NodeValue::Bool(*value),
            Value::Number(value) => NodeValue::Number(value.clone()),
            Value::String(value) => NodeValue::String(value.as_str().into()),
            Value::Array(items) => NodeValue::Array(items.iter().map(node).collect()),
            Value::Object(entries) => NodeValue::Object(
                entries
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.as_str().into(),
                        key_span: Span::new(SourceId(0), 0, 0),
                        value: node(value),
                    })
                    .collect(),
            ),
        };
        Node::new(Span::new(SourceId(0), 0, 0), value)
    }

    /// Nstance's own function, transcribed literally.
    fn deep_merge(dst: &mut serde_json::Map<String, Value>, src: &serde_json::Map<String, Value>) {
        for (key, value) in src {
            if let Value::Object(incoming) = value
                && let Some(Value::Object(existing)) = dst.get_mut(key)
            {
                deep_merge(existing, incoming);
                continue;
            }
            dst.insert(key.clone(), value.clone());
        }
    }

    #[test]
    fn the_documented_example() {
        let defaults = node(
            &json!({"a": 1, "b": {"hello": "world", "always": "here"}, "c": {"goodbye": "world"}}),
        );
        let template =
            node(&json!({"a": "2", "b": {"hello": "there", "location": "world"}, "c": 3}));
        let merged = merge([
            (Layer::Defaults, Some(&defaults)),
            (Layer::Template, Some(&template)),
        ])
        .unwrap();
        assert_eq!(
            merged.to_json(),
            json!({"a": "2", "b": {"hello": "there", "always": "here", "location": "world"}, "c": 3})
        );
        let mut layers = Vec::new();
        merged.leaves(&mut String::new(), &mut |path, value| {
            layers.push((path.to_owned(), value.layer));
        });
        assert_eq!(
            layers,
            [
                ("a".to_owned(), Layer::Template),
                ("b.always".to_owned(), Layer::Defaults),
                ("b.hello".to_owned(), Layer::Template),
                ("b.location".to_owned(), Layer::Template),
                ("c".to_owned(), Layer::Template),
            ]
        );
    }

    #[test]
    fn paths_lead_to_what_they_name() {
        let mut node = node(&json!({"a": {"x.y": [{"b": 1}], "x": 2}}));
        let NodeValue::Object(top) = &mut node.value else {
            unreachable!()
        };
        let NodeValue::Object(inner) = &mut top[0].value.value else {
            unreachable!()
        };
        inner[0].value.span = Span::new(SourceId(0), 1, 2);
        inner[1].value.span = Span::new(SourceId(0), 3, 4);
        let merged = merge([(Layer::Group, Some(&node))]).unwrap();
        for (path, start) in [
            ("a.x.y", 1),
            ("a.x", 3),
            ("a.x.z", 3),
            ("a.nope", 0),
            ("", 0),
        ] {
            assert_eq!(merged.find(path).unwrap().start, start, "{path}");
        }
        assert_eq!(first_index("[12].b"), Some((12, "b")));
        assert_eq!(first_index("a"), None);
    }

    #[test]
    fn null_and_arrays_replace() {
        for (low, high, expected) in [
            (
                json!({"a": {"b": 1}}),
                json!({"a": null}),
                json!({"a": null}),
            ),
            (
                json!({"a": null}),
                json!({"a": {"b": 1}}),
                json!({"a": {"b": 1}}),
            ),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (
                json!({"a": {"b": 1}}),
                json!({"a": {}}),
                json!({"a": {"b": 1}}),
            ),
        ] {
            let (low, high) = (node(&low), node(&high));
            let merged =
                merge([(Layer::Defaults, Some(&low)), (Layer::Group, Some(&high))]).unwrap();
            assert_eq!(merged.to_json(), expected);
        }
    }

    fn any_object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            (0..5i64).prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::String),
        ];
        let value = leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        prop::collection::btree_map("[a-d]", value, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn merges_as_nstance_does(objects in prop::collection::vec(any_object(), 1..4)) {
            let nodes: Vec<Node> = objects.iter().map(node).collect();
            let merged = merge(nodes.iter().map(|node| (Layer::Group, Some(node)))).unwrap();
            let mut expected = serde_json::Map::new();
            for object in &objects {
                deep_merge(&mut expected, object.as_object().unwrap());
            }
            prop_assert_eq!(merged.to_json(), Value::Object(expected));
        }
    }
}
