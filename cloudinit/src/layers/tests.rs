//! The modes, on small layers.

use super::*;
use crate::userdata::{Machine, process};
use crate::yaml::emit;

fn layer(mode: Mode, parts: &[&str]) -> Layer {
    Layer {
        name: String::new(),
        mode,
        parts: parts.iter().map(|part| LayerPart::new(*part)).collect(),
    }
}

fn stack(mode: Mode, layers: &[&str]) -> Vec<Layer> {
    let names = ["defaults", "template", "group"];
    let layers = layers.iter().zip(names);
    layers
        .map(|(content, name)| Layer {
            name: name.to_owned(),
            ..layer(mode, &[content])
        })
        .collect()
}

fn text(joined: &Joined) -> &str {
    std::str::from_utf8(&joined.bytes).unwrap()
}

/// What a machine makes of the result.
fn on_a_machine(joined: &Joined) -> String {
    let outcome = process(&joined.bytes, &Machine::default()).unwrap();
    assert_eq!(outcome.failed, []);
    outcome
        .merged
        .map_or_else(String::new, |value| emit(&value, 1 << 20).unwrap())
}

/// Findings as lines.
fn findings(joined: &Joined) -> String {
    let mut lines = String::new();
    for finding in &joined.findings {
        let place = finding.place.as_ref().map_or_else(String::new, |at| {
            format!("{}:{}", at.layer, at.line.unwrap_or(0))
        });
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        lines.push_str(&format!("{severity} {place} {}\n", finding.summary));
    }
    lines
}

const ONE: &str = "#cloud-config\nruncmd: [one, both] # a comment\nhostname: a\n";
const TWO: &str = "#cloud-config\nruncmd:\n  - both\n  - two\nhostname: b\n";

#[test]
fn each_mode_joins_in_its_way() {
    for (mode, expected) in [
        (Mode::Replace, "runcmd:\n  - both\n  - two\nhostname: b\n"),
        (Mode::Append, "runcmd:\n  - both\n  - two\nhostname: b\n"),
        (Mode::CloudInit, "runcmd:\n  - both\n  - two\nhostname: b\n"),
        (
            Mode::Nstance,
            "runcmd:\n  - one\n  - both\n  - two\nhostname: b\n",
        ),
    ] {
        let joined = join(&stack(mode, &[ONE, TWO]));
        assert_eq!(findings(&joined), "", "{mode}");
        assert_eq!(on_a_machine(&joined), expected, "{mode}");
        let config = emit(joined.config.as_ref().unwrap(), 1 << 20).unwrap();
        assert_eq!(config, expected, "{mode}");
        assert_eq!(joined.shares.iter().sum::<usize>(), joined.bytes.len());
    }
}

#[test]
fn one_part_left_alone_goes_out_as_it_was_written() {
    for content in [
        ONE,
        "#!/bin/sh\necho hi\n",
        "  #cloud-config\na: 1",
        "Content-Type: multipart/mixed; boundary=b\nMIME-Version: 1.0\n\n--b\n\
         Content-Type: text/cloud-config\n\nruncmd: [one]\n--b\n\
         Content-Type: text/x-shellscript\n\n#!/bin/sh\n--b--\n",
    ] {
        for mode in Mode::ALL {
            let joined = join(&[layer(mode, &[]), layer(mode, &[content])]);
            assert_eq!(text(&joined), content, "{mode}");
        }
        let replaced = join(&stack(Mode::Replace, &[TWO, content]));
        assert_eq!(text(&replaced), content);
        assert_eq!(replaced.shares, [0, content.len()]);
        let why = Why::Replaced { by_layer: 1 };
        assert!(replaced.dropped.iter().all(|dropped| dropped.why == why));
        assert!(!replaced.dropped.is_empty());
    }
}
