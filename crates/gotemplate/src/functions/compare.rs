//! `eq`, `ne` and the orderings: Go's basic kinds, and what can't be compared.

use super::{Argument, Failure, error};
use crate::format;
use crate::value::Value;

/// Go's basic kinds, with the value.
#[derive(Clone, Copy)]
enum Basic<'a> {
    Bool(bool),
    Complex,
    Int(i64),
    Float(f64),
    Str(&'a [u8]),
    Uint(u64),
    None,
}

fn basic(value: &Value) -> Basic<'_> {
    match value {
        Value::Bool(value) => Basic::Bool(*value),
        Value::Int(value) | Value::Int64(value) => Basic::Int(*value),
        Value::Uint8(value) => Basic::Uint((*value).into()),
        Value::Float(value) => Basic::Float(*value),
        Value::Complex(..) => Basic::Complex,
        Value::Str(text) | Value::Number(text) => Basic::Str(text.as_bytes()),
        Value::Unset => Basic::Str(b""),
        Value::Nil
        | Value::Missing
        | Value::List(_)
        | Value::Map(_)
        | Value::Dict(_)
        | Value::Struct(_)
        | Value::Unknown(_) => Basic::None,
    }
}

fn is_nil(value: &Value) -> bool {
    matches!(value, Value::Nil | Value::Missing)
}

fn incompatible<T>(left: &Value, right: &Value) -> Result<T, Failure> {
    error(format!(
        "incompatible types for comparison: {} and {}",
        left.go_type(),
        right.go_type()
    ))
}

/// Whether the first argument equals any of the others.
pub(super) fn eq(arguments: &[Argument<'_>]) -> Result<bool, Failure> {
    let [first, others @ ..] = arguments else {
        return error("missing argument for comparison");
    };
    if others.is_empty() {
        return error("missing argument for comparison");
    }
    for other in others {
        if equal(first.value, other.value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[expect(clippy::float_cmp, reason = "Go compares floats exactly")]
fn equal(left: &Value, right: &Value) -> Result<bool, Failure> {
    Ok(match (basic(left), basic(right)) {
        (Basic::Bool(left), Basic::Bool(right)) => left == right,
        (Basic::Int(left), Basic::Int(right)) => left == right,
        (Basic::Uint(left), Basic::Uint(right)) => left == right,
        (Basic::Int(int), Basic::Uint(uint)) | (Basic::Uint(uint), Basic::Int(int)) => {
            u64::try_from(int) == Ok(uint)
        }
        (Basic::Float(left), Basic::Float(right)) => left == right,
        (Basic::Str(left), Basic::Str(right)) => left == right,
        (Basic::Complex, Basic::Complex) => same(left, right),
        (Basic::None, Basic::None) => return equal_composites(left, right),
        _ if is_nil(left) || is_nil(right) => false,
        _ => return incompatible(left, right),
    })
}

fn equal_composites(left: &Value, right: &Value) -> Result<bool, Failure> {
    if is_nil(left) || is_nil(right) {
        return Ok(is_nil(left) == is_nil(right));
    }
    let verb =
        |value: &Value| String::from_utf8_lossy(&format::with_verb(value, b's')).into_owned();
    match (left, right) {
        (Value::Struct(first), Value::Struct(second)) if comparable(right) => {
            Ok(first.go_type() == second.go_type() && same(left, right))
        }
        (Value::List(_), Value::List(_))
        | (Value::Map(_) | Value::Dict(_), Value::Map(_) | Value::Dict(_))
        | (Value::Struct(_), Value::Struct(_)) => error(format!(
            "non-comparable type {}: {}",
            verb(right),
            right.go_type()
        )),
        _ => error(format!(
            "non-comparable types {}: {}, {}: {}",
            verb(left),
            left.go_type(),
            right.go_type(),
            String::from_utf8_lossy(&format::with_verb(right, b'v'))
        )),
    }
}

fn comparable(value: &Value) -> bool {
    match value {
        Value::List(_) | Value::Map(_) | Value::Dict(_) => false,
        Value::Struct(value) => value.values().iter().all(comparable),
        _ => true,
    }
}

/// Go's `==` on interfaces that hold comparable values.
#[expect(clippy::float_cmp, reason = "Go compares floats exactly")]
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) | (Value::Int64(left), Value::Int64(right)) => {
            left == right
        }
        (Value::Uint8(left), Value::Uint8(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Complex(left, left_i), Value::Complex(right, right_i)) => {
            left == right && left_i == right_i
        }
        (Value::Str(left), Value::Str(right)) | (Value::Number(left), Value::Number(right)) => {
            left == right
        }
        (Value::Struct(left), Value::Struct(right)) => left
            .values()
            .iter()
            .zip(right.values())
            .all(|(left, right)| same(left, right)),
        _ => is_nil(left) && is_nil(right),
    }
}

/// Whether the first argument is less than the second.
pub(super) fn lt(arguments: &[Argument<'_>]) -> Result<bool, Failure> {
    let (left, right) = (arguments[0].value, arguments[1].value);
    Ok(match (basic(left), basic(right)) {
        (Basic::None, _) | (_, Basic::None) => return error("invalid type for comparison"),
        (Basic::Bool(_), Basic::Bool(_)) | (Basic::Complex, Basic::Complex) => {
            return error("invalid type for comparison");
        }
        (Basic::Int(left), Basic::Int(right)) => left < right,
        (Basic::Uint(left), Basic::Uint(right)) => left < right,
        (Basic::Int(left), Basic::Uint(right)) => left < 0 || (left as u64) < right,
        (Basic::Uint(left), Basic::Int(right)) => right >= 0 && left < right as u64,
        (Basic::Float(left), Basic::Float(right)) => left < right,
        (Basic::Str(left), Basic::Str(right)) => left < right,
        _ => return incompatible(left, right),
    })
}

/// Whether the first argument is less than the second, or equal to it.
pub(super) fn le(arguments: &[Argument<'_>]) -> Result<bool, Failure> {
    Ok(lt(arguments)? || eq(arguments)?)
}
