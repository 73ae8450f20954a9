//! The schema against the decoder, and against every configuration there is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::tables::{GROUP, LOAD_BALANCER, TOP};
use super::*;
use crate::check::{Purpose, check};
use crate::config::decode::decode;
use crate::config::source::{Language, SourceMap};
use crate::config::variables::Given;
use crate::config::{jsonc, yaml};
use crate::diagnostic::Diagnostics;
use crate::load::load_text;

fn validator() -> Validator {
    jsonschema::validator_for(&json_schema()).unwrap()
}

fn files(folder: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let shown = path.display().to_string();
        if path.is_dir() && !path.ends_with(".nstance") && !path.ends_with("userdata") {
            files(&shown, found);
        } else if ["jsonc", "yaml"]
            .iter()
            .any(|known| shown.ends_with(&format!(".{known}")))
        {
            found.push(path);
        }
    }
    found.sort();
}

/// A file as JSON; `None` where it can't be parsed.
fn parsed(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).unwrap();
    let mut findings = Diagnostics::default();
    let mut sources = SourceMap::default();
    let name = path.display().to_string();
    let source = sources.add(&*name, &*text);
    let root = match Language::of_file(&name) {
        Language::Yaml => findings
            .keep(yaml::read(source, &text))
            .map(|document| document.root),
        _ => findings.keep(jsonc::read(source, &text)),
    };
    let root = root.filter(|_| !findings.has_errors())?;
    Some(root.to_json())
}

#[test]
fn both_schemas_are_schemas() {
    for schema in [json_schema(), part_schema()] {
        jsonschema::meta::validate(&schema).unwrap();
        jsonschema::validator_for(&schema).unwrap();
        assert!(!schema.to_string().contains("null,null"));
    }
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&json_schema()["$defs"]["image"]).unwrap()
    );
}

#[test]
fn good_configurations_are_accepted() {
    let mut good = Vec::new();
    for folder in ["tests/good", "examples", "tests/it/data"] {
        files(folder, &mut good);
    }
    good.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/starter.jsonc"));
    assert!(good.len() >= 8, "only {good:?}");
    // Examples hold userdata and specifications, too.
    good.retain(|path| {
        let text = fs::read_to_string(path).unwrap();
        !text.starts_with("#cloud-config") && !text.contains("\ninstance_template:")
    });
    let (whole, part) = (
        validator(),
        jsonschema::validator_for(&part_schema()).unwrap(),
    );
    for path in good {
        let value = parsed(&path).unwrap();
        // What others include has no shard.
        let whole = value.get("shard").map(|_| &whole);
        for validator in whole.into_iter().chain([&part]) {
            let errors: Vec<String> = validator
                .iter_errors(&value)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        }
    }
}

/// Bad configurations that a schema takes for good, by why.
const UNSEEN: &[(&str, &[&str])] = &[
    (
        "a name must be defined elsewhere, or once",
        &[
            "links_without_providers.jsonc",
            "unknown_certificate.jsonc",
            "unknown_pool.jsonc",
            "unknown_template.jsonc",
            "unknown_template_none.jsonc",
        ],
    ),
    (
        "args and options are the provider's business",
        &[
            "gcp_args.jsonc",
            "restart_on_gcp.jsonc",
            "managed_args.jsonc",
            "our_tags.jsonc",
            "security_groups_beside_interfaces.jsonc",
            "sim_args.jsonc",
            "sim_options.jsonc",
            "unknown_args.jsonc",
            "unknown_option.jsonc",
            "wrong_args.jsonc",
        ],
    ),
    (
        "one value doesn't go with another",
        &[
            "expiry.jsonc",
            "groups_ambiguous.jsonc",
            "image_of_another_provider.jsonc",
            "load_balancer_of_another_provider.jsonc",
            "update_contradictions.jsonc",
            "yaml_sensitive_places.yaml",
        ],
    ),
    (
        "what a group lacks, its template or defaults may have",
        &["incomplete_groups.jsonc"],
    ),
    (
        "a text has a grammar of its own",
        &[
            "interpolation_without_variables.yaml",
            "lifecycle_paths.jsonc",
            "links_in_a_cycle.jsonc",
            "links_that_templates_misread.jsonc",
            "userdata_base64.jsonc",
            "userdata_long_line.jsonc",
        ],
    ),
];

#[test]
fn bad_configurations_are_rejected_where_their_structure_is_wrong() {
    let mut bad = Vec::new();
    files("tests/bad", &mut bad);
    let validator = validator();
    let mut accepted = Vec::new();
    for path in &bad {
        // What can't be parsed never gets to a schema.
        if parsed(path).is_some_and(|value| validator.is_valid(&value)) {
            accepted.push(path.file_name().unwrap().to_str().unwrap());
        }
    }
    let mut unseen: Vec<&str> = UNSEEN
        .iter()
        .flat_map(|(_, files)| *files)
        .copied()
        .collect();
    unseen.sort_unstable();
    assert_eq!(accepted, unseen);
}

/// What the decoder finds though every single value has a good shape.
const COMPARISONS: &[&str] = &[
    "`eligible_age` must be less than",
    "`groups` can be read in two ways",
    "`min_healthy_time` can't be longer than",
];

/// What is checked besides, and shows in the shape of one object.
const CHECKS_OF_SHAPE: &[&str] = &[
    "duplicate ",
    "of this userdata isn't a URL",
    "can only come from a file",
    "needs `\"source\": \"url\"`",
];

/// Every value of a configuration in turn is taken out, or replaced by others: schema and decoder
/// agree on each result.
#[test]
fn schema_and_decoder_agree() {
    let everything = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good/everything.jsonc"),
    )
    .unwrap();
    let everything = jsonc::read(crate::config::source::SourceId(0), &everything)
        .unwrap()
        .to_json();
    let rest = json!({
        "cluster": {"id": "c"},
        "shard": {"id": "s", "infra": {"provider": "gcp", "region": "r", "zone": "z"}},
        "load_balancers": {
            "g": {"provider": "gcp", "instance_group_name": "g"},
            "s": {"provider": "sim"},
            "n": {"provider": "google", "network_endpoint_groups": ["n"], "frontends": [{"ip": "203.0.113.1", "port": 443}]},
        },
        "images": {
            "family": {"provider": "gcp", "family": "f", "project": "p"},
            "bare": {"provider": "gcp", "filters": [{"name": "n", "values": ["v"]}]},
        },
        "functions": "sprig",
        "templates_lib": {"a": "text", "b": {"source": "inline", "encoding": "base64", "content": "eA=="}},
        "groups_form": "flat",
        "groups": {
            "web": {"template": "t", "size": 1, "depends_on": ["api"], "userdata": "x"},
            "api": {"userdata": {
                "merge": "cloud-init",
                "parts": [
                    "text",
                    {"content": "x", "encoding": "plain", "type": "text/cloud-config"},
                    {"source": "url", "content": "file:x", "filename": "x", "merge": "list()"},
                ],
            }},
            "db": {"userdata": {"content": "x", "merge": "append"}},
        },
    });
    let validator = validator();
    let mut tried = 0;
    for base in [everything, rest] {
        assert!(validator.is_valid(&base));
        for path in paths(&base, "") {
            for (what, changed) in changes(&base, &path) {
                let findings = decoded(&changed);
                let accepted = validator.is_valid(&changed);
                let expected = findings
                    .iter()
                    .all(|finding| COMPARISONS.iter().any(|known| finding.starts_with(known)));
                assert_eq!(accepted, expected, "{path} {what}: {findings:#?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 4000, "only {tried}");
}

/// The errors that the decoder has.
fn decoded(value: &Value) -> Vec<String> {
    let text = value.to_string();
    let mut findings = Diagnostics::default();
    let mut sources = SourceMap::default();
    let source = sources.add("a.json", &*text);
    let root = jsonc::read(source, &text).unwrap();
    if let Ok(draft) = decode(&root, &mut findings) {
        let mut checked = Diagnostics::default();
        check(&draft, Purpose::Render, &sources, &mut checked);
        findings.extend(checked.into_iter().filter(|finding| {
            let is_of_shape = |known: &&str| finding.summary.contains(known);
            CHECKS_OF_SHAPE.iter().any(is_of_shape)
        }));
    }
    findings
        .iter()
        .filter(|finding| {
            let is_error = finding.severity == crate::diagnostic::Severity::Error;
            is_error || finding.summary.contains("has no key")
        })
        .map(|finding| finding.summary.clone())
        .collect()
}

/// The JSON pointers of all values.
fn paths(value: &Value, prefix: &str) -> Vec<String> {
    let mut all = vec![prefix.to_owned()];
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                all.extend(paths(value, &format!("{prefix}/{key}")));
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                all.extend(paths(value, &format!("{prefix}/{index}")));
            }
        }
        _ => {}
    }
    all
}

/// The same document with another value at a place.
fn changes(base: &Value, path: &str) -> Vec<(String, Value)> {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(101),
        json!(2_000_000),
        json!(""),
        json!("x"),
        json!("Web_1"),
        json!("a--b"),
        json!("a/b"),
        json!("abc"),
        json!("5m"),
        json!("1.5h30m"),
        json!("5 m"),
        json!("0"),
        json!("/x"),
        json!("0644"),
        json!("a\nb"),
        json!([]),
        json!([""]),
        json!(["x"]),
        json!(["x", "x"]),
        json!([1]),
        json!({}),
        json!({"x": 1}),
        json!({"x": "y"}),
        json!({"X": {}}),
        json!({"x": null}),
        json!({"1x": "y"}),
        json!({"0": {}}),
        json!({"00": {}}),
        json!({"..": {}}),
    ];
    let name = path.rsplit('/').next().unwrap_or_default();
    values.extend(
        choices(&TOP, name, &mut Vec::new())
            .into_iter()
            .map(Value::from),
    );
    let mut changes: Vec<(String, Value)> = Vec::new();
    for value in values {
        let mut changed = base.clone();
        let what = format!("= {value}");
        *changed.pointer_mut(path).unwrap() = value;
        changes.push((what, changed));
    }
    if let Some((parent, _)) = path.rsplit_once('/') {
        let mut changed = base.clone();
        if let Value::Object(map) = changed.pointer_mut(parent).unwrap() {
            let key = name.replace("~1", "/").replace("~0", "~");
            let value = map.shift_remove(&key).unwrap();
            changes.push(("is taken out".to_owned(), changed.clone()));
            for other in [
                "unknown", "Bad_Name", "a--b", "", "..", "a/b", "template", "01",
            ] {
                let mut renamed = changed.clone();
                renamed.pointer_mut(parent).unwrap()[other] = value.clone();
                changes.push((format!("is called {other:?}"), renamed));
            }
        }
    }
    if base.pointer(path).unwrap().is_object() {
        let mut changed = base.clone();
        changed.pointer_mut(path).unwrap()["unknown"] = json!({});
        changes.push(("has another key".to_owned(), changed));
    }
    changes
}

/// All words that a key of this name may be.
fn choices(table: &'static Table, name: &str, seen: &mut Vec<&'static str>) -> Vec<&'static str> {
    if seen.contains(&table.title) {
        return Vec::new();
    }
    seen.push(table.title);
    let mut words = Vec::new();
    for key in table.keys {
        let mut shape = key.shape;
        if key.name == name
            && let Shape::Choice(choices) = shape
        {
            words.extend(choices);
        }
        while let Shape::Named(inner)
        | Shape::Images(inner)
        | Shape::Files(inner)
        | Shape::Slots(inner)
        | Shape::List(inner)
        | Shape::Distinct(inner)
        | Shape::Some(inner) = shape
        {
            shape = *inner;
        }
        match shape {
            Shape::Object(inner) | Shape::TextOr(inner) | Shape::WordOr(_, inner) => {
                words.extend(choices(inner, name, seen));
            }
            Shape::Groups => words.extend(choices(&GROUP, name, seen)),
            _ => {}
        }
    }
    words
}

/// Whatever the schema gives as a default means the same as leaving the key out.
#[test]
fn defaults_are_the_decoders() {
    let text = |extra: &Value| {
        let mut value = json!({
            "cluster": {"id": "c"},
            "shard": {"id": "s", "infra": {"provider": "sim", "region": "r", "zone": "z"}},
            "images": {"i": {"provider": "sim", "filters": [{"name": "n", "values": ["v"]}]}},
            "templates": {"t": {
                "files": {"f": {"kind": "string", "template": ""}},
                "userdata": {"content": "x"},
                "update": {"health": {}},
            }},
            "templates_lib": {"l": {"content": "x"}},
            "destroy_budget": {},
        });
        for (path, extra) in extra.as_object().unwrap() {
            let Value::Object(map) = value.pointer_mut(path).unwrap() else {
                panic!("{path}")
            };
            map.extend(extra.as_object().unwrap().clone());
        }
        value.to_string()
    };
    let read = |extra: &Value| {
        let loaded = load_text(Purpose::Render, "a.jsonc", &text(extra), &Given::default());
        let config = format!("{:#?}", loaded.config.unwrap());
        // Places, and whether a value was written at all, aren't what is compared.
        config
            .lines()
            .filter(|line| !["start:", "end:"].iter().any(|part| line.contains(part)))
            .collect::<Vec<_>>()
            .join(
                "
",
            )
    };
    let tables: BTreeMap<&str, &Table> = [
        ("", &TOP),
        ("/cluster", &tables::CLUSTER),
        ("/shard", &tables::SHARD),
        ("/images/i", &tables::IMAGE),
        ("/destroy_budget", &tables::DESTROY_BUDGET),
        ("/templates/t/files/f", &tables::FILE),
        ("/templates/t/update/health", &tables::HEALTH),
    ]
    .into();
    let mut count = 0;
    let bare = read(&json!({}));
    for (path, table) in tables {
        for key in table.keys {
            let Some(default) = key.default else { continue };
            let default: Value = serde_json::from_str(default).unwrap();
            let given = read(&json!({path: {key.name: default}}));
            assert_eq!(given, bare, "{path}/{}", key.name);
            count += 1;
        }
    }
    assert_eq!(count, 19);
    assert!(LOAD_BALANCER.keys.iter().all(|key| key.default.is_none()));
}
