//! The whole corpus, with counts by area.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::collections::BTreeMap;

use nstance_cloudinit::conformance::run_case;

fn corpus() -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = folder.join("../shared/corpora/cloud-init.jsonl");
    let own = folder.join("tests/corpora/cloud-init.jsonl");
    std::fs::read_to_string(shared)
        .or_else(|_| std::fs::read_to_string(own))
        .unwrap()
}

#[test]
fn every_case_is_answered_as_by_the_real_program() {
    let mut counts: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut failures = Vec::new();
    for line in corpus().lines() {
        let case = run_case(line);
        let (passed, failed) = counts.entry(case.area).or_default();
        match case.failure {
            None => *passed += 1,
            Some(why) => {
                *failed += 1;
                failures.push(format!("{}: {why}", case.id));
            }
        }
    }
    for (area, (passed, failed)) in &counts {
        println!("{area:20} {passed:4} passed, {failed} failed");
    }
    assert!(
        failures.is_empty(),
        "{} failed\n{}",
        failures.len(),
        failures.join("\n")
    );
}
