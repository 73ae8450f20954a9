//! The corpus of Go's own answers, whole; cases in which a fuzzer found this crate to differ; and
//! cases made by a grammar and answered by Go, too.

use std::collections::BTreeMap;
use std::path::Path;

use nstance_gotemplate::conformance::run_case;

/// Cases that may fail, and why.
const WAIVED: [(&str, &str); 0] = [];

/// Cases of Sprig's that fail, and why.
const WAIVED_OF_SPRIG: [(&str, &str); 5] = [
    (
        "sprig-collections-074",
        "Go lets a dict contain itself, and crashes where it is printed; here that is an error",
    ),
    ("sprig-values-092", "`.Major` is an int64, not a uint64"),
    (
        "sprig-misc-008",
        "there are no nil lists: JSON has `[]`, not `null`",
    ),
    (
        "sprig-yaml-038",
        "newer libyaml indents what follows U+2028 in single quotes",
    ),
    (
        "sprig-yaml-051",
        "a tab before the first key: YAML 1.2 takes it, go-yaml doesn't",
    ),
];

fn corpus(name: &str) -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [
        "../../../shared/corpora",
        "../../tests/corpora",
        "tests/corpora",
    ];
    let found = places
        .iter()
        .find_map(|place| std::fs::read_to_string(manifest.join(place).join(name)).ok());
    found.expect("the corpus is in one of the known places")
}

/// Runs cases, prints counts by area, and fails if a case does that isn't waived.
#[expect(clippy::print_stdout, reason = "the counts are the test's report")]
fn run(cases: &str, at_least: u32, waived: &[(&str, &str)]) {
    let mut areas: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let (mut failures, mut reworded) = (Vec::new(), 0);
    for line in cases.lines().filter(|line| !line.is_empty()) {
        let outcome = run_case(line);
        let counts = areas.entry(outcome.area).or_default();
        counts.1 += 1;
        let is_waived = waived.iter().any(|(id, _)| *id == outcome.id);
        reworded += u32::from(outcome.failure.is_none() && !outcome.same_wording);
        match outcome.failure {
            None => counts.0 += 1,
            Some(_) if is_waived => {}
            Some(failure) => failures.push(format!("{}: {failure}", outcome.id)),
        }
    }
    let total: u32 = areas.values().map(|(_, all)| all).sum();
    let passed: u32 = areas.values().map(|(passed, _)| passed).sum();
    for (area, (passed, all)) in &areas {
        println!("{area:20} {passed:5} of {all:5}");
    }
    println!("{passed} of {total} passed; {reworded} errors aren't worded as Go's");
    assert!(total >= at_least, "only {total} cases");
    assert!(
        waived.len() * 100 <= total as usize,
        "more than 1 % is waived"
    );
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn answers_as_go_does() {
    run(&corpus("gotemplate.jsonl"), 2_128, &WAIVED);
}

#[test]
fn answers_found_cases_as_go_does() {
    run(&corpus("gotemplate-found.jsonl"), 5, &WAIVED);
}

#[test]
fn answers_generated_cases_as_go_does() {
    run(include_str!("corpora/generated.jsonl"), 300, &WAIVED);
}

#[test]
fn answers_as_sprig_does() {
    run(include_str!("corpora/sprig.jsonl"), 700, &WAIVED_OF_SPRIG);
}

#[test]
fn words_errors_as_go_does() {
    let cases = [
        r#"{"template": "{{eq .L .}}", "data": {"L": [], "N": [0]}, "options": "", "expect": {"ok": false, "stage": "exec", "error": "template: t:1:2: executing \"t\" at <eq .L .>: error calling eq: non-comparable types []: []interface {}, map[string]interface {}: map[L:[] N:[0]]"}}"#,
        r#"{"template": "{{.|call}}", "data": {}, "options": "", "expect": {"ok": false, "stage": "exec", "error": "template: t:1:4: executing \"t\" at <call>: error calling call: non-function <map[string]interface {} Value> of type map[string]interface {}"}}"#,
        r#"{"template": "{{call .L}}", "data": {"L": 1}, "options": "", "expect": {"ok": false, "stage": "exec", "error": "template: t:1:2: executing \"t\" at <call .L>: error calling call: non-function .L of type float64"}}"#,
    ];
    for case in cases {
        let outcome = run_case(case);
        assert_eq!(outcome.failure, None, "{case}");
        assert!(outcome.same_wording, "{:?}", outcome.wording);
    }
}
