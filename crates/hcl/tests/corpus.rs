//! The corpus that Terraform 1.0.3 answered (`tests/corpora/hcl.jsonl`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nstance_hcl::conformance::run_case;

/// Cases in which the crate answers otherwise on purpose, and why. The README says the same.
const DELIBERATE: &[(&str, &[&str])] = &[
    (
        "what depends on a secret stays hidden; Terraform 1.0.3 shows which way a condition went",
        &["conditional-033", "sensitive-029", "template-031"],
    ),
    (
        "an IPv4 address written as IPv6 is one of IPv6; Terraform's Go mixes up the two lengths",
        &[
            "cidrhost-022",
            "cidrhost-023",
            "cidrhost-024",
            "cidrsubnet-018",
        ],
    ),
    (
        "a negative number of bits or subnets is refused; Terraform gives an address outside",
        &["cidrsubnet-010", "cidrsubnet-011"],
    ),
    (
        "all of IPv4 can be divided; Terraform's counter overflows",
        &["cidrsubnets-017"],
    ),
    (
        "Terraform finds the files that it has just made itself",
        &["fileset-003", "fileset-030"],
    ),
    (
        "null is null, not known only after apply",
        &["yamldecode-009", "yamldecode-010", "yamldecode-027"],
    ),
    (
        "a width of a billion is an error, not Go's note of one in the text",
        &["format-155"],
    ),
    (
        "a group's name stands once in a pattern and starts with a letter",
        &["regex-008", "regex-035"],
    ),
    (
        "strings that are numbers can be added up, as in later versions; there it is a panic",
        &["sum-004"],
    ),
];

#[test]
fn answers_are_terraforms() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpora");
    let corpus = std::fs::read_to_string(corpora.join("hcl.jsonl")).unwrap();
    let mut failures = BTreeMap::new();
    for line in corpus.lines() {
        let outcome = run_case(line, corpora.join("hcl-files"));
        if let Some(failure) = outcome.failure {
            failures.insert(outcome.id, failure);
        }
    }
    let deliberate: BTreeSet<&str> = DELIBERATE
        .iter()
        .flat_map(|(_, ids)| ids.iter().copied())
        .collect();
    let different: BTreeSet<&str> = failures.keys().map(String::as_str).collect();
    let unwanted: Vec<_> = failures
        .iter()
        .filter(|(id, _)| !deliberate.contains(id.as_str()))
        .collect();
    assert!(unwanted.is_empty(), "{unwanted:#?}");
    assert_eq!(different, deliberate, "not different any more");
    assert!(corpus.lines().count() >= 100 * deliberate.len());
}
