//! What names mean. Comes in: a reference such as `var.region`; goes out: its value. The crate knows
//! no name of its own but the variables of `for`.

use crate::error::{Error, Span};
use crate::syntax::{Ident, Step};
use crate::value::Value;

/// A name and what follows it, as far as that is written out: `var.regions["a"]`, and not
/// `var.regions[local.b]` beyond `var.regions`.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    pub root: &'a Ident,
    /// All steps, whether written out or not; a splat is one step.
    pub steps: &'a [Step],
    /// The whole of it.
    pub span: Span,
}

/// Values by name.
pub trait Scope {
    /// The value, and how many steps behind the root led to it; the evaluator goes the rest.
    /// Errors here are of the text, and not for `try` and `can` to catch; what may be missing is
    /// left to the evaluator.
    fn resolve(&self, reference: Reference<'_>) -> Result<(Value, usize), Vec<Error>>;

    /// What names there are, for "did you mean".
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// No names at all.
#[derive(Clone, Copy, Debug)]
pub struct NoNames;

impl Scope for NoNames {
    fn resolve(&self, reference: Reference<'_>) -> Result<(Value, usize), Vec<Error>> {
        let name = &reference.root.name;
        Err(vec![
            Error::new(
                reference.root.span,
                format!("There is nothing named `{name}`"),
            )
            .detail("no names are defined here"),
        ])
    }
}

/// The names of a map; steps are left to the evaluator.
impl Scope for crate::value::Entries {
    fn resolve(&self, reference: Reference<'_>) -> Result<(Value, usize), Vec<Error>> {
        let root = reference.root;
        match self.get(&root.name) {
            Some(value) => Ok((value.clone(), 0)),
            None => Err(vec![undefined(root, self.keys().map(AsRef::as_ref))]),
        }
    }

    fn names(&self) -> Vec<String> {
        self.keys().map(ToString::to_string).collect()
    }
}

/// The error for a name that isn't among `known`.
pub fn undefined<'a>(name: &Ident, known: impl IntoIterator<Item = &'a str>) -> Error {
    let error = Error::new(name.span, format!("There is nothing named `{}`", name.name))
        .detail("this name isn't defined");
    match crate::error::nearest(&name.name, known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}
