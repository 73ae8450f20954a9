//! Nodes to values, as PyYAML's `SafeConstructor` makes them.
//!
//! In: the nodes of a document. Out: its value. May not: copy what an alias stands for.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use num_bigint::BigInt;
use num_traits::Num as _;

use super::compose::{Content, Document, NodeId};
use super::error::{Kind, YamlError};
use super::tag::Tag;
use super::time::Parts;
use crate::value::{Data, Map, Origin, Value};

/// Python reads no decimal number of more digits.
const MOST_DIGITS: usize = 4300;
/// How many entries all `<<` of a document may bring.
const MOST_MERGED: usize = 1_000_000;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
        .with_decode_allow_trailing_bits(true),
);

pub(super) struct Constructor<'d> {
    document: &'d Document,
    layer: u32,
    made: HashMap<NodeId, Value>,
    /// Containers that are being made: to meet one again is a circle.
    open: Vec<NodeId>,
    merged: usize,
    /// Mappings whose entries are known, those that `<<` brings included.
    flat: HashMap<NodeId, Rc<Entries>>,
}

type Entries = Vec<(NodeId, NodeId)>;
type Made<T> = Result<T, YamlError>;

impl<'d> Constructor<'d> {
    pub(super) fn new(document: &'d Document, layer: u32) -> Self {
        Self {
            document,
            layer,
            made: HashMap::new(),
            open: Vec::new(),
            merged: 0,
            flat: HashMap::new(),
        }
    }

    pub(super) fn value(&mut self, id: NodeId) -> Made<Value> {
        if let Some(value) = self.made.get(&id) {
            return Ok(value.clone());
        }
        if self.open.contains(&id) {
            return Ok(self.at(id, Data::Cycle));
        }
        self.open.push(id);
        let data = self.data(id);
        self.open.pop();
        let value = self.at(id, data?);
        self.made.insert(id, value.clone());
        Ok(value)
    }

    fn at(&self, id: NodeId, data: Data) -> Value {
        let mark = self.document.nodes[id].mark;
        let origin = Origin {
            layer: self.layer,
            line: mark.line as u32 + 1,
            column: mark.column as u32 + 1,
        };
        Value { data, origin }
    }

    fn wrong(&self, id: NodeId, problem: impl Into<String>) -> YamlError {
        YamlError::new(self.document.nodes[id].mark, problem)
    }

    fn data(&mut self, id: NodeId) -> Made<Data> {
        let tag = &self.document.nodes[id].tag;
        Ok(match tag {
            Tag::Null => {
                self.scalar(id)?;
                Data::Null
            }
            Tag::Bool => self.boolean(id)?,
            Tag::Int => self.integer(id)?,
            Tag::Float => self.float(id)?,
            Tag::Binary => self.binary(id)?,
            Tag::Timestamp => self.timestamp(id)?,
            Tag::OrderedMap | Tag::Pairs => self.pairs(id)?,
            Tag::Set => Data::Set(Arc::new(self.map(id)?)),
            Tag::Str => Data::Text(self.scalar(id)?.clone()),
            Tag::Seq => Data::List(Arc::new(self.list(id)?)),
            Tag::Map => Data::Map(Arc::new(self.map(id)?)),
            Tag::Merge => return Err(self.wrong(id, "`<<` is a key, and needs quotes elsewhere")),
            Tag::Value => return Err(self.wrong(id, "`=` needs quotes")),
            Tag::NonSpecific => return Err(self.wrong(id, "nothing is made of the tag `!`")),
            Tag::Other(tag) => {
                let problem = format!("nothing is made of the tag `{tag}`");
                return Err(self.wrong(id, problem));
            }
        })
    }

    fn scalar(&self, id: NodeId) -> Made<&'d super::text::Text> {
        match &self.document.nodes[id].content {
            Content::Scalar(text) => Ok(text),
            Content::Mapping(entries) => {
                let named = entries
                    .iter()
                    .find(|(key, _)| self.document.nodes[*key].tag == Tag::Value);
                match named {
                    Some((_, value)) => self.scalar(*value),
                    None => Err(self.wrong(id, "a scalar has to stand here, not a mapping")),
                }
            }
            Content::Sequence(_) => Err(self.wrong(id, "a scalar has to stand here, not a list")),
        }
    }

    fn text(&self, id: NodeId) -> Made<&'d str> {
        let text = self.scalar(id)?;
        text.as_str()
            .ok_or_else(|| self.wrong(id, "a number has no halves of surrogate pairs"))
    }

    fn list(&mut self, id: NodeId) -> Made<Vec<Value>> {
        match &self.document.nodes[id].content {
            Content::Sequence(items) => items.iter().map(|item| self.value(*item)).collect(),
            Content::Scalar(_) => Err(self.wrong(id, "a list has to stand here, not a scalar")),
            Content::Mapping(_) => Err(self.wrong(id, "a list has to stand here, not a mapping")),
        }
    }

    fn map(&mut self, id: NodeId) -> Made<Map> {
        let mut map = Map::default();
        for (key_id, value_id) in self.flattened(id, &mut Vec::new())?.iter().copied() {
            let mut key = if self.document.nodes[key_id].tag == Tag::Value {
                self.at(key_id, Data::Text(self.scalar(key_id)?.clone()))
            } else {
                self.value(key_id)?
            };
            // A key is where its value was written last.
            key.origin = self.at(key_id, Data::Null).origin;
            if key.key().is_none() && !matches!(key.data, Data::Float(_)) {
                let what = key.type_name();
                return Err(self.wrong(key_id, format!("{what} can't be a key")));
            }
            let value = self.value(value_id)?;
            // Not a number is no key twice; there is nothing to be done with one.
            map.insert(key, value)
                .ok_or_else(|| self.wrong(key_id, "this can't be a key"))?;
        }
        Ok(map)
    }

    /// The entries of a mapping, those that `<<` brings before its own.
    fn flattened(&mut self, id: NodeId, above: &mut Vec<NodeId>) -> Made<Rc<Entries>> {
        if let Some(entries) = self.flat.get(&id) {
            return Ok(Rc::clone(entries));
        }
        let document = self.document;
        let Content::Mapping(entries) = &document.nodes[id].content else {
            return Err(self.wrong(id, "a mapping has to stand here"));
        };
        if above.contains(&id) {
            return Err(self.wrong(id, "`<<` brings a mapping into itself"));
        }
        above.push(id);
        let is_merge = |key: NodeId| document.nodes[key].tag == Tag::Merge;
        let mut brought = Vec::new();
        for (_, from) in entries.iter().filter(|(key, _)| is_merge(*key)) {
            match &document.nodes[*from].content {
                Content::Mapping(_) => brought.extend(self.flattened(*from, above)?.iter()),
                Content::Sequence(items) => {
                    // Of several the first wins, and what comes later wins: turn them round.
                    for item in items.iter().rev() {
                        if !matches!(document.nodes[*item].content, Content::Mapping(_)) {
                            let problem = "`<<` takes mappings, and lists of them";
                            return Err(self.wrong(*item, problem));
                        }
                        brought.extend(self.flattened(*item, above)?.iter());
                    }
                }
                Content::Scalar(_) => {
                    return Err(self.wrong(*from, "`<<` takes mappings, and lists of them"));
                }
            }
        }
        above.pop();
        self.merged += brought.len();
        if self.merged > MOST_MERGED {
            let problem = format!("`<<` brings more than {MOST_MERGED} entries");
            return Err(self.wrong(id, problem));
        }
        brought.extend(entries.iter().filter(|(key, _)| !is_merge(*key)));
        let entries = Rc::new(brought);
        self.flat.insert(id, Rc::clone(&entries));
        Ok(entries)
    }

    /// `!!omap` and `!!pairs`: a list of mappings with one key each, which become tuples.
    fn pairs(&mut self, id: NodeId) -> Made<Data> {
        let document = self.document;
        let Content::Sequence(items) = &document.nodes[id].content else {
            return Err(self.wrong(id, "a list has to stand here"));
        };
        let mut pairs = Vec::new();
        for item in items {
            let Content::Mapping(entries) = &document.nodes[*item].content else {
                return Err(self.wrong(*item, "a mapping with one key has to stand here"));
            };
            let [(key, value)] = entries[..] else {
                let count = entries.len();
                let problem = format!("a mapping with one key has to stand here, not with {count}");
                return Err(self.wrong(*item, problem));
            };
            let pair = vec![self.value(key)?, self.value(value)?];
            pairs.push(self.at(*item, Data::Tuple(Arc::new(pair))));
        }
        Ok(Data::List(Arc::new(pairs)))
    }

    fn boolean(&self, id: NodeId) -> Made<Data> {
        let text = self.text(id)?;
        match &*text.to_lowercase() {
            "yes" | "true" | "on" => Ok(Data::Bool(true)),
            "no" | "false" | "off" => Ok(Data::Bool(false)),
            _ => Err(self
                .wrong(id, format!("`{text}` is no boolean"))
                .of_kind(Kind::Key)),
        }
    }

    fn integer(&self, id: NodeId) -> Made<Data> {
        let text = self.text(id)?;
        let digits = text.replace('_', "");
        let (negative, digits) = signed(&digits);
        let parsed = if digits == "0" {
            Some(BigInt::ZERO)
        } else if let Some(digits) = digits.strip_prefix("0b") {
            of_radix(digits, 2)
        } else if let Some(digits) = digits.strip_prefix("0x") {
            of_radix(digits, 16)
        } else if digits.starts_with('0') {
            of_radix(digits, 8)
        } else if digits.contains(':') {
            digits.split(':').try_fold(BigInt::ZERO, |sum, part| {
                Some(sum * 60 + of_radix(part, 10)?)
            })
        } else {
            of_radix(digits, 10)
        };
        match parsed {
            Some(value) if negative => Ok(Data::Int(-value)),
            Some(value) => Ok(Data::Int(value)),
            None => Err(self.no_number(id, "integer")),
        }
    }

    fn float(&self, id: NodeId) -> Made<Data> {
        let text = self.text(id)?;
        let number = text.replace('_', "").to_lowercase();
        let (negative, number) = signed(&number);
        let parsed = match number {
            ".inf" => Some(f64::INFINITY),
            ".nan" => Some(f64::NAN),
            _ if number.contains(':') => {
                let parts = number.rsplit(':').map(of_float);
                parts.enumerate().try_fold(0.0, |sum, (index, part)| {
                    Some(sum + part? * 60_f64.powi(index as i32))
                })
            }
            _ => of_float(number),
        };
        match parsed {
            Some(value) if negative => Ok(Data::Float(-value)),
            Some(value) => Ok(Data::Float(value)),
            None => Err(self.no_number(id, "number")),
        }
    }

    /// Python looks at the first character of a number, whether there is one or not.
    fn no_number(&self, id: NodeId, what: &str) -> YamlError {
        let text = self.text(id).unwrap_or_default().replace('_', "");
        if text.is_empty() {
            return self
                .wrong(id, format!("an {what} is missing").replace("an n", "a n"))
                .of_kind(Kind::Index);
        }
        self.wrong(id, format!("`{text}` is no {what}"))
    }

    /// Python's `base64.decodebytes`: whatever isn't of the alphabet is passed over.
    fn binary(&self, id: NodeId) -> Made<Data> {
        let text = self.text(id)?;
        if !text.is_ascii() {
            return Err(self.wrong(id, "base64 is ASCII"));
        }
        decode_base64(text)
            .map(|bytes| Data::Bytes(bytes.into()))
            .ok_or_else(|| self.wrong(id, "base64 has to end with its padding"))
    }

    fn timestamp(&self, id: NodeId) -> Made<Data> {
        let text = self.text(id)?;
        let parts = Parts::of(text).ok_or_else(|| {
            self.wrong(id, format!("`{text}` is no date or time"))
                .of_kind(Kind::Attribute)
        })?;
        parts
            .time()
            .map(Data::Time)
            .map_err(|why| self.wrong(id, format!("`{text}` is no date or time: {why}")))
    }
}

fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Python's `int(text, radix)` of a text without blanks and underscores.
fn of_radix(text: &str, radix: u32) -> Option<BigInt> {
    // Where the radix is a power of two, Python has no limit.
    if radix == 10 && text.len() > MOST_DIGITS {
        return None;
    }
    let (negative, digits) = signed(text);
    let is_digits = !digits.is_empty() && digits.chars().all(|char| char.is_digit(radix));
    let value = is_digits.then(|| BigInt::from_str_radix(digits, radix).ok())??;
    Some(if negative { -value } else { value })
}

/// Python's `float(text)` of a text without underscores.
fn of_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let (_, digits) = signed(text);
    match digits {
        "inf" | "infinity" | "nan" => text.parse().ok(),
        _ if digits.starts_with(|char: char| char.is_ascii_digit() || char == '.') => {
            text.parse().ok()
        }
        _ => None,
    }
}

/// As `binascii.a2b_base64` does, not strictly.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut kept = String::new();
    let mut padding = 0;
    for char in text.chars() {
        match char {
            '=' if kept.len() % 4 >= 2 => {
                padding += 1;
                if kept.len() % 4 + padding == 4 {
                    break;
                }
            }
            '=' => {}
            _ if char.is_ascii_alphanumeric() || matches!(char, '+' | '/') => {
                padding = 0;
                kept.push(char);
            }
            _ => {}
        }
    }
    kept.extend(std::iter::repeat_n('=', padding));
    LENIENT.decode(kept).ok()
}
