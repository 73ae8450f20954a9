//! Layers, on any texts: no panic in any mode, shares that are all of the result, and a result that
//! a machine makes the same of as was said.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use nstance_cloudinit::layers::{Layer, LayerPart, Mode, Options, join_with};
use nstance_cloudinit::userdata::{Bodies, Machine, process};
use nstance_cloudinit::yaml::emit;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    // Layers are parted by a byte that no UTF-8 has; behind another stands what they may include.
    let (rest, fetched) = match rest.iter().position(|byte| *byte == 0xfe) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &[][..]),
    };
    let bodies = ["a", "b", "c"]
        .iter()
        .zip(fetched.split(|byte| *byte == 0xff));
    let bodies: Bodies = bodies
        .map(|(url, body)| ((*url).to_owned(), body.into()))
        .collect();
    let included = (!bodies.is_empty()).then(|| Arc::new(bodies));
    let layers: Vec<Layer> = rest
        .split(|byte| *byte == 0xff)
        .take(6)
        .enumerate()
        .map(|(number, content)| Layer {
            name: format!("layer {number}"),
            mode: Mode::ALL[usize::from(first >> (number % 4 * 2)) % 4],
            parts: vec![LayerPart::new(content)],
            included: included.clone(),
        })
        .collect();
    for as_documented in [false, true] {
        let joined = join_with(&layers, Options { as_documented });
        assert_eq!(joined.shares.iter().sum::<usize>(), joined.bytes.len());
        for finding in &joined.findings {
            assert!(!finding.summary.is_empty());
        }
        if joined.has_errors() || as_documented {
            continue;
        }
        let Some(config) = &joined.config else {
            continue;
        };
        let outcome = process(&joined.bytes, &Machine::default()).unwrap();
        // Nothing is lost of a part that is empty.
        let is_lost = |(_, error): &(u32, nstance_cloudinit::Error)| error.message != "it is empty";
        assert!(!outcome.failed.iter().any(is_lost), "{:?}", outcome.failed);
        let merged = outcome
            .merged
            .expect("a cloud-config was said to come of it");
        assert_eq!(emit(&merged, 1 << 20), emit(config, 1 << 20));
    }
});
