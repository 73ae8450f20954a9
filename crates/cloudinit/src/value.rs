//! What Python has in memory when cloud-init has read a cloud-config.
//!
//! Equality of keys is Python's: `1`, `1.0` and `true` are one key. A value remembers which layer it
//! was written in, and on which line.

use std::collections::HashMap;
use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::FromPrimitive as _;

use crate::yaml::Text;

/// Where a value was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Origin {
    /// The number of the layer, or part, from 0.
    pub layer: u32,
    /// The line in it, from 1; 0 where it isn't known.
    pub line: u32,
    /// The column, in characters, from 1; 0 where it isn't known.
    pub column: u32,
}

/// A value, and where it was written.
#[derive(Debug, Clone)]
pub struct Value {
    /// What it is.
    pub data: Data,
    /// Where it was written.
    pub origin: Origin,
}

/// What a value is. Containers are shared: aliases don't copy what they stand for.
#[derive(Debug, Clone)]
pub enum Data {
    /// `None`
    Null,
    /// `True`, `False`
    Bool(bool),
    /// An integer of any size.
    Int(BigInt),
    /// A double.
    Float(f64),
    /// Text.
    Text(Text),
    /// `!!binary`
    Bytes(Arc<[u8]>),
    /// A date, or a time with one, as Python's `isoformat` writes it.
    Time(Time),
    /// A list.
    List(Arc<Vec<Value>>),
    /// An element of `!!omap` or `!!pairs`, or what came of merging one.
    Tuple(Arc<Vec<Value>>),
    /// A dictionary.
    Map(Arc<Map>),
    /// A set; the values mean nothing.
    Set(Arc<Map>),
    /// A container within itself.
    Cycle,
}

/// A date or a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Time {
    /// As Python's `isoformat` writes it.
    pub text: String,
    /// Whether it is a date alone.
    pub is_date: bool,
}

impl Value {
    /// A value that was written nowhere.
    pub fn new(data: Data) -> Self {
        Self {
            data,
            origin: Origin::default(),
        }
    }

    /// The text, if it is one that UTF-8 can hold.
    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => text.as_str(),
            _ => None,
        }
    }

    /// The dictionary, if it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match &self.data {
            Data::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The elements of a list or a tuple.
    pub fn as_sequence(&self) -> Option<&[Value]> {
        match &self.data {
            Data::List(items) | Data::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is `None`.
    pub fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// What Python calls its type.
    pub fn type_name(&self) -> &'static str {
        match &self.data {
            Data::Null => "null",
            Data::Bool(_) => "a boolean",
            Data::Int(_) => "an integer",
            Data::Float(_) => "a float",
            Data::Text(_) => "a string",
            Data::Bytes(_) => "bytes",
            Data::Time(time) if time.is_date => "a date",
            Data::Time(_) => "a time",
            Data::List(_) => "a list",
            Data::Tuple(_) => "a tuple",
            Data::Map(_) => "a mapping",
            Data::Set(_) => "a set",
            Data::Cycle => "a value within itself",
        }
    }

    /// As a key; `None` for what Python can't hash.
    pub fn key(&self) -> Option<Key> {
        Some(match &self.data {
            Data::Null => Key::Null,
            Data::Bool(value) => Key::Int(BigInt::from(u8::from(*value))),
            Data::Int(value) => Key::Int(value.clone()),
            Data::Float(value) if value.fract() == 0.0 => Key::Int(BigInt::from_f64(*value)?),
            Data::Float(value) => Key::Float(value.to_bits()),
            Data::Text(text) => Key::Text(text.clone()),
            Data::Bytes(bytes) => Key::Bytes(Arc::clone(bytes)),
            Data::Time(time) => Key::Time(time.clone()),
            Data::Tuple(items) => Key::Tuple(items.iter().map(Self::key).collect::<Option<_>>()?),
            Data::List(_) | Data::Map(_) | Data::Set(_) | Data::Cycle => return None,
        })
    }
}

impl PartialEq for Value {
    /// Python's `==`.
    fn eq(&self, other: &Self) -> bool {
        match (&self.data, &other.data) {
            (Data::List(a), Data::List(b)) | (Data::Tuple(a), Data::Tuple(b)) => {
                Arc::ptr_eq(a, b) || a == b
            }
            (Data::Map(a), Data::Map(b)) => Arc::ptr_eq(a, b) || a == b,
            (Data::Set(a), Data::Set(b)) => {
                a.len() == b.len() && a.iter().all(|(key, _)| b.get(key).is_some())
            }
            (Data::Float(a), Data::Float(b)) => a == b,
            (Data::Cycle, Data::Cycle) => true,
            _ => self.key().is_some_and(|key| Some(key) == other.key()),
        }
    }
}

/// A key as Python tells keys apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// `None`
    Null,
    /// Integers, booleans, and floats without a fraction.
    Int(BigInt),
    /// Other floats, by their bits.
    Float(u64),
    /// Text.
    Text(Text),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A date or a time.
    Time(Time),
    /// A tuple.
    Tuple(Vec<Key>),
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// A dictionary, in the order in which its keys were set first.
#[derive(Debug, Clone, Default)]
pub struct Map {
    entries: Vec<(Value, Value)>,
    places: HashMap<Key, usize>,
}

impl Map {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&Value, &Value)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The value of a key.
    pub fn get(&self, key: &Value) -> Option<&Value> {
        self.find(&key.key()?)
    }

    /// The same by its text.
    pub fn named(&self, name: &str) -> Option<&Value> {
        self.find(&name.into())
    }

    fn find(&self, key: &Key) -> Option<&Value> {
        self.places.get(key).map(|place| &self.entries[*place].1)
    }

    /// Sets a key. One that is there keeps its place and its spelling, as Python does it. `None`:
    /// Python can't hash the key.
    pub fn insert(&mut self, key: Value, value: Value) -> Option<()> {
        let place = self.places.entry(key.key()?).or_insert(self.entries.len());
        match self.entries.get_mut(*place) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((key, value)),
        }
        Some(())
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &Value) -> Option<Value> {
        let place = self.places.remove(&key.key()?)?;
        for other in self.places.values_mut().filter(|other| **other > place) {
            *other -= 1;
        }
        Some(self.entries.remove(place).1)
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self
                .iter()
                .all(|(key, value)| other.get(key).is_some_and(|theirs| theirs == value))
    }
}

impl From<Data> for Value {
    fn from(data: Data) -> Self {
        Self::new(data)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::new(Data::Text(text.into()))
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::new(Data::List(Arc::new(items)))
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::new(Data::Map(Arc::new(map)))
    }
}
