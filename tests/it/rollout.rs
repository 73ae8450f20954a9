//! Rollouts: pauses, failures, the way back, and what another terminal asks for.
//!
//! In: one group on an embedded cloud, replaced under a policy. Out: what apply does, and its exit
//! code. Must not: sleep; waiting moves the commands' clock.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::Harness;

/// Six instances of `app-1`. Of `app-bad`, none becomes healthy; of `app-half`, some do.
const FLEET: &str = r#"{
  "cluster": {"id": "ru"},
  "shard": {"id": "a", "infra": {"provider": "sim", "region": "local-1", "zone": "local-1a",
    "options": {
      "boot_time": "5s", "unhealthy": {"app-bad": 1.0, "app-half": 0.4}, "strict_images": true,
      "images": [{"id": "app-1", "name": "app-1"}, {"id": "app-2", "name": "app-2"},
        {"id": "app-bad", "name": "app-bad"}, {"id": "app-half", "name": "app-half"}]}}},
  "groups": {"default": {"web": {"kind": "web", "instance_type": "small", "size": 6,
    "args": {"ImageId": "app-1"}, "userdata": "\#!/bin/sh\necho {{ .Instance.ID }}",
    "update": {
      "health": {"check": "tcp", "port": 8080, "interval": "5s", "deadline": "1m"}
    }}}}
}"#;

/// The fleet, applied, with more in its policy.
fn fleet(policy: &str) -> Harness {
    let config = FLEET.replace(r"\#", "#");
    let harness = Harness::with(&config);
    if !policy.is_empty() {
        harness.edit("\"update\": {", &format!("\"update\": {{ {policy},"));
    }
    harness.ok("apply --auto-approve");
    harness
}

fn code(harness: &Harness, words: &str) -> Option<i32> {
    harness.run(words).code
}

/// The images of the live instances.
fn images(harness: &Harness) -> BTreeSet<String> {
    let shown = harness.json("show --json");
    let instances = shown["instances"].as_array().expect("an inventory").clone();
    let image = |instance: &Value| instance["args"]["ImageId"].as_str().unwrap().to_owned();
    instances.iter().map(image).collect()
}

/// What takes no turns is counted, too.
#[test]
fn status_counts_creations_and_updates() {
    let harness = fleet("\"canaries\": 2, \"canary_pause\": \"manual\", \"max_surge\": 2");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-2\"");
    harness.edit(
        "\"groups\": {\"default\": {",
        r#""groups": {"default": {"new": {"kind": "new", "instance_type": "small", "size": 3,
          "args": {"ImageId": "app-1"}}, "#,
    );
    assert_eq!(code(&harness, "apply --auto-approve"), Some(3));
    let status = harness.ok("rollout status");
    let lines = [
        "5 of 9 changes done",
        "default/new: 3 of 3",
        "default/web: 2 of 6",
    ];
    assert!(
        lines.iter().all(|line| status.stdout.contains(line)),
        "{status}"
    );
    let plan = harness.run("plan");
    assert!(plan.stderr.contains("5 of 9 changes done"), "{plan}");
}

#[test]
fn a_rollout_waits_for_promote_and_goes_on() {
    let harness = fleet("\"canaries\": 2, \"canary_pause\": \"manual\", \"max_surge\": 2");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-2\"");
    let paused = harness.run("apply --auto-approve");
    assert_eq!(paused.code, Some(3));
    assert_snapshot!("canaries_done", paused);
    // Without a word from anyone, it goes on waiting.
    assert_eq!(code(&harness, "apply --auto-approve"), Some(3));
    assert_snapshot!("status_of_a_pause", harness.ok("rollout status"));
    let status = harness.json("rollout status --json");
    assert_eq!(status["status"], "waiting");
    assert_eq!(status["groups"][0]["stage"], "canary-pause");
    for unknown in ["rollout promote nobody", "rollout status nobody"] {
        assert_eq!(code(&harness, unknown), Some(1));
    }
    let request = harness.json("rollout promote web --json");
    assert_eq!(request["request"], "promote");
    assert_snapshot!("status_of_a_request", harness.ok("rollout status web"));
    let status = harness.json("rollout status --json");
    assert_eq!(status["requests"][0]["request"], "promote");
    assert_eq!(status["requests"][0]["group"], "default/web");
    let promoted = harness.ok("apply --auto-approve");
    assert_snapshot!("promoted", promoted);
    assert_eq!(harness.agrees(""), 6);
    assert_snapshot!("status_of_the_end", harness.ok("rollout status"));
    let status = harness.json("rollout status --json");
    assert_eq!(status["status"], "done");
    assert_eq!(status["requests"], serde_json::json!([]));
}

#[test]
fn a_rollout_of_a_protected_group_goes_on() {
    let harness = fleet("\"canaries\": 1, \"canary_pause\": \"manual\"");
    harness.edit("\"size\": 6", "\"size\": 6, \"protect\": true");
    harness.ok("apply --auto-approve");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-2\"");
    let allowed = "apply --auto-approve --allow-replace web";
    assert_eq!(code(&harness, allowed), Some(3));
    // With the option or without, the next apply continues it.
    assert_eq!(code(&harness, allowed), Some(3));
    assert_eq!(code(&harness, "apply --auto-approve"), Some(3));
    harness.ok("rollout promote web");
    harness.ok("apply --auto-approve");
    assert_eq!(images(&harness), BTreeSet::from(["app-2".to_owned()]));
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn a_saved_plan_goes_on_where_it_stopped() {
    let harness = fleet("\"canaries\": 1, \"canary_pause\": \"manual\"");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-2\"");
    harness.ok("plan --out roll.plan");
    assert_eq!(code(&harness, "apply roll.plan"), Some(3));
    harness.ok("rollout promote");
    harness.ok("apply roll.plan");
    assert_eq!(harness.agrees(""), 6);
    // Now its rows have moved on.
    assert_eq!(code(&harness, "apply roll.plan"), Some(1));
}

#[test]
fn a_pause_and_an_abort_are_read_by_the_next_apply() {
    let harness = fleet("\"canaries\": 1, \"canary_pause\": \"manual\"");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-2\"");
    assert_eq!(code(&harness, "apply --auto-approve"), Some(3));
    harness.ok("rollout promote web");
    harness.ok("rollout pause web");
    assert_eq!(code(&harness, "apply --auto-approve"), Some(3));
    let status = harness.json("rollout status --json");
    assert_eq!(status["groups"][0]["stage"], "paused");
    assert_eq!(status["groups"][0]["promoted"], true);
    harness.ok("rollout promote web");
    harness.ok("rollout abort web");
    assert_eq!(code(&harness, "apply --auto-approve"), Some(1));
    let status = harness.json("rollout status --json");
    assert_eq!(status["groups"][0]["stage"], "aborted");
    assert_eq!(status["groups"][0]["promoted"], true);
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn another_configuration_supersedes_a_rollout() {
    let harness = fleet("\"canaries\": 2, \"canary_pause\": \"manual\"");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-2\"");
    assert_eq!(code(&harness, "apply --auto-approve"), Some(3));
    harness.edit("\"ImageId\": \"app-2\"", "\"ImageId\": \"app-1\"");
    harness.edit("\"canary_pause\": \"manual\",", "");
    let back = harness.ok("apply --auto-approve");
    let note = "this plan supersedes the rollout of";
    assert!(back.stderr.contains(note), "{back}");
    assert!(back.stderr.contains("2 of 6 changes done"), "{back}");
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn a_plan_says_what_an_open_rollout_becomes() {
    let harness = fleet("\"canaries\": 2, \"canary_pause\": \"manual\"");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-2\"");
    assert!(harness.ok("plan").stderr.is_empty());
    assert_eq!(code(&harness, "apply --auto-approve"), Some(3));
    assert_snapshot!("plan_of_an_open_rollout", harness.ok("plan"));
    let json = harness.json("plan --json");
    let said = &json["diagnostics"][0];
    let summary = said["summary"].as_str().unwrap();
    assert!(summary.starts_with("a rollout of "), "{said}");
    assert_eq!(said["severity"], "warning");

    let supersedes = "this plan supersedes the rollout of";
    let saved = harness.ok("plan --out again.plan");
    assert_snapshot!("saved_plan_of_an_open_rollout", saved.stderr);
    for other in [
        "plan --target default/web/5",
        "plan --destroy",
        "plan --refresh-images",
    ] {
        let ended = harness.ok(other);
        assert!(ended.stderr.contains(supersedes), "{ended}");
        assert!(!ended.stderr.contains("hint"), "{ended}");
    }
    // What only records leaves the rollout open.
    for other in ["plan --refresh-only", "apply --refresh-only --auto-approve"] {
        let ended = harness.ok(other);
        assert!(!ended.stderr.contains("rollout"), "{ended}");
    }
    assert_eq!(harness.json("rollout status --json")["status"], "waiting");
    // A saved plan begins a rollout of its own.
    assert_eq!(code(&harness, "apply again.plan"), Some(3));
    let plan = harness.ok("plan");
    assert!(plan.stderr.contains("2 of 4 changes done"), "{plan}");
    harness.ok("destroy --auto-approve");
    let plan = harness.ok("plan");
    assert!(!plan.stderr.contains("rollout"), "{plan}");
}

#[test]
fn a_plan_without_changes_supersedes_nothing() {
    let harness = fleet("\"canaries\": 1");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-bad\"");
    assert_eq!(code(&harness, "apply --auto-approve"), Some(1));
    let failed = harness.ok("plan");
    assert!(failed.stderr.contains("has failed: 0 of 6"), "{failed}");
    harness.edit("\"ImageId\": \"app-bad\"", "\"ImageId\": \"app-1\"");
    let back = harness.ok("apply --auto-approve");
    assert!(back.stderr.contains("supersedes"), "{back}");
    let plan = harness.ok("plan --detailed-exitcode");
    assert!(plan.stderr.is_empty(), "{plan}");
}

#[test]
fn a_failed_canary_stops_and_its_predecessor_stays() {
    let harness = fleet("\"canaries\": 1");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-bad\"");
    let failed = harness.run("apply --auto-approve");
    assert_eq!(failed.code, Some(1));
    assert_snapshot!("failed_canary", failed);
    assert_eq!(harness.live().len(), 7);
    // The repair is a new plan.
    harness.edit("\"ImageId\": \"app-bad\"", "\"ImageId\": \"app-2\"");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn a_group_goes_back_to_what_was_last_good() {
    let harness = fleet("\"on_failure\": \"rollback\", \"max_surge\": 2");
    let before = images(&harness);
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-half\"");
    let back = harness.run("apply --auto-approve");
    assert_eq!(back.code, Some(1));
    assert_snapshot!("rolled_back", back);
    assert_eq!(images(&harness), before);
    assert_eq!(harness.live().len(), 6);
    assert_snapshot!("status_of_a_rollback", harness.ok("rollout status"));
    let refused = harness.run("apply --auto-approve");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("was rolled back at"), "{refused}");
    // The plan says so, and a saved plan is refused, too.
    let plan = harness.ok("plan --out again.plan");
    let warning = "warning: this configuration was rolled back at";
    assert!(plan.stderr.contains(warning), "{plan}");
    let refused = harness.run("apply again.plan");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("was rolled back at"), "{refused}");
    assert_eq!(images(&harness), before);
    // What is there now is what the earlier configuration says.
    harness.edit("\"ImageId\": \"app-half\"", "\"ImageId\": \"app-1\"");
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn the_events_of_a_rollback() {
    let policy = "\"on_failure\": \"rollback\", \"canaries\": 1, \"canary_pause\": \"90s\"";
    let harness = fleet(policy);
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-bad\"");
    let back = harness.run("apply --auto-approve --json");
    assert_eq!(back.code, Some(1));
    let mut events = back.events();
    events.retain(|event| event["type"] == "rollout_progress");
    let events = events.iter().map(|event| &event["rollout"]);
    let (rolling, events): (Vec<&Value>, Vec<&Value>) =
        events.partition(|event| event["stage"] == "rolling");
    // One every ten seconds until the deadline.
    assert_eq!(rolling.len(), 6);
    let why = rolling[0]["detail"].as_str().unwrap();
    assert!(why.starts_with("default/web/0 to be available: "), "{why}");
    assert!(rolling[0]["waits_since"].is_string());
    assert_eq!(
        rolling[0]["next_pause"],
        serde_json::json!({"canaries": 1, "canary_pause": 90})
    );
    let stages: Vec<_> = events.iter().map(|event| event["stage"].as_str()).collect();
    assert_eq!(stages, ["failed", "rolling-back", "done"].map(Some));
    let why = events[0]["detail"].as_str().unwrap();
    assert!(why.contains("wasn't healthy within 1m"), "{why}");
    assert_eq!(events[1]["group"], "default/web");
    assert_eq!(
        (&events[1]["done"], &events[1]["total"]),
        (&0.into(), &1.into())
    );
}

#[test]
fn each_step_of_a_replacement_has_an_event() {
    let harness = fleet("\"drain\": {\"command\": [\"true\"]}");
    harness.edit(
        "\"size\": 6",
        "\"load_balancers\": [\"front\"], \"size\": 1",
    );
    let front = "\"load_balancers\": {\"front\": {\"provider\": \"sim\"}}, \"groups\"";
    harness.edit("\"groups\"", front);
    harness.ok("apply --auto-approve");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-2\"");
    let mut events = harness.ok("apply --auto-approve --json").events();
    events.retain(|event| {
        event["type"] == "rollout_step" && event["hook"].get("waits_for").is_none()
    });
    let steps: Vec<&str> = events
        .iter()
        .filter_map(|event| event["hook"]["step"].as_str())
        .collect();
    assert_eq!(
        steps,
        [
            "creating",
            "checking",
            "registering",
            "checking",
            "available",
            "waiting",
            "deregistering",
            "draining",
            "draining",
            "deleting"
        ]
    );
}

#[test]
fn a_rollout_delete_first_comes_back_too() {
    let harness = fleet("\"on_failure\": \"rollback\", \"max_unavailable\": 2");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-half\"");
    assert_eq!(code(&harness, "apply --auto-approve"), Some(1));
    assert_eq!(images(&harness).into_iter().collect::<Vec<_>>(), ["app-1"]);
    harness.edit("\"ImageId\": \"app-half\"", "\"ImageId\": \"app-1\"");
    assert_eq!(harness.agrees(""), 6);
}

/// A fleet whose rollback stopped, because its last good configuration failed, too.
fn half_way_back() -> Harness {
    let harness = fleet("\"on_failure\": \"rollback\", \"max_unavailable\": 1");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-bad\"");
    harness.edit("\"app-bad\": 1.0", "\"app-bad\": 1.0, \"app-1\": 1.0");
    assert_eq!(code(&harness, "apply --auto-approve"), Some(1));
    let status = harness.json("rollout status --json");
    assert_eq!(status["status"], "rolling_back");
    assert_snapshot!("status_half_way_back", harness.ok("rollout status"));
    harness.edit(", \"app-1\": 1.0", "");
    harness
}

#[test]
fn a_rollback_that_stopped_is_continued() {
    let harness = half_way_back();
    let plan = harness.ok("plan");
    let note = "is being rolled back: 0 of";
    assert!(plan.stderr.contains(note), "{plan}");
    let back = harness.run("apply --auto-approve");
    assert_eq!(back.code, Some(1));
    let head = "Continuing the rollback of the rollout of ";
    assert!(back.stderr.contains(head), "{back}");
    assert_eq!(images(&harness).into_iter().collect::<Vec<_>>(), ["app-1"]);
}

#[test]
fn a_saved_plan_is_followed_even_after_a_rollback_that_stopped() {
    let harness = half_way_back();
    harness.edit("\"ImageId\": \"app-bad\"", "\"ImageId\": \"app-2\"");
    let saved = harness.ok("plan --out repair.plan");
    assert!(saved.stderr.contains("supersedes the rollout"), "{saved}");
    harness.ok("apply repair.plan");
    assert_eq!(images(&harness).into_iter().collect::<Vec<_>>(), ["app-2"]);
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn a_rollback_that_stopped_can_be_destroyed() {
    let harness = half_way_back();
    harness.ok("apply --refresh-only --auto-approve");
    let gone = harness.ok("destroy --auto-approve");
    assert!(gone.stderr.contains("supersedes the rollout"), "{gone}");
    assert!(harness.live().is_empty());
    let status = harness.json("rollout status --json");
    assert_eq!(status["status"], "superseded");
}

/// Commands are ten minutes apart.
#[test]
fn a_deadline_longer_than_max_wait_is_reached() {
    let harness = fleet("");
    harness.edit("\"deadline\": \"1m\"", "\"deadline\": \"33m\"");
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-bad\"");
    let apply = "apply --auto-approve --max-wait 5m";
    assert_eq!(code(&harness, apply), Some(3));
    assert_snapshot!("status_of_a_wait", harness.ok("rollout status"));
    assert_eq!(code(&harness, apply), Some(3));
    let failed = harness.run(apply);
    assert_eq!(failed.code, Some(1), "{failed}");
    let why = "wasn't healthy within 33m";
    assert!(failed.stderr.contains(why), "{failed}");
    assert_eq!(harness.live().len(), 7);
}

#[test]
fn a_group_waits_for_all_changes_of_its_dependency() {
    let harness = fleet("\"on_failure\": \"continue\"");
    harness.edit(
        "\"groups\": {\"default\": {",
        "\"groups\": {\"default\": {\"api\": {\"kind\": \"api\", \"instance_type\": \"small\", \
         \"size\": 2, \"args\": {\"ImageId\": \"app-2\"}, \"depends_on\": [\"web\"]},",
    );
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-half\"");
    let failed = harness.run("apply --auto-approve");
    assert_eq!(failed.code, Some(1), "{failed}");
    let why = "default/api wasn't changed, because default/web isn't finished";
    assert!(failed.stderr.contains(why), "{failed}");
    assert!(!images(&harness).contains("app-2"), "{failed}");
    harness.edit("\"ImageId\": \"app-half\"", "\"ImageId\": \"app-1\"");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 8);
}

/// In real time: the new instance's check fails until there is a file.
#[test]
fn a_running_apply_reads_requests() {
    let config = FLEET.replace(r"\#", "#");
    let harness = Harness::with(&config).in_real_time();
    harness.edit("\"boot_time\": \"5s\", ", "");
    harness.edit("\"size\": 6", "\"size\": 2");
    harness.edit(
        "\"health\": {\"check\": \"tcp\", \"port\": 8080, \"interval\": \"5s\", \"deadline\": \"1m\"}",
        "\"canaries\": 1, \"canary_pause\": \"15m\", \
         \"health\": {\"command\": [\"test\", \"-e\", \"up\"], \"interval\": \"100ms\"}",
    );
    harness.write("up", "");
    harness.ok("apply --auto-approve");
    std::fs::remove_file(harness.path("up")).unwrap();
    harness.edit("\"ImageId\": \"app-1\"", "\"ImageId\": \"app-2\"");
    let apply = "apply --auto-approve";
    let running = harness.command(apply).spawn().unwrap();
    let comes = |key: &str, stage: &str| {
        let comes = harness.comes(|| {
            let status = harness.run("rollout status --json");
            let status: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
            let has_come = status["running"] == true && status["requests"] == serde_json::json!([]);
            has_come && status[key][0]["stage"] == stage
        });
        assert!(comes, "{key} never came to {stage}");
    };
    comes("slots", "checking");
    harness.ok("rollout pause web");
    comes("groups", "paused");
    harness.ok("rollout promote web");
    comes("groups", "rolling");
    harness.write("up", "");
    comes("groups", "canary-pause");
    harness.ok("rollout promote");
    let ended = harness.wait(apply, running);
    assert_eq!(ended.code, Some(0), "{ended}");
    let lines = [
        "default/web: paused by request, 0 of 2 changes done",
        "default/web: rollout continues, 0 of 2 changes done",
        "default/web: canaries are done, pausing for 15m",
        "default/web: promoted, 1 of 2 changes done",
    ];
    for line in lines {
        assert!(ended.stderr.contains(line), "{ended}");
    }
    assert_eq!(harness.agrees(""), 2);
}

#[test]
fn a_rollout_that_waits_for_too_long_ends_with_three() {
    let harness = fleet("");
    let ids: Vec<String> = harness.live().into_iter().map(|[_, _, id]| id).collect();
    let sick = ids.last().unwrap();
    harness.ok(&format!("sim fail {sick}"));
    harness.edit("\"size\": 6", "\"size\": 3");
    let sick_first: Vec<String> = ids[..2].to_vec();
    for id in &sick_first {
        harness.ok(&format!("sim fail {id}"));
    }
    let waits = harness.run("apply --auto-approve --max-wait 10m");
    assert_eq!(waits.code, Some(3), "{waits}");
    for id in sick_first.iter().chain([sick]) {
        if harness.live().iter().any(|[_, _, live]| live == id) {
            harness.ok(&format!("sim recover {id}"));
        }
    }
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 3);
}
