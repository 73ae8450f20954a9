//! Configurations in YAML, through the real binary.

use insta::assert_snapshot;

use crate::harness::Harness;

const QUICKSTART: &str = include_str!("../good/quickstart.yaml");

#[test]
fn the_quickstart_in_yaml_renders_and_plans_the_same() {
    let jsonc = Harness::example("quickstart");
    let yaml = Harness::empty();
    yaml.write("nstance.yaml", QUICKSTART);
    for words in [
        "render --json",
        "plan --json",
        "plan",
        "graph",
        "validate --json",
    ] {
        let (expected, found) = (jsonc.ok(words), yaml.ok(words));
        assert!(!expected.stdout.is_empty());
        let renamed = found.stdout.replace("nstance.yaml", "nstance.jsonc");
        assert_eq!(renamed, expected.stdout, "{words}");
        assert_eq!(found.stderr, expected.stderr, "{words}");
    }
}

/// Positions in templates go through quotes, folds and indentation.
#[test]
fn mistakes_in_templates_are_found_in_every_kind_of_string() {
    let harness = Harness::empty();
    harness.write(
        "nstance.yaml",
        "cluster: {id: test}\n\
         shard: {id: one, infra: {provider: sim, region: r, zone: z}}\n\
         groups:\n\
         \x20 default:\n\
         \x20   web:\n\
         \x20     size: 1\n\
         \x20     instance_type: small\n\
         \x20     args:\n\
         \x20       SINGLE: 'it''s {{ nope1 }}'\n\
         \x20       DOUBLE: \"tab\\t\\u00e9 {{ nope2 }}\"\n\
         \x20       PLAIN: one\n\
         \x20         two {{ nope3 }}\n\
         \x20       FOLDED: >-\n\
         \x20         some text\n\
         \x20         {{ nope4 }}\n\
         \x20     userdata: |\n\
         \x20       #!/bin/sh\n\
         \x20       hostname {{ nope5 }}\n",
    );
    let ended = harness.run("validate");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert_snapshot!(ended);
}
