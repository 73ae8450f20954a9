//! Where a configuration holds sensitive values.
//!
//! In: the evaluated document. Out: [`places`], [`Concealed`] findings, and an error for each
//! sensitive value where it would be recorded as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decode::form::{GroupsForm, groups_form};
use super::node::{Node, NodeValue, Sensitivity};
use super::source::{SourceId, Span};
use crate::diagnostic::{CONCEALED, Diagnostic, Diagnostics, HIDDEN, Label};

/// A sensitive value of a document.
#[derive(Debug, Clone, Copy)]
pub struct Place<'n> {
    /// The keys that lead to it, with indices as `[0]`.
    path: &'n [String],
    /// Where its key is written; of a list's item, the list's.
    key_span: Span,
    /// The value.
    node: &'n Node,
}

impl Place<'_> {
    /// Its path, such as `groups.web.args.Tags[0]`.
    pub fn name(&self) -> String {
        let mut name = String::new();
        for part in self.path {
            if !name.is_empty() && !part.starts_with('[') {
                name.push('.');
            }
            name.push_str(part);
        }
        name
    }

    /// Where it is written.
    pub fn span(&self) -> Span {
        self.node.span
    }

    /// The texts and numbers in it that must not be shown.
    fn pieces(&self) -> Vec<String> {
        let mut pieces = Vec::new();
        pieces_of(self.node, &mut pieces);
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }
}

fn pieces_of(node: &Node, pieces: &mut Vec<String>) {
    match &node.value {
        NodeValue::String(text) => {
            let ranges = node.sensitivity.bytes(text);
            pieces.extend(ranges.into_iter().map(|range| text[range].to_owned()));
        }
        NodeValue::Number(number) => pieces.push(number.to_string()),
        NodeValue::Array(items) => items.iter().for_each(|item| pieces_of(item, pieces)),
        NodeValue::Object(entries) => {
            for entry in entries {
                if node.sensitivity == Sensitivity::Whole {
                    pieces.push(entry.key.to_string());
                }
                pieces_of(&entry.value, pieces);
            }
        }
        _ => {}
    }
}

/// Calls `visit` with every sensitive value of a document, outermost first; what is in one isn't
/// visited by itself.
pub fn places(root: &Node, visit: &mut dyn FnMut(Place<'_>)) {
    below(root, root.span, &mut Vec::new(), visit);
}

fn below(node: &Node, key_span: Span, path: &mut Vec<String>, visit: &mut dyn FnMut(Place<'_>)) {
    if !node.sensitivity.is_open() {
        visit(Place {
            path,
            key_span,
            node,
        });
        return;
    }
    match &node.value {
        NodeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(format!("[{index}]"));
                below(item, key_span, path, visit);
                path.pop();
            }
        }
        NodeValue::Object(entries) => {
            for entry in entries {
                path.push(entry.key.to_string());
                below(&entry.value, entry.key_span, path, visit);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Reports each sensitive value that stands where plans, tables and the record show it.
pub(super) fn find_exposed(root: &Node, findings: &mut Diagnostics) {
    let form = groups_form(root);
    places(root, &mut |place| {
        if may_be_sensitive(place.path, place.node, form) {
            return;
        }
        let key = place.path.iter().rfind(|part| !part.starts_with('['));
        let key = key.map_or("", String::as_str);
        findings.push(
            Diagnostic::error(format!("`{key}` can't be sensitive"))
                .at(place.span(), "it is recorded as it is, and shown")
                .hint("`nonsensitive(…)` says that it may be shown"),
        );
    });
}

/// Whether the value at a path is hidden wherever it goes, or goes nowhere.
fn may_be_sensitive(path: &[String], node: &Node, form: Option<GroupsForm>) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path[..] {
        ["vars" | "state" | "certificates", ..]
        | ["templates_lib", _, ..]
        | ["shard", "infra", "options", ..] => true,
        ["defaults", ref keys @ ..] | ["templates", _, ref keys @ ..] => is_content(keys, node),
        ["groups", _, ref keys @ ..] if form == Some(GroupsForm::Flat) => is_content(keys, node),
        ["groups", _, _, ref keys @ ..] if form == Some(GroupsForm::Nested) => {
            is_content(keys, node)
        }
        _ => false,
    }
}

/// Whether keys of a group or a template lead to what its instances are made of.
fn is_content(keys: &[&str], node: &Node) -> bool {
    match keys {
        ["args" | "vars", ..] | ["labels" | "files", _, ..] => true,
        ["userdata", .., "type" | "filename" | "merge"] => false,
        ["userdata", ..] => !matches!(node.value, NodeValue::Object(_)),
        ["overrides", _, keys @ ..] => is_content(keys, node),
        _ => false,
    }
}

/// What findings must not quote.
#[derive(Debug, Clone, Default)]
pub struct Concealed {
    /// By source and start: where a sensitive value ends, and the pieces of it.
    places: BTreeMap<(SourceId, u32), (u32, Arc<Pieces>)>,
}

impl Concealed {
    /// Gathers what a document holds.
    pub(super) fn of(root: &Node) -> Self {
        let mut gathered: BTreeMap<(SourceId, u32), (u32, Vec<String>)> = BTreeMap::new();
        places(root, &mut |place| {
            let pieces = place.pieces();
            for span in [place.span(), place.key_span] {
                let known = gathered.entry((span.source, span.start)).or_default();
                known.0 = known.0.max(span.end);
                known.1.extend(pieces.iter().cloned());
            }
        });
        let places = gathered
            .into_iter()
            .map(|(start, (end, pieces))| (start, (end, Arc::new(Pieces::new(pieces)))));
        Self {
            places: places.collect(),
        }
    }

    /// The finding without what it says of a sensitive value, if it is about one.
    pub(super) fn conceal(&self, finding: &Diagnostic) -> Option<Diagnostic> {
        if self.places.is_empty() {
            return None;
        }
        let labels = finding.label.iter().chain(&finding.related);
        let pieces: Vec<&Pieces> = labels.filter_map(|label| self.at(label.span)).collect();
        if pieces.is_empty() {
            return None;
        }
        let mut concealed = finding.clone();
        for pieces in pieces {
            concealed = pieces.conceal(concealed);
        }
        Some(concealed)
    }

    fn at(&self, span: Span) -> Option<&Pieces> {
        let start = (span.source, span.start);
        let (at, (end, pieces)) = self.places.range(..=start).next_back()?;
        let is_within = at.0 == span.source && (span.start < *end || at.1 == span.start);
        is_within.then_some(&**pieces)
    }
}

/// Parts of sensitive texts.
#[derive(Debug, Clone, Default)]
pub struct Pieces(Vec<String>);

/// Shorter pieces are in many texts: they are looked for as whole words only.
const SHORTEST: usize = 3;

/// Shorter words that a piece holds are in many.
const SHORTEST_WORD: usize = 4;

impl Pieces {
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
    pub fn conceal(&self, finding: Diagnostic) -> Diagnostic {
        let label = |label: Label| Label {
            text: match self.redact(&label.text) {
                text if text == label.text => text,
                _ => CONCEALED.to_owned(),
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
        let pieces = Pieces::new(["hunter2 x".to_owned(), "4711".to_owned()]);
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
        assert_eq!(Pieces::default().redact("a `b` c"), "a `b` c");
    }
}
