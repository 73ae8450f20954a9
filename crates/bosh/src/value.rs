//! Values as Ruby has them in memory after it read a YAML text, with their places.
//!
//! Equality is that of Ruby's `==`: it ignores places and the order of keys, and `1` equals `1.0`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// A range of bytes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Place {
    /// The number that the caller gave the text's file.
    pub file: u32,
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

/// A value and its place.
#[derive(Debug, Clone)]
pub struct Value {
    /// Where it is written.
    pub place: Place,
    /// Its content.
    pub data: Data,
}

/// The content of a [`Value`].
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// `nil`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// An integer; those beyond 128 bits are read as floats.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A string.
    String(Arc<str>),
    /// An array.
    List(Vec<Value>),
    /// A hash; its keys are distinct. [`Value::set`] keeps them so.
    Map(Vec<Entry>),
}

/// A key of a hash with its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key: a scalar. Ruby tells the keys `1` and `"1"` apart.
    pub key: Value,
    /// The value.
    pub value: Value,
}

impl Value {
    /// A value at a place.
    pub fn new(place: Place, data: Data) -> Self {
        Self { place, data }
    }

    /// A null at a place.
    pub fn null(place: Place) -> Self {
        Self::new(place, Data::Null)
    }

    /// A string at a place.
    pub fn string(place: Place, text: impl Into<Arc<str>>) -> Self {
        Self::new(place, Data::String(text.into()))
    }

    /// A map without entries at a place.
    pub fn empty_map(place: Place) -> Self {
        Self::new(place, Data::Map(Vec::new()))
    }

    /// A JSON value whose parts all have one place.
    pub fn from_json(json: &serde_json::Value, place: Place) -> Self {
        use serde_json::Value as Json;
        let data = match json {
            Json::Null => Data::Null,
            Json::Bool(value) => Data::Bool(*value),
            Json::Number(number) => match number.as_i128() {
                Some(integer) => Data::Integer(integer),
                None => Data::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Data::String(text.as_str().into()),
            Json::Array(items) => {
                let items = items.iter();
                Data::List(items.map(|item| Self::from_json(item, place)).collect())
            }
            Json::Object(members) => {
                let members = members.iter().map(|(key, value)| Entry {
                    key: Self::string(place, key.as_str()),
                    value: Self::from_json(value, place),
                });
                Data::Map(members.collect())
            }
        };
        Self { place, data }
    }

    /// The value as JSON, in the same order. Keys become strings, infinite floats and NaN null.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.data {
            Data::Null => Json::Null,
            Data::Bool(value) => (*value).into(),
            Data::Integer(value) => serde_json::Number::from_i128(*value)
                .map_or_else(|| (*value as f64).into(), Json::Number),
            Data::Float(value) => (*value).into(),
            Data::String(text) => Json::String(text.to_string()),
            Data::List(items) => items.iter().map(Self::to_json).collect(),
            Data::Map(entries) => {
                let entries = entries.iter();
                entries
                    .map(|entry| (entry.key.to_s(), entry.value.to_json()))
                    .collect()
            }
        }
    }

    /// The value of a string key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        Some(&self.entry(key)?.value)
    }

    /// The value of a string key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        let Data::Map(entries) = &mut self.data else {
            return None;
        };
        let mut entries = entries.iter_mut();
        let entry = entries.find(|entry| entry.key.as_str() == Some(key))?;
        Some(&mut entry.value)
    }

    /// The entry of a string key, if this is a map that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        let mut entries = self.as_map()?.iter();
        entries.find(|entry| entry.key.as_str() == Some(key))
    }

    /// Sets a key of a map. A key that exists keeps its position. Does nothing if this isn't a map.
    pub fn set(&mut self, key: Self, value: Self) {
        let Data::Map(entries) = &mut self.data else {
            return;
        };
        match entries.iter_mut().find(|entry| entry.key.eql(&key)) {
            Some(entry) => entry.value = value,
            None => entries.push(Entry { key, value }),
        }
    }

    /// Removes a string key of a map, and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Self> {
        let Data::Map(entries) = &mut self.data else {
            return None;
        };
        let at = entries
            .iter()
            .position(|entry| entry.key.as_str() == Some(key))?;
        Some(entries.remove(at).value)
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self.data {
            Data::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The value of an integer that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self.data {
            Data::Integer(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn as_list(&self) -> Option<&[Self]> {
        match &self.data {
            Data::List(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a map.
    pub fn as_map(&self) -> Option<&[Entry]> {
        match &self.data {
            Data::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// Whether it is a map.
    pub fn is_map(&self) -> bool {
        matches!(self.data, Data::Map(_))
    }

    /// The name of its class in Ruby.
    pub fn class_name(&self) -> &'static str {
        match self.data {
            Data::Null => "NilClass",
            Data::Bool(true) => "TrueClass",
            Data::Bool(false) => "FalseClass",
            Data::Integer(_) => "Integer",
            Data::Float(_) => "Float",
            Data::String(_) => "String",
            Data::List(_) => "Array",
            Data::Map(_) => "Hash",
        }
    }

    /// The text that Ruby's `inspect` returns (before Ruby 3.4): `{"a"=>1}`, `[nil, "b"]`.
    pub fn inspect(&self) -> String {
        let mut out = String::new();
        self.inspect_to(&mut out);
        out
    }

    /// The text that Ruby's `to_s` returns: empty for null, a string as it is.
    pub fn to_s(&self) -> String {
        match &self.data {
            Data::Null => String::new(),
            Data::String(text) => text.to_string(),
            _ => self.inspect(),
        }
    }

    fn inspect_to(&self, out: &mut String) {
        match &self.data {
            Data::Null => out.push_str("nil"),
            Data::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Data::Integer(value) => out.push_str(&value.to_string()),
            Data::Float(value) => out.push_str(&inspect_float(*value)),
            Data::String(text) => inspect_string(text, out),
            Data::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ", " });
                    item.inspect_to(out);
                }
                out.push(']');
            }
            Data::Map(entries) => {
                out.push('{');
                for (index, entry) in entries.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ", " });
                    entry.key.inspect_to(out);
                    out.push_str("=>");
                    entry.value.inspect_to(out);
                }
                out.push('}');
            }
        }
    }

    /// Whether two values are the same key: Ruby's `eql?`, which tells `1` and `1.0` apart.
    pub fn eql(&self, other: &Self) -> bool {
        self.class_name() == other.class_name() && self == other
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (&self.data, &other.data) {
            (Data::Integer(integer), Data::Float(float))
            | (Data::Float(float), Data::Integer(integer)) => *integer as f64 == *float,
            (Data::Map(ours), Data::Map(theirs)) => {
                ours.len() == theirs.len()
                    && ours.iter().all(|entry| {
                        let mut theirs = theirs.iter();
                        let other = theirs.find(|other| other.key.eql(&entry.key));
                        other.is_some_and(|other| other.value == entry.value)
                    })
            }
            (ours, theirs) => ours == theirs,
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key.eql(&other.key) && self.value == other.value
    }
}

/// Builds a map of many keys, whose later values replace earlier ones.
#[derive(Debug, Default)]
pub struct MapBuilder {
    entries: Vec<Entry>,
    /// Where each key is, by its `inspect`: maps may be long, and a search per key would be slow.
    positions: HashMap<String, usize>,
}

impl MapBuilder {
    /// Sets a key. One that is set already keeps its position.
    pub fn set(&mut self, key: Value, value: Value) {
        let next = self.entries.len();
        let position = *self.positions.entry(key.inspect()).or_insert(next);
        match self.entries.get_mut(position) {
            Some(entry) => entry.value = value,
            None => self.entries.push(Entry { key, value }),
        }
    }

    /// The map.
    pub fn finish(self) -> Data {
        Data::Map(self.entries)
    }
}

/// Ruby writes `1.0`, `1.5e-07`, `1.0e+20`, `Infinity`.
fn inspect_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let fraction = if mantissa.contains('.') { "" } else { ".0" };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}{fraction}e{sign}{digits:0>2}")
}

fn inspect_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{7f}' => out.push_str("\\x7F"),
            // Ruby would interpolate these.
            '#' if matches!(rest.peek(), Some('{' | '$' | '@')) => out.push_str("\\#"),
            _ if character.is_control() => {
                // Writing to a string can't fail.
                let _ = write!(out, "\\u{:04X}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(json: &serde_json::Value) -> Value {
        Value::from_json(json, Place::default())
    }

    #[test]
    fn values_are_shown_as_ruby_inspects_them() {
        for (json, expected) in [
            (json!(null), "nil"),
            (json!([]), "[]"),
            (json!({}), "{}"),
            (json!({"a": [1, true, null]}), r#"{"a"=>[1, true, nil]}"#),
            (
                json!("é\n\"\\\u{1b}\u{1}\u{7f}"),
                r#""é\n\"\\\e\u0001\x7F""#,
            ),
            (json!("#{a} #$b #@c #d"), r#""\#{a} \#$b \#@c #d""#),
            (json!(1.0), "1.0"),
            (json!(-0.25), "-0.25"),
            (json!(1e20), "1.0e+20"),
            (json!(1.5e-7), "1.5e-07"),
            (json!(1e15), "1000000000000000.0"),
            (
                json!(18_446_744_073_709_551_615_u64),
                "18446744073709551615",
            ),
        ] {
            assert_eq!(value(&json).inspect(), expected);
            assert_eq!(value(&json).to_json(), json);
        }
        assert_eq!(value(&json!(null)).to_s(), "");
        assert_eq!(value(&json!("a")).to_s(), "a");
        assert_eq!(value(&json!(["a"])).to_s(), "[\"a\"]");
    }

    #[test]
    fn equality_ignores_places_and_the_order_of_keys() {
        let place = Place {
            file: 1,
            start: 2,
            end: 3,
        };
        let ours = Value::from_json(&json!({"a": 1, "b": [{"c": null}]}), place);
        assert_eq!(ours, value(&json!({"b": [{"c": null}], "a": 1.0})));
        for other in [
            json!({"a": 1}),
            json!({"a": 1, "b": [{"c": false}]}),
            json!({"a": "1", "b": [{"c": null}]}),
        ] {
            assert_ne!(ours, value(&other));
        }
    }

    #[test]
    fn keys_keep_their_position() {
        let place = Place::default();
        let mut map = value(&json!({"a": 1, "b": 2}));
        map.set(Value::string(place, "a"), value(&json!(3)));
        map.set(value(&json!(1)), value(&json!(4)));
        map.set(value(&json!("1")), value(&json!(5)));
        assert_eq!(map.inspect(), r#"{"a"=>3, "b"=>2, 1=>4, "1"=>5}"#);
        assert_eq!(map.remove("a").unwrap().as_i64(), Some(3));
        assert_eq!(map.get("a"), None);
        map.get_mut("b").unwrap().data = Data::Null;
        assert!(map.get("b").unwrap().is_null());
    }
}
