//! What blocks and expressions become, and that nothing hostile does harm.

use serde_json::{Value, json};

use super::*;
use crate::check::Purpose;
use crate::config::node::Node;
use crate::config::variables::Given;
use crate::load::load_text;
use crate::report::diagnostic::render;

/// The document of a file, and what is wrong with it.
fn document_of(text: &str) -> (Value, String) {
    let mut sources = SourceMap::default();
    let source = sources.add("a.hcl", text);
    let mut findings = Diagnostics::default();
    let root = alone(source, &mut sources, &mut findings);
    (
        root.map_or(Value::Null, |root| root.to_json()),
        render(&findings, &sources, false),
    )
}

/// The document of a file that is all there is.
pub(in crate::config) fn alone(
    source: SourceId,
    sources: &mut SourceMap,
    findings: &mut Diagnostics,
) -> Option<Node> {
    let files = [File {
        body: findings.keep(parse(source, sources))?,
        folder: None,
        overrides: false,
    }];
    let mut known = Known::default();
    known.body(&files[0].body);
    let (places, values, folders) = (Places::default(), Values::new(), Folders::default());
    let module = Module::new((sources, &places), &files, &values, &known, &folders);
    let root = document(&module, &files[0]);
    let made = module.finish();
    findings.extend(made.findings);
    for (span, holes) in made.holes {
        sources.record_holes(span, holes);
    }
    root.ok()
}

#[test]
fn blocks_become_the_maps_of_the_schema() {
    for (text, expected) in [
        ("", json!({})),
        (
            "functions = \"sprig\"\nstrict = true",
            json!({"functions": "sprig", "strict": true}),
        ),
        ("cluster { id = \"a\" }", json!({"cluster": {"id": "a"}})),
        (
            "image \"a\" {\n  filter {\n    name = \"n\"\n  }\n}",
            json!({"images": {"a": {"filters": [{"name": "n"}]}}}),
        ),
        (
            "image \"a\" {\n  filter { name = \"n\" }\n  filter { name = \"m\" }\n}\nimage \"b\" {}",
            json!({"images": {"a": {"filters": [{"name": "n"}, {"name": "m"}]}, "b": {}}}),
        ),
        (
            "group \"a\" {}\ngroup \"t\" \"a\" {}\ngroup \"default\" \"b\" {}",
            json!({"groups": {"default": {"a": {}, "b": {}}, "t": {"a": {}}}}),
        ),
        (
            "template \"a\" {\n  file \"x\" { kind = \"env\" }\n  file \"y\" { kind = \"json\" }\n  vars {\n    a = 1\n  }\n}",
            json!({"templates": {"a": {"files": {"x": {"kind": "env"}, "y": {"kind": "json"}}, "vars": {"a": 1}}}}),
        ),
        (
            "group \"a\" {\n  override \"0\" { instance_type = \"x\" }\n}",
            json!({"groups": {"default": {"a": {"overrides": {"0": {"instance_type": "x"}}}}}}),
        ),
        // A map and blocks of it, in any order.
        (
            "images = { a = {} }\nimage \"b\" {}\nimages_ = 1",
            json!({"images": {"a": {}, "b": {}}, "images_": 1}),
        ),
        (
            "image \"b\" {}\nimages = { a = {} }",
            json!({"images": {"b": {}, "a": {}}}),
        ),
        (
            "images {\n  a { provider = \"sim\" }\n  b = {}\n}",
            json!({"images": {"a": {"provider": "sim"}, "b": {}}}),
        ),
        (
            "templates_lib { a = \"x\" }",
            json!({"templates_lib": {"a": "x"}}),
        ),
        (
            "templates_lib \"a\" { content = \"x\" }\ntemplates_lib \"b\" { content = \"y\" }",
            json!({"templates_lib": {"a": {"content": "x"}, "b": {"content": "y"}}}),
        ),
        // Where anything may stand: an object, a list, maps by labels.
        (
            "vars {\n  one { a = 1 }\n  two { a = 1 }\n  two { a = 2 }\n  three \"x\" \"y\" { a = 1 }\n  three \"x\" \"z\" {}\n}",
            json!({"vars": {
                "one": {"a": 1},
                "two": [{"a": 1}, {"a": 2}],
                "three": {"x": {"y": {"a": 1}, "z": {}}},
            }}),
        ),
        (
            "certificate \"a\" {\n  dns { name = \"x\" }\n}",
            json!({"certificates": {"a": {"dns": {"name": "x"}}}}),
        ),
        (
            "load_balancer \"a\" { provider = \"sim\" }",
            json!({"load_balancers": {"a": {"provider": "sim"}}}),
        ),
        (
            "template \"a\" {\n  for_each = { x = 1, y = 2 }\n  size = each.value\n  vars = { KEY = each.key }\n}",
            json!({"templates": {
                "a-x": {"size": 1, "vars": {"KEY": "x"}},
                "a-y": {"size": 2, "vars": {"KEY": "y"}},
            }}),
        ),
        ("template \"a\" {\n  for_each = {}\n}", json!({})),
        (
            "group \"t\" \"a\" {\n  for_each = toset([\"x\"])\n  name = \"${each.value}-b\"\n}",
            json!({"groups": {"t": {"x-b": {}}}}),
        ),
    ] {
        let (found, findings) = document_of(text);
        assert_eq!(findings, "", "{text}");
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn expressions_become_values() {
    for (expression, expected) in [
        ("null", json!(null)),
        ("1.5", json!(1.5)),
        (
            "18446744073709551615",
            json!(18_446_744_073_709_551_615_u64),
        ),
        ("-9223372036854775808", json!(i64::MIN)),
        ("0.1 + 0.2", json!(0.3)),
        ("1e3", json!(1000)),
        (
            "\"{{ .Vars.X }} $${x} %%{x} \\\"q\\\"\"",
            json!("{{ .Vars.X }} ${x} %{x} \"q\""),
        ),
        (
            "\"{{ if eq \\\"a\\\" `b` }}\"",
            json!("{{ if eq \"a\" `b` }}"),
        ),
        ("[for x in [1, 2] : x * 2]", json!([2, 4])),
        ("toset([\"b\", \"a\", \"b\"])", json!(["a", "b"])),
        ("local.object.list[*].name", json!(["x", "y"])),
        ("image.debian", json!("{{ .Image.debian }}")),
        ("image.debian-13", json!("{{ index .Image \"debian-13\" }}")),
        (
            "image[\"debian-13\"]",
            json!("{{ index .Image \"debian-13\" }}"),
        ),
        ("\"a ${image.debian} b\"", json!("a {{ .Image.debian }} b")),
        (
            "[group.web, group.t.web, group[\"web\"]]",
            json!(["default/web", "t/web", "default/web"]),
        ),
        ("template.base", json!("base")),
        (
            "[for name in [\"x\"] : \"${template.base}-${name}\"]",
            json!(["base-x"]),
        ),
        ("path.module", json!(".")),
    ] {
        let text = format!(
            "locals {{\n  object = {{ list = [{{ name = \"x\" }}, {{ name = \"y\" }}] }}\n}}\n\
             image \"debian\" {{}}\nimage \"debian-13\" {{}}\ntemplate \"base\" {{}}\n\
             group \"web\" {{}}\ngroup \"t\" \"web\" {{}}\nvars {{\n  X = {expression}\n}}\n"
        );
        let (found, findings) = document_of(&text);
        assert_eq!(findings, "", "{expression}");
        assert_eq!(found["vars"]["X"], expected, "{expression}");
    }
}

/// What is called by a slip of the pen may define what is used: one mistake, one error.
#[test]
fn what_a_misspelt_block_may_define_is_not_missed() {
    for (slip, used) in [
        ("tempalte \"w\" {}", "template.w"),
        ("imag \"w\" {}", "image.w"),
        ("locls { w = 1 }", "local.w"),
        ("locals = { w = 1 }", "local.w"),
        ("varible \"w\" { default = 1 }", "var.w"),
        ("variables = { w = {} }", "var.w"),
    ] {
        let (_, findings) = document_of(&format!("{slip}\nvars {{\n  X = {used}\n}}\n"));
        let errors = findings.matches("error: ").count();
        assert_eq!(errors, 1, "{slip}\n{findings}");
    }
    // What is no slip defines nothing else.
    for known in ["templates_lib {}", "vars = {}", "functions = \"go\""] {
        let (_, findings) = document_of(&format!("{known}\nlabels = {{\n  X = template.w\n}}\n"));
        assert!(
            findings.contains("template `w` isn't defined"),
            "{known}\n{findings}"
        );
    }
}

/// A reference to a block with `for_each` is one of its instances, or all of them by their keys.
#[test]
fn references_to_several_are_objects() {
    for (expression, expected) in [
        ("group.app[\"b\"]", json!("default/app-b")),
        ("group.t.one[\"b\"]", json!("t/one-b")),
        (
            "[for k in [\"b\", \"a\"] : group.app[k]]",
            json!(["default/app-b", "default/app-a"]),
        ),
        (
            "[for k in local.keys : template.base[k]]",
            json!(["base-a", "base-b"]),
        ),
        (
            "group.app",
            json!({"a": "default/app-a", "b": "default/app-b"}),
        ),
        (
            "values(group.app)",
            json!(["default/app-a", "default/app-b"]),
        ),
        (
            "\"${join(\",\", values(group.t.one))}\"",
            json!("t/one-a,t/one-b"),
        ),
    ] {
        let text = format!(
            "locals {{\n  keys = [\"a\", \"b\"]\n}}\n\
             template \"base\" {{\n  for_each = toset(local.keys)\n}}\n\
             group \"app\" {{\n  for_each = toset(local.keys)\n}}\n\
             group \"t\" \"one\" {{\n  for_each = toset(local.keys)\n}}\n\
             group \"all\" {{\n  depends_on = [group.app, group.t.one[\"a\"]]\n}}\n\
             vars {{\n  X = {expression}\n}}\n"
        );
        let (found, findings) = document_of(&text);
        assert_eq!(findings, "", "{expression}");
        assert_eq!(found["vars"]["X"], expected, "{expression}");
        assert_eq!(
            found["groups"]["default"]["all"]["depends_on"],
            json!(["default/app-a", "default/app-b", "t/one-a"])
        );
    }
}

/// An env file has its lines in the order written.
#[test]
fn what_is_written_out_keeps_its_order() {
    let text = "locals { z = { z = 1, a = 2 } }\nvars {\n  A = { z = 1, m = [{ y = 1, b = 2 }], a = 2 }\n  \
                B = (true ? { z = 1, a = 2 } : {})\n  C = local.z\n}";
    let (found, findings) = document_of(text);
    assert_eq!(findings, "");
    assert_eq!(
        found["vars"].to_string(),
        r#"{"A":{"z":1,"m":[{"y":1,"b":2}],"a":2},"B":{"a":2,"z":1},"C":{"a":2,"z":1}}"#
    );
}

#[test]
fn nothing_hostile_does_harm() {
    // Chains of locals end at a limit, whatever folder they are in.
    let chain: Vec<String> = (0..5000)
        .map(|n| format!("  l{n} = [local.l{}]\n", n + 1))
        .collect();
    let chain = chain.concat();
    let (_, findings) = document_of(&format!("locals {{\n{chain}  l5000 = 1\n}}"));
    assert!(findings.contains("expressions deep"), "{findings}");
    // The last is asked for first, or the first.
    for (last, step) in [(0, -1), (60, 1)] {
        let doubling: Vec<String> = (1..60)
            .map(|n| {
                let other = n + step;
                format!("  l{n:02} = \"${{local.l{other:02}}}, ${{local.l{other:02}}}\"\n")
            })
            .collect();
        let doubling = doubling.concat();
        let (_, findings) = document_of(&format!("locals {{\n  l{last:02} = \"x\"\n{doubling}}}"));
        let told = findings.matches("more than 64 MB of text").count();
        assert_eq!(told, 1, "{findings}");
    }
    let many = "group \"a\" {\n  for_each = toset([for p in setproduct(range(300), range(300)) : \"x${p[0]}-${p[1]}\"])\n}\n";
    let (found, _) = document_of(many);
    assert_eq!(
        found["groups"]["default"]
            .as_object()
            .map(serde_json::Map::len),
        Some(90_000)
    );
    let deep = format!("vars = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let (_, findings) = document_of(&deep);
    assert!(!findings.is_empty());
}

/// What is left when writing stops in the middle, or one character goes astray, is explained too.
#[test]
fn no_broken_text_makes_it_panic() {
    let good = include_str!("../../../tests/good/quickstart.hcl");
    let explain = |text: &str| {
        let loaded = load_text(Purpose::Plan, "broken.hcl", text, &Given::default());
        let rendered = render(&loaded.findings, &loaded.sources, false);
        assert_eq!(rendered.is_empty(), loaded.findings.is_empty(), "{text}");
    };
    for cut in (0..good.len()).step_by(7) {
        explain(&good[..cut]);
    }
    for (index, at) in (0..good.len()).step_by(5).enumerate() {
        let stray = [
            "\"", "{", "]", ",", "\\", "é", "${", "\n", "0", "<<X\n", "/*", "var", "}", "...",
        ][index % 14];
        explain(&format!("{}{stray}{}", &good[..at], &good[at..]));
        explain(&format!("{}{stray}{}", &good[..at], &good[at + 1..]));
    }
}
