//! `convert`.

use insta::assert_snapshot;

use crate::harness::{Harness, STARTER};

#[test]
fn what_is_converted_plans_the_same() {
    for (name, config) in [
        ("nstance.jsonc", STARTER),
        ("nstance.yaml", include_str!("../good/quickstart.yaml")),
    ] {
        for to in ["jsonc", "yaml", "hcl"] {
            let harness = Harness::empty();
            harness.write(name, config);
            let target = format!("fleet.{to}");
            let silent = harness.ok(&format!("convert --to {to} --out {target}"));
            assert_eq!(silent.stdout + &silent.stderr, "");
            let printed = harness.ok(&format!("convert --to {to}"));
            assert_eq!(printed.stdout.as_bytes(), harness.read(&target));
            harness.ok(&format!("-c {target} convert --to yaml --out again.yaml"));
            let again = harness.read("again.yaml");
            for words in ["render --json", "plan --json"] {
                let said = |name: &str, config: &[u8]| {
                    let harness = Harness::empty();
                    harness.write(name, config);
                    harness.ok(words).stdout.replace(name, "FILE")
                };
                let expected = said(name, config.as_bytes());
                assert_eq!(said("nstance.yaml", &again), expected, "{to}");
            }
        }
    }
}

#[test]
fn one_file_is_converted_at_a_time() {
    let harness = Harness::with(STARTER);
    harness.write("b.jsonc", "{}");
    let ended = harness.run("-c . convert --to yaml");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    let several = harness.run("-c nstance.jsonc -c b.jsonc convert --to yaml");
    assert_eq!(several.code, Some(1));
    assert!(several.stderr.contains("one by one"), "{several}");
}

#[test]
fn paths_that_start_elsewhere_are_told_of() {
    let harness = Harness::with(STARTER);
    harness.write("a.yaml", "include: b.yaml\n");
    harness.write("b.yaml", "{}");
    harness.write("elsewhere/x", "");
    let told = |words: &str| harness.ok(words).stderr.contains("paths in it");
    assert!(!told("convert a.yaml --to jsonc --out c.jsonc"));
    assert!(told("convert a.yaml --to jsonc --out elsewhere/c.jsonc"));
    assert!(!told("convert b.yaml --to jsonc --out elsewhere/d.jsonc"));
}

#[test]
fn what_cannot_be_converted_writes_nothing() {
    let harness = Harness::empty();
    let asked = "variable \"id\" {}\nvars = { \"a-${var.id}\" = upper(var.id) }\n";
    harness.write("a.hcl", asked);
    harness.write("out.yaml", "mine");
    let ended = harness.run("-c a.hcl convert --to yaml --out out.yaml");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    assert_eq!(harness.read("out.yaml"), b"mine");
    assert_snapshot!(harness.run("-c a.hcl convert --to toml"));
}

#[test]
fn what_became_a_value_is_said() {
    let harness = Harness::empty();
    let asked = "variable \"id\" {}\nlocals { b = 1 }\nvars = { \"a-${var.id}\" = upper(var.id), c = local.b }\n";
    harness.write("a.hcl", asked);
    assert_snapshot!(harness.ok("convert a.hcl --to jsonc --var id=x"));
    let quiet = harness.ok("convert a.hcl --to jsonc --var id=x -q");
    assert_eq!(quiet.stderr, "");
}

/// A file of a folder, whose variables and blocks are in others of it.
#[test]
fn a_part_of_a_configuration_is_converted_as_such() {
    let harness = Harness::empty();
    harness.write(
        "fleet/variables.hcl",
        "variable \"region\" { default = \"r\" }\n",
    );
    harness.write("fleet/locals.hcl", "locals { sizes = { small = 2 } }\n");
    let groups = "\
        # Ours.\n\
        group \"web\" {\n  size = local.sizes.small\n  vars = { R = upper(var.region) }\n}\n";
    harness.write("fleet/groups.hcl", groups);
    assert_snapshot!("alone", harness.run("convert fleet/groups.hcl --to yaml"));
    assert_snapshot!(
        "as_a_part",
        harness.ok("-c fleet convert fleet/groups.hcl --to yaml")
    );
    // And back, where the other files are what they were.
    harness.ok("-c fleet convert fleet/groups.hcl --to yaml --out fleet/nstance-groups.yaml");
    std::fs::remove_file(harness.path("fleet/groups.hcl")).unwrap();
    let back = harness.ok("-c fleet convert fleet/nstance-groups.yaml --to hcl");
    assert_snapshot!("and_back", back);
    // A configuration that it is no part of says nothing about it.
    harness.write("other.jsonc", "{}");
    let apart = harness.run("-c other.jsonc convert fleet/variables.hcl --to jsonc");
    assert_eq!(apart.code, Some(0), "{apart}");
}
