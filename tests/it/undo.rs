//! `state undo`.

use std::io::Write as _;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Harness, TWO, TWO_STATE};

/// The records, but for when they changed.
fn records(harness: &Harness) -> Vec<Value> {
    let document: Value = serde_json::from_str(&harness.ok("state pull").stdout).unwrap();
    let mut records = document["instances"].as_array().unwrap().clone();
    for record in &mut records {
        record.as_object_mut().unwrap().remove("version");
        record.as_object_mut().unwrap().remove("updated_at");
    }
    records
}

fn serial(harness: &Harness) -> u64 {
    harness.json("show --json")["serial"].as_u64().unwrap()
}

#[test]
fn every_change_by_hand_is_undone_exactly() {
    let harness = Harness::applied(TWO);
    let live = harness.live();
    let id = &live.iter().find(|[at, ..]| at == "default/web/1").unwrap()[2];
    let document = harness.ok("state pull").stdout;
    let mut edited: Value = serde_json::from_str(&document).unwrap();
    // Two that change places, and one that is forgotten.
    let instances = edited["instances"].as_array_mut().unwrap();
    instances.pop();
    (instances[2]["slot"], instances[3]["slot"]) = (1.into(), 0.into());
    harness.write("edited.json", edited.to_string());
    let mut told = String::new();
    for words in [
        "state mv default/web/0 default/db/7",
        "state rm default/web/0 default/db/1",
        "state push edited.json --force",
    ] {
        let (before, serial_before) = (records(&harness), serial(&harness));
        harness.ok(words);
        let changed = records(&harness);
        assert_ne!(changed, before, "{words}");
        told.push_str(&format!(
            "# {words}\n{}\n",
            harness.ok("state undo --auto-approve")
        ));
        assert_eq!(records(&harness), before, "{words}");
        assert_eq!(serial(&harness), serial_before + 2, "{words}");
        // Undone once more, it is done again; and once more, it isn't.
        harness.ok("state undo --auto-approve");
        assert_eq!(records(&harness), changed, "{words}");
        harness.ok("state undo --auto-approve");
        assert_eq!(records(&harness), before, "{words}");
    }
    harness.ok("state rm default/web/1");
    let before = records(&harness);
    harness.ok(&format!("import default/web/9 {id}"));
    told.push_str(&format!(
        "# import\n{}",
        harness.ok("state undo --auto-approve")
    ));
    assert_eq!(records(&harness), before);
    assert_snapshot!(told);
    // By its number an older one, too: what came after it is about others.
    harness.ok("state mv default/db/0 default/db/5");
    let rm = harness.json("state history --json")["applies"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["operation"] == "state rm")
        .unwrap()["id"]
        .clone();
    harness.ok(&format!("state undo {rm} --auto-approve"));
    harness.ok("state mv default/db/5 default/db/0");
    assert_eq!(harness.agrees(""), 5);
    assert_eq!(harness.ok("drift").code, Some(0));
    assert_eq!(harness.json("doctor --json")["healthy"], true);
}

#[test]
fn what_was_forgotten_keeps_its_spec_until_it_cannot_be_undone() {
    let harness = Harness::applied(&TWO.replace("\"size\": 2, ", "\"size\": 1, "));
    // The only instance of its make.
    harness.ok("state rm default/db/0");
    let entry = "2";
    let before = harness.bytes(TWO_STATE);
    for _ in 0..9 {
        harness.ok("state mv default/web/0 default/web/7");
        harness.ok("state mv default/web/7 default/web/0");
    }
    assert!(harness.bytes(TWO_STATE) != before);
    harness.ok(&format!("state undo {entry} --auto-approve"));
    assert_eq!(harness.agrees(""), 4);
    harness.ok("state undo --auto-approve");
    // That was the last but one of the twenty that are kept, and forgot it again.
    for _ in 0..10 {
        harness.ok("state mv default/web/0 default/web/7");
        harness.ok("state mv default/web/7 default/web/0");
    }
    assert_snapshot!(harness.refused(TWO_STATE, &format!("state undo {entry} --auto-approve")));
}

#[test]
fn what_moved_on_is_named_and_left() {
    let harness = Harness::applied(TWO);
    let id = |address: &str| {
        let live = harness.live();
        let found = live.iter().find(|[at, ..]| at == address).cloned();
        found.unwrap()[2].clone()
    };
    let (web_0, web_1, web_2) = (
        id("default/web/0"),
        id("default/web/1"),
        id("default/web/2"),
    );
    harness.ok("state rm default/web/0 default/web/1 default/web/2");
    // One is recorded again, one's slot is another's, one's instance is recorded elsewhere.
    harness.ok(&format!("import default/web/0 {web_0}"));
    harness.ok("state mv default/db/1 default/web/1");
    harness.ok(&format!("sim delete {web_1}"));
    harness.ok(&format!("import default/db/9 {web_2}"));
    assert_snapshot!(harness.refused(TWO_STATE, "state undo 2 --auto-approve"));
    // What was changed by an apply isn't changed back either.
    let harness = Harness::applied(TWO);
    harness.ok("state mv default/web/0 default/web/5");
    harness.ok("apply --auto-approve --replace default/web/5");
    assert_snapshot!(harness.refused(TWO_STATE, "state undo --auto-approve"));
}

#[test]
fn what_was_done_in_the_cloud_is_not_undone_here() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.refused(TWO_STATE, "state undo 1 --auto-approve"));
    assert_snapshot!(harness.refused(TWO_STATE, "state undo --auto-approve"));
    assert_snapshot!(harness.refused(TWO_STATE, "state undo 99 --auto-approve"));
    harness.ok("state rekey");
    assert_snapshot!(harness.refused(TWO_STATE, "state undo 2 --auto-approve"));
}

#[test]
fn it_asks_and_takes_nothing_but_yes() {
    let harness = Harness::applied(TWO);
    harness.ok("state rm default/web/0");
    assert_snapshot!(harness.refused(TWO_STATE, "state undo"));
    // A script in place of a terminal isn't asked, whatever it says.
    let mut command = harness.command("state undo");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"yes\n").unwrap();
    assert_eq!(harness.wait("state undo", child).code, Some(1));
    assert_eq!(records(&harness).len(), 4);
}

#[test]
fn its_document_says_what_was_undone() {
    let harness = Harness::applied(TWO);
    harness.ok("state mv default/web/0 default/web/7");
    let document = harness.json("state undo --auto-approve --json");
    assert_eq!(document["undone"], 2);
    assert_eq!(
        document["changes"],
        serde_json::json!([{"before": "default/web/7", "after": "default/web/0"}])
    );
}

#[test]
fn a_command_over_several_shards_is_undone_in_all_that_it_changed() {
    let harness = Harness::empty();
    for shard in ["one", "two", "three"] {
        let config = TWO.replace("\"one\"", &format!("\"{shard}\""));
        harness.write(&format!("{shard}.jsonc"), config);
    }
    let all = "-c one.jsonc -c two.jsonc -c three.jsonc";
    harness.ok(&format!("apply {all} --auto-approve"));
    // What one shard had before isn't meant.
    harness.ok("state rm -c three.jsonc default/web/2");
    harness.ok(&format!(
        "state rm {all} one:default/web/0 two:default/web/1"
    ));
    assert_snapshot!(harness.ok(&format!("state undo {all} --auto-approve")));
    let listed = harness.ok(&format!("state list {all}")).stdout;
    assert_eq!(listed.lines().count(), 14, "{listed}");
    let ended = harness.run(&format!("state undo {all} 2 --auto-approve"));
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("about one shard"), "{ended}");
}
