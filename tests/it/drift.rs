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

const ACCEPT: &str = r#""accept": [
    { "address": "default/web", "path": "tags.Owner", "reason": "billing tags everything" },
    { "address": "default/db/0", "reason": "being moved", "until": "2026-12-01" },
    { "address": "default/web", "path": "instance_type", "reason": "a test", "until": "2026-11-30" }
  ],
  "groups""#;

#[test]
fn known_drift_is_accepted_until_its_date() {
    let harness = Harness::applied(TWO);
    harness.edit("\"groups\"", ACCEPT);
    harness.ok("sim set-tag default/web/0 Owner=someone");
    harness.ok("sim delete default/db/0");
    let ended = harness.run("drift");
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_snapshot!(ended);
    // What undoes accepted drift doesn't count either; the plan is as it was.
    let ended = harness.run("drift --against config");
    assert_eq!(ended.code, Some(0), "{ended}");
    let ended = harness.run("plan --detailed-exitcode");
    assert_eq!(ended.code, Some(2), "{ended}");
    // One of several attributes isn't accepted any more.
    harness.ok("sim set-type default/web/0 huge");
    let ended = harness.run("drift");
    assert_eq!(ended.code, Some(2), "{ended}");
    assert_snapshot!(ended);
    assert_snapshot!(harness.run("drift --json"));
    let later = harness.run("drift --now 2026-12-02T00:00:00Z --target default/db");
    assert_eq!(later.code, Some(2), "{later}");
}

#[test]
fn an_acceptance_needs_an_address_a_reason_and_a_date() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"groups\"",
        r#""accept": [
    { "address": "web", "reason": "" },
    { "address": "default/web", "reason": "x", "until": "soon" },
    { "path": "tags" },
    "default/web"
  ],
  "groups""#,
    );
    assert_snapshot!(harness.run("validate"));
}

#[test]
fn what_the_server_made_is_told_apart() {
    let harness = Harness::applied(TWO);
    harness.ok("state rm default/db/0");
    let live = harness.live();
    let [_, _, id] = live
        .iter()
        .find(|[address, ..]| address == "default/db/0")
        .unwrap();
    harness.ok(&format!("sim set-tag {id} --unset nstance:slot"));
    let ended = harness.run("drift");
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_snapshot!(ended);
    let document = harness.json("drift --json");
    assert_eq!(document["server_instances"][0]["provider_id"], **id);
}
