//! Functions of times: `formatdate`, `timeadd`, `timecmp`. Come in: times as RFC 3339 writes them.
//! Go out: times and texts made of them; never what time it is.

mod timestamp;

use std::cmp::Ordering;

use super::{CallError, Parameter, Signature, text};
use crate::context::Context;
use crate::value::Value;

pub(super) use timestamp::Timestamp;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

pub(super) fn signatures() -> Vec<Signature> {
    let two = |name, first, second, body| {
        let parameters = [Parameter::string(first), Parameter::string(second)];
        Signature::new(name, parameters, body)
    };
    vec![
        two("formatdate", "format", "time", format_date),
        two("timeadd", "timestamp", "duration", |_, arguments| {
            let duration = nanoseconds(text(arguments, 1)?).ok_or_else(|| {
                CallError::argument(
                    1,
                    "This isn't a duration of at most 292 years, such as `90s` or `1h30m`; \
                     the units are ns, us, ms, s, m and h",
                )
            })?;
            Ok(time(arguments, 0)?.plus(duration).rfc3339().into())
        }),
        two("timecmp", "timestamp_a", "timestamp_b", |_, arguments| {
            let order = time(arguments, 0)?
                .instant()
                .cmp(&time(arguments, 1)?.instant());
            Ok(Value::from(match order {
                Ordering::Less => -1i64,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            }))
        }),
    ]
}

fn time(arguments: &[Value], index: usize) -> Result<Timestamp, CallError> {
    Timestamp::parse(text(arguments, index)?).ok_or_else(|| {
        CallError::argument(
            index,
            "This isn't a time as RFC 3339 writes it, such as 2018-01-02T23:12:01Z",
        )
    })
}

/// A duration of Go: numbers, each with a unit.
fn nanoseconds(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0i64;
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, behind) = rest.split_at(digits(rest));
        let (fraction, behind) = match behind.strip_prefix('.') {
            Some(behind) => behind.split_at(digits(behind)),
            None => ("", behind),
        };
        if whole.len() + fraction.len() == 0 {
            return None;
        }
        let end = behind
            .find(|character: char| character == '.' || character.is_ascii_digit())
            .unwrap_or(behind.len());
        let unit: i64 = match &behind[..end] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        rest = &behind[end..];
        let whole: i64 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        // What is beyond 18 digits is less than a nanosecond.
        let kept = &fraction[..fraction.len().min(18)];
        let part: i128 = if kept.is_empty() {
            0
        } else {
            kept.parse().ok()?
        };
        let part = part * i128::from(unit) / 10i128.pow(kept.len() as u32);
        total = whole
            .checked_mul(unit)?
            .checked_add(i64::try_from(part).ok()?)?
            .checked_add(total)?;
    }
    Some(if negative { -total } else { total })
}

/// Letters are verbs, as many of one as there stand; what is in single quotes stays as it is.
fn format_date(context: &Context, arguments: &[Value]) -> Result<Value, CallError> {
    let format = text(arguments, 0)?;
    let time = time(arguments, 1)?;
    let mut result = String::new();
    let mut rest = format;
    while let Some(first) = rest.chars().next() {
        let before = result.len();
        if let Some(behind) = rest.strip_prefix("''") {
            result.push('\'');
            rest = behind;
        } else if let Some(quoted) = rest.strip_prefix('\'') {
            rest = unquoted(quoted, &mut result)
                .ok_or_else(|| CallError::argument(0, "A `'` isn't closed"))?;
        } else if first.is_ascii_alphabetic() {
            let end = rest.find(|letter| letter != first).unwrap_or(rest.len());
            result.push_str(&verb(&rest[..end], &time)?);
            rest = &rest[end..];
        } else {
            let end = rest
                .find(|letter: char| letter == '\'' || letter.is_ascii_alphabetic())
                .unwrap_or(rest.len());
            result.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        context.charge_bytes(result.len() - before)?;
    }
    Ok(Value::string(result))
}

/// What stands up to the next single quote; a doubled one is one. Gives what is behind.
fn unquoted<'t>(mut rest: &'t str, result: &mut String) -> Option<&'t str> {
    loop {
        let (before, behind) = rest.split_once('\'')?;
        result.push_str(before);
        match behind.strip_prefix('\'') {
            Some(behind) => {
                result.push('\'');
                rest = behind;
            }
            None => return Some(behind),
        }
    }
}

fn verb(verb: &str, time: &Timestamp) -> Result<String, CallError> {
    let (year, month, day) = time.date();
    let (hour, minute, second) = time.clock();
    let half = if hour % 12 == 0 { 12 } else { hour % 12 };
    let month_name = MONTHS[month as usize - 1];
    let day_name = DAYS[time.weekday()];
    Ok(match verb {
        "YYYY" => format!("{year:04}"),
        "YY" => format!("{:02}", year.rem_euclid(100)),
        "MMMM" => month_name.to_owned(),
        "MMM" => month_name[..3].to_owned(),
        "MM" => format!("{month:02}"),
        "M" => month.to_string(),
        "DD" => format!("{day:02}"),
        "D" => day.to_string(),
        "EEEE" => day_name.to_owned(),
        "EEE" => day_name[..3].to_owned(),
        "hh" => format!("{hour:02}"),
        "h" => hour.to_string(),
        "HH" => format!("{half:02}"),
        "H" => half.to_string(),
        "AA" => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        "aa" => if hour < 12 { "am" } else { "pm" }.to_owned(),
        "mm" => format!("{minute:02}"),
        "m" => minute.to_string(),
        "ss" => format!("{second:02}"),
        "s" => second.to_string(),
        "Z" => time.zone(),
        "ZZZ" if time.offset() == 0 => "UTC".to_owned(),
        "ZZZ" | "ZZZZ" => time.numeric_zone(""),
        "ZZZZZ" => time.numeric_zone(":"),
        _ => {
            let allowed = match verb.as_bytes()[0] {
                b'Y' => "a year is `YYYY` or `YY`",
                b'M' => "a month is `M`, `MM`, `MMM` or `MMMM`",
                b'D' => "a day is `D` or `DD`",
                b'E' => "a day of the week is `EEE` or `EEEE`",
                b'h' => "an hour of 24 is `h` or `hh`",
                b'H' => "an hour of 12 is `H` or `HH`",
                b'A' => "AM or PM is `AA`",
                b'a' => "am or pm is `aa`",
                b'm' => "a minute is `m` or `mm`",
                b's' => "a second is `s` or `ss`",
                b'Z' => "a time zone is `Z`, `ZZZ`, `ZZZZ` or `ZZZZZ`",
                _ => "letters that mean nothing stand in single quotes",
            };
            let message = format!("`{verb}` means nothing: {allowed}");
            return Err(CallError::argument(0, message));
        }
    })
}
