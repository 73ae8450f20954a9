//! `schema`.

use crate::harness::Harness;

#[test]
fn it_prints_or_writes_a_schema() {
    let harness = Harness::empty();
    let printed = harness.ok("schema");
    let schema = printed.json();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    assert!(schema["properties"]["groups"]["description"].is_string());
    let written = harness.ok("schema --out schema.json");
    assert_eq!(written.stdout + &written.stderr, "");
    assert_eq!(harness.read("schema.json"), printed.stdout.as_bytes());
    let part = harness.ok("schema --part").json();
    assert!(part["anyOf"].is_null() && schema["anyOf"].is_array());
    let failed = harness.run("schema --out no/schema.json");
    assert_eq!(failed.code, Some(1));
    assert!(
        failed
            .stderr
            .contains("there is no such folder: no/schema.json"),
        "{failed}"
    );
}

/// What an editor adds to a configuration changes nothing.
#[test]
fn a_configuration_may_name_its_schema() {
    let harness = Harness::starter();
    harness.edit(
        "  \"cluster\": {",
        "  \"$schema\": \"./schema.json\",\n  \"cluster\": {",
    );
    assert_eq!(harness.ok("validate").stderr, "");
}
