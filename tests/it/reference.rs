//! `examples/reference`: one configuration in three languages.

use std::path::Path;

use nstance::config::variables::Given;
use nstance::load::load;

use crate::harness::Harness;

const LANGUAGES: [&str; 3] = ["jsonc", "yaml", "hcl"];

/// The same for values that stand at different places.
fn without_places(debug: &str) -> String {
    let mut text = String::new();
    let mut rest = debug;
    while let Some(at) = rest.find("Span { source: ") {
        text.push_str(&rest[..at]);
        let end = rest[at..].find('}').unwrap();
        rest = &rest[at + end + 1..];
    }
    text + rest
}

#[test]
fn three_languages_give_one_configuration() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/reference");
    let configs = LANGUAGES.map(|language| {
        let loaded = load(Some(Path::new(language)), &folder, &Given::default());
        assert!(
            loaded.findings.is_empty(),
            "{language}: {:?}",
            loaded.findings
        );
        let secrets: Vec<String> = loaded.secrets.0.iter().map(ToString::to_string).collect();
        assert_eq!(secrets, ["not-a-secret"], "{language}");
        without_places(&format!("{:?}", loaded.config.unwrap()))
    });
    assert!(configs[0].len() > 5_000);
    for (language, config) in LANGUAGES.iter().zip(&configs) {
        let same = configs[0]
            .bytes()
            .zip(config.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        let near =
            |text: &str| text[same.saturating_sub(60)..(same + 60).min(text.len())].to_owned();
        assert_eq!(near(&configs[0]), near(config), "{language}");
        assert_eq!(configs[0].len(), config.len(), "{language}");
    }
}

#[test]
fn three_languages_give_one_plan_byte_for_byte() {
    let given = ["", " --var release=2027.1"];
    for words in ["plan", "plan --json", "render --json", "graph"] {
        for given in given {
            let plans = LANGUAGES.map(|language| {
                let harness = Harness::example("reference");
                let words = format!("-c {language} {words}{given}");
                let ended = harness.ok(&words);
                assert_eq!(ended.stderr, "", "{ended}");
                ended.stdout
            });
            assert!(plans[0].len() > 100, "{words}");
            assert_eq!(plans[0], plans[1], "{words}, YAML");
            assert_eq!(plans[0], plans[2], "{words}, HCL");
        }
    }
}

/// Each of the three in the other two languages is the same configuration, once nothing in it is
/// sensitive.
#[test]
fn what_is_converted_stays_the_same() {
    let harness = Harness::example("reference");
    for from in LANGUAGES {
        let source = format!("{from}/nstance.{from}");
        let text = String::from_utf8(harness.read(&source)).unwrap();
        let refused = harness.run(&format!("convert {source} --to yaml"));
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(refused.stderr.contains("sensitive values"), "{refused}");
        let open = ["sensitive: true", "\"sensitive\": true", "sensitive = true"]
            .iter()
            .fold(text, |text, yes| {
                text.replace(yes, &yes.replace("true", "false"))
            });
        harness.write(&source, &open);
        for to in LANGUAGES.into_iter().filter(|to| *to != from) {
            let made = format!("{from}/made.{to}");
            harness.ok(&format!("convert {source} --to {to} --out {made}"));
            let config = |file: &str| {
                let loaded = load(Some(Path::new(file)), &harness.path(""), &Given::default());
                assert!(loaded.findings.is_empty(), "{file}: {:?}", loaded.findings);
                without_places(&format!("{:?}", loaded.config.unwrap()))
            };
            assert_eq!(config(&source), config(&made), "{from} to {to}");
            // The clock goes on with each command.
            let words = "--now 2026-11-21T00:00:00Z plan --json";
            let plan = |file: &str| {
                let ended = harness.ok(&format!("-c {file} {words}"));
                ended.stdout.replace(file, "FILE")
            };
            assert_eq!(plan(&source), plan(&made), "{from} to {to}");
            std::fs::remove_file(harness.path(&made)).unwrap();
        }
    }
}

#[test]
fn it_applies_and_stays_as_it_is() {
    let harness = Harness::example("reference");
    harness.ok("-c hcl apply --auto-approve");
    assert!(
        harness
            .ok("-c hcl plan")
            .stdout
            .contains("no changes are needed")
    );
    let replaced = harness.ok("-c hcl plan --var release=2027.1");
    // `replace_on` wants new instances, `prevent_destroy` doesn't.
    assert!(replaced.stdout.contains("Held back:"), "{replaced}");
}

/// Every key of the schema stands in it.
#[test]
fn every_key_is_used() {
    let text = include_str!("../../examples/reference/jsonc/nstance.jsonc");
    for key in [
        "cluster",
        "id",
        "slug",
        "fqdn",
        "storage",
        "secrets",
        "leader_election",
        "state",
        "shard",
        "infra",
        "provider",
        "region",
        "zone",
        "options",
        "subnet_pools",
        "dynamic_subnet_pools",
        "advertise",
        "health_addr",
        "election_addr",
        "registration_addr",
        "operator_addr",
        "agent_addr",
        "bind",
        "leader_network",
        "request_timeout",
        "create_rate_limit",
        "default_drain_timeout",
        "image_refresh_interval",
        "expiry",
        "eligible_age",
        "forced_age",
        "ondemand_age",
        "health_check_interval",
        "shutdown_timeout",
        "garbage_collection",
        "error_exit_jitter",
        "load_balancers",
        "target_group_arns",
        "instance_group_name",
        "images",
        "filters",
        "name",
        "values",
        "owners",
        "family",
        "project",
        "sort",
        "order",
        "fallback",
        "on_newer",
        "certificates",
        "vars",
        "defaults",
        "args",
        "userdata",
        "source",
        "encoding",
        "content",
        "compress",
        "templates",
        "kind",
        "arch",
        "instance_type",
        "subnet_pool",
        "size",
        "files",
        "template",
        "key",
        "deliver",
        "path",
        "permissions",
        "owner",
        "groups",
        "groups_form",
        "drain_timeout",
        "update",
        "max_surge",
        "max_unavailable",
        "max_creating",
        "max_deleting",
        "canaries",
        "canary_pause",
        "health",
        "check",
        "port",
        "status",
        "command",
        "min_healthy_time",
        "interval",
        "timeout",
        "retries",
        "deadline",
        "drain",
        "on_failure",
        "max_failures",
        "zone_order",
        "opportunistic",
        "lifecycle",
        "prevent_destroy",
        "ignore_changes",
        "replace_on",
        "restart_on",
        "labels",
        "protect",
        "moved_from",
        "zones",
        "overrides",
        "depends_on",
        "functions",
        "templates_lib",
        "parts",
        "type",
        "filename",
        "merge",
        "destroy_budget",
        "count",
        "percent",
        "strict",
        "variables",
        "$schema",
    ] {
        assert!(text.contains(&format!("\"{key}\":")), "{key}");
    }
}

/// The examples are valid for today's server but for what is only ours.
#[test]
fn the_server_would_read_all_but_what_is_ours() {
    let harness = Harness::example("reference");
    let mut told = std::collections::BTreeSet::new();
    let ended = harness.json("-c jsonc validate --server-compatible --json");
    for finding in ended["diagnostics"].as_array().unwrap() {
        assert_eq!(finding["severity"], "warning", "{finding}");
        told.insert(finding["summary"].as_str().unwrap().to_owned());
    }
    let told: Vec<String> = told.into_iter().collect();
    insta::assert_snapshot!(told.join("\n"));
}
