//! What the reader takes and refuses.

use serde_json::json;

use super::*;

fn read_text(text: &str) -> (Option<Node>, Diagnostics) {
    let mut findings = Diagnostics::default();
    let node = read(SourceId(0), text, &mut findings);
    (node, findings)
}

#[test]
fn comments_and_trailing_commas_are_all_that_is_added_to_json() {
    for text in [
        r#"{"a": 1, /* x */ "b": [1, 2,], // y
           "c": {},}"#,
        "[]",
        " \t\r\n1",
        r#""é\u00e9\ud83d\ude00\/\b\f\n\r\t\\\"""#,
        "-0.5e-3",
        "[1e5, 0, -1, 0.0]",
        "\u{feff}{}",
        "// only a comment before\n{}",
    ] {
        let (node, findings) = read_text(text);
        assert!(
            node.is_some() && findings.is_empty(),
            "{text}: {findings:?}"
        );
    }
    for text in [
        "",
        " ",
        "// x",
        "{",
        "[",
        "]",
        "}",
        "[1 2]",
        r#"{"a": 1 "b": 2}"#,
        "{'a': 1}",
        "['a']",
        "{a: 1}",
        "{1: 1}",
        "[0x10]",
        "[+1]",
        "[.5]",
        "[5.]",
        "[01]",
        "[-]",
        "[1e]",
        "[1e+]",
        "[Infinity]",
        "[-Infinity]",
        "[NaN]",
        "[True]",
        "[nul]",
        "[undefined]",
        r#"["\x41"]"#,
        r#"["\v"]"#,
        r#"["\0"]"#,
        "[\"\\\n\"]",
        "[\"a\nb\"]",
        "[\"a\tb\"]",
        "[\"\u{0}\"]",
        r#"["\u12"]"#,
        r#"["\ud800"]"#,
        r#"["\udc00"]"#,
        r#"["\ud800\u0041"]"#,
        "[1,,2]",
        "[,]",
        "{,}",
        "[1]]",
        "[1}",
        "{]",
        "[1] [2]",
        "/* x",
        "[1] /",
        "# x\n{}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        "{:1}",
        r#"{"a" 1}"#,
        "[1_000]",
        "[1;2]",
        "[\u{b}1]",
        "[\u{c}1]",
        "[\u{a0}1]",
        "[\u{2028}1]",
        "\u{feff}\u{feff}{}",
        r#"["a]"#,
        "{\"a\": 1,\n",
        "[1e999]",
        "[-1e999]",
    ] {
        let (_, findings) = read_text(text);
        assert_eq!(findings.len(), 1, "{text:?}: {findings:?}");
        let finding = findings.iter().next().unwrap();
        let span = finding.label.as_ref().unwrap().span;
        assert!(
            span.end as usize <= text.len() && span.start <= span.end,
            "{text:?}"
        );
    }
}

#[test]
fn numbers_are_integers_where_they_are_whole_and_fit() {
    let (node, _) = read_text(
        "[0, -1, 9223372036854775807, 18446744073709551615, 18446744073709551616, 1.0, 1e3, 0.1]",
    );
    let json = node.unwrap().to_json();
    assert_eq!(
        json,
        json!([
            0,
            -1,
            i64::MAX,
            u64::MAX,
            18_446_744_073_709_551_616_f64,
            1,
            1000,
            0.1
        ])
    );
    assert!(json[0].is_i64() && json[3].is_u64() && json[4].is_f64() && json[5].is_i64());
}

#[test]
fn every_value_knows_its_place() {
    let text = "\u{feff}{\"a\": [true, \"é\"], /* x */ \"b\": null}";
    let (node, _) = read_text(text);
    let node = node.unwrap();
    let written = |span: Span| &text[span.start as usize..span.end as usize];
    assert_eq!(written(node.span), &text[3..]);
    let NodeValue::Object(entries) = &node.value else {
        panic!("not an object")
    };
    assert_eq!(written(entries[0].key_span), "\"a\"");
    assert_eq!(written(entries[0].value.span), "[true, \"é\"]");
    assert_eq!(written(entries[1].value.span), "null");
}

#[test]
fn a_key_that_stands_twice_is_found_in_small_and_large_objects() {
    for others in [0, 5, 50] {
        let mut text = String::from("{\"a\": 1,");
        text.extend((0..others).map(|index| format!("\"k{index}\": 0,")));
        // An escape doesn't make it another key.
        text.push_str("\"\\u0061\": 2}");
        let (node, findings) = read_text(&text);
        assert_eq!(findings.len(), 1, "{others}");
        let finding = findings.iter().next().unwrap();
        assert_eq!(finding.related[0].span, Span::new(SourceId(0), 1, 4));
        assert_eq!(node.unwrap().get("a").unwrap().to_json(), json!(1));
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    for text in [nested(100), objects(100)] {
        let (node, findings) = read_text(&text);
        assert!(node.is_some() && findings.is_empty());
    }
    for text in [
        nested(101),
        objects(101),
        "[".repeat(1_000_000),
        objects(1_000_000),
    ] {
        let (node, findings) = read_text(&text);
        assert!(node.is_none() && findings.len() == 1);
    }
}

/// Reads in halves, cut at the first line that can be, and in one piece; what comes of both.
fn read_twice(text: &str) -> (Option<Node>, Option<Node>) {
    let text = &format!("{}{text}", " ".repeat(text.len()));
    let (flaw, cut) = outline::scan(SourceId(0), text, 0);
    assert!(flaw.is_none(), "{text}");
    let cut = cut.unwrap_or_else(|| panic!("no cut: {text}"));
    (in_halves(SourceId(0), text, 0, cut), read_text(text).0)
}

#[test]
fn a_document_in_halves_is_the_document() {
    for text in [
        "{\"a\": 1,\n\"b\": [2, {}],\n\"c\": 3}",
        "// é\n{\n  \"g\": {\n    \"t\": {\n      \"a\": {\"x\": 1}, // here\n      \"b\": {}\n    },\n \
         \"u\": {}\n  },\n  \"z\": 1,\n}\n// end\n",
        "{\"a\": {\"aaaaaaaaaaaaa\": 1,\n}}",
        "{\"a\": 1,\n\"longer than the others\": {\"\": 1,\n\"a\": 2}}",
    ] {
        let (halves, whole) = read_twice(text);
        assert!(whole.is_some(), "{text}");
        assert_eq!(halves, whole, "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_document_is_left_to_who_reads_the_whole() {
    for text in [
        "{\"a\": 1,\n\"b\": 2,\n\"a\": 3}",
        "{\"aa\": 1,\n\"bb\": 2,\n\"bb\": 3}",
        "{\"a\": {\"cccccccccc\": 1,\n\"d\": 1}, \"a\": 3}",
        "{\"a\": 1,\n\"b\": 2 3}",
        "{\"a\": 1,\n\"b\": 2} {}",
        "{\"a\" 1,\n\"b\": 2}",
    ] {
        assert_eq!(read_twice(text).0, None, "{text}");
    }
}

#[test]
fn a_document_is_cut_where_nothing_but_objects_is_open() {
    let cut = |text| {
        outline::scan(SourceId(0), text, 0)
            .1
            .map(|cut| (cut.at, cut.depth))
    };
    assert_eq!(cut("{\"a\": 1,\n\"longer\": 2}"), None);
    assert_eq!(cut("{\"a\": 111111,\n\"b\": 2}"), Some((14, 1)));
    assert_eq!(cut("{\"a\": {\"b\": 111111,\n\"c\": 2}}"), Some((20, 2)));
    assert_eq!(cut("{\"a\": [{\"b\": 111111,\n\"c\": 2}]}"), None);
    assert_eq!(cut("[111111111,\n2,\n3]"), None);
    assert_eq!(cut("{\"a\": 111111 /*\n,\n*/, \"b\": 2}"), None);
}

/// What is behind a string in single quotes is where it was written, whatever quotes it holds.
#[test]
fn strings_in_single_quotes_are_read() {
    for (written, value) in [
        ("'a'", Some("a")),
        ("''", Some("")),
        (
            r#"'{{ index .Image "a" }}'"#,
            Some(r#"{{ index .Image "a" }}"#),
        ),
        (r#"'say \"hi\"'"#, Some(r#"say "hi""#)),
        (r#"'"'"#, Some(r#"""#)),
        (r#"'"é" \u00e9 ["'"#, Some(r#""é" é [""#)),
        (r"'\\'", Some(r"\")),
        (r"'it\'s {'", None),
        (r#"'\' " \d "'"#, None),
    ] {
        let text = format!("{{\"a\": {written}, \"b\": yes, \"c\": [1, ], \"d\": 2}}");
        let mut findings = Diagnostics::default();
        let node = read_on(SourceId(0), &text, &mut findings);
        let node = node.unwrap_or_else(|| panic!("{text}: {findings:?}"));
        let read = node.get("a").unwrap();
        assert_eq!(read.as_str(), value, "{text}");
        let d = &node.entries()[3].value.span;
        let place = |span: &Span| &text[span.start as usize..span.end as usize];
        assert_eq!((place(&read.span), place(d)), (written, "2"), "{text}");
        let label = findings.iter().last().unwrap().label.as_ref().unwrap();
        assert_eq!(place(&label.span), "yes", "{text}");
    }
    // It has no end on its line, so that nothing is known of what is behind.
    let mut findings = Diagnostics::default();
    assert_eq!(read_on(SourceId(0), "['a\n', no]", &mut findings), None);
    assert_eq!(findings.len(), 1);
}
