//! An instance's states over time.
//!
//! In: events and their times. Out: its state at any time. Must not: read a clock. Nothing runs in
//! the background; the state is computed when it is read.

use std::time::Duration;

use rusqlite::Row;

use crate::clock::Timestamp;
use crate::provider::LifecycleState;

use super::SimError;

/// A state, and up to two later ones with their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeline {
    first: LifecycleState,
    next: Option<(Timestamp, LifecycleState)>,
    then: Option<(Timestamp, LifecycleState)>,
}

/// The columns that hold a timeline, in the order of [`Timeline::read`].
pub(super) const COLUMNS: &str = "state, next_at, next_state, then_at, then_state";

impl Timeline {
    /// In this state from now on.
    pub(super) fn steady(state: LifecycleState) -> Self {
        Self {
            first: state,
            next: None,
            then: None,
        }
    }

    /// Starting.
    pub(super) fn booting(now: Timestamp, takes: Duration) -> Self {
        Self::steady(LifecycleState::Pending).followed(now.after(takes), LifecycleState::Running)
    }

    /// Stopping and starting again.
    pub(super) fn restarting(now: Timestamp, takes: Duration) -> Self {
        let down = now.after(takes);
        Self {
            first: LifecycleState::Stopping,
            next: Some((down, LifecycleState::Pending)),
            then: Some((down.after(takes), LifecycleState::Running)),
        }
    }

    /// Terminating.
    pub(super) fn ending(now: Timestamp, takes: Duration) -> Self {
        Self::steady(LifecycleState::ShuttingDown)
            .followed(now.after(takes), LifecycleState::Terminated)
    }

    fn followed(self, at: Timestamp, state: LifecycleState) -> Self {
        Self {
            next: Some((at, state)),
            ..self
        }
    }

    /// The state at a time.
    pub(super) fn at(&self, now: Timestamp) -> LifecycleState {
        [self.then, self.next]
            .into_iter()
            .flatten()
            .find(|(at, _)| *at <= now)
            .map_or(self.first, |(_, state)| state)
    }

    /// Since when it runs; `None` if it doesn't, or if the time isn't known.
    pub(super) fn running_since(&self, now: Timestamp) -> Option<Timestamp> {
        let mut steps = [self.then, self.next].into_iter().flatten();
        let (at, state) = steps.find(|(at, _)| *at <= now)?;
        (state == LifecycleState::Running).then_some(at)
    }

    /// Reads [`COLUMNS`], the first of which is column `from`.
    ///
    /// Fails if the row is invalid.
    pub(super) fn read(row: &Row<'_>, from: usize) -> Result<Self, SimError> {
        let step = |column| -> Result<_, SimError> {
            let at: Option<i64> = row.get(column)?;
            let code: Option<i64> = row.get(column + 1)?;
            Ok(match (at, code) {
                (Some(at), Some(code)) => Some((Timestamp(at), state_of(code)?)),
                _ => None,
            })
        };
        Ok(Self {
            first: state_of(row.get(from)?)?,
            next: step(from + 1)?,
            then: step(from + 3)?,
        })
    }

    /// The values of [`COLUMNS`].
    pub(super) fn columns(&self) -> [Option<i64>; 5] {
        let at = |step: Option<(Timestamp, LifecycleState)>| step.map(|(at, _)| at.0);
        let state =
            |step: Option<(Timestamp, LifecycleState)>| step.map(|(_, state)| code_of(state));
        [
            Some(code_of(self.first)),
            at(self.next),
            state(self.next),
            at(self.then),
            state(self.then),
        ]
    }
}

fn code_of(state: LifecycleState) -> i64 {
    match state {
        LifecycleState::Pending => 0,
        LifecycleState::Running => 1,
        LifecycleState::Stopping => 2,
        LifecycleState::Stopped => 3,
        LifecycleState::ShuttingDown => 4,
        LifecycleState::Terminated => 5,
    }
}

fn state_of(code: i64) -> Result<LifecycleState, SimError> {
    Ok(match code {
        0 => LifecycleState::Pending,
        1 => LifecycleState::Running,
        2 => LifecycleState::Stopping,
        3 => LifecycleState::Stopped,
        4 => LifecycleState::ShuttingDown,
        5 => LifecycleState::Terminated,
        _ => {
            return Err(SimError::Database(
                rusqlite::Error::IntegralValueOutOfRange(0, code),
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_each_other_in_time() {
        use LifecycleState as S;
        let start = Timestamp(1_000);
        let takes = Duration::from_millis(10);
        for (timeline, states) in [
            (
                Timeline::booting(start, takes),
                [S::Pending, S::Running, S::Running],
            ),
            (
                Timeline::restarting(start, takes),
                [S::Stopping, S::Pending, S::Running],
            ),
            (
                Timeline::ending(start, takes),
                [S::ShuttingDown, S::Terminated, S::Terminated],
            ),
            (Timeline::steady(S::Stopped), [S::Stopped; 3]),
        ] {
            for (after, state) in [0, 10, 20].into_iter().zip(states) {
                assert_eq!(timeline.at(Timestamp(1_000 + after)), state, "{after}");
            }
        }
        let at_once = Timeline::restarting(start, Duration::ZERO);
        assert_eq!(at_once.at(start), S::Running);
        assert_eq!(at_once.running_since(start), Some(start));
        let booting = Timeline::booting(start, takes);
        assert_eq!(booting.running_since(start), None);
        let later = start.after(takes * 2);
        assert_eq!(booting.running_since(later), Some(start.after(takes)));
        assert_eq!(Timeline::steady(S::Running).running_since(later), None);
    }
}
