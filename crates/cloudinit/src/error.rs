//! What cloud-init raises where it can't go on: the Python class, and what is wrong in our words.

use std::fmt;

use crate::yaml::{self, YamlError};

/// The Python class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// `ValueError`
    Value,
    /// `TypeError`
    Type,
    /// `KeyError`
    Key,
    /// `IndexError`
    Index,
    /// `AttributeError`
    Attribute,
    /// `ImportError`: a merger that doesn't exist.
    Import,
    /// `RuntimeError`
    Runtime,
    /// `UnicodeDecodeError`
    Decode,
    /// `JSONDecodeError`
    Json,
    /// `InvalidJsonPatch`
    InvalidPatch,
    /// `JsonPatchConflict`
    PatchConflict,
    /// `JsonPatchPathNotFound`
    PatchNotFound,
    /// `JsonPatchTestFailed`
    PatchTest,
    /// `JsonPointerException`
    Pointer,
}

impl Class {
    /// What Python calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Value => "ValueError",
            Self::Type => "TypeError",
            Self::Key => "KeyError",
            Self::Index => "IndexError",
            Self::Attribute => "AttributeError",
            Self::Import => "ImportError",
            Self::Runtime => "RuntimeError",
            Self::Decode => "UnicodeDecodeError",
            Self::Json => "JSONDecodeError",
            Self::InvalidPatch => "InvalidJsonPatch",
            Self::PatchConflict => "JsonPatchConflict",
            Self::PatchNotFound => "JsonPatchPathNotFound",
            Self::PatchTest => "JsonPatchTestFailed",
            Self::Pointer => "JsonPointerException",
        }
    }
}

/// Why a part, or all of the user data, is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What Python raises.
    pub class: Class,
    /// What is wrong.
    pub message: String,
    /// The line of the part, from 1, where that is known.
    pub line: Option<u32>,
    /// The column in it, in characters, from 1, where that is known.
    pub column: Option<u32>,
}

impl Error {
    pub(crate) fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            line: None,
            column: None,
        }
    }

    pub(crate) fn at(mut self, line: u32) -> Self {
        if line > 0 {
            self.line = Some(line);
        }
        self
    }
}

impl From<YamlError> for Error {
    fn from(error: YamlError) -> Self {
        let class = match error.kind {
            yaml::Kind::Index => Class::Index,
            yaml::Kind::Yaml => Class::Value,
            yaml::Kind::Key => Class::Key,
            yaml::Kind::Attribute => Class::Attribute,
        };
        let message = format!("it can't be read as YAML 1.1: {}", error.without_place());
        Self {
            class,
            message,
            line: Some(error.mark.line as u32 + 1),
            column: Some(error.mark.column as u32 + 1),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
