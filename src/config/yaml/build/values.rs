//! Scalars, and the tags of all values: what they mean and where exactly they stand.

use std::borrow::Cow;
use std::ops::Range;

use saphyr_parser::{ScalarStyle, Tag};

use super::Builder;
use crate::config::node::{Node, NodeValue};
use crate::config::position;
use crate::config::source::{Language, Span};
use crate::config::yaml::properties::{
    block_header, closing_quote, core_tag, is_non_specific, shown, skip_properties,
};
use crate::config::yaml::scalars::{self, Plain};
use crate::config::yaml::words;

impl<'t> Builder<'t, '_> {
    /// Where a scalar itself stands: behind its anchor and tag, blocks from their `|`.
    pub(super) fn scalar_range(
        &self,
        range: &Range<usize>,
        value: &str,
        style: ScalarStyle,
    ) -> Range<usize> {
        match style {
            ScalarStyle::Literal | ScalarStyle::Folded => {
                block_header(self.text, self.end.min(range.start), range)..range.end
            }
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                let start = skip_properties(self.text, range.start).min(range.end);
                start..closing_quote(self.text, start, range.end)
            }
            // Nothing was written: the parser names what stands behind it.
            ScalarStyle::Plain if value.is_empty() => range.start..range.start,
            ScalarStyle::Plain => skip_properties(self.text, range.start).min(range.end)..range.end,
        }
    }

    /// The text of a scalar; the parser ends a block's last line where the file forgot to, which
    /// makes it another text than other readers have.
    pub(super) fn at_the_end(
        &self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        range: &Range<usize>,
    ) -> Cow<'t, str> {
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if !is_block || range.end < self.text.len() || self.text.ends_with(['\n', '\r']) {
            return text;
        }
        position::value(Language::Yaml, self.text, range.clone()).map_or(text, Cow::Owned)
    }

    pub(super) fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        from: usize,
        range: &Range<usize>,
    ) -> Node {
        let span = self.span(range.clone());
        let string = || NodeValue::String(text.into());
        let value = match tag {
            None if style == ScalarStyle::Plain => {
                if let Some(surprise) = scalars::surprise(text) {
                    self.findings.push(words::surprise(text, &surprise, span));
                }
                self.plain(text, span)
            }
            None => string(),
            Some(tag) => match (core_tag(tag), scalars::resolve(text)) {
                (Some("str"), _) => string(),
                (Some("null"), Plain::Null)
                | (Some("bool"), Plain::Bool(_))
                | (Some("int" | "float"), Plain::Number(_) | Plain::NoNumber(_)) => {
                    self.plain(text, span)
                }
                (Some(wanted @ ("null" | "bool" | "int" | "float")), _) => {
                    self.findings
                        .push(words::not_of_its_tag(text, wanted, span));
                    NodeValue::Null
                }
                _ => {
                    let place = self.tag_place(&(from..range.start));
                    self.findings.push(words::unknown_tag(&shown(tag), place));
                    NodeValue::Null
                }
            },
        };
        Node::new(span, value)
    }

    pub(super) fn plain(&mut self, text: &str, span: Span) -> NodeValue {
        match scalars::resolve(text) {
            Plain::Null => NodeValue::Null,
            Plain::Bool(value) => NodeValue::Bool(value),
            Plain::Number(value) => NodeValue::Number(value),
            Plain::Text => NodeValue::String(text.into()),
            Plain::NoNumber(why) => {
                self.findings.push(words::no_number(text, why, span));
                NodeValue::Null
            }
        }
    }

    pub(super) fn collection_tag(&mut self, tag: Option<&Tag>, wanted: &str, range: &Range<usize>) {
        let Some(tag) = tag else { return };
        // `!` alone says: what it is by itself.
        if core_tag(tag).is_some_and(|core| core == wanted || is_non_specific(tag)) {
            return;
        }
        let place = self.tag_place(range);
        self.findings.push(words::unknown_tag(&shown(tag), place));
    }

    /// The tag among the properties that start at `range`.
    pub(super) fn tag_place(&self, range: &Range<usize>) -> Span {
        let properties = &self.text[range.clone()];
        let start = range.start + properties.find('!').unwrap_or(0);
        let length = self.text[start..].find(char::is_whitespace);
        self.span(start..length.map_or(self.text.len(), |length| start + length))
    }
}
