//! Number literals: Go's ideal constants, as `text/template/parse` reads them.
//!
//! In: the text of a number token. Out: the value it has as an argument, or Go's words for why it
//! has none.

use crate::quote::{Unit, unquote_unit};
use crate::value::Value;

/// What a number stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
    Complex(f64, f64),
    /// It parses, and fails when it is executed: "… overflows int".
    Overflow,
}

impl Number {
    /// The constant, unless it overflows.
    pub(crate) fn value(&self) -> Option<Value> {
        match *self {
            Self::Int(value) => Some(Value::Int(value)),
            Self::Float(value) => Some(Value::Float(value)),
            Self::Complex(real, imaginary) => Some(Value::Complex(real, imaginary)),
            Self::Overflow => None,
        }
    }
}

/// A character constant, with its quotes.
pub(crate) fn parse_char(text: &str) -> Result<Number, String> {
    let (unit, tail) = unquote_unit(&text[1..], '\'').ok_or("invalid syntax")?;
    if tail != "'" {
        return Err(format!("malformed character constant: {text}"));
    }
    Ok(Number::Int(match unit {
        Unit::Byte(byte) => byte.into(),
        Unit::Char(character) => u32::from(character).into(),
    }))
}

/// A complex constant such as `1+2i`.
pub(crate) fn parse_complex(text: &str) -> Result<Number, String> {
    const SYNTAX: &str = "syntax error scanning complex number";
    let (real, rest) = float_token(text);
    if !rest.starts_with(['+', '-']) {
        return Err(SYNTAX.to_owned());
    }
    let (imaginary, tail) = float_token(rest);
    // An "i" right after the sign is eaten as the beginning of "Inf".
    if !tail.starts_with('i') || imaginary.ends_with('i') {
        return Err(SYNTAX.to_owned());
    }
    let parse = |token: &str| {
        parse_float(token).ok_or_else(|| format!("parsing {token:?}: invalid syntax"))
    };
    Ok(Number::Complex(parse(real)?, parse(imaginary)?))
}

/// Splits off what Go's scanner takes for a floating-point number.
fn float_token(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let mut at = 0;
    let accept = |at: &mut usize, set: &[u8]| {
        let hit = bytes.get(*at).is_some_and(|byte| set.contains(byte));
        *at += usize::from(hit);
        hit
    };
    accept(&mut at, b"+-");
    if accept(&mut at, b"i") {
        return text.split_at(at);
    }
    let mut digits: &[u8] = b"0123456789_";
    let mut exponent: &[u8] = b"eEpP";
    if accept(&mut at, b"0") && accept(&mut at, b"xX") {
        digits = b"0123456789abcdefABCDEF_";
        exponent = b"pP";
    }
    while accept(&mut at, digits) {}
    if accept(&mut at, b".") {
        while accept(&mut at, digits) {}
    }
    if accept(&mut at, exponent) {
        accept(&mut at, b"+-");
        while accept(&mut at, b"0123456789_") {}
    }
    text.split_at(at)
}

/// Any other number.
pub(crate) fn parse(text: &str) -> Result<Number, String> {
    if let Some(imaginary) = text.strip_suffix('i').and_then(parse_float) {
        return Ok(Number::Complex(0.0, imaginary));
    }
    let unsigned = parse_unsigned(text);
    let signed = parse_signed(text);
    let float_syntax = text.contains(['.', 'e', 'E', 'p', 'P']);
    // As Go has it, only an unsigned hexadecimal integer may contain an "e" and stay an integer.
    let hex_integer = text.len() > 2
        && (text.starts_with("0x") || text.starts_with("0X"))
        && !text.contains(['p', 'P']);
    if let Some(value) = signed {
        return Ok(if float_syntax && !hex_integer {
            Number::Float(value as f64)
        } else {
            Number::Int(value)
        });
    }
    if unsigned.is_some() {
        return Ok(Number::Overflow);
    }
    match parse_float(text) {
        Some(_) if !float_syntax => Err(format!("integer overflow: \"{text}\"")),
        Some(_) if hex_integer => Ok(Number::Overflow),
        Some(value) => Ok(Number::Float(value)),
        None => Err(format!("illegal number syntax: \"{text}\"")),
    }
}

/// Go's `strconv.ParseUint(text, 0, 64)`.
fn parse_unsigned(text: &str) -> Option<u64> {
    if text.contains('_') && !underscores_fit(text) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', _, ..] => (&lower[2..], 16),
        [b'0', b'o', _, ..] => (&lower[2..], 8),
        [b'0', b'b', _, ..] => (&lower[2..], 2),
        [b'0', _, ..] => (&lower[1..], 8),
        _ => (&lower[..], 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(&digits.replace('_', ""), radix).ok()
}

/// Go's `strconv.ParseInt(text, 0, 64)`.
fn parse_signed(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let magnitude = i128::from(parse_unsigned(digits)?);
    i64::try_from(if text.starts_with('-') {
        -magnitude
    } else {
        magnitude
    })
    .ok()
}

/// Go's rule for underscores: between digits, or right after a base prefix.
fn underscores_fit(text: &str) -> bool {
    let digits = text
        .strip_prefix(['+', '-'])
        .unwrap_or(text)
        .to_ascii_lowercase();
    let prefixed = ["0x", "0o", "0b"]
        .iter()
        .any(|prefix| digits.starts_with(prefix));
    let hex = digits.starts_with("0x");
    let mut previous = if prefixed { '0' } else { '^' };
    for character in digits.chars().skip(if prefixed { 2 } else { 0 }) {
        let class = match character {
            '0'..='9' => '0',
            'a'..='f' if hex => '0',
            '_' if previous == '0' => '_',
            _ if character == '_' || previous == '_' => return false,
            _ => '!',
        };
        previous = class;
    }
    previous != '_'
}

/// Go's `strconv.ParseFloat(text, 64)`, without its names for infinities and NaN.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    if text.contains('_') && !underscores_fit(text) {
        return None;
    }
    let plain = text.replace('_', "").to_ascii_lowercase();
    let (negative, magnitude) = match plain.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let value = match magnitude.strip_prefix("0x") {
        Some(digits) => parse_hex_float(digits)?,
        // Rust reads what Go reads here, and words such as "inf" too.
        None if magnitude.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
            magnitude.parse().ok()?
        }
        None => return None,
    };
    value
        .is_finite()
        .then_some(if negative { -value } else { value })
}

/// The digits and exponent of a hexadecimal float: `1.8p-3`. The exponent is compulsory.
fn parse_hex_float(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once('p')?;
    if digits.bytes().filter(|byte| *byte != b'.').count() == 0 || digits.matches('.').count() > 1 {
        return None;
    }
    let magnitude = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if magnitude.is_empty() || !magnitude.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Beyond five digits an exponent over- or underflows whatever the digits are, as far as a
    // template of any sane length goes.
    let magnitude: i64 = if magnitude.trim_start_matches('0').len() > 5 {
        1_000_000
    } else {
        magnitude.parse().ok()?
    };
    let mut power = if exponent.starts_with('-') {
        -magnitude
    } else {
        magnitude
    };
    // The mantissa keeps 60 bits, the last of which is sticky: it stays set once a lost bit was.
    let (mut mantissa, mut fraction) = (0_u64, false);
    for byte in digits.bytes() {
        if byte == b'.' {
            fraction = true;
            continue;
        }
        let digit = u64::from(char::from(byte).to_digit(16)?);
        if mantissa < 1 << 56 {
            mantissa = mantissa << 4 | digit;
            power -= if fraction { 4 } else { 0 };
        } else {
            mantissa |= u64::from(digit != 0);
            power += if fraction { 0 } else { 4 };
        }
    }
    Some(scale(mantissa, power))
}

/// `mantissa × 2^power`, rounded once, to even.
fn scale(mantissa: u64, power: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let top = 63 - i64::from(mantissa.leading_zeros());
    let exponent = power + top;
    if exponent > 1023 {
        return f64::INFINITY;
    }
    // The lowest bit that the result has room for, in units of the mantissa.
    let lowest = (exponent - 52).max(-1074) - power;
    if lowest <= 0 {
        // Exact: no more than 53 bits, and none below the smallest number.
        return mantissa as f64 * 2_f64.powi(power.max(-1022) as i32) * tail_power(power);
    }
    if lowest > 64 {
        return 0.0;
    }
    let kept = if lowest == 64 { 0 } else { mantissa >> lowest };
    let half = 1_u64 << (lowest - 1);
    let lost = if lowest == 64 {
        mantissa
    } else {
        mantissa & ((1 << lowest) - 1)
    };
    let up = lost > half || (lost == half && kept & 1 == 1);
    let rounded = kept + u64::from(up);
    let power = power + lowest;
    rounded as f64 * 2_f64.powi(power.max(-1022) as i32) * tail_power(power)
}

/// What is left of `2^power` below the smallest normal number.
fn tail_power(power: i64) -> f64 {
    2_f64.powi((power + 1022).clamp(-1000, 0) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_in_every_base() {
        let cases = [
            ("1.5", Some(1.5)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            (".", None),
            ("1e", None),
            ("1e400", None),
            ("0x1p4", Some(16.0)),
            ("0x.8p0", Some(0.5)),
            ("0x1", None),
            ("0x.p1", None),
            ("-0x1p-1074", Some(-5e-324)),
            ("0x1p-1075", Some(0.0)),
            ("0x1.8p-1075", Some(5e-324)),
            ("0x1.fffffffffffff8p0", Some(2.0)),
            ("0x1.fffffffffffff7fp0", Some(1.999_999_999_999_999_8)),
            ("0x1p1024", None),
            ("0x0p99999999", Some(0.0)),
            ("1_000.5", Some(1000.5)),
            ("1__0.5", None),
            ("0x1.fffffffffffffp1023", Some(f64::MAX)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_float(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_as_go_types_them() {
        let cases = [
            ("-0x1e", Ok(Number::Float(-30.0))),
            ("0x1e", Ok(Number::Int(30))),
            ("-0", Ok(Number::Int(0))),
            ("1e3", Ok(Number::Float(1000.0))),
            ("0_1", Ok(Number::Int(1))),
            ("0i", Ok(Number::Complex(0.0, 0.0))),
            ("9223372036854775808", Ok(Number::Overflow)),
            ("08", Err("integer overflow: \"08\"".to_owned())),
            ("1_", Err("illegal number syntax: \"1_\"".to_owned())),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(parse_complex("-1+2i"), Ok(Number::Complex(-1.0, 2.0)));
        assert!(parse_complex("1+i").is_err());
    }
}
