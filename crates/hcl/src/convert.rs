//! Values from one type to another, as go-cty converts. Comes in: a value and the type wanted, which
//! may contain `any`. Goes out: a value of that type, or why there is none and where in the value.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::number::Number;
use crate::types::{ObjectType, Type};
use crate::value::{Entries, Kind, Value};

mod unify;

pub use unify::unify;

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

impl ConvertError {
    fn new(message: impl Into<String>) -> Self {
        Self {
            path: Vec::new(),
            message: message.into(),
        }
    }

    fn within(mut self, step: PathStep) -> Self {
        self.path.insert(0, step);
        self
    }
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

/// Converts. Places and sensitivity stay as they were, part by part.
pub fn convert(value: &Value, to: &Type) -> Result<Value, ConvertError> {
    let kind = match (&value.kind, to) {
        (_, Type::Any)
        | (Kind::Bool(_), Type::Bool)
        | (Kind::Number(_), Type::Number)
        | (Kind::String(_), Type::String) => return Ok(value.clone()),
        (Kind::Null(_), _) => Kind::Null(to.clone()),
        (Kind::Bool(value), Type::String) => Kind::String(value.to_string().into()),
        (Kind::Number(number), Type::String) => Kind::String(number.to_string().into()),
        (Kind::String(text), Type::Number) => match Number::parse(text) {
            Ok(number) => Kind::Number(number),
            Err(_) => return Err(ConvertError::new("a number is required")),
        },
        (Kind::String(text), Type::Bool) => Kind::Bool(bool_of(text)?),
        (Kind::List(of, elements), Type::List(to)) if of == &**to => {
            Kind::List(of.clone(), elements.clone())
        }
        (Kind::Set(of, elements), Type::Set(to)) if of == &**to => {
            Kind::Set(of.clone(), elements.clone())
        }
        (Kind::Map(of, entries), Type::Map(to)) if of == &**to => {
            Kind::Map(of.clone(), entries.clone())
        }
        (
            Kind::Tuple(elements) | Kind::List(_, elements) | Kind::Set(_, elements),
            Type::List(to),
        ) => {
            let (of, elements) = sequence(value, elements, to, "list")?;
            Kind::List(of, elements.into())
        }
        (
            Kind::Tuple(elements) | Kind::List(_, elements) | Kind::Set(_, elements),
            Type::Set(to),
        ) => {
            let (of, elements) = sequence(value, elements, to, "set")?;
            let set = Value::set(of, elements);
            return Ok(Value {
                span: value.span,
                ..set
            }
            .or_sensitive(value.sensitive));
        }
        (Kind::Tuple(elements), Type::Tuple(to)) => Kind::Tuple(tuple(elements, to)?),
        (Kind::Object(entries) | Kind::Map(_, entries), Type::Map(to)) => {
            let (of, entries) = mapping(value, entries, to)?;
            Kind::Map(of, Arc::new(entries))
        }
        (Kind::Object(entries) | Kind::Map(_, entries), Type::Object(to)) => {
            Kind::Object(Arc::new(object(entries, to)?))
        }
        _ => return Err(ConvertError::new(required(to))),
    };
    let converted = Value {
        span: value.span,
        ..Value::new(kind)
    };
    Ok(converted.or_sensitive(value.sensitive))
}

fn required(to: &Type) -> String {
    format!("{} required", to.friendly_name())
}

fn bool_of(text: &str) -> Result<bool, ConvertError> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") => {
            let lower = text.to_ascii_lowercase();
            Err(ConvertError::new(format!(
                "a bool is required; to convert from string, use lowercase \"{lower}\""
            )))
        }
        _ => Err(ConvertError::new("a bool is required")),
    }
}

/// The elements' one type: `to`, or where that leaves it open what they all can be.
fn element_type(
    value: &Value,
    elements: &mut dyn Iterator<Item = &Value>,
    to: &Type,
    collection: &str,
) -> Result<Type, ConvertError> {
    if !to.has_any() {
        return Ok(to.clone());
    }
    match (&value.kind, to) {
        (Kind::List(of, _) | Kind::Set(of, _) | Kind::Map(of, _), Type::Any) => Ok(of.clone()),
        _ => {
            let mut types: Vec<Type> = Vec::new();
            for element in elements {
                let converted = if *to == Type::Any {
                    element
                } else {
                    &convert(element, to)?
                };
                let of = converted.type_of();
                if types.last() != Some(&of) {
                    types.push(of);
                }
            }
            if types.is_empty() {
                return Ok(to.clone());
            }
            unify(&types).ok_or_else(|| {
                ConvertError::new(format!("all {collection} elements must have the same type"))
            })
        }
    }
}

fn sequence(
    value: &Value,
    elements: &[Value],
    to: &Type,
    collection: &str,
) -> Result<(Type, Vec<Value>), ConvertError> {
    let of = element_type(value, &mut elements.iter(), to, collection)?;
    let elements = elements
        .iter()
        .enumerate()
        .map(|(index, element)| {
            convert(element, &of).map_err(|error| error.within(PathStep::Index(index)))
        })
        .collect::<Result<_, _>>()?;
    Ok((of.without_optional(), elements))
}

fn tuple(elements: &[Value], to: &[Type]) -> Result<Arc<[Value]>, ConvertError> {
    if elements.len() != to.len() {
        let (given, wanted) = (elements.len(), to.len());
        return Err(ConvertError::new(format!(
            "{wanted} elements required, but there are {given}"
        )));
    }
    elements
        .iter()
        .zip(to)
        .enumerate()
        .map(|(index, (element, to))| {
            convert(element, to).map_err(|error| error.within(PathStep::Index(index)))
        })
        .collect()
}

fn mapping(value: &Value, entries: &Entries, to: &Type) -> Result<(Type, Entries), ConvertError> {
    let of = element_type(value, &mut entries.values(), to, "map")?;
    let entries = entries
        .iter()
        .map(|(key, element)| match convert(element, &of) {
            Ok(converted) => Ok((key.clone(), converted)),
            Err(error) => Err(error.within(PathStep::Key(key.to_string()))),
        })
        .collect::<Result<_, _>>()?;
    Ok((of.without_optional(), entries))
}

/// What the type doesn't name is left out.
fn object(entries: &Entries, to: &ObjectType) -> Result<Entries, ConvertError> {
    let missing: Vec<&str> = to
        .attributes
        .keys()
        .filter(|name| !entries.contains_key(*name) && !to.optional.contains_key(*name))
        .map(AsRef::as_ref)
        .collect();
    match &missing[..] {
        [] => {}
        [name] => {
            return Err(ConvertError::new(format!(
                "attribute \"{name}\" is required"
            )));
        }
        [names @ .., last] => {
            let names: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
            return Err(ConvertError::new(format!(
                "attributes {} and \"{last}\" are required",
                names.join(", ")
            )));
        }
    }
    let mut converted = BTreeMap::new();
    for (name, of) in &to.attributes {
        let default = to.optional.get(name).and_then(Option::as_ref);
        let value = match entries.get(name) {
            Some(value) if !value.is_null() => value,
            given => match default.or(given) {
                Some(value) => value,
                None => &Value::null(),
            },
        };
        let value = convert(value, of)
            .map_err(|error| error.within(PathStep::Attribute(name.to_string())))?;
        converted.insert(name.clone(), value);
    }
    Ok(converted)
}

#[cfg(test)]
mod tests;
