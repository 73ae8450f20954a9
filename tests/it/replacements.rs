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
