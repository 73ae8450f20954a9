//! Tags, and which a plain scalar has in YAML 1.1 as PyYAML reads it.

use super::text::Text;

const PREFIX: &str = "tag:yaml.org,2002:";

/// What a node is said to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tag {
    Null,
    Bool,
    Int,
    Float,
    Binary,
    Timestamp,
    OrderedMap,
    Pairs,
    Set,
    Str,
    Seq,
    Map,
    /// `<<`
    Merge,
    /// `=`
    Value,
    /// `!`: as if nothing were said.
    NonSpecific,
    Other(String),
}

impl Tag {
    pub(super) fn of(tag: &str) -> Self {
        match tag.strip_prefix(PREFIX) {
            Some("null") => Self::Null,
            Some("bool") => Self::Bool,
            Some("int") => Self::Int,
            Some("float") => Self::Float,
            Some("binary") => Self::Binary,
            Some("timestamp") => Self::Timestamp,
            Some("omap") => Self::OrderedMap,
            Some("pairs") => Self::Pairs,
            Some("set") => Self::Set,
            Some("str") => Self::Str,
            Some("seq") => Self::Seq,
            Some("map") => Self::Map,
            Some("merge") => Self::Merge,
            Some("value") => Self::Value,
            _ if tag == "!" => Self::NonSpecific,
            _ => Self::Other(tag.to_owned()),
        }
    }
}

/// The tag of a scalar without quotes.
pub(super) fn of_plain(text: &Text) -> Tag {
    let Some(text) = text.as_str() else {
        return Tag::Str;
    };
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Tag::Null,
        "<<" => Tag::Merge,
        "=" => Tag::Value,
        _ if is_bool(text) => Tag::Bool,
        _ if is_float(text) => Tag::Float,
        _ if is_int(text) => Tag::Int,
        _ if is_timestamp(text) => Tag::Timestamp,
        _ => Tag::Str,
    }
}

fn is_bool(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_word = matches!(&*lower, "yes" | "no" | "true" | "false" | "on" | "off");
    // In three spellings.
    let first_is_upper = text.starts_with(|char: char| char.is_ascii_uppercase());
    let rest = text.get(1..).unwrap_or("");
    let rest_is_lower = rest.bytes().all(|byte| byte.is_ascii_lowercase());
    let rest_is_upper = rest.bytes().all(|byte| byte.is_ascii_uppercase());
    is_word && (rest_is_lower || first_is_upper && rest_is_upper)
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn are(text: &str, wanted: fn(u8) -> bool) -> bool {
    text.bytes().all(wanted)
}

fn is_digit_or_underscore(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'_'
}

/// `[0-9][0-9_]*`
fn is_number(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_digit()) && are(text, is_digit_or_underscore)
}

/// `(:[0-5]?[0-9])+`, without the first colon.
fn are_sixtieths(text: &str) -> bool {
    text.split(':').all(|part| match part.as_bytes() {
        [digit] | [b'0'..=b'5', digit] => digit.is_ascii_digit(),
        _ => false,
    })
}

/// `[eE][-+][0-9]+`, or nothing.
fn is_exponent(text: &str) -> bool {
    match text.strip_prefix(['e', 'E']) {
        None => text.is_empty(),
        Some(rest) => rest
            .strip_prefix(['-', '+'])
            .is_some_and(|digits| !digits.is_empty() && are(digits, |byte| byte.is_ascii_digit())),
    }
}

fn is_float(text: &str) -> bool {
    let number = unsigned(text);
    if matches!(number, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    // Without a digit before the point there is no sign.
    if let Some(rest) = text.strip_prefix('.') {
        let end = rest.find(['e', 'E']).unwrap_or(rest.len());
        return is_number(&rest[..end]) && is_exponent(&rest[end..]);
    }
    let Some((whole, rest)) = number.split_once('.') else {
        return false;
    };
    if let Some((first, sixtieths)) = whole.split_once(':') {
        return is_number(first) && are_sixtieths(sixtieths) && are(rest, is_digit_or_underscore);
    }
    let end = rest.find(['e', 'E']).unwrap_or(rest.len());
    is_number(whole) && are(&rest[..end], is_digit_or_underscore) && is_exponent(&rest[end..])
}

fn is_int(text: &str) -> bool {
    let number = unsigned(text);
    if let Some(digits) = number.strip_prefix("0b") {
        return !digits.is_empty() && are(digits, |byte| matches!(byte, b'0' | b'1' | b'_'));
    }
    if let Some(digits) = number.strip_prefix("0x") {
        return !digits.is_empty() && are(digits, |byte| byte.is_ascii_hexdigit() || byte == b'_');
    }
    if let Some(digits) = number.strip_prefix('0') {
        return are(digits, |byte| matches!(byte, b'0'..=b'7' | b'_'));
    }
    match number.split_once(':') {
        Some((first, sixtieths)) => is_number(first) && are_sixtieths(sixtieths),
        None => is_number(number),
    }
}

/// `2001-12-14`, or a date with a time behind it.
fn is_timestamp(text: &str) -> bool {
    if let [year @ .., b'-', m1, m2, b'-', d1, d2] = text.as_bytes()
        && year.len() == 4
    {
        let digits = year.iter().chain([m1, m2, d1, d2]);
        if digits.into_iter().all(u8::is_ascii_digit) {
            return true;
        }
    }
    super::time::Parts::of(text).is_some_and(|parts| parts.clock.is_some())
}
