//! The lexer, on any text and with several delimiters: no panic, and tokens in order.
//!
//! In: the first byte chooses the delimiters, the rest is the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nstance_gotemplate::fuzzing::count_tokens;

const DELIMITERS: [(&str, &str); 6] = [
    ("{{", "}}"),
    ("<<", ">>"),
    ("(", ")"),
    ("-", "-"),
    ("é", "/*"),
    ("\"", " -"),
];

fuzz_target!(|input: &[u8]| {
    let Some((choice, text)) = input.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    // Most often Go's own.
    let (left, right) = DELIMITERS
        .get(usize::from(choice % 16))
        .unwrap_or(&DELIMITERS[0]);
    count_tokens(text, left, right);
});
