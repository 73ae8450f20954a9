//! What a plain scalar stands for, by go-yaml's rules: YAML 1.1's, for the most part.

use nstance_yaml::plain;

use crate::number::parse_float;

/// What a scalar is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond `Int`.
    Unsigned(u64),
    Float(f64),
    /// A time, which stays a text.
    Timestamp,
    Merge,
    Text,
}

/// What a scalar without quotes and tag is.
pub(super) fn resolve(text: &str) -> Scalar {
    if plain::is_null(text) {
        return Scalar::Null;
    }
    if let Some(truth) = plain::boolean(text).or_else(|| plain::switch(text)) {
        return Scalar::Bool(truth);
    }
    match text {
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Scalar::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        "<<" => return Scalar::Merge,
        _ => {}
    }
    match text.as_bytes()[0] {
        b'.' => parse_float(text).map_or(Scalar::Text, Scalar::Float),
        b'+' | b'-' | b'0'..=b'9' => number(text),
        _ => Scalar::Text,
    }
}

fn number(text: &str) -> Scalar {
    if is_timestamp(text) {
        return Scalar::Timestamp;
    }
    let plain = text.replace('_', "");
    let (sign, digits) = match plain.strip_prefix(['+', '-']) {
        Some(rest) => (&plain[..1], rest),
        None => ("", plain.as_str()),
    };
    if let Some((base, digits)) = based(digits)
        && digits.starts_with(|first: char| first.is_ascii_alphanumeric())
    {
        let signed = format!("{sign}{digits}");
        if let Ok(number) = i64::from_str_radix(&signed, base) {
            return Scalar::Int(number);
        }
        if sign.is_empty()
            && let Ok(number) = u64::from_str_radix(digits, base)
        {
            return Scalar::Unsigned(number);
        }
    }
    if plain::is_decimal(digits)
        && let Some(number) = parse_float(&plain)
    {
        return Scalar::Float(number);
    }
    Scalar::Text
}

/// The base that a number's prefix says, and its digits.
fn based(digits: &str) -> Option<(u32, &str)> {
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    Some(match prefix.as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some(two) if two.starts_with('0') => (8, &digits[1..]),
        _ if digits.is_empty() => return None,
        _ => (10, digits),
    })
}

/// A number of base 60, which YAML 1.1 knows and go-yaml only quotes.
pub(super) fn is_base60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (text, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = text.split(':');
    let digits = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let first = parts.next().unwrap_or_default();
    let begins = first.starts_with(|first: char| first.is_ascii_digit()) && digits(first);
    let mut count = 0;
    let sixties = parts.all(|part| {
        count += 1;
        let short = matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
        short && (part.len() == 1 || part.as_bytes()[0] < b'6')
    });
    begins && sixties && count > 0 && digits(fraction)
}

/// A date, or a date and a time of day.
fn is_timestamp(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits != 4 || text.as_bytes().get(4) != Some(&b'-') {
        return false;
    }
    let end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let (date, rest) = text.split_at(end);
    if !is_date(date) {
        return false;
    }
    match rest.as_bytes().first() {
        None => true,
        Some(b' ') => is_time(&rest[1..], false),
        Some(_) => is_time(&rest[1..], true),
    }
}

/// A number of one or two digits, and what follows it.
fn short(text: &str) -> Option<(u32, &str)> {
    let count = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(count);
    Some((digits.parse().ok()?, rest))
}

fn is_date(text: &str) -> bool {
    let found = || {
        let year: u32 = text.get(..4)?.parse().ok()?;
        let (month, rest) = short(text.get(5..)?)?;
        let (day, rest) = short(rest.strip_prefix('-')?)?;
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return None,
        };
        (rest.is_empty() && (1..=days).contains(&day)).then_some(())
    };
    found().is_some()
}

fn is_time(text: &str, zone: bool) -> bool {
    let found = || {
        let (hour, rest) = match short(text)? {
            (hour, rest) if hour < 24 => (hour, rest),
            _ => return None,
        };
        let _ = hour;
        let (minute, rest) = short(rest.strip_prefix(':')?)?;
        let (second, rest) = short(rest.strip_prefix(':')?)?;
        if minute > 59 || second > 59 {
            return None;
        }
        let rest = match rest.strip_prefix(['.', ',']) {
            Some(places) => {
                let end = places.find(|each: char| !each.is_ascii_digit());
                let end = end.unwrap_or(places.len());
                if end == 0 {
                    return None;
                }
                &places[end..]
            }
            None => rest,
        };
        let fits = if zone { is_zone(rest) } else { rest.is_empty() };
        fits.then_some(())
    };
    found().is_some()
}

fn is_zone(text: &str) -> bool {
    if text == "Z" {
        return true;
    }
    let Some(rest) = text.strip_prefix(['+', '-']) else {
        return false;
    };
    let bytes = rest.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    bytes.len() == 5
        && bytes[2] == b':'
        && [0, 1, 3, 4].into_iter().all(digit)
        && &rest[..2] <= "24"
        && &rest[3..] < "60"
}
