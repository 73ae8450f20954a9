//! The one error type of this crate.

use crate::value::Place;

/// One error of an input.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The message. It has BOSH's wording wherever BOSH reports the same error.
    pub message: String,
    /// The value that is wrong.
    pub place: Option<Place>,
    /// How to fix it.
    pub hint: Option<String>,
}

impl Error {
    /// An error without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            place: None,
            hint: None,
        }
    }

    /// An error at a place.
    pub fn at(place: Place, message: impl Into<String>) -> Self {
        Self {
            place: Some(place),
            ..Self::new(message)
        }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
