//! Looks for unknown values within others.

use crate::code::Body;
use crate::functions::Builtin;
use crate::value::{Unknown, Value};

use super::item::Item;

/// How deep a value is searched.
const DEPTH: u32 = 500;

/// A search, which counts what it looks at.
#[derive(Default)]
pub(super) struct Search {
    pub(super) visited: u64,
}

impl Search {
    /// The first unknown part of a value.
    pub(super) fn within<'v>(&mut self, value: &'v Value) -> Option<&'v Unknown> {
        self.at(value, 0)
    }

    fn at<'v>(&mut self, value: &'v Value, depth: u32) -> Option<&'v Unknown> {
        if depth > DEPTH {
            return None;
        }
        self.visited += 1;
        match value {
            Value::Unknown(unknown) => Some(unknown),
            Value::List(list) if list.is_of_strings() => None,
            Value::List(list) => list
                .items()
                .iter()
                .find_map(|item| self.at(item, depth + 1)),
            Value::Map(map) => map
                .entries()
                .iter()
                .find_map(|(_, item)| self.at(item, depth + 1)),
            Value::Struct(fields) => fields
                .values()
                .iter()
                .find_map(|item| self.at(item, depth + 1)),
            _ => None,
        }
    }

    /// What a function's arguments leave unknown, where that makes its result unknown.
    pub(super) fn among(&mut self, body: &Body, arguments: &[Item<'_>]) -> Option<Unknown> {
        // These look at an argument's own kind and at one item of it, not at all that is in it.
        let shallow = matches!(
            body,
            Body::Builtin(
                Builtin::Index | Builtin::Len | Builtin::Slice | Builtin::Not | Builtin::Call
            )
        );
        let mut found: Option<Unknown> = None;
        for argument in arguments {
            let unknown = match argument.value() {
                Value::Unknown(unknown) => Some(unknown),
                value if !shallow => self.within(value),
                _ => None,
            };
            if let Some(unknown) = unknown {
                found = Some(match found {
                    None => unknown.clone(),
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
