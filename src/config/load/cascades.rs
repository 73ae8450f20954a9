//! What has no value is told once: nothing else is said because of it, and everything else still is.

use std::fs;
use std::ops::Range;

use nstance_hcl::{Body, Expression, ExpressionKind, Item, ObjectKey};

use super::*;
use crate::config::node::NodeValue;
use crate::pipeline::validate;

/// Where values stand, but for those of some sections; in HCL, those that can be expressions.
fn values(name: &str, text: &str, without: &[&str]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut findings = Diagnostics::default();
    let mut sources = SourceMap::default();
    let source = sources.add(name, text);
    match sources.get(source).language {
        Language::Hcl => {
            let document = hcl::parse(source, &sources, &mut findings).unwrap();
            of_body(&document.body, &mut found);
        }
        Language::Yaml => of_node(
            &yaml::read(source, text, &mut findings).unwrap(),
            without,
            &mut found,
        ),
        _ => of_node(
            &jsonc::read(source, text, &mut findings).unwrap(),
            without,
            &mut found,
        ),
    }
    // In YAML's block style a value can't be replaced by its place alone.
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

/// What is found in a text.
fn summaries(name: &str, text: &str) -> Vec<String> {
    let mut loaded = load_text(Purpose::Plan, name, text, &Given::default());
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    if let Some(folder) = Path::new(name).parent() {
        loaded.directory = examples.join(folder);
    }
    validate(&mut loaded, false);
    let findings = loaded.findings.into_iter();
    findings.map(|finding| finding.summary).collect()
}

/// What is found in an example where each value is replaced in turn, and `more` stands at its end.
fn told(name: &str, more: &str) -> Vec<(String, Vec<String>)> {
    let mut text = example(name);
    let is_hcl = name.ends_with("hcl");
    if !is_hcl && !text.contains("variables") {
        // Where there are no variables, `${` is text.
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

#[test]
fn what_has_no_value_hides_nothing_else() {
    let slips = r##"
template "last" { sise = 1 }
group "last" { template = "lost" }
group "motd" {
  instance_type = "small"
  userdata      = "#cloud-config\nruncmd: 5\n"
  args          = { A = "{{ nope }}", B = "{{ .Vars.NOBODY }}" }
}
"##;
    let mut hidden = Vec::new();
    for (place, told) in told("reference/hcl/nstance.hcl", slips) {
        for slip in [
            "variable `nowhere`",
            "key `sise`",
            "template `lost`",
            "a template can't be parsed",
            "var `NOBODY`",
            "`runcmd` is an integer",
        ] {
            let is_told = told.iter().any(|summary| summary.contains(slip));
            if !is_told {
                hidden.push(place.clone());
            }
        }
    }
    // The slips' own values are replaced in their turn.
    let is_own = |place: &String| {
        let own = ["\"lost\"", "#cloud-config", "nope", "NOBODY"];
        own.iter().any(|slip| place.contains(slip))
    };
    hidden.retain(|place| !is_own(place));
    assert!(hidden.is_empty(), "{hidden:#?}");
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
        3
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
        "varables: {n: {}}\ngroups: {web: {instance_type: t, subnet_pool: p, size: '${var.n}'}}",
    ] {
        let text = format!("{usual}{more}\n");
        let told = summaries("nstance.yaml", &text);
        assert_eq!(told.len(), 1, "{text}: {told:#?}");
    }
}

#[test]
fn a_secret_elsewhere_conceals_nothing_of_a_part() {
    let usual = "cluster: {id: c}\nshard: {id: s, infra: {provider: sim, region: r, zone: z}}\n";
    let secret = "variables: {p: {sensitive: true, default: x}}\nvars: {P: '${var.p}'}\n";
    let parts = "{content: \"#cloud-config\\nruncmd: 5\\n\"}, {content: '{{ if }}'}";
    let groups = format!("groups: {{web: {{instance_type: t, userdata: {{parts: [{parts}]}}}}}}\n");
    let told = summaries("nstance.yaml", &format!("{usual}{secret}{groups}"));
    assert_eq!(
        told,
        [
            "`runcmd` is an integer, and has to be a list",
            "a template can't be parsed"
        ]
    );
}

/// Where a character stands outside strings and comments.
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
fn a_quote_that_is_missing_in_json_is_all_that_is_told_and_hides_little() {
    let name = "reference/jsonc/nstance.jsonc";
    let text = example(name);
    let is_quote = |at: &usize| !text[..*at].ends_with('\\');
    let quotes = text.match_indices('"').map(|(at, _)| at).filter(is_quote);
    let mistakes: Vec<_> = quotes.map(|at| (at..at + 1, "")).collect();
    let slip = ("\"last\": 1\n", "key `last`");
    expect_two(name, slip, &mistakes);
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
            // An item that isn't there is a comma too many, or none.
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

/// Puts mistakes in the places of an example's values, and expects two findings of each: the
/// mistake's own, and that of the slip at the end. Of a few nobody knows what was meant: they are
/// told alone.
fn expect_two(name: &str, (slip, told_as): (&str, &str), mistakes: &[(Range<usize>, &str)]) {
    let mut text = example(name);
    let is_json = name.ends_with("jsonc");
    let end = text.rfind('}').filter(|_| is_json).unwrap_or(text.len());
    text.insert_str(end, slip);
    let mut others = Vec::new();
    let mut alone = 0;
    for (place, wrong) in mistakes {
        let (before, behind) = (&text[..place.start], &text[place.end..]);
        let told = summaries(name, &format!("{before}{wrong}{behind}"));
        let slips = told.iter().filter(|told| told.contains(told_as)).count();
        match (told.len(), slips) {
            (1, 0) => alone += 1,
            (2, 1) => {}
            _ => others.push((1 + before.matches('\n').count(), wrong, told)),
        }
    }
    let count = mistakes.len();
    assert!(others.is_empty(), "{}: {others:#?}", others.len());
    assert!(count > 150 && alone < count / 10, "{alone} of {count}");
}

/// Each of `wrongs` in the place of each value.
fn mistakes<'w>(name: &str, wrongs: &[&'w str]) -> Vec<(Range<usize>, &'w str)> {
    let of_place = |place: Range<usize>| wrongs.iter().map(move |wrong| (place.clone(), *wrong));
    let places = values(name, &example(name), &[]).into_iter();
    places.flat_map(of_place).collect()
}

#[test]
fn a_mistake_in_yaml_is_all_that_is_told_and_hides_little() {
    let name = "reference/yaml/nstance.yaml";
    let wrongs = [
        "\"open", "'it's'", "\"a\" b", "[1, 2", "{a: 1", "]", "@x", "*nowhere", "\"\\q\"", "%x",
    ];
    let mistakes: Vec<_> = mistakes(name, &wrongs).into_iter().step_by(4).collect();
    expect_two(name, ("\nlast: 1\n", "key `last`"), &mistakes);
}

#[test]
fn a_colon_or_a_blank_that_is_missing_in_yaml_is_all_that_is_told() {
    let name = "reference/yaml/nstance.yaml";
    let text = example(name);
    let mut block = None;
    let mut mistakes = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        block = block.filter(|outer| bare.is_empty() || indent > *outer);
        if block.is_none()
            && !bare.starts_with(['#', '-', '"'])
            && let Some((key, value)) = bare.trim_end().split_once(": ")
        {
            if value.starts_with('|') {
                block = Some(indent);
            } else if !value.starts_with(['&', '{', '[']) {
                // Brackets would make a key that may be meant.
                let colon = start + indent + key.len();
                mistakes.extend([(colon..colon + 2, " "), (colon..colon + 2, ":")]);
            }
        }
        start += line.len();
    }
    // A lone entry may be a text.
    mistakes.retain(|(place, wrong)| {
        let (before, behind) = (&text[..place.start], &text[place.end..]);
        !summaries(name, &format!("{before}{wrong}{behind}")).is_empty()
    });
    expect_two(name, ("\nlast: 1\n", "key `last`"), &mistakes);
}

#[test]
fn a_mistake_in_hcl_is_all_that_is_told_and_hides_little() {
    let name = "reference/hcl/nstance.hcl";
    let wrongs = [
        "1 2", "@x", "", "'x'", "\"a\" b", "(1", "f(", "yes no", "1,",
    ];
    let text = example(name);
    let is_mistake = |(place, wrong): &(Range<usize>, &str)| {
        let (before, behind) = (&text[..place.start], &text[place.end..]);
        // What stands in a heredoc would stand for itself.
        let line = behind.lines().next().unwrap_or_default();
        let in_heredoc = text[place.clone()].contains("<<")
            || line.contains("<<")
            || before.ends_with("<<")
            || before.matches("EOT").count() % 2 == 1;
        !in_heredoc && nstance_hcl::parse(&format!("{before}{wrong}{behind}"), 0).is_err()
    };
    let mistakes: Vec<_> = mistakes(name, &wrongs)
        .into_iter()
        .filter(is_mistake)
        .step_by(2)
        .collect();
    let slip = "\ntemplate \"last\" {\n  sise = 1\n}\n";
    expect_two(name, (slip, "key `sise`"), &mistakes);
}
