//! Several configurations in one run, a shard each.

use std::path::Path;
use std::process::{Child, Command};

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Ended, Harness, TWO};

/// A folder for each shard, with a configuration of that name.
fn fleet(shards: &[&str]) -> Harness {
    let harness = Harness::empty();
    for shard in shards {
        harness.write(&file(shard), named(shard));
    }
    harness
}

fn file(shard: &str) -> String {
    format!("{shard}/nstance.jsonc")
}

fn named(shard: &str) -> String {
    TWO.replace("\"one\"", &format!("\"{shard}\""))
}

/// Changes what is written once in a shard's configuration.
fn edit(harness: &Harness, shard: &str, from: &str, to: &str) {
    let config = String::from_utf8(harness.read(&file(shard))).unwrap();
    assert_eq!(config.matches(from).count(), 1, "`{from}` stands once");
    harness.write(&file(shard), config.replacen(from, to, 1));
}

fn options(harness: &Harness, shard: &str, options: &str) {
    let to = format!("\"options\": {{ {options} }}");
    edit(harness, shard, "\"options\": {}", &to);
}

/// How many instances a shard has; record and cloud agree on them.
#[track_caller]
fn count(harness: &Harness, shard: &str) -> usize {
    let ids = |document: &Value, list: &str| {
        let rows = document[list].as_array().unwrap().iter();
        let mut ids: Vec<_> = rows.map(|row| row["provider_id"].to_string()).collect();
        ids.sort();
        ids
    };
    let cloud = harness.json(&format!("-c {shard} sim list --json"));
    if !harness
        .path(&format!("{shard}/.nstance/test/{shard}.db"))
        .exists()
    {
        assert!(
            ids(&cloud, "instances").is_empty(),
            "nothing without a record"
        );
        return 0;
    }
    let record = harness.json(&format!("-c {shard} state list --json"));
    assert_eq!(ids(&cloud, "instances"), ids(&record, "records"), "{shard}");
    ids(&record, "records").len()
}

/// The shards of a list of documents.
fn shards(list: &Value) -> Vec<&str> {
    let documents = list.as_array().expect("a list").iter();
    documents
        .map(|document| document["shard"].as_str().unwrap_or("none"))
        .collect()
}

#[test]
fn a_plan_of_several_shards_has_a_heading_for_each_and_a_total() {
    let harness = fleet(&["a", "b", "c"]);
    harness.ok("-c c apply --auto-approve");
    edit(&harness, "b", "\"size\": 3", "\"size\": 1");
    let ended = harness.ok("-c a -c b -c c plan");
    assert_snapshot!(ended);
    assert_eq!(
        harness.run("-c a -c c plan --detailed-exitcode").code,
        Some(2)
    );
    assert_eq!(
        harness.run("-c c -c a plan --detailed-exitcode").code,
        Some(2)
    );
    harness.ok("-c a -c b apply --auto-approve");
    let ended = harness.ok("-c a -c b -c c plan --detailed-exitcode");
    assert!(
        ended.stdout.ends_with("\nNo changes. 3 shards planned.\n"),
        "{ended}"
    );
}

#[test]
fn each_document_of_a_list_is_the_shards_own() {
    let harness = fleet(&["a", "b"]);
    let now = "--now 2026-12-01T00:00:00Z";
    let ended = harness.ok("-c a apply --auto-approve");
    assert!(
        !ended.stdout.contains("a:default"),
        "alone it has no prefix: {ended}"
    );
    harness.ok("-c b apply --auto-approve --target default/web");
    for command in [
        "plan",
        "drift",
        "show",
        "render",
        "graph",
        "images",
        "state list",
        "state history",
    ] {
        let list = harness
            .run(&format!("{now} -c b -c a {command} --json"))
            .json();
        assert_eq!(shards(&list), ["b", "a"], "{command}");
        for (document, shard) in list.as_array().unwrap().iter().zip(["b", "a"]) {
            let mut alone = harness
                .run(&format!("{now} -c {shard} {command} --json"))
                .json();
            alone["cluster"] = "test".into();
            alone["shard"] = shard.into();
            assert_eq!(*document, alone, "{command} {shard}");
        }
    }
}

#[test]
fn configurations_come_from_wherever_they_are_named() {
    let harness = fleet(&["a", "b", "c"]);
    let planned = |words: &str| {
        let list = harness.ok(words).json();
        shards(&list).join(" ")
    };
    assert_eq!(planned("-c a plan --json -c b"), "a b");
    assert_eq!(
        planned("plan --json --config=b -cc/nstance.jsonc -c a"),
        "b c a"
    );
    let mut command = harness.command("-c b -c c plan --json");
    command.env("NSTANCE_CONFIG", "a");
    assert_eq!(shards(&harness.end("plan", command).json()), ["b", "c"]);
    let mut command = harness.command("plan --json");
    command.env("NSTANCE_CONFIG", "c:a");
    assert_eq!(shards(&harness.end("plan", command).json()), ["c", "a"]);
    let mut command = harness.command("plan --json");
    command.env("NSTANCE_CONFIG", "c");
    assert_eq!(
        harness.end("plan", command).json()["shard"],
        "c",
        "one is no list"
    );
}

#[test]
fn vars_on_both_sides_of_a_command_count() {
    let harness = Harness::with(&TWO.replace("\"plain\"", "\"{{ .Vars.A }}{{ .Vars.B }}\""));
    harness.edit(
        "\"groups\"",
        "\"vars\": { \"A\": \"\", \"B\": \"\" }, \"groups\"",
    );
    let list = harness.ok("--var A=1 render --var B=2 --json").json();
    let vars = &list["instances"][0]["vars"];
    assert_eq!(
        (&vars["A"], &vars["B"]),
        (&"1".into(), &"2".into()),
        "{vars}"
    );
}

#[test]
fn all_that_is_wrong_with_any_of_them_is_said_in_one_run() {
    let harness = fleet(&["a", "b", "c"]);
    edit(&harness, "a", "\"size\": 3", "\"size\": -3");
    edit(
        &harness,
        "c",
        "\"template\": \"vm\", \"size\": 2",
        "\"template\": \"wm\", \"size\": 2",
    );
    assert_snapshot!("broken_validate", harness.run("-c a -c b -c c validate"));
    assert_snapshot!("broken_plan", harness.run("-c a -c b -c c plan"));
    let ended = harness.run("-c a -c b -c c plan --json");
    let files: Vec<_> = ended.json()["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["range"]["filename"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(files, ["a/nstance.jsonc", "c/nstance.jsonc"]);
    let list = harness.run("-c a -c b -c c validate --json").json();
    let valid: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["valid"])
        .collect();
    assert_eq!(valid, [false, true, false]);
    harness.run("-c a -c b -c nowhere apply --auto-approve");
    assert_eq!(count(&harness, "b"), 0);
}

#[test]
fn a_shard_is_there_once() {
    let harness = fleet(&["a", "b"]);
    harness.write("b/nstance.jsonc", named("a"));
    for command in [
        "plan",
        "validate",
        "apply --auto-approve",
        "validate --json",
    ] {
        let ended = harness.run(&format!("-c a -c b {command}"));
        assert_eq!(ended.code, Some(1), "{ended}");
        let text = ended.stdout + &ended.stderr;
        assert!(
            text.contains("two configurations are shard `a` of cluster `test`"),
            "{text}"
        );
        assert!(
            text.contains("a/nstance.jsonc:4") && text.contains("b/nstance.jsonc:4"),
            "{text}"
        );
    }
    assert_snapshot!(harness.run("-c a -c b plan"));
}

#[test]
fn shards_of_two_clusters_may_have_one_name() {
    let harness = fleet(&["a", "b"]);
    harness.write(
        "b/nstance.jsonc",
        named("a").replace("\"test\"", "\"prod\""),
    );
    let ended = harness.ok("-c a -c b plan --target prod/a:default/web/0");
    assert!(
        ended
            .stdout
            .contains("# prod/a:default/web/0 will be created"),
        "{ended}"
    );
    let ended = harness.run("-c a -c b plan --target a:default/web/0");
    assert_snapshot!(ended);
    harness.ok("-c a -c b apply --auto-approve --state sqlite:{cluster}-{shard}.db");
    assert!(harness.path("test-a.db").exists() && harness.path("prod-a.db").exists());
    let ended = harness.run("-c a -c b plan --state sqlite:{shard}.db");
    assert_eq!(ended.code, Some(1), "{ended}");
}

#[test]
fn two_shards_share_no_state() {
    let harness = fleet(&["a", "b"]);
    let ended = harness.run("-c a -c b apply --auto-approve --state sqlite:state.db");
    assert_snapshot!(ended);
    assert!(!harness.path("state.db").exists());
    harness.ok("-c a -c b apply --auto-approve --state sqlite:states/{shard}.db");
    assert!(harness.path("states/a.db").exists() && harness.path("states/b.db").exists());
}

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
fn an_address_says_its_shard_where_it_must() {
    let harness = fleet(&["a", "b"]);
    edit(&harness, "b", "\"web\"", "\"api\"");
    harness.ok("-c a -c b apply --auto-approve");
    let planned = |words: &str| {
        let ended = harness.run(&format!("-c a -c b plan --json {words}"));
        let Some(list) = ended.json().as_array().cloned() else {
            return ended.json()["diagnostics"][0]["summary"]
                .as_str()
                .unwrap()
                .to_owned();
        };
        let mut all = Vec::new();
        for document in list {
            let changes = document["resource_changes"].as_array().unwrap().iter();
            let changed = changes.filter(|change| change["change"]["actions"][0] != "no-op");
            let names = changed.map(|change| change["address"].as_str().unwrap());
            let names: Vec<_> = names.collect();
            all.push(format!(
                "{}: {}",
                document["shard"].as_str().unwrap(),
                names.join(" ")
            ));
        }
        all.join("; ")
    };
    for (words, expected) in [
        ("--replace default/web/1", "a: default/web/1; b: "),
        (
            "--replace default/api/1 --replace a:default/db",
            "a: default/db/0 default/db/1; b: default/api/1",
        ),
        (
            "--replace default/db/0",
            "`default/db/0` is in several shards: a, b",
        ),
        (
            "--target default/api --replace default/api/0",
            "b: default/api/0",
        ),
        ("--target c:default/api", "no shard of this run is `c`"),
        ("--target b:default/web", "b: "),
        ("--target default/wep", "no shard has `default/wep`"),
        (
            "--destroy --exclude default/web --exclude b:default/db",
            "a: default/db/0 default/db/1; b: default/api/0 default/api/1 default/api/2",
        ),
    ] {
        assert_eq!(planned(words), expected, "{words}");
    }
    // What is recorded only is where it is recorded.
    edit(&harness, "a", "\"web\"", "\"www\"");
    assert_eq!(
        planned("--target default/web"),
        "a: default/web/0 default/web/1 default/web/2"
    );
    let ended = harness.run("-c a plan --target b:default/web");
    assert!(
        ended.stderr.contains("no shard of this run is `b`"),
        "{ended}"
    );
    let ended = harness.ok("-c a plan --target a:default/www/0");
    assert!(
        ended.stdout.contains("# default/www/0 will be created"),
        "{ended}"
    );
    assert_eq!(harness.run("plan --target a:b:default/web").code, Some(1));
}

#[test]
fn drift_in_one_shard_is_the_runs() {
    let harness = fleet(&["a", "b", "c"]);
    harness.ok("-c a -c b -c c apply --auto-approve");
    harness.ok("-c a -c b -c c drift");
    harness.ok("-c b sim delete default/web/1");
    let ended = harness.run("-c a -c b -c c drift");
    assert_eq!(ended.code, Some(2));
    assert_snapshot!(ended);
    let ended = harness.run("-c a -c b -c c drift --json");
    assert_eq!(ended.code, Some(2));
    let drifted: Vec<_> = ended
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["drifted"].clone())
        .collect();
    assert_eq!(drifted, [false, true, false]);
    // What can't be looked at is an error, and the others are looked at all the same.
    options(
        &harness,
        "c",
        "\"fail\": [{ \"operation\": \"list\", \"error\": \"unauthorized\", \"count\": 99 }]",
    );
    let ended = harness.run("-c a -c b -c c drift");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(
        ended
            .stdout
            .contains("Drift in 1 of 3 shards: b. 1 shard could not be looked at."),
        "{ended}"
    );
    assert!(ended.stderr.contains("error: c: "), "{ended}");
    let list = harness.run("-c a -c b -c c drift --json").json();
    assert_eq!(shards(&list), ["a", "b", "c"]);
    assert_eq!(list[2]["diagnostics"][0]["severity"], "error");
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

#[test]
fn a_plan_file_for_each_shard() {
    let harness = fleet(&["a", "b", "c"]);
    let ended = harness.run("-c a -c b plan --out next.plan");
    assert_snapshot!("one_plan_file", ended);
    assert!(!harness.path("next.plan").exists());
    let ended = harness.ok("-c a -c b -c c plan --out {shard}.plan -q");
    assert!(ended.stderr.is_empty(), "{ended}");
    let ended = harness.run("-c a -c b apply b.plan c.plan");
    assert_snapshot!("foreign_plan_file", ended);
    let ended = harness.run("-c a -c b apply a.plan a.plan");
    assert!(ended.stderr.contains("two plans are for"), "{ended}");
    // A shard without a plan isn't touched.
    harness.ok("-c a -c b -c c apply b.plan");
    assert_eq!(
        ["a", "b", "c"].map(|shard| count(&harness, shard)),
        [0, 5, 0]
    );
    let ended = harness.run("-c a -c b -c c apply a.plan b.plan c.plan");
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("error: b: the saved plan is stale"),
        "{ended}"
    );
    assert_eq!(
        ["a", "b", "c"].map(|shard| count(&harness, shard)),
        [0, 5, 0]
    );
    let ended = harness.ok("-c a -c b -c c apply c.plan a.plan");
    assert!(
        ended
            .stdout
            .ends_with("Apply complete! Resources: 10 added, 0 changed, 0 destroyed.\n"),
        "{ended}"
    );
    let said = harness.ok("-c a -c b plan --destroy --out {cluster}-{shard}.plan");
    assert!(
        said.stderr
            .contains("nstance -c a -c b apply test-a.plan test-b.plan"),
        "{said}"
    );
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

#[test]
fn what_is_recorded_is_listed_changed_and_copied_by_shard() {
    let harness = fleet(&["a", "b"]);
    edit(&harness, "b", "\"web\"", "\"api\"");
    harness.ok("-c a -c b apply --auto-approve");
    let all = |words: &str| format!("-c a -c b {words}");
    assert_snapshot!("state_list", harness.ok(&all("state list")));
    assert_snapshot!(
        "state_list_of_one",
        harness.ok(&all("state list b:default/db"))
    );
    assert_snapshot!("show_one", harness.ok(&all("show default/web/0")));
    let ended = harness.ok(&all("state mv default/web/0 default/web/7"));
    assert_eq!(
        ended.stdout,
        "a:default/web/0 is recorded as a:default/web/7 now\n"
    );
    let ended = harness.run(&all("state mv default/web/1 b:default/web/1"));
    assert_snapshot!("state_mv_to_another_shard", ended);
    // One that isn't there keeps the others in their place.
    let ended = harness.run(&all("state rm a:default/db/0 b:default/db/9"));
    assert_eq!(ended.code, Some(1), "{ended}");
    assert_eq!((count(&harness, "a"), count(&harness, "b")), (5, 5));
    let ended = harness.ok(&all("state rm a:default/db/0 b:default/db/1 default/web/2"));
    assert!(
        ended.stdout.starts_with("a:default/db/0 is forgotten"),
        "{ended}"
    );
    let left = harness.ok(&all("state list"));
    assert_eq!(left.stdout.lines().count(), 7, "{left}");
    let ended = harness.run(&all("state backup copy.db"));
    assert_eq!(ended.code, Some(1), "{ended}");
    harness.ok(&all("state backup {shard}-copy.db"));
    assert!(harness.path("a-copy.db").exists() && harness.path("b-copy.db").exists());
    assert_snapshot!("history_of_one_entry", harness.run(&all("state history 1")));
    let ended = harness.run(&all("state unlock 1"));
    assert!(
        ended.stderr.contains("unlocking is about one shard"),
        "{ended}"
    );
    let ended = harness.ok(&all("state history"));
    assert!(
        ended.stdout.contains("Shard b of cluster test\n"),
        "{ended}"
    );
}

#[test]
fn an_instance_is_imported_where_its_group_is() {
    let harness = fleet(&["a", "b"]);
    edit(&harness, "b", "\"web\"", "\"api\"");
    harness.ok("-c a -c b apply --auto-approve");
    let list = harness.json("-c b state list --json");
    let row = list["records"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["address"] == "default/api/1");
    let id = row.unwrap()["provider_id"].as_str().unwrap().to_owned();
    harness.ok("-c b state rm default/api/1");
    let ended = harness.run(&format!("-c a -c b import default/db/1 {id}"));
    assert!(
        ended.stderr.contains("`default/db/1` is in several shards"),
        "{ended}"
    );
    let ended = harness.ok(&format!("-c a -c b import default/api/1 {id}"));
    assert!(
        ended.stdout.starts_with("b:default/api/1 is recorded as"),
        "{ended}"
    );
    assert_eq!(count(&harness, "b"), 5);
}

#[test]
fn pictures_and_specs_of_several_shards() {
    let harness = fleet(&["a", "b"]);
    let ended = harness.ok("-c a -c b graph");
    assert_eq!(
        ended.stdout.matches("digraph").count(),
        1,
        "one picture: {ended}"
    );
    assert!(
        ended
            .stdout
            .contains("\"b:template.vm\" -> \"b:group.default/web\""),
        "{ended}"
    );
    let ended = harness.ok("-c a -c b render a:default/web/0");
    assert!(ended.stdout.contains("# a:default/web/0:\n"), "{ended}");
    harness.ok("-c a -c b render --out specs");
    for shard in ["a", "b"] {
        assert!(
            harness
                .path(&format!("specs/{shard}/default/web/2/spec.json"))
                .exists()
        );
    }
    let ended = harness.run("-c a -c b sim list");
    assert!(ended.stderr.contains("several embedded clouds"), "{ended}");
    assert!(
        !Path::new(&harness.path("a/.nstance")).exists(),
        "looking leaves nothing"
    );
}
