//! The parser, on any text, as a file, an expression and a template: no panic, and errors that
//! point into the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nstance_hcl::{Error, parse, parse_expression, parse_template};

fuzz_target!(|text: &str| {
    match parse(text, 0) {
        Ok(body) => {
            for attribute in body.attributes() {
                assert!(text.get(attribute.value.span.range()).is_some());
            }
        }
        Err(error) => check(text, &error),
    }
    for result in [parse_expression(text, 0), parse_template(text, 0)] {
        if let Err(error) = result {
            check(text, &error);
        }
    }
});

fn check(text: &str, error: &Error) {
    assert!(text.get(error.span.range()).is_some(), "{error:?}");
    assert!(!error.summary.is_empty());
}
