//! What goes wrong when a test says so.
//!
//! In: a call. Out: what is to become of it. May not: carry it out.

use std::time::Duration;

use crate::error::Refusal;
use crate::query::Query;

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is answered so, and has no effect.
    Refuse(Refusal),
    /// It has its effect, and is answered so.
    RefuseAfter(Refusal),
    /// The connection ends, and there is no effect.
    LoseRequest,
    /// It has its effect, and the connection ends.
    LoseAnswer,
    /// It takes effect later.
    Delay(Duration),
    /// It has its effect, and is answered later.
    DelayAnswer(Duration),
}

/// Which calls a fault is for.
#[derive(Clone, Debug)]
pub struct Rule {
    action: String,
    parameter: Option<(String, String)>,
    skip: usize,
    times: usize,
    fault: Fault,
}

impl Rule {
    /// The next call of an action.
    pub fn next(action: &str, fault: Fault) -> Self {
        Self {
            action: action.to_owned(),
            parameter: None,
            skip: 0,
            times: 1,
            fault,
        }
    }

    /// Every call of an action, from now on.
    pub fn every(action: &str, fault: Fault) -> Self {
        Self::next(action, fault).times(usize::MAX)
    }

    /// So many calls, not one.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    /// Not the first so many calls.
    #[must_use]
    pub fn after(self, skip: usize) -> Self {
        Self { skip, ..self }
    }

    /// Only calls with this parameter.
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        Self {
            parameter: Some((name.to_owned(), value.to_owned())),
            ..self
        }
    }

    /// What this rule makes of a call: none where it isn't for it, or not any more.
    pub(crate) fn take(&mut self, query: &Query) -> Option<Fault> {
        let fits = self.action == query.action
            && self
                .parameter
                .as_ref()
                .is_none_or(|(name, value)| query.get(name) == Some(value));
        if !fits {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        if self.times == 0 {
            return None;
        }
        self.times = self
            .times
            .saturating_sub(usize::from(self.times != usize::MAX));
        Some(self.fault.clone())
    }
}
