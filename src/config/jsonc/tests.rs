//! What the reader takes and refuses.

use serde_json::json;

use super::*;

fn read_text(text: &str) -> Read<Node> {
    read(SourceId(0), text)
}

/// What is wrong, and the text at its place.
fn error(text: &str) -> (String, &str) {
    let error = read_text(text).expect_err(text);
    let span = error.label.as_ref().unwrap().span;
    let place = text.get(span.start as usize..span.end as usize);
    (
        error.summary,
        place.unwrap_or_else(|| panic!("{text:?}: {span:?}")),
    )
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
        let read = read_text(text);
        assert!(read.is_ok(), "{text}: {read:?}");
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
        error(text);
    }
}

#[test]
fn numbers_are_integers_where_they_are_whole_and_fit() {
    let node = read_text(
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
    let node = read_text(text).unwrap();
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
        assert_eq!(
            error(&text),
            ("duplicate key `a`".to_owned(), "\"\\u0061\"")
        );
        let first = read_text(&text).unwrap_err().related[0].span;
        assert_eq!(first, Span::new(SourceId(0), 1, 4));
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    for text in [nested(100), objects(100)] {
        assert!(read_text(&text).is_ok());
    }
    for text in [
        nested(101),
        objects(101),
        "[".repeat(1_000_000),
        objects(1_000_000),
    ] {
        let (summary, _) = error(&text);
        assert_eq!(summary, "the nesting is deeper than 100 levels");
    }
}

#[test]
fn an_open_quote_is_found_where_it_is_opened() {
    for (text, offset) in [
        ("{\"a\": \"b,\n\"c\": \"d\"}", 6),
        ("{\"a\": \"b}\n", 6),
        ("{\"a: 1,\n\"b\": 2}", 1),
        ("{\"a\": [\"b\", \"c],\n\"d\": 2}", 12),
        ("{\"a\": \"b, \"c\": \"d\"\n}", 6),
        ("{\"a\": \"it's\n}", 6),
    ] {
        let error = read_text(text).unwrap_err();
        assert_eq!(error.summary, "a string isn't closed", "{text}");
        assert_eq!(error.label.unwrap().span.start, offset, "{text}");
    }
}

#[test]
fn an_open_bracket_is_found_where_it_is_opened() {
    for (text, offset) in [
        ("{\"a\": [1, 2}", 6),
        ("{\"a\": {\"b\": 1]}", 6),
        ("{\"a\": {\"b\": 1}", 0),
        ("{\"a\": [\"b\",\n\"c\": 1}", 6),
        ("{\"a\": [\"b\"\n\"c\": 1}", 6),
        ("{\n  \"a\": {\n    \"b\": 1\n  ,\n  \"c\": 2\n}", 9),
        ("{\n  \"a\": {\n    \"b\": {\n  },\n  \"c\": 2\n}", 20),
        ("{\"a\": \"]\", /* } */ // }\n \"b\": 1", 0),
    ] {
        let error = read_text(text).unwrap_err();
        assert!(error.summary.ends_with("isn't closed"), "{text}: {error:?}");
        assert_eq!(error.label.unwrap().span.start, offset, "{text}");
    }
}

#[test]
fn what_is_missing_is_pointed_at() {
    for (text, summary, offset) in [
        ("{\"a\": 1 // c\n\"b\": 2}", "missing comma", 7),
        ("[1 2]", "missing comma", 2),
        ("[{} {}]", "missing comma", 3),
        ("{\"a\" 1}", "missing `:` after a key", 4),
        ("{\"a\", \"b\"}", "missing `:` after a key", 4),
        ("{\"a\": {{ .b }}}", "a Go template must be quoted", 6),
        ("[{{ .b }}, 1]", "a Go template must be quoted", 1),
        ("{\"a\": 30s}", "invalid number", 6),
        ("{\"a\": }", "missing value after a key", 5),
        ("[1,, 2]", "unexpected comma", 3),
        ("[-010]", "invalid number", 1),
        ("{'a': \"b\n}", "strings must be in double quotes", 1),
    ] {
        let error = read_text(text).unwrap_err();
        assert_eq!(error.summary, summary, "{text}");
        assert_eq!(error.label.unwrap().span.start, offset, "{text}");
    }
}
