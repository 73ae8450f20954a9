//! The function library: what a function is, and where to find one by its name.
//!
//! Comes in: arguments that have the types of the parameters. Goes out: a value or an error. A
//! function reads nothing but its arguments and the context's files; no clock, no randomness. What
//! is sensitive isn't its concern: the evaluator marks the result.

use crate::context::{Context, LimitReached};
use crate::types::Type;
use crate::value::Value;

/// One parameter.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// Arguments are converted to it.
    pub of: Type,
    /// Whether the argument may be `null`.
    pub nullable: bool,
}

/// A function.
#[derive(Debug)]
pub struct Signature {
    pub name: &'static str,
    pub parameters: Vec<Parameter>,
    /// What may follow the parameters, any number of times.
    pub variadic: Option<Parameter>,
    pub body: Body,
}

/// What a function does. There are as many arguments as parameters, or more if it is variadic.
pub type Body = fn(&Context, &[Value]) -> Result<Value, CallError>;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// The argument at fault, counted from 0.
    pub argument: Option<usize>,
    /// A sentence without its full stop.
    pub message: String,
}

impl CallError {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            argument: None,
            message: message.into(),
        }
    }

    pub fn argument(index: usize, message: impl Into<String>) -> Self {
        Self {
            argument: Some(index),
            message: message.into(),
        }
    }
}

impl From<LimitReached> for CallError {
    fn from(limit: LimitReached) -> Self {
        Self::new(limit.0)
    }
}

/// The function of this name.
pub fn lookup(_name: &str) -> Option<&'static Signature> {
    None
}

/// All names, in order; those of the evaluator's own forms (`try`, `can`, …) aren't among them.
pub fn names() -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}
