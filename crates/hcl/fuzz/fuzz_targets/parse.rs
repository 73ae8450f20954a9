//! The parser, on any text, as a file, an expression and a template: no panic, errors that point
//! into the text, and a tree whose references end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nstance_hcl::{Error, Expression, parse, parse_expression, parse_template};

fuzz_target!(|text: &str| {
    match parse(text, 0) {
        Ok(document) => {
            for attribute in document.body.attributes() {
                assert!(text.get(attribute.value.span.range()).is_some());
            }
        }
        Err(error) => check(text, &error),
    }
    for result in [parse_expression(text, 0), parse_template(text, 0)] {
        match result {
            Ok(expression) => references(text, &expression),
            Err(error) => check(text, &error),
        }
    }
});

fn references(text: &str, expression: &Expression) {
    expression.references(&mut |reference| {
        assert!(text.get(reference.span.range()).is_some());
    });
}

fn check(text: &str, error: &Error) {
    assert!(text.get(error.span.range()).is_some(), "{error:?}");
    assert!(!error.summary.is_empty());
}
