//! The corpus of the Nstance server's configurations.

use std::path::Path;

use crate::nstance_case::run_case;

/// The cases of the corpus; from the workspace beside the project, where it exists.
fn cases() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = folder.join("../shared/corpora/nstance.jsonl");
    std::fs::read_to_string(shared)
        .or_else(|_| std::fs::read_to_string(folder.join("tests/corpora/nstance.jsonl")))
        .unwrap()
}

#[test]
fn every_configuration_of_the_server_is_answered_as_it_expects() {
    let program = Path::new(env!("CARGO_BIN_EXE_nstance"));
    let cases = cases();
    let mut failed = Vec::new();
    for line in cases.lines() {
        if let Err(why) = run_case(program, line) {
            let case: serde_json::Value = serde_json::from_str(line).unwrap();
            failed.push(format!("{}: {why}", case["id"]));
        }
    }
    assert!(cases.lines().count() > 50);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
