//! Looks for unknown values within others.

use crate::code::Body;
use crate::function::Unknowns;
use crate::functions::Builtin;
use crate::value::{ItemType, Unknown, Value};

use super::item::Item;

/// How deep a value is searched.
const DEPTH: u32 = 500;

/// A search, which counts what it looks at, and ends where it has looked at too much.
pub(super) struct Search {
    pub(super) visited: u64,
    most: u64,
}

impl Search {
    /// A search that gives up soon after it has visited `most` values.
    pub(super) fn new(most: u64) -> Self {
        Self { visited: 0, most }
    }

    /// The first unknown part of a value.
    pub(super) fn within(&mut self, value: &Value) -> Option<Unknown> {
        self.at(value, 0)
    }

    fn at(&mut self, value: &Value, depth: u32) -> Option<Unknown> {
        if depth > DEPTH || self.visited > self.most {
            return None;
        }
        self.visited += 1;
        match value {
            Value::Unknown(unknown) => Some(unknown.clone()),
            Value::List(list) if !list.is_of_any() && list.item_type() != ItemType::List => None,
            Value::List(list) => self.among_all(list.items().iter(), depth),
            Value::Map(map) => self.among_all(map.entries().iter().map(|(_, item)| item), depth),
            Value::Dict(dict) => self.at(&Value::Map(dict.map()), depth),
            Value::Struct(fields) => self.among_all(fields.values().iter(), depth),
            _ => None,
        }
    }

    fn among_all<'v>(
        &mut self,
        mut items: impl Iterator<Item = &'v Value>,
        depth: u32,
    ) -> Option<Unknown> {
        items.find_map(|item| self.at(item, depth + 1))
    }

    /// What a function's arguments leave unknown, where that makes its result unknown.
    pub(super) fn among(&mut self, body: &Body, arguments: &[Item<'_>]) -> Option<Unknown> {
        let unknowns = match body {
            // These look at an argument's own kind and at one item of it, not at all that is in it.
            Body::Builtin(
                Builtin::Index | Builtin::Len | Builtin::Slice | Builtin::Not | Builtin::Call,
            ) => Unknowns::Shallow,
            Body::Builtin(_) => Unknowns::Deep,
            Body::Other(function) => function.unknowns(),
        };
        let mut found: Option<Unknown> = None;
        for argument in arguments {
            let unknown = match (unknowns, argument.value()) {
                (Unknowns::Passed, _) => None,
                (_, Value::Unknown(unknown)) => Some(unknown.clone()),
                (Unknowns::Deep, value) => self.within(value),
                (Unknowns::Shallow, _) => None,
            };
            if let Some(unknown) = unknown {
                found = Some(match found {
                    None => unknown,
                    Some(found) => unknown
                        .reads()
                        .iter()
                        .fold(found, |all, at| all.read_at(*at)),
                });
            }
        }
        found
    }
}

/// Whether a value is nil or isn't there.
pub(super) fn is_absent(value: &Value) -> bool {
    matches!(value, Value::Nil | Value::Missing)
}
