//! `images`: what each resolves to, where from, how old.

use insta::assert_snapshot;

use crate::harness::{AWS, Harness, STARTER, STARTER_STATE};

#[test]
fn looked_up_then_from_the_cache_then_anew() {
    let harness = Harness::with(STARTER);
    assert_snapshot!(harness.ok("images"));
    harness.ok("apply --auto-approve");
    assert_snapshot!(harness.ok("images"));
    harness.ok(
        "sim image publish debian-13-amd64-20261125-1 --id ami-new --created 2026-11-25T00:00:00Z",
    );
    assert!(!harness.ok("images").stdout.contains("ami-new"));
    assert_snapshot!(harness.ok("images --refresh-images --json"));
}

#[test]
fn a_look_up_that_fails_leaves_the_cache_however_old_then_the_fallback() {
    let harness = Harness::applied(STARTER);
    let fail = "\"zone\": \"local-1a\",\n      \"options\": { \"fail\": [{ \"operation\": \"images\", \"error\": \"denied\", \"count\": 999 }] },";
    harness.edit("\"zone\": \"local-1a\",", fail);
    let ended = harness.ok("images --now 2027-03-01T00:00:00Z");
    assert_snapshot!(ended);
    let plan = harness.ok("plan --now 2027-03-01T00:00:00Z --detailed-exitcode");
    assert!(plan.stdout.contains("No changes."), "{plan}");
    assert_snapshot!(plan);
    std::fs::remove_file(harness.path(STARTER_STATE)).unwrap();
    let ended = harness.run("images");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    harness.edit(
        "\"provider\": \"sim\",\n      \"filters\"",
        "\"provider\": \"sim\", \"fallback\": \"ami-fallback\",\n      \"filters\"",
    );
    assert_snapshot!(harness.ok("images"));
}

#[test]
fn existing_instances_may_keep_theirs() {
    let harness = Harness::with(STARTER);
    harness.edit(
        "\"provider\": \"sim\",\n      \"filters\"",
        "\"provider\": \"sim\", \"on_newer\": \"new_only\",\n      \"filters\"",
    );
    harness.ok("apply --auto-approve");
    harness.ok(
        "sim image publish debian-13-amd64-20261125-1 --id ami-new --created 2026-11-25T00:00:00Z",
    );
    assert_eq!(
        harness
            .run("plan --refresh-images --detailed-exitcode")
            .code,
        Some(0)
    );
    harness.edit("\"size\": 3", "\"size\": 4");
    harness.ok("apply --auto-approve --refresh-images");
    let document = harness.json("show --json");
    let images: Vec<_> = document["instances"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["args"]["ImageId"].as_str().unwrap())
        .collect();
    assert_eq!(
        images.iter().filter(|image| **image == "ami-new").count(),
        1,
        "{images:?}"
    );
    assert_eq!(images[3], "ami-new");
}

/// The source document: the cache persists until the next successful look-up.
#[test]
fn a_changed_look_up_that_finds_nothing_keeps_the_cached_answer() {
    let harness = Harness::with(AWS);
    harness.ok("apply --sim --auto-approve");
    harness.edit("debian-13-arm64-*", "no-such-image-*");
    let plan = harness.run("plan --sim --refresh-images");
    assert_eq!(plan.code, Some(0), "{plan}");
    assert!(
        plan.stderr
            .contains("is from the cache: its look-up failed"),
        "{plan}"
    );
    assert!(plan.stderr.contains("by its earlier look-up"), "{plan}");
    assert!(plan.stdout.contains("no changes are needed"), "{plan}");
}
