//! Rate limits: token buckets, as clouds use them.
//!
//! In: the size and rate of a bucket. Out: a wait before a call. Must not: use another clock than
//! the given one.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Timestamp};

/// The size and rate of a bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The number of calls in a burst.
    pub burst: u32,
    /// The number of calls per second.
    pub per_second: f64,
}

/// A bucket of tokens, one per call. If it is empty, a caller reserves the next token and waits for
/// it, so calls leave in order and never faster than the rate.
pub(super) struct Bucket {
    rate: Rate,
    level: Mutex<Level>,
}

struct Level {
    /// Negative if tokens are reserved in advance.
    tokens: f64,
    at: Option<Timestamp>,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            level: Mutex::new(Level {
                tokens: f64::from(rate.burst),
                at: None,
            }),
        }
    }

    /// Takes a token; waits if there is none.
    pub(super) fn take(&self, clock: &dyn Clock) {
        let wait = self.reserve(clock.now());
        if !wait.is_zero() {
            clock.sleep(wait);
        }
    }

    fn reserve(&self, now: Timestamp) -> Duration {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = level.at.map_or(Duration::ZERO, |at| now.since(at));
        let filled = level.tokens + passed.as_secs_f64() * self.rate.per_second;
        level.tokens = filled.min(f64::from(self.rate.burst)) - 1.0;
        level.at = Some(level.at.map_or(now, |at| at.max(now)));
        Duration::from_secs_f64((-level.tokens / self.rate.per_second).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FixedClock;

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let clock = FixedClock::new(Timestamp(1_000_000));
        let bucket = Bucket::new(Rate {
            burst: 3,
            per_second: 2.0,
        });
        let mut times = Vec::new();
        for _ in 0..6 {
            bucket.take(&clock);
            times.push(clock.now().0 - 1_000_000);
        }
        assert_eq!(times, [0, 0, 0, 500, 1000, 1500]);
        // It refills up to its size.
        clock.sleep(Duration::from_mins(1));
        let start = clock.now().0;
        for _ in 0..4 {
            bucket.take(&clock);
        }
        assert_eq!(clock.now().0 - start, 500);
    }

    #[test]
    fn calls_that_come_together_wait_for_different_tokens() {
        let bucket = Bucket::new(Rate {
            burst: 1,
            per_second: 10.0,
        });
        let now = Timestamp(0);
        let waits: Vec<u128> = (0..4).map(|_| bucket.reserve(now).as_millis()).collect();
        assert_eq!(waits, [0, 100, 200, 300]);
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_away() {
        let bucket = Bucket::new(Rate {
            burst: 1,
            per_second: 1.0,
        });
        assert_eq!(bucket.reserve(Timestamp(10_000)), Duration::ZERO);
        assert_eq!(bucket.reserve(Timestamp(5_000)), Duration::from_secs(1));
        assert_eq!(bucket.reserve(Timestamp(10_000)), Duration::from_secs(2));
    }
}
