//! Time as an input.
//!
//! In: nothing, or the system's clock. Out: [`Timestamp`]s. May not: be called by a pure stage;
//! those are given a timestamp.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The time `duration` later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// How long ago `earlier` was; nothing if it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads RFC 3339.
    pub fn parse(text: &str) -> Result<Self, jiff::Error> {
        text.parse::<jiff::Timestamp>()
            .map(|time| Self(time.as_millisecond()))
    }
}

impl From<nstance_state::Timestamp> for Timestamp {
    fn from(time: nstance_state::Timestamp) -> Self {
        Self(time.0)
    }
}

impl From<Timestamp> for nstance_state::Timestamp {
    fn from(time: Timestamp) -> Self {
        Self(time.0)
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, to the second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{}", time.strftime("%Y-%m-%dT%H:%M:%SZ")),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// Tells the time and waits.
pub trait Clock: Send + Sync {
    /// The time.
    fn now(&self) -> Timestamp;
    /// Returns after `duration`.
    fn sleep(&self, duration: Duration);
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_millisecond())
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// A clock that stands at a given time (`--now`); waiting moves it on at once, so that nothing
/// under it takes real time.
#[derive(Debug)]
pub struct FixedClock(std::sync::atomic::AtomicI64);

impl FixedClock {
    /// A clock that stands at `time`.
    pub fn new(time: Timestamp) -> Self {
        Self(time.0.into())
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(std::sync::atomic::Ordering::SeqCst))
    }

    fn sleep(&self, duration: Duration) {
        let milliseconds = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.0
            .fetch_add(milliseconds, std::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_read_and_print_rfc_3339() {
        let time = Timestamp::parse("2026-11-21T09:30:00.250Z").unwrap();
        assert_eq!(time.to_string(), "2026-11-21T09:30:00Z");
        assert_eq!(time.0 % 1000, 250);
        assert!(Timestamp::parse("yesterday").is_err());
    }
}
