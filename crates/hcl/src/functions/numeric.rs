//! Functions of numbers. Come in: numbers. Go out: numbers; what would be infinite or no number at
//! all is an error.

use super::{CallError, Parameter, Signature, number, text, whole};
use crate::context::Context;
use crate::convert::convert;
use crate::number::Number;
use crate::types::Type;
use crate::value::{Kind, Value};

pub(super) fn signatures() -> Vec<Signature> {
    let one = |name, body| Signature::new(name, [Parameter::number("num")], body);
    let some =
        |name, body| Signature::new(name, [], body).and_any_number_of(Parameter::number("numbers"));
    let two = |name, second, body| {
        let parameters = [Parameter::number("num"), Parameter::number(second)];
        Signature::new(name, parameters, body)
    };
    vec![
        one("abs", |_, arguments| Ok(number(arguments, 0)?.abs().into())),
        one("ceil", |_, arguments| {
            Ok(number(arguments, 0)?.neg().floor().neg().into())
        }),
        one("floor", |_, arguments| {
            Ok(number(arguments, 0)?.floor().into())
        }),
        one("signum", |_, arguments| {
            Ok(whole(arguments, 0)?.signum().into())
        }),
        some("max", |_, arguments| extreme(arguments, Ord::max)),
        some("min", |_, arguments| extreme(arguments, Ord::min)),
        two("log", "base", |_, arguments| {
            let (of, base) = (
                number(arguments, 0)?.to_f64(),
                number(arguments, 1)?.to_f64(),
            );
            finite(of.ln() / base.ln())
        }),
        two("pow", "power", |_, arguments| {
            let (base, power) = (
                number(arguments, 0)?.to_f64(),
                number(arguments, 1)?.to_f64(),
            );
            finite(go_power(base, power))
        }),
        Signature::new(
            "parseint",
            [Parameter::any("number"), Parameter::number("base")],
            parse_int,
        ),
        Signature::new("sum", [Parameter::any("list")], sum),
    ]
}

fn extreme(arguments: &[Value], choose: fn(Number, Number) -> Number) -> Result<Value, CallError> {
    let numbers = arguments.iter().filter_map(Value::as_number).cloned();
    numbers
        .reduce(choose)
        .map(Value::from)
        .ok_or_else(|| CallError::new("At least one number is required"))
}

/// Whole powers as Go multiplies them up, bit for bit, which is the same on every machine.
fn go_power(base: f64, power: f64) -> f64 {
    let exponent = power.abs();
    if power.fract() != 0.0 || exponent >= 1e15 || base == 0.0 {
        return base.powf(power);
    }
    // The result is `mantissa` · 2^`scale`, the square so far `square` · 2^`square_scale`.
    let (mut mantissa, mut scale) = (1.0, 0i64);
    let (mut square, mut square_scale) = split(base);
    let mut rest = exponent as u64;
    while rest != 0 {
        if square_scale.abs() > 1 << 12 {
            scale += square_scale;
            break;
        }
        if rest & 1 == 1 {
            mantissa *= square;
            scale += square_scale;
        }
        square *= square;
        square_scale *= 2;
        if square < 0.5 {
            square *= 2.0;
            square_scale -= 1;
        }
        rest >>= 1;
    }
    if power < 0.0 {
        mantissa = 1.0 / mantissa;
        scale = -scale;
    }
    // In two steps, since the power of two itself may be out of range; what is left over after
    // them is beyond every number.
    let scale = scale.clamp(-2400, 2400) as i32;
    let half = scale / 2;
    mantissa * 2f64.powi(half) * 2f64.powi(scale - half)
}

/// As a number from a half to one, and a power of two.
fn split(number: f64) -> (f64, i64) {
    let field = number.to_bits() >> 52 & 0x7ff;
    if field == 0 {
        let (mantissa, scale) = split(number * 2f64.powi(64));
        return (mantissa, scale - 64);
    }
    if field == 0x7ff {
        return (number, 0);
    }
    let mantissa = number.to_bits() & !(0x7ff << 52) | 0x3fe << 52;
    (f64::from_bits(mantissa), field as i64 - 1022)
}

fn finite(result: f64) -> Result<Value, CallError> {
    Number::from_f64(result)
        .map(Value::from)
        .ok_or_else(|| CallError::new("The result isn't a number, or is too large to be one"))
}

fn parse_int(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    if arguments[0].type_of() != Type::String {
        return Err(CallError::argument(
            0,
            "A string is required: a number has been read already",
        ));
    }
    let text = text(arguments, 0)?;
    let base = u32::try_from(whole(arguments, 1)?)
        .ok()
        .filter(|base| (2..=62).contains(base))
        .ok_or_else(|| CallError::argument(1, "The base must be from 2 to 62"))?;
    let wrong = || CallError::argument(0, format!("{text:?} isn't a whole number of base {base}"));
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    // Longer ones are beyond every number's limit.
    if digits.is_empty() || digits.len() > 65_536 {
        return Err(wrong());
    }
    let digits = digits
        .bytes()
        .map(|digit| digit_value(digit, base).filter(|value| u32::from(*value) < base))
        .collect::<Option<Vec<u8>>>()
        .ok_or_else(wrong)?;
    let decimal = num_bigint::BigUint::from_radix_be(&digits, base).ok_or_else(wrong)?;
    let sign = if negative { "-" } else { "" };
    Ok(Number::parse(&format!("{sign}{decimal}"))?.into())
}

/// Up to base 36 both cases are the same digits; beyond, the capitals come second.
fn digit_value(digit: u8, base: u32) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'z' => Some(digit - b'a' + 10),
        b'A'..=b'Z' if base <= 36 => Some(digit - b'A' + 10),
        b'A'..=b'Z' => Some(digit - b'A' + 36),
        _ => None,
    }
}

fn sum(_: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let list = arguments[0]
        .elements()
        .ok_or_else(|| CallError::argument(0, "A list, set or tuple of numbers is required"))?;
    let mut total: Option<Number> = None;
    for element in list {
        // Strings that are numbers are taken for them.
        let Ok(Kind::Number(number)) = convert(element, &Type::Number).map(|value| value.kind)
        else {
            return Err(CallError::argument(0, "Only numbers can be added up"));
        };
        total = Some(match total {
            None => number,
            Some(total) => total.add(&number)?,
        });
    }
    total
        .map(Value::from)
        .ok_or_else(|| CallError::argument(0, "There is nothing in the list to add up"))
}
