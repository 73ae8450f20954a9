//! `docs/hcl-functions.md` names each function once, and none that isn't there.
use std::collections::BTreeSet;

use nstance_hcl::functions;

#[test]
fn every_function_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hcl-functions.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (offered, rest) = text.split_once("## Refused").unwrap();
    let (refused, _) = rest.split_once("## Where").unwrap();
    let there: BTreeSet<&str> = functions::names().chain(functions::FORMS).collect();
    assert_eq!(named(offered), there);
    assert_eq!(named(refused), functions::REFUSED.into());
}

/// The names in the first columns of tables.
fn named(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let first = line.split('|').nth(1).unwrap_or_default();
        for code in first.split('`').skip(1).step_by(2) {
            let name = code.split_once('(').map_or(code, |(name, _)| name);
            assert!(names.insert(name), "{name} stands there twice");
        }
    }
    names
}
