//! Bad specifications with their messages, and the corpus with its instances.

use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::deal::Slot;
use super::names::{Instance, Names};
use super::*;
use crate::config::source::{SourceId, SourceMap};
use crate::diagnostic::Severity;

const BASE: &str = "\
name: grp
service_account_id: sa
instance_template:
  name: web-{instance.index}
  platform_id: standard-v3
  resources_spec:
    memory: 2g
    cores: 2
  boot_disk_spec:
    mode: READ_WRITE
    disk_spec:
      type_id: network-ssd
      size: 20g
      image_id: img
  network_interface_specs:
    - network_id: net
      primary_v4_address_spec: {}
scale_policy:
  fixed_scale:
    size: 3
deploy_policy:
  max_unavailable: 1
  max_expansion: 0
allocation_policy:
  zones:
    - zone_id: zone-a
    - zone_id: zone-b
";

/// Reads and translates a text; returns the result and the findings as lines.
fn run(text: &str) -> (Option<Specification>, Vec<String>) {
    let mut sources = SourceMap::default();
    let source = sources.add("spec.yaml", text);
    let mut findings = Diagnostics::default();
    let made = match read(source, text) {
        Ok(root) => translate(&root, &mut findings).ok(),
        Err(error) => {
            findings.push(*error);
            None
        }
    };
    let lines = findings.iter().map(|finding| {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut line = format!("{severity}: {}", finding.summary);
        if let Some(label) = &finding.label {
            let place = sources.place(label.span);
            let place = place.trim_start_matches("spec.yaml:");
            line.push_str(&format!(" | {place} {}", label.text));
        }
        if let Some(detail) = &finding.detail {
            line.push_str(&format!(" | {detail}"));
        }
        for hint in &finding.hints {
            line.push_str(&format!(" | hint: {hint}"));
        }
        line
    });
    (made, lines.collect())
}

/// The findings for the base specification with one text replaced by another.
fn edited(edits: &[(&str, &str)]) -> Vec<String> {
    let mut text = BASE.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    run(&text).1
}

#[test]
fn the_base_has_no_findings() {
    assert_eq!(edited(&[]), [""; 0]);
}

/// The findings of each case, a line each.
fn listed(cases: &[(&str, &[(&str, &str)])], fits: impl Fn(&[String]) -> bool) -> String {
    let mut lines = String::new();
    for (name, edits) in cases {
        let found = edited(edits);
        assert!(fits(&found), "{name}: {found:#?}");
        lines.push_str(&format!("{name}\n"));
        for line in found {
            lines.push_str(&format!("    {line}\n"));
        }
    }
    lines
}

#[test]
fn errors_say_what_is_wrong_and_what_would_be_right() {
    let cases: [(&str, &[(&str, &str)]); 47] = [
        ("unknown key", &[("deploy_policy:", "deploy_polcy:")]),
        (
            "key elsewhere",
            &[("  fixed_scale:\n    size: 3", "  size: 3")],
        ),
        (
            "disk key",
            &[(
                "    disk_spec:\n      type_id",
                "    size: 20g\n    disk_spec:\n      type_id",
            )],
        ),
        (
            "flow map",
            &[("name: web-{instance.index}", "name: {instance.index}")],
        ),
        (
            "flow map and text",
            &[("name: web-{instance.index}", "name: {instance.index}-web")],
        ),
        (
            "nested flow map",
            &[("name: web-{instance.index}", "name: {n_{instance.index}}")],
        ),
        (
            "doubled flow map",
            &[("name: web-{instance.index}", "name: {{instance.index}}")],
        ),
        ("missing", &[("  platform_id: standard-v3\n", "")]),
        ("empty", &[("standard-v3", "\"\"")]),
        (
            "type",
            &[(
                "  resources_spec:\n    memory: 2g\n    cores: 2",
                "  resources_spec: 2g",
            )],
        ),
        (
            "list",
            &[(
                "  zones:\n    - zone_id: zone-a\n    - zone_id: zone-b",
                "  zones: zone-a",
            )],
        ),
        (
            "no zones",
            &[(
                "  zones:\n    - zone_id: zone-a\n    - zone_id: zone-b",
                "  zones: []",
            )],
        ),
        ("cores", &[("cores: 2", "cores: 3")]),
        ("memory", &[("memory: 2g", "memory: 2.5g")]),
        ("too much memory", &[("memory: 2g", "memory: 1t")]),
        ("suffix", &[("size: 20g", "size: 20gb")]),
        ("size", &[("size: 3", "size: 101")]),
        (
            "flag",
            &[("name: grp", "name: grp\ndeletion_protection: maybe")],
        ),
        ("enum", &[("READ_WRITE", "read_write")]),
        ("duration", &[("max_expansion: 0", "startup_duration: 30")]),
        (
            "long duration",
            &[("max_expansion: 0", "startup_duration: 2h")],
        ),
        ("both 0", &[("max_unavailable: 1", "max_unavailable: 0")]),
        (
            "two scales",
            &[(
                "    size: 3",
                "    size: 3\n  auto_scale:\n    initial_size: 2\n    measurement_duration: 60s",
            )],
        ),
        ("no scale", &[("  fixed_scale:\n    size: 3", "  {}")]),
        (
            "two images",
            &[("image_id: img", "image_id: img\n      snapshot_id: snap")],
        ),
        (
            "no disk",
            &[(
                "    disk_spec:\n      type_id: network-ssd\n      size: 20g\n      image_id: img\n",
                "",
            )],
        ),
        (
            "balancers",
            &[(
                "name: grp",
                "load_balancer_spec:\n  target_group_spec: {}\napplication_load_balancer_spec:\n  target_group_spec: {}",
            )],
        ),
        ("group name", &[("name: grp", "name: Grp")]),
        ("label", &[("name: grp", "labels:\n  Env: x\n  env: A b")]),
        (
            "variables",
            &[(
                "name: grp",
                "variables:\n- key: a b\n- key: x\n  value: 1\n- key: x\n  value: 2\n- key: instance.index\n- key: instance.labels.x",
            )],
        ),
        ("zones", &[("zone-b", "zone-a")]),
        (
            "tags",
            &[("zone-b", "zone-b\n      instance_tags_pool: [no, ab1, ab1]")],
        ),
        (
            "few tags",
            &[
                ("zone-a", "zone-a\n      instance_tags_pool: [a-1]"),
                ("zone-b", "zone-b\n      instance_tags_pool: [b-1]"),
            ],
        ),
        (
            "uneven tags",
            &[
                ("zone-a", "zone-a\n      instance_tags_pool: [a-1]"),
                ("zone-b", "zone-b\n      instance_tags_pool: [b-1, b-2]"),
            ],
        ),
        (
            "name",
            &[("web-{instance.index}", "web-{instance.index_in_zone}")],
        ),
        (
            "hostname",
            &[("  platform_id", "  hostname: web\n  platform_id")],
        ),
        (
            "escaped name",
            &[("web-{instance.index}", "web-{{instance.index}}")],
        ),
        (
            "name pattern",
            &[("web-{instance.index}", "\"{instance.index}-web\"")],
        ),
        (
            "tag without pool",
            &[("web-{instance.index}", "web-{instance.tag}")],
        ),
        (
            "variable",
            &[
                ("image_id: img", "image_id: \"{img_{instance.zone_id}}\""),
                ("name: grp", "variables:\n- key: img_zone-a\n  value: a"),
            ],
        ),
        (
            "address",
            &[(
                "primary_v4_address_spec: {}",
                "primary_v4_address_spec: {address: \"10.0.0.{instance.index}00\"}",
            )],
        ),
        (
            "same address",
            &[(
                "primary_v4_address_spec: {}",
                "primary_v4_address_spec: {address: 10.0.0.1}",
            )],
        ),
        (
            "rendered label",
            &[
                ("  platform_id", "  labels: {tier: \"{a}\"}\n  platform_id"),
                ("name: grp", "variables:\n- key: a\n  value: A B"),
            ],
        ),
        (
            "disk names",
            &[(
                "  network_interface",
                "  secondary_disk_specs:\n  - mode: READ_WRITE\n    name: one\n    disk_id: a{instance.index}\n  - mode: READ_ONLY\n    disk_id: b{instance.index}\n  network_interface",
            )],
        ),
        (
            "metadata",
            &[(
                "  platform_id",
                "  metadata:\n    Key: x\n    nested: [1]\n  platform_id",
            )],
        ),
        ("duplicate", &[("name: grp", "name: grp\nname: grp")]),
        (
            "autoscaling",
            &[(
                "  fixed_scale:\n    size: 3",
                "  auto_scale:\n    initial_size: 1\n    min_zone_size: 0\n    measurement_duration: 10s",
            )],
        ),
    ];
    let is_error = |line: &String| line.starts_with("error");
    insta::assert_snapshot!(listed(&cases, |found| found.iter().any(is_error)));
}

#[test]
fn warnings_name_likely_errors() {
    let cases: [(&str, &[(&str, &str)]); 12] = [
        (
            "application balancer",
            &[(
                "name: grp",
                "application_load_balancer_spec:\n  target_group_spec: {}",
            )],
        ),
        (
            "near miss",
            &[
                (
                    "  platform_id",
                    "  metadata:\n    a: \"{instance.indx} {Instance.Index} {instance.index}\"\n    b: \"{sitee} {print $1} {{ site }} ${HOME}\"\n  platform_id",
                ),
                ("name: grp", "variables:\n- key: site\n  value: x"),
            ],
        ),
        (
            "no variable in one zone",
            &[
                (
                    "  platform_id",
                    "  metadata:\n    a: \"{img_{instance.zone_id}}\"\n  platform_id",
                ),
                ("name: grp", "variables:\n- key: img_zone-a\n  value: x"),
            ],
        ),
        (
            "labels",
            &[(
                "  platform_id",
                "  metadata:\n    a: \"{instance_group.labels.env} {instance.tag}\"\n  platform_id",
            )],
        ),
        (
            "literal",
            &[
                ("standard-v3", "\"{site}\""),
                ("network_id: net", "network_id: \"{site}\""),
                ("name: grp", "variables:\n- key: site\n  value: x"),
            ],
        ),
        (
            "value",
            &[(
                "name: grp",
                "variables:\n- key: site\n  value: \"{instance.index}\"",
            )],
        ),
        ("mode", &[("    mode: READ_WRITE\n", "")]),
        (
            "surge",
            &[
                ("max_expansion: 0", "max_expansion: 2"),
                (
                    "primary_v4_address_spec: {}",
                    "primary_v4_address_spec: {address: \"10.0.0.{instance.index}\"}",
                ),
            ],
        ),
        (
            "surge only",
            &[
                ("max_unavailable: 1", "max_unavailable: 0"),
                ("max_expansion: 0", "max_expansion: 2"),
                (
                    "    disk_spec:\n      type_id: network-ssd\n      size: 20g\n      image_id: img\n",
                    "    disk_id: \"d{instance.index}\"\n",
                ),
            ],
        ),
        (
            "fqdn",
            &[(
                "  platform_id",
                "  fqdn: \"{instance.short_id}.example\"\n  platform_id",
            )],
        ),
        (
            "autoscaling",
            &[(
                "  fixed_scale:\n    size: 3",
                "  auto_scale:\n    initial_size: 2\n    min_zone_size: 2\n    max_size: 3\n    measurement_duration: 60s\n    cpu_utilization_rule: {utilization_target: 75}",
            )],
        ),
        (
            "checks",
            &[(
                "name: grp",
                "health_checks_spec:\n  health_check_specs:\n  - tcp_options: {port: 1}\n  - tcp_options: {port: 2}",
            )],
        ),
    ];
    let is_warning = |line: &String| line.starts_with("warning");
    insta::assert_snapshot!(listed(&cases, |found| found.iter().all(is_warning)));
}

#[test]
fn a_full_specification_becomes_a_native_group() {
    let text = include_str!("testdata/full.yaml");
    let (made, findings) = run(text);
    let made = made.unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!(made.load_balancer.as_deref(), Some("kafka-brokers"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&made.group.to_json()).unwrap());
    let root = read(SourceId(0), text).unwrap();
    assert!(is_specification(&root));
    let notes = without_equal(&root).into_iter().map(|(_, note)| note);
    insta::assert_snapshot!(notes.collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_translate_warns_of_is_not_noted_again() {
    let text = "instance_template: {fqdn: a}\napplication_load_balancer_spec: {a: b}\n\
                scale_policy: {auto_scale: {a: b}}\n\
                health_checks_spec: {health_check_specs: [{a: b}, {a: b}]}\n";
    let root = read(SourceId(0), text).unwrap();
    assert_eq!(without_equal(&root), []);
}

#[test]
fn scalars_keep_their_source_text() {
    let text = "a: 1.10\nb: 007\nc: yes\nd: .nan\ne: 1e999\nf: null\ng: ~\nh: \"null\"\ni:\nj: !!str 5\n\
                k: &x {l: 0x1f}\nm: *x\nn: {<<: *x, o: Off}\n";
    let root = read(SourceId(0), text).unwrap();
    assert_eq!(
        root.to_json(),
        json!({"a": "1.10", "b": "007", "c": "yes", "d": ".nan", "e": "1e999", "f": null,
            "g": null, "h": "null", "i": null, "j": "5", "k": {"l": "0x1f"}, "m": {"l": "0x1f"},
            "n": {"o": "Off", "l": "0x1f"}})
    );
    for (text, summary) in [
        ("", "the file holds no configuration"),
        (
            "a: 1\n---\nb: 2\n",
            "the file contains more than one document",
        ),
        ("a: !secret x\n", "unknown tag `!secret`"),
        ("a: {b: 1}\n<<: 3\n", "invalid value for `<<`"),
        (
            "a: \u{1}\n",
            "the file contains the control character U+0001",
        ),
        ("? [a]\n: 1\n", "invalid key"),
    ] {
        let error = read(SourceId(0), text).unwrap_err();
        assert_eq!(error.summary, summary);
    }
    let error = read(SourceId(0), &"#".repeat(LARGEST + 1)).unwrap_err();
    assert_eq!(error.summary, "the specification is larger than 1 MiB");
}

#[test]
fn damaged_specifications_are_errors_without_panics() {
    let text = include_str!("testdata/full.yaml");
    let lines: Vec<_> = text.lines().collect();
    for index in 0..lines.len() {
        let without = [&lines[..index], &lines[index + 1..]].concat();
        let cut = lines[index].find(':').map_or(0, |colon| colon + 1);
        let mut emptied = lines.clone();
        emptied[index] = &lines[index][..cut];
        for damaged in [&lines[..index], &without[..], &emptied[..]] {
            let (made, findings) = run(&damaged.join("\n"));
            assert!(made.is_some() || findings.iter().any(|line| line.starts_with("error")));
            let Ok(root) = read(SourceId(0), &damaged.join("\n")) else {
                continue;
            };
            without_equal(&root);
        }
    }
}

#[test]
fn native_configurations_are_no_specifications() {
    for (text, expected) in [
        (BASE, true),
        ("instance_template: {}\nallocation_policy: {}\n", true),
        ("instance_template: {}\n", false),
        (
            "cluster: {}\ninstance_template: {}\nscale_policy: {}\n",
            false,
        ),
        ("- instance_template\n", false),
    ] {
        let root = read(SourceId(0), text).unwrap();
        assert_eq!(is_specification(&root), expected, "{text}");
    }
}

#[test]
fn deals_go_around_the_zones() {
    let zone = |id: &str, tags: &[&str]| Zone {
        id: id.into(),
        span: Span::new(SourceId(0), 0, 0),
        tags: tags
            .iter()
            .map(|tag| Spanned::new((*tag).into(), Span::new(SourceId(0), 0, 0)))
            .collect(),
    };
    let zones = [zone("d", &["d-1", "d-2"]), zone("a", &["a-1"])];
    let dealt: Vec<_> = deal(&zones, 3)
        .into_iter()
        .map(|Slot { index, place }| format!("{index} {} {:?}", place.zone, place.seat))
        .collect();
    assert_eq!(
        dealt,
        [
            "1 d Seat { number: 1, tag: \"d-1\" }",
            "2 a Seat { number: 1, tag: \"a-1\" }",
            "3 d Seat { number: 2, tag: \"d-2\" }",
        ]
    );
    assert_eq!([share(2, 3, 0), share(2, 3, 1), share(3, 2, 2)], [2, 1, 0]);
    assert!(deal(&[], 3).is_empty());
}

/// Renders the strings of a value.
fn rendered(value: &Json, names: &Names, instance: &Instance<'_>) -> Json {
    match value {
        Json::String(text) => names.render(text, instance).into(),
        Json::Array(items) => {
            let items = items.iter().map(|item| rendered(item, names, instance));
            Json::Array(items.collect())
        }
        Json::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (key.clone(), rendered(value, names, instance)));
            Json::Object(entries.collect())
        }
        other => other.clone(),
    }
}

/// The instance templates of a new group, as in the corpus: zone and rendered template.
fn instances(root: &Node, made: &Specification, given: &Json) -> Vec<(String, Json)> {
    let names = Names::of(root);
    let mut findings = Diagnostics::default();
    let (typed, _) = values::read(root, &names, &mut findings);
    let zones = zones(&typed.unwrap());
    let group = made.group.to_json();
    let size = group["size"].as_u64().unwrap() as u32;
    let slots: Vec<Slot> = deal(&zones, size);
    let render = |slot: &Slot| {
        let mut instance = Instance {
            group_id: given["group_id"].as_str().unwrap(),
            short_id: given["short_ids"][slot.index as usize - 1]
                .as_str()
                .unwrap_or("abcd"),
            slot,
            labels: None,
        };
        let mut template: Map<String, Json> = group["args"].as_object().unwrap().clone();
        template.insert("platform_id".into(), group["instance_type"].clone());
        let labels = rendered(&group["labels"], &names, &instance);
        names.render_labels(&mut instance);
        if let Some(userdata) = group.get("userdata") {
            let metadata = template.entry("metadata").or_insert_with(|| json!({}));
            metadata["user-data"] = userdata.clone();
        }
        let mut template = rendered(&template.into(), &names, &instance);
        template["labels"] = labels;
        (slot.place.zone.to_string(), template)
    };
    slots.iter().map(render).collect()
}

/// Whether a value has everything that is expected.
fn contains(found: &Json, expected: &Json) -> bool {
    match (found, expected) {
        (Json::Object(found), Json::Object(expected)) => expected
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|found| contains(found, value))),
        (Json::Array(found), Json::Array(expected)) => {
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(found, value)| contains(found, value))
        }
        _ => found == expected,
    }
}

#[test]
fn corpus_specifications_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = std::fs::read_to_string(folder.join("../shared/corpora/yandex.jsonl"))
        .or_else(|_| std::fs::read_to_string(folder.join("tests/corpora/yandex.jsonl")))
        .unwrap();
    let (mut specifications, mut updates) = (0, 0);
    for line in corpus.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        match case["kind"].as_str().unwrap() {
            "update" => {
                updates += 1;
                for key in ["old_yaml", "new_yaml"] {
                    let (made, findings) = run(case[key].as_str().unwrap());
                    assert!(made.is_some(), "{id}: {findings:#?}");
                }
            }
            "spec" => {
                specifications += 1;
                let text = case["spec_yaml"].as_str().unwrap();
                let (made, findings) = run(text);
                if !case["expect"]["error"].is_null() {
                    assert!(made.is_none(), "{id} is accepted");
                    continue;
                }
                let made = made.unwrap_or_else(|| panic!("{id}: {findings:#?}"));
                let root = read(SourceId(0), text).unwrap();
                let mut found = instances(&root, &made, &case["given"]);
                for (zone, count) in case["expect"]["zone_counts"].as_object().unwrap() {
                    let here = found.iter().filter(|(found, _)| found == zone).count();
                    assert_eq!(Some(here as u64), count.as_u64(), "{id}: {zone}");
                }
                for expected in case["expect"]["instances"].as_array().unwrap() {
                    let place = found.iter().position(|(zone, template)| {
                        *zone == expected["zone_id"] && contains(template, &expected["template"])
                    });
                    let Some(place) = place else {
                        panic!("{id}: {expected:#} is not in {found:#?}");
                    };
                    found.remove(place);
                }
                assert!(found.is_empty(), "{id}: more instances than expected");
            }
            _ => {}
        }
    }
    assert!(
        specifications > 20 && updates > 10,
        "{specifications} {updates}"
    );
}
