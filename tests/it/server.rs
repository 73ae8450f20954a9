//! Configurations of the Nstance server: what is its own, and what a planner must not do with it.

use insta::assert_snapshot;

use crate::harness::{AWS, Harness, TWO};

/// Groups of the server's NAT instances are never planned, adopted or deleted, and are no drift.
#[test]
fn the_group_that_nat_names_is_left_alone() {
    let harness = Harness::applied(TWO);
    let before = harness.live();
    // `db` becomes the server's, with instances that we made.
    harness.edit(
        "\"db\": { \"template\": \"vm\", \"size\": 2, \"instance_type\": \"large\" }",
        "\"db\": { \"template\": \"vm\", \"instance_type\": \"large\" }",
    );
    harness.edit(
        "\"groups\": {",
        "\"nat\": { \"default\": { \"group\": \"db\", \"instance_type_ladder\": [\"large\"] } },\n  \"groups\": {",
    );
    for words in ["plan --detailed-exitcode", "drift", "apply --auto-approve"] {
        let ended = harness.ok(words);
        assert!(!ended.stdout.contains("default/db"), "{ended}");
    }
    harness.ok("destroy --auto-approve");
    let left: Vec<_> = harness.live().into_iter().collect();
    let of_db: Vec<_> = before
        .into_iter()
        .filter(|[address, ..]| address.starts_with("default/db"))
        .collect();
    assert_eq!(left, of_db);
}

#[test]
fn a_group_that_lost_its_size_is_an_error_and_no_deletion() {
    let harness = Harness::applied(TWO);
    harness.edit("\"size\": 2, ", "");
    let ended = harness.run("plan");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    let refused = harness.run("apply --auto-approve --continue-on-error");
    assert!(!refused.stdout.contains("will be destroyed"), "{refused}");
    assert_eq!(harness.live().len(), 5);
    // To destroy all, it needs no size.
    harness.ok("destroy --auto-approve");
    assert_eq!(harness.live().len(), 0);
}

/// The server's dynamic groups, in a file of the folder that isn't part of the configuration.
#[test]
fn dynamic_groups_are_laid_over_the_configuration() {
    let harness = Harness::applied(TWO);
    harness.write(
        "groups.jsonc",
        "{ \"default\": { \"db\": { \"template\": \"other\", \"size\": 3 } }, \
           \"blue\": { \"web\": { \"template\": \"vm\", \"size\": 1 } } }",
    );
    let without = harness.run("plan");
    assert!(
        without
            .stderr
            .contains("is a groups file of the Nstance server"),
        "{without}"
    );
    assert!(without.stderr.contains("--groups"), "{without}");
    let plan = harness.ok("--groups groups.jsonc plan");
    assert!(
        plan.stdout
            .contains("Plan: 2 to add, 0 to change, 0 to destroy."),
        "{plan}"
    );
    harness.ok("--groups groups.jsonc apply --auto-approve");
    assert_eq!(harness.live().len(), 7);
    // Of several such files, the one that is named counts.
    harness.write("mine.jsonc", harness.read("groups.jsonc"));
    let both = harness.run("--groups mine.jsonc plan");
    assert!(
        both.stderr.contains("groups.jsonc is a groups file"),
        "{both}"
    );
    let missing = harness.run("-c nstance.jsonc --groups none.jsonc plan");
    assert_eq!(missing.code, Some(1));
    assert!(
        missing
            .stderr
            .contains("can't read the groups file none.jsonc"),
        "{missing}"
    );
    harness.write("flat.jsonc", "[1]");
    let flat = harness.run("-c nstance.jsonc --groups flat.jsonc validate");
    assert!(
        flat.stderr.contains("a groups file must be an object"),
        "{flat}"
    );
}

#[test]
fn a_ca_certificate_is_read_from_a_file_or_the_servers_storage() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"size\": 3",
        "\"size\": 3, \"userdata\": \"#!/bin/sh\\ncat <<E\\n{{ .Cluster.CACert }}E\\n\"",
    );
    let userdata = |words: &str| {
        let ended = harness.ok(&format!("{words} render --userdata default/web/0"));
        ended.stdout
    };
    assert!(userdata("").contains("ca-cert-of-test"));
    harness.write("pki/cluster/ca.crt", "PEM of the server\n");
    harness.edit(
        "\"cluster\": { \"id\": \"test\" }",
        "\"cluster\": { \"id\": \"test\", \"storage\": { \"provider\": \"file\", \"bucket\": \"pki\" } }",
    );
    assert!(userdata("").contains("PEM of the server"));
    harness.write("own.pem", "PEM of our own\n");
    harness.edit(
        "\"id\": \"test\",",
        "\"id\": \"test\", \"ca_cert\": \"file:own.pem\",",
    );
    assert!(userdata("").contains("PEM of our own"));
    harness.edit("file:own.pem", "file:lost.pem");
    let lost = harness.run("validate");
    assert_eq!(lost.code, Some(1));
    assert!(
        lost.stderr.contains("the CA certificate can't be read"),
        "{lost}"
    );
}

/// What the server loads is a warning at most; with `--strict` it is an error.
#[test]
fn warnings_of_a_configuration_are_errors_if_asked_for() {
    let harness = Harness::with(TWO);
    harness.edit("\"size\": 3", "\"Size\": 3, \"owner\": \"core\"");
    let told = harness.ok("validate");
    assert_eq!(told.stderr.matches("warning: ").count(), 2, "{told}");
    let strict = harness.run("validate --strict");
    assert_eq!(strict.code, Some(1));
    assert_eq!(strict.stderr.matches("error: ").count(), 2, "{strict}");
    // Those of templates, too.
    let harness = Harness::with(TWO);
    harness.edit("\"debian-13\"", "\"{{ .Cluster.CACert }}\"");
    assert!(
        harness
            .ok("validate")
            .stderr
            .contains("warning: the cluster's CA certificate")
    );
    let strict = harness.run("validate --strict");
    assert!(
        strict
            .stderr
            .contains("error: the cluster's CA certificate"),
        "{strict}"
    );
}

#[test]
fn an_instance_that_a_cloud_cannot_make_is_left_out() {
    let harness = Harness::with(AWS);
    harness.edit("\"{{ .Image.debian_13_arm64 }}\"", "\"{{ .Image.lost }}\"");
    harness.ok("validate");
    let plan = harness.run("plan --sim");
    assert_eq!(plan.code, Some(1));
    assert!(
        plan.stderr
            .contains("the `ImageId` of group `default/workers` is empty"),
        "{plan}"
    );
    harness.edit("\"{{ .Image.lost }}\"", "\"ami-1\"");
    harness.edit("\"instance_type\": \"m7g.large\",", "");
    harness.ok("validate");
    let plan = harness.run("plan --sim");
    assert_eq!(plan.code, Some(1));
    assert!(plan.stderr.contains("has no `instance_type`"), "{plan}");
}

/// What the server renders itself is checked, too.
#[test]
fn templates_of_certificates_and_of_the_servers_files_are_checked() {
    for (text, wanted) in [
        ("{{ .Instance.Nmae }}", "has no field `Nmae`"),
        ("{{ if }}", "missing value"),
        ("{{ .Nonce }}", "a file can't read `.Nonce`"),
        ("{{ .Instance.IP4 }}", ""),
    ] {
        let sections = [
            format!(
                "\"certificates\": {{ \"c\": {{ \"kind\": \"client\", \"dns\": [\"{text}\"] }} }}"
            ),
            format!(
                "\"server\": {{ \"files\": {{ \"f.env\": {{ \"kind\": \"env\", \"template\": {{ \"A\": \"{text}\" }} }} }} }}"
            ),
        ];
        for section in sections {
            let harness = Harness::with(TWO);
            harness.edit("\"groups\": {", &format!("{section},\n  \"groups\": {{"));
            let ended = harness.run("validate");
            assert_eq!(ended.code == Some(0), wanted.is_empty(), "{text}: {ended}");
            assert!(ended.stderr.contains(wanted), "{ended}");
        }
    }
    // The server's own certificate is made before there is an instance.
    let harness = Harness::with(TWO);
    let own = "\"certificates\": { \"ca\": { \"cn\": \"{{ nope }}\" } }";
    harness.edit("\"groups\": {", &format!("{own},\n  \"groups\": {{"));
    harness.ok("validate");
}
