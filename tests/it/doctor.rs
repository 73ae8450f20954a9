//! `doctor`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Ended, Harness, TWO, TWO_STATE};

/// The cloud's id of what is live at an address.
fn id_of(harness: &Harness, address: &str) -> String {
    let live = harness.live();
    let found = live.iter().find(|[at, ..]| at == address);
    found.map(|[_, _, id]| id.clone()).expect("it is live")
}

/// Runs the doctor, who finds something and changes nothing.
#[track_caller]
fn found(harness: &Harness, words: &str) -> Ended {
    let (state, live) = (harness.bytes(TWO_STATE), harness.live());
    let ended = harness.run(words);
    assert_eq!(ended.code, Some(2), "{ended}");
    assert!(harness.bytes(TWO_STATE) == state, "{ended}");
    assert_eq!(harness.live(), live);
    ended
}

/// What was found, as (kind, address, repair).
fn kinds(harness: &Harness) -> Vec<[String; 3]> {
    let document = harness.run("doctor --json").json();
    let findings = document["findings"].as_array().unwrap().clone();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or("-").to_owned();
    findings
        .iter()
        .map(|finding| ["kind", "address", "repair"].map(|key| text(finding, key)))
        .collect()
}

/// Applies what the doctor proposes, after which nothing is wrong.
#[track_caller]
fn repaired(harness: &Harness) -> Ended {
    let ended = found(harness, "doctor --out repair.plan");
    assert!(
        ended.stderr.contains("Saved the repair to: repair.plan"),
        "{ended}"
    );
    let applied = harness.ok("apply repair.plan");
    let after = harness.run("doctor");
    assert_eq!(after.code, Some(0), "{after}");
    applied
}

#[test]
fn what_is_well_is_said_and_nothing_is_made() {
    let harness = Harness::with(TWO);
    let ended = harness.ok("doctor");
    assert_snapshot!(ended);
    assert_eq!(harness.files(), ["nstance.jsonc"]);
    harness.ok("apply --auto-approve");
    let files = harness.files();
    assert_snapshot!(harness.ok("doctor"));
    assert_eq!(harness.json("doctor --json")["healthy"], true);
    assert_eq!(harness.files(), files);
    harness.ok("doctor --out nothing.plan");
    assert_eq!(harness.files(), files, "there is nothing to repair");
}

#[test]
fn an_orphan_is_recorded() {
    let harness = Harness::applied(TWO);
    harness.ok("state rm default/web/1");
    assert_snapshot!(found(&harness, "doctor"));
    repaired(&harness);
    assert_eq!(harness.agrees(""), 5);
    // As it was: the next plan wants nothing of it.
    harness.ok("plan --detailed-exitcode");
}

#[test]
fn a_record_without_an_instance_is_forgotten() {
    let harness = Harness::applied(TWO);
    let id = id_of(&harness, "default/web/1");
    harness.ok(&format!("sim delete {id}"));
    assert_snapshot!(found(&harness, "doctor"));
    repaired(&harness);
    // Nothing was made in its place: that is for an apply.
    assert_eq!(harness.agrees(""), 4);
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn a_duplicate_is_deleted_and_its_original_stays() {
    let harness = Harness::applied(TWO);
    let original = id_of(&harness, "default/web/0");
    let copy = id_of(&harness, "default/web/2");
    let live = harness.live();
    let of_original = live.iter().find(|[.., id]| *id == original).unwrap();
    // As a copy made by hand: it carries all of its original's tags.
    harness.ok("state rm default/web/2");
    harness.ok(&format!("sim set-tag {copy} nstance:slot=0"));
    harness.ok(&format!(
        "sim set-tag {copy} nstance:instance-id={}",
        of_original[1]
    ));
    assert_snapshot!(found(&harness, "doctor"));
    assert_snapshot!(repaired(&harness));
    assert_eq!(harness.agrees(""), 4);
    assert_eq!(id_of(&harness, "default/web/0"), original);
    let plan = String::from_utf8_lossy(&harness.read("repair.plan")).into_owned();
    let digest = plan.lines().nth(1).unwrap();
    let entry = harness.ok("state history 3").to_string();
    assert_snapshot!(entry.replace(digest, "[DIGEST]"));
}

#[test]
fn a_duplicate_in_a_protected_group_takes_a_word_more() {
    let harness = Harness::with(&TWO.replace("\"size\": 3", "\"size\": 3, \"protect\": true"));
    harness.ok("apply --auto-approve");
    let copy = id_of(&harness, "default/web/2");
    harness.ok("state rm default/web/2");
    harness.ok(&format!("sim set-tag {copy} nstance:slot=0"));
    found(&harness, "doctor --out repair.plan");
    let ended = harness.refused(TWO_STATE, "apply repair.plan");
    assert!(ended.stderr.contains("protected group"), "{ended}");
    harness.ok("apply repair.plan --allow-delete default/web");
    assert_eq!(harness.agrees(""), 4);
}

#[test]
fn tags_that_were_taken_are_given_back() {
    let harness = Harness::applied(TWO);
    let id = id_of(&harness, "default/web/1");
    harness.ok(&format!("sim set-tag {id} nstance:slot="));
    harness.ok(&format!("sim set-tag {id} nstance:cluster-id=other"));
    assert_snapshot!(found(&harness, "doctor"));
    repaired(&harness);
    harness.ok("drift");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn what_names_no_slot_is_told_of() {
    let harness = Harness::applied(TWO);
    let id = id_of(&harness, "default/web/1");
    harness.ok("state rm default/web/1");
    harness.ok(&format!("sim set-tag {id} nstance:slot=first"));
    assert_snapshot!(found(&harness, "doctor"));
    assert_eq!(kinds(&harness), [["nameless", "-", "-"]]);
    let document = harness.run("doctor --json").json();
    assert_eq!(document["repair"], Value::Null);
}

#[test]
fn drift_and_wanted_changes_are_none_of_its_business() {
    let harness = Harness::applied(TWO);
    let id = id_of(&harness, "default/web/1");
    harness.ok(&format!("sim set-type {id} huge"));
    harness.ok(&format!("sim stop {}", id_of(&harness, "default/db/0")));
    harness.edit("\"size\": 3", "\"size\": 7");
    assert_snapshot!(harness.ok("doctor"));
}

#[test]
fn only_what_is_asked_for_is_proposed() {
    let harness = Harness::applied(TWO);
    harness.ok("state rm default/web/1 default/db/0");
    let repair = |options: &str| -> Vec<String> {
        let document = found(&harness, &format!("doctor --json {options}")).json();
        assert_eq!(document["findings"].as_array().unwrap().len(), 2);
        let changes = document["repair"]["resource_changes"].as_array();
        changes
            .into_iter()
            .flatten()
            .map(|change| change["address"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(repair(""), ["default/db/0", "default/web/1"]);
    assert_eq!(repair("--target default/web"), ["default/web/1"]);
    assert_eq!(repair("--exclude default/web"), ["default/db/0"]);
    assert_eq!(
        repair("--exclude default/web --exclude default/db"),
        [""; 0]
    );
}

#[test]
fn a_repair_that_came_too_late_is_refused() {
    let harness = Harness::applied(TWO);
    harness.ok("state rm default/web/1");
    found(&harness, "doctor --out repair.plan");
    harness.ok("apply --auto-approve");
    assert_snapshot!(harness.refused(TWO_STATE, "apply repair.plan"));
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn what_is_left_open_is_explained_and_left_to_an_apply() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"options\": {}",
        r#""options": { "fail": [{ "operation": "create", "error": "ambiguous", "count": 99 }] }"#,
    );
    assert_eq!(harness.run("apply --auto-approve").code, Some(1));
    let text = String::from_utf8(harness.read("nstance.jsonc")).unwrap();
    let start = text.find("\"fail\"").unwrap();
    let end = text[start..].find(']').unwrap() + start + 1;
    harness.configure(&format!("{}{}", &text[..start], &text[end..]));
    assert_snapshot!(found(&harness, "doctor"));
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
    harness.ok("doctor");
}

#[test]
fn a_state_that_is_lost_or_damaged_gets_steps() {
    let harness = Harness::applied(TWO);
    // Something to restore.
    harness.ok("state rm default/web/1");
    harness.ok("apply --auto-approve");
    let good = harness.read(TWO_STATE);
    let mut told = String::new();
    for spoiled in [
        &good[..good.len() / 2],
        b"a shopping list, quite a long one for a state",
    ] {
        harness.write(TWO_STATE, spoiled);
        told.push_str(&format!("{}\n", found(&harness, "doctor")));
    }
    fs::remove_file(harness.path(TWO_STATE)).unwrap();
    let ended = found(&harness, "doctor");
    told.push_str(&ended.to_string());
    // The names of backups have a part of the lineage in them.
    let lineage = told.split(".backups/").nth(1).unwrap();
    let lineage = &lineage[lineage.find('-').unwrap() + 1..lineage.find(".db").unwrap()];
    assert_snapshot!(told.replace(lineage, "[LINEAGE]"));
    // The step it says is the one that helps.
    let step = ended.stdout.split("in its place: nstance ").nth(1).unwrap();
    let step = step.lines().next().unwrap();
    let step = step.replace("[FOLDER]", &harness.path("").display().to_string());
    harness.ok(&step);
    assert_eq!(kinds(&harness), [["orphan", "default/web/1", "adopt"]]);
    repaired(&harness);
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn damage_inside_is_found() {
    let harness = Harness::applied(TWO);
    let database = rusqlite::Connection::open(harness.path(TWO_STATE)).unwrap();
    database
        .execute_batch(
            "UPDATE specs SET body = x'00' WHERE id = 1;
             UPDATE instances SET version = 99 WHERE slot = 2;",
        )
        .unwrap();
    drop(database);
    let kinds = kinds(&harness);
    let state: Vec<&str> = kinds.iter().map(|[kind, ..]| kind.as_str()).collect();
    assert!(state.contains(&"content"), "{state:?}");
    assert!(state.contains(&"record-contradiction"), "{state:?}");
}

#[test]
fn files_that_others_may_read_are_told_of() {
    let harness = Harness::applied(TWO);
    let mode = |mode: u32| {
        let path = harness.path(TWO_STATE);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o644);
    assert_snapshot!(found(&harness, "doctor"));
    mode(0o400);
    // Only worth knowing.
    let ended = harness.ok("doctor");
    assert!(
        ended
            .stdout
            .contains("note: [FOLDER]/.nstance/test/one.db can't be written"),
        "{ended}"
    );
    mode(0o600);
}

#[test]
fn a_cloud_that_does_not_answer_is_a_finding() {
    let harness = Harness::applied(TWO);
    harness.edit("\"options\": {}", "\"options\": { \"fail\": [{ \"operation\": \"list\", \"error\": \"denied\", \"count\": 99 }] }");
    assert_snapshot!(harness.run("doctor"));
    // A configuration that is wrong is none: without it there is nothing to compare with.
    harness.edit("\"size\": 3", "\"size\": \"three\"");
    assert_eq!(harness.run("doctor").code, Some(1));
}

#[test]
fn what_a_dead_process_left_of_the_lock_is_told() {
    let harness = Harness::applied(TWO);
    harness.write(
        &format!("{TWO_STATE}.lock"),
        r#"{"id":"1","holder":"ghost","host":"attic","pid":1,"operation":"apply","since":1}"#,
    );
    assert_snapshot!(harness.ok("doctor"));
    harness.ok("state unlock 1");
}

#[test]
fn several_shards_are_examined_each() {
    let harness = Harness::empty();
    harness.write("one.jsonc", TWO);
    harness.write("two.jsonc", TWO.replace("\"one\"", "\"two\""));
    let both = "-c one.jsonc -c two.jsonc";
    harness.ok(&format!("apply {both} --auto-approve"));
    harness.ok(&format!("state rm {both} two:default/web/1"));
    let ended = harness.run(&format!("doctor {both} --out {{shard}}.plan"));
    assert_eq!(ended.code, Some(2), "{ended}");
    assert_snapshot!(ended);
    assert!(!harness.path("one.plan").exists());
    harness.ok(&format!("apply {both} two.plan"));
    harness.ok(&format!("doctor {both}"));
}
