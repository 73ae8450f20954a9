//! JSON with comments and trailing commas, and nothing looser, read into [`Node`]s.
//!
//! In: the text of one file. Out: its document, each value with its place, or what is wrong with
//! it. May not: know the schema.

mod mend;
mod quotes;
mod read_on;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jsonc_parser::ast::{Object, ObjectProp, ObjectPropName, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};
use serde_json::Number;

use self::mend::Mended;
use self::read_on::mended;
use super::halves;
use super::node::{Entry, Keys, Node, NodeValue};
use super::outline::{self, Cut};
use super::source::{SourceId, Span};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::threads::{WORTH_A_THREAD, both, cores};

/// Comments and trailing commas; everything else that the parser would tolerate is refused.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads a document. `None` where the text can't be parsed; findings then say why. A key that
/// stands twice in an object is an error, and its first value is kept.
pub fn read(source: SourceId, text: &str, findings: &mut Diagnostics) -> Option<Node> {
    read_or(source, text, findings, |_, _, _, _| None)
}

/// The same, but goes on after mistakes where it can be told how the text was meant: then there is
/// a document, and each mistake is among the findings.
pub(super) fn read_on(source: SourceId, text: &str, findings: &mut Diagnostics) -> Option<Node> {
    read_or(source, text, findings, mended)
}

fn read_or(
    source: SourceId,
    text: &str,
    findings: &mut Diagnostics,
    otherwise: fn(SourceId, &str, usize, &mut Diagnostics) -> Option<Node>,
) -> Option<Node> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let base = text.len() - body.len();
    let (flaw, cut) = outline::scan(source, body, base);
    if let (None, Some(cut)) = (&flaw, cut)
        && body.len() >= WORTH_A_THREAD
        && cores() > 1
        && let Some(node) = in_halves(source, body, base, cut)
    {
        return Some(node);
    }
    if let Some(flaw) = flaw.as_ref().filter(|flaw| flaw.too_deep) {
        findings.push((*flaw.diagnostic).clone());
        return None;
    }
    let parsed = parse_to_ast(body, &CollectOptions::default(), &STRICT);
    // Both look at the same text; the earlier finding is the cause, the later one may follow from it.
    let is_hopeless = flaw.as_ref().is_some_and(|flaw| !flaw.is_open_string);
    if parsed.is_err()
        && !is_hopeless
        && let Some(node) = otherwise(source, body, base, findings)
    {
        return Some(node);
    }
    if let Some(flaw) = flaw {
        let earlier = match &parsed {
            // What isn't closed, the parser reports at its start; the flaw knows better.
            Err(error) if is_unclosed(error.kind()) => false,
            Err(error) => base + error.range().start < flaw.offset,
            Ok(_) => false,
        };
        if !earlier {
            findings.push(*flaw.diagnostic);
            return None;
        }
    }
    let mut reader = Reader {
        source,
        body,
        base,
        mended: None,
        findings,
    };
    match parsed {
        Err(error) => {
            let diagnostic = reader.explain(&error);
            reader.findings.push(diagnostic);
            None
        }
        Ok(result) => {
            if let Some(value) = result.value {
                Some(reader.node(value))
            } else {
                let end = text.len();
                findings.push(
                    Diagnostic::error("the file holds no configuration")
                        .at(Span::new(source, end, end), "expected `{`")
                        .hint("`nstance init` writes a commented one to start from"),
                );
                None
            }
        }
    }
}

/// Reads a document as two. `None` if anything is wrong with it.
fn in_halves(source: SourceId, body: &str, base: usize, cut: Cut) -> Option<Node> {
    let first = [&body[..cut.at], &"}".repeat(cut.depth)].concat();
    let opening = format!("{{{}", "\"\":{".repeat(cut.depth - 1));
    let (second, start) = halves::second(body, cut.at, &opening)?;
    let read = |body: &str, base: usize| {
        let mut findings = Diagnostics::default();
        let mut reader = Reader {
            source,
            body,
            base,
            mended: None,
            findings: &mut findings,
        };
        let parsed = parse_to_ast(body, &CollectOptions::default(), &STRICT);
        let node = reader.node(parsed.ok()?.value?);
        findings.is_empty().then_some(node)
    };
    let (first, second) = both(
        || read(&first, base),
        || read(&second[start..], base + start),
    );
    let mut whole = first?;
    halves::join(&mut whole, second?, cut.depth - 1)?;
    Some(whole)
}

struct Reader<'a> {
    source: SourceId,
    body: &'a str,
    base: usize,
    /// Where `body` isn't what was written.
    mended: Option<&'a Mended>,
    findings: &'a mut Diagnostics,
}

impl Reader<'_> {
    fn span(&self, range: Range) -> Span {
        let written = |at: usize| self.mended.map_or(at, |mended| mended.written(at));
        let (start, end) = (written(range.start), written(range.end));
        Span::new(self.source, self.base + start, self.base + end)
    }

    /// The place of so many bytes.
    fn at(&self, start: usize, length: usize) -> Span {
        let end = start + length;
        self.span(Range { start, end })
    }

    fn node(&mut self, value: Value<'_>) -> Node {
        let range = value.range();
        let span = self.span(range);
        let is_single = !matches!(value, Value::Array(_) | Value::Object(_));
        if is_single
            && let Some(mended) = self.mended
            && mended.is_unknown(&(range.start..range.end))
        {
            return Node::unknown(span);
        }
        let value = match value {
            Value::NullKeyword(_) => NodeValue::Null,
            Value::BooleanLit(literal) => NodeValue::Bool(literal.value),
            Value::StringLit(literal) => NodeValue::String(Arc::from(&*literal.value)),
            Value::NumberLit(literal) => {
                number(literal.value).map_or_else(|| self.too_large(span), NodeValue::Number)
            }
            Value::Array(array) => NodeValue::Array(
                array
                    .elements
                    .into_iter()
                    .map(|element| self.node(element))
                    .collect(),
            ),
            Value::Object(object) => NodeValue::Object(self.entries(object)),
        };
        Node { span, value }
    }

    fn too_large(&mut self, span: Span) -> NodeValue {
        self.findings.push(
            Diagnostic::error("a number is too large")
                .at(span, "no number of this size can be kept")
                .hint("if it is text, put it in double quotes"),
        );
        NodeValue::Null
    }

    fn entries(&mut self, object: Object<'_>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::with_capacity(object.properties.len());
        let mut keys = Keys::default();
        for ObjectProp { name, value, .. } in object.properties {
            let key_span = self.span(name.range());
            let key: Arc<str> = match name {
                ObjectPropName::String(literal) => Arc::from(&*literal.value),
                ObjectPropName::Word(word) => Arc::from(word.value),
            };
            let value = self.node(value);
            match keys.span(&entries, &key) {
                None => entries.push(Entry {
                    key,
                    key_span,
                    value,
                }),
                Some(first) => self.findings.push(
                    Diagnostic::error(format!("the key `{key}` stands twice in one object"))
                        .at(key_span, "here again")
                        .related(first, "it stands here first")
                        .hint("remove or rename one of the two"),
                ),
            }
        }
        entries
    }

    /// Puts the parser's words into ours.
    fn explain(&self, error: &ParseError) -> Diagnostic {
        use ParseErrorKind as Kind;
        let range = error.range();
        let span = self.span(range);
        let here = self.body.get(range.start..).unwrap_or("");
        let before = self.body.get(..range.start).unwrap_or("");
        let at = |summary: &str, label: &str| Diagnostic::error(summary).at(span, label);
        match error.kind() {
            Kind::ExpectedComma => self.missing_comma(range, before, here),
            Kind::SingleQuotedStringsNotAllowed => at(
                "strings stand in double quotes",
                "this one starts with a single quote",
            )
            .hint("write `\"…\"` instead of `'…'`"),
            Kind::ExpectedStringObjectProperty => at("a key isn't in quotes", "keys are strings")
                .hint(format!("write `\"{}\"`", word(here))),
            Kind::ExpectedColonAfterObjectKey => at(
                "a `:` is missing after a key",
                "expected `:` and a value before this",
            ),
            Kind::ExpectedObjectValue => at("a key has no value", "expected a value"),
            Kind::UnexpectedWord | Kind::UnexpectedToken => self
                .malformed_number(range.start, before, here)
                .unwrap_or_else(|| self.unexpected(range.start, here)),
            Kind::UnexpectedTokenInObject if here.starts_with(',') => too_many_commas(span),
            Kind::UnexpectedComma if before.trim_end().ends_with(':') => {
                at("a key has no value", "expected a value before this")
            }
            Kind::UnexpectedTokenInObject => {
                at("a key was expected", "this can't stand in an object here")
                    .hint("an object is `{\"key\": value, …}`")
            }
            Kind::UnexpectedComma => too_many_commas(span),
            Kind::UnexpectedColon => at("a `:` can't stand here", "expected a value")
                .hint("only objects, in `{}`, have keys"),
            Kind::UnexpectedCloseBrace | Kind::UnexpectedCloseBracket => {
                at("a value is missing", "expected a value before this")
            }
            Kind::MultipleRootJsonValues => at(
                "something follows the end of the configuration",
                "the configuration ended before this",
            )
            .hint("a file holds one object; look for a `}` that closes too early above"),
            Kind::HexadecimalNumbersNotAllowed => {
                let place = self.at(range.start, word(here).len());
                Diagnostic::error("hexadecimal numbers aren't JSON")
                    .at(place, "a hexadecimal number")
                    .hint("write it in decimal, or as a string")
            }
            Kind::UnaryPlusNumbersNotAllowed => {
                at("a number can't start with `+`", "remove the `+`")
            }
            Kind::BareDecimalPointNumbersNotAllowed => at(
                "a number needs digits on both sides of its point",
                "a digit is missing",
            )
            .hint("write `0.5` rather than `.5`, `5.0` or `5` rather than `5.`"),
            Kind::NonFiniteNumbersNotAllowed => at(
                "Infinity and NaN aren't JSON",
                "not a number that JSON knows",
            ),
            Kind::ExpectedDigit
            | Kind::ExpectedDigitFollowingNegativeSign
            | Kind::ExpectedPlusMinusOrDigitInNumberLiteral => {
                at("a number lacks digits", "expected a digit")
            }
            Kind::String(kind) => self.bad_string(range, kind),
            Kind::UnterminatedArray => at("a `[` is never closed", "add the missing `]`"),
            Kind::UnterminatedObject => at("a `{` is never closed", "add the missing `}`"),
            Kind::UnterminatedCommentBlock => at("a comment isn't closed", "close it with `*/`"),
            Kind::NestingDepthExceeded => at("the nesting is too deep", "too deep"),
            Kind::CommentsNotAllowed | Kind::TrailingCommasNotAllowed => {
                at(&error.kind().to_string(), "")
            }
        }
    }

    fn missing_comma(&self, range: Range, before: &str, here: &str) -> Diagnostic {
        self.malformed_number(range.start, before, here)
            .unwrap_or_else(|| {
                Diagnostic::error("a comma is missing").at(self.span(range), "expected `,` here")
            })
    }

    /// The finding that letters or digits follow a number, if they do.
    fn malformed_number(&self, at: usize, before: &str, here: &str) -> Option<Diagnostic> {
        let goes_on = here.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        if !goes_on || !before.ends_with(|last: char| last.is_ascii_digit()) {
            return None;
        }
        let start = before
            .rfind(|character: char| !matches!(character, '0'..='9' | '-' | '.'))
            .map_or(0, |at| at + 1);
        let whole = Range {
            start,
            end: at + word(here).len(),
        };
        Some(
            Diagnostic::error("a number is malformed")
                .at(self.span(whole), "not a number that JSON knows")
                .hint(
                    "numbers have no leading zeros, units or separators; \
                     anything else stands in double quotes",
                ),
        )
    }

    fn unexpected(&self, at: usize, here: &str) -> Diagnostic {
        let word = word(here);
        if word.is_empty() {
            let character = here.chars().next().unwrap_or(' ');
            let hint = match character {
                '#' => "a comment starts with `//`; text stands in double quotes",
                _ => "text stands in double quotes",
            };
            return Diagnostic::error(format!("a `{character}` can't stand here"))
                .at(self.at(at, character.len_utf8()), "expected a value")
                .hint(hint);
        }
        let diagnostic = Diagnostic::error("this word isn't a JSON value")
            .at(self.at(at, word.len()), "expected a value");
        match word.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => diagnostic.hint("write `true`"),
            "false" | "no" | "off" => diagnostic.hint("write `false`"),
            "none" | "nil" | "undefined" => diagnostic.hint("write `null`"),
            // It may be a secret.
            _ => diagnostic.hint("text stands in double quotes"),
        }
    }

    fn bad_string(&self, range: Range, kind: &ParseStringErrorKind) -> Diagnostic {
        // The parser's range runs from the escape to wherever it stopped reading.
        let escape = |length: usize| self.at(range.start, length);
        match kind {
            ParseStringErrorKind::UnterminatedStringLiteral => {
                Diagnostic::error("a string isn't closed").at(self.span(range), "no closing quote")
            }
            ParseStringErrorKind::ExpectedFourHexDigits
            | ParseStringErrorKind::ExpectedTwoHexDigits => {
                Diagnostic::error("an escape is cut short")
                    .at(escape(2), "`\\u` needs four hexadecimal digits")
            }
            ParseStringErrorKind::InvalidUnicodeEscapeSequence(_) => {
                Diagnostic::error("an escape is half a character")
                    .at(escape(6), "half of a surrogate pair")
                    .hint("write the character itself, or both halves")
            }
            ParseStringErrorKind::InvalidEscapeInSingleQuoteString
            | ParseStringErrorKind::InvalidEscapeInDoubleQuoteString
            | ParseStringErrorKind::InvalidEscape => {
                let length = self.body[range.start..]
                    .chars()
                    .take(2)
                    .map(char::len_utf8)
                    .sum();
                Diagnostic::error("a string holds an escape that JSON doesn't know")
                    .at(escape(length), "unknown escape")
                    .hint(
                        "a backslash is written `\\\\`; known escapes: \
                         `\\\"` `\\\\` `\\/` `\\b` `\\f` `\\n` `\\r` `\\t` `\\uXXXX`",
                    )
            }
        }
    }
}

fn is_unclosed(kind: &ParseErrorKind) -> bool {
    matches!(
        kind,
        ParseErrorKind::UnterminatedArray
            | ParseErrorKind::UnterminatedObject
            | ParseErrorKind::UnterminatedCommentBlock
            | ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral)
    )
}

fn too_many_commas(span: Span) -> Diagnostic {
    Diagnostic::error("there is a comma too many")
        .at(span, "nothing stands before it")
        .hint("one trailing comma is fine, two aren't")
}

/// The letters, digits, `_` and `-` that a text starts with.
fn word(text: &str) -> &str {
    let end = text
        .find(|character: char| !character.is_alphanumeric() && !matches!(character, '_' | '-'))
        .unwrap_or(text.len());
    &text[..end]
}

/// Up to here every whole number is a double.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// A number as the model keeps it: an integer if it is whole and fits (`1e3` and `2.0` too, as
/// templates and json files print them so), else a double; `None` if even that is too small for it.
pub(crate) fn number(literal: &str) -> Option<Number> {
    if !literal.contains(['.', 'e', 'E']) {
        if let Ok(whole) = literal.parse::<i64>() {
            return Some(whole.into());
        }
        if let Ok(whole) = literal.parse::<u64>() {
            return Some(whole.into());
        }
    }
    let value = literal.parse::<f64>().ok()?;
    if value.fract() == 0.0 && value.abs() <= LARGEST_EXACT && !literal.starts_with("-0") {
        return Some((value as i64).into());
    }
    Number::from_f64(value)
}
