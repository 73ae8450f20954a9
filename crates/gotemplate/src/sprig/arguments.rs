//! What the functions' bodies share: arguments as Rust has them, results as values.

use super::Outcome;
use crate::format::{self, Sink};
use crate::function::{Budget, FunctionError};
use crate::map::Map;
use crate::value::{ItemType, List, Unknown, Value};

/// How many steps an item of a list or map counts that a function makes.
const STEPS_AN_ITEM: usize = 4;

/// How deep a value may be for a function that looks at all of it.
pub(super) const DEPTH: u32 = 500;

pub(super) fn fail<T>(message: impl Into<String>) -> Result<T, FunctionError> {
    Err(FunctionError::new(message))
}

pub(super) fn too_deep<T>() -> Result<T, FunctionError> {
    fail(format!("the value is nested deeper than {DEPTH} levels"))
}

/// The bytes of an argument that is a string.
pub(super) fn bytes(value: &Value) -> &[u8] {
    value.as_bytes().unwrap_or_default()
}

/// The same as text, with U+FFFD in place of what isn't UTF-8.
pub(super) fn text(value: &Value) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes(value))
}

/// An argument that is an `int` or `int64`.
pub(super) fn int(value: &Value) -> i64 {
    match value {
        Value::Int(number) | Value::Int64(number) => *number,
        _ => 0,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is what most bodies end with")]
pub(super) fn string(bytes: impl Into<Vec<u8>>) -> Outcome {
    Ok(Value::Str(bytes.into().into()))
}

pub(super) fn is_nil(value: &Value) -> bool {
    matches!(value, Value::Nil | Value::Missing)
}

/// The entries of an argument that is a map; none of nil.
pub(super) fn map(value: &Value) -> Map {
    match value {
        Value::Map(map) => map.clone(),
        Value::Dict(dict) => dict.map(),
        _ => Map::default(),
    }
}

/// What printing a value gives.
pub(super) fn shown(budget: &Budget, value: &Value) -> Result<Vec<u8>, FunctionError> {
    let limit = budget.output_bytes();
    let mut bytes = Vec::new();
    let mut sink = Sink::new(&mut bytes, limit);
    format::print_value(&mut sink, value);
    if sink.overflowed() {
        budget.check_size(limit.saturating_add(1))?;
    }
    Ok(bytes)
}

/// Go's `%q` of what printing a value gives.
pub(super) fn quoted(bytes: &[u8]) -> Vec<u8> {
    crate::quote::quote(bytes, false)
}

/// Pays for a collection of so many items.
pub(super) fn pay(budget: &mut Budget, items: usize) -> Result<(), FunctionError> {
    budget.charge(items.saturating_mul(STEPS_AN_ITEM))
}

pub(super) fn list(budget: &mut Budget, items: Vec<Value>) -> Outcome {
    list_of(budget, items, ItemType::Any)
}

pub(super) fn list_of(budget: &mut Budget, items: Vec<Value>, item_type: ItemType) -> Outcome {
    pay(budget, items.len())?;
    Ok(Value::List(List::of_type(items, item_type)))
}

/// A list of strings.
pub(super) fn strings<T: Into<Vec<u8>>>(
    budget: &mut Budget,
    items: impl IntoIterator<Item = T>,
) -> Outcome {
    let mut values = Vec::new();
    for item in items {
        let item: Vec<u8> = item.into();
        budget.charge(STEPS_AN_ITEM + item.len() / 8)?;
        values.push(Value::Str(item.into()));
    }
    Ok(Value::List(List::of_type(values, ItemType::Str)))
}

/// The first argument that isn't known.
pub(super) fn unknown(arguments: &[Value]) -> Option<Unknown> {
    arguments.iter().find_map(|argument| match argument {
        Value::Unknown(unknown) => Some(unknown.clone()),
        _ => None,
    })
}

/// Go's `reflect.Kind` of a value.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Nil | Value::Missing => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Int64(_) => "int64",
        Value::Uint8(_) => "uint8",
        Value::Float(_) => "float64",
        Value::Complex(..) => "complex128",
        Value::Str(_) | Value::Number(_) | Value::Unset => "string",
        Value::List(_) => "slice",
        Value::Map(_) | Value::Dict(_) => "map",
        Value::Struct(fields) if fields.text().is_some() => "ptr",
        Value::Struct(_) => "struct",
        Value::Unknown(_) => "unknown",
    }
}
