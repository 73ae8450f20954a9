//! Descriptions of mergers, on any text: no panic, and merging with them ends.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nstance_cloudinit::merge::{Documented, Mergers, describe, describe_value};
use nstance_cloudinit::yaml::load;

fuzz_target!(|text: &str| {
    let _ = describe(text);
    let base = load("a: [1, x, [y], {z: 1}]\nb: text\nc: {d: 1, e: null}\n", 0).unwrap();
    let new = load("a: [2, w, [v], {z: 2}, more]\nb: other\nc: {d: null, e: 1}\n", 1).unwrap();
    let described = load(text, 0).ok().and_then(|value| describe_value(&value).ok());
    let both = [
        Mergers::parse(text).ok(),
        described.and_then(|described| Mergers::of(&described).ok()),
    ];
    for mergers in both.into_iter().flatten() {
        for delete_absent in [false, true] {
            let _ = mergers.merge(&base, &new, Documented { delete_absent });
        }
    }
});
