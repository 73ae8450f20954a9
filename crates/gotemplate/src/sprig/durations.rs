//! Spans of time, given as text or seconds; none of them is measured.

use super::arguments::{bytes, string};
use super::{Entry, entry};
use crate::function::Kind::Any;
use crate::number::parse_float;
use crate::value::Value;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

pub(super) const FUNCTIONS: &[Entry] = &[
    entry(
        "duration",
        "SECONDS",
        "seconds, a string or `int64`, as `1m35s`",
        &[Any],
        |_, a| {
            let seconds = match &a[0] {
                Value::Int64(seconds) => *seconds,
                Value::Str(_) => super::numbers::decimal_int(bytes(&a[0])).unwrap_or_default(),
                _ => 0,
            };
            string(shown(seconds.wrapping_mul(SECOND as i64)))
        },
    ),
    entry(
        "durationRound",
        "SPAN",
        "a span such as `2h10m5s`, or nanoseconds, in its largest unit",
        &[Any],
        |_, a| {
            let nanoseconds = match &a[0] {
                Value::Int64(nanoseconds) => *nanoseconds,
                Value::Str(_) => parse(&String::from_utf8_lossy(bytes(&a[0]))).unwrap_or_default(),
                _ => 0,
            };
            string(rounded(nanoseconds.unsigned_abs()))
        },
    ),
];

/// The largest unit that the span has one of.
fn rounded(nanoseconds: u64) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("y", 365 * DAY),
        ("mo", 30 * DAY),
        ("d", DAY),
        ("h", HOUR),
        ("m", MINUTE),
        ("s", SECOND),
    ];
    let unit = UNITS.iter().find(|(_, length)| nanoseconds > *length);
    match unit {
        Some((name, length)) => format!("{}{name}", nanoseconds / length),
        None => "0s".to_owned(),
    }
}

/// A span of whole seconds, as Go prints it.
fn shown(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let all = nanoseconds.unsigned_abs();
    let (hours, minutes) = (all / HOUR, all % HOUR / MINUTE);
    let (seconds, fraction) = (all % MINUTE / SECOND, all % SECOND);
    let mut seconds = seconds.to_string();
    if fraction > 0 {
        seconds = String::from(format!("{seconds}.{fraction:09}").trim_end_matches('0'));
    }
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// Nanoseconds of a span such as `1h2.5m`.
fn parse(text: &str) -> Option<i64> {
    const UNITS: [(&str, u64); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", SECOND),
        ("m", MINUTE),
        ("h", HOUR),
    ];
    let (negative, mut rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_f64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|each: char| !each.is_ascii_digit() && each != '.')?;
        let (number, after) = rest.split_at(end);
        let end = after
            .find(|each: char| each.is_ascii_digit() || each == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total += parse_float(number)? * *length as f64;
        rest = after;
    }
    // Beyond 292 years there is no span.
    (total < i64::MAX as f64).then_some(if negative {
        -(total as i64)
    } else {
        total as i64
    })
}
