//! What is wrong with a text that the parser refuses, in the words of someone who writes it.
//!
//! In: the parser's complaint and its place. Out: one [`Diagnostic`]: what stands there, and what
//! would be right. May not: accept anything.
//!
//! The parser's complaint says what it was doing; the slip behind it is told from the lines around
//! the place (`slips`). A complaint that isn't known here is passed on in the parser's words.

use super::blanks;
use super::lines::Lines;
use super::slips;
use super::words;
use crate::config::source::{SourceId, Span};
use crate::diagnostic::Diagnostic;

/// A place that the parser complains of.
pub(super) struct Context<'t> {
    pub(super) source: SourceId,
    pub(super) text: &'t str,
    /// The byte.
    pub(super) at: usize,
    /// The innermost `[` or `{` that is open.
    pub(super) open: Option<usize>,
}

impl<'t> Context<'t> {
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.source, start, end.max(start))
    }

    /// The character at `at`, as wide as it is.
    pub(super) fn character(&self, at: usize) -> Span {
        let width = self.rest(at).chars().next().map_or(0, char::len_utf8);
        self.span(at, at + width)
    }

    pub(super) fn rest(&self, at: usize) -> &'t str {
        &self.text[at.min(self.text.len())..]
    }

    pub(super) fn lines(&self) -> Lines<'t> {
        Lines::new(self.text)
    }

    /// The word at `at`: up to a blank or a line's end; within brackets up to what parts items.
    fn word(&self, at: usize) -> Span {
        let rest = self.rest(at);
        let parts = |c: char| self.open.is_some() && matches!(c, ',' | ']' | '}');
        let ends = |c: char| c.is_whitespace() || parts(c);
        let length = rest.find(ends).unwrap_or(rest.len());
        self.span(at, at + length)
    }
}

/// The end of the template that starts at `start`: behind its `}}`, or its line. What closes more
/// than it opens is the bracket's around it.
pub(super) fn template_end(text: &str, start: usize) -> usize {
    let line = text[start..].lines().next().unwrap_or("").trim_end();
    line.find("}}").map_or(start + line.len(), |at| {
        let run = |text: &str, brace: char| text.len() - text.trim_start_matches(brace).len();
        start + at + run(&line[at..], '}').min(run(line, '{').max(2))
    })
}

/// Puts the parser's words into ours.
pub(super) fn explain(context: &Context<'_>, info: &str) -> Diagnostic {
    let told = blanks::stumbled_over(context).or_else(|| slips::bare_template(context));
    if let Some(diagnostic) = told {
        return diagnostic;
    }
    let known = quoted(context, info)
        .or_else(|| block(context, info))
        .or_else(|| flow(context, info))
        .or_else(|| indicator(context, info))
        .or_else(|| structure(context, info));
    known.unwrap_or_else(|| {
        Diagnostic::error("the YAML can't be read").at(context.character(context.at), info)
    })
}

/// Complaints about strings in quotes; their place is mostly the opening one.
fn quoted(context: &Context<'_>, info: &str) -> Option<Diagnostic> {
    let at = context.at;
    let unclosed = info.contains("unexpected end of stream")
        || info.contains("unexpected document indicator")
        || info == "invalid indentation in quoted scalar";
    if unclosed && context.rest(at).starts_with(['"', '\'']) {
        let quote = &context.rest(at)[..1];
        let line = context.lines().end(at);
        return Some(
            Diagnostic::error("a string isn't closed")
                .at(
                    context.span(at, line),
                    format!("there is no closing `{quote}` on this line"),
                )
                .hint(format!(
                    "close it with `{quote}`; a text of several lines stands in a block: `|`, \
                     then the lines, indented"
                )),
        );
    }
    if info.contains("escape character") && info.contains("unknown") {
        let (start, end) = bad_escape(context.rest(at))?;
        return Some(
            Diagnostic::error("a string holds an escape that YAML doesn't know")
                .at(context.span(at + start, at + end), "unknown escape")
                .hint(
                    "in double quotes a backslash is written `\\\\`; in single quotes it is itself: \
                     `'…'`",
                ),
        );
    }
    if info.contains("hexadecimal number") {
        let start = at + bad_escape(context.rest(at))?.0;
        let (digits, letter) = match context.rest(start).as_bytes().get(1) {
            Some(b'x') => ("two", 'x'),
            Some(b'u') => ("four", 'u'),
            _ => ("eight", 'U'),
        };
        return Some(Diagnostic::error("an escape is cut short").at(
            context.span(start, start + 2),
            format!("`\\{letter}` needs {digits} hexadecimal digits"),
        ));
    }
    if info.contains("invalid Unicode character escape") {
        let start = at + bad_escape(context.rest(at))?.0;
        let rest = context.rest(start);
        let unit = |from: usize| u16::from_str_radix(rest.get(from..from + 4)?, 16).ok();
        let whole = unit(2)
            .zip(unit(8))
            .and_then(|(high, low)| char::decode_utf16([high, low]).next().and_then(Result::ok));
        let diagnostic = Diagnostic::error("an escape is no character").at(
            context.span(start, start + 6.min(rest.len())),
            "not the code of a character",
        );
        return Some(match whole {
            Some(character) => diagnostic.hint(format!(
                "YAML has no pairs of escapes: write `\\U{:08X}`, or `{character}` itself",
                u32::from(character)
            )),
            None => diagnostic.hint("write the character itself"),
        });
    }
    if info.contains("trailing content after") {
        return Some(slips::behind_quote(context));
    }
    None
}

/// Where in a string in double quotes the first escape is that can't be one.
fn bad_escape(literal: &str) -> Option<(usize, usize)> {
    let mut at = 1;
    while let Some(length) = literal.get(at..)?.find('\\') {
        at += length;
        let next = literal[at + 1..].chars().next()?;
        let digits = match next {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            '0' | 'a' | 'b' | 't' | '\t' | 'n' | 'v' | 'f' | 'r' | 'e' | ' ' | '"' | '/' | '\\'
            | 'N' | '_' | 'L' | 'P' | '\n' | '\r' => 0,
            _ => return Some((at, at + 1 + next.len_utf8())),
        };
        let sound = digits == 0
            || literal
                .get(at + 2..at + 2 + digits)
                .and_then(|digits| u32::from_str_radix(digits, 16).ok())
                .and_then(char::from_u32)
                .is_some();
        if !sound {
            return Some((at, at + 2));
        }
        at += 1 + next.len_utf8();
    }
    None
}

/// Complaints about `|` and `>`.
fn block(context: &Context<'_>, info: &str) -> Option<Diagnostic> {
    let at = context.at;
    let header = match context.rest(at).as_bytes().first() {
        Some(b'>') => '>',
        _ => '|',
    };
    if info.contains("scanning a block scalar, did not find expected comment") {
        let end = context.lines().end(at);
        return Some(
            Diagnostic::error(format!("something follows `{header}` on its line"))
                .at(
                    context.span(at, end),
                    "the text of a block can't start here",
                )
                .hint(
                    "the text starts on the next line, indented; text that itself starts with \
                     `|` or `>` stands in quotes",
                ),
        );
    }
    if info.contains("indentation indicator equal to 0") {
        return Some(
            Diagnostic::error("a block can't be indented by 0")
                .at(context.word(at), "expected a digit from 1 to 9, or none")
                .hint("without a digit the first line tells how far the text is indented"),
        );
    }
    if info.contains("wrongly indented line in block scalar") {
        let start = context.lines().start(at);
        return Some(
            Diagnostic::error("the first line of a block is empty, and indented deeper")
                .at(
                    context.span(start, context.lines().end(at)),
                    "this line has fewer blanks than the empty one above",
                )
                .hint("take the blanks out of the empty line"),
        );
    }
    None
}

/// Complaints within `[…]` and `{…}`.
fn flow(context: &Context<'_>, info: &str) -> Option<Diagnostic> {
    let at = context.at;
    let next = context.rest(at).chars().next();
    let expected_more = info.contains("expected ',' or")
        || info == "illegal placement of ':' indicator"
        || info == "invalid indentation in flow construct"
        || (info == "invalid indentation" && context.open.is_some())
        || (info.contains("did not find expected node content") && context.open.is_some());
    if expected_more {
        return Some(slips::in_brackets(context, info));
    }
    if info == "misplaced bracket" {
        let bracket = next?;
        return Some(
            Diagnostic::error(format!("there is a `{bracket}` too many"))
                .at(context.character(at), "nothing is open here")
                .hint(format!(
                    "remove it; text that holds a `{bracket}` stands in quotes"
                )),
        );
    }
    if info.contains("recursion limit") {
        return Some(words::too_deep(context.character(at), "far too deep here"));
    }
    if info == "\"-\" is only valid inside a block" || info.contains("cannot start with '-'") {
        return Some(
            Diagnostic::error("a `-` can't stand here")
                .at(context.character(at), "this is within brackets")
                .hint("in `[…]` commas part the items: `[a, b]`"),
        );
    }
    None
}

/// Complaints about characters that mean something at the start of a value.
fn indicator(context: &Context<'_>, info: &str) -> Option<Diagnostic> {
    let at = context.at;
    let rest = context.rest(at);
    let word = context.word(at);
    let written = &context.text[word.start as usize..word.end as usize];
    if info.starts_with("unexpected character") {
        let character = rest.chars().next()?;
        return Some(
            Diagnostic::error(format!("a value can't start with `{character}`"))
                .at(word, format!("YAML keeps `{character}` for itself"))
                .hint("put the whole value in quotes"),
        );
    }
    if info.contains("unknown anchor") {
        let name = written.trim_start_matches('*');
        let simple = !name.is_empty()
            && name
                .chars()
                .all(|character| character.is_alphanumeric() || "-_".contains(character));
        let diagnostic = Diagnostic::error(if simple {
            format!("there is no anchor `{name}` above")
        } else {
            format!("`{written}` is no alias")
        });
        let diagnostic = diagnostic.at(word, "a `*` at the start of a value refers to an anchor");
        return Some(if simple {
            diagnostic.hint(format!(
                "`&{name}` before a value further up makes it; text stands in quotes: `\"{written}\"`"
            ))
        } else {
            diagnostic.hint(format!("text stands in quotes: `\"{written}\"`"))
        });
    }
    if info.contains("scanning an anchor or alias") || info.contains("indentation for anchor") {
        let character = rest.chars().next()?;
        return Some(
            Diagnostic::error(format!(
                "a value can't start with `{character}` and a blank"
            ))
            .at(context.character(at), "expected the name of an anchor")
            .hint("text that starts so stands in quotes"),
        );
    }
    if info.contains("handle wasn't declared") {
        return Some(words::unknown_tag(written, word));
    }
    if info.contains("a tag,") || info.contains("verbatim tag") || info.contains("global tag") {
        return Some(
            Diagnostic::error("a tag is malformed")
                .at(word, "a `!` at the start of a value begins a tag")
                .hint("text that starts with `!` stands in quotes"),
        );
    }
    if info.contains("directive") || info.contains("TAG") || in_directive(context) {
        let line = context
            .lines()
            .start(at.min(directive(context).unwrap_or(at)));
        return Some(
            Diagnostic::error("a line can't start with `%`")
                .at(
                    context.span(line, context.lines().end(line)),
                    "YAML takes it for an instruction to itself",
                )
                .hint("a key that starts with `%` stands in quotes"),
        );
    }
    if info.contains("byte order mark") {
        return Some(
            Diagnostic::error("the character U+FEFF can't stand here")
                .at(context.character(at), "a byte order mark")
                .hint("it is invisible; delete it"),
        );
    }
    if info.contains("unprintable character") {
        let code = rest.chars().next().map_or(0, u32::from);
        return Some(
            Diagnostic::error(format!("the character U+{code:04X} can't stand here"))
                .at(context.character(at), "not a character that YAML knows")
                .hint("it is invisible; delete it"),
        );
    }
    if info.contains("comments must be separated") {
        return Some(
            Diagnostic::error("a blank is missing before a comment")
                .at(context.character(at), "expected a blank before this")
                .hint("text that holds a `#` behind a quote stands in quotes as a whole"),
        );
    }
    if info.contains("comment intercepting") {
        let start = context.lines().comment(at);
        return Some(
            Diagnostic::error("a comment stands within a text of several lines")
                .at(
                    context.span(start, context.lines().end(at)),
                    "the text goes on behind this comment",
                )
                .hint("move the comment; or put the text in quotes, or in a block after `|`"),
        );
    }
    None
}

/// The last line above that starts with `%`, if nothing but such lines and comments lie between.
fn directive(context: &Context<'_>) -> Option<usize> {
    let mut start = context.lines().start(context.at);
    loop {
        let line = context.rest(start);
        if line.starts_with('%') {
            return Some(start);
        }
        if start == 0 {
            return None;
        }
        start = context.lines().start(start - 1);
        if !context.rest(start).starts_with(['%', '#', '\n', '\r']) {
            return None;
        }
    }
}

fn in_directive(context: &Context<'_>) -> bool {
    directive(context).is_some()
}

/// Complaints about how lines, keys and items fit together.
fn structure(context: &Context<'_>, info: &str) -> Option<Diagnostic> {
    let at = context.at;
    let is_tab = info.contains("tab") || info == "':' must be followed by a valid YAML whitespace";
    if is_tab && let Some(diagnostic) = slips::tab(context) {
        return Some(diagnostic);
    }
    if let Some(diagnostic) = slips::tab_indentation(context) {
        return Some(diagnostic);
    }
    if info.contains("mapping values are not allowed") {
        return Some(slips::second_colon(context));
    }
    if info.contains("simple key") {
        return Some(slips::no_colon(context));
    }
    if info.contains("did not find expected key")
        || info.contains("did not find expected '-' indicator")
        || info.contains("did not find expected node content")
        || info == "invalid indentation"
    {
        return Some(slips::misfit(context, info.contains("'-' indicator")));
    }
    if info.contains("block sequence entries are not allowed") {
        return Some(
            Diagnostic::error("a list can't start on the line of its key")
                .at(context.character(at), "an item of a list can't stand here")
                .hint(
                    "start each item on a line of its own, `- item`, or write `[item, item]`; \
                     text that starts with `- ` stands in quotes",
                ),
        );
    }
    if info.contains("mapping keys are not allowed") {
        return Some(
            Diagnostic::error("a `?` can't stand here")
                .at(context.character(at), "YAML takes it for the mark of a key")
                .hint("text that starts with `? ` stands in quotes"),
        );
    }
    if info.contains("<document start>") || info.contains("after document end") {
        return Some(
            Diagnostic::error("something follows the end of the configuration")
                .at(context.word(at), "the configuration ended before this")
                .hint(
                    "look for a bracket that closes too early above; keys start in the first \
                     column, each with `: ` behind it",
                ),
        );
    }
    None
}
