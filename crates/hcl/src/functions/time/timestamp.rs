//! A time with its zone, in the calendar that RFC 3339 has: the Gregorian one, before its time too.

/// A moment, and how far its place is from UTC.
#[derive(Clone, Copy, Debug)]
pub(in crate::functions) struct Timestamp {
    /// Since 1970, on the clocks of the place.
    seconds: i64,
    nanoseconds: u32,
    /// Of the place, in seconds.
    offset: i64,
}

/// How a text may write a time.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// Every number has two digits; but the hour may have one, as in Go.
    Strict,
    /// Every number may have one.
    Short,
}

const DAY: i64 = 86_400;

impl Timestamp {
    /// RFC 3339: `2006-01-02T15:04:05Z`, `2006-01-02T15:04:05.5+01:00`.
    pub(in crate::functions) fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader {
            rest: text,
            form: Form::Strict,
        };
        let date = reader.date()?;
        reader.byte(b'T')?;
        let clock = reader.clock()?;
        let offset = reader.zone()?;
        reader.rest.is_empty().then_some(())?;
        Self::new(date, clock, offset)
    }

    /// What YAML takes for a time: a date, a date and a time of UTC behind a blank, or RFC 3339,
    /// all with numbers of one digit.
    pub(in crate::functions) fn parse_yaml(text: &str) -> Option<Self> {
        let mut reader = Reader {
            rest: text,
            form: Form::Short,
        };
        let date = reader.date()?;
        if reader.rest.is_empty() {
            return Self::new(date, (0, 0), 0);
        }
        let local = reader.byte(b' ').is_some();
        if !local && reader.byte(b'T').is_none() {
            reader.byte(b't')?;
        }
        let clock = reader.clock()?;
        let offset = if local { 0 } else { reader.zone()? };
        reader.rest.is_empty().then_some(())?;
        Self::new(date, clock, offset)
    }

    fn new(date: (i64, i64, i64), clock: (i64, u32), offset: i64) -> Option<Self> {
        let (year, month, day) = date;
        let leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
        let length = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        (1..=length).contains(&day).then(|| Self {
            seconds: days_before(year, month, day) * DAY + clock.0,
            nanoseconds: clock.1,
            offset,
        })
    }

    /// Nanoseconds since 1970.
    pub(super) fn instant(&self) -> i128 {
        i128::from(self.seconds - self.offset) * 1_000_000_000 + i128::from(self.nanoseconds)
    }

    pub(super) fn plus(self, nanoseconds: i64) -> Self {
        let total = i64::from(self.nanoseconds) + nanoseconds % 1_000_000_000;
        Self {
            seconds: self.seconds + nanoseconds / 1_000_000_000 + total.div_euclid(1_000_000_000),
            nanoseconds: total.rem_euclid(1_000_000_000) as u32,
            ..self
        }
    }

    /// Year, month and day, the latter two from 1.
    pub(super) fn date(&self) -> (i64, i64, i64) {
        // Years that start in March have their odd day at the end; 400 of them are 146,097 days.
        let days = self.seconds.div_euclid(DAY) + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        (year, month, day)
    }

    /// Hour, minute and second.
    pub(super) fn clock(&self) -> (i64, i64, i64) {
        let seconds = self.seconds.rem_euclid(DAY);
        (seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    /// From Sunday, which is 0.
    pub(super) fn weekday(&self) -> usize {
        // The first of January 1970 was a Thursday.
        (self.seconds.div_euclid(DAY) + 4).rem_euclid(7) as usize
    }

    pub(super) fn offset(&self) -> i64 {
        self.offset
    }

    /// `+01:00`, with `between` between hours and minutes.
    pub(super) fn numeric_zone(&self, between: &str) -> String {
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.abs() / 60;
        format!("{sign}{:02}{between}{:02}", minutes / 60, minutes % 60)
    }

    /// The same, but `Z` for UTC.
    pub(super) fn zone(&self) -> String {
        if self.offset == 0 {
            return "Z".to_owned();
        }
        self.numeric_zone(":")
    }

    /// Without parts of seconds.
    pub(in crate::functions) fn rfc3339(&self) -> String {
        let (year, month, day) = self.date();
        let (hour, minute, second) = self.clock();
        let sign = if year < 0 { "-" } else { "" };
        let (year, zone) = (year.abs(), self.zone());
        format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
    }
}

/// From the first of January 1970.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

struct Reader<'t> {
    rest: &'t str,
    form: Form,
}

impl Reader<'_> {
    fn byte(&mut self, byte: u8) -> Option<()> {
        (self.rest.as_bytes().first() == Some(&byte)).then(|| self.rest = &self.rest[1..])
    }

    /// A number of at most `most` digits, below `limit`.
    fn number(&mut self, least: usize, most: usize, limit: i64) -> Option<i64> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let count = digits.min(most);
        if count < least {
            return None;
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits.parse().ok().filter(|number| *number < limit)
    }

    fn two(&mut self, limit: i64) -> Option<i64> {
        let least = if self.form == Form::Short { 1 } else { 2 };
        self.number(least, 2, limit)
    }

    fn date(&mut self) -> Option<(i64, i64, i64)> {
        let year = self.number(4, 4, 10_000)?;
        self.byte(b'-')?;
        let month = self.two(13)?;
        self.byte(b'-')?;
        Some((year, month, self.two(32)?))
    }

    /// Seconds of the day, and nanoseconds.
    fn clock(&mut self) -> Option<(i64, u32)> {
        let hour = self.number(1, 2, 24)?;
        self.byte(b':')?;
        let minute = self.two(60)?;
        self.byte(b':')?;
        let second = self.two(60)?;
        let mut nanoseconds = 0;
        if self.byte(b'.').is_some() {
            let before = self.rest.len();
            let fraction = self.number(1, 9, 1_000_000_000)?;
            nanoseconds = fraction * 10i64.pow(9 - (before - self.rest.len()) as u32);
        }
        Some((hour * 3600 + minute * 60 + second, nanoseconds as u32))
    }

    fn zone(&mut self) -> Option<i64> {
        if self.byte(b'Z').is_some() {
            return Some(0);
        }
        let sign = if self.byte(b'-').is_some() {
            -1
        } else {
            self.byte(b'+')?;
            1
        };
        let hours = self.number(2, 2, 100)?;
        self.byte(b':')?;
        let minutes = self.number(2, 2, 100)?;
        Some(sign * (hours * 3600 + minutes * 60))
    }
}
