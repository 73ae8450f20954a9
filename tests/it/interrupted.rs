//! Applies that end before their time: faults, lost answers, signals, kills. The next one goes on,
//! and in the end there is exactly what there should be.

use std::process::{Child, Command};

use insta::assert_snapshot;

use crate::harness::{Ended, Harness, TWO};

fn with_options(options: &str) -> Harness {
    let harness = Harness::with(TWO);
    harness.edit("\"options\": {}", &format!("\"options\": {{ {options} }}"));
    harness
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{name} {}", child.id())])
        .status();
    assert!(status.unwrap().success());
}

/// Waits until there are as many live instances as `enough` says.
#[track_caller]
fn until(harness: &Harness, enough: impl Fn(usize) -> bool) {
    assert!(
        harness.comes(|| enough(harness.live().len())),
        "it never came that far"
    );
}

#[test]
fn what_was_done_before_a_failure_is_recorded_and_the_next_apply_goes_on() {
    let harness = with_options(
        "\"fail\": [{ \"operation\": \"create\", \"error\": \"quota\", \"after\": 3, \"count\": 2 }]",
    );
    let ended = harness.run("apply --auto-approve");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!("failed_half_way", ended);
    assert_eq!(harness.agrees(""), 3);
    assert_snapshot!("failed_half_way_history", harness.ok("state history"));
    let ended = harness.ok("apply --auto-approve");
    assert_snapshot!("failed_half_way_again", ended);
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn the_last_event_says_that_not_everything_was_done() {
    let harness = with_options(
        "\"fail\": [{ \"operation\": \"create\", \"error\": \"quota\", \"after\": 3, \"count\": 2 }]",
    );
    for (code, message) in [
        (
            1,
            "Apply incomplete. Resources: 3 added, 0 changed, 0 destroyed.",
        ),
        (
            0,
            "Apply complete! Resources: 2 added, 0 changed, 0 destroyed.",
        ),
    ] {
        let ended = harness.run("apply --auto-approve --json");
        assert_eq!(ended.code, Some(code));
        let events = ended.events();
        let mut ends = events.iter().rev();
        let last = ends.find(|event| event["type"] == "change_summary");
        assert_eq!(last.unwrap()["@message"], message);
    }
}

#[test]
fn a_failing_replacement_leaves_the_old_one() {
    let harness = Harness::applied(TWO);
    let before = harness.live();
    harness.edit("\"debian-13\"", "\"debian-12\"");
    harness.edit("\"options\": {}", "\"options\": { \"fail\": [{ \"operation\": \"create\", \"error\": \"capacity\", \"count\": 99 }] }");
    let ended = harness.run("apply --auto-approve");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    assert_eq!(harness.live(), before);
    harness.agrees("");
}

#[test]
fn faults_that_pass_are_no_matter() {
    for error in ["throttled", "transient"] {
        let harness = with_options(&format!(
            "\"fail\": [{{ \"operation\": \"create\", \"error\": \"{error}\", \"count\": 3 }}]"
        ));
        harness.ok("apply --auto-approve");
        assert_eq!(harness.agrees(""), 5, "{error}");
    }
}

#[test]
fn a_lost_answer_makes_no_second_instance() {
    for operation in ["create", "update", "delete"] {
        let harness = with_options(&format!(
            "\"fail\": [{{ \"operation\": \"{operation}\", \"error\": \"ambiguous\", \"count\": 2 }}]"
        ));
        harness.ok("apply --auto-approve");
        assert_eq!(harness.agrees(""), 5, "{operation}");
        harness.edit(
            "\"args\": {",
            "\"args\": { \"SecurityGroupIds\": [\"sg-1\"],",
        );
        harness.ok("apply --auto-approve");
        harness.edit("\"debian-13\"", "\"debian-12\"");
        harness.ok("apply --auto-approve");
        harness.edit("\"size\": 3", "\"size\": 1");
        harness.ok("apply --auto-approve");
        assert_eq!(harness.agrees(""), 3, "{operation}");
        assert_eq!(harness.run("plan --detailed-exitcode").code, Some(0));
    }
}

#[test]
fn whatever_happens_a_few_applies_bring_everything_about() {
    for seed in 0..8 {
        let harness = with_options(&format!(
            "\"seed\": {seed}, \"error_rate\": 0.3, \"lost_answer_rate\": 0.3, \"stale_listing\": \"20s\""
        ));
        let apply = |what: &str| {
            let mut ended: Option<Ended> = None;
            for _ in 0..12 {
                ended = Some(harness.run("apply --auto-approve"));
                if ended.as_ref().is_some_and(|ended| ended.code == Some(0)) {
                    return;
                }
            }
            panic!("seed {seed}, {what}: {}", ended.unwrap());
        };
        apply("create");
        assert_eq!(harness.agrees(""), 5, "seed {seed}");
        harness.edit("\"debian-13\"", "\"debian-12\"");
        harness.edit("\"size\": 3", "\"size\": 4");
        apply("replace");
        assert_eq!(harness.agrees(""), 6, "seed {seed}");
        harness.edit("\"size\": 4", "\"size\": 1");
        apply("shrink");
        assert_eq!(harness.agrees(""), 3, "seed {seed}");
    }
}

/// A fleet whose calls take long enough to be interrupted: half of the time before their effect,
/// half after.
fn slow() -> Harness {
    let harness = with_options("\"latency\": \"300ms\"").in_real_time();
    harness.edit("\"size\": 3", "\"size\": 10");
    harness
}

fn quick(harness: &Harness) {
    harness.edit("\"latency\": \"300ms\"", "");
}

#[test]
fn a_signal_ends_an_apply_in_order() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let harness = slow();
        let words = "apply --auto-approve --parallelism 2";
        let child = harness.command(words).spawn().unwrap();
        until(&harness, |live| live >= 3);
        signal(&child, name);
        let ended = harness.wait(words, child);
        assert_eq!(ended.code, Some(code), "{ended}");
        let done = harness.agrees("");
        assert!((3..12).contains(&done), "{done} were made: {ended}");
        assert!(ended.stdout.contains("Apply incomplete."), "{ended}");
        assert!(ended.stderr.contains("changes were not tried"), "{ended}");
        assert!(
            ended.stderr.contains("Run `nstance apply` again"),
            "{ended}"
        );
        let history = harness.ok("state history --json").json();
        assert_eq!(history["applies"][0]["status"], "interrupted");
        quick(&harness);
        harness.ok("apply --auto-approve");
        assert_eq!(harness.agrees(""), 12);
    }
}

#[test]
fn a_plan_beside_a_running_apply_leaves_its_changes_out() {
    let harness = slow();
    let words = "apply --auto-approve --parallelism 2";
    let child = harness.command(words).spawn().unwrap();
    until(&harness, |live| live >= 3);
    signal(&child, "STOP");
    for beside in ["plan", "drift"] {
        let ended = harness.ok(beside);
        for said in [
            "warning: another process is changing this shard",
            "the lock is held by tester@testhost, process [PID], for \"apply\"",
            "in progress",
        ] {
            assert!(ended.stderr.contains(said), "{said}: {ended}");
        }
        assert!(!ended.stdout.contains("adopt"), "{ended}");
        assert!(!ended.stderr.contains("an earlier apply"), "{ended}");
    }
    signal(&child, "CONT");
    assert_eq!(harness.wait(words, child).code, Some(0));
    assert_eq!(harness.agrees(""), 12);
}

#[test]
fn two_signals_end_an_apply_at_once_and_the_next_finds_what_was_under_way() {
    let harness = with_options("\"latency\": \"2s\"").in_real_time();
    let words = "apply --auto-approve";
    let child = harness.command(words).spawn().unwrap();
    until(&harness, |live| live >= 1);
    signal(&child, "INT");
    signal(&child, "TERM");
    let ended = harness.wait(words, child);
    assert!(matches!(ended.code, Some(130 | 143)), "{ended}");
    harness.edit("\"latency\": \"2s\"", "");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn a_signal_while_planning_changes_nothing() {
    let harness = Harness::with(TWO).in_real_time();
    harness.ok("apply --auto-approve");
    harness.edit("\"options\": {}", "\"options\": { \"latency\": \"1h\" }");
    let before = harness.bytes(crate::harness::TWO_STATE);
    let child = harness.command("apply --auto-approve").spawn().unwrap();
    // It takes the lock, then the first listing takes an hour.
    let lock = harness.path(&format!("{}.lock", crate::harness::TWO_STATE));
    let signature = format!("\"pid\":{}", child.id());
    let ready = harness
        .comes(|| std::fs::read_to_string(&lock).is_ok_and(|text| text.contains(&signature)));
    assert!(ready);
    signal(&child, "INT");
    let ended = harness.wait("apply --auto-approve", child);
    assert_eq!(ended.code, Some(130));
    assert!(
        ended
            .stderr
            .contains("Interrupted. The plan was not applied."),
        "{ended}"
    );
    assert!(harness.bytes(crate::harness::TWO_STATE) == before);
}

#[test]
fn a_killed_apply_is_finished_by_the_next() {
    // Each effect is half of the latency ahead of its answer, so that a kill right after one finds
    // it made and not recorded.
    for point in [1, 2, 5, 11] {
        let harness = slow();
        let mut child = harness
            .command("apply --auto-approve --parallelism 2")
            .spawn()
            .unwrap();
        until(&harness, |live| live >= point);
        child.kill().unwrap();
        child.wait().unwrap();
        quick(&harness);
        let made = harness.live();
        let drift = harness.run("drift");
        assert!(matches!(drift.code, Some(0 | 2)), "{drift}");
        let words = "apply --auto-approve";
        let mut next = harness.command(words);
        next.env("NSTANCE_LOG", "nstance::apply=info");
        let ended = harness.end(words, next);
        assert_eq!(ended.code, Some(0), "{ended}");
        assert_eq!(harness.agrees(""), 12, "killed at {point}: {ended}");
        assert!(
            made.is_subset(&harness.live()),
            "what was made is used: {ended}"
        );
        assert!(
            ended.stderr.contains("settled an interrupted create"),
            "{ended}"
        );
        let logged = " INFO nstance::apply: settled address=\"default/";
        assert!(ended.stderr.contains(logged), "{ended}");
        harness.ok("plan --detailed-exitcode");
    }
}

#[test]
fn a_kill_before_the_first_call_loses_nothing() {
    let harness = slow();
    let mut child = harness.command("apply --auto-approve").spawn().unwrap();
    let state = harness.path(crate::harness::TWO_STATE);
    assert!(harness.comes(|| state.exists()));
    child.kill().unwrap();
    child.wait().unwrap();
    quick(&harness);
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 12);
}

#[test]
fn a_killed_replacement_and_a_killed_destroy_are_finished_by_the_next() {
    let harness = slow();
    quick(&harness);
    harness.ok("apply --auto-approve");
    let before = harness.live();
    harness.edit(
        "\"options\": {  }",
        "\"options\": { \"latency\": \"300ms\" }",
    );
    harness.edit("\"debian-13\"", "\"debian-12\"");
    let mut child = harness.command("apply --auto-approve").spawn().unwrap();
    // One is made, and what it replaces is still there.
    until(&harness, |live| live > 12);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut child = harness.command("apply --auto-approve").spawn().unwrap();
    until(&harness, |_| {
        harness.live().intersection(&before).count() < 11
    });
    child.kill().unwrap();
    child.wait().unwrap();
    quick(&harness);
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 12);
    assert!(harness.live().is_disjoint(&before), "all were replaced");

    harness.edit(
        "\"options\": {  }",
        "\"options\": { \"latency\": \"300ms\" }",
    );
    let mut child = harness
        .command("destroy --auto-approve --parallelism 2")
        .spawn()
        .unwrap();
    until(&harness, |live| live < 11);
    child.kill().unwrap();
    child.wait().unwrap();
    quick(&harness);
    harness.ok("destroy --auto-approve");
    assert_eq!(harness.agrees(""), 0);
}

#[test]
fn what_is_no_longer_wanted_is_not_finished() {
    let harness = slow();
    let mut child = harness
        .command("apply --auto-approve --parallelism 2")
        .spawn()
        .unwrap();
    until(&harness, |live| live >= 5);
    child.kill().unwrap();
    child.wait().unwrap();
    quick(&harness);
    harness.edit("\"size\": 10", "\"size\": 1");
    harness.ok("apply --auto-approve --allow-delete all");
    assert_eq!(harness.agrees(""), 3);
}

#[test]
fn a_clock_that_was_ahead_makes_nothing_twice() {
    let harness = Harness::with(TWO);
    harness.ok("apply --auto-approve --now 2031-01-01T00:00:00Z");
    assert_eq!(harness.run("plan --detailed-exitcode").code, Some(0));
    harness.ok("drift");
    assert_eq!(harness.agrees(""), 5);
}

/// Planning saw room in both subnets; there turned out to be no capacity in the first.
#[test]
fn without_capacity_the_pools_next_subnet_is_tried() {
    let harness = with_options(
        r#""subnets": { "subnet-a": { "zone": "local-1a", "capacity": 1 }, "subnet-b": { "zone": "local-1a" } }"#,
    );
    harness.edit(
        "\"infra\":",
        "\"subnet_pools\": { \"near\": [\"subnet-a\", \"subnet-b\"] }, \"infra\":",
    );
    harness.edit("\"size\": 3", "\"size\": 3, \"subnet_pool\": \"near\"");
    let ended = harness.ok("apply --auto-approve --parallelism 1");
    assert_snapshot!("next_subnet", ended);
    assert_eq!(harness.agrees(""), 5);
    let shown = harness.ok("show --json");
    assert_eq!(shown.stdout.matches("\"subnet-a\"").count(), 1);
    assert_eq!(shown.stdout.matches("\"subnet-b\"").count(), 2);
    assert_snapshot!("next_subnet_history", harness.ok("state history"));
    assert_eq!(harness.run("plan --detailed-exitcode").code, Some(0));
}
