//! What a template reads: values with the distinctions that Go's reflection makes.
//!
//! In: whatever the caller has. Out: [`Value`], cheap to clone and to share between threads.
//! This module knows nothing of templates: it neither looks fields up nor prints.

use std::fmt;
use std::sync::Arc;

use crate::dict::Dict;
use crate::dispose::dispose;
use crate::map::{Map, Struct};

/// A value that a template can read.
///
/// The variants are those that Go programs hand to `text/template`, plus two of ours
/// ([`Unset`](Value::Unset) and [`Unknown`](Value::Unknown)).
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Go's nil interface: JSON's `null`. A field of it is an error.
    #[default]
    Nil,
    /// Go's zero `reflect.Value`: what a key that isn't there gives. Prints `<no value>`; a field
    /// of it is `Missing` again.
    Missing,
    /// `bool`.
    Bool(bool),
    /// `int`.
    Int(i64),
    /// `int64`: what some functions give.
    Int64(i64),
    /// `uint8`: what indexing a string gives.
    Uint8(u8),
    /// `float64`.
    Float(f64),
    /// `complex128`: only a literal such as `1i` gives one.
    Complex(f64, f64),
    /// `string`: any bytes.
    Str(Text),
    /// `json.Number`: a number kept as its text.
    Number(Text),
    /// A slice, `[]any` or `[]string`.
    List(List),
    /// A map with string keys.
    Map(Map),
    /// A map with string keys that the template made, and may change.
    Dict(Dict),
    /// A struct: fields in their order; an unknown field is an error.
    Struct(Struct),
    /// Ours: a key that a [lenient](Map::lenient) map doesn't have. It is the empty string
    /// everywhere, except that a field of it is `Unset` again and that a range over it does nothing.
    /// Reading it is reported.
    Unset,
    /// Ours: a value that isn't known yet. What depends on it isn't known either.
    Unknown(Unknown),
}

impl Value {
    /// A value that isn't known yet, and why.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown(Unknown::new(reason.into(), Vec::new()))
    }

    /// A list of any values (`[]any`).
    pub fn list(items: impl IntoIterator<Item = Value>) -> Self {
        Self::List(List::new(items.into_iter().collect()))
    }

    /// Go's truth: false for nil, false, 0 and what is empty.
    pub fn truth(&self) -> bool {
        match self {
            Self::Nil | Self::Missing | Self::Unset => false,
            Self::Bool(value) => *value,
            Self::Int(value) | Self::Int64(value) => *value != 0,
            Self::Uint8(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Str(text) | Self::Number(text) => !text.as_bytes().is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Dict(dict) => !dict.map().is_empty(),
            Self::Struct(_) | Self::Unknown(_) => true,
        }
    }

    /// The name of the value's Go type, such as `map[string]interface {}`.
    pub fn go_type(&self) -> String {
        match self {
            Self::Nil | Self::Missing => "interface {}".to_owned(),
            Self::Bool(_) => "bool".to_owned(),
            Self::Int(_) => "int".to_owned(),
            Self::Int64(_) => "int64".to_owned(),
            Self::Uint8(_) => "uint8".to_owned(),
            Self::Float(_) => "float64".to_owned(),
            Self::Complex(..) => "complex128".to_owned(),
            Self::Str(_) | Self::Unset => "string".to_owned(),
            Self::Number(_) => "json.Number".to_owned(),
            Self::List(list) => list.item_type().list_type().to_owned(),
            Self::Map(map) if map.is_string_typed() => "map[string]string".to_owned(),
            Self::Map(_) | Self::Dict(_) => "map[string]interface {}".to_owned(),
            Self::Struct(value) => value.go_type(),
            Self::Unknown(_) => "unknown".to_owned(),
        }
    }

    /// Whether other values can be within.
    pub(crate) fn is_composite(&self) -> bool {
        matches!(
            self,
            Self::List(_) | Self::Map(_) | Self::Dict(_) | Self::Struct(_)
        )
    }

    /// Whether it is a dict or has one somewhere within.
    pub(crate) fn has_dicts(&self) -> bool {
        match self {
            Self::Dict(_) => true,
            Self::List(list) => list.has_dicts(),
            Self::Map(map) => map.has_dicts(),
            Self::Struct(fields) => fields.values().iter().any(Self::has_dicts),
            _ => false,
        }
    }

    /// The bytes of a string; an unset value is the empty string.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Str(text) => Some(text.as_bytes()),
            Self::Unset => Some(b""),
            _ => None,
        }
    }
}

/// A string of any bytes, shared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<[u8]>);

impl Text {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), formatter)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

/// A Go slice: a window on shared items, with a capacity that `slice` may grow into.
#[derive(Clone, Debug)]
pub struct List(Arc<Window>);

#[derive(Debug)]
struct Window {
    items: Arc<[Value]>,
    start: usize,
    length: usize,
    capacity: usize,
    item_type: ItemType,
    has_dicts: bool,
}

impl Drop for Window {
    fn drop(&mut self) {
        // Windows on the same items may remain.
        if let Some(items) = Arc::get_mut(&mut self.items) {
            for item in items {
                if item.is_composite() {
                    dispose(std::mem::take(item));
                }
            }
        }
    }
}

/// The Go type of a list's items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItemType {
    /// `any`.
    #[default]
    Any,
    /// `string`.
    Str,
    /// `int`.
    Int,
    /// `[]any`.
    List,
}

impl ItemType {
    fn list_type(self) -> &'static str {
        match self {
            Self::Any => "[]interface {}",
            Self::Str => "[]string",
            Self::Int => "[]int",
            Self::List => "[][]interface {}",
        }
    }
}

impl List {
    /// A `[]any`.
    pub fn new(items: Vec<Value>) -> Self {
        Self::window(items.into(), None, ItemType::Any)
    }

    /// A `[]string`. Items that aren't strings make it a `[]any`.
    pub fn of_strings(items: Vec<Value>) -> Self {
        let strings = items.iter().all(|item| matches!(item, Value::Str(_)));
        let item_type = if strings {
            ItemType::Str
        } else {
            ItemType::Any
        };
        Self::window(items.into(), None, item_type)
    }

    /// A list of these items, which are of that type.
    #[cfg(feature = "sprig")]
    pub(crate) fn of_type(items: Vec<Value>, item_type: ItemType) -> Self {
        Self::window(items.into(), None, item_type)
    }

    /// A `[]any` as `encoding/json` makes it: the capacity is the next power of two, so that
    /// `slice` can reach nils beyond the end.
    pub fn as_decoded_from_json(mut items: Vec<Value>) -> Self {
        let length = items.len();
        if length > 0 {
            items.resize(length.next_power_of_two(), Value::Nil);
        }
        Self::window(items.into(), Some(length), ItemType::Any)
    }

    fn window(items: Arc<[Value]>, length: Option<usize>, item_type: ItemType) -> Self {
        let has_dicts = items.iter().any(Value::has_dicts);
        let capacity = items.len();
        let length = length.unwrap_or(capacity);
        Self(Arc::new(Window {
            items,
            start: 0,
            length,
            capacity,
            item_type,
            has_dicts,
        }))
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.0.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.length == 0
    }

    /// How many items `slice` can reach.
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// Whether it is a `[]string`.
    pub fn is_of_strings(&self) -> bool {
        self.0.item_type == ItemType::Str
    }

    /// Whether it is a `[]any`.
    pub fn is_of_any(&self) -> bool {
        self.0.item_type == ItemType::Any
    }

    /// The type of its items.
    pub fn item_type(&self) -> ItemType {
        self.0.item_type
    }

    /// Whether a dict is somewhere within.
    pub(crate) fn has_dicts(&self) -> bool {
        self.0.has_dicts
    }

    /// The items.
    pub fn items(&self) -> &[Value] {
        &self.0.items[self.0.start..self.0.start + self.0.length]
    }

    /// `list[from:to:capacity]`; the bounds must be in order and within the capacity.
    pub(crate) fn slice(&self, from: usize, to: usize, capacity: usize) -> Self {
        debug_assert!(from <= to && to <= capacity && capacity <= self.0.capacity);
        Self(Arc::new(Window {
            items: Arc::clone(&self.0.items),
            start: self.0.start + from,
            length: to - from,
            capacity: capacity - from,
            item_type: self.0.item_type,
            has_dicts: self.0.has_dicts,
        }))
    }
}

/// Why a value isn't known, and where templates read it.
#[derive(Clone, Debug)]
pub struct Unknown(Arc<Ignorance>);

#[derive(Debug)]
struct Ignorance {
    reason: String,
    reads: Vec<ReadSite>,
}

/// Where an expression read something: which code, which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ReadSite {
    pub(crate) code: u32,
    pub(crate) operation: u32,
}

impl Unknown {
    pub(crate) fn new(reason: String, reads: Vec<ReadSite>) -> Self {
        Self(Arc::new(Ignorance { reason, reads }))
    }

    /// Why the value isn't known.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    pub(crate) fn reads(&self) -> &[ReadSite] {
        &self.0.reads
    }

    /// The same, read at one more place.
    pub(crate) fn read_at(&self, site: ReadSite) -> Self {
        if self.0.reads.contains(&site) {
            return self.clone();
        }
        let mut reads = self.0.reads.clone();
        reads.push(site);
        Self::new(self.0.reason.clone(), reads)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::Str(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Self::list(items.into_iter().map(Into::into))
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nil, Into::into)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl From<Dict> for Value {
    fn from(dict: Dict) -> Self {
        Self::Dict(dict)
    }
}

impl From<Struct> for Value {
    fn from(value: Struct) -> Self {
        Self::Struct(value)
    }
}
