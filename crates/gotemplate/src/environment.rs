//! What a template is parsed and executed with: functions, delimiters, missing keys, limits.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::code::{Body, Callee};
use crate::function::{Action, Function};
use crate::functions::Builtin;

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

type Name = Cow<'static, str>;

/// Everything outside a template's text that decides what it means.
#[derive(Clone, Debug)]
pub struct Environment {
    functions: Arc<BTreeMap<Name, Function>>,
    /// Why functions that one may look for are left out.
    left_out: Arc<BTreeMap<Name, Name>>,
    /// What to say of functions that aren't defined.
    hints: Arc<BTreeMap<Name, Name>>,
    left: Arc<str>,
    right: Arc<str>,
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
            functions: Arc::default(),
            left_out: Arc::default(),
            hints: Arc::default(),
            left: "{{".into(),
            right: "}}".into(),
            missing_key: MissingKey::Default,
            limits: Limits::default(),
        }
    }

    /// Adds a function, which takes the place of an earlier or built-in one of that name.
    #[must_use]
    pub fn with_function(mut self, name: impl Into<Cow<'static, str>>, function: Function) -> Self {
        Arc::make_mut(&mut self.functions).insert(name.into(), function);
        self
    }

    /// Leaves a function out: that it is called is an error when parsing, which gives the reason, a
    /// sentence without capital and full stop.
    #[must_use]
    pub fn without_function(
        mut self,
        name: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        let name = name.into();
        Arc::make_mut(&mut self.functions).remove(&name);
        Arc::make_mut(&mut self.left_out).insert(name, reason.into());
        self
    }

    /// What to say where a template calls a function that isn't defined, in place of the nearest
    /// name.
    #[must_use]
    pub fn with_hint(
        mut self,
        name: impl Into<Cow<'static, str>>,
        hint: impl Into<Cow<'static, str>>,
    ) -> Self {
        Arc::make_mut(&mut self.hints).insert(name.into(), hint.into());
        self
    }

    /// The commonly used part of Sprig and of Helm's functions: [`sprig::functions`] lists them.
    /// Those that read the clock, the environment or the network, or that are random, are
    /// [left out](Self::without_function). Sprig's `slice` takes the place of Go's.
    ///
    /// [`sprig::functions`]: crate::sprig::functions
    #[cfg(feature = "sprig")]
    #[must_use]
    pub fn with_sprig(self) -> Self {
        crate::sprig::add_to(self)
    }

    /// Other delimiters; an empty one stands for the default.
    #[must_use]
    pub fn with_delimiters(mut self, left: &str, right: &str) -> Self {
        self.left = if left.is_empty() { "{{" } else { left }.into();
        self.right = if right.is_empty() { "}}" } else { right }.into();
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

    pub(crate) fn left(&self) -> &Arc<str> {
        &self.left
    }

    pub(crate) fn right(&self) -> &Arc<str> {
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

    /// Why a function is left out.
    pub(crate) fn left_out(&self, name: &str) -> Option<&str> {
        self.left_out.get(name).map(|reason| &**reason)
    }

    /// What to say of a function that isn't defined.
    pub(crate) fn hint(&self, name: &str) -> Option<String> {
        if let Some(hint) = self.hints.get(name) {
            return Some(hint.clone().into_owned());
        }
        let near = nearest(name, self.function_names())?;
        Some(format!("did you mean \"{near}\"?"))
    }

    /// The names of all functions, built-in ones included.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        let builtin = Builtin::names().map(|name| -> &str { name });
        builtin.chain(self.functions.keys().map(|name| -> &str { name }))
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
        match &self.body {
            Body::Builtin(body) => matches!(body, Builtin::And | Builtin::Or | Builtin::Not),
            Body::Other(function) => function.tests(),
        }
    }

    /// Whether it may change what it is given.
    pub(crate) fn changes_arguments(&self) -> bool {
        matches!(&self.body, Body::Other(function) if function.changes())
    }

    pub(crate) fn action(&self) -> Option<&Action> {
        match &self.body {
            Body::Builtin(_) => None,
            Body::Other(function) => Some(function.action()),
        }
    }

    /// Go's words for a number of arguments that the function doesn't take.
    pub(crate) fn wrong_count(&self, arguments: u32, piped: u32) -> Option<String> {
        let (min, max) = match &self.body {
            Body::Builtin(builtin) => builtin.arguments(),
            Body::Other(function) => function.counts(),
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
    let length = wrong.chars().count();
    known
        .map(|name| (distance(wrong, name), name))
        // One letter is like any other.
        .filter(|(distance, _)| *distance <= 1 + length / 4 && *distance < length)
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
