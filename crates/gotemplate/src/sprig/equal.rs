//! Go's `reflect.DeepEqual`.

use super::arguments::{DEPTH, is_nil, map, too_deep};
use crate::function::{Budget, FunctionError};
use crate::value::Value;

/// Whether two values are equal, in their types and all that is within.
pub(super) fn deeply(
    budget: &mut Budget,
    left: &Value,
    right: &Value,
) -> Result<bool, FunctionError> {
    at(budget, left, right, 0)
}

#[expect(clippy::float_cmp, reason = "Go compares floats exactly")]
fn at(budget: &mut Budget, left: &Value, right: &Value, depth: u32) -> Result<bool, FunctionError> {
    if depth > DEPTH {
        return too_deep();
    }
    budget.charge(1)?;
    Ok(match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) | (Value::Int64(left), Value::Int64(right)) => {
            left == right
        }
        (Value::Uint8(left), Value::Uint8(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Complex(left, left_i), Value::Complex(right, right_i)) => {
            left == right && left_i == right_i
        }
        (Value::Number(left), Value::Number(right)) => left == right,
        (Value::List(first), Value::List(second)) => {
            if first.item_type() != second.item_type() || first.len() != second.len() {
                return Ok(false);
            }
            for (left, right) in first.items().iter().zip(second.items()) {
                if !at(budget, left, right, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(_) | Value::Dict(_), Value::Map(_) | Value::Dict(_)) => {
            let (first, second) = (map(left), map(right));
            if first.is_string_typed() != second.is_string_typed() || first.len() != second.len() {
                return Ok(false);
            }
            for ((key, left), (other, right)) in first.entries().iter().zip(second.entries()) {
                if key != other || !at(budget, left, right, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Struct(first), Value::Struct(second)) => {
            if first.struct_type() != second.struct_type() {
                return Ok(false);
            }
            for (left, right) in first.values().iter().zip(second.values()) {
                if !at(budget, left, right, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => match (left.as_bytes(), right.as_bytes()) {
            (Some(left), Some(right)) => left == right,
            _ => is_nil(left) && is_nil(right),
        },
    })
}
