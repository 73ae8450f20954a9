//! The parser, on any text: no panic, errors that point into the text, and an analysis of what the
//! template reads that ends.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nstance_gotemplate::{Environment, Template};

fuzz_target!(|text: &str| {
    match Template::parse("t", text, &Environment::new()) {
        Ok(template) => {
            let _reads = template.reads();
        }
        Err(error) => {
            assert!(text.is_char_boundary(error.offset), "{error}");
            assert!(error.line > 0 && error.column > 0, "{error}");
            assert!(!error.message.is_empty() && !error.go_message().is_empty());
        }
    }
});
