//! What is marked, found again by its path, and covered.

use serde_json::json;

use super::*;

#[test]
fn marks_are_written_as_terraform_does() {
    for (mark, value, covered) in [
        (json!(false), json!({"a": 1}), json!({"a": 1})),
        (
            json!({"a": true}),
            json!({"a": 1, "b": 2}),
            json!({"a": HIDDEN, "b": 2}),
        ),
        (json!(true), json!({"a": 1}), json!(HIDDEN)),
        (
            json!([false, [true]]),
            json!([1, [2]]),
            json!([1, [HIDDEN]]),
        ),
        (
            json!({"a": {"b.c": [true]}}),
            json!({"a": {"b.c": ["x"]}}),
            json!({"a": {"b.c": [HIDDEN]}}),
        ),
    ] {
        let read = Mark::from(mark.clone());
        assert_eq!(read.cover(&value), covered, "{mark}");
        assert_eq!(Value::from(read), mark);
    }
}

#[test]
fn paths_lead_to_marks() {
    let mark = Mark::from(json!({"a": {"b.c": [false, true]}, "m": true, "l": [{"x": true}]}));
    for (path, whole, told) in [
        (".a.b.c[1]", true, ".a.b.c[1]"),
        (".a.b.c[0]", false, ".a.b.c[0]"),
        (".a.b.c[1].d", true, ".a.b.c[1]"),
        (".m.key.of[3]", true, ".m"),
        (".l[0].x", true, ".l[0].x"),
        (".l[0].y", false, ".l[0].y"),
        (".l[7].x", false, ".l[7].x"),
        (".ab", false, ".ab"),
    ] {
        assert_eq!(mark.at(path) == Mark::Whole, whole, "{path}");
        assert_eq!(mark.told(path), told, "{path}");
    }
    assert_eq!(Mark::Whole.told(".key"), "");
}

#[test]
fn marks_add_up() {
    let or = |a: Value, b: Value| Value::from(Mark::from(a).or(&Mark::from(b)));
    assert_eq!(
        or(json!({"a": true}), json!({"b": [true]})),
        json!({"a": true, "b": [true]})
    );
    assert_eq!(or(json!([false, true]), json!([true])), json!([true, true]));
    assert_eq!(or(json!({"a": true}), json!([true])), json!(true));
    let (one, other) = (TextMark::Lines(vec![[0, 1]]), TextMark::Lines(vec![[1, 2]]));
    assert_eq!(one.or(&other, "a\nb\nc"), TextMark::Lines(vec![[0, 2]]));
    assert_eq!(one.or(&other, "a\nb\n"), TextMark::Whole);
}

#[test]
fn lines_with_sensitive_bytes_are_marked() {
    for (text, bytes, covered) in [
        ("a\nbcd\ne", 3..4, "a\n(sensitive line)\ne"),
        (
            "a\nb\nc\nd",
            2..5,
            "a\n(sensitive line)\n(sensitive line)\nd",
        ),
        // That a line ends tells nothing.
        ("a\nb\nc", 1..4, "a\n(sensitive line)\nc"),
        ("a\nb\n", 0..3, HIDDEN),
        ("a", 0..0, "a"),
    ] {
        let bytes: Vec<_> = std::iter::once(bytes)
            .filter(|bytes| !bytes.is_empty())
            .collect();
        assert_eq!(
            TextMark::of_bytes(text, &bytes).cover(text),
            covered,
            "{text}"
        );
    }
}

#[test]
fn lines_of_json_follow_its_marks() {
    let value = json!({"a": 1, "b": {"c": [1, {}], "d": "x"}, "e": [[]], "f": null});
    let text = serde_json::to_string_pretty(&value).unwrap();
    for (mark, hidden) in [
        (json!({"a": true}), &["\"a\""][..]),
        (json!({"b": {"c": [false, true]}}), &["{}"]),
        (json!({"b": {"d": true}, "f": true}), &["\"d\"", "\"f\""]),
        (json!({"e": true}), &["\"e\"", "[]", "  ],"]),
    ] {
        let covered = TextMark::of_json(&value, &Mark::from(mark.clone())).cover(&text);
        let open: Vec<_> = text
            .lines()
            .zip(covered.lines())
            .filter(|(line, covered)| line != covered)
            .map(|(line, _)| line)
            .collect();
        for piece in hidden {
            assert!(
                open.iter().any(|line| line.contains(piece)),
                "{mark} {open:?}"
            );
        }
        assert_eq!(covered.lines().count(), text.lines().count());
        assert!(open.len() <= hidden.len(), "{mark} {open:?}");
    }
    let whole = TextMark::of_json(&value, &Mark::Whole);
    assert_eq!(whole.cover(&text), HIDDEN);
}

#[test]
fn hidden_lines_stay_hidden_in_another_text() {
    let mark = TextMark::Lines(vec![[1, 2]]);
    for (other, covered) in [
        ("a\npw=old\nc", "a\n(sensitive line)\nc"),
        ("a\npw=new\nc", "a\n(sensitive line)\nc"),
        ("pw=old\na\nc", "(sensitive line)\na\nc"),
        ("a\npw=old\nc\nadded", "a\n(sensitive line)\nc\nadded"),
        ("a\nc", "a\nc"),
    ] {
        assert_eq!(
            mark.carried_to("a\npw=old\nc", other).cover(other),
            covered,
            "{other}"
        );
    }
}

#[test]
fn changes_of_hidden_lines_show() {
    let mark = TextMark::Lines(vec![[0, 2]]);
    let both = |old: &str, new: &str| cover_both((old, &mark), (new, &mark));
    let plain = "(sensitive line)\n(sensitive line)\nc";
    assert_eq!(
        both("a\nb\nc", "a\nb\nc"),
        (plain.to_owned(), plain.to_owned())
    );
    let (old, new) = both("a\nb\nc", "b\nx\nc");
    assert_eq!(old, "(sensitive line 1)\n(sensitive line 2)\nc");
    assert_eq!(new, "(sensitive line 2)\n(sensitive line 3)\nc");
}

#[test]
fn marks_that_are_not_there_are_none() {
    let marks: Marks = serde_json::from_str("{}").unwrap();
    assert!(marks.is_empty());
    assert_eq!(serde_json::to_string(&marks).unwrap(), "{}");
    assert_eq!(marks.to_json(), json!({}));
}
