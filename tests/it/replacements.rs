//! Replacements, step by step: what waits for what.
//!
//! In: fleets on an embedded cloud whose instances take time to boot. Out: the order in which apply
//! works. Must not: sleep; waiting moves the commands' clock.

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Harness, TWO};

/// [`TWO`] on a cloud with options.
fn fleet(options: &str) -> Harness {
    let harness = Harness::with(TWO);
    harness.edit("\"options\": {}", &format!("\"options\": {{ {options} }}"));
    harness
}

/// `default/web/0 create`, for each operation that was completed.
fn completed(events: &[Value]) -> Vec<String> {
    let of = |event: &Value| {
        let hook = &event["hook"];
        let address = hook["resource"]["addr"].as_str().unwrap();
        format!("{address} {}", hook["action"].as_str().unwrap())
    };
    let events = events.iter();
    events
        .filter(|event| event["type"] == "apply_complete")
        .map(of)
        .collect()
}

#[test]
fn a_predecessor_is_deleted_when_its_successor_runs() {
    let harness = fleet("\"boot_time\": \"20s\"");
    harness.ok("apply --auto-approve");
    let replaced = harness.ok("apply --auto-approve --replace default/web");
    assert_snapshot!("booting", replaced);
    // All successors had the time to boot before the command ended.
    let events = harness.ok("apply --auto-approve --replace default/web --json");
    let steps = completed(&events.events());
    let expected: Vec<String> = (0..3)
        .flat_map(|slot| ["create", "delete"].map(|step| format!("default/web/{slot} {step}")))
        .collect();
    assert_eq!(steps, expected);
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn a_predecessor_stays_while_its_successor_does_not_run() {
    let harness = fleet("\"boot_time\": \"20s\"");
    harness.ok("apply --auto-approve");
    harness.edit(
        "\"boot_time\": \"20s\"",
        "\"boot_time\": \"1h\", \"wait_timeout\": \"5m\"",
    );
    let ended = harness.run("apply --auto-approve --replace default/web");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!("not_running", ended);
    assert_eq!(harness.live().len(), 6, "one successor, and no deletion");
    // The next apply deletes the predecessor, and waits just the same.
    let again = harness.run("apply --auto-approve");
    assert_snapshot!("not_running_yet", again);
    assert_eq!(harness.live().len(), 6);
    for _ in 0..6 {
        harness.ok("state list"); // Ten minutes each.
    }
    harness.edit("\"1h\"", "\"20s\"");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn what_only_one_instance_can_have_is_freed_first() {
    for pin in [
        "\"PrivateIpAddress\": \"10.0.0.9\"",
        "\"NetworkInterfaces\": [{ \"DeviceIndex\": 0, \"NetworkInterfaceId\": \"eni-1\" }]",
    ] {
        let harness = fleet("\"boot_time\": \"20s\"");
        harness.edit(
            "\"size\": 2, ",
            &format!("\"size\": 1, \"args\": {{ {pin} }}, "),
        );
        let first = harness.ok("apply --auto-approve");
        let fixed = pin.contains("PrivateIpAddress");
        assert_eq!(
            first.stdout.contains("+ ip4           = \"10.0.0.9\""),
            fixed,
            "{first}"
        );
        let plan = harness.ok("plan --replace default/db");
        assert!(
            plan.stdout.contains("-/+ sim_instance \"default/db/0\""),
            "{plan}"
        );
        let events = harness.ok("apply --auto-approve --replace default/db --json");
        assert_eq!(
            completed(&events.events()),
            ["default/db/0 delete", "default/db/0 create"]
        );
        assert_eq!(harness.agrees(""), 4);
    }
}

#[test]
fn two_slots_cannot_have_one_address() {
    let harness = fleet("");
    harness.edit(
        "\"size\": 2, ",
        "\"size\": 2, \"args\": { \"PrivateIpAddress\": \"10.0.0.9\" }, ",
    );
    let plan = harness.run("plan");
    assert_eq!(plan.code, Some(1));
    assert_snapshot!("one_address", plan);
    // Also not one that a recorded instance has.
    harness.edit("\"size\": 2, ", "\"size\": 1, ");
    harness.ok("apply --auto-approve");
    harness.edit("\"size\": 1, ", "\"size\": 2, ");
    let plan = harness.run("plan");
    assert_eq!(plan.code, Some(1));
    assert!(
        plan.stderr
            .contains("default/db/0 and default/db/1 have the same `PrivateIpAddress`"),
        "{plan}"
    );
    harness.edit("\"10.0.0.9\"", "\"10.0.0.1{{ .Instance.Index }}\"");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn a_dependent_group_waits_until_the_other_one_runs() {
    let harness = fleet("\"boot_time\": \"20s\"");
    harness.edit("\"size\": 3", "\"size\": 3, \"depends_on\": [\"db\"]");
    assert_snapshot!("dependent", harness.ok("apply --auto-approve"));
}

/// The addresses that a plan replaces, each with its reason.
fn replaced(harness: &Harness, words: &str) -> Vec<String> {
    let plan = harness.json(&format!("plan --json {words}"));
    let changes = plan["resource_changes"].as_array().unwrap().iter();
    changes
        .filter(|change| {
            let actions = change["change"]["actions"].as_array().unwrap();
            actions.len() == 2
        })
        .map(|change| {
            let reason = change["action_reason"].as_str().unwrap();
            format!("{} {reason}", change["address"].as_str().unwrap())
        })
        .collect()
}

#[test]
fn expired_instances_are_replaced() {
    let harness = Harness::applied(TWO);
    // Slot 0 is the youngest of its group.
    harness.ok("--now 2026-12-01T01:00:00Z apply --auto-approve --replace default/web/0");
    let shard = "\"id\": \"one\",";
    harness.edit(shard, &format!("{shard} \"expiry\": {{}},"));
    let mut expiry = "{}".to_owned();
    for (ages, words, expected) in [
        ("", "", &[][..]),
        // Not a plan's business.
        ("\"ondemand_age\": \"1s\"", "", &[]),
        ("\"eligible_age\": \"3h\"", "", &[]),
        (
            "\"eligible_age\": \"2h\"",
            "",
            &[
                "db/0 replace_because_expired",
                "web/1 replace_because_expired",
            ],
        ),
        // Another replacement of the group comes first.
        (
            "\"eligible_age\": \"10m\"",
            "--replace default/web/2",
            &["db/0 replace_because_expired", "web/2 replace_by_request"],
        ),
        (
            "\"eligible_age\": \"10m\"",
            "--target default/web/0",
            &["web/0 replace_because_expired"],
        ),
        (
            "\"forced_age\": \"2h\"",
            "",
            &[
                "db/0 replace_because_expired",
                "db/1 replace_because_expired",
                "web/1 replace_because_expired",
                "web/2 replace_because_expired",
            ],
        ),
        (
            "\"eligible_age\": \"10m\", \"forced_age\": \"2h\"",
            "--exclude default/db",
            &[
                "web/1 replace_because_expired",
                "web/2 replace_because_expired",
            ],
        ),
        (
            "\"eligible_age\": \"10m\", \"forced_age\": \"3h\", \"ondemand_age\": \"1s\"",
            "--exclude default/db",
            &["web/1 replace_because_expired"],
        ),
    ] {
        let next = format!("{{{ages}}}");
        harness.edit(
            &format!("\"expiry\": {expiry}"),
            &format!("\"expiry\": {next}"),
        );
        expiry = next;
        let found = replaced(&harness, &format!("{words} --now 2026-12-01T02:30:00Z"));
        let expected: Vec<String> = expected
            .iter()
            .map(|change| format!("default/{change}"))
            .collect();
        assert_eq!(found, expected, "{ages} {words}");
    }
}

#[test]
fn eligible_instances_are_replaced_one_after_the_other() {
    let harness = Harness::applied(TWO);
    let shard = "\"id\": \"one\",";
    let expiry = "\"expiry\": { \"eligible_age\": \"2h\" },";
    harness.edit(shard, &format!("{shard} {expiry}"));
    for slot in 0..3 {
        let now = format!("--now 2026-12-01T03:{slot}0:00Z --target default/web");
        let found = replaced(&harness, &now);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(&format!("web/{slot} ")), "{found:?}");
        harness.ok(&format!("apply --auto-approve {now}"));
    }
    let found = replaced(&harness, "--now 2026-12-01T03:30:00Z --target default/web");
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_change_of_update_replaces_nothing() {
    let harness = Harness::applied(TWO);
    harness.edit(
        "\"size\": 3 }",
        "\"size\": 3, \"update\": { \"order\": \"delete_first\", \"max_unavailable\": \"50%\" } }",
    );
    let plan = harness.ok("plan");
    assert!(plan.stdout.contains("no changes are needed"), "{plan}");
}

#[test]
fn an_opportunistic_group_keeps_its_instances_until_they_are_replaced_anyway() {
    let harness = Harness::applied(TWO);
    harness.edit(
        "\"size\": 3 }",
        "\"size\": 3, \"update\": { \"opportunistic\": true } }",
    );
    harness.edit(
        "\"size\": 2, \"instance_type\": \"large\" }",
        "\"size\": 2, \"instance_type\": \"huge\", \"update\": { \"opportunistic\": true } }",
    );
    harness.edit(
        "\"web\": { ",
        "\"web\": { \"args\": { \"ImageId\": \"debian-12\" }, ",
    );
    let plan = harness.run("plan --detailed-exitcode --out kept.plan");
    assert_eq!(plan.code, Some(2));
    assert_snapshot!("opportunistic", plan);
    let json = harness.json("plan --json");
    assert_eq!(json["summary"]["held_back"], 5);
    assert_eq!(json["applyable"], false);
    for change in json["held_back"].as_array().unwrap() {
        assert_eq!(change["held_back_by"], "opportunistic");
    }
    // What is replaced anyway gets the new configuration.
    let found = replaced(&harness, "--replace default/web/1");
    assert_eq!(found, ["default/web/1 replace_because_cannot_update"]);
    let shard = "\"id\": \"one\",";
    let expiry = "\"expiry\": { \"eligible_age\": \"2h\" },";
    harness.edit(shard, &format!("{shard} {expiry}"));
    let now = "--now 2026-12-01T03:00:00Z --target default/web";
    let found = replaced(&harness, now);
    assert_eq!(found, ["default/web/0 replace_because_cannot_update"]);
    harness.edit(&format!("{shard} {expiry}"), shard);

    let released = harness.ok("apply --auto-approve kept.plan --allow-replace default/db");
    assert!(
        released.stdout.contains("0 added, 2 changed, 0 destroyed"),
        "{released}"
    );
    let released = harness.ok("apply --auto-approve --allow-replace default/web");
    assert!(
        released.stdout.contains("3 added, 0 changed, 3 destroyed"),
        "{released}"
    );
    let settled = harness.run("plan --detailed-exitcode");
    assert_eq!(settled.code, Some(0), "{settled}");
    assert_eq!(harness.agrees(""), 5);
}
