//! Findings about sensitive values, without what they quote of them.
//!
//! In: findings; where sensitive values stand, or the values. Out: findings that quote none.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Diagnostic, HIDDEN, Label, MASKED_REASON};
use crate::config::source::{SourceId, Span};

/// Where sensitive values stand, which findings must not quote.
#[derive(Debug, Clone, Default)]
pub struct MaskedPlaces {
    /// By source and start: where a sensitive value ends, and the pieces of it.
    places: BTreeMap<(SourceId, u32), (u32, Arc<SensitivePieces>)>,
}

impl MaskedPlaces {
    /// From the spans where sensitive values stand, each with the pieces of its value.
    pub fn new(values: impl IntoIterator<Item = (Span, Vec<String>)>) -> Self {
        let mut gathered: BTreeMap<(SourceId, u32), (u32, Vec<String>)> = BTreeMap::new();
        for (span, pieces) in values {
            let (end, all) = gathered.entry((span.source, span.start)).or_default();
            *end = span.end.max(*end);
            all.extend(pieces);
        }
        let places = gathered
            .into_iter()
            .map(|(start, (end, pieces))| (start, (end, Arc::new(SensitivePieces::new(pieces)))));
        Self {
            places: places.collect(),
        }
    }

    /// The finding with sensitive values masked; `None` if it is about none.
    pub fn mask(&self, finding: &Diagnostic) -> Option<Diagnostic> {
        if self.places.is_empty() {
            return None;
        }
        let labels = finding.label.iter().chain(&finding.related);
        let pieces: Vec<&SensitivePieces> =
            labels.filter_map(|label| self.at(label.span)).collect();
        if pieces.is_empty() {
            return None;
        }
        let mut masked = finding.clone();
        for pieces in pieces {
            masked = pieces.mask(masked);
        }
        Some(masked)
    }

    fn at(&self, span: Span) -> Option<&SensitivePieces> {
        let start = (span.source, span.start);
        let (at, (end, pieces)) = self.places.range(..=start).next_back()?;
        let is_within = at.0 == span.source && (span.start < *end || at.1 == span.start);
        is_within.then_some(&**pieces)
    }
}

/// Parts of sensitive texts.
#[derive(Debug, Clone, Default)]
pub struct SensitivePieces(Vec<String>);

/// Shorter pieces are in many texts: they are looked for as whole words only.
const SHORTEST: usize = 3;

/// Shorter words that a piece holds are in many.
const SHORTEST_WORD: usize = 4;

impl SensitivePieces {
    /// Takes what isn't empty.
    pub fn new(pieces: impl IntoIterator<Item = String>) -> Self {
        let mut pieces: Vec<_> = pieces
            .into_iter()
            .filter(|piece| !piece.is_empty())
            .collect();
        pieces.sort_unstable();
        pieces.dedup();
        Self(pieces)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a text holds a piece.
    pub fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|piece| text.contains(&**piece))
    }

    /// Whether a language that escapes with backslashes reads a piece otherwise than it is written.
    pub fn are_escaped(&self) -> bool {
        self.0.iter().any(|piece| piece.contains('\\'))
    }

    /// Whether a text holds a piece, or is a part of one.
    pub fn touch(&self, text: &str) -> bool {
        let is_part = |piece: &String| has(text, SHORTEST) && piece.contains(text);
        let is_within = |piece: &String| has(piece, SHORTEST) && text.contains(&**piece);
        let mut words = text.split(|c: char| !is_in_word(c));
        self.0
            .iter()
            .any(|piece| is_part(piece) || is_within(piece))
            || words.any(|word| self.0.iter().any(|piece| piece == word))
            || self.0.iter().any(|piece| piece == text)
    }

    /// A text without the pieces: what it quotes that has to do with one, and words that a piece
    /// holds.
    pub fn redact(&self, text: &str) -> String {
        let mut redacted = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find(['`', '"', '\'', '<']) {
            let quote = rest[open..].chars().next().unwrap_or('`');
            let close = if quote == '<' { '>' } else { quote };
            let inside = &rest[open + quote.len_utf8()..];
            let Some(length) = inside.find(close) else {
                break;
            };
            redacted.push_str(&self.without_words(&rest[..open]));
            redacted.push(quote);
            redacted.push_str(if self.touch(&inside[..length]) {
                HIDDEN
            } else {
                &inside[..length]
            });
            redacted.push(close);
            rest = &inside[length + close.len_utf8()..];
        }
        redacted.push_str(&self.without_words(rest));
        redacted
    }

    fn without_words(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for piece in self.0.iter().filter(|piece| has(piece, SHORTEST_WORD)) {
            if text.contains(&**piece) {
                text = text.replace(&**piece, HIDDEN);
            }
        }
        text.split_inclusive(|c: char| !is_in_word(c))
            .map(|word| {
                let bare = word.trim_end_matches(|c: char| !is_in_word(c));
                let is_number = bare.chars().all(|c| c.is_ascii_digit());
                let telling = has(bare, SHORTEST_WORD) || is_number && has(bare, SHORTEST);
                let is_part = self.0.iter().any(|piece| {
                    telling && piece.contains(bare) || has(piece, SHORTEST) && piece == bare
                });
                if is_part && !HIDDEN.contains(bare) {
                    word.replacen(bare, HIDDEN, 1)
                } else {
                    word.to_owned()
                }
            })
            .collect()
    }

    /// A finding without the pieces. Where its label says something of one, it says that it doesn't.
    pub fn mask(&self, finding: Diagnostic) -> Diagnostic {
        let label = |label: Label| Label {
            text: match self.redact(&label.text) {
                text if text == label.text => text,
                _ => MASKED_REASON.to_owned(),
            },
            ..label
        };
        Diagnostic {
            summary: self.redact(&finding.summary),
            detail: finding.detail.map(|detail| self.redact(&detail)),
            label: finding.label.map(label),
            related: finding.related.into_iter().map(label).collect(),
            hints: finding
                .hints
                .into_iter()
                .filter(|hint| self.redact(hint) == *hint)
                .collect(),
            ..finding
        }
    }
}

fn has(text: &str, characters: usize) -> bool {
    text.chars().nth(characters - 1).is_some()
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_of_a_secret_is_redacted() {
        let pieces = SensitivePieces::new(["hunter2 x".to_owned(), "4711".to_owned()]);
        for (text, expected) in [
            ("there is no `hunter2 x`", "there is no `(sensitive value)`"),
            (
                "there is no `a hunter2 x b`",
                "there is no `(sensitive value)`",
            ),
            (
                "unexpected \"hun\" in `open`, \"x\" too",
                "unexpected \"(sensitive value)\" in `open`, \"x\" too",
            ),
            (
                "undefined variable: $4711",
                "undefined variable: $(sensitive value)",
            ),
            (
                "471 is odd, hunter2 too",
                "(sensitive value) is odd, (sensitive value) too",
            ),
            ("nothing isn't open", "nothing isn't open"),
        ] {
            assert_eq!(pieces.redact(text), expected, "{text}");
        }
        assert_eq!(SensitivePieces::default().redact("a `b` c"), "a `b` c");
    }
}
