//! What the reader takes and refuses, and where it says that things stand.

use serde_json::{Value, json};

use super::*;
use crate::config::node::NodeValue;
use crate::config::source::SourceMap;
use crate::report::diagnostic::render;

fn read_text(text: &str) -> (Option<Node>, Diagnostics) {
    let mut findings = Diagnostics::default();
    let document = findings.keep(read(SourceId(0), text));
    let root = document.map(|document| {
        findings.extend(document.warnings);
        document.root
    });
    (root, findings)
}

fn good(text: &str) -> Value {
    let (node, findings) = read_text(text);
    assert!(findings.is_empty(), "{text:?}: {findings:?}");
    node.unwrap().to_json()
}

fn shown(text: &str) -> String {
    let mut sources = SourceMap::default();
    sources.add("c.yaml", text);
    render(&read_text(text).1, &sources, false)
}

#[test]
fn documents_are_read_as_meant() {
    for (text, expected) in [
        ("a: b\n", json!({"a": "b"})),
        (
            "a:\n  - 1\n  - b: c\n    d: ~\n",
            json!({"a": [1, {"b": "c", "d": null}]}),
        ),
        ("a:\n- 1\n- 2\nb: 3", json!({"a": [1, 2], "b": 3})),
        (
            "{\"a\":1,\"b\":[true,null,\"\\u00e9\"]}",
            json!({"a": 1, "b": [true, null, "é"]}),
        ),
        (
            "a: 'it''s'\nb: \"x\\ty\"\n",
            json!({"a": "it's", "b": "x\ty"}),
        ),
        (
            "a: |\n  x\n   y\n\nb: >-\n  x\n  y\n",
            json!({"a": "x\n y\n", "b": "x y"}),
        ),
        ("a: |\n  x", json!({"a": "x"})),
        ("a: |\n  x\n  ", json!({"a": "x\n"})),
        ("a: \"{{ .Vars.X }}\"\n", json!({"a": "{{ .Vars.X }}"})),
        ("a: x-{{ .Vars.X }}\n", json!({"a": "x-{{ .Vars.X }}"})),
        (
            "1: a\ntrue: b\nnull: c\n1.0: d\n",
            json!({"1": "a", "true": "b", "null": "c", "1.0": "d"}),
        ),
        ("y: 1\nn: 2\n", json!({"y": 1, "n": 2})),
        (
            "a: !!str 12\nb: !!int \"12\"\nc: ! 12\nd: !!map {}\n",
            json!({"a": "12", "b": 12, "c": "12", "d": {}}),
        ),
        (
            "a: !!float 1\nb: !!null ''\nc: !!bool 'true'\n",
            json!({"a": 1, "b": null, "c": true}),
        ),
        ("---\na: b\n...\n", json!({"a": "b"})),
        ("# c\n---\n# c\na: b\n---\n", json!({"a": "b"})),
        ("---\n---\na: b\n", json!({"a": "b"})),
        (
            "\u{feff}a: b\r\nc:\r\n  - d\r\n",
            json!({"a": "b", "c": ["d"]}),
        ),
        ("? a\n: b\n", json!({"a": "b"})),
        (
            "a: [b, c,]\nd: {e: f,}\n",
            json!({"a": ["b", "c"], "d": {"e": "f"}}),
        ),
        ("a: http://x:80/#y\n", json!({"a": "http://x:80/#y"})),
    ] {
        assert_eq!(good(text), expected, "{text:?}");
    }
}

#[test]
fn aliases_and_merge_keys_copy() {
    for (text, expected) in [
        ("a: &x [1, 2]\nb: *x\n", json!({"a": [1, 2], "b": [1, 2]})),
        ("&k a: 1\nb: *k\n", json!({"a": 1, "b": "a"})),
        ("a: &x z\n*x : 1\n", json!({"a": "z", "z": 1})),
        // The last one of a name counts.
        ("- &x 1\n- *x\n- &x 2\n- *x\n", json!([1, 1, 2, 2])),
        // Own keys win wherever they stand; merging is one level deep.
        (
            "a: &x {p: 1, q: {r: 1}}\nb:\n  p: 2\n  <<: *x\nc:\n  <<: *x\n  q: {s: 1}\n",
            json!({
                "a": {"p": 1, "q": {"r": 1}},
                "b": {"p": 2, "q": {"r": 1}},
                "c": {"p": 1, "q": {"s": 1}},
            }),
        ),
        // Of several, the first that has a key.
        (
            "a: &x {p: 1}\nb: &y {p: 2, q: 2}\nc:\n  <<: [*x, *y]\n",
            json!({"a": {"p": 1}, "b": {"p": 2, "q": 2}, "c": {"p": 1, "q": 2}}),
        ),
        ("a:\n  <<: {p: 1}\n", json!({"a": {"p": 1}})),
        ("a:\n  '<<': 1\n", json!({"a": {"<<": 1}})),
    ] {
        assert_eq!(good(text), expected, "{text:?}");
    }
    // What is merged stands where `<<` does.
    let (node, _) = read_text("a: &x {p: 1, q: 2}\nb:\n  s: 0\n  <<: *x\n  p: 3\n");
    let b = node.unwrap().get("b").unwrap().to_json();
    let keys: Vec<&str> = b.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["s", "q", "p"]);
}

#[test]
fn aliases_keep_the_place_of_their_anchor() {
    let text = "a: &x\n  p: é\nb: *x\n";
    let Document { root, aliases, .. } = read(SourceId(0), text).unwrap();
    let place = |key: &str| root.get(key).unwrap().span;
    assert_eq!(place("a"), place("b"));
    assert_eq!(aliases.len(), 1);
    assert_eq!(aliases[0].target, place("a"));
    let alias = aliases[0].span.start as usize..aliases[0].span.end as usize;
    assert_eq!(&text[alias], "*x");
}

#[test]
fn a_billion_laughs_are_refused() {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..12 {
        let inner = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{inner}]\n"));
    }
    let (node, findings) = read_text(&text);
    assert!(node.is_none());
    assert_eq!(findings.len(), 1);
    let finding = findings.iter().next().unwrap();
    assert!(finding.summary.contains("1000000"), "{}", finding.summary);

    // One large value may be repeated once.
    let list = |items: usize| format!("a: &x [{}]\nb: *x\n", "1, ".repeat(items));
    assert!(read_text(&list(900_000)).0.is_some());
    assert!(read_text(&list(1_100_000)).0.is_none());
    // An alias of what it stands in.
    assert!(read_text("a: &x [1, *x]\n").0.is_none());
}

#[test]
fn every_value_knows_its_place() {
    let text = "\u{feff}é: \"é\"  # c\nlist:\n  - 'a b'  \n  - &x !!str c d\n  - {k: [1, 2]}\n\
                block: !!str |-  # c |\n  text\n\n# c\nempty:\nobject: &y\n  # c\n  p: q\n\nlast: *x\n";
    let (node, findings) = read_text(text);
    assert!(findings.is_empty(), "{findings:?}");
    let mut found = Vec::new();
    collect(&node.unwrap(), text, &mut found);
    assert_eq!(
        found,
        [
            text.trim_start_matches('\u{feff}').trim_end(),
            "é",
            "\"é\"",
            "list",
            "- 'a b'  \n  - &x !!str c d\n  - {k: [1, 2]}",
            "'a b'",
            "c d",
            "{k: [1, 2]}",
            "k",
            "[1, 2]",
            "1",
            "2",
            "block",
            "|-  # c |\n  text\n\n",
            "empty",
            "",
            "object",
            "p: q",
            "p",
            "q",
            "last",
            "c d",
        ]
    );
}

fn collect<'t>(node: &Node, text: &'t str, found: &mut Vec<&'t str>) {
    let written = |span: Span| &text[span.start as usize..span.end as usize];
    found.push(written(node.span));
    match &node.value {
        NodeValue::Array(items) => items.iter().for_each(|item| collect(item, text, found)),
        NodeValue::Object(entries) => {
            for entry in entries {
                found.push(written(entry.key_span));
                collect(&entry.value, text, found);
            }
        }
        _ => {}
    }
}

#[test]
fn nesting_is_bounded() {
    let lists = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let dashes = |depth: usize| format!("{}1", "- ".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{a: ".repeat(depth), "}".repeat(depth));
    for text in [lists(100), dashes(100), objects(100)] {
        let (node, findings) = read_text(&text);
        assert!(node.is_some() && findings.is_empty(), "{findings:?}");
    }
    for text in [
        lists(101),
        dashes(101),
        objects(101),
        "[".repeat(100_000),
        "- ".repeat(100_000),
        "{a: ".repeat(100_000),
        "? ".repeat(100_000),
        "{".repeat(100_000),
        // Through an alias.
        format!(
            "a: &x {}\nb: {}*x{}\n",
            lists(60),
            "[".repeat(60),
            "]".repeat(60)
        ),
    ] {
        let (node, findings) = read_text(&text);
        assert!(
            node.is_none() && findings.len() == 1,
            "{text:.40} {findings:?}"
        );
    }
}

#[test]
fn a_file_without_a_document_is_an_error() {
    for text in ["", "\n\n", "# c\n", "---\n", "---\n...\n", "\u{feff}"] {
        let (node, findings) = read_text(text);
        assert!(
            node.is_none() && findings.len() == 1,
            "{text:?}: {findings:?}"
        );
    }
}

#[test]
fn what_yaml_1_1_reads_otherwise_gets_a_warning() {
    insta::assert_snapshot!(
        shown("a: yes\nb: 0644\nc: 1_000\nd: 12:30\ne: 2026-01-31\nf: 0899\non: 1\n"),
        @r#"
        warning: `yes` is text, not a boolean
          ┌─ c.yaml:1:4
        1 │ a: yes
          │    ^^^ YAML 1.1 would read `true`
        hint: write `true` for the boolean, `"yes"` for the text

        warning: `0644` is the number 644, not octal
          ┌─ c.yaml:2:4
        2 │ b: 0644
          │    ^^^^ YAML 1.1 would read 420
        hint: write `"0644"` for the text (such as a file's mode), `0o644` for the octal number, `644` for this one

        warning: `1_000` is text, not a number
          ┌─ c.yaml:3:4
        3 │ c: 1_000
          │    ^^^^^ YAML 1.1 would read 1000
        hint: write `1000` for the number, `"1_000"` for the text

        warning: `12:30` is text, not a number
          ┌─ c.yaml:4:4
        4 │ d: 12:30
          │    ^^^^^ YAML 1.1 would read a number to the base of 60
        hint: to confirm that, put it in quotes: `"12:30"`

        warning: `2026-01-31` is text, not a date
          ┌─ c.yaml:5:4
        5 │ e: 2026-01-31
          │    ^^^^^^^^^^ YAML 1.1 would read a date
        hint: to confirm that, put it in quotes: `"2026-01-31"`

        warning: `0899` is a number, and loses its zeros
          ┌─ c.yaml:6:4
        6 │ f: 0899
          │    ^^^^ YAML 1.1 would read text
        hint: write `"0899"` for the text, or the number without leading zeros

        warning: the key `on` is text, not a boolean
          ┌─ c.yaml:7:1
        7 │ on: 1
          │ ^^ YAML 1.1 would read `true`
        hint: to confirm that, put it in quotes: `"on"`
        "#
    );
    for quiet in [
        "a: 'yes'\n",
        "a: \"0644\"\n",
        "a: !!str 0644\n",
        "a: |\n  yes\n",
        "a: 0o644\n",
    ] {
        assert_eq!(shown(quiet), "", "{quiet}");
    }
}

#[test]
fn many_findings_take_no_time() {
    let (_, findings) = read_text(&"- yes\n".repeat(100_000));
    assert_eq!(findings.len(), 100_000);
}

#[test]
fn an_alias_repeats_no_warning() {
    let (node, findings) = read_text("a: &x [yes]\nb: *x\nc: [*x]\n");
    assert_eq!((node.is_some(), findings.len()), (true, 1));
}

/// A text that is cut off anywhere is read, or its error has a place that can be shown.
#[test]
fn a_text_cut_off_anywhere_is_read_or_explained() {
    let text = "a: {b: [1, 'x'], ü: \"y\"}\nlist:\n  - c: é\n    d e\n  - f:g\n    h: |\n      text\n  -  \n\
        k: *l\nm: &n 1\no {p}\nq [r]\ns: !t u\n";
    let mut errors = 0;
    for (cut, _) in text.char_indices() {
        for behind in [
            "",
            "\n",
            "\n  \n",
            "\n    \n  x",
            " \"",
            "\n\u{a0}\n",
            "\n\té: [\n   ",
            "\n{{ x }}: y",
        ] {
            let text = format!("{}{behind}", &text[..cut]);
            let (root, findings) = read_text(&text);
            assert_eq!(root.is_none(), findings.has_errors(), "{text:?}");
            errors += usize::from(root.is_none());
            shown(&text);
        }
    }
    assert!(errors > 100, "{errors}");
}
