//! Tests that one error gives one finding: no consequences are reported, and a stage with errors is
//! the last.

use std::fs;
use std::ops::Range;

use nstance_hcl::{Body, Expression, ExpressionKind, Item, ObjectKey};

use super::*;
use crate::check::Purpose;
use crate::config::node::NodeValue;
use crate::diagnostic::Severity;
use crate::load::load_text;
use crate::pipeline::validate;

/// The ranges of values, without those of some sections; in HCL, only of values that can be
/// expressions.
fn values(name: &str, text: &str, without: &[&str]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut sources = SourceMap::default();
    let source = sources.add(name, text);
    match sources.get(source).language {
        Language::Hcl => {
            let body = hcl::parse(source, &sources).unwrap();
            of_body(&body, &mut found);
        }
        Language::Yaml => of_node(&yaml::read(source, text).unwrap().root, without, &mut found),
        _ => of_node(&jsonc::read(source, text).unwrap(), without, &mut found),
    }
    // In YAML's block style, replacing a multi-line value breaks the indentation.
    found.retain(|place| !name.ends_with("yaml") || !text[place.clone()].contains('\n'));
    found
}

fn of_body(body: &Body, found: &mut Vec<Range<usize>>) {
    for item in &body.items {
        match item {
            Item::Attribute(attribute) => of_expression(&attribute.value, found),
            Item::Block(block) if matches!(&*block.kind.name, "variable" | "locals") => {}
            Item::Block(block) => of_body(&block.body, found),
        }
    }
}

fn of_expression(expression: &Expression, found: &mut Vec<Range<usize>>) {
    found.push(expression.span.range());
    match &expression.kind {
        ExpressionKind::Tuple(elements) => {
            for element in elements {
                of_expression(element, found);
            }
        }
        ExpressionKind::Object(items) => {
            for item in items {
                if let ObjectKey::Expression(key) = &item.key {
                    found.push(key.span.range());
                }
                of_expression(&item.value, found);
            }
        }
        _ => {}
    }
}

fn of_node(node: &Node, without: &[&str], found: &mut Vec<Range<usize>>) {
    let items = match &node.value {
        NodeValue::Array(items) => &items[..],
        _ => &[],
    };
    let entries = node.entries().iter();
    let values = entries
        .filter(|entry| !without.contains(&&*entry.key))
        .map(|entry| &entry.value);
    for value in values.chain(items) {
        found.push(value.span.start as usize..value.span.end as usize);
        of_node(value, without, found);
    }
}

fn example(name: &str) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    fs::read_to_string(examples.join(name)).unwrap()
}

/// The summaries of a text's findings.
fn summaries(name: &str, text: &str) -> Vec<String> {
    let mut loaded = load_text(Purpose::Plan, name, text, &Given::default());
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    if let Some(folder) = Path::new(name).parent() {
        loaded.directory = examples.join(folder);
    }
    validate(&mut loaded, false);
    let errors = loaded.findings.into_iter();
    let errors = errors.filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| finding.summary).collect()
}

/// The findings of an example with each value replaced in turn, and `more` at its end.
fn told(name: &str, more: &str) -> Vec<(String, Vec<String>)> {
    let mut text = example(name);
    let is_hcl = name.ends_with("hcl");
    if !is_hcl && !text.contains("variables") {
        // Without declared variables, `${` is plain text.
        text = text.replacen("\n{", "\n{\"variables\": {\"v\": {\"default\": 1}},", 1);
    }
    text.push_str(more);
    let expression = if is_hcl {
        "var.nowhere"
    } else {
        "\"${var.nowhere}\""
    };
    let places = values(name, &text, &["variables"]);
    assert!(places.len() > 30, "{name}: {}", places.len());
    let findings = |place: Range<usize>| {
        let mut changed = text.clone();
        changed.replace_range(place.clone(), expression);
        let line = 1 + text[..place.start].matches('\n').count();
        (
            format!("{name}:{line}: {}", &text[place]),
            summaries(name, &changed),
        )
    };
    places.into_iter().map(findings).collect()
}

#[test]
fn what_has_no_value_is_all_that_is_told() {
    let mut others = Vec::new();
    for name in [
        "reference/hcl/nstance.hcl",
        "reference/jsonc/nstance.jsonc",
        "reference/yaml/nstance.yaml",
        "aws/nstance.hcl",
        "kubernetes/nstance.jsonc",
    ] {
        let is_alone = |told: &[String]| matches!(told, [only] if only.contains("nowhere"));
        let told = told(name, "").into_iter();
        others.extend(told.filter(|(_, told)| !is_alone(told)));
    }
    assert!(others.is_empty(), "{others:#?}");
}

/// Every error of a stage is reported; a stage with errors is the last one.
#[test]
fn a_stage_reports_all_of_its_errors() {
    let whole = example("reference/hcl/nstance.hcl");
    let evaluation = "group \"a\" { size = var.lost }\nlocals { b = upper() }\n";
    let schema = "template \"last\" { knid = 1 }\ngroup \"last\" {\n  size     = 1\n  template = \"lost\"\n}\n";
    let rendering = r##"
group "motd" {
  size          = 1
  instance_type = "small"
  kind          = "abc"
  arch          = "amd64"
  userdata      = "#cloud-config\nruncmd: 5\n"
  args          = { UserName = "{{ nope }}" }
}
group "other" {
  size          = 1
  instance_type = "small"
  kind          = "abc"
  arch          = "amd64"
  userdata      = "{{ index .Vars 1 }}"
}
"##;
    let count = |text: &str| summaries("reference/hcl/nstance.hcl", text).len();
    let alone = [evaluation, schema, rendering].map(|slips| count(&format!("{whole}\n{slips}")));
    assert_eq!(alone[..2], [2, 2]);
    assert!(alone[2] >= 2, "{alone:?}");
    let together = format!("{whole}\n{evaluation}{schema}{rendering}");
    assert_eq!(count(&together), 2);
    assert_eq!(count(&format!("{whole}\n{schema}{rendering}")), 2);
    assert_eq!(count(&format!("{together}\n]")), 1);
}

const CLUSTER: &str = "cluster {\n  id = \"c\"\n}\n";
const INFRA: &str = "  infra {
    provider = \"sim\"
    region = \"r\"
    zone = \"z\"
  }
";

#[test]
fn what_cannot_be_read_is_not_missed() {
    let group = |more: &str| {
        format!("group \"web\" {{\n  instance_type = \"t\"\n  subnet_pool = \"p\"\n  {more}\n}}\n")
    };
    let shard = |more: &str| format!("shard {{\n  id = \"s\"\n{INFRA}  {more}\n}}\n");
    let pools = "subnet_pools = { p = [\"subnet-1\"] }";
    let usual = format!("{CLUSTER}{}", shard(pools));
    for text in [
        format!(
            "{usual}{}template \"a\" {{\n  for_each = local.no\n}}\n",
            group("template = \"a-x\"")
        ),
        format!("{usual}{}templte \"a\" {{}}\n", group("template = \"a\"")),
        format!("{usual}{}template {{}}\n", group("template = \"a\"")),
        format!(
            "{usual}{}templates = local.no\ntemplate \"b\" {{}}\n",
            group("template = \"a\"")
        ),
        format!(
            "{usual}{}load_balancers = local.no\n",
            group("load_balancers = [\"l\"]")
        ),
        format!("{usual}{}", group("load_balancers = [local.no]")),
        format!(
            "{usual}{}",
            group("size = local.no\n  overrides = { \"7\" = {} }")
        ),
        format!("{usual}{}", group("size = 1e400")),
        format!("{usual}{}", group("vars = { (local.no) = 1 }")),
        format!("{usual}groups = {{ default = local.no }}\n{}", group("")),
        format!(
            "{usual}{}template \"a\" {{}}\ntemplate \"a\" {{}}\n",
            group("template = \"a\"")
                .replace("instance_type", "kind")
                .replace("\"t\"", "\"abc\"")
        ),
        format!(
            "{usual}{}templates = {{\n  (local.no) = {{}}\n}}\n",
            group("template = \"a\"")
        ),
        format!("{usual}group {{}}\n"),
        format!(
            "{usual}image \"i\" {{\n  for_each = {{}}\n}}\n{}",
            group("args = { A = image.i, B = image.i[\"a\"] }")
        ),
        format!(
            "{usual}dynamic \"template\" {{}}\n{}",
            group("template = template.a")
        ),
        format!(
            "{usual}templates \"a\" {{\n  arch = \"arm64\"\n}}\n{}",
            group("template = template.a")
        ),
        format!(
            "{usual}{}",
            group("flie \"motd\" {\n    kind = \"string\"\n  }")
        ),
        format!(
            "{usual}group \"Web\" {{\n  for_each = local.no\n  template = each.value\n  size = each.key\n}}\n"
        ),
        format!("{usual}variable {{}}\n{}", group("size = var.n")),
        format!("{usual}group \"Web\" {{\n  for_each = 5\n}}\n"),
        format!("{usual}image \"i\" {{\n  provider = \"sim\"\n  dynamic \"filters\" {{}}\n}}\n"),
        format!("{CLUSTER}{}{}", shard("subnet_pools = local.no"), group("")),
        format!(
            "{CLUSTER}{}{}",
            shard(pools).replace("shard", "shrd"),
            group("")
        ),
        format!(
            "{CLUSTER}{}{}",
            shard(pools).replace("shard", "shard \"s\""),
            group("")
        ),
        format!("{}{}", shard(pools), CLUSTER.replace("cluster", "clster")),
        format!(
            "{}{}",
            shard(pools),
            CLUSTER.replace('{', "{\n  for_each = {}")
        ),
    ] {
        let told = summaries("nstance.hcl", &text);
        assert_eq!(told.len(), 1, "{text}: {told:#?}");
    }
    let slips =
        "group \"web\" {\n  for_each = local.no\n  sise = each.value\n  template = var.nope\n}\n";
    assert_eq!(
        summaries("nstance.hcl", &format!("{usual}{slips}")).len(),
        2
    );
    let usual = "cluster: {id: c}\nshard: {id: s, infra: {provider: sim, region: r, zone: z}, subnet_pools: {p: [s]}}\n";
    for more in [
        "templates: 5\ngroups: {web: {instance_type: t, subnet_pool: p, template: a}}",
        "templats: {a: {}}\ngroups: {web: {instance_type: t, subnet_pool: p, template: a}}",
        "variables: 5\ngroups: {web: {instance_type: t, subnet_pool: p, size: '${var.n}'}}",
        "variables: [x]\ngroups: {web: {instance_type: t, subnet_pool: p, size: '${var.n}'}}",
        "variables: {n: 5}\ngroups: {web: {instance_type: t, subnet_pool: p, size: '${var.n}'}}",
        "variables: {n: {}}\ngroups: {web: {instance_type: '${var.n}'}}",
        "variables: {n: {}}\ngroups: {web: '${var.n}'}",
        "variables: {n: {}}\ngroups: '${var.n}'",
    ] {
        let text = format!("{usual}{more}\n");
        let told = summaries("nstance.yaml", &text);
        assert_eq!(told.len(), 1, "{text}: {told:#?}");
    }
}

/// Where a character occurs outside of strings and comments.
fn structural(text: &str, wanted: char) -> Vec<usize> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let at = text.len() - rest.len();
        let length = match next {
            '"' => {
                let quotes = rest[1..].match_indices('"').map(|(quote, _)| quote + 1);
                let is_end = |quote: &usize| rest.as_bytes()[quote - 1] != b'\\';
                1 + quotes.into_iter().find(is_end).unwrap()
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap(),
            '/' if rest.starts_with("/*") => 2 + rest.find("*/").unwrap(),
            _ => {
                if next == wanted {
                    found.push(at);
                }
                next.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    found
}

#[test]
fn a_mistake_in_json_is_all_that_is_told() {
    let name = "reference/jsonc/nstance.jsonc";
    let text = example(name);
    let mut changed = Vec::new();
    let is_last = |at: usize| {
        let rest = text[at + 1..].trim_start();
        rest.starts_with(['}', ']'])
    };
    for at in structural(&text, ',') {
        let (before, behind) = (&text[..at], &text[at + 1..]);
        if !is_last(at) {
            changed.push((at, format!("{before}{behind}")));
        }
        changed.push((at, format!("{before},,{behind}")));
    }
    for at in structural(&text, ':') {
        let (before, behind) = (&text[..at], &text[at + 1..]);
        changed.push((at, format!("{before}{behind}")));
        changed.push((at, format!("{before}={behind}")));
        let key = before[..before.len() - 1].rfind('"').unwrap();
        let (start, key) = (&text[..key], &text[key + 1..at - 1]);
        changed.push((at, format!("{start}'{key}':{behind}")));
        if key
            .chars()
            .all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        {
            changed.push((at, format!("{start}{key}:{behind}")));
        }
    }
    for place in values(name, &text, &[]) {
        let (before, behind) = (&text[..place.start], &text[place.end..]);
        for wrong in ["nothing", "0x7", "08", "+1", "1.", "3s", "\"\\d\"", ""] {
            // Removing an item leaves an extra comma, or none.
            if !wrong.is_empty() || before.trim_end().ends_with(':') {
                changed.push((place.start, format!("{before}{wrong}{behind}")));
            }
        }
    }
    assert!(changed.len() > 1000, "{}", changed.len());
    let mut others = Vec::new();
    for (at, changed) in changed.into_iter().step_by(2) {
        let told = summaries(name, &changed);
        if told.len() != 1 {
            let line = 1 + text[..at].matches('\n').count();
            others.push((line, changed[at..].lines().next().unwrap().to_owned(), told));
        }
    }
    assert!(
        others.is_empty(),
        "{}: {:#?}",
        others.len(),
        &others[..5.min(others.len())]
    );
}
