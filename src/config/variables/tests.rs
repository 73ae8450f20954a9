//! Which value a variable has, by type and by where it is given.

use serde_json::json;

use super::*;
use crate::check::Purpose;
use crate::config::load::Loaded;
use crate::load::load_text;
use crate::report::diagnostic::render;

const HEAD: &str = "cluster { id = \"c\" }\nshard {\n  id = \"s\"\n  infra {\n    provider = \"sim\"\n    region = \"r\"\n    zone = \"z\"\n  }\n}\n";

fn loaded(body: &str, given: &Given) -> Loaded {
    load_text(Purpose::Plan, "v.hcl", &format!("{HEAD}{body}"), given)
}

fn findings(loaded: &Loaded) -> String {
    render(&loaded.findings, &loaded.sources, false)
}

/// Text by the type that is declared, as Terraform reads it.
#[test]
fn text_is_read_by_its_type() {
    for (of, text, expected) in [
        ("string", "a", Some(json!("a"))),
        ("string", "\"a\"", Some(json!("\"a\""))),
        ("string", "5", Some(json!("5"))),
        ("string", "", Some(json!(""))),
        ("string", "${x} {{ .Y }}", Some(json!("${x} {{ .Y }}"))),
        ("number", "5", Some(json!(5))),
        ("number", "five", None),
        ("bool", "true", Some(json!(true))),
        ("bool", "yes", None),
        ("list(string)", "[\"a\", 1]", Some(json!(["a", "1"]))),
        ("list(string)", "a", None),
        (
            "set(string)",
            "[\"b\", \"a\", \"b\"]",
            Some(json!(["a", "b"])),
        ),
        (
            "map(number)",
            "{ a = 1, b = \"2\" }",
            Some(json!({"a": 1, "b": 2})),
        ),
        (
            "object({ a = string, b = optional(number) })",
            "{ a = 1 }",
            Some(json!({"a": "1", "b": null})),
        ),
        ("object({ a = string })", "{}", None),
        (
            "tuple([string, bool])",
            "[1, true]",
            Some(json!(["1", true])),
        ),
        // As Terraform has it, but nowhere else, and not for sets.
        ("list", "[\"x\", 1]", Some(json!(["x", "1"]))),
        ("list", "{ a = 1 }", None),
        (
            "map",
            "{ a = 1, b = \"x\" }",
            Some(json!({"a": "1", "b": "x"})),
        ),
        ("any", "[1]", Some(json!([1]))),
        ("any", "null", Some(json!(null))),
        ("list(string)", "var.x", None),
        ("list(string)", "[", None),
    ] {
        let body = format!("variable \"x\" {{ type = {of} }}\n");
        let given = Given::vars([("x".to_owned(), text.to_owned())]);
        let loaded = loaded(&body, &given);
        let value = loaded.variables.first().and_then(|x| x.value.clone());
        assert_eq!(value, expected, "{of} {text}: {}", findings(&loaded));
        assert_eq!(
            loaded.findings.is_empty(),
            expected.is_some(),
            "{of} {text}"
        );
    }
    for of in ["set", "list(map)", "object", "(list)"] {
        let loaded = loaded(
            &format!("variable \"x\" {{ type = {of} }}\n"),
            &Given::default(),
        );
        assert!(!loaded.findings.is_empty(), "{of}");
    }
    // Without a type it is text.
    let given = Given::vars([("x".to_owned(), "[1]".to_owned())]);
    let loaded = loaded("variable \"x\" {}\n", &given);
    assert_eq!(loaded.variables[0].value, Some(json!("[1]")));
}

#[test]
fn null_stands_for_the_default_where_it_may_not_be() {
    for (rest, expected) in [
        ("default = 1", Some(json!(null))),
        ("default = 1\n  nullable = false", Some(json!(1))),
        ("nullable = true", Some(json!(null))),
        ("nullable = false", None),
    ] {
        let body = format!("variable \"x\" {{\n  type = any\n  {rest}\n}}\n");
        let given = Given::vars([("x".to_owned(), "null".to_owned())]);
        let loaded = loaded(&body, &given);
        let value = loaded.variables.first().and_then(|x| x.value.clone());
        assert_eq!(value, expected, "{rest}: {}", findings(&loaded));
    }
}

#[test]
fn secrets_are_collected_with_what_is_made_of_them() {
    let body = "variable \"token\" {\n  sensitive = true\n  default = { a = \"hunter2\", b = [12345, true, \"\"] }\n}\n\
                variable \"open\" { default = \"open\" }\n\
                vars {\n  A = \"Bearer ${var.token.a}\"\n  B = base64encode(var.token.a)\n  C = var.open\n  \
                D = nonsensitive(var.token.b[0])\n  E = sensitive(\"other\")\n}\n";
    let loaded = loaded(body, &Given::default());
    assert_eq!(findings(&loaded), "");
    let secrets: Vec<&str> = loaded.secrets.0.iter().map(AsRef::as_ref).collect();
    assert_eq!(secrets, ["12345", "aHVudGVyMg==", "hunter2", "other"]);
    assert_eq!(format!("{:?}", loaded.secrets), "Secrets(4 hidden)");
    let token = loaded
        .variables
        .iter()
        .find(|x| &*x.name == "token")
        .unwrap();
    assert_eq!((token.sensitive, &token.value), (true, &None));
}

/// What JSON and YAML declare is what HCL declares.
#[test]
fn declarations_of_other_languages_are_held_to_the_same_rules() {
    let yaml = "cluster: {id: c}\nshard: {id: s, infra: {provider: sim, region: r, zone: z}}\n\
                variables:\n  a:\n    type: list(number)\n    default: [\"1\", 2]\n    validation:\n\
                \x20     - condition: length(var.a) > 2\n        error_message: Too short, ${length(var.a)}.\n\
                \x20     - condition: var.a[0] == 2\n        error_message: \"{{ }} stays\"\n  b:\n";
    let loaded = load_text(Purpose::Plan, "v.yaml", yaml, &Given::default());
    insta::assert_snapshot!(findings(&loaded));
}

#[test]
fn overrides_change_a_declaration() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "a.hcl",
        &format!(
            "{HEAD}variable \"x\" {{\n  type = number\n  default = 1\n}}\nvars {{ X = var.x }}\n"
        ),
    );
    write(
        "nstance_override.json",
        "{\"variables\": {\"x\": {\"default\": 2}}}",
    );
    let loaded = crate::load::load(
        Some(std::path::Path::new(".")),
        folder.path(),
        &Given::default(),
    );
    assert_eq!(findings(&loaded), "");
    assert_eq!(loaded.variables[0].value, Some(json!(2)));
    assert_eq!(loaded.variables[0].of.as_deref(), Some("number"));
}

/// Strings full of interpolations, good and bad, are gone through a few times and no more.
#[test]
fn nothing_hostile_takes_long() {
    let many = 20_000;
    for (piece, fits) in [
        ("$${", true),
        ("${var.x}", true),
        ("${var.nope}", false),
        ("${", false),
        ("${\"${\"", false),
        ("{{", true),
        ("{{ \"", true),
        ("{{/*", true),
        ("${[", false),
    ] {
        let text = serde_json::to_string(&format!("{}${{var.x}}", piece.repeat(many))).unwrap();
        let text = format!(
            "{{\"cluster\": {{\"id\": \"c\"}}, \"variables\": {{\"x\": {{\"default\": \"y\"}}}}, \"vars\": {{\"A\": {text}}},\
             \"shard\": {{\"id\": \"s\", \"infra\": {{\"provider\": \"sim\", \"region\": \"r\", \"zone\": \"z\"}}}}}}"
        );
        let loaded = load_text(Purpose::Plan, "v.jsonc", &text, &Given::default());
        assert_eq!(
            loaded.findings.is_empty(),
            fits,
            "{piece}: {}",
            findings(&loaded)
        );
        assert!(loaded.findings.len() <= 100, "{piece}");
    }
}

#[test]
fn what_a_variable_should_not_have_is_a_secret_too() {
    let body = "variable \"pin\" {\n  type = number\n  sensitive = true\n  default = 12345678\n}\n";
    let given = Given::vars([("pin".to_owned(), "not a number".to_owned())]);
    let loaded = loaded(body, &given);
    let secrets: Vec<&str> = loaded.secrets.0.iter().map(AsRef::as_ref).collect();
    assert_eq!(secrets, ["12345678", "not a number"]);
    assert!(!findings(&loaded).contains("not a number"));
}

/// Of a secret that doesn't fit it is told where it was given, and nothing else.
#[test]
fn wrong_values_of_sensitive_variables_are_located() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "a.hcl",
        &format!(
            "{HEAD}variable \"s\" {{\n  type = object({{ a = number }})\n  sensitive = true\n}}\n"
        ),
    );
    write("one.tfvars", "\ns = { a = \"hunter2\" }\n");
    write(
        "lines.tfvars",
        "s = {\n  a = <<-EOT\n    hunter2: hunter2 = hunter2\n  EOT\n}\n",
    );
    write("one.json", "{\"x\": 1, \"s\": {\"a\": \"hunter2\"}}");
    write("lines.yaml", "s:\n  a: |\n    hunter2: hunter2\n");
    let mut all = String::new();
    for (file, environment, command_line) in [
        (Some("one.tfvars"), None, None),
        (Some("lines.tfvars"), None, None),
        (Some("one.json"), None, None),
        (Some("lines.yaml"), None, None),
        (None, Some("{a=hunter2}"), None),
        (None, Some("{a=\"hunter2\"}"), None),
        (None, None, Some("{a=hunter2, b=hunter2(}")),
        (None, None, Some("hunter2")),
    ] {
        let pair = |text: &str| ("s".to_owned(), text.to_owned());
        let given = Given {
            files: file.map(PathBuf::from).into_iter().collect(),
            environment: environment.map(pair).into_iter().collect(),
            command_line: command_line.map(pair).into_iter().collect(),
            ..Given::default()
        };
        let loaded = crate::load::load(Some(std::path::Path::new("a.hcl")), folder.path(), &given);
        let text = findings(&loaded);
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(text.matches("error: ").count(), 1, "{text}");
        all.push_str(&text);
        all.push('\n');
    }
    insta::assert_snapshot!(all);
    // No line within the value shows a part that looks like a name.
    for (file, line) in [("lines.tfvars", 3), ("lines.yaml", 3)] {
        let given = Given {
            files: vec![file.into()],
            ..Given::default()
        };
        let loaded = crate::load::load(Some(std::path::Path::new("a.hcl")), folder.path(), &given);
        let (id, source) = loaded.sources.iter().find(|(_, x)| x.name == file).unwrap();
        let range = source.line_range(line);
        let shown = loaded
            .sources
            .shown_of_line(id, range.start, &source.text[range.clone()]);
        assert_eq!(shown, "", "{file}");
    }
}

#[test]
fn null_in_a_string_is_called_null() {
    for rest in ["", ", \"sensitive\": true"] {
        let text = format!(
            "{{\"cluster\": {{\"id\": \"c\"}}, \"variables\": {{\"x\": {{\"type\": \"string\", \"default\": null{rest}}}}},\
             \"vars\": {{\"A\": \"a ${{var.x}}\"}},\
             \"shard\": {{\"id\": \"s\", \"infra\": {{\"provider\": \"sim\", \"region\": \"r\", \"zone\": \"z\"}}}}}}"
        );
        let loaded = load_text(Purpose::Plan, "v.jsonc", &text, &Given::default());
        let found: Vec<_> = loaded.findings.iter().collect();
        assert_eq!(found.len(), 1, "{}", findings(&loaded));
        assert_eq!(found[0].label.as_ref().unwrap().text, "this is null");
    }
}

/// Messages of conditions are evaluated even where a value is valid.
#[test]
fn mistakes_in_messages_are_found() {
    for (condition, message, expected) in [
        ("true", "\"${var.nope}\"", vec!["variable `nope`"]),
        (
            "false",
            "\"${var.nope}\"",
            vec!["variable `nope`", "isn't valid"],
        ),
        (
            "false",
            "[]",
            vec!["an `error_message` must be a string", "isn't valid"],
        ),
        ("true", "\"${var.x} ${upper(5)}\"", vec![]),
        ("false", "5", vec!["isn't valid"]),
    ] {
        let body = format!(
            "variable \"x\" {{\n  default = \"a\"\n  validation {{\n    condition = var.x == \"a\" && {condition}\n    \
             error_message = {message}\n  }}\n}}\n"
        );
        let loaded = loaded(&body, &Given::default());
        let text = findings(&loaded);
        assert_eq!(loaded.findings.len(), expected.len(), "{text}");
        for expected in expected {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(!text.contains("would show"), "{text}");
    }
}

#[test]
fn what_yaml_says_of_a_secret_is_no_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let configuration = "cluster { id = \"c\" }\nvariable \"s\" {\n  sensitive = true\n  default = \"\"\n}\n\
        variable \"open\" {\n  default = \"\"\n}\n\
        shard {\n  id = \"s\"\n  infra {\n    provider = \"sim\"\n    region = \"r\"\n    zone = \"z\"\n  }\n}\n";
    std::fs::write(folder.path().join("a.hcl"), configuration).unwrap();
    for line in [
        "s: *hunter2",
        "s: !hunter2 x",
        "s: !!int hunter2",
        "s: 1_931847",
        "s:\n  a: *hunter2",
    ] {
        std::fs::write(folder.path().join("v.yaml"), format!("{line}\n")).unwrap();
        let given = Given {
            files: vec!["v.yaml".into()],
            ..Given::default()
        };
        let path = std::path::Path::new("a.hcl");
        let loaded = crate::load::load(Some(path), folder.path(), &given);
        let text = findings(&loaded);
        let tells = text.contains("hunter2") || text.contains("1931847");
        assert!(!loaded.findings.is_empty(), "{line}");
        assert!(!tells, "{text}");
    }
}

/// A name that was mistyped is one mistake, not also a variable without a value; nothing is done without
/// that value.
#[test]
fn a_mistyped_name_in_a_file_is_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let configuration = format!(
        "{HEAD}variable \"region\" {{}}\nvariable \"tier\" {{\n  default = \"a\"\n}}\nvars = {{ R = var.region }}\n"
    );
    std::fs::write(folder.path().join("a.hcl"), configuration).unwrap();
    for (text, expected) in [
        ("rregion = \"x\"", &["there is no variable `rregion`"][..]),
        (
            "other = \"x\"",
            &[
                "variable `region` has no value",
                "there is no variable `other`",
            ],
        ),
    ] {
        std::fs::write(folder.path().join("v.tfvars"), format!("{text}\n")).unwrap();
        let given = Given {
            files: vec!["v.tfvars".into()],
            ..Given::default()
        };
        let path = std::path::Path::new("a.hcl");
        let loaded = crate::load::load(Some(path), folder.path(), &given);
        let mut told: Vec<_> = loaded.findings.iter().map(|one| &*one.summary).collect();
        told.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(told, expected, "{text}");
        assert!(loaded.findings.has_errors(), "{text}");
    }
}
