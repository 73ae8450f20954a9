//! `.Nonce`: made when an instance is created, and nowhere to be seen.

use insta::assert_snapshot;

use crate::harness::{CANARY, Harness, TWO};

/// Two groups, of which one reads its nonce.
fn reading() -> Harness {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"size\": 2, \"instance_type\": \"large\"",
        "\"size\": 2, \"instance_type\": \"large\", \"args\": { \"Key\": \"k {{ .Nonce }}\" }, \
         \"userdata\": \"#!/bin/sh\\njoin {{ .Nonce }} {{ .Nonce }}\\n\"",
    );
    harness
}

/// The same, with a command that makes nonces: a script that `sh` reads.
fn signing(script: &str) -> Harness {
    let harness = reading();
    harness.edit(
        "\"groups\": {",
        "\"nonce_command\": [\"sh\", \"sign\"],\n  \"groups\": {",
    );
    harness.write("sign", script);
    harness
}

/// What each instance of a group was given, as the cloud has it.
fn given(harness: &Harness, group: &str) -> Vec<String> {
    let live = harness.live().into_iter();
    let of_group = live.filter(|[address, ..]| address.starts_with(group));
    let details = of_group.map(|[_, provider_id, _]| {
        let shown = harness.run(&format!("sim show {provider_id} --json"));
        shown.stdout
    });
    details.collect()
}

#[test]
fn each_new_instance_gets_its_own_and_nobody_sees_it() {
    let harness = signing(&format!(
        "echo called >>calls\n\
             printf '%s %s %s %s\\n' \"$NSTANCE_CLUSTER\" \"$NSTANCE_SHARD\" \"$NSTANCE_TENANT/$NSTANCE_GROUP\" \"$NSTANCE_EXPIRES_IN\" >>told\n\
             printf '%s' \"$NSTANCE_CONFIG_HASH\" >hash\n\
             echo \"{CANARY}.$NSTANCE_INSTANCE_ID\"\n"
    ));
    let plan = harness.ok("plan");
    assert!(plan.stdout.contains("nonce-of-"), "{plan}");
    assert!(!harness.path("calls").exists());
    // The harness fails if anything prints the canary.
    harness.ok("apply --auto-approve --json");
    assert_eq!(harness.read("calls").len(), 2 * "called\n".len());
    assert_eq!(
        String::from_utf8(harness.read("told")).unwrap(),
        "test one default/db 300\n".repeat(2)
    );
    assert!(harness.read("hash").starts_with(b"sha256:"));
    // It neither changes nor drifts.
    let again = harness.ok("plan --detailed-exitcode");
    assert!(again.stdout.contains("no changes are needed"), "{again}");
    harness.ok("drift");
    for file in harness.bytes(crate::harness::TWO_STATE).iter().flatten() {
        let mut windows = file.windows(CANARY.len());
        assert!(!windows.any(|window| window == CANARY.as_bytes()));
    }
    // A state that is lost: what runs is adopted as it is.
    std::fs::remove_file(harness.path(crate::harness::TWO_STATE)).unwrap();
    harness.ok("apply --auto-approve");
    assert_eq!(harness.read("calls").len(), 2 * "called\n".len());
    assert_eq!(harness.agrees(""), 5);
    let harness = harness.showing_secrets();
    for given in given(&harness, "default/db") {
        assert_eq!(given.matches(CANARY).count(), 3, "{given}");
        assert!(!given.contains("nonce-of-"), "{given}");
    }
}

#[test]
fn a_command_that_fails_fails_that_creation_before_the_cloud_is_asked() {
    let harness = signing("exit 3\n");
    let failed = harness.run("apply --auto-approve");
    assert_eq!(failed.code, Some(1));
    assert_snapshot!(failed);
    let live = harness.live();
    assert!(
        live.iter()
            .all(|[address, ..]| address.starts_with("default/web/"))
    );
    assert_eq!(live.len(), 3);
    // The option comes before the configuration.
    let other = harness.run("--nonce-command true apply --auto-approve");
    assert!(
        other
            .stderr
            .contains("the nonce command printed nothing: true"),
        "{other}"
    );
    // The next one goes on.
    harness.write("sign", "echo signed\n");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn without_a_command_the_embedded_cloud_gets_the_placeholder() {
    let harness = reading();
    harness.ok("apply --auto-approve");
    for given in given(&harness, "default/db") {
        assert!(given.contains("nonce-of-"), "{given}");
    }
    assert!(harness.ok("plan").stdout.contains("no changes are needed"));
}

#[test]
fn a_template_may_print_it_and_do_nothing_else_with_it() {
    for (text, is_valid) in [
        ("{{ .Nonce }}", true),
        ("{{ if .Nonce }}{{ .Nonce }}{{ end }}", true),
        ("{{ len .Nonce }}", false),
        ("{{ slice .Nonce 0 3 }}", false),
        ("{{ if eq .Nonce \\\"x\\\" }}a{{ else }}b{{ end }}", true),
        ("{{ printf \\\"%x\\\" .Nonce }}", false),
    ] {
        let harness = Harness::with(TWO);
        harness.edit(
            "\"size\": 2, \"instance_type\": \"large\"",
            &format!(
                "\"size\": 2, \"instance_type\": \"large\", \"userdata\": \"#!/bin/sh\\n{text}\\n\""
            ),
        );
        let ended = harness.run("validate");
        assert_eq!(ended.code == Some(0), is_valid, "{text}: {ended}");
        if !is_valid {
            assert!(
                ended.stderr.contains("is used for more than printing"),
                "{ended}"
            );
        }
    }
}

#[test]
fn on_a_real_cloud_without_a_command_new_instances_are_left_out() {
    let harness = Harness::with(crate::harness::AWS);
    harness.edit(
        "\"size\": 4 }",
        "\"size\": 4, \"userdata\": \"#!/bin/sh\\njoin {{ .Nonce }} {{ .Cluster.CACert }}\\n\" }",
    );
    harness.edit("\"{{ .Image.debian_13_arm64 }}\"", "\"ami-1\"");
    let plan = harness.run("plan --refresh=false");
    assert_eq!(plan.code, Some(1));
    assert!(
        plan.stderr
            .contains("reads `.Nonce`, and nothing makes one"),
        "{plan}"
    );
    assert!(plan.stderr.contains("--nonce-command"), "{plan}");
    let plan = harness.run("plan --refresh=false --nonce-command ./sign");
    assert!(
        plan.stderr.contains("`.Cluster.CACert`, which isn't known"),
        "{plan}"
    );
    // What is only rendered has the placeholder.
    assert!(
        harness
            .ok("render --userdata default/workers/0")
            .stdout
            .contains("nonce-of-")
    );
}
