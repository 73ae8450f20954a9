//! Parses durations in Go's syntax: `300ms`, `5m`, `1h30m`.
//!
//! In: text. Out: a [`Duration`], exact to the nanosecond. Must not: accept what Go doesn't.

use std::time::Duration;

use thiserror::Error;

/// Why a text isn't a valid duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DurationError {
    /// Empty, or without a number where one is required.
    #[error("a duration is a number and a unit, such as `30s` or `1h30m`")]
    Malformed,
    /// A number without a unit.
    #[error("`{0}` has no unit; units are `ns`, `us`, `ms`, `s`, `m`, `h`")]
    NoUnit(String),
    /// An unknown unit.
    #[error("`{0}` isn't a unit; units are `ns`, `us`, `ms`, `s`, `m`, `h`")]
    UnknownUnit(String),
    /// Negative.
    #[error("a duration can't be negative here")]
    Negative,
    /// More than 2⁶³ nanoseconds, about 292 years.
    #[error("a duration can't be longer than 292 years")]
    TooLong,
}

/// Parses a duration in Go's syntax.
///
/// Fails on invalid syntax, and on negative durations, which make sense nowhere in a configuration.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(DurationError::Malformed);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanoseconds, after) = component(rest)?;
        total = total
            .checked_add(nanoseconds)
            .filter(|total| i64::try_from(*total).is_ok())
            .ok_or(DurationError::TooLong)?;
        rest = after;
    }
    if negative && total > 0 {
        return Err(DurationError::Negative);
    }
    Ok(Duration::from_nanos(total))
}

/// A duration as it is written: `90s`, `10m`, `1h30m`, `500ms`.
pub fn shown(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis == 0 {
        return "0s".to_owned();
    }
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    let seconds = duration.as_secs();
    let parts = [
        (seconds / 3600, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let mut text = String::new();
    for (count, unit) in parts.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("{count}{unit}"));
    }
    text
}

/// Parses one number with its unit; returns its nanoseconds and the rest.
///
/// Fails if the number or its unit is invalid.
fn component(text: &str) -> Result<(u64, &str), DurationError> {
    let digits_end = |text: &str| {
        text.bytes()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let (whole, mut rest) = text.split_at(digits_end(text));
    let mut fraction = "";
    if let Some(after_point) = rest.strip_prefix('.') {
        (fraction, rest) = after_point.split_at(digits_end(after_point));
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Malformed);
    }
    let unit_end = rest
        .find(|character: char| character == '.' || character.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let scale: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(DurationError::NoUnit(text.to_owned())),
        _ => return Err(DurationError::UnknownUnit(unit.to_owned())),
    };
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| DurationError::TooLong)?
    };
    let nanoseconds = whole.checked_mul(scale).ok_or(DurationError::TooLong)?;
    Ok((
        nanoseconds
            .checked_add(fraction_of(fraction, scale))
            .ok_or(DurationError::TooLong)?,
        rest,
    ))
}

/// `0.fraction` of `scale`, truncated to whole nanoseconds as Go does.
fn fraction_of(fraction: &str, scale: u64) -> u64 {
    let mut value: u128 = 0;
    let mut divisor: u128 = 1;
    // Further digits are below a nanosecond.
    for digit in fraction.bytes().take(18) {
        value = value * 10 + u128::from(digit - b'0');
        divisor *= 10;
    }
    (value * u128::from(scale) / divisor) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("-0", 0),
            ("+5s", 5_000_000_000),
            ("300ms", 300_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("1s500ms1us1ns", 1_500_001_001),
            ("1µs", 1_000),
            ("1μs", 1_000),
            ("0.3333333333333333333h", 1_199_999_999_999),
            ("2562047h47m16.854775807s", i64::MAX as u64),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_nanos(nanoseconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        for (text, error) in [
            ("", DurationError::Malformed),
            ("-", DurationError::Malformed),
            ("s", DurationError::Malformed),
            (".s", DurationError::Malformed),
            ("ten seconds", DurationError::Malformed),
            ("5", DurationError::NoUnit("5".into())),
            ("1h30", DurationError::NoUnit("30".into())),
            ("5d", DurationError::UnknownUnit("d".into())),
            ("5 s", DurationError::UnknownUnit(" s".into())),
            ("5S", DurationError::UnknownUnit("S".into())),
            ("-5s", DurationError::Negative),
            ("2562047h47m16.854775808s", DurationError::TooLong),
            ("99999999999999999999s", DurationError::TooLong),
        ] {
            assert_eq!(parse_duration(text), Err(error), "{text}");
        }
    }
}
