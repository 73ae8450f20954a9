//! `init`.

use insta::assert_snapshot;

use crate::harness::{Harness, STARTER};

#[test]
fn it_writes_a_configuration_that_works() {
    let harness = Harness::empty();
    assert_snapshot!(harness.ok("init"));
    assert_eq!(harness.files(), ["nstance.jsonc"]);
    assert_eq!(harness.read("nstance.jsonc"), STARTER.as_bytes());
    assert_eq!(harness.ok("validate").stderr, "");
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 3);
}

#[test]
fn it_makes_the_folder_that_it_is_given() {
    let harness = Harness::empty();
    assert_snapshot!(harness.ok("init fleets/first"));
    harness.ok("-c fleets/first validate");
    let quiet = harness.ok("init second --quiet");
    assert_eq!(quiet.stdout + &quiet.stderr, "");
}

#[test]
fn it_writes_over_nothing() {
    let harness = Harness::with("// mine");
    let ended = harness.run("init");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    assert_eq!(harness.read("nstance.jsonc"), b"// mine");
}

#[test]
fn what_is_made_beside_a_configuration_is_ignored_by_git() {
    let harness = Harness::starter();
    harness.ok("apply --auto-approve");
    assert_eq!(harness.read(".nstance/.gitignore"), b"*\n");
    // Whoever removed it doesn't want it.
    std::fs::remove_file(harness.path(".nstance/.gitignore")).unwrap();
    harness.ok("apply --auto-approve");
    assert!(!harness.path(".nstance/.gitignore").exists());
    let sim = Harness::starter();
    sim.ok("sim image publish debian-13-amd64-1");
    assert_eq!(sim.read(".nstance/.gitignore"), b"*\n");
}
