//! The log of calls.
//!
//! In: calls as they end. Out: what tests ask of them. Must not: change them.

use serde_json::Value;

/// A call, and its outcome.
#[derive(Clone, Debug)]
pub struct Call {
    /// As in `instances.insert`; a verb and a path where the document has no such method.
    pub method: String,
    /// The parameters of path and query, decoded.
    pub parameters: Vec<(String, String)>,
    /// Null where there is none.
    pub body: Value,
    /// Whether the request had an `Authorization` header.
    pub authorized: bool,
    pub outcome: Outcome,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It went well.
    Answered,
    /// It ended with this reason, as in `notFound`.
    Refused(String),
    /// Its connection was closed; whether it had its effect.
    Lost { effect: bool },
}

impl Call {
    /// The first parameter of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().filter(|(given, _)| given == name);
        found.next().map(|(_, value)| value.as_str())
    }
}
