//! Specifications of instance groups of Yandex Cloud: planned as they are, and named by `source`.
//!
//! In: specifications, alone or beside a native configuration. Out: what commands make of them. Must
//! not: check single keys; `dialect::yandex` does.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Ended, Harness};
use crate::yandex_case::run_case;

/// Three brokers with tags and fixed addresses in two zones.
const KAFKA: &str = include_str!("data/kafka.yaml");

/// The specification, where it stands alone: its cluster is called after the folder.
const BARE: &str = "kafka/spec.yaml";

/// A configuration whose `source` is the specification.
const SOURCE: &str = r#"{
  "cluster": {"id": "kafka"},
  "shard": {"id": "one", "infra": {"provider": "yandex", "region": "ru-central1", "zone": "ru-central1-a"}},
  "source": {"yandex": "spec.yaml", "group": "brokers"}
}"#;

/// Another cloud's names for what the specification names.
const MAP: &str = r#""map": {
    "platform": {"standard-v3": "m5.large"},
    "image": {"fd8": "ami-1"},
    "zone": {"ru-central1-a": "eu-west-1a", "ru-central1-b": "eu-west-1b"}
  }"#;

/// The specification alone in its folder.
fn bare() -> Harness {
    let harness = Harness::empty();
    harness.write(BARE, KAFKA);
    harness
}

/// The specification beside a configuration.
fn named(config: &str) -> Harness {
    let harness = Harness::with(config);
    harness.write("spec.yaml", KAFKA);
    harness
}

/// The specification on AWS.
fn on_aws() -> Harness {
    let config = SOURCE
        .replace(
            "\"yandex\", \"region\": \"ru-central1\"",
            "\"aws\", \"region\": \"eu-west-1\"",
        )
        .replace("ru-central1-a", "eu-west-1a")
        .replace("\"brokers\"", &format!("\"brokers\", {MAP}"));
    named(&config)
}

/// Changes what is written once in a file.
#[track_caller]
fn edit(harness: &Harness, file: &str, from: &str, to: &str) {
    let text = String::from_utf8(harness.read(file)).unwrap();
    assert_eq!(text.matches(from).count(), 1, "`{from}` stands once");
    harness.write(file, text.replacen(from, to, 1));
}

fn code(harness: &Harness, words: &str) -> Option<i32> {
    harness.run(words).code
}

/// `default/spec/1 delete create`, for each change of a plan.
fn changes(harness: &Harness, options: &str) -> Vec<String> {
    let plan = harness.json(&format!("{options} plan --json"));
    let changes = plan["resource_changes"].as_array().unwrap().iter();
    let shown = changes.map(|change| {
        let actions = change["change"]["actions"].as_array().unwrap().iter();
        let actions: Vec<&str> = actions.map(|action| action.as_str().unwrap()).collect();
        format!(
            "{} {}",
            change["address"].as_str().unwrap(),
            actions.join(" ")
        )
    });
    shown.filter(|change| !change.ends_with("no-op")).collect()
}

/// The instances of `render`, without what belongs to the file that names them.
fn rendered(harness: &Harness, options: &str) -> Vec<Value> {
    // At one time, so that the ids are the same.
    let now = "--now 2026-12-01T00:00:00Z";
    let document = harness.json(&format!("{options} {now} render --json"));
    document["instances"].as_array().unwrap().clone()
}

#[test]
fn every_case_is_answered_as_it_expects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cases = std::fs::read_to_string(folder.join("../shared/corpora/yandex.jsonl"))
        .or_else(|_| std::fs::read_to_string(folder.join("tests/corpora/yandex.jsonl")))
        .unwrap();
    let cases: Vec<&str> = cases.lines().collect();
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let program = Path::new(env!("CARGO_BIN_EXE_nstance"));
                while let Some(line) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let case: Value = serde_json::from_str(line).unwrap();
                    let text = |key: &str| case[key].as_str().unwrap().to_owned();
                    let area = format!("{}/{}", text("kind"), text("area"));
                    let answer = (area, text("id"), run_case(program, line));
                    answers.lock().unwrap().push(answer);
                }
            });
        }
    });
    let mut answers = answers.into_inner().unwrap();
    answers.sort();
    for area in answers.chunk_by(|one, other| one.0 == other.0) {
        let passed = area.iter().filter(|(_, _, answer)| answer.is_ok()).count();
        println!("{} {passed}/{}", area[0].0, area.len());
    }
    let failed: Vec<String> = answers
        .iter()
        .filter_map(|(area, id, answer)| {
            let why = answer.as_ref().err()?;
            Some(format!("{area} {id}: {why}"))
        })
        .collect();
    assert!(answers.len() >= 163, "only {} cases", answers.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_bare_specification_is_planned_and_applied() {
    let harness = bare();
    let bare = format!("-c {BARE}");
    assert_snapshot!("bare_plan", harness.ok(&format!("{bare} plan")));
    assert_snapshot!(
        "bare_apply",
        harness.ok(&format!("{bare} apply --auto-approve"))
    );
    assert_snapshot!("bare_again", harness.ok(&format!("{bare} plan")));
    assert_snapshot!(
        "bare_explained",
        harness.ok(&format!("{bare} render --explain default/spec/0"))
    );
    assert_snapshot!(
        "bare_userdata",
        harness.ok(&format!("{bare} explain default/spec/1.userdata"))
    );
    // The folder has one more instance, and the others stay as they are.
    edit(&harness, BARE, "size: 3}", "size: 4}");
    assert_eq!(changes(&harness, &bare), ["default/spec/3 create"]);
    harness.ok(&format!("{bare} apply --auto-approve"));
    assert_snapshot!("bare_list", harness.ok(&format!("{bare} sim list")));
    edit(&harness, BARE, "size: 4}", "size: 3}");
    assert_eq!(changes(&harness, &bare), ["default/spec/3 delete"]);
    harness.ok(&format!("{bare} apply --auto-approve"));
    assert_eq!(harness.ok(&format!("{bare} drift")).stdout, "No drift.\n");
    assert_snapshot!(
        "bare_destroy",
        harness.ok(&format!("{bare} destroy --auto-approve"))
    );
}

#[test]
fn only_slots_whose_text_changed_act() {
    let harness = bare();
    let bare = format!("-c {BARE}");
    harness.ok(&format!("{bare} apply --auto-approve"));
    // Not used yet.
    edit(&harness, BARE, "10.4.0.14", "10.4.0.24");
    assert!(changes(&harness, &bare).is_empty());
    edit(&harness, BARE, "10.4.0.12", "10.4.0.22");
    assert_eq!(changes(&harness, &bare), ["default/spec/1 delete create"]);
    assert_snapshot!("variable_edited", harness.ok(&format!("{bare} plan")));
    harness.ok(&format!("{bare} apply --auto-approve"));
    assert!(changes(&harness, &bare).is_empty());
    // The userdata of one zone.
    edit(&harness, BARE, "value: a}", "value: aa}");
    let of_zone = ["default/spec/0 update", "default/spec/2 update"];
    assert_eq!(changes(&harness, &bare), of_zone);
    assert_snapshot!("zone_variable_edited", harness.ok(&format!("{bare} plan")));
    // A label of the group that the template reads.
    edit(&harness, BARE, "value: aa}", "value: a}");
    edit(&harness, BARE, "{env: prod}", "{env: test, owner: me}");
    assert_eq!(changes(&harness, &bare).len(), 3);
    // A group's own words are no instance's.
    edit(
        &harness,
        BARE,
        "{env: test, owner: me}",
        "{env: prod, owner: me}",
    );
    edit(&harness, BARE, "max_unavailable: 1", "max_unavailable: 2");
    assert!(changes(&harness, &bare).is_empty());
}

#[test]
fn tags_and_zones_move_instances() {
    let harness = bare();
    let bare = format!("-c {BARE}");
    harness.ok(&format!("{bare} apply --auto-approve"));
    let moved = ["default/spec/1 delete create"];
    for (name, from, to) in [
        ("tag_removed", "[kaf-2, kaf-4]", "[kaf-4]"),
        ("tag_in_front", "[kaf-2, kaf-4]", "[kaf-0, kaf-2, kaf-4]"),
        ("zone_changed", "ru-central1-b, inst", "ru-central1-d, inst"),
    ] {
        edit(&harness, BARE, from, to);
        assert_eq!(changes(&harness, &bare), moved, "{name}");
        assert_snapshot!(name, harness.ok(&format!("{bare} plan")));
        edit(&harness, BARE, to, from);
        assert!(changes(&harness, &bare).is_empty());
    }
    // At the end of the list, a tag moves none.
    edit(&harness, BARE, "[kaf-2, kaf-4]", "[kaf-2, kaf-4, kaf-0]");
    assert!(changes(&harness, &bare).is_empty());
}

#[test]
fn a_saved_plan_creates_what_it_shows() {
    let harness = bare();
    edit(
        &harness,
        BARE,
        "# Number",
        "# {instance_group.id} {instance.short_id} number",
    );
    let bare = format!("-c {BARE}");
    harness.ok(&format!("{bare} plan --out first.plan"));
    let number = |text: &str| {
        let lines = text.lines().map(|line| line.trim_start_matches(['│', ' ']));
        let lines = lines.filter(|line| line.starts_with("# nsg"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let shown = number(&harness.ok("show first.plan").stdout);
    assert_eq!(shown.len(), 3);
    harness.ok(&format!("{bare} apply first.plan"));
    let made = number(
        &harness
            .ok(&format!("{bare} state show default/spec/0"))
            .stdout,
    );
    assert_eq!(made, shown[..1]);
    // Recreated, it is called the same.
    harness.ok(&format!(
        "{bare} apply --auto-approve --replace default/spec/0"
    ));
    let again = number(
        &harness
            .ok(&format!("{bare} state show default/spec/0"))
            .stdout,
    );
    assert_eq!(again, made);
}

#[test]
fn an_imported_instance_takes_the_place_of_its_slot() {
    let harness = bare();
    let bare = format!("-c {BARE}");
    harness.ok(&format!("{bare} apply --auto-approve"));
    let list = harness.json(&format!("{bare} sim list --json"));
    let mut instances = list["instances"].as_array().unwrap().iter();
    let last = instances
        .find(|it| it["address"] == "default/spec/2")
        .unwrap();
    let id = last["provider_id"].as_str().unwrap();
    harness.ok(&format!("{bare} state rm default/spec/2"));
    harness.ok(&format!("{bare} import default/spec/2 {id}"));
    assert!(changes(&harness, &bare).is_empty());
}

#[test]
fn every_language_names_a_specification() {
    let yaml = "cluster: {id: kafka}\n\
        shard: {id: one, infra: {provider: yandex, region: ru-central1, zone: ru-central1-a}}\n\
        source: {yandex: spec.yaml, group: brokers}\n";
    let hcl = "cluster { id = \"kafka\" }\n\
        shard {\n  id = \"one\"\n  infra {\n    provider = \"yandex\"\n    region = \"ru-central1\"\n    \
        zone = \"ru-central1-a\"\n  }\n}\n\
        source {\n  yandex = \"spec.yaml\"\n  group = \"brokers\"\n}\n";
    let expected = rendered(&named(SOURCE), "--sim");
    assert_eq!(expected.len(), 3);
    assert_eq!(expected[1]["address"], "default/brokers/1");
    for (name, text) in [("nstance.yaml", yaml), ("nstance.hcl", hcl)] {
        let harness = Harness::empty();
        harness.write(name, text);
        harness.write("spec.yaml", KAFKA);
        assert_eq!(rendered(&harness, "--sim"), expected, "{name}");
    }
}

#[test]
fn a_specification_runs_on_another_cloud() {
    let harness = on_aws();
    let instances = rendered(&harness, "--sim");
    let zones = ["eu-west-1a", "eu-west-1b", "eu-west-1a"];
    let letters = ["a", "b", "a"];
    assert_eq!(instances.len(), 3);
    for (index, instance) in instances.iter().enumerate() {
        let tag = format!("kaf-{}", index + 1);
        let address = format!("10.4.0.1{}", index + 1);
        assert_eq!(instance["args"]["ImageId"], "ami-1");
        assert_eq!(instance["args"]["PrivateIpAddress"], *address);
        assert_eq!(instance["instance_type"], "m5.large");
        assert_eq!(instance["zone"], zones[index]);
        assert_eq!(instance["tag"], *tag);
        assert_eq!(instance["tags"]["Name"], *tag);
        assert_eq!(instance["tags"]["env"], "prod");
        // Zones are mapped in the keys of variables, too.
        let fqdn = format!("fqdn: {tag}.{}.example.com", letters[index]);
        let userdata = instance["userdata"].as_str().unwrap();
        assert!(userdata.contains(&fqdn), "{userdata}");
    }
    harness.ok("--sim apply --auto-approve");
    assert!(changes(&harness, "--sim").is_empty());
    assert_snapshot!("on_aws", harness.ok("--sim validate"));
    for (name, entry) in [
        ("no_image", "\"fd8\": \"ami-1\""),
        ("no_platform", "\"standard-v3\": \"m5.large\""),
        ("no_zone", ", \"ru-central1-b\": \"eu-west-1b\""),
    ] {
        let harness = on_aws();
        harness.edit(entry, "");
        let refused = harness.run("--sim plan");
        assert_eq!(refused.code, Some(1));
        assert_snapshot!(name, refused);
        assert_eq!(harness.files(), ["nstance.jsonc", "spec.yaml"]);
    }
}

#[test]
fn a_converted_specification_renders_the_same() {
    let expected = rendered(&named(SOURCE), "--sim");
    for to in ["jsonc", "yaml", "hcl"] {
        let harness = named(SOURCE);
        let said = harness.ok(&format!("convert --to {to} --out native.{to}"));
        if to == "jsonc" {
            assert_snapshot!("converted", said);
        }
        let native = format!("-c native.{to} --sim");
        assert_eq!(rendered(&harness, &native), expected, "{to}");
    }
    // The specification itself, and on another cloud.
    let harness = bare();
    assert_snapshot!(
        "converted_bare",
        harness.ok(&format!("convert {BARE} --to hcl"))
    );
    let harness = on_aws();
    let expected = rendered(&harness, "--sim");
    harness.ok("convert --to yaml --out native.yaml");
    assert_eq!(rendered(&harness, "-c native.yaml --sim"), expected);
}

#[test]
fn a_bad_specification_is_refused_where_it_is_wrong() {
    for (name, from, to) in [
        (
            "unquoted",
            "hostname: \"{instance.tag}\"",
            "hostname: {instance.tag}",
        ),
        ("unknown_key", "platform_id:", "platfrom_id:"),
        ("duplicate_tag", "[kaf-2, kaf-4]", "[kaf-1, kaf-4]"),
        (
            "name_rule",
            "name: \"{instance.tag}\"\n  hostname",
            "name: broker\n  hostname",
        ),
        ("missing_tags", "[kaf-2, kaf-4]", "[]"),
        ("missing_variable", "ip_kaf-2", "ip_kaf-9"),
    ] {
        let harness = bare();
        edit(&harness, BARE, from, to);
        let refused = harness.run(&format!("-c {BARE} apply --auto-approve"));
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains("kafka/spec.yaml:"), "{refused}");
        assert_snapshot!(name, refused);
        assert_eq!(harness.files(), [BARE]);
        // With `source`, the same words.
        let harness = named(SOURCE);
        edit(&harness, "spec.yaml", from, to);
        let words = |ended: &Ended| ended.stderr.replace("kafka/spec.yaml", "spec.yaml");
        let by_source = harness.run("--sim apply --auto-approve");
        assert_eq!(words(&by_source), words(&refused));
        assert_eq!(harness.files(), ["nstance.jsonc", "spec.yaml"]);
    }
}

#[test]
fn what_is_no_specification_is_not_read_as_one() {
    let harness = named(SOURCE);
    harness.write("native.jsonc", crate::harness::TWO);
    harness.write("list.yaml", "[1, 2]\n");
    for (name, words) in [
        ("no_such_file", "plan -c nothing.yaml --from yandex"),
        (
            "native_as_specification",
            "plan -c native.jsonc --from yandex",
        ),
        ("list_as_specification", "plan -c list.yaml --from yandex"),
        ("folder_as_specification", "plan --from yandex"),
        (
            "specification_as_native",
            "plan -c spec.yaml --from nstance",
        ),
    ] {
        let refused = harness.run(words);
        assert_eq!(refused.code, Some(1), "{refused}");
        assert_snapshot!(name, refused);
    }
    harness.configure(&SOURCE.replace("spec.yaml", "nothing.yaml"));
    assert_snapshot!(
        "source_of_nothing",
        harness.run("plan -c nstance.jsonc --sim")
    );
    harness.configure(&SOURCE.replace("spec.yaml", "native.jsonc"));
    assert_eq!(code(&harness, "plan -c nstance.jsonc --sim"), Some(1));
    harness.configure(&SOURCE.replace("\"yandex\": \"spec.yaml\", ", ""));
    assert_snapshot!(
        "source_without_file",
        harness.run("plan -c nstance.jsonc --sim")
    );
    assert!(!harness.path(".nstance").exists());
}

#[test]
fn a_specification_in_a_folder_is_no_configuration() {
    // Beside a native one, which doesn't name it.
    let harness = named(crate::harness::TWO);
    let instances = rendered(&harness, "");
    assert_eq!(instances.len(), 5);
    harness.write("nstance-spec.yaml", KAFKA);
    assert_snapshot!("beside_a_native_file", harness.run("plan"));
    // Alone, where a name is missing.
    let harness = bare();
    assert_snapshot!("folder_of_a_specification", harness.run("-c kafka plan"));
}

#[test]
fn a_group_of_a_specification_is_rolled_back() {
    let config = SOURCE
        .replace("\"yandex\", \"region\"", "\"sim\", \"options\": {\"unhealthy\": {\"bad\": 1.0}}, \"region\"")
        .replace("\"source\"", "\"defaults\": {\"args\": {\"ImageId\": \"good\"}, \"update\": {\"on_failure\": \"rollback\"}},\n  \"source\"");
    let harness = named(&config);
    let checks = "health_checks_spec:\n  health_check_specs: [{interval: 5s, tcp_options: {port: 9092}}]\n  \
        max_checking_health_duration: 60s\n";
    harness.write("spec.yaml", format!("{KAFKA}{checks}"));
    harness.ok("apply --auto-approve");
    let before = harness.json("show --json");
    harness.edit("\"ImageId\": \"good\"", "\"ImageId\": \"bad\"");
    edit(&harness, "spec.yaml", "10.4.0.11", "10.4.0.21");
    let back = harness.run("apply --auto-approve");
    assert_eq!(back.code, Some(1));
    assert_snapshot!("rolled_back", back);
    let places = |document: &Value| {
        let records = document["instances"].as_array().unwrap().iter();
        let place = |record: &Value| {
            ["address", "zone", "number_in_zone", "tag", "ip4"].map(|key| record[key].clone())
        };
        records.map(place).collect::<Vec<_>>()
    };
    let after = harness.json("show --json");
    assert_eq!(places(&after), places(&before));
    // What the specification said before is what there is.
    harness.edit("\"ImageId\": \"bad\"", "\"ImageId\": \"good\"");
    edit(&harness, "spec.yaml", "10.4.0.21", "10.4.0.11");
    assert!(changes(&harness, "").is_empty());
    assert_eq!(harness.agrees(""), 3);
}

/// Each successor needs the address of an instance that is replaced only after it.
#[test]
fn instances_do_not_exchange_fixed_addresses() {
    let harness = bare();
    let bare = format!("-c {BARE}");
    harness.ok(&format!("{bare} apply --auto-approve"));
    edit(&harness, BARE, "10.4.0.11", "10.4.0.90");
    edit(&harness, BARE, "10.4.0.12", "10.4.0.11");
    edit(&harness, BARE, "10.4.0.90", "10.4.0.12");
    assert_snapshot!(
        "addresses_exchanged",
        harness.run(&format!("{bare} plan")).stderr
    );
    // One after the other, by way of a free address.
    edit(&harness, BARE, "10.4.0.12", "10.4.0.90");
    edit(&harness, BARE, "10.4.0.11", "10.4.0.12");
    harness.ok(&format!("{bare} apply --auto-approve"));
    for (from, to) in [("10.4.0.12", "10.4.0.11"), ("10.4.0.90", "10.4.0.12")] {
        edit(&harness, BARE, from, to);
        harness.ok(&format!("{bare} apply --auto-approve"));
    }
    assert!(changes(&harness, &bare).is_empty());
}
