//! The corpus of Go's own answers, whole.

use std::collections::BTreeMap;
use std::path::Path;

use nstance_gotemplate::conformance::run_case;

/// Cases that may fail, and why.
const WAIVED: [(&str, &str); 0] = [];

fn corpus() -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [
        "../../shared/corpora",
        "../shared/corpora",
        "../tests/corpora",
        "tests/corpora",
    ];
    let found = places.iter().find_map(|place| {
        std::fs::read_to_string(manifest.join(place).join("gotemplate.jsonl")).ok()
    });
    found.expect("the corpus is in one of the known places")
}

#[test]
fn answers_as_go_does() {
    let corpus = corpus();
    let mut areas: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let (mut failures, mut wordings, mut errors) = (Vec::new(), 0, 0);
    for line in corpus.lines().filter(|line| !line.is_empty()) {
        let outcome = run_case(line);
        let counts = areas.entry(outcome.area).or_default();
        counts.1 += 1;
        let waived = WAIVED.iter().any(|(id, _)| *id == outcome.id);
        match outcome.failure {
            None => counts.0 += 1,
            Some(_) if waived => {}
            Some(failure) => failures.push(format!("{}: {failure}", outcome.id)),
        }
        if line.contains("\"ok\": false") || line.contains("\"ok\":false") {
            errors += 1;
            wordings += u32::from(outcome.same_wording);
            if !outcome.same_wording && std::env::var_os("SHOW_WORDING").is_some() {
                println!("wording differs: {}", outcome.id);
            }
        }
    }
    let total: u32 = areas.values().map(|(_, all)| all).sum();
    let passed: u32 = areas.values().map(|(passed, _)| passed).sum();
    for (area, (passed, all)) in &areas {
        println!("{area:20} {passed:5} of {all:5}");
    }
    println!("{passed} of {total} passed; {wordings} of {errors} errors worded as Go's");
    assert!(total >= 2_128, "only {total} cases");
    assert!(
        WAIVED.len() * 100 <= total as usize,
        "more than 1 % is waived"
    );
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
