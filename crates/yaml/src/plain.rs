//! Interprets plain scalars by YAML 1.2's core schema, and detects those that YAML 1.1 reads
//! differently.

/// The value of a plain scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Plain {
    /// `null`, `~`, or nothing.
    Null,
    /// `true`, `false`
    Bool(bool),
    /// `0o17`, `0x1f`; `None` beyond 64 bits.
    Based(Option<u64>),
    /// `12`, `-1.5`, `1e3`: a decimal of any size, without its plus sign.
    Decimal,
    /// `.inf`, `-.inf`
    Infinite,
    /// `.nan`
    Nan,
    /// Everything else.
    Text,
}

/// Whether a plain scalar is null in all versions of YAML.
pub fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// A boolean of YAML 1.2's core schema; `None` for anything else.
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// A boolean that only YAML 1.1 has; `None` for anything else.
pub fn switch(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => Some(true),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => Some(false),
        _ => None,
    }
}

/// Interprets a plain scalar.
pub fn resolve(text: &str) -> Plain {
    if is_null(text) {
        return Plain::Null;
    }
    if let Some(value) = boolean(text) {
        return Plain::Bool(value);
    }
    match text.as_bytes()[0] {
        b'0'..=b'9' | b'+' | b'-' | b'.' => number(text),
        _ => Plain::Text,
    }
}

fn number(text: &str) -> Plain {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let sound = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
            return match u64::from_str_radix(digits, radix) {
                _ if !sound => Plain::Text,
                value => Plain::Based(value.ok()),
            };
        }
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => Plain::Infinite,
        ".nan" | ".NaN" | ".NAN" if unsigned == text => Plain::Nan,
        _ if is_decimal(unsigned) => Plain::Decimal,
        _ => Plain::Text,
    }
}

/// Whether a text is an unsigned decimal: `12`, `1.5`, `.5`, `5.`, `1e3`.
pub fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent)
        })
}

/// How YAML 1.1 reads a scalar that YAML 1.2 reads differently.
#[derive(Debug, Clone, PartialEq)]
pub enum Surprise {
    /// `yes`, `off`, `n`, …
    Bool(bool),
    /// `0644`: octal. `None` for digits that aren't octal (`0899`), which YAML 1.1 reads as text.
    LeadingZero(Option<u64>),
    /// `1_000`, `0b101`, `0x_ff`: the number in decimal.
    Digits(String),
    /// `1:20`
    Sexagesimal,
    /// `2026-01-31`
    Date,
}

/// How YAML 1.1 reads a plain scalar; `None` if it reads it as YAML 1.2 does.
pub fn surprise(text: &str) -> Option<Surprise> {
    match text.as_bytes().first()? {
        b'y' | b'Y' | b'n' | b'N' | b'o' | b'O' => switch(text).map(Surprise::Bool),
        b'0'..=b'9' | b'+' | b'-' => digits(text),
        _ => None,
    }
}

fn digits(text: &str) -> Option<Surprise> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let all = |text: &str, good: fn(&u8) -> bool| text.as_bytes().iter().all(good);
    if unsigned.len() > 1 && unsigned.starts_with('0') && all(unsigned, u8::is_ascii_digit) {
        let octal = u64::from_str_radix(unsigned, 8).ok();
        return Some(Surprise::LeadingZero(octal));
    }
    if !unsigned.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if is_date(text) {
        return Some(Surprise::Date);
    }
    if unsigned.contains(':') {
        let mut parts = unsigned.split(':');
        let first = parts.next().unwrap_or("");
        let sound = !first.starts_with('0')
            && all(first, u8::is_ascii_digit)
            && parts
                .all(|part| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']));
        return sound.then_some(Surprise::Sexagesimal);
    }
    let plain = unsigned.replace('_', "");
    if let Some(binary) = plain.strip_prefix("0b") {
        let value = u64::from_str_radix(binary, 2).ok()?;
        let sound = all(binary, |digit| matches!(digit, b'0' | b'1'));
        return sound.then(|| Surprise::Digits(value.to_string()));
    }
    if plain.len() == unsigned.len() || unsigned.ends_with('_') {
        return None;
    }
    matches!(number(&plain), Plain::Decimal | Plain::Based(Some(_)))
        .then_some(Surprise::Digits(plain))
}

/// `2026-01-31`, with or without a time.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 10
        && bytes[..10]
            .iter()
            .enumerate()
            .all(|(index, byte)| match index {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            })
        && match bytes.get(10) {
            None => true,
            Some(b'T' | b't' | b' ') => bytes.get(11).is_some_and(u8::is_ascii_digit),
            Some(_) => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_read_as_the_core_schema_says() {
        for (text, expected) in [
            ("", Plain::Null),
            ("~", Plain::Null),
            ("null", Plain::Null),
            ("Null", Plain::Null),
            ("NULL", Plain::Null),
            ("nUll", Plain::Text),
            ("none", Plain::Text),
            ("true", Plain::Bool(true)),
            ("True", Plain::Bool(true)),
            ("TRUE", Plain::Bool(true)),
            ("tRue", Plain::Text),
            ("false", Plain::Bool(false)),
            ("yes", Plain::Text),
            ("on", Plain::Text),
            ("y", Plain::Text),
            ("0", Plain::Decimal),
            ("-0", Plain::Decimal),
            ("12", Plain::Decimal),
            ("+12", Plain::Decimal),
            ("-12", Plain::Decimal),
            ("0644", Plain::Decimal),
            ("0o17", Plain::Based(Some(15))),
            ("0o8", Plain::Text),
            ("0o", Plain::Text),
            ("-0o7", Plain::Text),
            ("0x1F", Plain::Based(Some(31))),
            ("0xfg", Plain::Text),
            ("0x+1", Plain::Text),
            ("0b11", Plain::Text),
            ("1_000", Plain::Text),
            ("1:20", Plain::Text),
            ("2026-01-31", Plain::Text),
            ("1.5", Plain::Decimal),
            ("-1.5", Plain::Decimal),
            (".5", Plain::Decimal),
            ("+.5", Plain::Decimal),
            ("5.", Plain::Decimal),
            ("2.0", Plain::Decimal),
            ("1e3", Plain::Decimal),
            ("1E+3", Plain::Decimal),
            ("1e", Plain::Text),
            ("e3", Plain::Text),
            (".e3", Plain::Text),
            (".", Plain::Text),
            ("-", Plain::Text),
            ("+", Plain::Text),
            ("--1", Plain::Text),
            ("1.2.3", Plain::Text),
            ("10.0.0.0/8", Plain::Text),
            ("18446744073709551615", Plain::Decimal),
            ("18446744073709551616", Plain::Decimal),
            ("0xffffffffffffffff", Plain::Based(Some(u64::MAX))),
            ("0x10000000000000000", Plain::Based(None)),
            ("1e999", Plain::Decimal),
            (".inf", Plain::Infinite),
            ("-.INF", Plain::Infinite),
            (".NaN", Plain::Nan),
            ("-.nan", Plain::Text),
            ("inf", Plain::Text),
            ("é", Plain::Text),
        ] {
            assert_eq!(resolve(text), expected, "{text}");
        }
    }

    #[test]
    fn what_yaml_1_1_reads_otherwise_is_known() {
        let digits = |text: &str| Some(Surprise::Digits(text.to_owned()));
        for (text, expected) in [
            ("yes", Some(Surprise::Bool(true))),
            ("Off", Some(Surprise::Bool(false))),
            ("n", Some(Surprise::Bool(false))),
            ("yEs", None),
            ("yesterday", None),
            ("0644", Some(Surprise::LeadingZero(Some(420)))),
            ("-07", Some(Surprise::LeadingZero(Some(7)))),
            ("0899", Some(Surprise::LeadingZero(None))),
            ("0", None),
            ("0.5", None),
            ("0o644", None),
            ("1:20", Some(Surprise::Sexagesimal)),
            ("22:22:22", Some(Surprise::Sexagesimal)),
            ("52:54:00:12:34:56", Some(Surprise::Sexagesimal)),
            ("52:54:00:ab:34:56", None),
            ("80:80", None),
            ("8080:80", None),
            ("0:30", None),
            ("::1", None),
            ("1_000", digits("1000")),
            ("1_000.5", digits("1000.5")),
            ("0x_ff", digits("0xff")),
            ("0b101", digits("5")),
            ("0b102", None),
            ("0b", None),
            ("1_a", None),
            ("2026-01-31", Some(Surprise::Date)),
            ("2026-01-31T10:00:00Z", Some(Surprise::Date)),
            ("2026-01-31-a", None),
            ("2026-01", None),
            ("-", None),
            ("10.0.0.0/8", None),
            ("éé", None),
            ("-é", None),
        ] {
            assert_eq!(surprise(text), expected, "{text}");
        }
    }
}
