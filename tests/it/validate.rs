//! `validate`.

use insta::assert_snapshot;

use crate::harness::{AWS, Harness, STARTER, TWO};

#[test]
fn a_good_configuration_is_valid_whatever_its_cloud() {
    for config in [STARTER, TWO, AWS] {
        let harness = Harness::with(config);
        let ended = harness.ok("validate");
        assert_eq!(ended.stderr, "");
        assert_eq!(harness.files(), ["nstance.jsonc"]);
    }
    assert_snapshot!(Harness::with(TWO).ok("validate --json"));
}

#[test]
fn everything_wrong_is_told_in_one_run_from_the_top() {
    let harness = Harness::starter();
    harness.edit("\"zone\": \"local-1a\"", "\"zonn\": \"local-1a\"");
    harness.edit("\"kind\": \"web\"", "\"kind\": \"Website\"");
    harness.edit(
        "\"template\": \"web\", \"size\": 3",
        "\"template\": \"wbe\", \"size\": -3",
    );
    harness.edit("{{ .Image.debian }}", "{{ .Image.debain }}");
    let ended = harness.run("validate");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    let document = harness.run("validate --json").json();
    let lines: Vec<_> = document["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["range"]["start"]["line"].as_u64())
        .collect();
    assert!(lines.len() >= 4, "{document:#}");
    assert!(lines.is_sorted(), "{lines:?}");
}

#[test]
fn vars_come_from_the_command_line_and_the_environment() {
    let harness = Harness::starter();
    harness.edit("\"vars\": { \"greeting\": \"Hello\" },", "\"vars\": {},");
    harness.edit(
        "  // Layers merge",
        "  \"vars\": { \"greeting\": \"Hello\" },\n  // Layers merge",
    );
    let userdata = |words: &str, environment: Option<&str>| {
        let mut command = harness.command(words);
        command.env("NSTANCE_VAR_greeting", environment.unwrap_or("Servus"));
        if environment.is_none() {
            command.env_remove("NSTANCE_VAR_greeting");
        }
        let document = harness.end(words, command).json();
        document["instances"][0]["userdata"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(userdata("render --json", None).contains("Hello from"));
    assert!(userdata("render --json", Some("Ahoi")).contains("Ahoi from"));
    assert!(userdata("render --json --var greeting=Moin", Some("Ahoi")).contains("Moin from"));
}
