//! A clock that never depends on the time.
//!
//! In: nothing. Out: timestamps as Compute Engine writes them, each a second after the last. Must
//! not: ask the machine for the time.

/// Seconds since 2026-01-01, in Google's time zone.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    seconds: u64,
}

impl Clock {
    /// The next timestamp.
    pub(crate) fn tick(&mut self) -> String {
        self.seconds += 1;
        let (mut day, time) = (self.seconds / 86_400, self.seconds % 86_400);
        let mut year = 2026;
        let mut month = 1;
        loop {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 if leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            if day < length {
                break;
            }
            day -= length;
            month += 1;
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        format!(
            "{year}-{month:02}-{:02}T{:02}:{:02}:{:02}.000-08:00",
            day + 1,
            time / 3_600,
            time / 60 % 60,
            time % 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn days_months_and_years_pass() {
        for (seconds, expected) in [
            (0, "2026-01-01T00:00:01.000-08:00"),
            (86_399, "2026-01-02T00:00:00.000-08:00"),
            (59 * 86_400, "2026-03-01T00:00:01.000-08:00"),
            (365 * 86_400, "2027-01-01T00:00:01.000-08:00"),
            ((2 * 365 + 59) * 86_400, "2028-02-29T00:00:01.000-08:00"),
        ] {
            assert_eq!(Clock { seconds }.tick(), expected);
        }
    }
}
