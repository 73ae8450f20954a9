//! The log of calls.
//!
//! In: calls as they end. Out: what tests ask of them. May not: change them.

use crate::query::Query;

/// A call, and what became of it.
#[derive(Clone, Debug)]
pub struct Call {
    pub query: Query,
    pub outcome: Outcome,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It went well.
    Answered,
    /// It ended with this code.
    Refused(String),
    /// Its connection was closed; whether it had its effect.
    Lost { effect: bool },
}
