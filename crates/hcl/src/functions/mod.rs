//! The function library: what a function is, and where to find one by its name.
//!
//! Comes in: arguments that have the types of the parameters. Goes out: a value or an error. A function reads
//! nothing but its arguments and the context's files; no clock, no randomness.

mod collection;
mod decode;
mod encoding;
pub(crate) mod files;
mod format;
mod hash;
mod net;
mod numeric;
mod rsa;
mod search;
mod set;
mod string;
mod time;
mod types;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::context::{Context, LimitReached};
use crate::number::{Number, NumberError};
use crate::types::Type;
use crate::value::Value;

/// What becomes of an argument's being sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitivity {
    /// If anything in the argument is sensitive, the whole result is.
    Spreads,
    /// If the argument itself is sensitive, the result is; what it holds keeps its own.
    Outer,
}

/// One parameter.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// Arguments are converted to it.
    pub of: Type,
    /// Whether the argument may be `null`.
    pub nullable: bool,
    pub sensitivity: Sensitivity,
}

impl Parameter {
    fn new(name: &'static str, of: Type) -> Self {
        Self {
            name,
            of,
            nullable: false,
            sensitivity: Sensitivity::Spreads,
        }
    }

    fn any(name: &'static str) -> Self {
        Self::new(name, Type::Any)
    }

    pub(crate) fn string(name: &'static str) -> Self {
        Self::new(name, Type::String)
    }

    fn number(name: &'static str) -> Self {
        Self::new(name, Type::Number)
    }

    fn list(name: &'static str, of: Type) -> Self {
        Self::new(name, Type::list(of))
    }

    /// What the function gets to see of a converted argument, and whether its result is sensitive
    /// for that.
    pub(crate) fn take(&self, argument: Value) -> (Value, bool) {
        let sensitive = argument.sensitive;
        if self.sensitivity == Sensitivity::Spreads && argument.is_sensitive_within() {
            return (argument.without_sensitivity(), true);
        }
        (argument.nonsensitive(), sensitive)
    }

    fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    fn outer(mut self) -> Self {
        self.sensitivity = Sensitivity::Outer;
        self
    }
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

impl From<NumberError> for CallError {
    fn from(error: NumberError) -> Self {
        let text = error.to_string();
        let mut letters = text.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        Self::new(first.into_iter().chain(letters).collect::<String>())
    }
}

impl Signature {
    fn new(name: &'static str, parameters: impl Into<Vec<Parameter>>, body: Body) -> Self {
        Self {
            name,
            parameters: parameters.into(),
            variadic: None,
            body,
        }
    }

    fn and_any_number_of(mut self, parameter: Parameter) -> Self {
        self.variadic = Some(parameter);
        self
    }
}

static FUNCTIONS: LazyLock<BTreeMap<&'static str, Signature>> = LazyLock::new(|| {
    [
        numeric::signatures(),
        string::signatures(),
        search::signatures(),
        collection::signatures(),
        set::signatures(),
        hash::signatures(),
        net::signatures(),
        types::signatures(),
        encoding::signatures(),
        format::signatures(),
        decode::signatures(),
        time::signatures(),
        rsa::signatures(),
        files::signatures(),
    ]
    .into_iter()
    .flatten()
    .map(|signature| (signature.name, signature))
    .collect()
});

/// What looks like a function but is a form of the evaluator: it needs more than its arguments'
/// values.
pub const FORMS: [&str; 7] = [
    "can",
    "issensitive",
    "nonsensitive",
    "sensitive",
    "templatefile",
    "templatestring",
    "try",
];

/// Terraform has these. Their result would differ from run to run, and so would every plan.
pub const REFUSED: [&str; 4] = ["bcrypt", "plantimestamp", "timestamp", "uuid"];

/// The function of this name.
pub fn lookup(name: &str) -> Option<&'static Signature> {
    FUNCTIONS.get(name)
}

/// All names, in order; those of [`FORMS`] aren't among them.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.keys().copied()
}

/// The text of an argument whose parameter is a string.
fn text(arguments: &[Value], index: usize) -> Result<&str, CallError> {
    arguments
        .get(index)
        .and_then(Value::as_str)
        .ok_or_else(|| CallError::argument(index, "A string is required"))
}

/// The number of an argument whose parameter is one.
fn number(arguments: &[Value], index: usize) -> Result<&Number, CallError> {
    arguments
        .get(index)
        .and_then(Value::as_number)
        .ok_or_else(|| CallError::argument(index, "A number is required"))
}

/// A number that must be whole and not too large.
fn whole(arguments: &[Value], index: usize) -> Result<i64, CallError> {
    let number = number(arguments, index)?;
    number.to_i64().ok_or_else(|| {
        CallError::argument(
            index,
            format!("A whole number below 2^63 is required, not {number}"),
        )
    })
}

#[cfg(test)]
mod tests;
