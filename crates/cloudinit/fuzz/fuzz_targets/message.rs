//! Whole user data, on any bytes: no panic; what was taken apart is written as a message that is
//! taken apart the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nstance_cloudinit::mime_write::{Outgoing, write};
use nstance_cloudinit::opened::open;
use nstance_cloudinit::userdata::{Machine, explode, process};

fuzz_target!(|bytes: &[u8]| {
    let opened = open(bytes);
    assert!(!opened.leaves().is_empty());
    let _ = process(bytes, &Machine::default());
    let Ok(parts) = explode(bytes, &Machine::default()) else {
        return;
    };
    // Types that are looked into again, or unpacked, needn't stay what they are.
    let stays = |kind: &str| {
        kind.starts_with("text/x-shellscript-per-") || kind == "text/cloud-config"
    };
    if !parts.iter().all(|part| stays(&part.content_type)) {
        return;
    }
    let outgoing: Vec<Outgoing<'_>> = parts
        .iter()
        .map(|part| Outgoing {
            content_type: &part.content_type,
            filename: &part.filename,
            headers: &part.headers,
            content: &part.content,
        })
        .collect();
    let Ok(written) = write(&outgoing) else { return };
    let read = explode(&written.bytes, &Machine::default()).unwrap();
    assert_eq!(read.len(), parts.len());
    for (read, part) in read.iter().zip(&parts) {
        assert_eq!(read.content, part.content);
        assert_eq!(read.content_type, part.content_type);
        assert_eq!(read.filename, part.filename);
    }
});
