//! Text with the code points that YAML can write and UTF-8 can't.

use std::fmt;

/// Unicode text. YAML's `"\ud83d"` is half of a surrogate pair, which no UTF-8 holds; a text that
/// has one is kept as code points.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Text {
    /// Text without halves of surrogate pairs.
    Utf8(String),
    /// Code points, at least one of them half of a surrogate pair.
    Points(Vec<u32>),
}

impl Text {
    /// The text, where UTF-8 can hold it.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Utf8(text) => Some(text),
            Self::Points(_) => None,
        }
    }

    /// Its code points.
    pub fn points(&self) -> Vec<u32> {
        match self {
            Self::Utf8(text) => text.chars().map(u32::from).collect(),
            Self::Points(points) => points.clone(),
        }
    }

    /// Both texts, one after the other.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Utf8(first), Self::Utf8(second)) => Self::Utf8(format!("{first}{second}")),
            _ => {
                let mut points = self.points();
                points.extend(other.points());
                Self::Points(points)
            }
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::Utf8(text.to_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Utf8(text)
    }
}

impl fmt::Display for Text {
    /// Halves of surrogate pairs as U+FFFD.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utf8(text) => formatter.write_str(text),
            Self::Points(points) => points.iter().try_for_each(|point| {
                let shown = char::from_u32(*point).unwrap_or(char::REPLACEMENT_CHARACTER);
                write!(formatter, "{shown}")
            }),
        }
    }
}

/// A text being put together.
#[derive(Default)]
pub(super) struct Builder {
    text: String,
    points: Option<Vec<u32>>,
}

impl Builder {
    pub(super) fn push_str(&mut self, more: &str) {
        match &mut self.points {
            None => self.text.push_str(more),
            Some(points) => points.extend(more.chars().map(u32::from)),
        }
    }

    /// Adds a code point; `None`: there is no such code point.
    pub(super) fn push_point(&mut self, point: u32) -> Option<()> {
        match (char::from_u32(point), &mut self.points) {
            (Some(char), None) => self.text.push(char),
            (Some(_), Some(points)) => points.push(point),
            (None, _) if point > 0x10_ffff => return None,
            (None, points) => {
                let so_far = std::mem::take(&mut self.text);
                points
                    .get_or_insert_with(|| so_far.chars().map(u32::from).collect())
                    .push(point);
            }
        }
        Some(())
    }

    pub(super) fn finish(self) -> Text {
        match self.points {
            None => Text::Utf8(self.text),
            Some(points) => Text::Points(points),
        }
    }
}
