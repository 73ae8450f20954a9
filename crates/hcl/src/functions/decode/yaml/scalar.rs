//! What a scalar of YAML means.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nstance_yaml::{Scalar, Style, core_tag, plain};
use regex::Regex;

use crate::functions::time::Timestamp;
use crate::number::Number;
use crate::value::Value;

static INTEGER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[-+]?(0o[0-7_]+|[0-9_]*|0x[0-9a-fA-F_]+)$").ok());
static FLOAT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$").ok());

/// What a scalar means. Fails, with the reason, where its tag or text has no value.
pub(super) fn resolve(scalar: &Scalar<'_>) -> Result<Value, String> {
    const KNOWN: [&str; 7] = ["str", "binary", "bool", "int", "float", "null", "timestamp"];
    let (text, style) = (&*scalar.text, scalar.style);
    let mut wanted = match &scalar.tag {
        None => "",
        Some(tag) => core_tag(tag)
            .filter(|name| KNOWN.contains(name))
            .ok_or_else(|| format!("the tag `{tag}` isn't known"))?,
    };
    let string = || Ok(Value::string(text));
    // Only these begin what isn't a string.
    let first = text.chars().next();
    let may_be_more = first.is_none_or(|first| "+-0123456789yYnNtTfFoO~.".contains(first));
    if may_be_more && wanted != "str" && wanted != "binary" {
        if matches!(style, Style::SingleQuoted | Style::DoubleQuoted) {
            return string();
        }
        if let Some(value) = word(text) {
            return Ok(value);
        }
        let unsigned = text.trim_start_matches(['+', '-']);
        if matches!(unsigned, ".inf" | ".Inf" | ".INF") && text.len() - unsigned.len() < 2 {
            return Err("an infinite number can't be a value".to_owned());
        }
        if wanted.is_empty() && matches!(text, ".nan" | ".NaN" | ".NAN") {
            return Err("NaN can't be a value".to_owned());
        }
        match first {
            Some('.') => {
                if let Ok(number) = Number::parse(text) {
                    return Ok(number.into());
                }
            }
            Some('+' | '-' | '0'..='9') => {
                let may_be_time = matches!(wanted, "" | "timestamp");
                if let Some(time) = may_be_time.then(|| Timestamp::parse_yaml(text)).flatten() {
                    return Ok(time.rfc3339().into());
                }
                let is = |pattern: &Option<Regex>| {
                    pattern
                        .as_ref()
                        .is_some_and(|pattern| pattern.is_match(text))
                };
                if is(&INTEGER) {
                    wanted = "int";
                } else if is(&FLOAT) {
                    wanted = "float";
                }
            }
            _ => {}
        }
    }
    match wanted {
        "binary" if STANDARD.decode(text).is_err() => Err("this isn't base64".to_owned()),
        "" | "str" | "binary" => string(),
        "null" => Ok(Value::null()),
        "int" | "float" => {
            number(text).ok_or_else(|| format!("{text:?} isn't a number that can be read"))
        }
        "bool" => Err(format!("{text:?} is neither true nor false")),
        _ => Err(format!("{text:?} isn't a time")),
    }
}

fn word(text: &str) -> Option<Value> {
    if plain::is_null(text) {
        return Some(Value::null());
    }
    let truth = plain::boolean(text).or_else(|| plain::switch(text));
    truth.map(Value::from)
}

/// Decimal of any size, or of another base and 64 bits.
fn number(text: &str) -> Option<Value> {
    let plain = text.replace('_', "");
    if let Ok(number) = Number::parse(&plain) {
        return Some(number.into());
    }
    let (negative, unsigned) = match plain.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let lower = unsigned.to_ascii_lowercase();
    let (digits, base) = [("0x", 16), ("0o", 8), ("0b", 2)]
        .iter()
        .find_map(|(prefix, base)| Some((lower.strip_prefix(prefix)?, *base)))?;
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    if digits.starts_with('+') || negative && magnitude > 1 << 63 {
        return None;
    }
    let number = Number::from(magnitude);
    Some(if negative { number.neg() } else { number }.into())
}
