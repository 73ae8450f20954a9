//! `drift`: what changed behind our back, for CI.

use insta::assert_snapshot;

use crate::harness::{Harness, TWO, TWO_STATE};

#[test]
fn no_drift_is_zero() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("drift"));
    assert_snapshot!(harness.ok("drift --json"));
}

#[test]
fn each_kind_is_named() {
    let harness = Harness::applied(TWO);
    harness.ok("sim set-type default/web/0 huge");
    harness.ok("sim delete default/web/1");
    harness.ok("state rm default/db/0");
    let bytes = harness.read(TWO_STATE);
    let ended = harness.run("drift");
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended);
    let ended = harness.run("drift --json");
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended);
    assert!(harness.read(TWO_STATE) == bytes, "looking changes nothing");
    assert_eq!(harness.run("drift --target default/web/2").code, Some(0));
    assert_eq!(harness.run("drift --target default/web").code, Some(2));
}

#[test]
fn the_configuration_counts_when_asked() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 4");
    assert_eq!(harness.run("drift").code, Some(0));
    let ended = harness.run("drift --against config");
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended);
}

#[test]
fn a_configuration_that_cannot_be_planned_is_one() {
    let harness = Harness::applied(TWO);
    harness.edit("\"debian-13\"", "\"{{ .Nope }}\"");
    assert_eq!(harness.run("drift --against config").code, Some(1));
}

#[test]
fn ignored_changes_are_told_and_are_no_drift() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"instance_type\": \"small\",",
        "\"instance_type\": \"small\", \"lifecycle\": { \"ignore_changes\": [\"tags.Owner\"] },",
    );
    harness.ok("apply --auto-approve");
    harness.ok("sim set-tag default/web/0 Owner=someone");
    let ended = harness.run("drift");
    assert_snapshot!(ended);
    assert_eq!(ended.code, Some(0));
    assert!(
        harness
            .ok("plan --detailed-exitcode")
            .stdout
            .contains("No changes.")
    );
}

#[test]
fn without_a_state_there_is_nothing_to_have_drifted() {
    let harness = Harness::with(TWO);
    assert_snapshot!(harness.ok("drift"));
    assert_eq!(harness.files(), ["nstance.jsonc"]);
}

#[test]
fn a_target_leaves_out_duplicates_of_other_slots() {
    let harness = Harness::applied(TWO);
    // Forgotten, its slot filled again: now it claims the slot of another.
    harness.ok("state rm default/db/0");
    harness.ok("apply --auto-approve --refresh=false");
    let elsewhere = harness.run("drift --target default/web");
    assert_eq!(elsewhere.code, Some(0), "{elsewhere}");
    assert_eq!(elsewhere.stderr.matches("claims a slot").count(), 0);
    let here = harness.run("drift --target default/db");
    assert_eq!(here.code, Some(2), "{here}");
    assert!(here.stdout.contains("1 duplicate."), "{here}");
}
