//! The whole corpus, with counts by area.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod case;
#[path = "../../erb/tests/common/mod.rs"]
mod ruby;

use std::collections::BTreeMap;

fn corpus() -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = folder.join("../shared/corpora/bosh.jsonl");
    let own = folder.join("tests/corpora/bosh.jsonl");
    std::fs::read_to_string(shared)
        .or_else(|_| std::fs::read_to_string(own))
        .unwrap()
}

#[test]
fn every_case_is_answered_as_by_the_real_programs() {
    let mut counts: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut failures = Vec::new();
    for line in corpus().lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let needs_ruby = matches!(case["kind"].as_str(), Some("bpm" | "e2e"));
        if needs_ruby && !ruby::is_installed() {
            continue;
        }
        let Some(outcome) = case::check(&case) else {
            continue;
        };
        let area = format!("{} {}", case["kind"], case["area"]).replace('"', "");
        let (passed, failed) = counts.entry(area).or_default();
        match outcome {
            Ok(()) => *passed += 1,
            Err(why) => {
                *failed += 1;
                failures.push(format!("{}: {why}", case["id"]));
            }
        }
    }
    for (area, (passed, failed)) in &counts {
        println!("{area:26} {passed:4} passed, {failed} failed");
    }
    let ran: u32 = counts
        .values()
        .map(|(passed, failed)| passed + failed)
        .sum();
    let least = if ruby::is_installed() { 195 } else { 175 };
    assert!(ran >= least, "only {ran} cases ran");
    assert!(
        failures.is_empty(),
        "{} failed\n{}",
        failures.len(),
        failures.join("\n")
    );
}
