//! Go's built-in functions.
//!
//! In: evaluated arguments. Out: a value, or Go's words for why there is none. `and` and `or` stop
//! early, so the machine does them itself; `printf`'s format is checked there, too.

mod compare;
mod escape;
mod index;

use crate::format::{self, Sink};
use crate::value::Value;

/// A built-in function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    And,
    Call,
    Eq,
    Ge,
    Gt,
    Html,
    Index,
    Js,
    Le,
    Len,
    Lt,
    Ne,
    Not,
    Or,
    Print,
    Printf,
    Println,
    Slice,
    Urlquery,
}

const BUILTINS: [(&str, Builtin); 19] = [
    ("and", Builtin::And),
    ("call", Builtin::Call),
    ("eq", Builtin::Eq),
    ("ge", Builtin::Ge),
    ("gt", Builtin::Gt),
    ("html", Builtin::Html),
    ("index", Builtin::Index),
    ("js", Builtin::Js),
    ("le", Builtin::Le),
    ("len", Builtin::Len),
    ("lt", Builtin::Lt),
    ("ne", Builtin::Ne),
    ("not", Builtin::Not),
    ("or", Builtin::Or),
    ("print", Builtin::Print),
    ("printf", Builtin::Printf),
    ("println", Builtin::Println),
    ("slice", Builtin::Slice),
    ("urlquery", Builtin::Urlquery),
];

/// An argument: its value, and whether Go sees it through an interface.
pub(crate) struct Argument<'a> {
    pub(crate) value: &'a Value,
    pub(crate) interface: bool,
}

/// Why a function has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Go's words, and what is meant where they don't say.
    Error(String),
    /// The result is too big.
    TooBig,
    /// `printf` was asked for more than so wide a field, or so high a precision, as is allowed.
    TooWide(u64),
}

pub(crate) type Outcome = Result<Value, Failure>;

pub(crate) fn error<T>(message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Error(message.into()))
}

impl Builtin {
    pub(crate) fn named(name: &str) -> Option<Self> {
        let found = BUILTINS
            .binary_search_by(|(known, _)| (*known).cmp(name))
            .ok()?;
        Some(BUILTINS[found].1)
    }

    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        BUILTINS.iter().map(|(name, _)| *name)
    }

    /// The least and the greatest number of arguments.
    pub(crate) fn arguments(self) -> (usize, Option<usize>) {
        match self {
            Self::Html | Self::Js | Self::Print | Self::Println | Self::Urlquery => (0, None),
            Self::Len | Self::Not => (1, Some(1)),
            Self::Ge | Self::Gt | Self::Le | Self::Lt | Self::Ne => (2, Some(2)),
            Self::And
            | Self::Call
            | Self::Eq
            | Self::Index
            | Self::Or
            | Self::Printf
            | Self::Slice => (1, None),
        }
    }

    /// Calls the function. `limit` bounds the bytes of a string that it makes, `width` what
    /// `printf` pads to; `callee` shows the first argument's source.
    pub(crate) fn call(
        self,
        arguments: &[Argument<'_>],
        limit: usize,
        width: usize,
        callee: impl FnOnce() -> String,
    ) -> Outcome {
        match self {
            Self::And | Self::Or => error("unreachable"),
            Self::Call => match arguments[0].value {
                Value::Nil | Value::Missing => error("call of nil"),
                value => error(format!(
                    "non-function {} of type {}",
                    callee(),
                    value.go_type()
                )),
            },
            Self::Eq => compare::eq(arguments).map(Value::Bool),
            Self::Ne => compare::eq(arguments).map(|equal| Value::Bool(!equal)),
            Self::Lt => compare::lt(arguments).map(Value::Bool),
            Self::Le => compare::le(arguments).map(Value::Bool),
            Self::Gt => compare::le(arguments).map(|less| Value::Bool(!less)),
            Self::Ge => compare::lt(arguments).map(|less| Value::Bool(!less)),
            Self::Index => index::index(arguments),
            Self::Len => index::len(arguments[0].value),
            Self::Slice => index::slice(arguments),
            Self::Not => Ok(Value::Bool(!arguments[0].value.truth())),
            Self::Print => text(limit, |sink| format::print(sink, &values(arguments), false)),
            Self::Println => text(limit, |sink| format::print(sink, &values(arguments), true)),
            Self::Printf => {
                let template = arguments[0].value.as_bytes().unwrap_or_default();
                let arguments = values(&arguments[1..]);
                let mut too_wide = None;
                let written = text(limit, |sink| {
                    too_wide = format::printf(sink, template, &arguments, width).err();
                });
                match too_wide {
                    Some(format::TooWide(width)) => Err(Failure::TooWide(width)),
                    None => written,
                }
            }
            Self::Html => escaped(arguments, limit, escape::html),
            Self::Js => escaped(arguments, limit, escape::js),
            Self::Urlquery => escaped(arguments, limit, escape::url_query),
        }
    }
}

fn values<'a>(arguments: &[Argument<'a>]) -> Vec<&'a Value> {
    arguments.iter().map(|argument| argument.value).collect()
}

/// A string that is written into a bounded buffer.
fn text(limit: usize, write: impl FnOnce(&mut Sink<'_>)) -> Outcome {
    let mut bytes = Vec::new();
    let mut sink = Sink::new(&mut bytes, limit);
    write(&mut sink);
    if sink.overflowed() {
        return Err(Failure::TooBig);
    }
    Ok(Value::Str(bytes.into()))
}

/// Escapes what `print` makes of the arguments, a missing one being `<no value>`.
fn escaped(arguments: &[Argument<'_>], limit: usize, escape: fn(&mut Sink<'_>, &[u8])) -> Outcome {
    if let [Argument { value, .. }] = arguments
        && let Some(bytes) = value.as_bytes()
    {
        return text(limit, |sink| escape(sink, bytes));
    }
    let absent = Value::from("<no value>");
    let values: Vec<&Value> = arguments
        .iter()
        .map(|argument| match argument.value {
            Value::Nil | Value::Missing => &absent,
            value => value,
        })
        .collect();
    let mut plain = Vec::new();
    let mut sink = Sink::new(&mut plain, limit);
    format::print(&mut sink, &values, false);
    if sink.overflowed() {
        return Err(Failure::TooBig);
    }
    text(limit, |sink| escape(sink, &plain))
}
