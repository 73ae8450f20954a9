//! The reader of YAML.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nstance_fuzz::read("fuzz.yaml", input));
