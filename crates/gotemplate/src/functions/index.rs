//! `index`, `slice` and `len`.

use super::{Argument, Failure, Outcome, error};
use crate::map::MapKind;
use crate::value::Value;

/// An index as Go checks it: a whole number from 0 to `capacity`.
fn position(index: &Argument<'_>, capacity: usize, unwraps: bool) -> Result<usize, Failure> {
    if index.interface && !unwraps {
        // Go's `slice`, unlike its `index`, doesn't look into an interface.
        return error("cannot index slice/array with type interface {}");
    }
    let number = match index.value {
        Value::Int(number) | Value::Int64(number) => *number,
        Value::Uint8(number) => (*number).into(),
        Value::Nil | Value::Missing => return error("cannot index slice/array with nil"),
        other => {
            return error(format!(
                "cannot index slice/array with type {}",
                other.go_type()
            ));
        }
    };
    match usize::try_from(number) {
        Ok(position) if position <= capacity => Ok(position),
        _ => error(format!("index out of range: {number}")),
    }
}

pub(super) fn index(arguments: &[Argument<'_>]) -> Outcome {
    let mut item = arguments[0].value.clone();
    if matches!(item, Value::Nil | Value::Missing) {
        return error("index of untyped nil");
    }
    for index in &arguments[1..] {
        item = step(&item, index)?;
    }
    Ok(item)
}

fn step(item: &Value, index: &Argument<'_>) -> Outcome {
    Ok(match item {
        Value::Nil | Value::Missing => return error("index of nil pointer"),
        Value::Str(text) | Value::Number(text) => {
            let bytes = text.as_bytes();
            match bytes.get(position(index, bytes.len(), true)?) {
                Some(byte) => Value::Uint8(*byte),
                None => return error("reflect: string index out of range"),
            }
        }
        Value::List(list) => match list.items().get(position(index, list.len(), true)?) {
            Some(item) => item.clone(),
            None => return error("reflect: slice index out of range"),
        },
        Value::Map(map) => {
            let key = match index.value {
                Value::Str(text) => text.as_bytes(),
                Value::Unset => b"",
                Value::Nil | Value::Missing => {
                    return error("value is nil; should be of type string");
                }
                other => {
                    return error(format!(
                        "value has type {}; should be string",
                        other.go_type()
                    ));
                }
            };
            match (map.get(key), map.kind()) {
                (Some(value), _) => value.clone(),
                (None, MapKind::Any) => Value::Nil,
                (None, MapKind::String) => Value::from(""),
                (None, MapKind::Lenient) => Value::Unset,
            }
        }
        Value::Dict(dict) => return step(&Value::Map(dict.map()), index),
        Value::Unset => Value::Unset,
        other => return error(format!("can't index item of type {}", other.go_type())),
    })
}

pub(super) fn len(item: &Value) -> Outcome {
    let length = match item {
        Value::Str(text) | Value::Number(text) => text.as_bytes().len(),
        Value::Unset => 0,
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Dict(dict) => dict.map().len(),
        Value::Nil => return error("len of nil pointer"),
        Value::Missing => return error("reflect: call of reflect.Value.Type on zero Value"),
        other => return error(format!("len of type {}", other.go_type())),
    };
    Ok(Value::Int(length as i64))
}

pub(super) fn slice(arguments: &[Argument<'_>]) -> Outcome {
    let [item, indexes @ ..] = arguments else {
        return error("slice of untyped nil");
    };
    if indexes.len() > 3 {
        return error(format!("too many slice indexes: {}", indexes.len()));
    }
    let (length, capacity) = match item.value {
        Value::Nil | Value::Missing => return error("slice of untyped nil"),
        Value::Str(_) | Value::Number(_) | Value::Unset if indexes.len() == 3 => {
            return error("cannot 3-index slice a string");
        }
        Value::Str(text) | Value::Number(text) => (text.as_bytes().len(), text.as_bytes().len()),
        Value::Unset => (0, 0),
        Value::List(list) => (list.len(), list.capacity()),
        other => return error(format!("can't slice item of type {}", other.go_type())),
    };
    let mut bounds = [0, length, capacity];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, capacity, false)?;
    }
    let [from, to, end] = bounds;
    if from > to {
        return error(format!("invalid slice index: {from} > {to}"));
    }
    if to > end {
        return error(format!("invalid slice index: {to} > {end}"));
    }
    Ok(match item.value {
        Value::Str(text) => Value::Str(text.as_bytes()[from..to].into()),
        Value::Number(text) => Value::Number(text.as_bytes()[from..to].into()),
        Value::List(list) => Value::List(list.slice(from, to, end)),
        _ => Value::Unset,
    })
}
