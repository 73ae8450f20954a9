//! Conversions of what depends on variables: that it does so afterwards, to the same effect.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::convert::{Converted, convert};
use super::tests;
use crate::config::conversion::Input;
use crate::config::source::{Language, SourceId, SourceMap};
use crate::config::variables::Given;
use crate::diagnostic::Diagnostics;

const LANGUAGES: [(Language, &str); 3] = [
    (Language::Jsonc, "a.jsonc"),
    (Language::Yaml, "a.yaml"),
    (Language::Hcl, "a.hcl"),
];

const DECLARED: &str = r#"
variable "x" { default = "X" }
variable "n" {
  type    = number
  default = 2
}
variable "map" { default = { a = 1, "b c" = [2] } }
variable "token" {
  default   = "secret"
  sensitive = true
}
variable "asked" {}
locals {
  plain  = { a = "A", list = ["l", "${"$"}{m}"] }
  made   = { region = var.x, other = [var.n] }
  chain  = upper(local.made.region)
  dollar = "$"
  asked  = var.asked
}
"#;

fn input<'a>(name: &'a str, text: &'a str, given: &'a Given) -> Input<'a> {
    Input {
        file: Path::new(name),
        original: Path::new(name),
        whole: &[],
        text,
        working_dir: Path::new(""),
        given,
    }
}

fn result_of(name: &str, text: &str, to: Language) -> (SourceMap, Result<Converted, Diagnostics>) {
    convert(&input(name, text, &Given::default()), to)
}

/// What is said: notes, then findings.
fn said(name: &str, text: &str, to: Language) -> String {
    let (sources, result) = result_of(name, text, to);
    let (findings, notes) = match result {
        Ok(converted) => (converted.findings, converted.notes),
        Err(findings) => (findings, Vec::new()),
    };
    let notes = notes
        .iter()
        .map(|note| format!("note: {}: {}\n", sources.place(note.span), note.text));
    notes.collect::<String>() + &crate::report::diagnostic::render(&findings, &sources, false)
}

#[track_caller]
fn converted(name: &str, text: &str, to: Language) -> String {
    match result_of(name, text, to) {
        (_, Ok(converted)) => converted.text,
        (sources, Err(findings)) => panic!(
            "{name} to {to:?}:\n{}\n{text}",
            crate::report::diagnostic::render(&findings, &sources, false)
        ),
    }
}

#[track_caller]
fn json_of(text: &str) -> Json {
    let mut findings = Diagnostics::default();
    let root = crate::config::jsonc::read(SourceId(0), text, &mut findings);
    root.unwrap_or_else(|| panic!("{text}")).to_json()
}

/// What a configuration means once its expressions are evaluated.
#[track_caller]
fn meaning(name: &str, text: &str) -> String {
    match input(name, text, &Given::default()).meaning() {
        Ok(meaning) => meaning.root.to_json().to_string(),
        Err(findings) => panic!("{name}: {findings:?}\n{text}"),
    }
}

#[test]
fn expressions_of_hcl_stay_or_become_values() {
    for (expression, expected) in [
        // Literals, where `${` has to be escaped outside of Go's braces.
        (r#""a""#, json!("a")),
        (r#""$${HOME} %%{x}""#, json!("$${HOME} %{x}")),
        (r#""$$${x}""#, json!("$$${x}")),
        (r#""{{ $${x} }} $${y}""#, json!("{{ ${x} }} $${y}")),
        // What depends on variables.
        ("var.x", json!("${var.x}")),
        (r#"var.map["b c"][0]"#, json!("${var.map[\"b c\"][0]}")),
        (r#""a ${var.x} $${b}""#, json!("a ${var.x} $${b}")),
        (r#""${var.n}""#, json!("${var.n}")),
        (
            "[var.n, { k = var.x }]",
            json!(["${var.n}", {"k": "${var.x}"}]),
        ),
        ("(var.n + 1) * 2", json!("${(var.n + 1) * 2}")),
        (
            "var.n > 1 ? \"a\" : null",
            json!("${var.n > 1 ? \"a\" : null}"),
        ),
        (
            "[for k, v in var.map : \"${k}\" if k != \"z\"]",
            json!("${[for k, v in var.map : \"${k}\" if k != \"z\"]}"),
        ),
        (
            "{ for k, v in var.map : k => v... }",
            json!("${{ for k, v in var.map : k => v... }}"),
        ),
        ("var.map.*", json!("${var.map.*}")),
        (
            "concat([[var.x], [\"b\"]]...)",
            json!("${concat([[var.x], [\"b\"]]...)}"),
        ),
        (
            "join(\n    \",\", # between\n    [var.x],\n  )",
            json!("${join(\",\", [var.x])}"),
        ),
        (
            r#""a%{ if var.n > 1 }b%{ else }c%{ endif }""#,
            json!("${\"a%{ if var.n > 1 }b%{ else }c%{ endif }\"}"),
        ),
        // Nothing is replaced within Go's braces.
        (
            r#""{{ index .X \"${var.x}\" }}""#,
            json!("${\"{{ index .X \\\"${var.x}\\\" }}\"}"),
        ),
        (
            r#""${local.dollar}${var.x}""#,
            json!("${\"${\"$\"}${var.x}\"}"),
        ),
        (
            "<<-EOT\n    a ${var.x}\n      b\n  EOT\n",
            json!("a ${var.x}\n  b\n"),
        ),
        // Functions alone.
        ("upper(\"a\")", json!("${upper(\"a\")}")),
        ("-1.50", json!(-1.5)),
        // Locals.
        ("local.plain", json!({"a": "A", "list": ["l", "$${m}"]})),
        ("local.plain.list[1]", json!("$${m}")),
        (r#""${local.plain.a}-${var.x}""#, json!("A-${var.x}")),
        ("upper(local.plain.a)", json!("A")),
        (
            "local.made.region",
            json!("${({ region = var.x, other = [var.n] }).region}"),
        ),
        (
            "local.chain",
            json!("${(upper(({ region = var.x, other = [var.n] }).region))}"),
        ),
        (
            "local.plain[var.x == \"X\" ? \"a\" : \"b\"]",
            json!(
                "${({ \"a\" = \"A\", \"list\" = [\"l\", \"$${m}\"] })[var.x == \"X\" ? \"a\" : \"b\"]}"
            ),
        ),
        (
            "[for local in [var.x] : local.a if false]",
            json!("${[for local in [var.x] : local.a if false]}"),
        ),
        // Names of other things.
        ("image.debian", json!("{{ .Image.debian }}")),
        ("\"${template.t}/${var.x}\"", json!("t/${var.x}")),
        ("group.g", json!("default/g")),
        (
            "[group.g, upper(var.x)]",
            json!(["default/g", "${upper(var.x)}"]),
        ),
        ("\"${path.module}/${var.x}\"", json!("./${var.x}")),
        // Without a value they stay, too.
        ("var.asked", json!("${var.asked}")),
        ("local.asked", json!("${(var.asked)}")),
        ("var.token", json!("${var.token}")),
    ] {
        let text = format!(
            "{DECLARED}image \"debian\" {{}}\ntemplate \"t\" {{}}\ngroup \"g\" {{}}\nvars {{\n  A = {expression}\n}}\n"
        );
        for (to, name) in &LANGUAGES[..2] {
            let there = converted("a.hcl", &text, *to);
            let tree = json_of(&converted(name, &there, Language::Jsonc));
            assert_eq!(tree["vars"]["A"], expected, "{expression}\n{there}");
            assert_eq!(
                json_of(&meaning(name, &there))["vars"],
                json_of(&meaning("a.hcl", &text))["vars"],
                "{expression}"
            );
        }
    }
}

#[test]
fn interpolations_become_expressions() {
    for (text, expected) in [
        ("${var.x}", "A = var.x"),
        ("${ upper( var.x ) }", "A = upper(var.x)"),
        ("a ${var.x} $${b} %{c}", r#"A = "a ${var.x} $${b} %%{c}""#),
        ("{{ ${x} }} ${var.x}", r#"A = "{{ $${x} }} ${var.x}""#),
        // Its keys are sorted, as those of what is written out aren't.
        ("${{ b = 1, a = 2 }}", r#"A = "${{ b = 1, a = 2 }}""#),
        ("${\"x\"}", r#"A = "x""#),
        ("${~ var.x ~} b", r#"A = "${var.x} b""#),
        (
            "a ${var.x}\n${var.n}\n",
            "A = <<-EOT\n    a ${var.x}\n    ${var.n}\n  EOT",
        ),
        ("$$${var.x}", r#"A = "$$${var.x}""#),
    ] {
        let source = json!({
            "variables": {"x": {"default": "X"}, "n": null},
            "vars": {"A": text},
        });
        let there = converted("a.jsonc", &source.to_string(), Language::Hcl);
        assert!(
            there.contains(&format!("  {expected}\n}}")),
            "{text}\n{there}"
        );
        assert_eq!(
            meaning("a.hcl", &there),
            meaning("a.jsonc", &source.to_string())
        );
    }
}

/// Where no variables are declared, `${ }` is text in one language and not in the other.
#[test]
fn without_variables_nothing_is_replaced() {
    let json = r#"{"vars": {"A": "${HOME} $${x} ${var.x"}}"#;
    let hcl = converted("a.jsonc", json, Language::Hcl);
    assert!(hcl.contains(r#""$${HOME} $$${x} $${var.x""#), "{hcl}");
    assert_eq!(
        json_of(&converted("a.hcl", &hcl, Language::Jsonc)),
        json_of(json)
    );
    let hcl = "locals { a = 2 }\nvars {\n  A = \"$${HOME} ${local.a * 3}\"\n  B = [for i in range(2) : { i = i }]\n}\n";
    let json = converted("a.hcl", hcl, Language::Jsonc);
    assert_eq!(
        json_of(&json),
        json!({"vars": {"A": "${HOME} 6", "B": [{"i": 0}, {"i": 1}]}})
    );
    insta::assert_snapshot!(
        "text_stays_text",
        said(
            "a.jsonc",
            "{\"vars\": {\"A\": \"in ${var.x}\"}}",
            Language::Hcl
        )
    );
}

const REPEATED: &str = r#"# The fleet
variable "zones" {
  description = "Where"
  default     = { a = { size = 1 }, b = { size = 2 } }
}
variable "prefix" {
  type     = string
  nullable = false
  validation {
    condition     = local.most > length(var.prefix)
    error_message = "Too long: \"${var.prefix}\", $${x} %%{y}\n{{ z }}"
  }
}

locals {
  most = 5 # letters
}

# One a zone
group "web" {
  for_each = var.zones
  name     = "web-in-${each.key}"
  # How many
  size     = each.value.size # of them
  template = template.t["one"]
  vars     = { NAME = "${var.prefix}-${each.key}", ALL = { "${each.key}" = each.value } }

  file "f-x" {
    template = upper(each.key)
  }
}
template "t" {
  for_each = toset(["one", "two"])
  arch     = "amd64"
}
group "last" { depends_on = [group.web["b"]] }
"#;

#[test]
fn what_repeats_is_written_out() {
    insta::assert_snapshot!(
        "repeated_yaml",
        converted("a.hcl", REPEATED, Language::Yaml)
    );
    insta::assert_snapshot!("repeated_notes", said("a.hcl", REPEATED, Language::Yaml));
    let there = converted("a.hcl", REPEATED, Language::Yaml);
    insta::assert_snapshot!("repeated_hcl", converted("a.yaml", &there, Language::Hcl));
    // HCL stays what it is.
    assert_eq!(converted("a.hcl", REPEATED, Language::Hcl), REPEATED);
}

#[test]
fn what_cannot_be_kept_is_named() {
    for (name, rest) in [
        (
            "asked_each",
            "group \"g\" {\n  for_each = toset([var.asked])\n}\n",
        ),
        ("asked_key", "vars = { (local.asked) = 1 }\n"),
        ("sensitive_key", "vars = { \"${var.token}\" = 1 }\n"),
        (
            "unknown",
            "vars = { A = var.nope, B = local.nope, C = group.nope, D = nope(1) }\n",
        ),
        (
            "circle",
            "locals {\n  p = [local.q, var.x]\n  q = local.p\n}\nvars = { A = local.p }\n",
        ),
        ("bad_each", "group \"g\" {\n  for_each = [1]\n}\n"),
        (
            "given_key",
            "vars = { (var.x) = 1, \"b-${var.n}\" = template.t[tostring(var.n)] }\ntemplate \"t\" {\n  for_each = { 2 = 1 }\n}\n",
        ),
    ] {
        let text = format!("{DECLARED}{rest}");
        insta::assert_snapshot!(name, said("a.hcl", &text, Language::Jsonc));
    }
    let secret = "vars = { A = sensitive(\"hunter2\") }\n";
    let said_of_it = said("a.hcl", secret, Language::Jsonc);
    insta::assert_snapshot!("sensitive_alone", said_of_it);
    let broken =
        r#"{"variables": {"x": {}}, "vars": {"A": "${var.x", "B": "a ${var.x +}", "C": "${}"}}"#;
    insta::assert_snapshot!("broken_text", said("a.yaml", broken, Language::Hcl));
    let wrong = r#"{"variables": {"x": {"type": "strin", "defalt": 1}, "a b": {}}}"#;
    insta::assert_snapshot!("wrong_declaration", said("a.jsonc", wrong, Language::Hcl));
}

/// Signs before `${` would escape it, several as well as one.
#[test]
fn signs_before_an_expression_stay_signs() {
    for signs in ["%", "$%", "%%", "$$%", "%$%"] {
        let text = format!(
            r#"{{"variables": {{"x": {{"default": "X"}}}}, "vars": ["{signs}${{var.x}}"]}}"#
        );
        let there = converted("a.jsonc", &text, Language::Hcl);
        assert_eq!(
            meaning("a.hcl", &there),
            meaning("a.jsonc", &text),
            "{there}"
        );
    }
}

/// Locals that double with each step end, and so does what stands for them.
#[test]
fn nothing_hostile_takes_long() {
    let mut text = String::from("variable \"x\" { default = 1 }\nlocals {\n  l0 = var.x\n");
    for step in 1..60 {
        let before = step - 1;
        text.push_str(&format!("  l{step} = [local.l{before}, local.l{before}]\n"));
    }
    text.push_str("}\nvars = { A = length(local.l59) }\n");
    let (_, result) = result_of("a.hcl", &text, Language::Jsonc);
    assert!(result.is_err());
}

/// Strings with expressions in them, hard ones more often than not.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        " ",
        "\n",
        "$",
        "%",
        "{",
        "}",
        "\"",
        "\\",
        "'",
        "#",
        ":",
        "é",
        "{{",
        "}}",
        "{{ .X }}",
        "{{/*",
        "`",
        "$${",
        "%{ if x }",
        "%%{",
        "${var.x}",
        "${var.n}",
        "${ upper(var.x) }",
        "${\"}${var.n}\"}",
        "${var.n + 1}",
        "${\"$${\"}",
        "${\"{{\"}",
        "${\"a\\nb\"}",
        "  b\n",
        "EOT\n",
    ]);
    let whole = prop::sample::select(vec![
        "${var.map}",
        "${var.list[0]}",
        "${[for k, v in var.map : v]}",
        "${{ b = 1, a = var.n }}",
        "${null}",
        "${(var.n)}",
        "${~ var.x ~}",
        "${-1}",
        "${\"x\"}",
        "${[1, { b = 1, a = 2 }]}",
        "${1e3}",
        "${true}",
    ]);
    prop_oneof![
        3 => prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat()),
        1 => whole.prop_map(str::to_owned),
    ]
}

fn document() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        4 => text().prop_map(Json::from),
        1 => any::<i32>().prop_map(Json::from),
        1 => Just(Json::Null),
    ];
    let tree = leaf.prop_recursive(3, 12, 4, |inner| {
        let key = prop_oneof![
            "[a-z]{1,3}",
            Just("${x}".to_owned()),
            Just("a b".to_owned())
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    });
    let section = prop::sample::select(vec!["vars", "defaults", "templates", "images", "other"]);
    (prop::collection::vec((section, tree), 1..4), text()).prop_map(|(sections, text)| {
        let mut top = json!({
            "variables": {
                "x": {"default": text, "description": text},
                "n": {"type": "number", "default": 2, "nullable": false},
                "map": {"default": {"a": 1, "b": text}},
                "list": {"type": "list(string)"},
            },
        });
        for (key, value) in sections {
            top[key] = value;
        }
        top
    })
}

proptest! {
    /// There and back, through every language: the same under the same values.
    #[test]
    fn any_expression_stays_what_it_is(
        tree in document(),
        seed in prop::collection::vec(any::<u8>(), 40..100),
    ) {
        let mut source = String::new();
        tests::noise::Noise { seed: &seed, at: 0 }.write(&tree, &mut source);
        // Some unclosed `${` come about; they are errors in every language.
        let Ok(expected) = input("a.jsonc", &source, &Given::default()).meaning() else {
            return Ok(());
        };
        let expected = expected.root.to_json().to_string();
        for (to, name) in LANGUAGES {
            let there = converted("a.jsonc", &source, to);
            prop_assert_eq!(&meaning(name, &there), &expected, "{}\n->\n{}", source, there);
            for (next, other) in LANGUAGES {
                let further = converted(name, &there, next);
                prop_assert_eq!(&meaning(other, &further), &expected, "{}\n->\n{}", there, further);
            }
        }
    }
}
