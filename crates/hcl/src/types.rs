//! Terraform's types. Comes in: nothing; goes out: [`Type`], and its name for people and as a type
//! constraint is written.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::value::Value;

mod constraint;

/// A type, or a pattern of types where it contains [`Type::Any`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// Any type: of a constraint, one still to be found out; of a `null`, none yet.
    #[default]
    Any,
    Bool,
    Number,
    String,
    List(Arc<Type>),
    Set(Arc<Type>),
    Map(Arc<Type>),
    Object(Arc<ObjectType>),
    Tuple(Arc<[Type]>),
}

/// The attributes of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectType {
    pub attributes: BTreeMap<Arc<str>, Type>,
    /// Those that may be left out, each with what it is then; `null` if that is `None`.
    pub optional: BTreeMap<Arc<str>, Option<Value>>,
}

impl Type {
    pub fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    pub fn set(of: Self) -> Self {
        Self::Set(Arc::new(of))
    }

    pub fn map(of: Self) -> Self {
        Self::Map(Arc::new(of))
    }

    /// An object with exactly these attributes.
    pub fn object(attributes: BTreeMap<Arc<str>, Self>) -> Self {
        Self::Object(Arc::new(ObjectType {
            attributes,
            optional: BTreeMap::new(),
        }))
    }

    pub fn is_primitive(&self) -> bool {
        matches!(self, Self::Bool | Self::Number | Self::String)
    }

    /// Whether [`Type::Any`] is anywhere in it.
    pub fn has_any(&self) -> bool {
        match self {
            Self::Any => true,
            Self::Bool | Self::Number | Self::String => false,
            Self::List(of) | Self::Set(of) | Self::Map(of) => of.has_any(),
            Self::Object(object) => object.attributes.values().any(Self::has_any),
            Self::Tuple(of) => of.iter().any(Self::has_any),
        }
    }

    /// What a value of this type is once it is converted: every attribute is there.
    #[must_use]
    pub fn without_optional(&self) -> Self {
        match self {
            Self::Any | Self::Bool | Self::Number | Self::String => self.clone(),
            Self::List(of) => Self::list(of.without_optional()),
            Self::Set(of) => Self::set(of.without_optional()),
            Self::Map(of) => Self::map(of.without_optional()),
            Self::Object(object) => Self::object(
                object
                    .attributes
                    .iter()
                    .map(|(name, of)| (name.clone(), of.without_optional()))
                    .collect(),
            ),
            Self::Tuple(elements) => {
                Self::Tuple(elements.iter().map(Self::without_optional).collect())
            }
        }
    }

    /// As Terraform's messages name it: "list of string", "object".
    pub fn friendly_name(&self) -> String {
        match self {
            Self::Any => "dynamic".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Number => "number".to_owned(),
            Self::String => "string".to_owned(),
            Self::List(of) => format!("list of {}", of.friendly_name_of_elements()),
            Self::Set(of) => format!("set of {}", of.friendly_name_of_elements()),
            Self::Map(of) => format!("map of {}", of.friendly_name_of_elements()),
            Self::Object(_) => "object".to_owned(),
            Self::Tuple(_) => "tuple".to_owned(),
        }
    }

    fn friendly_name_of_elements(&self) -> String {
        if *self == Self::Any {
            "any single type".to_owned()
        } else {
            self.friendly_name()
        }
    }
}

/// As a type constraint is written: `list(string)`, `object({ size = number })`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Bool => f.write_str("bool"),
            Self::Number => f.write_str("number"),
            Self::String => f.write_str("string"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Set(of) => write!(f, "set({of})"),
            Self::Map(of) => write!(f, "map({of})"),
            Self::Object(object) => {
                f.write_str("object({")?;
                for (index, (name, of)) in object.attributes.iter().enumerate() {
                    let separator = if index == 0 { " " } else { ", " };
                    if object.optional.contains_key(name) {
                        write!(f, "{separator}{name} = optional({of})")?;
                    } else {
                        write!(f, "{separator}{name} = {of}")?;
                    }
                }
                f.write_str(if object.attributes.is_empty() {
                    "})"
                } else {
                    " })"
                })
            }
            Self::Tuple(elements) => {
                f.write_str("tuple([")?;
                for (index, of) in elements.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}{of}")?;
                }
                f.write_str("])")
            }
        }
    }
}
