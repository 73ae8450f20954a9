//! Faults that a test asks for.
//!
//! In: a call. Out: its fault. Must not: carry it out.

use std::time::Duration;

use crate::calls::Call;
use crate::error::{OperationError, Refusal};

/// What goes wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is answered with this error, and has no effect.
    Refuse(Refusal),
    /// It has its effect, and is answered with this error.
    RefuseAfter(Refusal),
    /// The connection ends, and there is no effect.
    LoseRequest,
    /// It has its effect, and the connection ends.
    LoseAnswer,
    /// It takes effect later.
    Delay(Duration),
    /// It has its effect, and is answered later.
    DelayAnswer(Duration),
    /// Its operation ends with this error, and has no effect.
    EndOperation(OperationError),
}

/// Which calls a fault applies to.
#[derive(Clone, Debug)]
pub struct Rule {
    method: String,
    parameter: Option<(String, String)>,
    skip: usize,
    times: usize,
    fault: Fault,
}

impl Rule {
    /// The next call of a method, as in `instances.insert`.
    pub fn next(method: &str, fault: Fault) -> Self {
        Self {
            method: method.to_owned(),
            parameter: None,
            skip: 0,
            times: 1,
            fault,
        }
    }

    /// Every call of a method, from now on.
    pub fn every(method: &str, fault: Fault) -> Self {
        Self::next(method, fault).times(usize::MAX)
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

    /// Only calls with this parameter, or this text as a member of the body.
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        Self {
            parameter: Some((name.to_owned(), value.to_owned())),
            ..self
        }
    }

    /// The fault of a call: none where the rule doesn't apply to it, or not any more.
    pub(crate) fn take(&mut self, call: &Call) -> Option<Fault> {
        let has = |(name, value): &(String, String)| {
            call.get(name) == Some(value) || call.body.get(name).is_some_and(|it| it == value)
        };
        if self.method != call.method || !self.parameter.as_ref().is_none_or(has) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        if self.times == 0 {
            return None;
        }
        if self.times != usize::MAX {
            self.times -= 1;
        }
        Some(self.fault.clone())
    }
}
