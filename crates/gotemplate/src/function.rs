//! Functions that templates can call besides Go's own: arguments, their types, what a call may cost.
//!
//! In: the kinds of value that a function takes, and a body. Out: a [`Function`] for an
//! [`Environment`](crate::Environment). It may not know templates: the machine makes the calls.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::value::Value;

/// Why a function failed: a lower-case fragment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FunctionError(Reason);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Reason {
    #[error("{0}")]
    Message(String),
    /// The budget's steps are used up.
    #[error("the call takes more steps than the limit leaves")]
    Steps,
    /// The result is larger than an output may be.
    #[error("the result is larger than the limit of the output")]
    Output,
}

impl FunctionError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Reason::Message(message.into()))
    }

    /// Whether it is an error of the function's own, not of a limit.
    #[cfg(feature = "sprig")]
    pub(crate) fn is_message(&self) -> bool {
        matches!(self.0, Reason::Message(_))
    }

    pub(crate) fn into_reason(self) -> Reason {
        self.0
    }
}

impl From<&str> for FunctionError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<String> for FunctionError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// What a call may still cost; see [`Limits`](crate::Limits).
#[derive(Debug)]
pub struct Budget {
    steps: u64,
    output_bytes: usize,
    kept: Kept,
}

/// What calls leave for later ones of the same execution.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Regular expressions, compiled.
    #[cfg(feature = "sprig")]
    pub(crate) regexes: std::collections::HashMap<String, Arc<regex::bytes::Regex>>,
}

impl Budget {
    pub(crate) fn new(steps: u64, output_bytes: usize, kept: Kept) -> Self {
        Self {
            steps,
            output_bytes,
            kept,
        }
    }

    /// The steps that are left, and what was kept.
    pub(crate) fn end(self) -> (u64, Kept) {
        (self.steps, self.kept)
    }

    #[cfg(feature = "sprig")]
    pub(crate) fn kept(&mut self) -> &mut Kept {
        &mut self.kept
    }

    /// Takes steps, before they are done. One is worth about eight bytes made or looked at.
    pub fn charge(&mut self, steps: usize) -> Result<(), FunctionError> {
        self.steps = self
            .steps
            .checked_sub(steps as u64)
            .ok_or(FunctionError(Reason::Steps))?;
        Ok(())
    }

    /// The largest string that a function may make.
    pub fn output_bytes(&self) -> usize {
        self.output_bytes
    }

    /// Fails where a string of so many bytes, which needn't exist yet, would be too large.
    pub fn check_size(&self, bytes: usize) -> Result<(), FunctionError> {
        if bytes > self.output_bytes {
            return Err(FunctionError(Reason::Output));
        }
        Ok(())
    }
}

/// What kind of value a function takes: the type of a parameter of a Go function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `any`.
    Any,
    /// `string`.
    Str,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `int64`.
    Int64,
    /// `float64`.
    Float,
    /// `[]any`.
    List,
    /// `map[string]any`; nil stands for an empty one.
    Map,
}

impl Kind {
    /// The Go type.
    pub fn go_type(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Str => "string",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Float => "float64",
            Self::List => "[]interface {}",
            Self::Map => "map[string]interface {}",
        }
    }

    /// What a literal is as an argument of this kind; Go's words where it can't be one. `shown` is
    /// the literal as it is written.
    pub(crate) fn literal(self, value: Value, shown: &str) -> Result<Value, String> {
        let wanted = match (self, value) {
            (Self::Any, value) => return Ok(value),
            (Self::List | Self::Map, Value::Nil) => return Ok(Value::Nil),
            (_, Value::Nil) => return Err(format!("cannot assign nil to {}", self.go_type())),
            (Self::Str, value @ Value::Str(_)) | (Self::Bool, value @ Value::Bool(_)) => {
                return Ok(value);
            }
            (Self::Int, Value::Int(number)) => return Ok(Value::Int(number)),
            (Self::Int64, Value::Int(number)) => return Ok(Value::Int64(number)),
            (Self::Int | Self::Int64, Value::Float(number)) if is_whole(number) => {
                let number = number as i64;
                return Ok(match self {
                    Self::Int => Value::Int(number),
                    _ => Value::Int64(number),
                });
            }
            (Self::Float, Value::Float(number)) => return Ok(Value::Float(number)),
            (Self::Float, Value::Int(number)) => return Ok(Value::Float(number as f64)),
            (Self::Str, _) => "string",
            (Self::Bool, _) => "bool",
            (Self::Int | Self::Int64, _) => "integer",
            (Self::Float, _) => "float",
            (Self::List | Self::Map, _) => {
                let go_type = self.go_type();
                return Err(format!("can't handle {shown} for arg of type {go_type}"));
            }
        };
        Err(format!("expected {wanted}; found {shown}"))
    }

    /// Go's words where a value, which isn't a literal, isn't of this kind.
    pub(crate) fn check(self, value: &Value) -> Result<(), String> {
        let fits = match self {
            Self::Any => true,
            Self::Str => matches!(value, Value::Str(_) | Value::Unset),
            Self::Bool => matches!(value, Value::Bool(_)),
            Self::Int => matches!(value, Value::Int(_)),
            Self::Int64 => matches!(value, Value::Int64(_)),
            Self::Float => matches!(value, Value::Float(_)),
            Self::List => match value {
                Value::List(list) => list.is_of_any(),
                _ => matches!(value, Value::Missing | Value::Unset),
            },
            Self::Map => match value {
                Value::Map(map) => !map.is_string_typed(),
                _ => matches!(value, Value::Dict(_) | Value::Missing | Value::Unset),
            },
        };
        match value {
            _ if fits => Ok(()),
            // It may well be right once it is known.
            Value::Unknown(_) => Ok(()),
            Value::Missing => Err(format!("invalid value; expected {}", self.go_type())),
            other => Err(format!(
                "wrong type for value; expected {}; got {}",
                self.go_type(),
                other.go_type()
            )),
        }
    }
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_808.0
}

/// What a function does with its arguments.
pub type FunctionBody = dyn Fn(&[Value]) -> Result<Value, FunctionError> + Send + Sync;

/// The same, of a function that makes large things, and asks first.
pub type BudgetedBody = dyn Fn(&mut Budget, &[Value]) -> Result<Value, FunctionError> + Send + Sync;

#[derive(Clone)]
pub(crate) enum Action {
    Plain(Arc<FunctionBody>),
    Budgeted(Arc<BudgetedBody>),
    /// Runs an associated template.
    Include,
    /// Runs a text as a template.
    Tpl,
}

/// Which unknown arguments make a function's result unknown, without a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknowns {
    /// Any, and those that have an unknown value somewhere within.
    Deep,
    /// Those that are unknown themselves.
    Shallow,
    /// None: the function passes them on.
    Passed,
}

/// A function that templates can call.
///
/// It is given its arguments evaluated, a missing value as nil. Unless it says otherwise it isn't
/// called where an argument isn't known: the result isn't known then either.
#[derive(Clone)]
pub struct Function(Arc<Definition>);

#[derive(Clone)]
struct Definition {
    min_arguments: usize,
    max_arguments: Option<usize>,
    kinds: Cow<'static, [Kind]>,
    /// Of all arguments after those.
    rest: Kind,
    tests: bool,
    changes: bool,
    unknowns: Unknowns,
    action: Action,
}

impl Function {
    /// A function that takes at least `min_arguments` and, unless that is `None`, at most
    /// `max_arguments`; the count is checked before it is called.
    pub fn new(
        min_arguments: usize,
        max_arguments: Option<usize>,
        body: Arc<FunctionBody>,
    ) -> Self {
        Self::define(min_arguments, max_arguments, &[], Action::Plain(body))
    }

    /// A function that takes an argument of each of the `kinds`, and any number of the kind `rest`
    /// after them. Counts and types are checked as Go does, with its words for what is wrong; the
    /// body can rely on them, except that a map or list may be nil.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use nstance_gotemplate::{Environment, Function, Kind, Template, Value};
    ///
    /// let shout = Function::typed(&[Kind::Str], None, Arc::new(|arguments: &[Value]| {
    ///     let text = arguments[0].as_bytes().unwrap_or_default();
    ///     Ok(Value::Str(text.to_ascii_uppercase().into()))
    /// }));
    /// let environment = Environment::new().with_function("shout", shout);
    /// let template = Template::parse("t", "{{ shout . }}", &environment)?;
    /// assert_eq!(template.render(&"hey".into())?.output, b"HEY");
    /// let error = template.render(&3.into()).unwrap_err();
    /// assert_eq!(error.message, "wrong type for value; expected string; got int");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn typed(kinds: &[Kind], rest: Option<Kind>, body: Arc<FunctionBody>) -> Self {
        Self::of_kinds(kinds.to_vec().into(), rest, Action::Plain(body))
    }

    /// The same with a body that is told what it may cost.
    pub fn budgeted(kinds: &[Kind], rest: Option<Kind>, body: Arc<BudgetedBody>) -> Self {
        Self::of_kinds(kinds.to_vec().into(), rest, Action::Budgeted(body))
    }

    /// Helm's `include NAME DATA`: the output of an associated template, as a string.
    pub fn include() -> Self {
        let kinds: &[Kind] = &[Kind::Str, Kind::Any];
        Self::of_kinds(kinds.into(), None, Action::Include).passing_unknown()
    }

    /// Helm's `tpl TEXT DATA`: the output of a text, taken for a template of the same environment,
    /// that can call the templates associated with the one that is executing.
    pub fn tpl() -> Self {
        let kinds: &[Kind] = &[Kind::Str, Kind::Any];
        Self::of_kinds(kinds.into(), None, Action::Tpl).passing_unknown()
    }

    pub(crate) fn of_kinds(
        kinds: Cow<'static, [Kind]>,
        rest: Option<Kind>,
        action: Action,
    ) -> Self {
        let max = rest.is_none().then_some(kinds.len());
        Self(Arc::new(Definition {
            min_arguments: kinds.len(),
            max_arguments: max,
            kinds,
            rest: rest.unwrap_or(Kind::Any),
            tests: false,
            changes: false,
            unknowns: Unknowns::Deep,
            action,
        }))
    }

    fn define(
        min_arguments: usize,
        max_arguments: Option<usize>,
        kinds: &'static [Kind],
        action: Action,
    ) -> Self {
        Self(Arc::new(Definition {
            min_arguments,
            max_arguments,
            kinds: kinds.into(),
            rest: Kind::Any,
            tests: false,
            changes: false,
            unknowns: Unknowns::Deep,
            action,
        }))
    }

    fn change(mut self, change: impl FnOnce(&mut Definition)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// The same function, which asks of its arguments whether they are there: that one is unset is
    /// nothing to report.
    #[must_use]
    pub fn testing(self) -> Self {
        self.change(|definition| definition.tests = true)
    }

    /// The same function, which may change a [`Dict`](crate::Dict) that it is given.
    #[must_use]
    pub fn changing(self) -> Self {
        self.change(|definition| definition.changes = true)
    }

    /// The same function, which is called with arguments that aren't known, too, as
    /// [`Value::Unknown`]. It has to pass them on into its result wherever that depends on them.
    #[must_use]
    pub fn passing_unknown(self) -> Self {
        self.with_unknowns(Unknowns::Passed)
    }

    pub(crate) fn with_unknowns(self, unknowns: Unknowns) -> Self {
        self.change(|definition| definition.unknowns = unknowns)
    }

    pub(crate) fn counts(&self) -> (usize, Option<usize>) {
        (self.0.min_arguments, self.0.max_arguments)
    }

    /// The kind of the argument at an index.
    pub(crate) fn kind(&self, argument: usize) -> Kind {
        self.0.kinds.get(argument).copied().unwrap_or(self.0.rest)
    }

    pub(crate) fn tests(&self) -> bool {
        self.0.tests
    }

    pub(crate) fn changes(&self) -> bool {
        self.0.changes
    }

    pub(crate) fn unknowns(&self) -> Unknowns {
        self.0.unknowns
    }

    pub(crate) fn action(&self) -> &Action {
        &self.0.action
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Function")
            .field("min_arguments", &self.0.min_arguments)
            .field("max_arguments", &self.0.max_arguments)
            .finish_non_exhaustive()
    }
}
