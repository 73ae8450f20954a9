//! The schema of configurations as tables, and as a JSON Schema for editors.
//!
//! In: nothing. Out: the [`tables`] that the decoder uses, and [`json_schema`]. Must not: validate
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
    /// A sentence that describes it.
    pub about: &'static str,
    /// Its keys, in the usual order.
    pub keys: &'static [Key],
}

impl Table {
    /// The names of its keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|key| key.name)
    }

    /// The key with this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// One key of an object.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// The shape of its value.
    pub shape: Shape,
    /// A sentence that describes it.
    pub about: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// The default, as JSON.
    pub default: Option<&'static str>,
    /// Whether the Nstance server doesn't know it.
    pub ours: bool,
}

impl Key {
    const fn new(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self {
            name,
            shape,
            about,
            required: false,
            default: None,
            ours: false,
        }
    }

    const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    const fn ours(self) -> Self {
        Self { ours: true, ..self }
    }

    const fn default(self, json: &'static str) -> Self {
        Self {
            default: Some(json),
            ..self
        }
    }
}

/// The shape of a value. Null always means that the key is absent.
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
    /// Go's durations, not negative.
    Duration,
    /// Go's durations, more than 0.
    PositiveDuration,
    /// Go's durations.
    SignedDuration,
    /// Go's durations, not negative, or this word.
    DurationOr(&'static str),
    /// An absolute path.
    Path,
    /// Octal digits.
    Permissions,
    /// `true` or `false`.
    Flag,
    /// A port, from 1 to 65535.
    Port,
    /// A whole number from 0 to this.
    Whole(u32),
    /// A whole number between these, inclusive.
    Between(u32, u32),
    /// A number of instances, or a percentage from `0%` to this.
    Amount(u32),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of non-empty strings.
    Texts,
    /// A list of distinct non-empty strings.
    Names,
    /// A non-empty list of distinct non-empty strings.
    SomeNames,
    /// A non-empty list of non-empty strings.
    SomeTexts,
    /// A list.
    List(&'static Shape),
    /// A list of distinct values.
    Distinct(&'static Shape),
    /// A non-empty list.
    Some(&'static Shape),
    /// An object with known keys.
    Object(&'static Table),
    /// A map with arbitrary names.
    Named(&'static Shape),
    /// A map by image name.
    Images(&'static Shape),
    /// A map by file name.
    Files(&'static Shape),
    /// A map by slot number.
    Slots(&'static Shape),
    /// A map of subnet pools by id.
    Pools,
    /// A non-empty string, or an object with known keys.
    TextOr(&'static Table),
    /// This word, or an object with known keys.
    WordOr(&'static str, &'static Table),
    /// A map of snippets by name; each is a string or an object.
    Snippets,
    /// A path, or a list of paths.
    Paths,
    /// Groups, nested or flat.
    Groups,
}

impl Shape {
    /// Whether it accepts a value of this JSON type, which distinguishes groups from tenants.
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
            | Self::PositiveDuration
            | Self::SignedDuration
            | Self::DurationOr(_)
            | Self::Path
            | Self::Permissions
            | Self::Choice(_) => matches!(value, Value::String(_)),
            Self::Amount(_) => matches!(value, Value::String(_) | Value::Number(_)),
            Self::Flag => matches!(value, Value::Bool(_)),
            Self::Whole(_) | Self::Between(..) | Self::Port => matches!(value, Value::Number(_)),
            Self::Texts
            | Self::Names
            | Self::SomeNames
            | Self::SomeTexts
            | Self::List(_)
            | Self::Distinct(_)
            | Self::Some(_) => {
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
            Self::TextOr(_) | Self::WordOr(..) => {
                matches!(value, Value::String(_) | Value::Object(_))
            }
            Self::Paths => matches!(value, Value::String(_) | Value::Array(_)),
        }
    }
}
