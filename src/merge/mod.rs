//! Merges layers into one value: defaults → template → group → slot.
//!
//! In: the model's nodes, layer by layer. Out: merged args, vars, files and userdata; every path
//! keeps the layer that set it. Must not: render, or validate.

pub mod deep;
pub mod group;
pub mod hashes;
pub mod links;
pub mod zones;

use std::fmt;

/// The layer that set a merged value; higher layers replace lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// Top-level `vars`.
    Vars,
    /// `defaults`
    Defaults,
    /// The group's template.
    Template,
    /// The group.
    Group,
    /// One of the group's `overrides`.
    Slot,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vars => "vars",
            Self::Defaults => "defaults",
            Self::Template => "template",
            Self::Group => "group",
            Self::Slot => "override",
        })
    }
}
