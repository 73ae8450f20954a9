//! The reader of YAML, on any text: no panic, and what is written out is read back as it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nstance_cloudinit::yaml::{emit, emit_marked, load, remarks};

fuzz_target!(|text: &str| {
    remarks(text);
    let Ok(value) = load(text, 1) else { return };
    let Ok(written) = emit(&value, 1 << 20) else {
        return;
    };
    // Not a number is equal to nothing, so what is written twice is compared.
    let read = load(&written, 1).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(emit(&read, 2 << 20).as_ref(), Ok(&written));
    let marked = emit_marked(&value, 1 << 20).unwrap();
    assert!(marked.marks.is_sorted_by_key(|(at, _)| *at));
    assert!(marked.marks.iter().all(|(at, _)| *at < written.len()));
});
