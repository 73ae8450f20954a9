//! Reads JSON with comments and trailing commas into [`Node`]s.
//!
//! In: the text of one file. Out: its document, each value with its place, or its first error. Must
//! not: know the schema, or accept further extensions of JSON.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jsonc_parser::ast::{Object, ObjectProp, ObjectPropName, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::errors::{ParseError, ParseErrorKind as Kind};
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};
use serde_json::Number;

use super::node::{Entry, Keys, Node, NodeValue};
use super::source::{SourceId, Span};
use crate::diagnostic::Diagnostic;

/// Accepts comments and trailing commas, and rejects the parser's other extensions.
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

/// The maximum nesting of objects and arrays. The state stores rendered args as JSON within a few
/// more levels, and `serde_json` reads at most 128.
pub(super) const DEEPEST: usize = 100;

type Read<T> = Result<T, Box<Diagnostic>>;

/// Reads a document.
///
/// Fails with the first syntax error, duplicate key or number out of range.
pub fn read(source: SourceId, text: &str) -> Read<Node> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let base = text.len() - body.len();
    let reader = Reader { source, body, base };
    let flaw = Scanner::new(body).flaw();
    let value = match (
        parse_to_ast(body, &CollectOptions::default(), &STRICT),
        flaw,
    ) {
        (Ok(parsed), None) => parsed.value,
        (Ok(_), Some(flaw)) => return Err(Box::new(reader.flaw(&flaw))),
        (Err(error), flaw) => return Err(Box::new(reader.explain(&error, flaw))),
    };
    let Some(value) = value else {
        let end = reader.span(body.len(), body.len());
        return Err(Box::new(
            Diagnostic::error("the file holds no configuration")
                .at(end, "expected `{`")
                .hint("`nstance init` writes a commented one to start from"),
        ));
    };
    reader.node(value)
}

struct Reader<'a> {
    source: SourceId,
    body: &'a str,
    base: usize,
}

impl Reader<'_> {
    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.source, self.base + start, self.base + end)
    }

    fn span_of(&self, range: Range) -> Span {
        self.span(range.start, range.end)
    }

    fn node(&self, value: Value<'_>) -> Read<Node> {
        let span = self.span_of(value.range());
        let value = match value {
            Value::NullKeyword(_) => NodeValue::Null,
            Value::BooleanLit(literal) => NodeValue::Bool(literal.value),
            Value::StringLit(literal) => NodeValue::String(Arc::from(&*literal.value)),
            Value::NumberLit(literal) => {
                NodeValue::Number(number(literal.value).ok_or_else(|| {
                    Box::new(
                        Diagnostic::error("a number is too large")
                            .at(span, "larger than a 64-bit floating-point number")
                            .hint("if it is text, put it in double quotes"),
                    )
                })?)
            }
            Value::Array(array) => {
                let elements = array.elements.into_iter();
                NodeValue::Array(
                    elements
                        .map(|element| self.node(element))
                        .collect::<Read<_>>()?,
                )
            }
            Value::Object(object) => NodeValue::Object(self.entries(object)?),
        };
        Ok(Node::new(span, value))
    }

    fn entries(&self, object: Object<'_>) -> Read<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::with_capacity(object.properties.len());
        let mut keys = Keys::default();
        for ObjectProp { name, value, .. } in object.properties {
            let key_span = self.span_of(name.range());
            let key: Arc<str> = match name {
                ObjectPropName::String(literal) => Arc::from(&*literal.value),
                ObjectPropName::Word(word) => Arc::from(word.value),
            };
            if let Some(first) = keys.span(&entries, &key) {
                return Err(Box::new(
                    Diagnostic::error(format!("duplicate key `{key}`"))
                        .at(key_span, "defined again here")
                        .related(first, "first defined here")
                        .hint("remove or rename one of the two"),
                ));
            }
            let value = self.node(value)?;
            entries.push(Entry {
                key,
                key_span,
                value,
            });
        }
        Ok(entries)
    }

    /// The finding for a syntax error: the flaw if it is the cause, else the parser's message.
    fn explain(&self, error: &ParseError, flaw: Option<Flaw>) -> Diagnostic {
        let Range { start, end } = error.range();
        let (before, here) = self.body.split_at(start);
        let is_unclosed = matches!(
            error.kind(),
            Kind::UnterminatedArray
                | Kind::UnterminatedObject
                | Kind::String(ParseStringErrorKind::UnterminatedStringLiteral)
        );
        if let Some(flaw) = flaw {
            if is_unclosed || flaw.found() <= start {
                return self.flaw(&flaw);
            }
            // `"a, "b": "c"`: an earlier quote is missing.
            if let Flaw::OpenString(open) = flaw
                && before.ends_with('"')
                && here.starts_with(char::is_alphanumeric)
                && !self.body[start..open].contains('\n')
            {
                let open = before[..start - 1].rfind('"').unwrap_or(open);
                return self.flaw(&Flaw::OpenString(open));
            }
        }
        if let Some(malformed) = self.malformed_number(before, here) {
            return malformed;
        }
        let behind = before.trim_end().len();
        let line = here
            .find('\n')
            .map_or(self.body.len(), |length| start + length);
        let span = self.span(start, end.min(line).max(start));
        let kind = error.kind();
        let said = || Diagnostic::error(uncapitalized(&kind.to_string())).at(span, "");
        match kind {
            Kind::ExpectedComma => self.missing("missing comma", start, "add `,` here"),
            Kind::ExpectedColonAfterObjectKey => self.missing(
                "missing `:` after a key",
                behind,
                "add `:` and a value here",
            ),
            _ if before[..behind].ends_with(':') && here.starts_with([',', '}', ']']) => {
                self.missing("missing value after a key", behind, "add a value here")
            }
            Kind::UnexpectedTokenInObject if before.ends_with('{') && here.starts_with('{') => {
                self.bare_template(start - 1)
            }
            Kind::UnexpectedTokenInObject if here.starts_with(',') => {
                Diagnostic::error("unexpected comma").at(span, "remove it")
            }
            Kind::UnexpectedToken if here.starts_with('#') => {
                said().hint("a comment starts with `//`")
            }
            Kind::ExpectedStringObjectProperty => {
                Diagnostic::error("keys must be quoted").at(span, "no quotes around it")
            }
            Kind::UnexpectedWord | Kind::UnexpectedToken
                if here.starts_with(char::is_alphanumeric) =>
            {
                Diagnostic::error("strings must be quoted")
                    .at(span, "no quotes around it")
                    .hint("the only words without quotes are `true`, `false` and `null`")
            }
            Kind::SingleQuotedStringsNotAllowed | Kind::UnexpectedToken => {
                Diagnostic::error("strings must be in double quotes").at(span, "expected `\"`")
            }
            Kind::MultipleRootJsonValues => {
                said().hint("a file holds one object; look above for a `}` that closes too early")
            }
            Kind::UnterminatedCommentBlock => said().hint("close it with `*/`"),
            Kind::String(ParseStringErrorKind::InvalidUnicodeEscapeSequence(_)) => {
                Diagnostic::error("invalid Unicode escape").at(span, "half of a surrogate pair")
            }
            Kind::String(_) => said().hint("write a backslash as `\\\\`"),
            _ => said(),
        }
    }

    fn missing(&self, summary: &str, at: usize, label: &str) -> Diagnostic {
        Diagnostic::error(summary).at(self.span(at, at), label)
    }

    /// The error that letters or digits follow a number; `None` if they don't.
    fn malformed_number(&self, before: &str, here: &str) -> Option<Diagnostic> {
        let is_number = |one: char| one.is_ascii_digit() || matches!(one, '-' | '.');
        let is_word = |one: char| one.is_alphanumeric() || one == '_';
        let start = before.trim_end_matches(is_number).len();
        let length = here.find(|one| !is_word(one)).unwrap_or(here.len());
        (start < before.len() && length > 0).then(|| {
            Diagnostic::error("invalid number")
                .at(self.span(start, before.len() + length), "")
                .hint("numbers have no units or leading zeros; strings must be in double quotes")
        })
    }

    /// The error that an unquoted Go template begins at `start`.
    fn bare_template(&self, start: usize) -> Diagnostic {
        let line = self.body[start..].lines().next().unwrap_or_default();
        let length = line.find("}}").map_or(line.len(), |at| at + 2);
        let template = line[..length].replace('\\', "\\\\").replace('"', "\\\"");
        Diagnostic::error("a Go template must be quoted")
            .at(self.span(start, start + length), "no quotes around it")
            .hint(format!("write `\"{template}\"`"))
    }

    fn flaw(&self, flaw: &Flaw) -> Diagnostic {
        let character = |at: usize| self.body[at..].chars().next().unwrap_or(' ');
        let span = |at: usize| self.span(at, at + character(at).len_utf8());
        match *flaw {
            Flaw::OpenString(at) => Diagnostic::error("a string isn't closed")
                .at(span(at), "its `\"` is missing on this line")
                .hint("within a string, write a line break as `\\n` and a quote as `\\\"`"),
            Flaw::OpenBracket { open, found } => {
                let closing = if character(open) == '{' { '}' } else { ']' };
                let error = Diagnostic::error(format!("a `{}` isn't closed", character(open)))
                    .at(span(open), format!("its `{closing}` is missing"));
                let found = self.body.len() - self.body[found..].trim_start().len();
                match self.body[found..].chars().next() {
                    Some(character) => error.related(
                        span(found),
                        format!("it must be closed before this `{character}`"),
                    ),
                    None => error,
                }
            }
            Flaw::Control(at) => {
                let code = u32::from(character(at));
                Diagnostic::error(format!(
                    "a string contains the control character U+{code:04X}"
                ))
                .at(span(at), "")
                .hint(match code {
                    9 => "write a tab as `\\t`".to_owned(),
                    _ => format!("write it as `\\u{code:04x}`"),
                })
            }
            Flaw::Space(at) => {
                let code = u32::from(character(at));
                Diagnostic::error(format!("unexpected character U+{code:04X}"))
                    .at(span(at), "an invisible character")
                    .hint("replace it with a space")
            }
            Flaw::TooDeep(at) => {
                Diagnostic::error(format!("the nesting is deeper than {DEEPEST} levels"))
                    .at(span(at), "one level too deep")
            }
        }
    }
}

/// Syntax errors that the parser accepts or explains badly, with byte offsets.
#[derive(Debug, Clone, Copy)]
enum Flaw {
    /// The string that begins here isn't closed on its line.
    OpenString(usize),
    /// The bracket at `open` isn't closed before `found`, which closes or follows an outer one.
    OpenBracket { open: usize, found: usize },
    /// A control character in a string.
    Control(usize),
    /// A character that isn't a space in JSON.
    Space(usize),
    /// A bracket that exceeds the maximum nesting.
    TooDeep(usize),
}

impl Flaw {
    /// Where the error occurs.
    fn found(self) -> usize {
        match self {
            Self::OpenBracket { found: at, .. }
            | Self::OpenString(at)
            | Self::Control(at)
            | Self::Space(at)
            | Self::TooDeep(at) => at,
        }
    }
}

/// An open bracket.
#[derive(Clone, Copy)]
struct Open {
    at: usize,
    closing: u8,
    /// The indentation of its line.
    indent: usize,
}

/// Finds the first flaw of a text by strings and brackets alone.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Open>,
    /// The first bracket that is indented deeper than its partner, and the partner. If a bracket is
    /// missing, it is probably this one's.
    suspect: Option<(Open, usize)>,
    /// The start of the last string if it begins its line, and the end of the token before it.
    key: Option<usize>,
    /// The indentation of the current line.
    indent: usize,
    is_blank: bool,
    /// The end of the last token.
    end: usize,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            open: Vec::new(),
            suspect: None,
            key: None,
            indent: 0,
            is_blank: true,
            end: 0,
        }
    }

    fn flaw(mut self) -> Option<Flaw> {
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            let rest = &self.text[self.at..];
            match byte {
                b'\n' => (self.indent, self.is_blank) = (0, true),
                b' ' | b'\t' | b'\r' => self.indent += usize::from(self.is_blank),
                b'/' if rest.starts_with("//") => {
                    self.at += rest.find(['\n', '\r']).unwrap_or(rest.len());
                    continue;
                }
                b'/' if rest.starts_with("/*") => {
                    // The parser reports an unclosed comment.
                    self.at += rest[2..].find("*/")? + 4;
                    continue;
                }
                _ => {
                    if let Err(flaw) = self.token(byte) {
                        return Some(flaw);
                    }
                    self.is_blank = false;
                    self.end = self.at + 1;
                }
            }
            self.at += 1;
        }
        let innermost = self.open.last()?;
        let (open, found) = match self.suspect {
            Some((open, found)) if open.closing == innermost.closing => (open.at, found),
            _ => (innermost.at, self.at),
        };
        Some(Flaw::OpenBracket { open, found })
    }

    /// Moves to the last byte of the current token. Fails if the token has a flaw.
    fn token(&mut self, byte: u8) -> Result<(), Flaw> {
        let at = self.at;
        match byte {
            b'"' => {
                self.key = self.is_blank.then_some(self.end);
                self.string()?;
            }
            // A key on a line of its own, within a list.
            b':' => {
                if let (Some(open), Some(found)) = (self.open.last(), self.key)
                    && open.closing == b']'
                {
                    let open = open.at;
                    return Err(Flaw::OpenBracket { open, found });
                }
            }
            b'{' | b'[' if self.open.len() == DEEPEST => return Err(Flaw::TooDeep(at)),
            // In ASCII, a closing bracket comes two after its opening one.
            b'{' | b'[' => self.open.push(Open {
                at,
                closing: byte + 2,
                indent: self.indent,
            }),
            b'}' | b']' => match self.open.pop() {
                Some(open) if open.closing != byte => {
                    let open = open.at;
                    return Err(Flaw::OpenBracket { open, found: at });
                }
                Some(open) if self.is_blank && self.indent < open.indent => {
                    self.suspect.get_or_insert((open, at));
                }
                // The parser reports an extra closing bracket.
                _ => {}
            },
            0x00..0x20 | 0x7f.. => {
                let character = self.text[at..].chars().next().unwrap_or(' ');
                if character.is_whitespace() || character.is_control() {
                    return Err(Flaw::Space(at));
                }
                self.at += character.len_utf8() - 1;
            }
            _ => {}
        }
        Ok(())
    }

    /// Moves to the closing quote of the current string. Fails if the string has a flaw.
    fn string(&mut self) -> Result<(), Flaw> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut is_escaped = false;
        loop {
            self.at += 1;
            match bytes.get(self.at) {
                None | Some(b'\n' | b'\r') => return Err(Flaw::OpenString(start)),
                Some(0x00..0x20) => return Err(Flaw::Control(self.at)),
                Some(b'"') if !is_escaped => return Ok(()),
                Some(byte) => is_escaped = *byte == b'\\' && !is_escaped,
            }
        }
    }
}

/// Lowers the first letter of a sentence, for a message.
fn uncapitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(characters).collect()
}

/// Every whole number up to this is exact as a double.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// A number as the model stores it. Whole numbers that fit are integers, including `1e3` and `2.0`,
/// since templates and json files print them so. Others are doubles; `None` if the number is out of
/// range.
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
