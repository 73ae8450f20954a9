//! What is shown of an instance is the same, whatever its secrets are.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::address::Address;
use crate::config::check::Purpose;
use crate::config::load::load_text;
use crate::config::model::ProviderKind;
use crate::config::variables::Given;
use crate::diagnostic::Diagnostics;
use crate::marks::HIDDEN_LINE;
use crate::pipeline::{compile_all, renderers};
use crate::provider::rules::Rules;
use crate::render::data::InstanceFacts;
use crate::render::instance::Report;
use crate::report::diagnostic::render;

/// What is shown of the only instance of a configuration, or why there is none.
fn shown(config: &Value, secret: &str) -> Result<Value, String> {
    let given = Given::vars([("secret".to_owned(), secret.to_owned())]);
    let loaded = load_text(Purpose::Plan, "nstance.jsonc", &config.to_string(), &given);
    let told = |findings: &Diagnostics| render(findings, &loaded.sources, false);
    assert!(!loaded.findings.has_errors(), "{}", told(&loaded.findings));
    let config = loaded.config.as_ref().unwrap();
    let mut findings = Diagnostics::default();
    let compiled = compile_all(config, &loaded.sources, &HashMap::new(), &mut findings);
    assert!(!findings.has_errors(), "{}", told(&findings));
    let rules = Rules::of(ProviderKind::Sim);
    let renderers = renderers(config, &compiled, &BTreeMap::new(), rules);
    let renderer = &renderers[0];
    let group = &renderer.group.merged;
    let address = Address::new(group.name.clone(), 0);
    let facts = InstanceFacts::example(group, 0, &group.instance_type);
    let (kept, mut report) = (BTreeMap::new(), Report::default());
    let Some(spec) = renderer.render(&address, &facts, &kept, &mut report) else {
        let findings = report.findings(&loaded.sources, &std::iter::empty(), false);
        return Err(told(&findings));
    };
    let marks = renderer.marks(&address, &facts, &kept, &spec);
    let body = spec.to_body();
    Ok(json!({ "spec": marks.cover(&body), "marks": marks.to_json() }))
}

fn config(line: &str, userdata: &str) -> Value {
    json!({
        "cluster": {"id": "c"},
        "shard": {"id": "s", "infra": {"provider": "sim", "region": "r", "zone": "z"}},
        "functions": "sprig",
        "variables": {"secret": {"sensitive": true}},
        "vars": {"S": "${var.secret}", "L": ["a", "${var.secret}"], "OPEN": "open"},
        "groups": {"default": {"g": {
            "instance_type": "t",
            "args": {"Line": line, "In": [{"part": line, "open": "{{ .Vars.OPEN }}"}]},
            "labels": {"tag": "t-${var.secret}"},
            "userdata": userdata,
            "files": {
                "env": {"kind": "env", "template": {"OPEN": "1", "LINE": line}},
                "json": {"kind": "json", "template": {"a": {"b": line}, "open": "{{ .Instance.ID }}"}},
                "text": {"kind": "string", "template": userdata},
                "carried": {"kind": "string", "template": userdata, "deliver": "userdata"},
            },
        }}},
    })
}

/// Functions that make something of a text, or of what others made of it.
const FUNCTIONS: [&str; 32] = [
    "upper",
    "lower",
    "title",
    "untitle",
    "swapcase",
    "trim",
    "nospace",
    "b64enc",
    "b32enc",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "adler32sum",
    "quote",
    "squote",
    "trunc 7",
    "trunc -7",
    "substr 1 8",
    "repeat 2",
    "replace \"a\" \"b\"",
    "printf \"%x\"",
    "printf \"<%10s|%q>\" \"x\"",
    "indent 2",
    "cat \"a\"",
    "snakecase",
    "kebabcase",
    "camelcase",
    "toJson",
    "list \"z\" | join \"-\"",
    "splitList \"\" | sortAlpha | join \"\"",
    "dict \"k\" | toJson",
    "replace \"e\" \"3\" | html",
];

fn pipeline() -> impl Strategy<Value = String> {
    let functions = prop::collection::vec(prop::sample::select(&FUNCTIONS[..]), 0..4);
    let start =
        prop::sample::select(&[".Vars.S", "(index .Vars.L 1)", "(printf \"x%s\" .Vars.S)"][..]);
    (start, functions).prop_map(|(start, functions)| {
        functions.iter().fold(start.to_owned(), |made, function| {
            format!("({made} | {function})")
        })
    })
}

/// Lines of a text, some of them made of the secret.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("open line\n".to_owned()),
        Just("{{ .Instance.ID }} {{ .Vars.OPEN | upper }}\n".to_owned()),
        pipeline().prop_map(|made| format!("key={{{{ {made} }}}}\n")),
        pipeline().prop_map(|made| format!("{{{{- $x := {made} }}}}\nx {{{{ $x }}}}\n")),
        pipeline().prop_map(|made| format!("{{{{ with {made} }}}}in {{{{ . }}}}\n{{{{ end }}}}\n")),
        pipeline().prop_map(|made| format!("{{{{ if {made} }}}}\nthere\n{{{{ end }}}}\n")),
        // Character by character: a single one of a digest may be the same by chance.
        prop::sample::select(&["upper", "lower", "swapcase", "squote", "toString"][..]).prop_map(|function| {
            format!("{{{{ range splitList \"\" (.Vars.S | {function}) }}}}\n- {{{{ . }}}}\n{{{{ end }}}}\n")
        }),
    ];
    prop::collection::vec(line, 1..6).prop_map(|lines| lines.concat())
}

/// Two secrets that look alike: what is told of their kind and length is told of both.
fn secrets() -> impl Strategy<Value = (String, String)> {
    let character = prop_oneof![
        ("[a-z]", "[a-z]"),
        ("[A-Z]", "[A-Z]"),
        ("[0-9]", "[0-9]"),
        prop::sample::select(&["-", "_", "/", "+", "é", "\"", "&", " "][..])
            .prop_map(|both| (both.to_owned(), both.to_owned())),
    ];
    prop::collection::vec(character, 8..24).prop_map(|characters| {
        let (one, other): (Vec<_>, Vec<_>) = characters.into_iter().unzip();
        // Neither ends where it would be trimmed.
        (
            format!("a{}Z9", one.concat()),
            format!("b{}Y8", other.concat()),
        )
    })
}

/// What is to be read of a text: how many lines are hidden is as long as the secret.
fn readable(value: &Value) -> Value {
    match value {
        Value::String(text) if text.contains('\n') => {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.filter(|line| *line != HIDDEN_LINE).collect()
        }
        Value::Array(items) => items.iter().map(readable).collect(),
        Value::Object(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| (key.clone(), readable(value)));
            entries.collect::<serde_json::Map<_, _>>().into()
        }
        value => value.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shown_does_not_depend_on_secrets(
        line in pipeline(),
        userdata in text(),
        (one, other) in secrets(),
    ) {
        let config = config(&format!("{{{{ {line} }}}}"), &userdata);
        let (one, other) = (shown(&config, &one), shown(&config, &other));
        prop_assert_eq!(one.map(|one| readable(&one)), other.map(|other| readable(&other)));
    }
}

#[test]
fn lines_and_values_are_told_apart() {
    let config = config(
        "{{ .Vars.S | sha256sum }}",
        "#!/bin/sh\necho {{ .Vars.OPEN }}\necho {{ .Vars.S | upper | b64enc }}\necho {{ len .Vars.S }}\necho end\n",
    );
    let shown = shown(&config, "hunter2").unwrap();
    let spec = &shown["spec"];
    assert_eq!(spec["args"]["Line"], "(sensitive value)");
    assert_eq!(
        spec["args"]["In"],
        json!([{"part": "(sensitive value)", "open": "open"}])
    );
    assert_eq!(spec["tags"]["tag"], "(sensitive value)");
    assert_eq!(spec["vars"]["L"], json!(["a", "(sensitive value)"]));
    assert_eq!(
        spec["files"]["text"]["content"],
        "#!/bin/sh\necho open\n(sensitive line)\n(sensitive line)\necho end\n"
    );
    assert_eq!(
        spec["files"]["env"]["content"],
        "OPEN=1\n(sensitive line)\n"
    );
}

#[test]
fn what_is_asked_of_a_secret_is_one() {
    for (question, secret) in [
        ("if .Vars.S", "x"),
        ("if eq .Vars.S \"hunter2\"", "hunter2"),
        ("if gt (len .Vars.S) 3", "hunter2"),
        ("if hasPrefix \"hun\" .Vars.S", "hunter2"),
        ("if contains \"-\" .Vars.S", "a-b"),
        ("range until (len .Vars.S)", "abc"),
        ("if not .Vars.S", ""),
    ] {
        let userdata = format!("open\n{{{{ {question} }}}}told\n{{{{ end }}}}\n");
        let shown = shown(&config("x", &userdata), secret).unwrap();
        let text = shown["spec"]["files"]["text"]["content"].as_str().unwrap();
        assert!(
            text.starts_with("open\n") && !text.contains("told"),
            "{question}: {text}"
        );
    }
}

#[test]
fn errors_are_the_same_for_all_secrets() {
    for line in [
        "{{ fail .Vars.S }}",
        "{{ .Vars.S | b64enc | fail }}",
        "{{ mustFromJson .Vars.S }}",
        "{{ index .Vars.S 99 }}",
    ] {
        let config = config(line, "x");
        let (one, other) = (shown(&config, "hunter2"), shown(&config, "bunting"));
        assert_eq!(one, other);
        assert!(one.unwrap_err().contains("can't be rendered"), "{line}");
    }
}

#[test]
fn a_template_that_only_takes_the_real_one_is_hidden_as_a_whole() {
    let userdata = "open\n{{ if ne .Vars.S \"hunter2\" }}{{ fail \"no\" }}{{ end }}\nend\n";
    let shown = shown(&config("x", userdata), "hunter2").unwrap();
    assert_eq!(shown["spec"]["userdata"]["text"], "(sensitive value)");
    assert_eq!(shown["spec"]["args"]["Line"], "x");
}

#[test]
fn a_configuration_without_secrets_has_no_twins() {
    let text = json!({
        "cluster": {"id": "c"},
        "shard": {"id": "s", "infra": {"provider": "sim", "region": "r", "zone": "z"}},
        "variables": {"open": {"default": "x"}},
        "groups": {"default": {"g": {"instance_type": "t", "vars": {"V": "${var.open}"}}}},
    });
    let loaded = load_text(
        Purpose::Plan,
        "nstance.jsonc",
        &text.to_string(),
        &Given::default(),
    );
    assert!(loaded.config.unwrap().twins.is_empty());
}
