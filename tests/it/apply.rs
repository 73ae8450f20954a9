//! `apply`: consent, events, and what it refuses.

use std::collections::BTreeMap;

use insta::assert_snapshot;

use crate::harness::{AWS, Harness, STARTER, TWO, TWO_STATE};

/// A refusal that leaves the state's bytes and the cloud alone.
#[track_caller]
fn refused(harness: &Harness, state: &str, words: &str) -> String {
    let live = harness.live();
    let ended = harness.refused(state, words);
    assert_eq!(harness.live(), live);
    ended.to_string()
}

#[test]
fn nobody_to_ask_is_an_error_that_says_what_to_do() {
    let harness = Harness::with(TWO);
    let ended = harness.run("apply");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    assert_eq!(harness.files(), ["nstance.jsonc"]);
    harness.ok("apply --auto-approve");
    assert_snapshot!(refused(&harness, TWO_STATE, "destroy"));
}

#[test]
fn events_are_objects_one_a_line() {
    let harness = Harness::with(STARTER);
    let ended = harness.ok("apply --auto-approve --json");
    let events = ended.events();
    assert_eq!(ended.stderr, "", "standard output carries everything");
    for event in &events {
        for key in ["@level", "@message", "@timestamp", "type"] {
            assert!(event[key].is_string(), "`{key}` of {event}");
        }
    }
    let mut counts = BTreeMap::new();
    for event in &events {
        *counts.entry(event["type"].as_str().unwrap()).or_insert(0) += 1;
    }
    let expected = [
        ("apply_complete", 3),
        ("apply_start", 3),
        ("change_summary", 2),
        ("planned_change", 3),
        ("version", 1),
    ];
    assert_eq!(counts, expected.into());
    assert_eq!(events[0]["type"], "version");
    let last = events.last().unwrap();
    assert_eq!(last["type"], "change_summary");
    assert_eq!(last["changes"]["operation"], "apply");
    assert_eq!(last["changes"]["add"], 3);
    let of_one: Vec<_> = events
        .iter()
        .filter(|event| event["hook"]["resource"]["addr"] == "default/web/0")
        .map(|event| format!("{event:#}"))
        .collect();
    assert_snapshot!(of_one.join("\n"));
}

#[test]
fn drift_and_failures_are_events_too() {
    let harness = Harness::applied(TWO);
    harness.ok("sim delete default/web/1");
    harness.edit("\"options\": {}", "\"options\": { \"fail\": [{ \"operation\": \"create\", \"error\": \"quota\", \"count\": 9 }] }");
    let ended = harness.run("apply --auto-approve --json");
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stderr, "");
    let types: Vec<_> = ended
        .events()
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    for wanted in [
        "resource_drift",
        "apply_errored",
        "diagnostic",
        "change_summary",
    ] {
        assert!(
            types.iter().any(|one| one == wanted),
            "{wanted} is missing: {types:?}"
        );
    }
}

#[test]
fn deletions_beyond_the_budget_are_refused_unless_allowed() {
    let harness = Harness::with(TWO);
    harness.edit("\"size\": 3", "\"size\": 15");
    harness.ok("apply --auto-approve");
    harness.edit("\"size\": 15", "\"size\": 4");
    let planned = harness.ok("plan");
    assert_snapshot!("budget_plan", planned);
    assert_snapshot!(
        "budget_apply",
        refused(&harness, TWO_STATE, "apply --auto-approve")
    );
    refused(
        &harness,
        TWO_STATE,
        "apply --auto-approve --allow-delete default/db",
    );
    harness.ok("plan --out saved.plan");
    assert_snapshot!(
        "budget_saved",
        refused(&harness, TWO_STATE, "apply saved.plan")
    );
    harness.ok("apply saved.plan --allow-delete default/web");
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn ten_deletions_are_within_the_budget() {
    let harness = Harness::with(TWO);
    harness.edit("\"size\": 3", "\"size\": 15");
    harness.ok("apply --auto-approve");
    harness.edit("\"size\": 15", "\"size\": 5");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 7);
}

#[test]
fn the_budget_is_configured_and_all_is_allowed_at_once() {
    let harness = Harness::applied(TWO);
    harness.edit(
        "\"templates\": {",
        "\"destroy_budget\": { \"count\": 0, \"percent\": 0 },\n  \"templates\": {",
    );
    harness.edit("\"size\": 3", "\"size\": 2");
    refused(&harness, TWO_STATE, "apply --auto-approve");
    harness.ok("apply --auto-approve --allow-delete all");
    assert_eq!(harness.agrees(""), 4);
}

#[test]
fn replacements_are_no_deletions() {
    let harness = Harness::with(TWO);
    harness.edit("\"size\": 3", "\"size\": 15");
    harness.ok("apply --auto-approve");
    harness.edit("\"debian-13\"", "\"debian-12\"");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 17);
}

#[test]
fn a_protected_group_loses_nothing_unless_allowed() {
    let harness = Harness::with(AWS);
    harness.ok("apply --auto-approve --sim");
    harness.edit("\"size\": 3", "\"size\": 2");
    let state = ".nstance/prod/us-west-2a.db";
    assert_snapshot!("protected_plan", harness.ok("plan --sim"));
    assert_snapshot!(
        "protected_apply",
        refused(&harness, state, "apply --auto-approve --sim")
    );
    assert_snapshot!(
        "protected_destroy",
        refused(&harness, state, "destroy --auto-approve --sim")
    );
    harness.ok("apply --auto-approve --sim --allow-delete default/control");
    assert_eq!(harness.agrees("--sim"), 6);
}

#[test]
fn replacements_of_a_protected_group_are_held_back() {
    for (key, value) in [
        ("protect", "true"),
        ("lifecycle", "{ \"prevent_destroy\": true }"),
    ] {
        let harness = Harness::with(TWO);
        let db = "\"db\": { \"template\": \"vm\"";
        harness.edit(db, &format!("{db}, \"{key}\": {value}"));
        harness.ok("apply --auto-approve");
        harness.edit("\"debian-13\"", "\"debian-12\"");
        let plan = harness.run("plan --detailed-exitcode");
        let applied = harness.ok("apply --auto-approve");
        let again = harness.run("plan --detailed-exitcode --out kept.plan");
        assert_eq!([plan.code, again.code], [Some(2); 2]);
        if key == "protect" {
            assert_snapshot!("held_back", plan);
            assert_snapshot!("held_back_applied", applied);
            assert_snapshot!("held_back_only", harness.ok("apply --auto-approve"));
            assert_snapshot!(
                "held_back_misspelt",
                harness.run("plan --allow-replace default/dv")
            );
        }
        let json = harness.json("plan --json");
        assert_eq!(json["summary"]["held_back"], 2);
        assert_eq!(json["applyable"], false);
        assert_eq!(json["held_back"][0]["address"], "default/db/0");
        assert_eq!(json["resource_changes"].as_array().unwrap().len(), 3);

        let released = harness.ok("plan --allow-replace default/db");
        assert!(
            released
                .stdout
                .contains("Plan: 2 to add, 0 to change, 2 to destroy.\n")
        );
        let applied = harness.ok("apply kept.plan --allow-replace default/db");
        assert!(
            applied.stdout.contains("2 added, 0 changed, 2 destroyed"),
            "{applied}"
        );
        let settled = harness.run("plan --detailed-exitcode");
        assert_eq!(settled.code, Some(0), "{settled}");

        // In-place updates are free, and who may delete instances may replace them.
        harness.edit(db, &format!("{db}, \"labels\": {{ \"tier\": \"data\" }}"));
        let updated = harness.ok("apply --auto-approve");
        assert!(
            updated.stdout.contains("0 added, 2 changed, 0 destroyed"),
            "{updated}"
        );
        let replaced = harness.ok("apply --auto-approve --replace default/db --allow-delete all");
        assert!(
            replaced.stdout.contains("2 added, 0 changed, 2 destroyed"),
            "{replaced}"
        );
        refused(&harness, TWO_STATE, "destroy --auto-approve");
        harness.ok("destroy --auto-approve --allow-delete default/db");
        assert_eq!(harness.agrees(""), 0);
    }
}

#[test]
fn a_held_back_instance_follows_its_group_and_records_its_protection() {
    let harness = Harness::with(TWO);
    harness.ok("apply --auto-approve");
    let db = "\"db\": { \"template\": \"vm\"";
    harness.edit(db, &format!("{db}, \"protect\": true"));
    harness.edit("\"debian-13\"", "\"debian-12\"");
    harness.ok("apply --auto-approve");
    harness.edit("\"db\": {", "\"store\": { \"moved_from\": \"default/db\",");
    assert_snapshot!("held_back_moved", harness.ok("plan"));
    harness.ok("apply --auto-approve");
    let listed = harness.ok("state list");
    assert!(listed.stdout.contains("default/store/0"), "{listed}");
    harness.edit("\"store\": {", "\"other\": {");
    harness.edit("\"moved_from\": \"default/db\",", "");
    let ended = harness.run("apply --auto-approve");
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("--allow-delete default/store"),
        "{ended}"
    );
}

#[test]
fn replacements_are_made_before_what_they_replace_goes() {
    let harness = Harness::applied(TWO);
    harness.edit("\"debian-13\"", "\"debian-12\"");
    let ended = harness.ok("apply --auto-approve --json");
    let mut steps: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in ended.events() {
        if event["type"] == "apply_complete" {
            let hook = &event["hook"];
            let address = hook["resource"]["addr"].as_str().unwrap().to_owned();
            steps
                .entry(address)
                .or_default()
                .push(hook["action"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(steps.len(), 5);
    for (address, steps) in steps {
        assert_eq!(steps, ["create", "delete"], "{address}");
    }
}

#[test]
fn files_to_export_are_written_kept_up_and_removed() {
    let harness = Harness::applied(STARTER);
    let exported = |harness: &Harness| {
        let files = harness.files();
        files
            .into_iter()
            .filter(|file| file.starts_with(".nstance/example/local/files/"))
            .collect::<Vec<_>>()
    };
    let expected: Vec<_> = (0..3)
        .map(|slot| format!(".nstance/example/local/files/default/web/{slot}/instance.env"))
        .collect();
    assert_eq!(exported(&harness), expected);
    let text = String::from_utf8(harness.read(&expected[0])).unwrap();
    assert!(text.ends_with("ZONE=local-1a\n"), "{text}");
    harness.edit("\"ZONE\"", "\"LOCATION\"");
    let before = harness.live();
    harness.ok("apply --auto-approve");
    assert_eq!(harness.live(), before, "a file is pushed in place");
    let text = String::from_utf8(harness.read(&expected[0])).unwrap();
    assert!(text.ends_with("LOCATION=local-1a\n"), "{text}");
    harness.ok("drift");
    harness.edit("\"size\": 3", "\"size\": 2");
    harness.ok("apply --auto-approve");
    assert_eq!(exported(&harness), expected[..2]);
}

#[test]
fn a_group_that_moves_keeps_its_instances() {
    let harness = Harness::applied(TWO);
    let before = harness
        .live()
        .into_iter()
        .map(|[_, _, id]| id)
        .collect::<Vec<_>>();
    harness.edit(
        "\"web\": { \"template\": \"vm\",",
        "\"front\": { \"template\": \"vm\", \"moved_from\": \"default/web\",",
    );
    assert_snapshot!(harness.ok("apply --auto-approve"));
    let mut after = harness
        .live()
        .into_iter()
        .map(|[_, _, id]| id)
        .collect::<Vec<_>>();
    after.sort();
    let mut before = before;
    before.sort();
    assert_eq!(before, after);
    harness.agrees("");
    assert!(
        harness
            .ok("plan --detailed-exitcode")
            .stdout
            .contains("No changes.")
    );
}

#[test]
fn a_thousand_that_must_not_be_destroyed_are_told_in_a_few_lines() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"instance_type\": \"small\",",
        "\"instance_type\": \"small\", \"lifecycle\": { \"prevent_destroy\": true },",
    );
    harness.edit("\"size\": 3", "\"size\": 1000");
    harness.ok("apply --auto-approve --quiet");
    harness.edit("\"debian-13\"", "\"debian-12\"");
    let held_back = harness.ok("plan");
    harness.edit("\"size\": 1000", "\"size\": 1");
    let refused = harness.run("apply --auto-approve");
    assert_eq!(refused.code, Some(1));
    for ended in [held_back, refused] {
        assert!(ended.stderr.lines().count() < 30, "{ended}");
        assert!(ended.stdout.lines().count() < 200, "{ended}");
    }
}

#[test]
fn a_template_that_is_wrong_leaves_everything_as_it_was() {
    let harness = Harness::with(TWO);
    harness.edit("\"debian-13\"", "\"{{ .Nope }}\"");
    let before = harness.files();
    for words in ["apply --auto-approve", "destroy --auto-approve"] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(ended.stderr.contains("templates have no data"), "{ended}");
        assert_eq!(harness.files(), before, "{words}");
    }
}

/// `apply > log` on a terminal: the question must not go into the log.
#[cfg(unix)]
#[test]
fn the_question_goes_to_standard_error() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::Write as _;

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let input = std::fs::File::open(name.to_str().unwrap()).unwrap();
    let answers = [("no", Some(1), 0), ("yes", Some(0), 5)];
    for (answer, code, instances) in answers {
        let harness = Harness::with(TWO);
        let child = harness
            .command("apply")
            .stdin(input.try_clone().unwrap())
            .spawn()
            .unwrap();
        let mut answers = std::fs::File::from(terminal.try_clone().unwrap());
        writeln!(answers, "{answer}").unwrap();
        let ended = harness.wait("apply", child);
        assert_eq!(ended.code, code, "{ended}");
        assert!(ended.stderr.contains("Enter a value:"), "{ended}");
        assert!(!ended.stdout.contains("Enter a value:"), "{ended}");
        assert!(ended.stdout.contains("will be created"), "{ended}");
        assert_eq!(harness.live().len(), instances);
    }
}
