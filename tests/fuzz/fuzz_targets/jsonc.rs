//! The reader of JSONC.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nstance_fuzz::read("fuzz.jsonc", input));
