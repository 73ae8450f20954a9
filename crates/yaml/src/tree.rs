//! The tree of a document.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

pub use saphyr_parser::ScalarStyle as Style;
use saphyr_parser::Tag;

/// A scalar as written, for a resolver.
#[derive(Debug)]
pub struct Scalar<'t> {
    /// Its text without quotes and indentation, with resolved escapes.
    pub text: Cow<'t, str>,
    /// Its style: plain, quoted or a block.
    pub style: Style,
    /// Its tag.
    pub tag: Option<Cow<'t, Tag>>,
}

impl Scalar<'_> {
    /// Whether it has no quotes, tag or block indicator.
    pub fn is_plain(&self) -> bool {
        self.style == Style::Plain && self.tag.is_none()
    }
}

/// A document of a text.
#[derive(Debug)]
pub struct Document<S> {
    /// The `---` that starts it; empty if there is none.
    pub start: Range<usize>,
    /// Its value.
    pub root: Node<S>,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<S> {
    /// Its bytes, including quotes, brackets and the `|` of a block, without anchor and tag.
    pub range: Range<usize>,
    /// The byte where its anchor or tag starts; the start of `range` if it has neither.
    pub properties: usize,
    /// The alias, if this is a repeated value; then `range` is that of the anchor's value.
    pub alias: Option<Range<usize>>,
    /// The tag of a sequence or mapping; the resolver gets the tag of a scalar.
    pub tag: Option<Rc<Tag>>,
    /// Its kind and content.
    pub kind: Kind<S>,
}

/// The content of a [`Node`]. Aliases share the items of their anchor.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind<S> {
    /// The resolver's result.
    Scalar(S),
    /// `[…]`, or lines that start with `-`.
    Sequence(Rc<[Node<S>]>),
    /// Keys with their values, in the order written. Every key is a scalar.
    Mapping(Rc<[(Node<S>, Node<S>)]>),
}

impl<S> Node<S> {
    /// The place where it is used: its own, or the alias.
    pub fn place(&self) -> &Range<usize> {
        self.alias.as_ref().unwrap_or(&self.range)
    }

    /// The mappings that a merge key with this value merges, the one with the highest precedence
    /// first; `None` if it is neither a mapping nor a list of mappings.
    pub fn merged(&self) -> Option<Vec<&[(Self, Self)]>> {
        match &self.kind {
            Kind::Scalar(_) => None,
            Kind::Mapping(entries) => Some(vec![&**entries]),
            Kind::Sequence(items) => items
                .iter()
                .map(|item| match &item.kind {
                    Kind::Mapping(entries) => Some(&**entries),
                    _ => None,
                })
                .collect(),
        }
    }
}

/// The name of a tag that YAML defines, such as `str`; `None` for other tags.
pub fn core_tag(tag: &Tag) -> Option<&str> {
    match tag.handle.as_str() {
        "tag:yaml.org,2002:" => Some(&tag.suffix),
        "" => tag.suffix.strip_prefix("tag:yaml.org,2002:"),
        _ => None,
    }
}
