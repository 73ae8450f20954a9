//! `convert`.

use insta::assert_snapshot;

use crate::harness::{Harness, STARTER};

#[test]
fn what_is_converted_plans_the_same() {
    for (name, config) in [
        ("nstance.jsonc", STARTER),
        ("nstance.yaml", include_str!("../good/quickstart.yaml")),
        ("nstance.hcl", include_str!("../good/quickstart.hcl")),
    ] {
        for to in ["jsonc", "yaml", "hcl"] {
            let harness = Harness::empty();
            harness.write(name, config);
            let target = format!("fleet.{to}");
            let silent = harness.ok(&format!("convert --to {to} --out {target} -q"));
            assert_eq!(silent.stdout + &silent.stderr, "");
            let printed = harness.ok(&format!("convert {name} --to {to} -q"));
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
fn several_configurations_are_refused() {
    let harness = Harness::with(STARTER);
    harness.write("b.jsonc", "{}");
    let ended = harness.run("-c nstance.jsonc -c b.jsonc convert --to yaml");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
}

#[test]
fn paths_that_start_elsewhere_are_reported() {
    let harness = Harness::empty();
    harness.write("a.yaml", "userdata: {source: url, url: \"file:x\"}\n");
    harness.write("b.yaml", "{}");
    harness.write("elsewhere/x", "");
    let reported = |words: &str| harness.ok(words).stderr.contains("`file:` paths");
    assert!(!reported("convert a.yaml --to jsonc --out c.jsonc"));
    assert!(reported(
        "convert a.yaml --to jsonc --out elsewhere/c.jsonc"
    ));
    assert!(!reported(
        "convert b.yaml --to jsonc --out elsewhere/d.jsonc"
    ));
}

#[test]
fn what_cannot_be_converted_writes_nothing() {
    let harness = Harness::empty();
    harness.write("a.hcl", "variable \"id\" {}\nvars = { a = var.id }\n");
    harness.write("out.yaml", "mine");
    let ended = harness.run("-c a.hcl convert --to yaml --out out.yaml");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    assert_eq!(harness.read("out.yaml"), b"mine");
    assert_snapshot!(harness.run("-c a.hcl convert --to toml"));
}

#[test]
fn sensitive_values_are_refused() {
    let harness = Harness::empty();
    let text =
        "variable \"token\" { sensitive = true }\nvars = { T = \"t-${var.token}\", U = 1 }\n";
    harness.write("a.hcl", text);
    let ended = harness.run("convert a.hcl --to yaml --var token=hunter22");
    assert_eq!(ended.code, Some(1));
    assert!(!ended.to_string().contains("t-hunter22"), "{ended}");
    // What nothing uses isn't written.
    harness.write("a.hcl", text.replace("t-${var.token}", "t"));
    harness.ok("convert a.hcl --to yaml --var token=hunter22");
}

/// Variables, locals and blocks in several files, and what they include.
#[test]
fn a_folder_becomes_one_file() {
    let harness = Harness::empty();
    harness.write(
        "fleet/variables.hcl",
        "include = \"../images.jsonc\"\nvariable \"region\" { default = \"r\" }\n",
    );
    harness.write(
        "images.jsonc",
        "{\"images\": {\"debian\": {\"provider\": \"sim\"}}}",
    );
    harness.write("fleet/locals.hcl", "locals { sizes = { small = 2 } }\n");
    let groups = "\
        # Ours.\n\
        group \"web\" {\n  size = local.sizes.small\n  vars = { R = upper(var.region) }\n}\n";
    harness.write("fleet/groups.hcl", groups);
    harness.write(
        "fleet/nstance_override.yaml",
        "groups: {default: {web: {size: 3}}}\n",
    );
    assert_snapshot!(harness.ok("-c fleet convert --to jsonc --var region=eu"));
    // A file alone is evaluated alone.
    assert_snapshot!("alone", harness.run("convert fleet/groups.hcl --to yaml"));
}

#[test]
fn a_dependency_on_a_block_with_for_each_is_written_as_names() {
    let harness = Harness::empty();
    harness.write(
        "nstance.hcl",
        r#"
cluster { id = "c" }
shard {
  id = "s"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
group "db" {
  for_each      = toset(["a", "b"])
  kind          = "srv"
  arch          = "arm64"
  instance_type = "small"
  args          = { ImageId = "debian-13" }
}
group "web" {
  kind          = "srv"
  arch          = "arm64"
  instance_type = "small"
  args          = { ImageId = "debian-13" }
  depends_on    = [group.db]
}
"#,
    );
    for language in ["jsonc", "yaml", "hcl"] {
        let made = format!("made.{language}");
        harness.ok(&format!("convert --to {language} --out {made}"));
        let graph = harness.ok(&format!("-c {made} graph"));
        for needed in ["default/db-a", "default/db-b"] {
            let edge = format!("\"group.{needed}\" -> \"group.default/web\"");
            assert!(graph.stdout.contains(&edge), "{graph}");
        }
        std::fs::remove_file(harness.path(&made)).unwrap();
    }
}
