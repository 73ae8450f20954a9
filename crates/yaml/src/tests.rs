//! Trees and errors of texts.

use super::*;

/// A tree, written in one line; scalars as their texts, plain ones as they are.
fn shown(node: &Node<String>) -> String {
    match &node.kind {
        Kind::Scalar(text) => text.clone(),
        Kind::Sequence(items) => {
            let items: Vec<_> = items.iter().map(shown).collect();
            format!("[{}]", items.join(" "))
        }
        Kind::Mapping(entries) => {
            let entries = entries.iter();
            let entries: Vec<_> = entries
                .map(|(key, value)| format!("{}={}", shown(key), shown(value)))
                .collect();
            format!("{{{}}}", entries.join(" "))
        }
    }
}

fn resolve(scalar: &Scalar<'_>) -> String {
    match &scalar.tag {
        Some(tag) => format!("{}!{}", scalar.text, core_tag(tag).unwrap_or("?")),
        None if scalar.is_plain() => scalar.text.to_string(),
        None => format!("{:?}", scalar.text),
    }
}

/// All documents of a text, or the error of the first that has one.
fn read(text: &str) -> Result<Vec<Node<String>>, Error> {
    let mut reader = Reader::new(text, 5, resolve);
    let mut found = Vec::new();
    while let Some(document) = reader.document()? {
        found.push(document.root);
    }
    Ok(found)
}

#[test]
fn texts_become_trees() {
    for (text, expected) in [
        ("", ""),
        ("# c\n", ""),
        ("a: 1\nb: [x, 'y']\n", "{a=1 b=[x \"y\"]}"),
        ("\u{feff}a: \"\\u00e9\"", "{a=\"é\"}"),
        ("- !!str 1\n- !x 2\n", "[1!str 2!?]"),
        ("a: &x [1]\nb: *x\n", "{a=[1] b=[1]}"),
        ("a: &x k\n*x : 1\n", "{a=k k=1}"),
        ("<<: {a: 1}\na: 2\na: 3\n", "{<<={a=1} a=2 a=3}"),
        ("a\n---\nb\n...\n--- c", "a b c"),
        // A block ends as the text does.
        ("|\n x\n", "\"x\\n\""),
        ("|\n x", "\"x\""),
        ("|\n x\n ", "\"x\\n\""),
        ("|\n x\n  ", "\"x\\n \""),
        ("|+\n x\n\n", "\"x\\n\\n\""),
        (">\n x\n y", "\"x y\""),
        ("|-\n x", "\"x\""),
    ] {
        let found: Vec<_> = read(text).unwrap().iter().map(shown).collect();
        assert_eq!(found.join(" "), expected, "{text:?}");
    }
}

#[test]
fn values_know_their_bytes() {
    let text = "é: &a !!map\n  k: 'v'\nb: *a\n";
    let roots = read(text).unwrap();
    let Kind::Mapping(entries) = &roots[0].kind else {
        panic!("{roots:?}");
    };
    let value = &entries[0].1;
    assert_eq!(&text[value.range.clone()], "k: 'v'");
    assert_eq!(&text[value.properties..value.properties + 8], "&a !!map");
    assert_eq!(value.tag.as_deref().and_then(core_tag), Some("map"));
    let repeated = &entries[1].1;
    assert_eq!(&text[repeated.place().clone()], "*a");
    assert_eq!(
        (&repeated.range, &repeated.kind),
        (&value.range, &value.kind)
    );
}

#[test]
fn errors_have_a_kind_and_a_place() {
    let syntax = |message: &str| ErrorKind::Syntax(message.to_owned());
    for (text, kind, at) in [
        ("[[[[[[1]]]]]]", ErrorKind::TooDeep, 5),
        ("a: &x [[[1]]]\nb: [[*x]]\n", ErrorKind::TooDeep, 19),
        ("&x [*x]", ErrorKind::Cycle, 4),
        ("{[a]: b}", ErrorKind::Key, 1),
        ("a: &x [1]\n*x : 1", ErrorKind::Key, 10),
        (" \ta: 1", ErrorKind::Tab, 1),
        (
            "é: *y",
            syntax("while parsing node, found unknown anchor"),
            4,
        ),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!((error.kind, error.range.start), (kind, at), "{text:?}");
    }
    assert_eq!(read("a: {b: [c").unwrap_err().open, Some(7));
    for text in ["[", "{a: ", "- ", "? "] {
        assert!(read(&text.repeat(100_000)).is_err(), "{text:?}");
    }
}

#[test]
fn aliases_are_limited_by_what_they_stand_for() {
    let mut text = "- &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..4 {
        let inner = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("- &a{level} [{inner}]\n"));
    }
    let read = |text: &str| Reader::new(text, 100, resolve).document();
    assert!(read(&text).is_ok());
    let many = format!("{text}- [{}]\n", vec!["*a3"; 100].join(", "));
    assert_eq!(read(&many).unwrap_err().kind, ErrorKind::TooManyCopies);
}

#[test]
fn lines_and_columns_count_from_one() {
    for (text, at, expected) in [
        ("ab", 1, (1, 2)),
        ("é\nab", 4, (2, 2)),
        ("a\r\nb\rc", 5, (3, 1)),
        ("a", 9, (1, 2)),
    ] {
        assert_eq!(line_column(text, at), expected, "{text:?}");
    }
}
