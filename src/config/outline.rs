//! A first pass over JSONC text that finds what a parser explains badly.
//!
//! In: the text. Out: the first [`Flaw`]: a string that runs over its line, a bracket without its
//! partner, nesting too deep, a character that JSON doesn't know; and where the text can be cut in
//! two. May not: judge anything else; the parser has the last word on the rest.
//!
//! It also bounds the depth before anything recursive sees the text.

use super::source::{SourceId, Span};
use crate::diagnostic::Diagnostic;

/// How deep objects and arrays may nest. Rendered args are kept as JSON in the state, inside a few
/// levels of its own, and `serde_json` reads no deeper than 128.
pub(super) const DEEPEST: usize = 100;

/// What is wrong with the text before it is parsed.
#[derive(Debug)]
pub(super) struct Flaw {
    /// Where reading stops making sense.
    pub(super) offset: usize,
    /// Whether nothing recursive may touch the text.
    pub(super) too_deep: bool,
    /// Whether a string isn't closed on its line.
    pub(super) is_open_string: bool,
    /// What to tell.
    pub(super) diagnostic: Box<Diagnostic>,
}

/// The finding that the string at `place` isn't closed.
pub(super) fn open_string(place: Span) -> Diagnostic {
    Diagnostic::error("a string isn't closed")
        .at(place, "this string has no closing quote on its line")
        .hint(
            "close it with `\"`; a line break within a string is written `\\n`, \
             a quote `\\\"`, a backslash `\\\\`",
        )
}

/// How long the string is, without its quotes, that a text with a single quote starts with; `None`
/// if it doesn't end on its line.
pub(super) fn single_quoted(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'\'' => return Some(at - 1),
            b'\n' => return None,
            b'\\' if bytes.get(at + 1).is_some_and(|next| *next != b'\n') => at += 2,
            _ => at += 1,
        }
    }
}

/// How many bytes from the first on are such.
fn count(bytes: &[u8], is_such: impl Fn(u8) -> bool) -> usize {
    bytes
        .iter()
        .position(|byte| !is_such(*byte))
        .unwrap_or(bytes.len())
}

/// An opening bracket that waits for its partner.
#[derive(Clone, Copy)]
struct Open {
    bracket: u8,
    offset: usize,
    /// How far its line is indented.
    indent: usize,
}

/// A line's start behind the middle of the text that begins an entry of an object, which stands
/// in nothing but objects.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Its offset in the text.
    pub(super) at: usize,
    /// How many objects are open.
    pub(super) depth: usize,
}

/// Finds the first flaw of `text`, whose offsets count from `base`, and where it can be cut.
pub(super) fn scan(source: SourceId, text: &str, base: usize) -> (Option<Flaw>, Option<Cut>) {
    let mut scanner = Scanner {
        source,
        text,
        base,
        open: Vec::new(),
        suspect: None,
        indent: 0,
        blank_so_far: true,
        last: 0,
        cut: None,
    };
    let flaw = scanner.run();
    (flaw, scanner.cut)
}

struct Scanner<'a> {
    source: SourceId,
    text: &'a str,
    base: usize,
    open: Vec<Open>,
    /// A bracket whose partner stands further left than the line that opened it: where one is
    /// missing, it is probably this one's.
    suspect: Option<(Open, usize)>,
    indent: usize,
    blank_so_far: bool,
    /// The last byte that is neither blank nor in a comment or a string.
    last: u8,
    cut: Option<Cut>,
}

impl Scanner<'_> {
    fn run(&mut self) -> Option<Flaw> {
        let bytes = self.text.as_bytes();
        let middle = bytes.len() / 2;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\n' => {
                    self.indent = 0;
                    self.blank_so_far = true;
                    at += 1;
                    if at > middle && self.cut.is_none() {
                        self.cut = self.cut_at(at);
                    }
                    continue;
                }
                b' ' | b'\t' | b'\r' => {
                    let blanks = count(&bytes[at..], |byte| matches!(byte, b' ' | b'\t' | b'\r'));
                    if self.blank_so_far {
                        self.indent += blanks;
                    }
                    at += blanks;
                    continue;
                }
                b'"' => match self.string(at) {
                    Ok(end) => at = end,
                    Err(flaw) => return Some(flaw),
                },
                // No JSON, but what stands in it has no other meaning.
                b'\'' => at += single_quoted(&self.text[at..]).map_or(1, |length| length + 2),
                b'/' if bytes.get(at + 1) == Some(&b'/') => {
                    at += memchr_newline(&bytes[at..]);
                    continue;
                }
                b'/' if bytes.get(at + 1) == Some(&b'*') => match self.text[at + 2..].find("*/") {
                    Some(length) => at += length + 4,
                    None => return Some(self.open_comment(at)),
                },
                b'{' | b'[' => {
                    if self.open.len() == DEEPEST {
                        return Some(self.too_deep(at));
                    }
                    self.open.push(Open {
                        bracket: byte,
                        offset: at,
                        indent: self.indent,
                    });
                    at += 1;
                }
                b'}' | b']' => {
                    if let Some(flaw) = self.close(byte, at) {
                        return Some(flaw);
                    }
                    at += 1;
                }
                // The parser is content with these between tokens; JSON isn't.
                0x00..0x20 | 0x7f.. => match self.stranger(at) {
                    Ok(end) => at = end,
                    Err(flaw) => return Some(flaw),
                },
                _ => at += 1,
            }
            self.blank_so_far = false;
            self.last = byte;
        }
        self.unclosed()
    }

    fn cut_at(&self, at: usize) -> Option<Cut> {
        let is_entry = self.last == b',' && self.open.iter().all(|open| open.bracket == b'{');
        let depth = self.open.len();
        (is_entry && depth > 0).then_some(Cut { at, depth })
    }

    /// Goes to the end of the string that starts at `start`.
    fn string(&self, start: usize) -> Result<usize, Flaw> {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        loop {
            at += count(&bytes[at..], |byte| {
                byte >= 0x20 && byte != b'"' && byte != b'\\'
            });
            let Some(&byte) = bytes.get(at) else { break };
            match byte {
                b'"' => return Ok(at + 1),
                b'\\' if bytes.get(at + 1).is_some_and(|next| *next >= 0x20) => at += 2,
                b'\n' | b'\r' => break,
                0x00..0x20 => return Err(self.control_character(at)),
                _ => at += 1,
            }
        }
        let flaw = self.flaw(start, open_string(self.span(start, at.min(bytes.len()))));
        Err(Flaw {
            is_open_string: true,
            ..flaw
        })
    }

    fn control_character(&self, at: usize) -> Flaw {
        let byte = self.text.as_bytes()[at];
        let (name, escape) = match byte {
            b'\t' => ("a tab".to_owned(), "\\t".to_owned()),
            _ => (
                format!("the control character U+{byte:04X}"),
                format!("\\u{byte:04x}"),
            ),
        };
        self.flaw(
            at,
            Diagnostic::error(format!("a string contains {name} as it is"))
                .at(
                    self.span(at, at + 1),
                    "strings can't hold control characters",
                )
                .hint(format!("write `{escape}` instead")),
        )
    }

    /// Judges a character outside strings and comments that isn't plain ASCII.
    fn stranger(&self, at: usize) -> Result<usize, Flaw> {
        let character = self.text[at..]
            .chars()
            .next()
            .expect("the offset is that of a character");
        let end = at + character.len_utf8();
        let quote = matches!(
            character,
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2018}' | '\u{2019}'
        );
        if character.is_alphanumeric() {
            return Ok(end);
        }
        let code = u32::from(character);
        let diagnostic = Diagnostic::error(format!("the character U+{code:04X} can't stand here"))
            .at(self.span(at, end), "not a character that JSON knows");
        Err(self.flaw(
            at,
            if quote {
                diagnostic.hint("strings stand in straight double quotes: `\"`")
            } else if character.is_whitespace() || character.is_control() {
                diagnostic.hint("it is invisible; delete it, or put a plain space there")
            } else {
                diagnostic.hint("text stands in double quotes")
            },
        ))
    }

    fn close(&mut self, bracket: u8, at: usize) -> Option<Flaw> {
        let closer = char::from(bracket);
        let Some(open) = self.open.pop() else {
            return Some(
                self.flaw(
                    at,
                    Diagnostic::error(format!("there is a `{closer}` too many"))
                        .at(self.span(at, at + 1), "nothing is open here")
                        .hint("remove it, or look for a bracket that closes too early above"),
                ),
            );
        };
        let wanted = partner(open.bracket);
        if wanted != bracket {
            let opener = char::from(open.bracket);
            return Some(
                self.flaw(
                    at,
                    Diagnostic::error(format!("a `{opener}` is closed by `{closer}`"))
                        .at(
                            self.span(at, at + 1),
                            format!("expected `{}`", char::from(wanted)),
                        )
                        .related(
                            self.span(open.offset, open.offset + 1),
                            format!("this `{opener}` is open"),
                        ),
                ),
            );
        }
        if self.blank_so_far && self.indent < open.indent && self.suspect.is_none() {
            self.suspect = Some((open, at));
        }
        None
    }

    fn unclosed(&self) -> Option<Flaw> {
        let innermost = self.open.last()?;
        // Where the indentation gives a bracket away, that is a better guess than the outermost.
        let (open, closed_by) = match self.suspect {
            Some((open, at)) if open.bracket == innermost.bracket => (open, Some(at)),
            _ => (*innermost, None),
        };
        let opener = char::from(open.bracket);
        let closer = char::from(partner(open.bracket));
        let mut diagnostic = Diagnostic::error(format!("a `{opener}` is never closed")).at(
            self.span(open.offset, open.offset + 1),
            if closed_by.is_some() {
                "judging by the indentation, this one"
            } else {
                "this one is still open at the end of the file"
            },
        );
        if let Some(at) = closed_by {
            diagnostic = diagnostic.related(
                self.span(at, at + 1),
                "its indentation says that it closes another",
            );
        }
        Some(self.flaw(
            self.text.len(),
            diagnostic.hint(format!("add the missing `{closer}`")),
        ))
    }

    fn open_comment(&self, at: usize) -> Flaw {
        self.flaw(
            at,
            Diagnostic::error("a comment isn't closed")
                .at(self.span(at, at + 2), "this comment has no end")
                .hint("close it with `*/`"),
        )
    }

    fn too_deep(&self, at: usize) -> Flaw {
        Flaw {
            too_deep: true,
            is_open_string: false,
            ..self.flaw(
                at,
                Diagnostic::error(format!("the nesting is deeper than {DEEPEST} levels"))
                    .at(self.span(at, at + 1), "one level too deep"),
            )
        }
    }

    fn flaw(&self, offset: usize, diagnostic: Diagnostic) -> Flaw {
        Flaw {
            offset: self.base + offset,
            too_deep: false,
            is_open_string: false,
            diagnostic: Box::new(diagnostic),
        }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.source, self.base + start, self.base + end)
    }
}

fn partner(bracket: u8) -> u8 {
    if bracket == b'{' { b'}' } else { b']' }
}

/// How far it is to the end of the line.
fn memchr_newline(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| matches!(byte, b'\n' | b'\r'))
        .unwrap_or(bytes.len())
}
