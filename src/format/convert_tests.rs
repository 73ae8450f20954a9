//! Conversions: that they mean the same, there and back.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::convert::{Converted, convert};
use super::tests::without_places;
use super::*;
use crate::config::check::Purpose;
use crate::config::conversion::Input;
use crate::config::load::load_text;
use crate::config::variables::Given;

const LANGUAGES: [(Language, &str); 3] = [
    (Language::Jsonc, "a.jsonc"),
    (Language::Yaml, "a.yaml"),
    (Language::Hcl, "a.hcl"),
];

fn result_of(name: &str, text: &str, to: Language) -> (SourceMap, Result<Converted, Diagnostics>) {
    let input = Input {
        file: Path::new(name),
        original: Path::new(name),
        whole: &[],
        text,
        working_dir: Path::new(""),
        given: &Given::default(),
    };
    convert(&input, to)
}

#[track_caller]
fn converted(name: &str, text: &str, to: Language) -> String {
    let (sources, result) = result_of(name, text, to);
    match result {
        Ok(converted) => converted.text,
        Err(findings) => panic!(
            "{name} to {to:?}:\n{}\n{text}",
            crate::report::diagnostic::render(&findings, &sources, false)
        ),
    }
}

/// What a text means; the order of keys matters.
#[track_caller]
fn meaning(name: &str, text: &str) -> String {
    let json = converted(name, text, Language::Jsonc);
    let mut findings = Diagnostics::default();
    let root = config::jsonc::read(SourceId(0), &json, &mut findings);
    root.unwrap_or_else(|| panic!("{json}"))
        .to_json()
        .to_string()
}

fn good() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    [
        "tests/good/everything.jsonc",
        "tests/good/quickstart.yaml",
        "tests/it/data/aws.jsonc",
        "tests/it/data/two.jsonc",
        "src/cli/starter.jsonc",
        "examples/kubernetes/nstance.jsonc",
        "examples/quickstart/nstance.jsonc",
        "examples/shards/a.jsonc",
        "examples/shards/b.jsonc",
    ]
    .into_iter()
    .map(|name| {
        (
            name.to_owned(),
            fs::read_to_string(root.join(name)).unwrap(),
        )
    })
    .collect()
}

/// The configuration without places, and whatever was found.
fn loaded(name: &str, text: &str) -> (String, usize) {
    let loaded = load_text(Purpose::Plan, name, text, &Given::default());
    assert!(!loaded.findings.has_errors(), "{name}");
    let config = format!("{:#?}", loaded.config.unwrap());
    (without_places(&config), loaded.findings.len())
}

#[test]
fn good_configurations_stay_what_they_are() {
    for (name, text) in good() {
        let expected = loaded(&name, &text);
        for (to, target) in LANGUAGES {
            let there = converted(&name, &text, to);
            for (back, source) in [(Language::Jsonc, "a.jsonc"), (Language::Yaml, "a.yaml")] {
                let again = converted(target, &there, back);
                assert_eq!(
                    loaded(source, &again),
                    expected,
                    "{name} to {to:?} to {back:?}"
                );
            }
            // A language's own text, converted once more, stays as it is.
            let twice = converted(target, &there, to);
            assert_eq!(converted(target, &twice, to), twice, "{name}: {to:?}");
        }
    }
}

/// Every word of every comment, wherever it is put.
#[test]
fn comments_go_along() {
    for (name, text) in good() {
        for (to, target) in LANGUAGES {
            let there = converted(&name, &text, to);
            for (word, comment) in [("JSONC", "//"), ("others", "#")] {
                let lines = text.lines().map(str::trim);
                for line in lines.filter(|line| line.starts_with(comment)) {
                    let words = line.trim_start_matches(comment).trim();
                    assert!(
                        there.contains(words),
                        "{name} ({word}) to {target}: {words}\n{there}"
                    );
                }
            }
        }
    }
}

const COMMENTED: &str = r##"// The file.
// Its second line.

{
  // The cluster
  "cluster": {"id": "c"}, // its id
  "shard": { // where
    "id": "s",

    /* The
     * cloud */
    "infra": {"provider": "sim", "region": "r", "zone": "z"},
    "subnet_pools": {
      "workers": [ // pools
        "subnet-1", // first
        // second
        "subnet-2",
        // no third
      ],
      // no other
    },
  },
  // Images
  "images": {
    // Debian
    "debian": {
      "provider": "sim",
      "filters": [
        // by name
        {"name": "name", "values": ["debian-*"]}, // any
      ],
    }, // debian ends
    // no other image
  }, // images end
  "templates": {
    "base": {
      "args": {"ImageId": "{{ .Image.debian }}", "${x}": "%{ y } $${z}"},
      "userdata": "#!/bin/sh\n\n  echo {{ .Var.A }} ${HOME}\n",
      "vars": {
        "yes": "yes", "empty": "", "null": null, "date": "2026-01-31", "octal": "0644",
        "hash": "a # b", "colon": "a: b", "tab": "\t\n", "quote": "it's \"so\"", "for": 1e300, "lines": "a\nb",
        "ends": "a\n\n", "long": [1, 2.5, -3, true, {"a": []}],
      },
    },
  },
  "groups": {
    "default": { // ours
      // The web
      "web": {"template": "base"},
    },
    // Theirs
    "other": {
      "api": {"template": "base"},
      // no other group
    },
  },
  // The end
}
// After it
"##;

#[test]
fn each_language_is_written_as_people_write_it() {
    for (to, name) in LANGUAGES {
        let there = converted("a.jsonc", COMMENTED, to);
        insta::assert_snapshot!(name, there);
        assert_eq!(
            meaning(name, &there),
            meaning("a.jsonc", COMMENTED),
            "{there}"
        );
    }
}

#[test]
fn blocks_of_hcl_become_keys() {
    let hcl = r#"
# Nodes
template "node" {
  args = { ImageId = image.debian, Other = "x ${image.debian-13} y" }

  file "a.env" { # of env
    kind     = "env"
    template = { A = "1" }
  }
}

group "web" {
  template = template.node
  override "0" {
    vars = {}
  }
}
group "other" "api" { # theirs
  template = "node"
}
image "debian" {
  filter {
    name   = "a" # first
    values = ["b"]
  }
  filter {
    name   = "c"
    values = [-1.5]
  }
}
strict = true
"#;
    insta::assert_snapshot!(converted("a.hcl", hcl, Language::Yaml));
}

#[test]
fn what_has_no_counterpart_is_named() {
    let explain = |name: &str, text: &str, to: Language| {
        let (sources, result) = result_of(name, text, to);
        let (findings, notes) = match result {
            Ok(converted) => (converted.findings, converted.notes),
            Err(findings) => (findings, Vec::new()),
        };
        let notes = notes
            .iter()
            .map(|note| format!("note: {}: {}\n", sources.place(note.span), note.text));
        notes.collect::<String>() + &crate::report::diagnostic::render(&findings, &sources, false)
    };
    let hcl = r#"
variable "x" {}
locals { y = 1 }
cluster { id = upper("c") }
group "a" {
  for_each = toset(["a"])
  size     = var.x + 1
  vars     = { A = "b ${local.y} %{ if true }c%{ endif }" }
}
"#;
    insta::assert_snapshot!("from_hcl", explain("a.hcl", hcl, Language::Jsonc));
    let twice = "cluster {}\ngroup \"a\" {}\ncluster {}\ngroup \"a\" {}\n";
    insta::assert_snapshot!("twice", explain("a.hcl", twice, Language::Jsonc));
    insta::assert_snapshot!("syntax", explain("a.hcl", "a = ", Language::Jsonc));
    insta::assert_snapshot!("no_object", explain("a.jsonc", "[1]", Language::Yaml));
    let keys = r#"{"$schema": "x", "a b": 1, "c": 2}"#;
    insta::assert_snapshot!("no_name", explain("a.jsonc", keys, Language::Hcl));
    let schema = r#"{"$schema": "x", "c": 2}"#;
    insta::assert_snapshot!("schema", explain("a.jsonc", schema, Language::Hcl));
    let variables = r#"{"variables": {}}"#;
    insta::assert_snapshot!("variables", explain("a.jsonc", variables, Language::Hcl));
    // HCL composes characters.
    let decomposed = "{\"a\": {\"b\": [\"e\u{301}\"]}}";
    insta::assert_snapshot!("decomposed", explain("a.jsonc", decomposed, Language::Hcl));
}

/// Any text that someone might write, hard ones more often than not.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "[ \t\n#:a-c${}%'\"\\\\|>-]{0,16}",
        "[a-c \n]{0,12}\n",
        "( {0,3}[a-z${%]{0,3}\n){1,4}",
        "[0-9_.:+xobeE-]{1,6}",
        prop::sample::select(vec![
            "yes",
            "No",
            "on",
            "null",
            "~",
            "true",
            "0644",
            "1e3",
            "0x1f",
            "1_000",
            "12:30",
            "2026-01-31",
            "=",
            "<<",
            "*a",
            "&a",
            "!a",
            "- a",
            "? a",
            "a: b",
            "a #b",
            "EOT\n",
            "{{ .X }}",
            "${a}",
            "%{ if x }",
            "$${a}",
            "$$${a}",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\r\n",
            "a\r\nb\r\n",
            "---\n",
            "...\n",
            "é\u{1f600}",
            " a\nb\n",
            "\n\na\n",
            "a\n  \n",
        ])
        .prop_map(str::to_owned),
    ]
}

fn tree() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value as Json;
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-1e9..1e9_f64).prop_map(Json::from),
        text().prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            object(inner),
        ]
    })
}

fn object(
    inner: impl Strategy<Value = serde_json::Value>,
) -> impl Strategy<Value = serde_json::Value> {
    let key = prop_oneof!["[a-z_][a-z0-9_-]{0,5}", text()];
    prop::collection::vec((key, inner), 0..5)
        .prop_map(|entries| serde_json::Value::Object(entries.into_iter().collect()))
}

/// A configuration of any values, in the sections that there are.
fn document() -> impl Strategy<Value = serde_json::Value> {
    let section = prop::sample::select(vec![
        "cluster",
        "vars",
        "images",
        "templates",
        "certificates",
        "destroy_budget",
        "strict",
        "other",
    ]);
    let value = prop_oneof![tree(), object(object(tree()))];
    let group = prop_oneof![Just("template"), Just("instance_type")]
        .prop_map(|key| serde_json::json!({key: "x", "vars": {"a": 1}}));
    let name = "[a-z]{1,4}";
    let tenants =
        prop::collection::btree_map(name, prop::collection::btree_map(name, group, 1..3), 1..3);
    (prop::collection::vec((section, value), 0..5), tenants).prop_map(|(entries, tenants)| {
        let mut top: serde_json::Map<String, serde_json::Value> = entries
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        top.insert("groups".to_owned(), serde_json::json!(tenants));
        serde_json::Value::Object(top)
    })
}

proptest! {
    /// There and back, through every language.
    #[test]
    fn any_configuration_stays_what_it_is(
        tree in document(),
        seed in prop::collection::vec(any::<u8>(), 40..100),
    ) {
        let mut text = String::new();
        tests::noise::Noise { seed: &seed, at: 0 }.write(&tree, &mut text);
        let expected = meaning("a.jsonc", &text);
        for (to, name) in LANGUAGES {
            let there = converted("a.jsonc", &text, to);
            prop_assert_eq!(&meaning(name, &there), &expected, "{}\n->\n{}", text, there);
            for (next, other) in LANGUAGES {
                let further = converted(name, &there, next);
                prop_assert_eq!(&meaning(other, &further), &expected, "{}\n->\n{}", there, further);
            }
            // Comments are words that nothing else has.
            for word in text.split(|c: char| !c.is_alphanumeric()) {
                let is_comment = ["line", "block", "two"].iter().any(|kind| {
                    word.strip_prefix(kind).is_some_and(|rest| rest.parse::<u32>().is_ok())
                });
                prop_assert!(!is_comment || there.contains(word), "{word}\n{}\n->\n{}", text, there);
            }
        }
    }
}

/// Whatever is left of a file, or put into it: an answer, and no panic.
#[test]
fn no_broken_text_makes_it_panic() {
    let texts = [
        ("a.jsonc", COMMENTED.to_owned()),
        ("a.yaml", converted("a.jsonc", COMMENTED, Language::Yaml)),
        ("a.hcl", converted("a.jsonc", COMMENTED, Language::Hcl)),
    ];
    let strays = [
        "\"", "{", "]", "#", "\\", "é", "/*", "\n", "<<EOT\n", "'", "*a", "&a ", "${", "- ",
    ];
    let answer = |name: &str, text: &str| {
        let mut sources = SourceMap::default();
        let source = sources.add(name, text);
        let _ = layout(&sources, source);
        for (to, _) in LANGUAGES {
            let _ = result_of(name, text, to);
        }
    };
    for (name, text) in texts {
        let places = text.char_indices().map(|(at, _)| at).step_by(5);
        for (index, at) in places.enumerate() {
            answer(name, &text[..at]);
            let stray = strays[index % strays.len()];
            answer(name, &format!("{}{stray}{}", &text[..at], &text[at..]));
        }
    }
}
