//! Several configurations in one run, a shard each.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Harness, TWO};

/// A folder for each shard, with a configuration of that name.
pub(crate) fn fleet(shards: &[&str]) -> Harness {
    let harness = Harness::empty();
    for shard in shards {
        harness.write(&file(shard), named(shard));
    }
    harness
}

fn file(shard: &str) -> String {
    format!("{shard}/nstance.jsonc")
}

pub(crate) fn named(shard: &str) -> String {
    TWO.replace("\"one\"", &format!("\"{shard}\""))
}

/// Changes what is written once in a shard's configuration.
pub(crate) fn edit(harness: &Harness, shard: &str, from: &str, to: &str) {
    let config = String::from_utf8(harness.read(&file(shard))).unwrap();
    assert_eq!(config.matches(from).count(), 1, "`{from}` stands once");
    harness.write(&file(shard), config.replacen(from, to, 1));
}

pub(crate) fn options(harness: &Harness, shard: &str, options: &str) {
    let to = format!("\"options\": {{ {options} }}");
    edit(harness, shard, "\"options\": {}", &to);
}

/// How many instances a shard has; record and cloud agree on them.
#[track_caller]
pub(crate) fn count(harness: &Harness, shard: &str) -> usize {
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
        (
            "--target b:default/web",
            "no group or slot matches `default/web`",
        ),
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
        "\"fail\": [{ \"operation\": \"list\", \"error\": \"denied\", \"count\": 99 }]",
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
