//! Maps and structs: what has named parts.
//!
//! In: names and values. Out: shared, immutable collections with look-ups by name.
//! A map's keys are sorted once, when it is made: Go ranges over and prints maps in key order.

use std::fmt;
use std::sync::Arc;

use crate::dispose::dispose;
use crate::value::{List, Text, Value};

/// So many entries are looked through one by one.
const FEW: usize = 8;

/// A map with string keys, in key order.
#[derive(Clone)]
pub struct Map(Arc<Entries>);

#[derive(Clone)]
#[expect(clippy::struct_field_names, reason = "a map has entries")]
struct Entries {
    entries: Vec<(Text, Value)>,
    kind: MapKind,
    has_dicts: bool,
}

impl Entries {
    fn new(entries: Vec<(Text, Value)>, kind: MapKind) -> Self {
        let has_dicts = entries.iter().any(|(_, value)| value.has_dicts());
        Self {
            entries,
            kind,
            has_dicts,
        }
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        for (_, value) in &mut self.entries {
            if value.is_composite() {
                dispose(std::mem::take(value));
            }
        }
    }
}

impl Default for Map {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// What a key that isn't there gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapKind {
    /// `map[string]any`: nil, under `missingkey=zero`.
    Any,
    /// `map[string]string`: the empty string, under `missingkey=zero`.
    String,
    /// Ours: unset, always.
    Lenient,
}

impl Map {
    /// A `map[string]any`. Of two equal keys the last one wins.
    pub fn new(entries: Vec<(Text, Value)>) -> Self {
        Self::of_kind(entries, MapKind::Any)
    }

    fn of_kind(mut entries: Vec<(Text, Value)>, kind: MapKind) -> Self {
        // The sort is stable, so of equal keys the last given stands last: keep that one.
        entries.sort_by(|left, right| left.0.cmp(&right.0));
        entries.reverse();
        entries.dedup_by(|later, kept| later.0 == kept.0);
        entries.reverse();
        Self(Arc::new(Entries::new(entries, kind)))
    }

    /// The same entries as a `map[string]string`: a missing key is the empty string under
    /// `missingkey=zero`, and a field of a value is an error.
    #[must_use]
    pub fn string_typed(self) -> Self {
        self.with_kind(MapKind::String)
    }

    /// The same entries, where a key that isn't there is [`Value::Unset`] instead of missing, in
    /// nested maps too.
    #[must_use]
    pub fn lenient(self) -> Self {
        let entries = self
            .0
            .entries
            .iter()
            .map(|(key, value)| (key.clone(), lenient(value)));
        Self(Arc::new(Entries::new(entries.collect(), MapKind::Lenient)))
    }

    fn with_kind(mut self, kind: MapKind) -> Self {
        if self.0.kind != kind {
            Arc::make_mut(&mut self.0).kind = kind;
        }
        self
    }

    /// The same entries as a `map[string]any`.
    pub(crate) fn of_any(self) -> Self {
        self.with_kind(MapKind::Any)
    }

    /// Sets a key's value; gives the one that was there.
    pub(crate) fn insert(&mut self, key: Text, value: Value) -> Option<Value> {
        let entries = Arc::make_mut(&mut self.0);
        entries.has_dicts |= value.has_dicts();
        match entries.entries.binary_search_by(|entry| entry.0.cmp(&key)) {
            Ok(found) => Some(std::mem::replace(&mut entries.entries[found].1, value)),
            Err(place) => {
                entries.entries.insert(place, (key, value));
                None
            }
        }
    }

    /// Takes a key away.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Value> {
        let entries = Arc::make_mut(&mut self.0);
        let found = entries
            .entries
            .binary_search_by(|entry| entry.0.as_bytes().cmp(key))
            .ok()?;
        Some(entries.entries.remove(found).1)
    }

    /// Whether a dict is somewhere within.
    pub(crate) fn has_dicts(&self) -> bool {
        self.0.has_dicts
    }

    pub(crate) fn kind(&self) -> MapKind {
        self.0.kind
    }

    /// Whether it is a `map[string]string`.
    pub fn is_string_typed(&self) -> bool {
        self.0.kind == MapKind::String
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<&Value> {
        let key = key.as_ref();
        let entries = &self.0.entries;
        if entries.len() <= FEW {
            // Most keys differ in length already.
            let found = entries.iter().find(|entry| entry.0.as_bytes() == key)?;
            return Some(&found.1);
        }
        let found = entries
            .binary_search_by(|entry| entry.0.as_bytes().cmp(key))
            .ok()?;
        Some(&entries[found].1)
    }

    /// The entries, in key order.
    pub fn entries(&self) -> &[(Text, Value)] {
        &self.0.entries
    }
}

fn lenient(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::Map(map.clone().lenient()),
        Value::List(list) if !list.is_of_strings() => {
            Value::List(List::new(list.items().iter().map(lenient).collect()))
        }
        other => other.clone(),
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_map()
            .entries(self.0.entries.iter().map(|(key, value)| (key, value)))
            .finish()
    }
}

impl<K: Into<Text>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self::new(
            entries
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}

/// A struct's name and the names of its fields, shared by all values of the type.
#[derive(Debug, PartialEq, Eq)]
pub struct StructType {
    name: String,
    fields: Vec<Arc<str>>,
}

impl StructType {
    /// A type named `name` (an empty name makes it anonymous) with these fields, in this order.
    pub fn new<N: AsRef<str>>(name: &str, fields: impl IntoIterator<Item = N>) -> Arc<Self> {
        let fields = fields
            .into_iter()
            .map(|field| Arc::from(field.as_ref()))
            .collect();
        Arc::new(Self {
            name: name.to_owned(),
            fields,
        })
    }

    /// The type's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields' names.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &str> {
        self.fields.iter().map(AsRef::as_ref)
    }
}

/// A value of a [`StructType`].
#[derive(Clone)]
pub struct Struct(Arc<Fields>);

#[derive(Clone)]
struct Fields {
    struct_type: Arc<StructType>,
    values: Vec<Value>,
    text: Option<Text>,
}

impl Drop for Fields {
    fn drop(&mut self) {
        for value in &mut self.values {
            if value.is_composite() {
                dispose(std::mem::take(value));
            }
        }
    }
}

impl Struct {
    /// The values stand in the order of the type's fields. Fields without a value are nil, values
    /// without a field are dropped.
    pub fn new(struct_type: Arc<StructType>, mut values: Vec<Value>) -> Self {
        values.resize(struct_type.fields.len(), Value::Nil);
        Self(Arc::new(Fields {
            struct_type,
            values,
            text: None,
        }))
    }

    /// The same value, printed as this text: what a Go type with a `String` method is.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<Text>) -> Self {
        Arc::make_mut(&mut self.0).text = Some(text.into());
        self
    }

    /// What it is printed as, if not field by field.
    pub fn text(&self) -> Option<&Text> {
        self.0.text.as_ref()
    }

    /// The value of a field.
    pub fn get(&self, field: &str) -> Option<&Value> {
        let index = self
            .0
            .struct_type
            .fields
            .iter()
            .position(|name| **name == *field)?;
        Some(&self.0.values[index])
    }

    /// The type.
    pub fn struct_type(&self) -> &Arc<StructType> {
        &self.0.struct_type
    }

    /// The fields' values, in their order.
    pub fn values(&self) -> &[Value] {
        &self.0.values
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.struct_type.fields().zip(&self.0.values)
    }

    pub(crate) fn go_type(&self) -> String {
        if !self.0.struct_type.name.is_empty() {
            return self.0.struct_type.name.clone();
        }
        let fields: Vec<String> = self
            .fields()
            .map(|(name, value)| format!("{name} {}", value.go_type()))
            .collect();
        if fields.is_empty() {
            "struct {}".to_owned()
        } else {
            format!("struct {{ {} }}", fields.join("; "))
        }
    }
}

impl fmt::Debug for Struct {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut output = formatter.debug_struct(&self.0.struct_type.name);
        for (name, value) in self.fields() {
            output.field(name, value);
        }
        output.finish()
    }
}
