//! Conversions: what is written gives the same when it is read.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;

use super::convert::convert;
use super::tests;
use super::*;
use crate::check::Purpose;
use crate::config::load::{Evaluated, document, document_of_text};
use crate::config::variables::Given;
use crate::load::{load, load_text};
use crate::report::diagnostic::render;

const LANGUAGES: [(Language, &str); 3] = [
    (Language::Jsonc, "a.jsonc"),
    (Language::Yaml, "a.yaml"),
    (Language::Hcl, "a.hcl"),
];

#[track_caller]
fn written(document: &Evaluated, to: Language) -> String {
    convert(document, to).unwrap_or_else(|findings| {
        panic!("{to:?}: {}", render(&findings, &document.sources, false))
    })
}

fn evaluated(name: &str, text: &str) -> Evaluated {
    document_of_text(name, text, &Given::default())
}

/// What is reported where a text can't be converted.
fn refusal(name: &str, text: &str, to: Language) -> String {
    let document = evaluated(name, text);
    match convert(&document, to) {
        Ok(written) => panic!("{written}"),
        Err(findings) => render(&findings, &document.sources, false),
    }
}

/// The document as JSON, for comparing; the order of keys matters.
#[track_caller]
fn meaning(name: &str, text: &str) -> String {
    let document = evaluated(name, text);
    let root = document.root.unwrap_or_else(|| panic!("{text}"));
    let mut json = root.to_json();
    let top = json.as_object_mut().unwrap();
    // Blocks of HCL add it.
    top.shift_remove("groups_form");
    json.to_string()
}

/// Configurations whose values aren't sensitive.
fn good() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    [
        "tests/good/everything.jsonc",
        "tests/good/quickstart.hcl",
        "tests/good/quickstart.yaml",
        "tests/it/data/aws.jsonc",
        "tests/it/data/two.jsonc",
        "src/cli/starter.jsonc",
        "examples/aws",
        "examples/cloud-init-layers",
        "examples/kubernetes",
        "examples/quickstart",
        "examples/shards/a.jsonc",
        "examples/shards/b.jsonc",
    ]
    .map(|name| root.join(name))
    .into()
}

/// The typed configuration, its places left out, is the strictest comparison there is.
#[test]
fn what_is_written_loads_as_the_same_configuration() {
    for path in good() {
        let here = Path::new("");
        let original = load(Some(&path), here, &Given::default());
        let config = format!("{:#?}", original.config.unwrap());
        let expected = tests::without_places(&config);
        let document = document(Some(&path), here, &Given::default());
        for (to, name) in LANGUAGES {
            let text = written(&document, to);
            let loaded = load_text(Purpose::Plan, name, &text, &Given::default());
            assert!(!loaded.findings.has_errors(), "{path:?}:\n{text}");
            let config = format!("{:#?}", loaded.config.unwrap());
            assert_eq!(
                tests::without_places(&config),
                expected,
                "{path:?} in {to:?}"
            );
            // What was written stays as it is, also under `fmt`.
            let again = evaluated(name, &text);
            assert_eq!(written(&again, to), text, "{path:?}");
            let mut sources = SourceMap::default();
            let source = sources.add(name, &*text);
            let formatted = layout(&sources, source).unwrap();
            assert_eq!(formatted.unwrap_or_else(|| text.clone()), text, "{path:?}");
        }
    }
}

const HARD: &str = r##"{
  "cluster": {"id": "c"},
  "shard": {
    "id": "s",
    "infra": {"provider": "sim", "region": "r", "zone": "z"},
    "subnet_pools": {"workers": ["subnet-1", "subnet-2"]},
  },
  "images": {
    "debian": {"provider": "sim", "filters": [{"name": "name", "values": ["debian-*"]}]},
  },
  "templates": {
    "base": {
      "args": {"ImageId": "{{ .Image.debian }}", "${x}": "%{ y } $${z}"},
      "userdata": "#!/bin/sh\n\n  echo {{ .Var.A }} ${HOME}\n",
      "vars": {
        "yes": "yes", "empty": "", "null": null, "date": "2026-01-31", "octal": "0644",
        "hash": "a # b", "colon": "a: b", "tab": "\t\n", "quote": "it's \"so\"", "for": 1e300,
        "lines": "a\nb", "ends": "a\n\n", "long": [1, 2.5, -3, true, {"a": [], "b": {}}],
        "wide": ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"],
        "nested": [[1, 2], [["a\nb\n"], []]],
      },
    },
  },
  "groups": {
    "default": {"web": {"template": "base"}},
    "other": {"api": {"template": "base"}},
  },
}
"##;

#[test]
fn each_language_is_written_as_people_write_it() {
    let document = evaluated("a.jsonc", HARD);
    for (to, name) in LANGUAGES {
        let text = written(&document, to);
        insta::assert_snapshot!(name, text);
        assert_eq!(meaning(name, &text), meaning("a.jsonc", HARD), "{text}");
    }
}

const EVALUATED: &str = r#"
variable "region" { default = "eu" }
locals {
  sizes = { small = 2, large = 5 }
}
template "node" {
  args = { ImageId = image.debian, Other = "x ${image.debian} $${HOME}" }
  file "a.env" { # a comment
    kind     = "env"
    template = { A = upper(var.region) }
  }
}
group "web" {
  for_each = local.sizes
  template = template.node
  size     = each.value
}
group "other" "api" {
  template = "node"
}
image "debian" {
  filter {
    name   = "a"
    values = ["b"]
  }
}
"#;

#[test]
fn expressions_become_their_values() {
    let document = evaluated("a.hcl", EVALUATED);
    insta::assert_snapshot!(written(&document, Language::Yaml));
    let hcl = written(&document, Language::Hcl);
    assert!(hcl.contains("x {{ .Image.debian }} $${HOME}"), "{hcl}");
}

/// What looks like an expression is text afterwards.
#[test]
fn interpolations_that_are_text_stay_text() {
    let text = r#"{"variables": {"x": {"default": "X"}}, "vars": {"a": "$${b} ${var.x} %{c}"}}"#;
    let expected = json!({"vars": {"a": "${b} X %{c}"}}).to_string();
    for (to, name) in LANGUAGES {
        let text = written(&evaluated("a.jsonc", text), to);
        assert_eq!(meaning(name, &text), expected, "{text}");
    }
}

#[test]
fn groups_keep_their_form() {
    for (groups, form) in [
        (json!({"web": {"size": 1}}), None),
        (json!({"default": {"web": {"size": 1}}, "other": {}}), None),
        (json!({"a": {"vars": {}}}), Some("nested")),
        (json!({"a": {"vars": {}}}), Some("flat")),
    ] {
        let mut tree = json!({"groups": groups});
        if let Some(form) = form {
            tree["groups_form"] = json!(form);
        }
        let document = evaluated("a.jsonc", &tree.to_string());
        for (to, name) in LANGUAGES {
            let text = written(&document, to);
            if to != Language::Hcl {
                let found = evaluated(name, &text).root.unwrap().to_json();
                assert_eq!(found, tree, "{text}");
            }
            let there = evaluated(name, &text);
            for (to, name) in LANGUAGES {
                let back = written(&there, to);
                assert!(evaluated(name, &back).root.is_some(), "{back}");
            }
        }
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let secret = r#"
variable "token" {
  default   = "hunter22"
  sensitive = true
}
group "web" {
  vars = { TOKEN = var.token, OTHER = "a", URL = "https://${var.token}@example.com" }
}
"#;
    let refused = refusal("a.hcl", secret, Language::Yaml);
    assert!(!refused.contains("hunter22"), "{refused}");
    insta::assert_snapshot!("sensitive", refused);
    // A value of two is one of them in another form, too.
    let flag = "vars = { A = sensitive(true) ? \"on\" : \"off\", B = length(sensitive(\"ab\")) }\n";
    let refused = refusal("a.hcl", flag, Language::Yaml);
    assert!(refused.contains("`vars.A`, `vars.B`"), "{refused}");
    let many = "vars = { for n in range(12) : \"v${n}\" => sensitive(n) }\n";
    insta::assert_snapshot!("many_sensitive", refusal("a.hcl", many, Language::Jsonc));
    insta::assert_snapshot!(
        "no_value",
        refusal("a.hcl", "variable \"x\" {}\n", Language::Jsonc)
    );
    insta::assert_snapshot!("syntax", refusal("a.hcl", "a = ", Language::Jsonc));
    insta::assert_snapshot!("no_object", refusal("a.jsonc", "[1]", Language::Yaml));
    let key = r#"{"a b": 1, "c": 2}"#;
    insta::assert_snapshot!("no_name", refusal("a.jsonc", key, Language::Hcl));
    // HCL composes characters.
    let decomposed = "{\"a\": {\"b\": [\"e\u{301}\"]}}";
    insta::assert_snapshot!("decomposed", refusal("a.jsonc", decomposed, Language::Hcl));
    // A schema for editors of JSON isn't for HCL.
    let document = evaluated("a.jsonc", r#"{"$schema": "x", "c": 2}"#);
    assert!(!written(&document, Language::Hcl).contains("schema"));
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
fn document_tree() -> impl Strategy<Value = serde_json::Value> {
    let section = prop::sample::select(vec![
        "cluster",
        "state",
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
    /// There and further, through every language.
    #[test]
    fn any_configuration_stays_what_it_is(tree in document_tree()) {
        let text = tree.to_string();
        let expected = meaning("a.jsonc", &text);
        let original = evaluated("a.jsonc", &text);
        for (to, name) in LANGUAGES {
            let there = written(&original, to);
            prop_assert_eq!(&meaning(name, &there), &expected, "{}\n->\n{}", text, there);
            for (next, other) in LANGUAGES {
                let further = written(&evaluated(name, &there), next);
                prop_assert_eq!(&meaning(other, &further), &expected, "{}\n->\n{}", there, further);
            }
        }
    }
}

/// Any part of a file, or a file with something added: an answer, and no panic.
#[test]
fn no_broken_text_makes_it_panic() {
    let document = evaluated("a.jsonc", HARD);
    let strays = [
        "\"", "{", "]", "#", "\\", "é", "/*", "\n", "<<EOT\n", "'", "*a", "&a ", "${", "- ", "//",
    ];
    let answer = |name: &str, text: &str| {
        let mut sources = SourceMap::default();
        let source = sources.add(name, text);
        let _ = layout(&sources, source);
        let document = evaluated(name, text);
        for (to, _) in LANGUAGES {
            let _ = convert(&document, to);
        }
    };
    for (to, name) in LANGUAGES {
        let text = written(&document, to);
        let places = text.char_indices().map(|(at, _)| at).step_by(5);
        for (index, at) in places.enumerate() {
            answer(name, &text[..at]);
            let stray = strays[index % strays.len()];
            answer(name, &format!("{}{stray}{}", &text[..at], &text[at..]));
        }
    }
}
