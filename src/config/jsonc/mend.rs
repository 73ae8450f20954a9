//! Texts with a mistake or several, mended so that what is behind can be read.
//!
//! In: a text, and where the parser stopped. Out: the text as it was probably meant, and where the
//! places in it are in the text as it was written. May not: explain a mistake.
//!
//! Whether a guess was right shows when the whole text can be read. Where it can't, the first
//! mistake is all that is told.

use std::ops::Range;

use jsonc_parser::errors::{ParseError, ParseErrorKind as Kind};

use super::quotes::Quote;
use super::word;
use crate::config::outline::single_quoted;

/// So many mistakes are mended: each makes the parser start anew.
const MOST: usize = 50;

/// Nor is a text mended that has more bytes.
const LONGEST: usize = 1 << 20;

/// A text, mended so far.
#[derive(Debug)]
pub(super) struct Mended {
    /// How it was probably meant.
    pub(super) text: String,
    /// Where characters stand in it that were added, in order.
    added: Vec<usize>,
    /// Where values stand in it that aren't what was written, in order.
    unknown: Vec<usize>,
    /// How many mistakes were mended, and where the last one was.
    count: usize,
    last: Option<usize>,
}

impl Mended {
    /// A text as it is, if it is short enough to be mended.
    pub(super) fn new(text: &str) -> Option<Self> {
        (text.len() <= LONGEST).then(|| Self {
            text: text.to_owned(),
            added: Vec::new(),
            unknown: Vec::new(),
            count: 0,
            last: None,
        })
    }

    /// Where a place is in the text as it was written.
    pub(super) fn written(&self, at: usize) -> usize {
        at - self.added.partition_point(|added| *added < at)
    }

    /// Whether a value isn't what was written.
    pub(super) fn is_unknown(&self, value: &Range<usize>) -> bool {
        let next = self.unknown.partition_point(|at| *at < value.start);
        self.unknown.get(next).is_some_and(|at| *at < value.end)
    }

    /// Mends what the parser stopped at. `false` where nothing is known to help.
    pub(super) fn mend(&mut self, error: &ParseError) -> bool {
        let at = error.range().start;
        // The parser reads from the left: what stops it again at the same place wasn't mended.
        let goes_on = self.last.is_none_or(|last| last < at);
        self.last = Some(at);
        self.count += 1;
        goes_on && self.count <= MOST && self.change(error.kind(), at)
    }

    fn change(&mut self, kind: &Kind, at: usize) -> bool {
        let (Some(before), Some(here)) = (self.text.get(..at), self.text.get(at..)) else {
            return false;
        };
        let length = word(here).len();
        let first = here.as_bytes().first().copied();
        match kind {
            _ if first == Some(b'#') => {
                self.replace(at, b'/');
                self.add(at + 1, '/');
            }
            Kind::ExpectedComma | Kind::UnexpectedWord | Kind::UnexpectedToken
                if length > 0 && before.ends_with(|last: char| last.is_ascii_digit()) =>
            {
                let start = start_of_number(before);
                self.forget(start..at + length);
            }
            Kind::ExpectedComma => self.add(at, ','),
            Kind::UnexpectedWord | Kind::UnexpectedToken if length > 0 => {
                self.forget(at..at + length);
            }
            Kind::SingleQuotedStringsNotAllowed => return self.straighten(at),
            Kind::ExpectedStringObjectProperty if length > 0 => {
                self.add(at, '"');
                self.add(at + 1 + length, '"');
            }
            Kind::ExpectedColonAfterObjectKey if first == Some(b'=') => self.replace(at, b':'),
            Kind::ExpectedColonAfterObjectKey => self.add(at, ':'),
            Kind::UnexpectedComma if before.trim_end().ends_with(':') => self.add_value(at),
            Kind::UnexpectedComma => self.replace(at, b' '),
            Kind::UnexpectedTokenInObject if first == Some(b',') => self.replace(at, b' '),
            Kind::ExpectedObjectValue
            | Kind::UnexpectedCloseBrace
            | Kind::UnexpectedCloseBracket => self.add_value(at),
            Kind::HexadecimalNumbersNotAllowed
            | Kind::UnaryPlusNumbersNotAllowed
            | Kind::BareDecimalPointNumbersNotAllowed
            | Kind::NonFiniteNumbersNotAllowed
            | Kind::ExpectedDigit
            | Kind::ExpectedDigitFollowingNegativeSign
            | Kind::ExpectedPlusMinusOrDigitInNumberLiteral => {
                let start = start_of_number(before);
                let is_outside =
                    |next: char| !next.is_ascii_alphanumeric() && !matches!(next, '+' | '-' | '.');
                let end = at + here.find(is_outside).unwrap_or(here.len());
                if start == end {
                    return false;
                }
                self.forget(start..end);
            }
            Kind::String(_) if first == Some(b'\\') => {
                self.replace(at, b'/');
                self.unknown.push(at);
            }
            _ => return false,
        }
        true
    }

    /// The line around a byte.
    pub(super) fn line(&self, at: usize) -> Range<usize> {
        let is_break = |one: char| matches!(one, '\n' | '\r');
        let start = self.text[..at].rfind(is_break).map_or(0, |at| at + 1);
        let length = self.text[at..].find(is_break);
        start..length.map_or(self.text.len(), |length| at + length)
    }

    /// Adds a quote; what its string says isn't certain. `false` where that was tried too often.
    pub(super) fn mend_quote(&mut self, quote: Quote) -> bool {
        self.count += 1;
        let within = if quote.opens { quote.at } else { quote.at - 1 };
        let earlier = self.added.partition_point(|added| *added < quote.at);
        for added in &mut self.added[earlier..] {
            *added += 1;
        }
        self.added.insert(earlier, quote.at);
        self.text.insert(quote.at, '"');
        let earlier = self.unknown.partition_point(|at| *at < within);
        for at in &mut self.unknown[earlier..] {
            *at += 1;
        }
        self.unknown.insert(earlier, within);
        self.count <= MOST
    }

    fn add(&mut self, at: usize, character: char) {
        self.text.insert(at, character);
        self.added.push(at);
    }

    /// Adds a value where there is none.
    fn add_value(&mut self, at: usize) {
        self.add(at, '0');
        self.unknown.push(at);
    }

    /// Replaces an ASCII character.
    fn replace(&mut self, at: usize, by: u8) {
        let by = [by];
        let by = std::str::from_utf8(&by).unwrap_or(" ");
        self.text.replace_range(at..=at, by);
    }

    /// Puts some value in the place of what is none.
    fn forget(&mut self, value: Range<usize>) {
        self.unknown.push(value.start);
        let blanks = " ".repeat(value.len() - 1);
        self.text.replace_range(value, &format!("0{blanks}"));
    }

    /// Gives a string that starts with a single quote double ones. Double quotes in it are escaped.
    fn straighten(&mut self, start: usize) -> bool {
        let Some(inner) = single_quoted(&self.text[start..]) else {
            return false;
        };
        self.replace(start, b'"');
        let mut at = start + 1;
        let mut end = at + inner;
        while at < end {
            match self.text.as_bytes()[at] {
                b'\\' => {
                    // JSON has no escape for a single quote.
                    if self.text.as_bytes()[at + 1] == b'\'' {
                        self.replace(at, b'/');
                        self.unknown.push(start);
                    }
                    at += 2;
                }
                b'"' => {
                    self.add(at, '\\');
                    at += 2;
                    end += 1;
                }
                _ => at += 1,
            }
        }
        self.replace(end, b'"');
        true
    }
}

/// Where the number starts that a text ends with.
fn start_of_number(text: &str) -> usize {
    let is_in_number = |character: char| matches!(character, '0'..='9' | '-' | '+' | '.');
    text.trim_end_matches(is_in_number).len()
}
