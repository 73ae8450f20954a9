//! Every JSON document that a command prints is valid against its schema in `docs/schemas`.
//!
//! In: a command line and its standard output. Out: a panic that names the schema and the errors.
//! Must not: fetch a schema, or accept a key that no schema has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::CommandFactory as _;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Registry, ValidationError, Validator};
use nstance::cli::Cli;
use serde_json::{Value, json};

use crate::harness::{Harness, TWO};

/// The schema of a failed command's document, of every command.
const ERRORS: &str = "errors";

/// The schema of parts that others refer to.
const COMMON: &str = "common";

/// The schemas of each subcommand. A document must be valid against one of them.
const SCHEMAS: &[(&str, &[&str])] = &[
    ("plan", &["plan"]),
    ("apply", &["event"]),
    ("destroy", &["event"]),
    ("report", &["report"]),
    ("rollout status", &["rollout-status"]),
    ("rollout promote", &["rollout-request"]),
    ("rollout pause", &["rollout-request"]),
    ("rollout abort", &["rollout-request"]),
    ("drift", &["drift"]),
    ("show", &["inventory", "plan"]),
    ("render", &["render", "userdata"]),
    ("explain", &["render", "userdata", "variables"]),
    ("graph", &["graph"]),
    ("images", &["images"]),
    ("validate", &["validate"]),
    ("doctor", &["doctor"]),
    ("state list", &["state-list"]),
    ("state show", &["state-show-slot", "state-show-group"]),
    ("state history", &["state-history", "state-history-entry"]),
    ("state undo", &["state-undo", "event"]),
    ("state pull", &["state-document"]),
    ("sim list", &["sim-list"]),
    ("sim show", &["sim-show"]),
    ("sim stop", &["sim-instance"]),
    ("sim start", &["sim-instance"]),
    ("sim fail", &["sim-instance"]),
    ("sim recover", &["sim-instance"]),
    ("sim delete", &["sim-instance"]),
    ("sim set-tag", &["sim-instance"]),
    ("sim set-type", &["sim-instance"]),
    ("sim image publish", &["sim-image"]),
    ("sim image list", &["sim-images"]),
    ("sim reset", &["sim-reset"]),
    ("userdata merge", &["userdata-merge"]),
    ("userdata decode", &["userdata-decode"]),
    ("jobs interpolate", &["jobs-interpolate"]),
    ("jobs resolve", &["jobs-resolve"]),
    ("jobs render", &["jobs-render"]),
    ("jobs dns", &["jobs-dns"]),
    ("jobs services", &["jobs-services"]),
    ("jobs run-errand", &["event"]),
    ("fmt", &["fmt"]),
];

/// Options and arguments with which a command prints the user's own text instead of a document.
const OWN_TEXT: [&str; 4] = ["-", "--part", "--template-string", "--help"];

/// Asserts that standard output is valid if the arguments ask for JSON: one document, a list of
/// documents, or an event a line. `ended` is false if a signal killed the command, which may have
/// cut its last line.
#[track_caller]
pub(crate) fn assert_valid(arguments: &[String], stdout: &str, ended: bool) {
    if stdout.is_empty() || arguments.iter().any(|word| OWN_TEXT.contains(&&**word)) {
        return;
    }
    let command = subcommand(arguments);
    if !asks_for_json(arguments) && command != "state pull" {
        return;
    }
    let own = SCHEMAS.iter().find(|(name, _)| *name == command);
    if own.is_none() && !stdout.starts_with(['{', '[']) {
        return;
    }
    for document in serde_json::Deserializer::from_str(stdout).into_iter::<Value>() {
        match document {
            Ok(Value::Array(documents)) => documents
                .iter()
                .for_each(|document| assert_document(&command, document)),
            Ok(document) => assert_document(&command, &document),
            Err(error) if error.is_eof() && !ended => {}
            Err(error) => panic!("`nstance {command}` doesn't print JSON: {error}\n{stdout}"),
        }
    }
}

#[track_caller]
fn assert_document(command: &str, document: &Value) {
    let own = SCHEMAS.iter().find(|(name, _)| *name == command);
    let own = own.map_or(&[][..], |(_, own)| *own);
    let names = own.iter().chain([&ERRORS]);
    if names
        .clone()
        .any(|name| VALIDATORS[*name].is_valid(document))
    {
        return;
    }
    assert!(
        !own.is_empty(),
        "`nstance {command}` prints JSON without a schema. Add docs/schemas/NAME.schema.json, a \
         row in SCHEMAS in tests/it/json_schemas.rs, and a row in docs/json.md.\n{document:#}"
    );
    let mut text = format!("`nstance {command}` prints a document that no schema allows:\n");
    for name in names {
        let _ = writeln!(text, "docs/schemas/{name}.schema.json:");
        for error in VALIDATORS[*name].iter_errors(document) {
            explain(&error, &mut text);
        }
    }
    panic!("{text}{document:#}");
}

/// A line for an error; of alternatives, the errors of the one with the fewest.
fn explain(error: &ValidationError<'_>, text: &mut String) {
    match error.kind() {
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            let nearest = context.iter().min_by_key(|errors| errors.len());
            for error in nearest.into_iter().flatten() {
                explain(error, text);
            }
        }
        _ => {
            let _ = writeln!(text, "  {}: {}", error.instance_path(), error.masked());
        }
    }
}

/// The words of the subcommand, such as `state list`; empty if there is none.
fn subcommand(arguments: &[String]) -> String {
    let mut words = Vec::new();
    let mut command = &Cli::command();
    for argument in arguments {
        if let Some(below) = command.find_subcommand(argument) {
            command = below;
            words.push(below.get_name());
        }
    }
    words.join(" ")
}

fn asks_for_json(arguments: &[String]) -> bool {
    let is_json = |word: &String| ["--json", "-json", "--format=json"].contains(&&**word);
    arguments.iter().any(is_json)
        || arguments
            .windows(2)
            .any(|pair| pair == ["--format", "json"])
}

/// The schemas, by name.
static DOCUMENTS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let folder = root().join("docs/schemas");
    let files = std::fs::read_dir(folder).unwrap();
    let schema = |path: PathBuf| {
        let file = path.file_name().unwrap().to_str().unwrap();
        let name = file.strip_suffix(".schema.json").expect(file).to_owned();
        let schema = serde_json::from_slice(&std::fs::read(&path).unwrap());
        (name, schema.expect(file))
    };
    files.map(|file| schema(file.unwrap().path())).collect()
});

/// The validator of each schema. Compiling them takes longer than most commands, so it is done once.
static VALIDATORS: LazyLock<BTreeMap<&str, Validator>> = LazyLock::new(|| {
    let files = DOCUMENTS.iter();
    let files = files.map(|(name, schema)| (format!("json-schema:///{name}.schema.json"), schema));
    let registry = Registry::new().extend(files).unwrap().prepare().unwrap();
    let options = jsonschema::options()
        .offline()
        .with_registry(&registry)
        .should_validate_formats(true);
    let documents = DOCUMENTS.iter();
    documents
        .map(|(name, schema)| (&**name, options.build(schema).expect(name)))
        .collect()
});

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Calls `look` for a schema and all schemas in it, each with its place in the file.
fn walk(schema: &Value, place: &str, look: &mut impl FnMut(&Value, &str)) {
    look(schema, place);
    let Some(keywords) = schema.as_object() else {
        return;
    };
    for (keyword, value) in keywords {
        let place = format!("{place}/{keyword}");
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    walk(schema, &format!("{place}/{name}"), look);
                }
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                for schema in schemas {
                    walk(schema, &place, look);
                }
            }
            ("items" | "additionalProperties", schema) => walk(schema, &place, look),
            _ => {}
        }
    }
}

/// Whether a schema allows no key that it doesn't name.
fn is_closed(schema: &Value) -> bool {
    let closes = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(false));
    closes("additionalProperties") || closes("unevaluatedProperties")
}

#[test]
fn schemas_are_valid_described_and_closed() {
    let mut wrong = Vec::new();
    for (name, document) in &*DOCUMENTS {
        jsonschema::meta::validate(document).unwrap();
        let dialect = "https://json-schema.org/draft/2020-12/schema";
        assert_eq!(document["$schema"], dialect, "{name}");
        assert_eq!(document["$id"], format!("{name}.schema.json"));
        assert!(document["title"].is_string(), "{name}");
        assert!(document["description"].is_string(), "{name}");
        walk(document, name, &mut |schema, place| {
            let properties = schema["properties"].as_object();
            for (key, property) in properties.into_iter().flatten() {
                if property["description"].is_null() && property["$ref"].is_null() {
                    wrong.push(format!("{place}/properties/{key} has no description"));
                }
            }
            // Keys that several objects share are closed where they are used.
            let is_shared = place.ends_with("_keys");
            if properties.is_some() && !is_closed(schema) && !is_shared {
                wrong.push(format!("{place} is open"));
            }
            let parts = schema["allOf"].as_array().into_iter().flatten();
            if parts.count() > 0 && !is_closed(schema) && !is_shared {
                wrong.push(format!("{place} is open"));
            }
            let shares = schema["$ref"]
                .as_str()
                .is_some_and(|to| to.ends_with("_keys"));
            if shares && !place.ends_with("/allOf") {
                wrong.push(format!("{place} leaves its keys open"));
            }
        });
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_schema_is_used_and_documented() {
    let used = SCHEMAS.iter().flat_map(|(_, names)| *names);
    let used: BTreeSet<&str> = used.copied().chain([ERRORS, COMMON]).collect();
    let known: BTreeSet<&str> = DOCUMENTS.keys().map(|name| &**name).collect();
    assert_eq!(used, known);
    let page = std::fs::read_to_string(root().join("docs/json.md")).unwrap();
    for (command, names) in SCHEMAS {
        for name in *names {
            let link = format!("(schemas/{name}.schema.json)");
            let mut rows = page.lines().filter(|line| line.contains(&link));
            assert!(
                rows.any(|row| row.contains(&format!("`{command}"))),
                "docs/json.md has no row for `{command}` with {link}"
            );
        }
    }
    for name in [ERRORS, COMMON] {
        assert!(page.contains(&format!("(schemas/{name}.schema.json)")));
    }
}

#[test]
fn an_unknown_key_is_refused_at_every_depth() {
    let harness = Harness::applied(TWO);
    harness.ok("sim delete default/web/1");
    let plan = harness.json("plan --json");
    assert!(VALIDATORS["plan"].is_valid(&plan));
    for path in [
        "",
        "/summary",
        "/resource_changes/0",
        "/resource_changes/0/change",
        "/resource_changes/0/change/after",
        "/resource_drift/0/change/before",
    ] {
        let mut wrong = plan.clone();
        let object = wrong.pointer_mut(path).and_then(Value::as_object_mut);
        object.expect(path).insert("surplus".to_owned(), json!(1));
        assert!(!VALIDATORS["plan"].is_valid(&wrong), "{path}");
    }
}

#[test]
#[should_panic(expected = "'surplus' was unexpected")]
fn a_wrong_document_names_the_key() {
    let words = ["plan", "--json"].map(str::to_owned);
    let stdout = r#"{"format_version": "1.0", "diagnostics": [], "surplus": 1}"#;
    assert_valid(&words, stdout, true);
}

#[test]
#[should_panic(expected = "prints JSON without a schema")]
fn a_command_without_a_schema_says_what_to_add() {
    let words = ["-c", "x", "state", "mv", "--json"].map(str::to_owned);
    assert_valid(&words, r#"{"format_version": "1.0"}"#, true);
}

#[test]
#[should_panic(expected = "doesn't print JSON")]
fn text_in_place_of_a_document_is_refused() {
    let words = ["graph", "--format", "json"].map(str::to_owned);
    assert_valid(&words, "digraph nstance {}\n", true);
}

#[test]
fn every_health_check_is_valid() {
    let harness = Harness::with(TWO);
    let mut group = r#""web": { "template": "vm", "size": 3 }"#.to_owned();
    for check in [
        r#""check": "running""#,
        r#""check": "tcp", "port": 22"#,
        r#""check": "http""#,
        r#""check": "https", "path": "/healthy", "status": 204"#,
        r#""check": "command", "command": ["check.sh", "--all"]"#,
    ] {
        let health = format!(r#""update": {{ "health": {{ {check}, "deadline": "5m" }} }}"#);
        let with = format!(r#""web": {{ "template": "vm", "size": 3, {health} }}"#);
        harness.edit(&group, &with);
        let plan = harness.json("plan --json");
        let shown = plan["rollout"][0]["health"]["check"].to_string();
        assert!(check.contains(&shown), "{plan}");
        group = with;
    }
}

#[test]
fn only_an_observed_instance_may_lack_values() {
    let harness = Harness::applied(TWO);
    harness.ok("sim stop default/web/1");
    let plan = harness.json("plan --json");
    let change = &plan["resource_drift"][0]["change"];
    assert_eq!(change["before"]["state"], "running", "{plan}");
    assert_eq!(change["after"]["state"], "stopped", "{plan}");
    for (side, may_lack) in [("before", false), ("after", true)] {
        let mut lacking = plan.clone();
        let instance = &mut lacking["resource_drift"][0]["change"][side];
        instance.as_object_mut().unwrap().remove("load_balancers");
        assert_eq!(VALIDATORS["plan"].is_valid(&lacking), may_lack, "{side}");
    }
}

#[test]
fn the_embedded_cloud_prints_valid_documents() {
    let harness = Harness::applied(TWO);
    for words in [
        "sim stop default/web/0",
        "sim start default/web/0",
        "sim fail default/web/0",
        "sim recover default/web/0",
        "sim set-tag default/web/0 Owner=me",
        "sim set-type default/web/0 large",
        "sim delete default/web/2",
    ] {
        let document = harness.json(&format!("{words} --json"));
        assert!(document["instance"]["provider_id"].is_string(), "{words}");
    }
    let image = harness.json("sim image publish debian-13-arm64-20261201-1 --tag a=b --json");
    assert_eq!(image["image"]["tags"], json!({"a": "b"}));
    assert_eq!(harness.json("sim reset --yes --json")["deleted"], 4);
}
