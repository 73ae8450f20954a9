//! `graph`.

use insta::assert_snapshot;

use crate::harness::{AWS, Harness, TWO};

#[test]
fn images_templates_and_groups_in_three_languages() {
    let harness = Harness::with(AWS);
    assert_snapshot!(harness.ok("graph"));
    assert_snapshot!(harness.ok("graph --format mermaid"));
    let json = harness.ok("graph --format json");
    assert_snapshot!(json);
    assert_eq!(harness.ok("graph --json").stdout, json.stdout);
}

#[test]
fn a_group_that_depends_on_another() {
    let harness = Harness::with(TWO);
    harness.edit("\"size\": 3 }", "\"size\": 3, \"depends_on\": [\"db\"] }");
    assert_snapshot!(harness.ok("graph"));
    harness.edit(
        "\"instance_type\": \"large\" }",
        "\"instance_type\": \"large\", \"depends_on\": [\"web\"] }",
    );
    let ended = harness.run("plan");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
}

#[test]
fn an_image_leads_to_whose_texts_read_it() {
    let harness = Harness::with(AWS);
    let image = |name: &str| {
        format!(
            "\"{name}\": {{ \"provider\": \"aws\", \"owners\": [\"1\"], \
             \"filters\": [{{ \"name\": \"name\", \"values\": [\"{name}\"] }}] }},"
        )
    };
    harness.edit(
        "\"images\": {",
        &format!(
            "\"images\": {{ {} {}",
            image("of_group"),
            image("of-template")
        ),
    );
    harness.edit(
        "\"workers\": {",
        "\"workers\": { \"args\": { \"KeyName\": \"{{ .Image.of_group }}\" },",
    );
    harness.edit(
        "\"knd\": {",
        "\"knd\": { \"args\": { \"KernelId\": \"{{ index .Image `of-template` }}\" },",
    );
    let graph = harness.ok("graph");
    for edge in [
        "\"image.of_group\" -> \"group.default/workers\"",
        "\"image.of-template\" -> \"template.knd\"",
    ] {
        assert!(graph.stdout.contains(edge), "{edge}: {graph}");
    }
    assert!(
        !graph.stdout.contains("\"image.of_group\" -> \"template"),
        "{graph}"
    );
}
