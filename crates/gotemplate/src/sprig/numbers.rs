//! Arithmetic, and what becomes a number.

use super::arguments::{bytes, fail, int, shown};
use super::{Entry, Outcome, decimal, entry};
use crate::function::Kind::{Any, Float, Int, Str};
use crate::function::{Budget, FunctionError};
use crate::number::parse_float;
use crate::value::Value;
use decimal::Decimal;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("add", "X…", "the sum, of whole numbers", &[], |_, a| {
        Ok(Value::Int64(
            a.iter().map(to_int).fold(0, i64::wrapping_add),
        ))
    })
    .and_any(Any),
    entry("add1", "X", "X + 1", &[Any], |_, a| {
        Ok(Value::Int64(to_int(&a[0]).wrapping_add(1)))
    }),
    entry("sub", "X Y", "X − Y", &[Any, Any], |_, a| {
        Ok(Value::Int64(to_int(&a[0]).wrapping_sub(to_int(&a[1]))))
    }),
    entry(
        "mul",
        "X Y…",
        "the product, of whole numbers",
        &[Any],
        |_, a| {
            Ok(Value::Int64(
                a.iter().map(to_int).fold(1, i64::wrapping_mul),
            ))
        },
    )
    .and_any(Any),
    entry(
        "div",
        "X Y",
        "X / Y, without what is behind the point",
        &[Any, Any],
        |_, a| divide(a, i64::wrapping_div),
    ),
    entry(
        "mod",
        "X Y",
        "what remains of X / Y",
        &[Any, Any],
        |_, a| divide(a, i64::wrapping_rem),
    ),
    MAX,
    MAX.named("biggest"),
    entry(
        "min",
        "X Y…",
        "the least, of whole numbers",
        &[Any],
        |_, a| Ok(Value::Int64(a.iter().map(to_int).min().unwrap_or_default())),
    )
    .and_any(Any),
    entry(
        "addf",
        "X…",
        "the sum, of decimal fractions",
        &[],
        |budget, a| {
            let zero = Value::Int(0);
            let (first, rest) = a.split_first().unwrap_or((&zero, &[]));
            fold(budget, first, rest, |left, right| Some(left.plus(right)))
        },
    )
    .and_any(Any),
    entry("add1f", "X", "X + 1", &[Any], |budget, a| {
        fold(budget, &a[0], &[Value::Int(1)], |left, right| {
            Some(left.plus(right))
        })
    }),
    entry(
        "subf",
        "X Y…",
        "X − Y − …, of decimal fractions",
        &[Any],
        |budget, a| {
            fold(budget, &a[0], &a[1..], |left, right| {
                Some(left.minus(right))
            })
        },
    )
    .and_any(Any),
    entry(
        "mulf",
        "X Y…",
        "the product, of decimal fractions",
        &[Any],
        |budget, a| {
            fold(budget, &a[0], &a[1..], |left, right| {
                Some(left.times(right))
            })
        },
    )
    .and_any(Any),
    entry(
        "divf",
        "X Y…",
        "X / Y / …, of decimal fractions, to 16 places",
        &[Any],
        |budget, a| fold(budget, &a[0], &a[1..], Decimal::over),
    )
    .and_any(Any),
    entry("maxf", "X Y…", "the greatest", &[Any], |_, a| {
        Ok(Value::Float(
            a.iter().map(to_float).fold(f64::NEG_INFINITY, maximum),
        ))
    })
    .and_any(Any),
    entry("minf", "X Y…", "the least", &[Any], |_, a| {
        let minimum = |left: f64, right: f64| -maximum(-left, -right);
        Ok(Value::Float(
            a.iter().map(to_float).fold(f64::INFINITY, minimum),
        ))
    })
    .and_any(Any),
    entry(
        "floor",
        "X",
        "the greatest whole number that isn't greater than X",
        &[Any],
        |_, a| Ok(Value::Float(to_float(&a[0]).floor())),
    ),
    entry(
        "ceil",
        "X",
        "the least whole number that isn't less than X",
        &[Any],
        |_, a| Ok(Value::Float(to_float(&a[0]).ceil())),
    ),
    entry(
        "round",
        "X PLACES LIMIT",
        "X with so many decimal places; LIMIT, 0.5 if not given, rounds up",
        &[Any, Int],
        |_, a| {
            let limit = match a.get(2) {
                Some(Value::Float(limit)) => *limit,
                _ => 0.5,
            };
            Ok(Value::Float(round(to_float(&a[0]), int(&a[1]), limit)))
        },
    )
    .and_any(Float),
    entry("int", "X", "X as an `int`", &[Any], |_, a| {
        Ok(Value::Int(to_int(&a[0])))
    }),
    entry("int64", "X", "X as an `int64`", &[Any], |_, a| {
        Ok(Value::Int64(to_int(&a[0])))
    }),
    entry("float64", "X", "X as a `float64`", &[Any], |_, a| {
        Ok(Value::Float(to_float(&a[0])))
    }),
    entry(
        "atoi",
        "S",
        "the whole number that S is in decimal digits, or 0",
        &[Str],
        |_, a| Ok(Value::Int(atoi(bytes(&a[0])))),
    ),
    entry(
        "toDecimal",
        "X",
        "the number that X is in octal digits, or 0",
        &[Any],
        |budget, a| {
            let digits = shown(budget, &a[0])?;
            let digits = std::str::from_utf8(&digits).unwrap_or_default();
            Ok(Value::Int64(
                i64::from_str_radix(digits, 8).unwrap_or_default(),
            ))
        },
    ),
];

const MAX: Entry = entry(
    "max",
    "X Y…",
    "the greatest, of whole numbers",
    &[Any],
    |_, a| Ok(Value::Int64(a.iter().map(to_int).max().unwrap_or_default())),
)
.and_any(Any);

/// Go's `math.Max`.
fn maximum(left: f64, right: f64) -> f64 {
    if left.is_nan() || right.is_nan() {
        f64::NAN
    } else if left == 0.0 && right == 0.0 {
        if left.is_sign_negative() { right } else { left }
    } else {
        left.max(right)
    }
}

fn divide(arguments: &[Value], divide: fn(i64, i64) -> i64) -> Outcome {
    match to_int(&arguments[1]) {
        0 => fail("runtime error: integer divide by zero"),
        divisor => Ok(Value::Int64(divide(to_int(&arguments[0]), divisor))),
    }
}

fn fold(
    budget: &mut Budget,
    first: &Value,
    rest: &[Value],
    combine: impl Fn(&Decimal, &Decimal) -> Option<Decimal>,
) -> Outcome {
    let mut made = decimal_of(first)?;
    for value in rest {
        budget.charge(16 + made.size() / 4)?;
        match combine(&made, &decimal_of(value)?) {
            Some(next) => made = next,
            None => return fail("decimal division by 0"),
        }
    }
    Ok(Value::Float(made.to_float()))
}

fn decimal_of(value: &Value) -> Result<Decimal, FunctionError> {
    let number = to_float(value);
    match Decimal::from_float(number) {
        Some(decimal) => Ok(decimal),
        None => {
            let shown = if number.is_nan() {
                "NaN"
            } else if number > 0.0 {
                "+Inf"
            } else {
                "-Inf"
            };
            fail(format!("Cannot create a Decimal from {shown}"))
        }
    }
}

fn round(number: f64, places: i64, limit: f64) -> f64 {
    let power = 10_f64.powf(places as f64);
    let digit = power * number;
    let rounded = if digit.fract() >= limit {
        digit.ceil()
    } else {
        digit.floor()
    };
    rounded / power
}

/// What a value is as a whole number; 0 where it is none.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(number) | Value::Int64(number) => *number,
        Value::Uint8(number) => (*number).into(),
        Value::Bool(truth) => (*truth).into(),
        Value::Float(number) => truncated(*number),
        Value::Str(text) | Value::Number(text) => parse_int(text.as_bytes()),
        _ => 0,
    }
}

/// Go's conversion on amd64: what doesn't fit is the least number.
fn truncated(number: f64) -> i64 {
    if number.abs() < 9_223_372_036_854_775_808.0 {
        number as i64
    } else {
        i64::MIN
    }
}

pub(super) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Float(number) => *number,
        Value::Str(text) | Value::Number(text) => float_of(text.as_bytes()),
        other => to_int(other) as f64,
    }
}

fn float_of(text: &[u8]) -> f64 {
    let Ok(text) = std::str::from_utf8(text) else {
        return 0.0;
    };
    let (sign, rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) if text.starts_with('-') => (-1.0, rest),
        Some(rest) => (1.0, rest),
        None => (1.0, text),
    };
    match rest.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => sign * f64::INFINITY,
        "nan" if rest.len() == text.len() => f64::NAN,
        _ => parse_float(text)
            .filter(|number| number.is_finite())
            .unwrap_or(0.0),
    }
}

/// A whole number as Go writes literals: with a prefix for its base, and underscores.
fn parse_int(text: &[u8]) -> i64 {
    let Ok(text) = std::str::from_utf8(text) else {
        return 0;
    };
    let text = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|each| each == b'0') => {
            whole
        }
        _ => text,
    };
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, rest) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some(start) if start.starts_with('0') => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let prefixed = rest.len() < lower.len();
    let rest = match rest.strip_prefix('_') {
        Some(after) if prefixed => after,
        _ => rest,
    };
    if rest.starts_with(['_', '+', '-']) || rest.ends_with('_') || rest.contains("__") {
        return 0;
    }
    let digits = rest.replace('_', "");
    let signed = if negative {
        format!("-{digits}")
    } else {
        digits
    };
    i64::from_str_radix(&signed, base).unwrap_or_default()
}

/// A whole number in decimal digits.
pub(super) fn decimal_int(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Go's `Atoi`, with what it gives besides an error.
fn atoi(text: &[u8]) -> i64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    match text.parse::<i64>() {
        Ok(number) => number,
        Err(error) => match error.kind() {
            std::num::IntErrorKind::PosOverflow => i64::MAX,
            std::num::IntErrorKind::NegOverflow => i64::MIN,
            _ => 0,
        },
    }
}
