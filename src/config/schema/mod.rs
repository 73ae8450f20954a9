//! What a configuration may say, as tables; and these as a JSON Schema for editors.
//!
//! In: nothing. Out: the [`tables`] that the decoder reads by, and [`json_schema`]. Must not: judge
//! a configuration.

mod json;
pub mod tables;
#[cfg(test)]
mod tests;

pub use json::{json_schema, part_schema};

/// An object whose keys are known.
#[derive(Debug)]
pub struct Table {
    /// Its name in the schema.
    pub title: &'static str,
    /// What it is, a sentence.
    pub about: &'static str,
    /// Its keys, in the order that people write them.
    pub keys: &'static [Key],
}

impl Table {
    /// The names of its keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|key| key.name)
    }

    /// The key of that name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// One key of an object.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// What it takes.
    pub shape: Shape,
    /// What it means, a sentence.
    pub about: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// Its value where it isn't there, as JSON.
    pub default: Option<&'static str>,
}

impl Key {
    const fn new(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self {
            name,
            shape,
            about,
            required: false,
            default: None,
        }
    }

    const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    const fn default(self, json: &'static str) -> Self {
        Self {
            default: Some(json),
            ..self
        }
    }
}

/// What a key takes. Wherever a key is known, null says the same as leaving it out.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Anything.
    Any,
    /// Any object.
    Map,
    /// A string.
    Text,
    /// A string that isn't empty.
    Filled,
    /// Lower-case letters, digits, single hyphens between them.
    Id,
    /// `tenant/group`
    GroupName,
    /// Three lower-case letters.
    Kind,
    /// Go's durations.
    Duration,
    /// An absolute path.
    Path,
    /// Octal digits.
    Permissions,
    /// `true` or `false`.
    Flag,
    /// A whole number from 0 to this.
    Whole(u32),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// This value, as JSON, and no other.
    Only(&'static str),
    /// A list of strings that aren't empty.
    Texts,
    /// The same, each of them once.
    Names,
    /// A list of strings that aren't empty, and one at least.
    SomeTexts,
    /// A list.
    List(&'static Shape),
    /// A list of one at least.
    Some(&'static Shape),
    /// An object with known keys.
    Object(&'static Table),
    /// Any names.
    Named(&'static Shape),
    /// Names of images.
    Images(&'static Shape),
    /// Names of files.
    Files(&'static Shape),
    /// Numbers of slots.
    Slots(&'static Shape),
    /// Ids of subnet pools, and the pools.
    Pools,
    /// A text that isn't empty, or an object with known keys.
    TextOr(&'static Table),
    /// Names of snippets, and the snippets: a text or an object each.
    Snippets,
    /// A path, or several.
    Paths,
    /// Nested or flat.
    Groups,
}

impl Shape {
    /// The kind of JSON values it takes, which distinguishes a group from a tenant.
    pub fn takes(self, value: &super::node::NodeValue) -> bool {
        use super::node::NodeValue as Value;
        match self {
            Self::Any => true,
            Self::Text
            | Self::Filled
            | Self::Id
            | Self::GroupName
            | Self::Kind
            | Self::Duration
            | Self::Path
            | Self::Permissions
            | Self::Choice(_) => matches!(value, Value::String(_)),
            Self::Only(_) => matches!(value, Value::String(_) | Value::Number(_)),
            Self::Flag => matches!(value, Value::Bool(_)),
            Self::Whole(_) => matches!(value, Value::Number(_)),
            Self::Texts | Self::Names | Self::SomeTexts | Self::List(_) | Self::Some(_) => {
                matches!(value, Value::Array(_))
            }
            Self::Map
            | Self::Object(_)
            | Self::Named(_)
            | Self::Images(_)
            | Self::Files(_)
            | Self::Slots(_)
            | Self::Pools
            | Self::Snippets
            | Self::Groups => matches!(value, Value::Object(_)),
            Self::TextOr(_) => matches!(value, Value::String(_) | Value::Object(_)),
            Self::Paths => matches!(value, Value::String(_) | Value::Array(_)),
        }
    }
}
