//! Applies of several configurations in one run: side by side or one after the other, all or none.

use std::process::{Child, Command};

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Ended, Harness};
use crate::shards::{count, edit, fleet, named, options};

#[test]
fn an_apply_says_of_each_shard_what_came_of_it() {
    let harness = fleet(&["a", "b", "c"]);
    harness.ok("-c b apply --auto-approve");
    assert_snapshot!(harness.ok("-c a -c b -c c apply --auto-approve"));
    for shard in ["a", "b", "c"] {
        assert_eq!(count(&harness, shard), 5);
    }
    let again = harness.ok("-c a -c b -c c apply --auto-approve");
    assert!(
        again
            .stdout
            .contains("    c  unchanged\n\nApply complete! Resources: 0 added"),
        "{again}"
    );
}

#[test]
fn events_say_whose_they_are() {
    let harness = fleet(&["a", "b"]);
    let events = harness.ok("-c a -c b apply --auto-approve --json").events();
    assert_eq!(events[0]["type"], "version");
    for event in &events {
        let shard = event["shard"].as_str();
        let resource = [&event["change"]["resource"], &event["hook"]["resource"]];
        for address in resource
            .iter()
            .filter_map(|resource| resource["addr"].as_str())
        {
            let shard = shard.expect("what is about an instance is about a shard");
            assert!(address.starts_with(&format!("{shard}:default/")), "{event}");
            let message = event["@message"].as_str().unwrap();
            assert!(message.starts_with(address), "{event}");
        }
    }
    let kinds = |shard: Option<&str>| {
        let of = events
            .iter()
            .filter(|event| event["shard"].as_str() == shard);
        let mut kinds: Vec<_> = of.map(|event| event["type"].as_str().unwrap()).collect();
        kinds.dedup();
        kinds.join(" ")
    };
    let own = "planned_change change_summary apply_start apply_complete change_summary";
    for shard in ["a", "b"] {
        assert_eq!(
            kinds(Some(shard)).replace("apply_complete apply_start ", ""),
            own
        );
    }
    assert_eq!(kinds(None), "version change_summary");
    let last = events.last().unwrap();
    assert_eq!(last["changes"]["add"], 10);
    assert_eq!(last["shards"][1]["shard"], "b");
    assert_eq!(last["shards"][1]["status"], "done");
    assert_eq!(last["shards"][1]["changes"]["add"], 5);
}

/// Three shards, of which the second fails at its fourth instance, once.
fn failing() -> Harness {
    let harness = fleet(&["a", "b", "c"]);
    let fault = "\"fail\": [{ \"operation\": \"create\", \"error\": \"quota\", \"after\": 3, \"count\": 2 }]";
    options(&harness, "b", fault);
    harness
}

#[test]
fn after_a_failure_no_other_shard_is_begun() {
    let harness = failing();
    let ended = harness.run("-c a -c b -c c apply --auto-approve");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    let counts = ["a", "b", "c"].map(|shard| count(&harness, shard));
    assert_eq!(counts, [5, 3, 0]);
    harness.ok("-c a -c b -c c apply --auto-approve");
    let counts = ["a", "b", "c"].map(|shard| count(&harness, shard));
    assert_eq!(counts, [5, 5, 5]);
}

#[test]
fn the_last_event_says_how_each_shard_ended() {
    let harness = failing();
    harness.ok("-c a apply --auto-approve");
    let ended = harness.run("-c a -c b -c c apply --auto-approve --json");
    assert_eq!(ended.code, Some(1));
    let events = ended.events();
    let last = events.last().unwrap();
    let shards = last["shards"].as_array().unwrap().iter();
    let ends: Vec<_> = shards
        .map(|shard| (&shard["status"], &shard["changes"]["add"]))
        .collect();
    let expected: [(Value, Value); 3] = [
        ("unchanged".into(), 0.into()),
        ("failed".into(), 3.into()),
        ("not_tried".into(), 0.into()),
    ];
    assert_eq!(ends, expected.each_ref().map(|(end, count)| (end, count)));
    assert_eq!(last["changes"]["add"], 3);
    // As the text says it: of the shard that failed, and of all of them.
    let messages: Vec<_> = events
        .iter()
        .filter(|event| {
            event["type"] == "change_summary" && event["changes"]["operation"] == "apply"
        })
        .map(|event| (event["shard"].as_str(), event["@message"].as_str().unwrap()))
        .collect();
    let incomplete = "Apply incomplete. Resources: 3 added, 0 changed, 0 destroyed.";
    assert_eq!(messages, [(Some("b"), incomplete), (None, incomplete)]);
}

#[test]
fn others_go_on_where_that_is_asked_for() {
    let harness = failing();
    let ended = harness.run("-c a -c b -c c apply --auto-approve --continue-on-error --json");
    assert_eq!(ended.code, Some(1));
    let counts = ["a", "b", "c"].map(|shard| count(&harness, shard));
    assert_eq!(counts, [5, 3, 5]);
    let events = ended.events();
    let status = |index: usize| &events.last().unwrap()["shards"][index]["status"];
    assert_eq!(
        [status(0), status(1), status(2)],
        ["done", "failed", "done"]
    );
    let finding = events
        .iter()
        .find(|event| event["type"] == "diagnostic")
        .unwrap();
    assert_eq!(finding["shard"], "b");
}

#[test]
fn one_locked_shard_keeps_all_from_being_touched() {
    let harness = fleet(&["a", "b", "c"]).in_real_time();
    harness.ok("-c b apply --auto-approve");
    options(&harness, "b", "\"latency\": \"1h\"");
    edit(&harness, "b", "\"size\": 3", "\"size\": 4");
    let mut holder = harness
        .command("-c b apply --auto-approve")
        .spawn()
        .unwrap();
    let lock = harness.path("b/.nstance/test/b.db.lock");
    let signed = harness.comes(|| {
        std::fs::read_to_string(&lock)
            .is_ok_and(|text| text.contains(&format!("\"pid\":{}", holder.id())))
    });
    assert!(signed, "it has signed the lock");
    let refused = harness.run("-c c -c b -c a apply --auto-approve");
    let others = harness.run("-c c -c b -c a apply --auto-approve --continue-on-error");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(
        refused
            .stderr
            .contains("error: b: the state is locked by tester@testhost"),
        "{refused}"
    );
    assert!(
        refused
            .stderr
            .contains("nothing is applied in any of the 3 shards"),
        "{refused}"
    );
    assert!(!refused.stderr.contains("Creating..."), "{refused}");
    assert_eq!(others.code, Some(1), "{others}");
    assert!(others.stdout.contains("    b  failed: 0 added"), "{others}");
    assert_eq!(count(&harness, "a"), 5);
    assert_eq!(count(&harness, "c"), 5);
}

#[test]
fn two_runs_over_the_same_shards_wait_for_each_other_and_no_longer() {
    let harness = fleet(&["a", "b", "c"]).in_real_time();
    for shard in ["a", "b", "c"] {
        options(&harness, shard, "\"latency\": \"20ms\"");
    }
    let words = ["-c a -c b -c c", "-c c -c b -c a", "-c b -c a"]
        .map(|configs| format!("{configs} apply --auto-approve --lock-timeout 10m"));
    let children = words
        .each_ref()
        .map(|words| harness.command(words).spawn().unwrap());
    for (words, child) in words.iter().zip(children) {
        let ended = harness.wait(words, child);
        assert_eq!(ended.code, Some(0), "{ended}");
    }
    let counts = ["a", "b", "c"].map(|shard| count(&harness, shard));
    assert_eq!(counts, [5, 5, 5]);
}

#[test]
fn a_shard_that_refuses_keeps_all_from_being_touched() {
    let harness = fleet(&["a", "b"]);
    harness.ok("-c b apply --auto-approve");
    edit(
        &harness,
        "b",
        "\"templates\"",
        "\"destroy_budget\": { \"count\": 0, \"percent\": 0 }, \"templates\"",
    );
    edit(&harness, "b", "\"size\": 3", "\"size\": 1");
    let ended = harness.run("-c a -c b apply --auto-approve");
    assert_snapshot!(ended);
    assert_eq!((count(&harness, "a"), count(&harness, "b")), (0, 5));
    for wrong in ["a:default/web", "a:all", "b:default/db"] {
        let ended = harness.run(&format!(
            "-c a -c b apply --auto-approve --allow-delete {wrong}"
        ));
        assert_eq!(ended.code, Some(1), "{ended}");
    }
    let ended = harness.run("-c a -c b apply --auto-approve --allow-delete web");
    assert!(
        ended
            .stderr
            .contains("`default/web` is in several shards: a, b"),
        "{ended}"
    );
    assert_eq!((count(&harness, "a"), count(&harness, "b")), (0, 5));
    harness.ok("-c a -c b apply --auto-approve --allow-delete b:web");
    assert_eq!((count(&harness, "a"), count(&harness, "b")), (5, 3));
}

#[test]
fn what_all_shards_allow_is_allowed_in_each() {
    let harness = fleet(&["a", "b"]);
    harness.ok("-c a -c b apply --auto-approve");
    for shard in ["a", "b"] {
        edit(
            &harness,
            shard,
            "\"templates\"",
            "\"destroy_budget\": { \"count\": 0, \"percent\": 0 }, \"templates\"",
        );
        edit(&harness, shard, "\"size\": 3", "\"size\": 1");
    }
    let ended = harness.run("-c a -c b apply --auto-approve --allow-delete a:all");
    assert_eq!(ended.code, Some(1), "{ended}");
    harness.ok("-c a -c b apply --auto-approve --allow-delete all");
    assert_eq!((count(&harness, "a"), count(&harness, "b")), (3, 3));
}

#[test]
fn nobody_is_asked_without_a_terminal() {
    let harness = fleet(&["a", "b"]);
    let ended = harness.run("-c a -c b apply");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("--auto-approve"), "{ended}");
}

/// Three configurations of one folder, so that all are on one embedded cloud.
fn one_folder(size: u32) -> Harness {
    let harness = Harness::empty();
    for shard in ["a", "b", "c"] {
        let config = named(shard).replace("\"size\": 3", &format!("\"size\": {size}"));
        harness.write(&format!("{shard}.jsonc"), config);
    }
    harness
}

#[test]
fn shards_side_by_side_keep_their_lines_whole() {
    let harness = one_folder(20).in_real_time();
    let all = "-c a.jsonc -c b.jsonc -c c.jsonc";
    let ended = harness.ok(&format!("{all} apply --auto-approve --shards-parallel 3"));
    let (key, progress) = ended.stderr.split_once('\n').unwrap();
    assert!(key.starts_with("Made a key for the state: "), "{ended}");
    for line in progress.lines() {
        let (address, rest) = line.split_once(": ").unwrap_or_default();
        let whole = rest == "Creating..." || rest.starts_with("Creation complete after ");
        let known = ["a:", "b:", "c:"]
            .iter()
            .any(|shard| address.starts_with(shard));
        assert!(whole && known, "{line}");
    }
    assert_eq!(progress.lines().count(), 3 * 22 * 2, "each begins and ends");
    let cloud = harness.json("-c a.jsonc sim list --json");
    assert_eq!(cloud["instances"].as_array().unwrap().len(), 3 * 22);
    assert!(
        ended
            .stdout
            .ends_with("Apply complete! Resources: 66 added, 0 changed, 0 destroyed.\n"),
        "{ended}"
    );
    let ended = harness.ok(&format!("{all} plan --detailed-exitcode"));
    assert!(
        ended.stdout.contains("No changes. 3 shards planned."),
        "{ended}"
    );
    harness.ok(&format!("{all} destroy --auto-approve --shards-parallel 2"));
    let cloud = harness.json("-c a.jsonc -c b.jsonc sim list --json");
    assert_eq!(cloud["instances"].as_array().unwrap().len(), 0);
}

#[test]
fn events_of_shards_side_by_side_are_a_line_each() {
    let harness = one_folder(10).in_real_time();
    let ended = harness
        .ok("-c a.jsonc -c b.jsonc -c c.jsonc apply --auto-approve --json --shards-parallel 3");
    let events = ended.events();
    for shard in ["a", "b", "c"] {
        let of = |kind: &str| {
            let of = events
                .iter()
                .filter(|event| event["type"] == kind && event["shard"] == shard);
            of.count()
        };
        assert_eq!((of("apply_start"), of("apply_complete")), (12, 12));
    }
}

#[test]
fn files_of_shards_in_one_folder_are_exported_apart() {
    let harness = one_folder(1);
    for shard in ["a", "b"] {
        let name = format!("{shard}.jsonc");
        let config = String::from_utf8(harness.read(&name)).unwrap();
        let config = config.replace("\"plain\"", &format!("\"{shard}\""));
        let files = "\"files\": { \"who\": { \"kind\": \"string\", \"template\": \"{{ .Vars.ROLE }}\" } }, \"vars\": {";
        harness.write(&name, config.replacen("\"vars\": {", files, 1));
    }
    harness.ok("-c a.jsonc -c b.jsonc apply --auto-approve");
    for shard in ["a", "b"] {
        let file = format!(".nstance/test/{shard}/files/default/web/0/who");
        assert_eq!(String::from_utf8(harness.read(&file)).unwrap(), shard);
    }
}

#[test]
fn a_destroy_of_several_shards() {
    let harness = fleet(&["a", "b"]);
    harness.ok("-c a -c b apply --auto-approve");
    harness.ok("-c a -c b destroy --auto-approve --target a:default/web");
    assert_eq!((count(&harness, "a"), count(&harness, "b")), (2, 5));
    let ended = harness.ok("-c a -c b destroy --auto-approve");
    assert!(
        ended
            .stdout
            .ends_with("\nDestroy complete! Resources: 7 destroyed.\n"),
        "{ended}"
    );
    assert_eq!((count(&harness, "a"), count(&harness, "b")), (0, 0));
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{name} {}", child.id())])
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn a_signal_ends_the_shard_under_way_and_begins_no_other() {
    for (name, code, at_once) in [("INT", 130, 1), ("TERM", 143, 2)] {
        let harness = fleet(&["a", "b", "c"]).in_real_time();
        for shard in ["a", "b", "c"] {
            options(&harness, shard, "\"latency\": \"300ms\"");
            edit(&harness, shard, "\"size\": 3", "\"size\": 12");
        }
        let words = format!(
            "-c a -c b -c c apply --auto-approve --parallelism 1 --shards-parallel {at_once}"
        );
        let child = harness.command(&words).spawn().unwrap();
        let live = |shard: &str| {
            let cloud = harness.json(&format!("-c {shard} sim list --json"));
            cloud["instances"].as_array().unwrap().len()
        };
        assert!(harness.comes(|| live("a") >= 2 && (at_once == 1 || live("b") >= 2)));
        signal(&child, name);
        let ended: Ended = harness.wait(&words, child);
        assert_eq!(ended.code, Some(code), "{ended}");
        assert!(ended.stdout.contains("    a  interrupted: "), "{ended}");
        let second = if at_once == 1 {
            "not tried"
        } else {
            "interrupted: "
        };
        assert!(
            ended.stdout.contains(&format!("    b  {second}")),
            "{ended}"
        );
        assert!(ended.stdout.contains("    c  not tried\n"), "{ended}");
        assert!(
            ended
                .stderr
                .contains("error: a: stopped before everything was done"),
            "{ended}"
        );
        assert!((2..14).contains(&count(&harness, "a")), "{ended}");
        assert_eq!(count(&harness, "c"), 0);
        for shard in ["a", "b", "c"] {
            edit(&harness, shard, "\"latency\": \"300ms\"", "");
        }
        harness.ok("-c a -c b -c c apply --auto-approve --shards-parallel 3");
        assert_eq!(
            ["a", "b", "c"].map(|shard| count(&harness, shard)),
            [14, 14, 14]
        );
    }
}
