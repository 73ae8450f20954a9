//! A door for the fuzzers of `fuzz/`: what the crate keeps to itself otherwise.
//!
//! In: any text. Out: counts. No part of the interface: it changes as the inside does.

use crate::parse::lex;

/// How many tokens a text has, up to its end or the first error.
///
/// # Panics
///
/// Where the tokens aren't as the parser takes for granted: in order, within the text, cut between
/// characters, and no more of them than there are bytes, but for the last one.
pub fn count_tokens(text: &str, left: &str, right: &str) -> usize {
    let (mut count, mut end) = (0, 0);
    for token in lex(text, left, right) {
        assert!(end <= token.start && token.start <= token.end, "{token:?}");
        assert!(text.get(token.clone()).is_some(), "{token:?}");
        end = token.end;
        count += 1;
    }
    assert!(count <= text.len() + 1, "{count} tokens");
    count
}
