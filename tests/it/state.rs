//! `state`.

use insta::assert_snapshot;

use crate::harness::{Harness, TWO, TWO_STATE};

#[test]
fn list_and_show() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("state list"));
    assert_snapshot!(harness.ok("state list default/db"));
    assert_snapshot!(harness.ok("state show default/db/1"));
    assert_eq!(
        harness.json("state show default/db/1 --json")["address"],
        "default/db/1"
    );
    assert_snapshot!(harness.refused(TWO_STATE, "state show default/db/7"));
}

#[test]
fn what_is_moved_keeps_its_instance() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("state mv default/web/2 default/db/2"));
    assert_snapshot!(harness.ok("state list"));
    for words in [
        "state mv default/web/0 default/web/1",
        "state mv default/web/7 default/web/8",
        "state mv default/web default/db",
    ] {
        assert_snapshot!(harness.refused(TWO_STATE, words));
    }
}

#[test]
fn what_is_forgotten_stays_in_the_cloud() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("state rm default/web/0 default/web/1"));
    assert_eq!(harness.live().len(), 5);
    assert_eq!(harness.run("drift").code, Some(2));
    // All or nothing.
    harness.refused(TWO_STATE, "state rm default/web/2 default/web/0");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn a_backup_is_a_state() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("state backup"));
    assert_snapshot!(harness.ok("state backup copy.db"));
    assert_snapshot!(harness.refused(TWO_STATE, "state backup copy.db"));
    harness.ok("destroy --auto-approve --target default/web");
    std::fs::copy(harness.path("copy.db"), harness.path(TWO_STATE)).unwrap();
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn history_says_who_did_what_when() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 1");
    harness.ok("apply --auto-approve");
    harness.ok("state rm default/db/1");
    assert_snapshot!(harness.ok("state history"));
    assert_snapshot!(harness.ok("state history 2"));
    assert_snapshot!(harness.ok("state history 2 --json"));
    assert_snapshot!(harness.refused(TWO_STATE, "state history 99"));
    assert_eq!(
        harness.ok("state history --limit 1").stdout.lines().count(),
        2
    );
}

#[test]
fn whatever_changes_records_is_in_the_history() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"options\": {}",
        r#""options": { "fail": [{ "operation": "create", "error": "ambiguous", "count": 99 }] }"#,
    );
    assert_eq!(harness.run("apply --auto-approve").code, Some(1));
    harness.configure(TWO);
    harness.ok("apply --auto-approve");
    let document = harness.ok("state pull").stdout;
    harness.write("document.json", document);
    harness.ok("plan --destroy --target default/db --out saved.plan");
    harness.ok("apply saved.plan");
    harness.ok("state mv default/web/0 default/web/7");
    harness.ok("state rm default/web/7");
    harness.ok("state undo --auto-approve");
    harness.ok("state push document.json --force");
    harness.ok("state rekey");
    let id = &harness.live().into_iter().next().unwrap()[2].clone();
    harness.ok("state rm default/web/1 default/web/2 default/web/0");
    harness.ok(&format!("import default/web/4 {id}"));
    harness.ok("destroy --auto-approve");
    assert_snapshot!(harness.ok("state history"));
    // A page, and the one before it.
    let page = harness.run("state history --limit 3");
    assert_snapshot!(page);
    let before = page.stderr.trim().rsplit(' ').next().unwrap().to_owned();
    let next = harness.json(&format!("state history --limit 3 --before {before} --json"));
    let ids: Vec<i64> = next["applies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["id"].as_i64().unwrap())
        .collect();
    let first: i64 = before.parse().unwrap();
    assert_eq!(ids, [first - 1, first - 2, first - 3]);
    assert_eq!(next["next_before"], first - 3);
    // Each says what it changed, and a saved plan by which digest.
    let plan = String::from_utf8_lossy(&harness.read("saved.plan")).into_owned();
    let digest = plan.lines().nth(1).unwrap();
    for id in [2, 3, 4, 7] {
        let entry = harness.ok(&format!("state history {id}")).to_string();
        assert_snapshot!(entry.replace(digest, "[DIGEST]"));
    }
    assert_eq!(
        harness.json("state history 3 --json")["plan_digest"],
        digest
    );
    let moved = harness.json("state history 4 --json");
    assert_eq!(moved["items"][0]["moved_to"], "default/web/7");
}

#[test]
fn a_copy_is_kept_before_records_change_and_never_for_a_plan() {
    let harness = Harness::with(TWO);
    let backups = || {
        let files = harness.files();
        let of_state = |file: &&String| file.starts_with(".nstance/test/one.backups/");
        files.iter().filter(of_state).count()
    };
    harness.ok("apply --auto-approve");
    assert_eq!(backups(), 0, "there was nothing to copy");
    for words in [
        "plan",
        "plan --destroy",
        "drift",
        "apply --auto-approve",
        "show",
        "doctor",
    ] {
        harness.ok(words);
        assert_eq!(backups(), 0, "{words}");
    }
    for (count, words) in [
        (1, "state mv default/web/0 default/web/7"),
        (2, "state undo --auto-approve"),
        (3, "apply --auto-approve --replace default/web/1"),
        (4, "state rm default/web/2"),
        (5, "apply --auto-approve"),
        (6, "destroy --auto-approve --target default/db"),
    ] {
        harness.ok(words);
        assert_eq!(backups(), count, "{words}");
    }
    for _ in 0..4 {
        harness.ok("state mv default/web/0 default/web/7");
        harness.ok("state mv default/web/7 default/web/0");
    }
    assert_eq!(backups(), 10, "the latest are kept");
}

#[test]
fn without_a_place_for_the_copy_nothing_is_changed() {
    let harness = Harness::applied(TWO);
    harness.write(".nstance/test/one.backups", "in the way");
    harness.edit("\"size\": 3", "\"size\": 4");
    let live = harness.live();
    for words in [
        "apply --auto-approve",
        "state rm default/web/0",
        "state mv default/web/0 default/web/7",
    ] {
        let ended = harness.refused(TWO_STATE, words);
        assert!(
            ended
                .stderr
                .contains("no backup of the state can be made, so nothing was changed"),
            "{ended}"
        );
        assert_eq!(harness.live(), live);
    }
    assert_snapshot!(harness.refused(TWO_STATE, "state rm default/web/0"));
    harness.ok("plan");
    std::fs::remove_file(harness.path(".nstance/test/one.backups")).unwrap();
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn a_lock_that_nobody_holds_cannot_be_broken_blindly() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.refused(TWO_STATE, "state unlock 123"));
}

#[test]
fn a_group_stands_for_its_slots() {
    let harness = Harness::applied(TWO);
    let shown = harness.ok("state show default/db");
    assert_eq!(shown.stdout.matches("provider_id").count(), 2, "{shown}");
    let document = harness.json("state show default/db --json");
    assert_eq!(document["records"].as_array().unwrap().len(), 2);
    assert_snapshot!(
        "a_group_is_moved",
        harness.ok("state mv default/db default/store")
    );
    assert_eq!(
        harness.ok("state list default/store").stdout,
        "default/store/0\ndefault/store/1\n"
    );
    let half = harness.refused(TWO_STATE, "state mv default/store default/db/0");
    assert!(half.stderr.contains("a group and a slot"), "{half}");
    harness.ok("state rm default/store default/web/0");
    assert_eq!(
        harness.ok("state list").stdout,
        "default/web/1\ndefault/web/2\n"
    );
    assert_eq!(harness.live().len(), 5, "all are still in the cloud");
    let import = harness.refused(TWO_STATE, "import default/web sim-1");
    assert!(
        import
            .stderr
            .contains("`default/web` is a group; name one of its slots, such as `default/web/0`"),
        "{import}"
    );
}

#[test]
fn an_instance_that_is_recorded_there_already_needs_no_move() {
    let harness = Harness::applied(TWO);
    let id = harness.json("state show default/db/0 --json")["provider_id"].clone();
    let words = format!("import default/db/0 {}", id.as_str().unwrap());
    let ended = harness.refused(TWO_STATE, &words);
    assert!(
        ended
            .stderr
            .contains("is recorded already, as default/db/0"),
        "{ended}"
    );
    assert!(!ended.stderr.contains("state mv"), "{ended}");
}

#[test]
fn without_a_name_the_user_is_a_number() {
    let harness = Harness::with(TWO);
    let mut command = harness.command("apply --auto-approve");
    command.env_remove("USER").env_remove("LOGNAME");
    assert_eq!(harness.end("apply --auto-approve", command).code, Some(0));
    let history = harness.ok("state history --json").json();
    let who = history["applies"][0]["who"].as_str().unwrap();
    let number = who.strip_prefix("uid-").expect("it starts with uid-");
    assert!(number.parse::<u32>().is_ok(), "{who}");
}
