//! Reading a document although there are mistakes in it.
//!
//! In: a text that can't be parsed. Out: its document as it was meant, and each mistake; or nothing, where
//! nobody can tell how it was meant. May not: take a text that has no mistake.

use jsonc_parser::{CollectOptions, parse_to_ast};

use super::mend::Mended;
use super::quotes::{self, Quote};
use super::{Reader, STRICT};
use crate::config::node::Node;
use crate::config::outline;
use crate::config::source::{SourceId, Span};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Reads a document of which mistakes were mended. `None` where that can't be done for all of them.
pub(super) fn mended(
    source: SourceId,
    body: &str,
    base: usize,
    findings: &mut Diagnostics,
) -> Option<Node> {
    let mut mended = Mended::new(body)?;
    let mut found = Diagnostics::default();
    loop {
        // What was in a string to the first look may not be in one any more.
        let (flaw, _) = outline::scan(source, &mended.text, base);
        if flaw.as_ref().is_some_and(|flaw| flaw.too_deep) {
            return None;
        }
        let parsed = parse_to_ast(&mended.text, &CollectOptions::default(), &STRICT);
        if let (Some(flaw), Err(error)) = (&flaw, &parsed)
            && flaw.is_open_string
            && mended.line(flaw.offset - base).start <= error.range().start
        {
            let quote = missing_quote(&mended, flaw.offset - base)?;
            let span = |from: usize, to: usize| {
                let (from, to) = (mended.written(from), mended.written(to));
                Span::new(source, base + from, base + to)
            };
            found.push(told(&mended.text, flaw.offset - base, quote, span));
            if !mended.mend_quote(quote) {
                return None;
            }
            continue;
        }
        let mut reader = Reader {
            source,
            body: &mended.text,
            base,
            mended: Some(&mended),
            findings: &mut found,
        };
        match parsed {
            Ok(result) => {
                let node = reader.node(result.value?);
                findings.extend(found);
                return Some(node);
            }
            Err(error) => {
                let diagnostic = reader.explain(&error);
                found.push(diagnostic);
                if !mended.mend(&error) {
                    return None;
                }
            }
        }
    }
}

/// So many places for a quote are tried.
const MOST_PLACES: usize = 4;

/// Where a quote is missing on the line of the string at `start`, which isn't closed: as far as can be
/// told the text makes sense with it, or the line does.
fn missing_quote(mended: &Mended, start: usize) -> Option<Quote> {
    let line = mended.line(start);
    let places = quotes::places(&mended.text[line.clone()]).into_iter();
    let mut likely = None;
    for quote in places.take(MOST_PLACES) {
        let quote = Quote {
            at: line.start + quote.at,
            ..quote
        };
        let text = [&mended.text[..quote.at], "\"", &mended.text[quote.at..]].concat();
        match parse_to_ast(&text, &CollectOptions::default(), &STRICT) {
            Ok(_) => return Some(quote),
            Err(error) if error.range().start > line.end => likely = likely.or(Some(quote)),
            Err(_) => {}
        }
    }
    likely
}

/// The finding that a quote is missing on the line of the string at `start`.
fn told(text: &str, start: usize, quote: Quote, span: impl Fn(usize, usize) -> Span) -> Diagnostic {
    let behind = &text[quote.at..];
    if quote.opens {
        let is_outside = |one: char| matches!(one, '"' | ',' | ':' | '{' | '}' | '[' | ']' | '\n');
        let length = behind.find(is_outside).unwrap_or(behind.len());
        let word = behind[..length].trim_end();
        let finding = Diagnostic::error("a string has no opening quote").at(
            span(quote.at, quote.at + word.len()),
            "expected `\"` before this",
        );
        let is_key = behind[length..].starts_with("\":");
        // A value may be a secret.
        return if is_key {
            finding.hint(format!("write `\"{word}\"`"))
        } else {
            finding
        };
    }
    let start = if start < quote.at {
        start
    } else {
        text[..quote.at].rfind('"').unwrap_or(start)
    };
    outline::open_string(span(start, quote.at))
}
