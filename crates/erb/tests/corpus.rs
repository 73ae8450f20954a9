//! The cases of BOSH's own answers for templates, whole.

mod common;
#[path = "common/corpus_case.rs"]
mod corpus_case;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

fn corpus() -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["../../../shared/corpora", "../../tests/corpora"]
        .iter()
        .find_map(|place| std::fs::read_to_string(manifest.join(place).join("bosh.jsonl")).ok())
        .expect("the corpus is in one of the known places")
}

#[test]
fn every_case_renders_as_in_bosh() {
    if !common::is_installed() {
        return;
    }
    let mut areas: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut failures = Vec::new();
    for line in corpus().lines() {
        let case: Value = serde_json::from_str(line).expect("each line is JSON");
        if case["kind"] != "render" {
            continue;
        }
        let area = case["area"].as_str().unwrap_or_default();
        let counts = areas.entry(area.to_owned()).or_default();
        counts.1 += 1;
        match corpus_case::check(&case) {
            Ok(()) => counts.0 += 1,
            Err(failure) => failures.push(format!("{}: {failure}", case["id"])),
        }
    }
    for (area, (passed, all)) in &areas {
        println!("{area:20} {passed:5} of {all:5}");
    }
    let total: u32 = areas.values().map(|(_, all)| all).sum();
    assert!(total >= 190, "only {total} cases");
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
