//! Dates and times.
//!
//! In: the text of a timestamp. Out: what Python's `datetime` makes of it, as its `isoformat`
//! writes it, or why it makes none.

use crate::value::Time;

/// A timestamp taken apart. What its numbers mean isn't checked.
pub(super) struct Parts {
    year: u32,
    month: u32,
    day: u32,
    pub(super) clock: Option<Clock>,
}

pub(super) struct Clock {
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    /// The offset from UTC in minutes.
    offset: Option<i32>,
}

/// Takes from the beginning of a text.
struct Reader<'t>(&'t str);

impl Reader<'_> {
    fn digits(&mut self, least: usize, most: usize) -> Option<u32> {
        let count = self
            .0
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        if count < least {
            return None;
        }
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        digits.parse().ok()
    }

    fn char(&mut self, char: char) -> Option<()> {
        self.0 = self.0.strip_prefix(char)?;
        Some(())
    }

    /// How many blanks and tabs there were.
    fn blanks(&mut self) -> usize {
        let rest = self.0.trim_start_matches([' ', '\t']);
        let count = self.0.len() - rest.len();
        self.0 = rest;
        count
    }
}

impl Parts {
    /// As PyYAML's `timestamp_regexp` takes a text apart.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut reader = Reader(text);
        let year = reader.digits(4, 4)?;
        reader.char('-')?;
        let month = reader.digits(1, 2)?;
        reader.char('-')?;
        let day = reader.digits(1, 2)?;
        let mut parts = Self {
            year,
            month,
            day,
            clock: None,
        };
        if reader.0.is_empty() {
            return Some(parts);
        }
        if reader.char('T').or_else(|| reader.char('t')).is_none() && reader.blanks() == 0 {
            return None;
        }
        let hour = reader.digits(1, 2)?;
        reader.char(':')?;
        let minute = reader.digits(2, 2)?;
        reader.char(':')?;
        let second = reader.digits(2, 2)?;
        let mut micros = 0;
        if reader.char('.').is_some() {
            let digits = reader.0.bytes().take_while(u8::is_ascii_digit).count();
            let (fraction, rest) = reader.0.split_at(digits);
            reader.0 = rest;
            let mut padded = fraction.chars().take(6).collect::<String>();
            while padded.len() < 6 {
                padded.push('0');
            }
            micros = padded.parse().ok()?;
        }
        let mut offset = None;
        let blanks = reader.blanks();
        if reader.char('Z').is_some() {
            offset = Some(0);
        } else if let Some(sign) = reader
            .0
            .chars()
            .next()
            .filter(|char| matches!(char, '+' | '-'))
        {
            reader.char(sign)?;
            let hours = reader.digits(1, 2)? as i32;
            let minutes = match reader.char(':') {
                Some(()) => reader.digits(2, 2)? as i32,
                None => 0,
            };
            let total = hours * 60 + minutes;
            offset = Some(if sign == '-' { -total } else { total });
        } else if blanks > 0 {
            return None;
        }
        parts.clock = Some(Clock {
            hour,
            minute,
            second,
            micros,
            offset,
        });
        reader.0.is_empty().then_some(parts)
    }

    /// The date or time; why there is none.
    pub(super) fn time(&self) -> Result<Time, String> {
        let Self {
            year, month, day, ..
        } = self;
        if *year == 0 {
            return Err("there is no year 0".to_owned());
        }
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return Err(format!("there is no month {month}")),
        };
        if !(1..=days).contains(day) {
            return Err(format!("that month has {days} days"));
        }
        let date = format!("{year:04}-{month:02}-{day:02}");
        let Some(clock) = &self.clock else {
            let (text, is_date) = (date, true);
            return Ok(Time { text, is_date });
        };
        let Clock {
            hour,
            minute,
            second,
            micros,
            offset,
        } = clock;
        if *hour > 23 || *minute > 59 || *second > 59 {
            return Err(format!("there is no time {hour}:{minute:02}:{second:02}"));
        }
        let mut text = format!("{date}T{hour:02}:{minute:02}:{second:02}");
        if *micros > 0 {
            text.push_str(&format!(".{micros:06}"));
        }
        if let Some(offset) = offset {
            if offset.abs() >= 24 * 60 {
                return Err("an offset from UTC is less than a day".to_owned());
            }
            let sign = if *offset < 0 { '-' } else { '+' };
            let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
            text.push_str(&format!("{sign}{hours:02}:{minutes:02}"));
        }
        Ok(Time {
            text,
            is_date: false,
        })
    }
}
