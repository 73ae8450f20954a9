//! Values from one type to another, as go-cty converts. Comes in: a value and the type wanted, which
//! may contain `any`. Goes out: a value of that type, or why there is none and where in the value.

use std::fmt;

use crate::types::Type;
use crate::value::Value;

/// Why a value can't become one of the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertError {
    /// The way to the part at fault, from the outside.
    pub path: Vec<PathStep>,
    /// What is required, in Terraform's words: "string required".
    pub message: String,
}

/// A step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    Attribute(String),
    Index(usize),
    Key(String),
}

/// `message`, after the way there: `element 0: attribute "size": number required`.
impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.path {
            match step {
                PathStep::Attribute(name) => write!(f, "attribute \"{name}\": ")?,
                PathStep::Index(index) => write!(f, "element {index}: ")?,
                PathStep::Key(key) => write!(f, "element \"{key}\": ")?,
            }
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConvertError {}

/// Converts. What already has the type comes back as it is, places and all.
pub fn convert(value: &Value, to: &Type) -> Result<Value, ConvertError> {
    if *to == Type::Any || value.type_of() == *to {
        return Ok(value.clone());
    }
    Err(ConvertError {
        path: Vec::new(),
        message: format!("{} required", to.friendly_name()),
    })
}

/// The one type that values of all these types can be converted to.
pub fn unify(types: &[Type]) -> Option<Type> {
    let (first, rest) = types.split_first()?;
    rest.iter().all(|of| of == first).then(|| first.clone())
}
