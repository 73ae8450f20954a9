//! What a template is parsed and executed with: functions, delimiters, missing keys, limits.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::code::{Body, Callee};
use crate::functions::Builtin;
use crate::value::Value;

/// What a field of a `map` gives where the map has no such key: Go's `missingkey` option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// No value, printed as `<no value>`.
    #[default]
    Default,
    /// The zero value of the map's values.
    Zero,
    /// An error.
    Error,
}

/// Bounds on what a template may cost. An error that comes of one names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Operations that an execution may take. A function's result counts one for each 16 bytes,
    /// which bounds memory too.
    pub steps: u64,
    /// Bytes that an execution may write.
    pub output_bytes: usize,
    /// Templates that may call one another, one within the other. Go's limit by default.
    pub template_depth: u32,
    /// Parentheses within parentheses, and blocks within blocks. Go's limit of parentheses by
    /// default.
    pub nesting: u32,
    /// The widest field and the highest precision of `printf`. By default Go's limit, above which
    /// a format prints Go's `%!(BADWIDTH)` and the like, and which can't be raised; above a lower
    /// one, `printf` is an error.
    pub printf_width: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 20_000_000,
            output_bytes: 16 << 20,
            template_depth: 100_000,
            nesting: 10_000,
            printf_width: 1_000_000,
        }
    }
}

/// Why a function failed: a lower-case fragment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FunctionError(String);

impl FunctionError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
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

/// What a function does with its arguments.
pub type FunctionBody = dyn Fn(&[Value]) -> Result<Value, FunctionError> + Send + Sync;

/// A function that templates can call.
///
/// It is given its arguments evaluated, a missing value as nil. It isn't called where an argument
/// isn't known: the result isn't known then either.
#[derive(Clone)]
pub struct Function {
    min_arguments: usize,
    max_arguments: Option<usize>,
    body: Arc<FunctionBody>,
}

impl Function {
    /// A function that takes at least `min_arguments` and, unless that is `None`, at most
    /// `max_arguments`; the count is checked before it is called.
    pub fn new(
        min_arguments: usize,
        max_arguments: Option<usize>,
        body: Arc<FunctionBody>,
    ) -> Self {
        Self {
            min_arguments,
            max_arguments,
            body,
        }
    }

    pub(crate) fn call(&self, arguments: &[Value]) -> Result<Value, FunctionError> {
        (self.body)(arguments)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Function")
            .field("min_arguments", &self.min_arguments)
            .field("max_arguments", &self.max_arguments)
            .finish_non_exhaustive()
    }
}

/// Everything outside a template's text that decides what it means.
#[derive(Clone, Debug)]
pub struct Environment {
    functions: BTreeMap<String, Function>,
    left: String,
    right: String,
    missing_key: MissingKey,
    limits: Limits,
}

impl Default for Environment {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment {
    /// Go's own: its built-in functions, `{{` and `}}`, `missingkey=default`.
    pub fn new() -> Self {
        Self {
            functions: BTreeMap::new(),
            left: "{{".to_owned(),
            right: "}}".to_owned(),
            missing_key: MissingKey::Default,
            limits: Limits::default(),
        }
    }

    /// Adds a function, which takes the place of a built-in one of that name.
    #[must_use]
    pub fn with_function(mut self, name: &str, function: Function) -> Self {
        self.functions.insert(name.to_owned(), function);
        self
    }

    /// Other delimiters; an empty one stands for the default.
    #[must_use]
    pub fn with_delimiters(mut self, left: &str, right: &str) -> Self {
        self.left = String::from(if left.is_empty() { "{{" } else { left });
        self.right = String::from(if right.is_empty() { "}}" } else { right });
        self
    }

    /// What missing keys give.
    #[must_use]
    pub fn with_missing_key(mut self, missing_key: MissingKey) -> Self {
        self.missing_key = missing_key;
        self
    }

    /// Other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub(crate) fn left(&self) -> &str {
        &self.left
    }

    pub(crate) fn right(&self) -> &str {
        &self.right
    }

    /// The missing-key mode.
    pub fn missing_key(&self) -> MissingKey {
        self.missing_key
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn function(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    /// The names of all functions, built-in ones included.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        let builtin = Builtin::names().map(|name| -> &str { name });
        builtin.chain(self.functions.keys().map(String::as_str))
    }
}

impl Callee {
    pub(crate) fn is(&self, builtin: Builtin) -> bool {
        matches!(self.body, Body::Builtin(body) if body == builtin)
    }

    /// Whether it is `and` (false) or `or` (true), which stop early.
    pub(crate) fn logic(&self) -> Option<bool> {
        match self.body {
            Body::Builtin(Builtin::And) => Some(false),
            Body::Builtin(Builtin::Or) => Some(true),
            _ => None,
        }
    }

    /// Whether it asks of its arguments whether they are set.
    pub(crate) fn tests_truth(&self) -> bool {
        match self.body {
            Body::Builtin(body) => matches!(body, Builtin::And | Builtin::Or | Builtin::Not),
            Body::Other(_) => &*self.name == "default",
        }
    }

    /// Go's words for a number of arguments that the function doesn't take.
    pub(crate) fn wrong_count(&self, arguments: u32, piped: u32) -> Option<String> {
        let (min, max) = match &self.body {
            Body::Builtin(builtin) => builtin.arguments(),
            Body::Other(function) => (function.min_arguments, function.max_arguments),
        };
        let count = (arguments + piped) as usize;
        let name = &self.name;
        match max {
            Some(max) if max == min && count != min => Some(format!(
                "wrong number of args for {name}: want {min} got {count}"
            )),
            Some(max) if count > max => Some(format!(
                "wrong number of args for {name}: want at most {max} got {count}"
            )),
            _ if count < min => Some(format!(
                "wrong number of args for {name}: want at least {min} got {arguments}"
            )),
            _ => None,
        }
    }
}

/// The known name that is nearest to a wrong one, if any is near.
pub(crate) fn nearest<'n>(wrong: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    known
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, _)| *distance <= 1 + wrong.chars().count() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name.to_owned())
}

fn distance(wrong: &str, name: &str) -> usize {
    // A long name can't be meant by a short one; looking would only take time.
    if wrong.len().abs_diff(name.len()) > 1 + wrong.len() / 4 || wrong.len() > 256 {
        return usize::MAX;
    }
    if wrong.eq_ignore_ascii_case(name) {
        return 0;
    }
    strsim::damerau_levenshtein(wrong, name)
}
