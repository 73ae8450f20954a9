//! Explains the first error of a YAML text: what is wrong, where, and the text that fixes it.

use nstance_yaml::{Error, ErrorKind, LARGEST_EXPANSION};

use crate::config::jsonc::DEEPEST;
use crate::config::source::{SourceId, Span};
use crate::diagnostic::Diagnostic;

/// The finding for an error.
pub(super) fn explain(source: SourceId, text: &str, error: &Error) -> Diagnostic {
    let context = Context {
        source,
        text,
        at: error.range.start,
        open: error.open,
    };
    let place = context.span(error.range.start, error.range.end);
    match &error.kind {
        ErrorKind::Syntax(message) if message.contains("recursion limit") => too_deep(place),
        ErrorKind::Syntax(message) => context.syntax(message, place),
        ErrorKind::Tab => context.tab("tab").unwrap_or_else(|| tab(place)),
        ErrorKind::Key => context
            .bare_template()
            .unwrap_or_else(|| complex_key(place)),
        ErrorKind::TooDeep => too_deep(place),
        ErrorKind::TooManyCopies => Diagnostic::error(format!(
            "aliases stand for more than {LARGEST_EXPANSION} values"
        ))
        .at(place, "the limit is exceeded here")
        .hint("aliases of aliases multiply; name what differs in `vars` or a template instead"),
        ErrorKind::Cycle => Diagnostic::error("an alias refers to a value that contains it")
            .at(place, "the value of its anchor is not complete here"),
    }
}

fn too_deep(place: Span) -> Diagnostic {
    Diagnostic::error(format!("the nesting is deeper than {DEEPEST} levels"))
        .at(place, "one level too deep")
}

fn tab(place: Span) -> Diagnostic {
    Diagnostic::error("a tab in the indentation")
        .at(place, "a tab")
        .hint("indent with spaces; two for each level are usual")
}

/// The error for a list or an object as a key.
pub(super) fn complex_key(place: Span) -> Diagnostic {
    Diagnostic::error("invalid key")
        .at(place, "a list or an object can't be a key")
        .hint("put text that starts with `[` or `{` in quotes")
}

/// The error for an unknown tag.
pub(super) fn unknown_tag(tag: &str, place: Span) -> Diagnostic {
    Diagnostic::error(format!("unknown tag `{tag}`"))
        .at(place, "tags of other programs aren't supported")
        .hint(
            "put text that starts with `!` in quotes; known tags are `!!str`, `!!int`, \
             `!!float`, `!!bool`, `!!null`, `!!seq`, `!!map`",
        )
}

/// The error for a character that YAML forbids.
pub(super) fn control_character(text: &str, place: Span) -> Diagnostic {
    let code = text.as_bytes()[place.start as usize];
    Diagnostic::error(format!(
        "the file contains the control character U+{code:04X}"
    ))
    .at(place, "not allowed in YAML")
    .hint(format!(
        "it is invisible; delete it, or write `\\x{code:02X}` in double quotes"
    ))
}

/// The context of a syntax error.
struct Context<'t> {
    source: SourceId,
    text: &'t str,
    at: usize,
    /// The innermost open `[` or `{`.
    open: Option<usize>,
}

impl<'t> Context<'t> {
    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.source, start, end)
    }

    /// The start of the line at a byte, and its text.
    fn line(&self, at: usize) -> (usize, &'t str) {
        let start = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        let rest = &self.text[start..];
        (start, rest.lines().next().unwrap_or_default())
    }

    /// The last non-empty line above the one at a byte.
    fn above(&self, at: usize) -> Option<(usize, &'t str)> {
        let mut start = self.line(at).0;
        while start > 0 {
            let (above, line) = self.line(start - 1);
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                return Some((above, line));
            }
            start = above;
        }
        None
    }

    fn syntax(&self, message: &str, place: Span) -> Diagnostic {
        self.tab(message)
            .or_else(|| self.bare_template())
            .or_else(|| self.open_quote(message))
            .or_else(|| self.open_bracket(message))
            .or_else(|| self.missing_space(message))
            .or_else(|| self.missing_comma(message, place))
            .or_else(|| self.missing_colon(message))
            .unwrap_or_else(|| {
                Diagnostic::error("invalid YAML").at(place, message).hint(
                    "align the keys of an object; put values in quotes that contain `: ` or ` #`, \
                     or start with a symbol",
                )
            })
    }

    /// A tab in the indentation of this line or the next.
    fn tab(&self, message: &str) -> Option<Diagnostic> {
        let (start, line) = self.line(self.at);
        let next = start + line.len() + 1;
        let mut lines = [start, next.min(self.text.len())].into_iter();
        lines.find_map(|start| {
            let line = self.line(start).1;
            let text = line.len() - line.trim_start().len();
            let within = if message.contains("tab") {
                line
            } else {
                &line[..text]
            };
            let at = start + within.find('\t').filter(|_| text < line.len())?;
            Some(tab(self.span(at, at + 1)))
        })
    }

    /// An unquoted `{{ … }}`.
    fn bare_template(&self) -> Option<Diagnostic> {
        let (start, line) = self.line(self.at);
        let at = line.find("{{")?;
        let before = line[..at].trim_end();
        let begins = before.is_empty()
            || before.trim_start() == "-"
            || before.ends_with(" -")
            || before.ends_with([':', '[', '{', ',']);
        if !begins && (before.contains(['"', '\'']) || start + at > self.at) {
            return None;
        }
        let word = line[at..].trim_start_matches(['{', '-', ' ']);
        let controls = ["if", "else", "end", "range", "with", "define", "block"];
        let is_control = before.is_empty() && controls.iter().any(|known| word.starts_with(known));
        Some(
            Diagnostic::error("an unquoted template")
                .at(
                    self.span(start + at, start + line.len()),
                    if begins {
                        "YAML reads `{` as the start of an object"
                    } else {
                        "YAML reads `: ` as the end of a key, ` #` as a comment"
                    },
                )
                .hint(if is_control {
                    "templates are rendered after the configuration is read: write them within \
                     strings, not around keys"
                } else {
                    "put the whole value in quotes: `'{{ … }}'`, or in a block after `|`"
                }),
        )
    }

    /// An unclosed string.
    fn open_quote(&self, message: &str) -> Option<Diagnostic> {
        let quote = &self.text[self.at..].get(..1)?;
        let is_open = message.contains("quoted scalar")
            && ["end of stream", "document indicator", "invalid indentation"]
                .iter()
                .any(|part| message.contains(part));
        if !is_open || !matches!(*quote, "\"" | "'") {
            return None;
        }
        let (start, line) = self.line(self.at);
        Some(
            Diagnostic::error("a string isn't closed")
                .at(
                    self.span(self.at, start + line.len()),
                    format!("the closing `{quote}` is missing"),
                )
                .hint(format!(
                    "close it with `{quote}`; write a string of several lines in a block after `|`"
                )),
        )
    }

    /// An unclosed bracket, at the end of the text or before a line without indentation.
    fn open_bracket(&self, message: &str) -> Option<Diagnostic> {
        let open = self.open?;
        let rest = &self.text[self.at..];
        let (opener, closer, other) = match &self.text[open..=open] {
            "[" => ('[', ']', '}'),
            _ => ('{', '}', ']'),
        };
        if rest.starts_with(other) && !message.contains("misplaced") {
            return Some(
                Diagnostic::error(format!("`{opener}` is closed by `{other}`"))
                    .at(
                        self.span(self.at, self.at + 1),
                        format!("expected `{closer}`"),
                    )
                    .related(self.span(open, open + 1), "opened here"),
            );
        }
        let indentation = |line: &str| line.len() - line.trim_start().len();
        let ((first, first_line), (last, last_line)) = (self.line(open), self.line(self.at));
        let is_left = first != last && indentation(last_line) <= indentation(first_line);
        if !rest.trim().is_empty() && !is_left {
            return None;
        }
        Some(
            Diagnostic::error(format!("a `{opener}` isn't closed"))
                .at(self.span(open, open + 1), "opened here")
                .hint(format!(
                    "add the missing `{closer}`; indent the lines up to it deeper than the key"
                )),
        )
    }

    /// `key:value` without a space, on this line or the one above.
    fn missing_space(&self, message: &str) -> Option<Diagnostic> {
        let parts = ["key", "mapping values", "trailing content"];
        if !parts.iter().any(|part| message.contains(part)) {
            return None;
        }
        let lines = [Some(self.line(self.at)), self.above(self.at)];
        lines.into_iter().flatten().find_map(|(start, line)| {
            let colon = line.find(':')?;
            let name = line[..colon].trim_start_matches([' ', '-']);
            let is_name = !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || "_-.".contains(c));
            let is_tight = line[colon + 1..].starts_with(|c: char| !c.is_whitespace() && c != '/');
            (is_name && is_tight).then(|| {
                let at = start + colon;
                Diagnostic::error("missing space after `:`")
                    .at(self.span(at, at + 1), "without a space this ends no key")
                    .hint("write `key: value`")
            })
        })
    }

    /// Two items in brackets without a comma between them.
    fn missing_comma(&self, message: &str, place: Span) -> Option<Diagnostic> {
        let is_missing = message.contains("expected ',' or")
            || message.contains("trailing content") && self.open.is_some();
        is_missing.then(|| Diagnostic::error("missing comma").at(place, "expected `,` before this"))
    }

    /// A line without a colon: this one or the one above.
    fn missing_colon(&self, message: &str) -> Option<Diagnostic> {
        if !message.contains("simple key") && !message.contains("mapping values") {
            return None;
        }
        let lines = [Some(self.line(self.at)), self.above(self.at)];
        let mut lines = lines.into_iter().flatten();
        let (start, line) = lines.find(|(_, line)| {
            let text = line.trim();
            !text.is_empty() && !text.contains(": ") && !text.ends_with(':')
        })?;
        let text = line.trim();
        let at = start + line.len() - line.trim_start().len();
        let hint = match (text.split_once('='), text.split_whitespace().next()) {
            _ if text.starts_with("//") => "comments start with `#`".to_owned(),
            (Some((key, value)), _) => format!("write `{}: {}`", key.trim(), value.trim()),
            (_, word) => format!(
                "write `{}: value`; put a string of several lines in quotes, or in a block \
                 after `|`, indented",
                word.unwrap_or("key")
            ),
        };
        Some(
            Diagnostic::error("missing `:` after a key")
                .at(self.span(at, at + text.len()), "expected `key: value`")
                .hint(hint),
        )
    }
}
