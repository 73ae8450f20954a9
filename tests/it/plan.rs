//! `plan`: each of its options, and the document it prints.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{AWS, Ended, GCP, Harness, STARTER, TWO, TWO_STATE};

/// Addresses and actions of a plan's document.
fn changes(plan: &Value) -> Vec<String> {
    let changes = plan["resource_changes"].as_array().unwrap().iter();
    changes
        .filter(|change| {
            change["change"]["actions"][0] != "no-op" || change["change"].get("importing").is_some()
        })
        .map(|change| {
            let actions: Vec<_> = change["change"]["actions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|a| a.as_str().unwrap())
                .collect();
            let importing = change["change"]
                .get("importing")
                .map_or("", |_| " importing");
            format!(
                "{} {}{importing}",
                change["address"].as_str().unwrap(),
                actions.join("+")
            )
        })
        .collect()
}

fn planned(harness: &Harness, options: &str) -> Vec<String> {
    changes(&harness.json(&format!("plan --json {options}")))
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// Every group changed, so that every slot is replaced.
fn changed() -> Harness {
    let harness = Harness::applied(TWO);
    harness.edit("\"debian-13\"", "\"debian-12\"");
    harness
}

#[test]
fn a_target_is_planned_alone() {
    let harness = changed();
    assert_eq!(
        planned(&harness, "--target default/db"),
        ["default/db/0 create+delete", "default/db/1 create+delete"]
    );
    assert_eq!(
        planned(&harness, "--target default/db/1 --target default/web/2"),
        ["default/db/1 create+delete", "default/web/2 create+delete"]
    );
    assert_snapshot!(harness.ok("plan --target default/web/2"));
    harness.ok("apply --auto-approve --target default/web/2");
    assert_eq!(planned(&harness, "--target default/web").len(), 2);
}

#[test]
fn what_is_excluded_is_left_out() {
    let harness = changed();
    assert_eq!(
        planned(&harness, "--exclude default/db --exclude default/web/0"),
        ["default/web/1 create+delete", "default/web/2 create+delete"]
    );
}

#[test]
fn an_address_that_matches_nothing_is_an_error_with_the_nearest_name() {
    let harness = Harness::applied(TWO);
    let hints = [
        ("default/wbe", "there is a group `default/web`"),
        ("default/web/3", "`default/web` has the slots 0 to 2"),
        ("other/thing", "Groups are listed by: nstance graph"),
    ];
    let before = harness.live();
    for (address, hint) in hints {
        for words in [
            "plan --target",
            "plan --exclude",
            "plan --replace",
            "apply --auto-approve --target",
            "apply --auto-approve --exclude",
            "apply --auto-approve --replace",
            "destroy --auto-approve --target",
            "destroy --auto-approve --exclude",
            "drift --target",
            "render",
        ] {
            let ended = harness.run(&format!("{words} {address}"));
            assert_eq!(ended.code, Some(1), "{ended}");
            let error = format!("error: no group or slot matches `{address}`\nhint: {hint}\n");
            assert!(ended.stderr.contains(&error), "{ended}");
            assert!(!ended.stdout.contains("destroyed"), "{ended}");
        }
    }
    let allowed = harness.run("apply --auto-approve --allow-delete default/wbe");
    assert_eq!(allowed.code, Some(1), "{allowed}");
    assert_eq!(harness.live(), before);
    // What is recorded and not configured any more is there.
    harness.edit("\"db\"", "\"database\"");
    harness.ok("plan --target default/db/1");
}

#[test]
fn replace_replaces_what_is_as_it_should_be() {
    let harness = Harness::applied(TWO);
    let before = harness.live();
    assert_snapshot!(harness.ok("plan --replace default/web/1"));
    assert_eq!(planned(&harness, "--replace default/db").len(), 2);
    harness.ok("apply --auto-approve --replace default/web/1");
    harness.agrees("");
    assert_eq!(before.intersection(&harness.live()).count(), 4);
}

#[test]
fn destroy_plans_to_delete_everything() {
    let harness = Harness::applied(TWO);
    assert_snapshot!(harness.ok("plan --destroy"));
    assert!(
        planned(&harness, "--destroy")
            .iter()
            .all(|change| change.ends_with(" delete"))
    );
    assert_eq!(planned(&harness, "--destroy --target default/db").len(), 2);
}

#[test]
fn refresh_only_plans_to_record_and_nothing_else() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 3", "\"size\": 4");
    harness.ok("sim set-type default/web/0 huge");
    harness.ok("sim delete default/web/1");
    assert_snapshot!(harness.ok("plan --refresh-only"));
    harness.ok("apply --auto-approve --refresh-only");
    assert_eq!(harness.live().len(), 4);
    assert_eq!(
        harness.agrees(""),
        4,
        "what is gone is forgotten, nothing is made"
    );
    let drift = harness.ok("drift");
    assert!(
        drift.stdout.contains("No drift"),
        "what was recorded is no drift: {drift}"
    );
    assert_eq!(
        planned(&harness, ""),
        [
            "default/web/0 update",
            "default/web/1 create",
            "default/web/3 create"
        ],
        "the configuration is still to be had"
    );
}

#[test]
fn without_refresh_the_record_alone_counts() {
    let harness = Harness::applied(TWO);
    harness.ok("sim delete default/web/1");
    assert_eq!(planned(&harness, "--refresh=false"), [""; 0]);
    assert_eq!(planned(&harness, ""), ["default/web/1 create"]);
    assert_eq!(
        harness.run("plan --refresh-only --refresh=false").code,
        Some(1)
    );
}

#[test]
fn images_are_asked_for_again_when_told_to() {
    let harness = Harness::applied(STARTER);
    harness.ok("sim image publish debian-13-amd64-20261125-1 --created 2026-11-25T00:00:00Z");
    assert_eq!(planned(&harness, ""), [""; 0]);
    assert_eq!(planned(&harness, "--refresh-images").len(), 3);
    assert_snapshot!(harness.ok("images --refresh-images"));
}

#[test]
fn a_resolution_older_than_the_interval_is_made_anew() {
    let harness = Harness::applied(STARTER);
    harness.ok("sim image publish debian-13-amd64-20261125-1 --created 2026-11-25T00:00:00Z");
    let later = harness.ok("plan --json --now 2026-12-01T06:30:00Z");
    assert_eq!(changes(&later.json()).len(), 3);
}

#[test]
fn the_detailed_exit_code_is_two_with_changes_only() {
    let harness = Harness::with(TWO);
    assert_eq!(harness.run("plan --detailed-exitcode").code, Some(2));
    assert_eq!(harness.run("plan").code, Some(0));
    harness.ok("apply --auto-approve");
    assert_eq!(harness.run("plan --detailed-exitcode").code, Some(0));
    assert_eq!(
        harness.run("plan --destroy --detailed-exitcode").code,
        Some(2)
    );
    std::fs::remove_file(harness.path(TWO_STATE)).unwrap();
    assert_eq!(
        harness.run("plan --detailed-exitcode").code,
        Some(2),
        "adopting counts"
    );
}

#[test]
fn the_document_has_the_keys_of_the_contract() {
    let harness = Harness::with(AWS);
    harness.ok("apply --auto-approve --sim");
    harness.edit("\"production\"", "\"staging\"");
    harness.ok("sim set-tag default/workers/3 Owner=someone --sim");
    harness.edit("\"size\": 4", "\"size\": 5");
    let plan = harness
        .json("plan --json --sim --replace default/control/0 --allow-replace default/control");
    let expected = [
        "format_version",
        "tool_version",
        "cluster",
        "shard",
        "lineage",
        "serial",
        "applyable",
        "complete",
        "errored",
        "images",
        "resource_changes",
        "resource_drift",
        "summary",
        "diagnostics",
    ];
    assert!(
        keys(&plan).is_superset(&expected.into()),
        "{:?}",
        keys(&plan)
    );
    assert_eq!(plan["applyable"], true);
    assert_eq!(plan["complete"], true);
    assert_eq!(plan["errored"], false);
    let image = &plan["images"]["debian_13_arm64"];
    assert_eq!(keys(image), ["id", "source", "resolved_at"].into());
    assert_eq!(image["source"], "cache");
    let changes = plan["resource_changes"].as_array().unwrap();
    assert_eq!(changes.len(), 8, "what stays as it is stands there too");
    let instance = [
        "instance_id",
        "provider_id",
        "kind",
        "arch",
        "instance_type",
        "zone",
        "subnet_pool",
        "subnet",
        "args",
        "vars",
        "userdata",
        "files",
        "tags",
        "load_balancers",
    ];
    for one in changes {
        let expected = [
            "address",
            "mode",
            "type",
            "name",
            "index",
            "provider_name",
            "change",
        ];
        assert!(keys(one).is_superset(&expected.into()), "{:?}", keys(one));
        assert_eq!(one["mode"], "managed");
        assert_eq!(one["type"], "aws_instance");
        assert_eq!(
            one["address"],
            format!("{}/{}", one["name"].as_str().unwrap(), one["index"])
        );
        let change = &one["change"];
        let expected = [
            "actions",
            "before",
            "after",
            "after_unknown",
            "before_sensitive",
            "after_sensitive",
        ];
        assert!(
            keys(change).is_superset(&expected.into()),
            "{:?}",
            keys(change)
        );
        for side in ["before", "after"]
            .map(|side| &change[side])
            .into_iter()
            .filter(|side| !side.is_null())
        {
            let missing: Vec<_> = instance
                .iter()
                .filter(|key| !keys(side).contains(**key))
                .collect();
            assert!(missing.len() <= 1, "{missing:?} of {side:#}");
        }
    }
    let counts = &plan["summary"];
    let expected = [
        "create",
        "update",
        "replace",
        "delete",
        "adopt",
        "forget",
        "no_op",
        "held_back",
    ];
    assert_eq!(keys(counts), expected.into());
    assert_eq!(
        expected.map(|key| counts[key].as_u64().unwrap()),
        [1, 6, 1, 0, 0, 0, 0, 0],
        "{counts}"
    );
    let drift = &plan["resource_drift"][0];
    assert_eq!(drift["address"], "default/workers/3");
    let replaced = changes
        .iter()
        .find(|one| one["address"] == "default/control/0")
        .unwrap();
    assert_eq!(
        replaced["change"]["actions"],
        serde_json::json!(["create", "delete"])
    );
}

#[test]
fn one_document_in_full() {
    let harness = Harness::applied(TWO);
    harness.edit("\"debian-13\"", "\"debian-12\"");
    harness.edit("\"size\": 2", "\"size\": 1");
    assert_snapshot!(harness.ok("plan --json --target default/db"));
}

#[test]
fn an_empty_state_before_living_instances_adopts_them() {
    for (config, options, state) in [
        (TWO, "", TWO_STATE),
        (AWS, "--sim", ".nstance/prod/us-west-2a.db"),
    ] {
        let harness = Harness::with(config);
        harness.ok(&format!("apply --auto-approve {options}"));
        let before = harness.live();
        std::fs::remove_file(harness.path(state)).unwrap();
        let plan = harness.json(&format!("plan --json {options}"));
        assert!(
            changes(&plan)
                .iter()
                .all(|change| change.ends_with(" no-op importing")),
            "{plan:#}"
        );
        assert_eq!(plan["summary"]["adopt"].as_u64(), Some(before.len() as u64));
        if options.is_empty() {
            assert_snapshot!(harness.ok("plan"));
        }
        let applied = harness.ok(&format!("apply --auto-approve {options}"));
        assert_eq!(
            harness.live(),
            before,
            "nothing was made or deleted: {applied}"
        );
        harness.agrees(options);
        let plan = harness.ok(&format!("plan --detailed-exitcode {options}"));
        assert!(plan.stdout.contains("No changes."), "{plan}");
        harness.ok(&format!("drift {options}"));
    }
}

/// The starter, with a second group whose image doesn't exist.
fn with_a_group_left_out() -> Harness {
    let harness = Harness::starter();
    harness.edit(
        "  // Layers merge",
        "  \"images_of_others\": 0,\n  // Layers merge",
    );
    harness.edit("  \"images_of_others\": 0,\n", "");
    harness.edit(
        "  \"images\": {",
        "  \"images\": {\n    \"plan9\": {\n      \"provider\": \"sim\",\n      \"filters\": [{ \"name\": \"name\", \"values\": [\"plan-9-*\"] }],\n    },",
    );
    harness.edit(
        "\"web\": { \"template\": \"web\", \"size\": 3 },",
        "\"web\": { \"template\": \"web\", \"size\": 3 },\n      \"old\": { \"template\": \"web\", \"size\": 2, \"args\": { \"ImageId\": \"{{ .Image.plan9 }}\" } },",
    );
    harness
}

#[test]
fn an_image_that_is_not_found_fails_those_that_read_it_and_no_others() {
    let harness = with_a_group_left_out();
    let ended = harness.run("plan --detailed-exitcode");
    assert_eq!(ended.code, Some(1), "an error goes before changes");
    assert_snapshot!("left_out_plan", ended);
    let ended = harness.run("plan --json");
    assert_eq!(ended.code, Some(1));
    let plan = ended.json();
    assert_eq!(plan["errored"], true);
    assert_eq!(plan["complete"], false);
    assert_eq!(plan["summary"]["create"], 3);
    let files = harness.files();
    let refused = harness.run("apply --auto-approve");
    assert_eq!(refused.code, Some(1));
    assert_snapshot!("left_out_apply", refused);
    assert_eq!(harness.live().len(), 0, "nothing was done");
    let made: Vec<_> = harness
        .files()
        .into_iter()
        .filter(|file| !files.contains(file))
        .collect();
    assert_eq!(
        made,
        [".nstance/.gitignore", ".nstance/example/local.db.lock"],
        "no state comes of it"
    );
    let applied = harness.run("apply --auto-approve --continue-on-error");
    assert_eq!(applied.code, Some(1), "what is left out is still an error");
    assert_snapshot!("left_out_apply_the_rest", applied);
    assert_eq!(harness.agrees(""), 3);
}

#[test]
fn json_of_a_configuration_that_cannot_be_read_is_still_one_document() {
    let harness = Harness::with("{");
    let ended: Ended = harness.run("plan --json");
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stderr, "");
    let diagnostic = &ended.json()["diagnostics"][0];
    assert!(keys(diagnostic).is_superset(&["severity", "summary", "detail", "range"].into()));
    assert_eq!(
        keys(&diagnostic["range"]),
        ["filename", "start", "end"].into()
    );
    assert_eq!(
        keys(&diagnostic["range"]["start"]),
        ["line", "column", "byte"].into()
    );
}

#[test]
fn a_plan_without_a_cloud_that_can_be_asked_needs_none() {
    let harness = Harness::with(GCP);
    if cfg!(not(feature = "gcp")) {
        let ended = harness.run("plan");
        assert_eq!(ended.code, Some(1));
        assert_snapshot!("no_client", ended);
    }
    harness.edit(
        "\"family\": \"debian-13\"",
        "\"family\": \"debian-13\", \"fallback\": \"debian-13-v20261101\"",
    );
    let ended = harness.ok("plan --refresh=false");
    assert!(ended.stdout.contains("7 to add"), "{ended}");
    assert_eq!(harness.files(), ["nstance.jsonc"]);
}

/// The client of AWS is a feature of the build.
#[cfg(not(feature = "aws"))]
#[test]
fn a_build_without_the_client_says_how_to_get_one() {
    assert_snapshot!(Harness::with(AWS).run("plan"));
}

#[test]
fn quiet_prints_the_plan_and_nothing_else() {
    let harness = Harness::with(TWO);
    let ended = harness.ok("plan --quiet --out saved --target default/web");
    assert_eq!(ended.stderr, "");
}

#[test]
fn flags_of_the_environment_are_said_in_any_of_the_usual_ways() {
    let harness = Harness::starter();
    for (value, is_json) in [
        ("1", true),
        ("true", true),
        ("Yes", true),
        ("0", false),
        ("false", false),
        ("no", false),
        ("", false),
    ] {
        let mut command = harness.command("images");
        command.env("NSTANCE_JSON", value);
        let ended = harness.end("images", command);
        assert_eq!(ended.code, Some(0), "{value}: {ended}");
        assert_eq!(ended.stdout.starts_with('{'), is_json, "{value}: {ended}");
    }
    let mut command = harness.command("images");
    command.env("NSTANCE_SIM", "maybe");
    assert_snapshot!(harness.end("images", command).stderr);
}

/// `nstance plan` read one file, `nstance -c . plan` all of them.
#[test]
fn the_files_of_the_working_folder_are_the_configuration() {
    let harness = Harness::empty();
    let group = |name: &str| {
        format!("group \"default\" \"{name}\" {{\n  template = \"a\"\n  size = 1\n}}\n")
    };
    harness.write(
        "main.hcl",
        "cluster { id = \"c\" }\nshard {\n  id = \"s\"\n  infra {\n    provider = \"sim\"\n    \
         region = \"r\"\n    zone = \"z\"\n  }\n}\ntemplate \"a\" {\n  kind = \"aaa\"\n  \
         arch = \"amd64\"\n  instance_type = \"small\"\n}\n",
    );
    harness.write("nstance.hcl", group("web"));
    harness.write("workers.hcl", group("workers"));
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 2);
    harness.write("prod.hcl", "unused = 1\n");
    harness.ok("plan --var-file prod.hcl");
    std::fs::remove_file(harness.path("prod.hcl")).unwrap();
    for (name, text) in [
        (
            "tsconfig.jsonc",
            "{\"compilerOptions\": {\"strict\": true}}",
        ),
        ("terragrunt.hcl", "terraform {\n  source = \"x\"\n}\n"),
        (
            "groups.jsonc",
            "{\"default\": {\"db\": {\"template\": \"a\", \"size\": 1}}}",
        ),
        // A misspelt key is one.
        ("more.jsonc", "{\"tempaltes\": {}}"),
    ] {
        harness.write(name, text);
        let ended = harness.run("plan");
        assert_eq!(ended.code, Some(1), "{ended}");
        assert_snapshot!(format!("not_ours_{name}"), ended.stderr);
        std::fs::remove_file(harness.path(name)).unwrap();
    }
    // What a file that is missing defines is deleted: the plan says what it was made from.
    std::fs::remove_file(harness.path("workers.hcl")).unwrap();
    let plan = harness.ok("plan --out p.plan");
    let head = "The configuration was read from main.hcl, nstance.hcl.\n";
    assert!(plan.stdout.starts_with(head), "{plan}");
    assert!(harness.ok("show p.plan").stdout.starts_with(head));
}

#[test]
fn a_moved_group_shows_both_names() {
    let harness = Harness::applied(TWO);
    harness.edit("\"db\": {", "\"store\": { \"moved_from\": \"default/db\",");
    let plan = harness.ok("plan");
    assert!(
        plan.stdout
            .contains("~ group = \"default/db\" -> \"default/store\""),
        "{plan}"
    );
}

#[test]
fn a_refresh_says_what_it_records() {
    let harness = Harness::applied(TWO);
    harness.ok("sim set-tag default/web/0 Owner=someone");
    harness.ok("sim delete default/web/1");
    harness.ok("state rm default/db/0");
    let ended = harness.ok("apply --refresh-only --auto-approve");
    for said in ["  = adopt\n", "  . forget\n"] {
        assert!(ended.stdout.contains(said), "{ended}");
    }
    for said in [
        "default/web/0: Refreshing...",
        "default/web/0: Refresh complete",
        "default/web/1: Forgetting...",
        "default/db/0: Adopting...",
    ] {
        assert!(ended.stderr.contains(said), "{said}: {ended}");
    }
}

#[test]
fn files_that_are_no_configuration_or_plan_are_named() {
    let harness = Harness::with(TWO);
    harness.write("README.md", "# Fleet\n");
    for (words, said) in [
        (
            "plan -c README.md",
            "error: not a configuration file: README.md\n",
        ),
        ("apply next.plan", "error: no such plan file: next.plan\n"),
        ("show next.plan", "error: no such plan file: next.plan\n"),
    ] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1));
        assert!(ended.stderr.starts_with(said), "{ended}");
    }
    harness.write("other.jsonc", TWO);
    let twice = harness.run("plan");
    assert_eq!(twice.code, Some(1));
    assert!(
        twice
            .stderr
            .contains("hint: Or name the files to read: -c FILE"),
        "{twice}"
    );
}

#[test]
fn terraforms_count_is_called_size() {
    let harness = Harness::with(TWO);
    harness.edit("\"size\": 3", "\"count\": 3");
    let ended = harness.run("plan");
    assert!(
        ended.stderr.contains("hint: did you mean `size`?"),
        "{ended}"
    );
}

#[test]
fn options_are_taken_with_one_dash_as_in_terraform() {
    let harness = Harness::with(TWO);
    let ended = harness.ok("plan -target=default/web -refresh=false -no-color -out next.plan");
    assert!(ended.stdout.contains("Plan: 3 to add"), "{ended}");
    harness.ok("apply -json next.plan");
    assert_eq!(harness.live().len(), 3);
}

#[test]
fn a_plan_shows_the_waves_of_a_rollout() {
    let harness = Harness::applied(TWO);
    harness.edit(
        "\"size\": 3 }",
        r#""size": 7, "zones": ["local-1b", "local-1a"], "update": {
            "max_surge": 2, "zone_order": "one_at_a_time",
            "canaries": 1, "canary_pause": "10m",
            "health": { "check": "tcp", "port": 22, "min_healthy_time": "30s" },
            "drain": { "command": ["drain.sh", "hidden"] },
            "on_failure": "rollback" } }"#,
    );
    harness.edit("\"debian-13\"", "\"debian-12\"");
    let plan = harness.ok("plan --out next.plan");
    let from = plan.stdout.find("Rollout of").expect("a section");
    assert_snapshot!("waves", &plan.stdout[from..]);
    let saved = harness.ok("show next.plan");
    let to = plan.stdout.find("\nPlan:").expect("the counts");
    assert!(saved.stdout.contains(&plan.stdout[from..to]), "{saved}");
    let json = harness.json("plan --json");
    assert_eq!(
        json["rollout"],
        harness.json("show --json next.plan")["rollout"]
    );
    let mut groups = json["rollout"].as_array().unwrap().iter();
    let web = groups.find(|one| one["group"] == "default/web");
    assert_snapshot!("waves_json", serde_json::to_string_pretty(&web).unwrap());
    assert!(!json["rollout"].to_string().contains("hidden"));
}
