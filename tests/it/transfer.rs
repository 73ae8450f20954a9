//! `state pull` and `state push`.

use std::io::Write as _;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;

use crate::harness::{Ended, Harness, TWO, TWO_STATE};

/// The document of the state, as text.
fn pulled(harness: &Harness) -> String {
    harness.ok("state pull").stdout
}

/// A state with a document of it in `document.json`.
fn with_document() -> (Harness, String) {
    let harness = Harness::with(TWO);
    // Specs go by masked digests: another key, another order.
    harness.give_key();
    harness.ok("apply --auto-approve");
    let document = pulled(&harness);
    harness.write("document.json", &document);
    (harness, document)
}

/// Runs a command with a text on its standard input.
fn fed(harness: &Harness, words: &str, text: &str) -> Ended {
    let mut command = harness.command(words);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    harness.wait(words, child)
}

/// The document changed as JSON.
fn edited(document: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(document).unwrap();
    change(&mut value);
    serde_json::to_string_pretty(&value).unwrap()
}

#[test]
fn what_was_pulled_says_everything_but_secrets() {
    let harness = Harness::applied(&TWO.replace("plain", "hunter2"));
    let text = pulled(&harness);
    assert!(!text.contains("hunter2"));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["format_version"], "1.0");
    assert_eq!(document["cluster"], "test");
    assert_eq!(document["instances"].as_array().unwrap().len(), 5);
    assert_eq!(document["specs"].as_object().unwrap().len(), 2);
    // Without a change it is the same text.
    assert_eq!(pulled(&harness), text);
}

#[test]
fn pulled_and_pushed_nothing_changes() {
    let (harness, document) = with_document();
    let before = harness.bytes(TWO_STATE);
    assert_snapshot!(harness.ok("state push document.json"));
    assert_snapshot!(fed(&harness, "state push -", &document));
    assert!(harness.bytes(TWO_STATE) == before);
    assert_eq!(pulled(&harness), document);
}

#[test]
fn a_state_that_is_lost_is_made_again() {
    let (harness, document) = with_document();
    harness.edit("\"size\": 3", "\"size\": 4");
    harness.ok("plan --out saved.plan");
    for suffix in ["", ".lock"] {
        std::fs::remove_file(harness.path(&format!("{TWO_STATE}{suffix}"))).unwrap();
    }
    assert_snapshot!(harness.ok("state push document.json"));
    assert_eq!(pulled(&harness), document);
    assert_snapshot!(harness.ok("state history 1"));
    // It is the very same state: a plan that was made before holds.
    harness.ok("apply saved.plan");
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn what_was_edited_takes_the_place() {
    let (harness, document) = with_document();
    // An instance that is given another slot, and one that is forgotten.
    let other = edited(&document, |document| {
        let instances = document["instances"].as_array_mut().unwrap();
        instances.remove(0);
        instances[0]["slot"] = 7.into();
    });
    harness.write("other.json", &other);
    assert_snapshot!(harness.ok("state push other.json"));
    assert_snapshot!(harness.ok("state list"));
    assert_snapshot!(harness.ok("state history 2"));
    let after: Value = serde_json::from_str(&pulled(&harness)).unwrap();
    let before: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(after["lineage"], before["lineage"]);
    assert!(after["serial"].as_u64() > before["serial"].as_u64());
    // Pushed back it says what it said, but for when it changed.
    harness.refused(TWO_STATE, "state push document.json");
    harness.ok("state push document.json --force");
    let timeless = |text: &str| {
        edited(text, |document| {
            document["serial"] = 0.into();
            for instance in document["instances"].as_array_mut().unwrap() {
                instance["version"] = 0.into();
                instance["updated_at"] = 0.into();
            }
            // The generations of slots that were left stay used.
            document["generations"] = Value::Array(Vec::new());
        })
    };
    assert_eq!(timeless(&pulled(&harness)), timeless(&document));
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn an_older_state_is_refused_unless_it_is_forced() {
    let (harness, _) = with_document();
    harness.edit("\"size\": 3", "\"size\": 4");
    harness.ok("apply --auto-approve");
    assert_snapshot!(harness.refused(TWO_STATE, "state push document.json"));
    harness.ok("state push document.json --force");
    // What was made since isn't lost: it carries our tags.
    assert_eq!(harness.live().len(), 6);
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 6);
}

#[test]
fn a_backup_can_be_pushed_like_a_document() {
    let harness = Harness::applied(TWO);
    harness.ok("state rm default/web/0");
    let folder = harness.path(".nstance/test/one.backups");
    let backups: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [backup] = &backups[..] else {
        panic!("one backup: {backups:?}");
    };
    let backup = backup.display();
    let ended = harness.refused(TWO_STATE, &format!("state push {backup}"));
    assert!(ended.stderr.contains("is older than the state"), "{ended}");
    harness.ok(&format!("state push {backup} --force"));
    assert_eq!(harness.agrees(""), 5);
    // Where the state is damaged, it is moved away first.
    harness.write(
        TWO_STATE,
        "no database at all, but as long as a short shopping list",
    );
    let ended = harness.refused(TWO_STATE, &format!("state push {backup} --force"));
    assert!(ended.stderr.contains("so it is not a state"), "{ended}");
    std::fs::remove_file(harness.path(TWO_STATE)).unwrap();
    harness.ok(&format!("state push {backup}"));
    assert_eq!(harness.agrees(""), 5);
}

#[test]
fn what_belongs_elsewhere_is_refused() {
    let (harness, _) = with_document();
    for (from, to) in [
        ("\"id\": \"test\"", "\"id\": \"other\""),
        ("\"id\": \"one\"", "\"id\": \"two\""),
    ] {
        harness.edit(from, to);
        let ended = harness.refused(TWO_STATE, "state push document.json");
        assert_snapshot!(ended);
        harness.edit(to, from);
    }
    // Another state of the same shard has another lineage.
    std::fs::remove_file(harness.path(TWO_STATE)).unwrap();
    harness.ok("apply --auto-approve");
    let lineage = harness.json("show --json")["lineage"].clone();
    let ended = harness.refused(TWO_STATE, "state push document.json --force");
    let lineage = lineage.as_str().unwrap();
    assert!(ended.stderr.contains(lineage), "{ended}");
    assert!(
        ended.stderr.contains("document.json is another state"),
        "{ended}"
    );
    assert!(
        ended.stderr.contains("hint: Move the state away first"),
        "{ended}"
    );
}

#[test]
fn damaged_documents_are_refused() {
    let (harness, document) = with_document();
    let cut = &document[..document.len() / 2];
    let other = |change: &dyn Fn(&mut Value)| edited(&document, change);
    let spec = |document: &Value| {
        let specs = document["specs"].as_object().unwrap();
        specs.keys().next().unwrap().clone()
    };
    let damaged = [
        ("an empty file", String::new()),
        ("another text", "milk, eggs, bread\n".to_owned()),
        ("half of it", cut.to_owned()),
        (
            "a newer format",
            other(&|document| document["format_version"] = "9.0".into()),
        ),
        (
            "a key that nobody knows",
            other(&|document| document["surprise"] = 1.into()),
        ),
        (
            "a key that is missing",
            other(&|document| {
                document.as_object_mut().unwrap().remove("lineage");
            }),
        ),
        (
            "two instances of a slot",
            other(&|document| document["instances"][1]["slot"] = 0.into()),
        ),
        (
            "an instance twice",
            other(&|document| {
                let first = document["instances"][0]["provider_id"].clone();
                document["instances"][1]["provider_id"] = first;
            }),
        ),
        (
            "a spec that is missing",
            other(&|document| {
                let name = spec(document);
                document["specs"].as_object_mut().unwrap().remove(&name);
            }),
        ),
        (
            "a spec that was changed",
            other(&|document| {
                let name = spec(document);
                let body = document["specs"][&name].as_str().unwrap();
                let changed = format!("{}AAAA", &body[..body.len() - 4]);
                document["specs"][&name] = changed.into();
            }),
        ),
        (
            "a spec under another's name",
            other(&|document| {
                let specs = document["specs"].as_object_mut().unwrap();
                let bodies: Vec<Value> = specs.values().rev().cloned().collect();
                for (body, other) in specs.values_mut().zip(bodies) {
                    *body = other;
                }
            }),
        ),
        (
            "a record from the future",
            other(&|document| document["instances"][0]["version"] = 1_000.into()),
        ),
        (
            "another lineage written over its own",
            other(&|document| document["lineage"] = "another".into()),
        ),
    ];
    let mut told = String::new();
    for (name, text) in &damaged {
        harness.write("damaged.json", text);
        let ended = harness.refused(TWO_STATE, "state push damaged.json --force");
        assert!(ended.stderr.contains("hint: "), "{name}: {ended}");
        told.push_str(&format!("# {name}\n{}\n", ended.stderr));
    }
    assert_eq!(pulled(&harness), document);
    assert_snapshot!(told);
    harness.refused(TWO_STATE, "state push no-such-file.json");
}

#[test]
fn what_is_open_is_settled_before_it_is_replaced() {
    let harness = Harness::with(TWO);
    harness.edit(
        "\"options\": {}",
        r#""options": { "fail": [{ "operation": "create", "error": "ambiguous", "count": 99 }] }"#,
    );
    let ended = harness.run("apply --auto-approve");
    assert_eq!(ended.code, Some(1), "{ended}");
    let document = pulled(&harness);
    let open: Value = serde_json::from_str(&document).unwrap();
    assert!(!open["intents"].as_array().unwrap().is_empty(), "{open}");
    let closed = edited(&document, |document| {
        document["intents"] = Value::Array(Vec::new());
    });
    harness.write("closed.json", closed);
    assert_snapshot!(harness.refused(TWO_STATE, "state push closed.json"));
    // With its intents it is made anew elsewhere, and an apply settles them there.
    harness.write("open.json", &document);
    std::fs::remove_file(harness.path(TWO_STATE)).unwrap();
    harness.ok("state push open.json");
    assert_eq!(pulled(&harness), document);
    let config = String::from_utf8(harness.read("nstance.jsonc")).unwrap();
    let start = config.find("\"fail\"").unwrap();
    let end = config[start..].find(']').unwrap() + start + 1;
    harness.configure(&format!("{}{}", &config[..start], &config[end..]));
    harness.ok("apply --auto-approve");
    assert_eq!(harness.agrees(""), 5);
    let history = harness.ok("state history");
    assert!(history.stdout.contains("recovery"), "{history}");
}

#[test]
fn a_document_without_its_key_is_not_opened() {
    let (harness, document) = with_document();
    let other = Harness::with(TWO);
    other.write("document.json", &document);
    let ended = other.refused(TWO_STATE, "state push document.json");
    assert_snapshot!(ended);
    assert_eq!(other.files(), ["document.json", "nstance.jsonc"]);
    // With the key it is opened anywhere.
    let key = String::from_utf8(harness.read(".nstance/key")).unwrap();
    let mut command = other.command("state push document.json");
    command.env("NSTANCE_STATE_KEY", key.lines().last().unwrap());
    let ended = other.end("state push document.json", command);
    assert_eq!(ended.code, Some(0), "{ended}");
}
