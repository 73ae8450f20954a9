//! What a text consists of.

use super::error::Mark;
use super::text::Text;

/// One piece of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: Mark,
    pub(super) end: Mark,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    StreamEnd,
    Directive(Directive),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowMappingStart,
    FlowSequenceEnd,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag {
        handle: Option<String>,
        suffix: String,
    },
    Scalar {
        text: Text,
        plain: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Directive {
    Version(u64),
    Tag { handle: String, prefix: String },
    Unknown,
}

impl TokenKind {
    /// How messages call it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::StreamEnd => "the end of the text",
            Self::Directive(_) => "a directive",
            Self::DocumentStart => "`---`",
            Self::DocumentEnd => "`...`",
            Self::BlockSequenceStart => "a list",
            Self::BlockMappingStart => "a mapping",
            Self::BlockEnd => "the end of the block",
            Self::FlowSequenceStart => "`[`",
            Self::FlowMappingStart => "`{`",
            Self::FlowSequenceEnd => "`]`",
            Self::FlowMappingEnd => "`}`",
            Self::BlockEntry => "`-`",
            Self::FlowEntry => "`,`",
            Self::Key => "a key",
            Self::Value => "`:`",
            Self::Alias(_) => "an alias",
            Self::Anchor(_) => "an anchor",
            Self::Tag { .. } => "a tag",
            Self::Scalar { .. } => "a scalar",
        }
    }
}
