//! Every byte of a string's value is found where its character was written.

use super::*;
use crate::config::node::{Node, NodeValue};
use crate::config::source::SourceId;
use crate::config::{jsonc, yaml};
use crate::diagnostic::Diagnostics;

type Read = fn(SourceId, &str, &mut Diagnostics) -> Option<Node>;

/// What `walk` tells of a literal.
fn pieces(language: Language, text: &str, range: Range<usize>) -> Option<Vec<(String, String)>> {
    let mut pieces = Vec::new();
    let mut last = range.start;
    walk(language, text, range.clone(), &[], &mut |at, decoded| {
        assert!(
            last <= at.start && at.start <= at.end && at.end <= range.end,
            "{text:?}: {at:?} in {range:?}"
        );
        last = at.end;
        pieces.push((text[at].to_owned(), decoded.to_owned()));
    })?;
    Some(pieces)
}

/// Whether a piece of the text can stand for its part of the value: itself, an escape, a break.
fn plausible(written: &str, decoded: &str) -> bool {
    written == decoded
        || written.starts_with('\\')
        || (written == "''" && decoded == "'")
        || (written.starts_with(['\n', '\r']) && matches!(decoded, "" | " " | "\n"))
}

/// The strings in a tree, each with its place.
fn strings(node: &Node, found: &mut Vec<(Range<usize>, String)>) {
    match &node.value {
        NodeValue::String(text) => {
            let range = node.span.start as usize..node.span.end as usize;
            found.push((range, text.to_string()));
        }
        NodeValue::Array(items) => items.iter().for_each(|item| strings(item, found)),
        NodeValue::Object(entries) => entries
            .iter()
            .for_each(|entry| strings(&entry.value, found)),
        _ => {}
    }
}

/// Reads `text`, if it can be, and compares each string with what `walk` tells of it. Gives how
/// many there were.
fn compare(language: Language, read: Read, text: &str) -> usize {
    let mut findings = Diagnostics::default();
    let Some(node) = read(SourceId(0), text, &mut findings) else {
        return 0;
    };
    if findings.has_errors() {
        return 0;
    }
    let mut found = Vec::new();
    strings(&node, &mut found);
    for (range, value) in &found {
        let pieces = pieces(language, text, range.clone());
        let pieces = pieces.unwrap_or_else(|| panic!("no literal at {range:?} of {text:?}"));
        let walked: String = pieces.iter().map(|(_, decoded)| &**decoded).collect();
        assert_eq!(&walked, value, "{text:?} at {range:?}");
        for (written, decoded) in &pieces {
            assert!(
                plausible(written, decoded),
                "{written:?} for {decoded:?} in {text:?}"
            );
        }
    }
    found.len()
}

/// Every sequence of `length` words, between `before` and `after`.
fn compare_all(
    (language, read): (Language, Read),
    (before, after): (&str, &str),
    words: &[&str],
    length: u32,
) -> usize {
    let mut strings = 0;
    for number in 0..words.len().pow(length) {
        let mut text = before.to_owned();
        let mut rest = number;
        for _ in 0..length {
            text.push_str(words[rest % words.len()]);
            rest /= words.len();
        }
        text.push_str(after);
        strings += compare(language, read, &text);
    }
    strings
}

#[test]
fn json_strings() {
    let words = [
        "a",
        "é",
        "😀",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\u0041",
        "\\u20ac",
        "\\ud83d\\ude00",
    ];
    let json = (
        Language::Jsonc,
        (|source, text, findings| findings.keep(jsonc::read(source, text))) as Read,
    );
    let strings = compare_all(json, ("[\"", "\"]"), &words, 4);
    assert_eq!(strings, words.len().pow(4));
}

fn read_yaml(source: SourceId, text: &str, findings: &mut Diagnostics) -> Option<Node> {
    Some(findings.keep(yaml::read(source, text))?.root)
}

const YAML: (Language, Read) = (Language::Yaml, read_yaml);

#[test]
fn yaml_plain_scalars() {
    let words = [
        "a", "é", " ", "\n  ", "\n\n ", "\r\n ", "\t", "'b", "\\", "-", ":c",
    ];
    for (before, after) in [("k: x", "\n"), ("- - x", ""), ("{k: x", "}")] {
        assert!(compare_all(YAML, (before, after), &words, 3) > 500);
    }
}

#[test]
fn yaml_single_quoted_scalars() {
    let words = [
        "a", "é", " ", "\n  ", "\n\n ", "\r\n ", "\t", "''", "\\", "\"", "# ",
    ];
    for (before, after) in [("k: '", "'\n"), ("- &x !!str '", "'  # y"), ("['", "' ]")] {
        assert!(compare_all(YAML, (before, after), &words, 3) > 500);
    }
}

#[test]
fn yaml_double_quoted_scalars() {
    let words = [
        "a",
        " ",
        "\n  ",
        "\n\n ",
        "\r\n ",
        "\t",
        "\\\n ",
        "\\ ",
        "\\\"",
        "\\\\",
        "\\x41",
        "\\U0001F600",
        "\\t",
    ];
    for (before, after) in [("k: \"", "\"\n"), ("- \"", "\"")] {
        assert!(compare_all(YAML, (before, after), &words, 3) > 500);
    }
}

#[test]
fn yaml_blocks() {
    let words = [
        "  a", "  é\n", "\n", "   b\n", " ", "\t", "  \tc\n", "  d\r\n",
    ];
    let mut strings = 0;
    for style in ["|", ">"] {
        for header in ["", "-", "+", "2", "2-", "+2", " # x"] {
            for before in ["k: ", "k: &x !!str ", "k:\n   "] {
                if before == "k:\n   " && header.contains('2') {
                    continue;
                }
                let before = format!("{before}{style}{header}\n");
                strings += compare_all(YAML, (&before, "\nj: 1\n"), &words, 3);
                strings += compare_all(YAML, (&before, ""), &words, 3);
            }
        }
    }
    assert!(strings > 5000, "{strings}");
    // An explicit indentation counts from what the block is in.
    for text in [
        "- |2\n   a\n  b\n",
        "- - |1\n     a\n   b\n",
        "- k: |1\n     a\n   b\n",
        "a:\n  k: >2\n     a\n    b\n",
        "a:\n- |1\n   x\n  y\n",
        "? |1\n  a\n b\n: c\n",
        "--- |1\n  a\n b\n",
    ] {
        compare(Language::Yaml, read_yaml, text);
    }
}

#[test]
fn places_in_yaml() {
    for (text, literal, offset, expected) in [
        ("k: {{ x }", "{{ x }", 0, None),
        ("k: *x", "*x", 1, None),
        ("k: [a]", "[a]", 1, None),
        ("k: plain", "plain", 2, Some("a")),
        ("k: plain", "plain", 9, Some("")),
        ("k: 'it''s'", "'it''s'", 2, Some("''")),
        ("k: 'it''s'", "'it''s'", 4, Some("'")),
        ("k: \"a\\u00e9\\n\"", "\"a\\u00e9\\n\"", 2, Some("\\u00e9")),
        ("k: \"a\\u00e9\\n\"", "\"a\\u00e9\\n\"", 3, Some("\\n")),
        ("k: |-\n  ab\n  cd\n", "|-\n  ab\n  cd\n", 4, Some("d")),
        ("k: >\n  ab\n  cd\n", ">\n  ab\n  cd\n", 2, Some("\n")),
        ("k: >\n  ab\n  cd\n", ">\n  ab\n  cd\n", 3, Some("c")),
        ("k: 'open", "'open", 2, None),
        ("k:\n |1\n  a\n", "|1\n  a\n", 0, None),
    ] {
        let mut sources = SourceMap::default();
        let id = sources.add("c.yaml", text);
        let start = text.find(literal).unwrap();
        let span = Span::new(id, start, start + literal.len());
        let found = within(&sources, span, offset);
        match expected {
            None => assert_eq!(found, span, "{text:?}"),
            Some(expected) => assert_eq!(sources.text(found), expected, "{text:?} at {offset}"),
        }
    }
}

/// What stands before, between and behind interpolations is found where it was written; every byte
/// of an interpolation's text is the interpolation.
#[test]
fn hcl_literals_with_interpolations() {
    let words = [
        "a",
        "é",
        "\\n",
        "\\\"",
        "$${",
        "%%{",
        "$",
        "\n",
        "\r\n",
        "\n    ",
        "${local.v}",
        "${ upper(\n local.v ) }",
    ];
    for (before, after) in [("\"", "\""), ("<<E\n", "\nE\n"), ("<<-E\n    x", "\n  E\n")] {
        let mut checked = 0;
        for number in 0..words.len().pow(4) {
            let picked = [1, 12, 144, 1728].map(|unit| words[number / unit % words.len()]);
            let literal = format!("{before}{}{after}", picked.concat());
            let text = format!("locals {{\n  v = \"xyz\"\n}}\nk = {literal}\n");
            let mut sources = SourceMap::default();
            let source = sources.add("a.hcl", &*text);
            let mut findings = Diagnostics::default();
            let root = crate::config::hcl::tests::alone(source, &mut sources, &mut findings);
            let Some(node) = root.as_ref().and_then(|root| root.get("k")) else {
                continue;
            };
            let interpolates = literal.replace("$${", "").contains("${");
            if !interpolates || node.span.start < text.find("k = ").unwrap() as u32 {
                continue;
            }
            let value = node.as_str().unwrap();
            let mut last = 0;
            for (offset, character) in value.char_indices() {
                let place = within(&sources, node.span, offset);
                let written = sources.text(place);
                assert!(place.start >= last, "{literal:?} at {offset}");
                last = place.start;
                let fits = match written {
                    "${local.v}" => "xyz".contains(character),
                    _ if written.starts_with("${") => "XYZ".contains(character),
                    "$${" | "%%{" => "${%".contains(character),
                    _ => plausible(written, &character.to_string()),
                };
                assert!(
                    fits,
                    "{literal:?}: {character:?} at {offset} is {written:?}"
                );
            }
            checked += 1;
        }
        assert!(checked > 2_000, "{before:?}: {checked}");
    }
}

#[test]
fn hcl_literals() {
    for (literal, value) in [
        (r#""plain""#, Some("plain")),
        (r#""""#, Some("")),
        (r#""é\n\t\"\\\u00e9\U0001F600""#, Some("é\n\t\"\\é😀")),
        (
            r#""$${a} %%{b} $c 5% $$ %%""#,
            Some("${a} %{b} $c 5% $$ %%"),
        ),
        (r#""{{ .Vars.X }}""#, Some("{{ .Vars.X }}")),
        (r#""a ${var.b}""#, None),
        (r#""a %{ if b }c%{ endif }""#, None),
        ("var.a", None),
        ("file(\"x\")", None),
        ("<<EOT\nEOT", Some("")),
        ("<<EOT\n  a\n b\\n\nEOT", Some("  a\n b\\n\n")),
        ("<<EOT\n$${a} é\n  EOT\n", Some("${a} é\n")),
        ("<<EOT\n${a}\nEOT\n", None),
        ("<<-EOT\n    a\n\n      b\n  EOT", Some("a\n\n  b\n")),
        ("<<-EOT\n    a\n   \n\tb\n  EOT", Some("   a\n   \nb\n")),
        ("<<-EOT\n  a\n  EOTX\n  EOT\n", Some("a\nEOTX\n")),
        ("<<EOT\na\n", None),
        ("<<EOT", None),
        ("<<\n", None),
        ("\"open", None),
        ("\"", None),
    ] {
        let text = format!("k = {literal}");
        let pieces = pieces(Language::Hcl, &text, 4..text.len());
        let walked = pieces.map(|pieces| {
            for (written, decoded) in &pieces {
                assert!(
                    written == decoded
                        || written.starts_with('\\')
                        || (written.len() == 3 && written.ends_with(decoded.as_str())),
                    "{written:?} for {decoded:?}"
                );
            }
            pieces.into_iter().map(|(_, decoded)| decoded).collect()
        });
        assert_eq!(walked, value.map(str::to_owned), "{literal}");
    }
    let mut sources = SourceMap::default();
    let id = sources.add("c.hcl", "k = <<-EOT\n    {{ .X }}\n  EOT\n");
    let span = Span::new(id, 4, 30);
    let place = within(&sources, span, 3);
    assert_eq!((sources.text(place), place.start), (".", 18));
}

#[test]
fn a_place_is_one_character_or_escape_wide() {
    let mut sources = SourceMap::default();
    let id = sources.add("c.jsonc", r#"{"a": "x\n\ud83d\ude00y"}"#);
    let span = Span::new(id, 6, 24);
    assert_eq!(sources.text(span), r#""x\n\ud83d\ude00y""#);
    for (offset, text) in [
        (0, "x"),
        (1, "\\n"),
        (2, "\\ud83d\\ude00"),
        (4, "\\ud83d\\ude00"),
        (6, "y"),
        (7, "\""),
        (99, "\""),
    ] {
        assert_eq!(
            sources.text(within(&sources, span, offset)),
            text,
            "{offset}"
        );
    }
    // Not a string at all: the whole of it.
    let number = Span::new(id, 0, 5);
    assert_eq!(within(&sources, number, 2), number);
    let plain = sources.add_value("--var K.yaml", "{{ é");
    let span = Span::new(plain, 0, 5);
    for (offset, text) in [(0, "{"), (3, "é"), (4, "é"), (5, ""), (9, "")] {
        assert_eq!(
            sources.text(within(&sources, span, offset)),
            text,
            "{offset}"
        );
    }
}

/// No literal has these forms, but a span could: nothing may panic.
#[test]
fn odd_spans_do_no_harm() {
    for language in [
        Language::Jsonc,
        Language::Yaml,
        Language::Hcl,
        Language::Plain,
    ] {
        for odd in [
            "",
            "\"",
            "\"\"",
            "\"\\u\"",
            "\"\\ud83d\"",
            "\"\\",
            "\"\\\"",
            "\"\\é\"",
            "\"\\xé\"",
            "'",
            "''",
            "|",
            "|9",
            "|\n",
            ">\n\n",
            "|+\n é",
            "é",
            "<<",
            "<<-\n",
            "<<E\nE",
            "<<E\n  é",
        ] {
            let name = format!("{language:?}");
            let mut sources = SourceMap::default();
            let id = sources.push(crate::config::source::Source::new(
                language,
                name,
                odd.into(),
            ));
            let span = Span::new(id, 0, odd.len());
            for offset in 0..6 {
                let place = within(&sources, span, offset);
                assert!(place.end as usize <= odd.len(), "{language:?} {odd:?}");
            }
        }
    }
}

#[test]
fn words_end_where_their_text_does() {
    for (text, offset, word) in [
        ("\"a\\nkey: b\\n\"", 2, "key"),
        ("\"a\\nkey\\nb\"", 2, "key"),
        ("\"a: key\"", 3, "key"),
        ("\"a: [key, b]\"", 4, "key"),
        ("\"a: {{ .Vars.X }} b\"", 3, "{{ .Vars.X }}"),
        ("\"a\\u00e9: b\"", 1, "\\u00e9"),
        ("\"über: b\"", 0, "über"),
    ] {
        let mut sources = SourceMap::default();
        let id = sources.add("c.json", text);
        let literal = Span::new(id, 0, text.len());
        let place = within(&sources, literal, offset);
        assert_eq!(
            sources.text(word_at(&sources, literal, place)),
            word,
            "{text}"
        );
    }
}
