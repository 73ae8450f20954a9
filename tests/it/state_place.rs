//! Where the state is: the option, the environment, the configuration's `state`, the default.

use std::path::Path;

use insta::assert_snapshot;

use crate::harness::{CANARY, Ended, Harness, TWO, TWO_STATE};

/// `TWO` with a `state`.
fn with_state(url: &str) -> String {
    TWO.replacen('{', &format!("{{\n  \"state\": \"{url}\","), 1)
}

fn run_with(harness: &Harness, variable: &str, words: &str) -> Ended {
    let mut command = harness.command(words);
    command.env("NSTANCE_STATE", variable);
    harness.end(words, command)
}

fn states(harness: &Harness) -> Vec<String> {
    let mut files = harness.files();
    let is_database = |name: &str| Path::new(name).extension().is_some_and(|kind| kind == "db");
    files.retain(|name| is_database(name) && !name.ends_with("sim.db"));
    files
}

#[test]
fn the_option_comes_before_the_environment_and_that_before_the_configuration() {
    let harness = Harness::with(&with_state("sqlite:conf/{cluster}-{shard}.db"));
    let ended = harness.ok("apply --auto-approve");
    assert!(!ended.stderr.contains("warning"), "{ended}");
    assert_eq!(states(&harness), ["conf/test-one.db"]);
    assert_eq!(harness.agrees(""), 5);

    let by_variable = run_with(&harness, "sqlite:variable.db", "apply --auto-approve");
    assert_eq!(by_variable.code, Some(0), "{by_variable}");
    assert_eq!(by_variable.stderr.matches("overridden").count(), 1);
    assert_snapshot!("by_variable", by_variable.stderr);
    assert_eq!(states(&harness), ["conf/test-one.db", "variable.db"]);

    let words = "state list --state option.db";
    let by_option = run_with(&harness, "sqlite:variable.db", words);
    assert_snapshot!("by_option", by_option);

    // Standard output has only the document.
    let ended = harness.ok("plan --json --state sqlite:option.db");
    ended.json();
    assert!(ended.stderr.contains("overridden by --state"), "{ended}");
    // It names the same place.
    for words in [
        "plan --state conf/test-one.db",
        "plan --state sqlite:./conf/{cluster}-one.db",
    ] {
        let ended = harness.ok(words);
        assert!(ended.stdout.contains("no changes are needed"), "{ended}");
        assert_eq!(ended.stderr, "", "{ended}");
    }
    // It opens no state.
    for words in ["validate", "graph"] {
        let ended = run_with(&harness, "sqlite:variable.db", words);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended}");
    }
    let quiet = harness.ok("plan -q --state option.db");
    assert_eq!(quiet.stderr, "", "{quiet}");
}

#[test]
fn a_configured_path_is_relative_to_the_configuration() {
    let harness = Harness::empty();
    for shard in ["a", "b"] {
        let config =
            with_state("sqlite:states/{shard}.db").replace("\"one\"", &format!("{shard:?}"));
        harness.write(&format!("{shard}/nstance.jsonc"), config);
    }
    harness.ok("-c a -c b/nstance.jsonc apply --auto-approve");
    assert_eq!(states(&harness), ["a/states/a.db", "b/states/b.db"]);
    // One relative to the working folder is another.
    let ended = harness.run("-c a state list --state sqlite:states/a.db");
    assert_snapshot!(ended);
    let ended = harness.ok("-c a state list --state sqlite:a/states/a.db");
    assert_eq!(ended.stderr, "", "{ended}");
    // Each shard's own is overridden.
    let ended = harness.ok("-c a -c b plan --state sqlite:all/{shard}.db");
    assert_eq!(ended.stderr.matches("overridden by --state").count(), 2);

    // One file is no state of two.
    let path = harness.path("both.db");
    for shard in ["a", "b"] {
        let url = format!("sqlite:{}", path.display());
        let config = with_state(&url).replace("\"one\"", &format!("{shard:?}"));
        harness.write(&format!("{shard}/nstance.jsonc"), config);
    }
    let ended = harness.run("-c a -c b plan");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.stderr.contains("would have one state"), "{ended}");
}

#[test]
fn every_language_and_every_command_reads_it() {
    let yaml = "state: sqlite:conf.db\ncluster: {id: test}\n\
                variables: {size: {type: number}}\n\
                shard: {id: one, infra: {provider: sim, region: r, zone: z}}\n\
                groups: {default: {web: {instance_type: small, size: '${var.size}'}}}\n";
    let hcl = "state = \"sqlite:${local.name}.db\"\nlocals { name = \"conf\" }\n\
               variable \"size\" { type = number }\n\
               cluster { id = \"test\" }\n\
               shard {\n  id = \"one\"\n  infra {\n    provider = \"sim\"\n    region = \"r\"\n    zone = \"z\"\n  }\n}\n\
               group \"web\" {\n  instance_type = \"small\"\n  size = var.size\n}\n";
    for (file, text) in [("nstance.yaml", yaml), ("nstance.hcl", hcl)] {
        let harness = Harness::empty();
        harness.write(file, text);
        harness.ok("apply --auto-approve --var size=2");
        assert_eq!(states(&harness), ["conf.db"]);
        // These need no variables.
        assert_eq!(harness.ok("state list").stdout.lines().count(), 2);
        harness.ok("state mv default/web/1 default/web/7");
        harness.ok("state undo --auto-approve");
        let ended = harness.ok("state backup");
        assert!(ended.stdout.contains("conf.db.backup-"), "{ended}");
        let ended = harness.ok("doctor --var size=2");
        assert!(ended.stdout.contains("conf.backups"), "{ended}");
        let other = if file.ends_with("yaml") {
            "hcl"
        } else {
            "yaml"
        };
        let ended = harness.ok(&format!("convert {file} --to {other} --var size=2"));
        assert!(ended.stdout.contains("conf.db"), "{ended}");
    }
}

#[test]
fn a_password_in_the_configuration_is_refused_and_not_shown() {
    let url = format!("postgresql://me:{CANARY}@db.example.com/nstance");
    let harness = Harness::with(&with_state(&url));
    for words in [
        "validate",
        "validate --json",
        "plan",
        "state list",
        "apply --json",
    ] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
    }
    assert_snapshot!(harness.run("plan"));
    // Nor are they taken if something else is used.
    let ended = harness.run(&format!("plan --state sqlite:{TWO_STATE}"));
    assert_eq!(ended.code, Some(1), "{ended}");
    // Too short to be masked by itself.
    harness.configure(&with_state("postgresql://db/nstance?user=me&password=pw"));
    let ended = harness.run("validate");
    assert!(!ended.stderr.contains("pw"), "{ended}");
    assert!(
        ended.stderr.contains("has a password in its URL"),
        "{ended}"
    );
}

#[test]
fn a_configured_state_that_is_not_built_in() {
    let harness = Harness::with(&with_state("s3://states.example.com/nstance"));
    harness.ok("validate");
    assert_snapshot!("not_built_in", harness.run("plan"));
    let shown = harness.ok("plan --state sqlite:one.db").stderr;
    assert_snapshot!("instead_of_one_that_is_not_built_in", shown);
    harness.configure(&with_state("mysql://db.example.com/nstance"));
    assert_snapshot!("no_kind", harness.run("plan"));
}
