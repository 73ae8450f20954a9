use proptest::prelude::*;

use super::*;

/// The error as its line, its place's text and its sentence; nothing if there is none.
fn error(text: &str) -> String {
    let Err(error) = parse(text, 0) else {
        return String::new();
    };
    let places = error.related.iter().map(|(span, _)| *span);
    for span in places.chain([error.span]) {
        assert!(text.get(span.range()).is_some(), "{text:?}: {error:?}");
    }
    let line = text[..error.span.start as usize].matches('\n').count() + 1;
    format!("{line} {:?} {}", &text[error.span.range()], error.summary)
}

fn hint(text: &str) -> String {
    parse(text, 0).unwrap_err().hint.unwrap_or_default()
}

#[test]
fn a_number_with_a_unit_needs_quotes() {
    assert_eq!(hint("a = 10m\n"), "strings must be quoted: `\"10m\"`");
    assert_eq!(
        hint("a {\n  b = 1.5h30m # c\n}\n"),
        "strings must be quoted: `\"1.5h30m\"`"
    );
    assert_eq!(hint("a = 10 m\n"), "");
    assert_eq!(hint("a = b1 c\n"), "");
    let percentage = "percentages must be quoted, such as `\"25%\"`";
    assert_eq!(hint("a = 25%\n"), percentage);
    assert_eq!(hint("a { b = 25% }\n"), percentage);
}

#[test]
fn says_what_is_wrong_first() {
    for (text, want) in [
        (
            "a = 1 b = 2\nc = 'x'\n",
            "1 \"b\" Expected a new line after this argument",
        ),
        ("a = 'x'\n", "1 \"'\" Expected a value"),
        ("a = “x”\n", "1 \"“\" Expected a value"),
        ("a = 1\nb = 2\na = 3\n", "3 \"a\" Duplicate argument `a`"),
        ("}\n", "1 \"}\" This `}` closes nothing"),
        ("a: 1\n", "1 \":\" Expected `=` or `{` after `a`"),
        ("a == 1\n", "1 \"=\" Expected a value"),
        ("\"a\" = 1\n", "1 \"\\\"\" Expected an argument or a block"),
        (
            "a { b = 1, c = 2 }\n",
            "1 \",\" Expected `}`: a block on one line holds one argument",
        ),
        ("k { l { m = 1 } }\n", "1 \"{\" Expected `=` after `l`"),
        ("a \"b\"\n{\n  c = 1\n}\n", "1 \"\" Expected a label or `{`"),
        ("a \"b\"\n  c = 1\n}\n", "1 \"\" Expected a label or `{`"),
        (
            "a \"${b}\" {}\n",
            "1 \"\\\"${b}\\\"\" A label must be plain text",
        ),
        ("a = \"\\q\"\n", "1 \"\\\\q\" There is no escape `\\q`"),
        (
            "b = \"\\ud800\"\n",
            "1 \"\\\\ud800\" Invalid Unicode escape",
        ),
        (
            "a = \"%{if true}\"\n",
            "1 \"%{if true}\" This `if` has no `%{ endif }`",
        ),
        (
            "a = \"%{endif}\"\n",
            "1 \"%{endif}\" This `endif` has no `%{ if }`",
        ),
        (
            "a = \"%{fo}\"\n",
            "1 \"fo\" Expected `if`, `else`, `endif`, `for` or `endfor`",
        ),
        ("a = b & c\n", "1 \"&\" There is no operator `&`"),
        ("a = [for x in y : x => 1]\n", "1 \"=>\" A list has no keys"),
        ("a = x.*.b.*.c\n", "1 \"*\" A `.*` can't be within another"),
        (
            "a = 1 ? 2\n",
            "1 \"\" Expected `:` and what the value is otherwise: `condition ? value : other`",
        ),
        ("a = { b.c = 1 }\n", "1 \"b.c\" This key is ambiguous"),
        ("a = { b[0] = 1 }\n", "1 \"b[0]\" This key is ambiguous"),
        (
            "a = { (b.c) = 2, \"b.c\" = 3, b = 4, b[c] = 6, b().c = 7, b[*].c = 'x' }\n",
            "1 \"'\" Expected a value",
        ),
        (
            "a = <<EOT\n${1 2}\nEOT\n",
            "2 \"2\" Expected `}` at the end of `${`",
        ),
        ("a = <<\"E\"\nE\n", "1 \"\\\"\" Expected a name after `<<`"),
        ("a = <<E x\nE\n", "1 \"x\" Expected a new line after `<<E`"),
    ] {
        assert_eq!(error(text), want, "{text:?}");
    }
}

#[test]
fn points_at_an_open_quote() {
    for text in [
        "a = \"x\nb = \"y\"\n",
        "a \"x {\n}\n",
        "a = \"x\n  y\"\n",
        "a = f(\"x)\n",
        "a = \"x”\n",
    ] {
        assert_eq!(
            error(text),
            "1 \"\\\"\" This string isn't closed",
            "{text:?}"
        );
    }
}

#[test]
fn points_at_an_open_bracket() {
    let open = |bracket: &str| format!("1 {bracket:?} This `{bracket}` isn't closed");
    for (text, bracket) in [
        ("a = [1, 2\nb = 3\n", "["),
        ("a = [1, 2\nb \"c\" {\n}\n", "["),
        ("a = [1, 2,\nb = 3\n", "["),
        ("a = [1, 2}\n", "["),
        ("a = (1\nb = 3\n", "("),
        ("a = f(1\nb = 3\n", "("),
        ("a = \"${f(1}\"\n", "("),
        ("a = {\n  b = 1\nc \"d\" {\n}\n", "{"),
        ("a = {\n  b = 1\n", "{"),
        ("g {\n  a = 1\n", "{"),
        ("g {\n  h {\n  a = 1\n}\n", "{"),
        ("a = \"${b\nc = 1\n", "${"),
        ("a = <<E\n${b\nc\nE\n", "${"),
    ] {
        let found = error(text);
        assert_eq!(
            found.split_once(' ').unwrap().1,
            &open(bracket)[2..],
            "{text:?}"
        );
    }
    for (text, place) in [("a = 1 /* x\n", 1), ("a {\n  b = [1, /*\n}\n", 2)] {
        let want = format!("{place} \"/*\" This comment isn't closed");
        assert_eq!(error(text), want);
    }
    for text in ["a {\n/*/\n}\n", "a \"b\" /* {\n}\n", "a /*"] {
        assert!(error(text).ends_with("This comment isn't closed"), "{text}");
    }
}

#[test]
fn points_at_an_open_heredoc_and_the_line_meant_to_end_it() {
    for (text, near) in [
        ("a = <<EOT\nx\n", None),
        ("a = f(<<EOT\n  x\n  EOT, 2)\n", Some("EOT, 2)")),
        ("a = <<EOT\n  eot\n", Some("eot")),
        ("a = <<EOT\n  é\n  EO\n", None),
    ] {
        assert_eq!(error(text), "1 \"<<EOT\" This heredoc isn't closed");
        let error = parse(text, 0).unwrap_err();
        let place = error.related.first().map(|(span, _)| &text[span.range()]);
        assert_eq!(place, near);
    }
}

#[test]
fn points_where_an_equals_sign_or_a_comma_is_missing() {
    for (text, place, sentence) in [
        ("d 3\n", 1, "Missing `=` after `d`"),
        ("a \"b\"\n", 1, "Missing `=` after `a`"),
        ("f g\nh = 1\n", 1, "Missing `=` after `f`"),
        ("h { i \"j\" }\n", 5, "Missing `=` after `i`"),
        ("a = { b \"c\" }\n", 7, "Missing `=` after a key"),
        ("a = [\n  \"b\" # c\n  \"d\"\n]\n", 11, "Missing comma"),
        ("a = f(1 2)\n", 7, "Missing comma"),
        ("a = { b = 1 c = 2 }\n", 11, "Missing comma"),
    ] {
        let error = parse(text, 0).unwrap_err();
        let found = (error.span.range(), &*error.summary);
        assert_eq!(found, (place..place, sentence), "{text:?}");
    }
}

#[test]
fn says_that_a_go_template_must_be_quoted() {
    for text in [
        "a = {{ .X }}\n",
        "a = [{{ .X }}, 1]\n",
        "a = { b = {{ .X }} }\n",
        "a = f({{ .X }})\n",
    ] {
        assert_eq!(error(text), "1 \"{{ .X }}\" A Go template must be quoted");
    }
    assert_eq!(
        hint("a = {{ index .X \"b\\n\" }} # c\n"),
        "write `\"{{ index .X \\\"b\\\\n\\\" }}\"`, or several lines as `<<-EOT … EOT`"
    );
    assert_eq!(error("a = \"{{ .X }}\"\n"), "");
}

#[test]
fn knows_what_is_meant_for_a_shell() {
    for expansion in [
        "${files[@]}",
        "${files[$i]}",
        "${files[$((i+1))]}",
        "${a[i]:-x}",
        "${i%%.*}",
        "${i%.*}",
        "${i##*/}",
        "${#i}",
        "${#i[@]}",
        "${f^^}",
        "${f,,}",
        "${x:?y}",
        "${x:-y}",
        "${x+}",
        "${x:-${y#z}}",
        "${x:1:2}",
        "${x#y}",
        "${x//a/b}",
        "${f/*.txt/x}",
        "${x@Q}",
        "${!y*}",
        "${!y@}",
        "${1:-a b}",
        "${@}",
        "${#}",
        "${?}",
        "${x=y}",
        "${x?no x}",
    ] {
        let want = format!("{expansion:?} This is a shell expansion, not an expression");
        let quoted = format!("a = \"x ${{v}} {expansion} y\"\n");
        let in_block = format!("b {{\n  c = [\"{expansion}\"]\n}}\n");
        let heredoc = format!("a = <<E\n\"{expansion}\" ${{v}}\nz\nE\n");
        assert_eq!(error(&quoted), format!("1 {want}"));
        assert_eq!(error(&in_block), format!("2 {want}"));
        assert_eq!(error(&heredoc), format!("2 {want}"));
    }
    assert_eq!(
        hint("a = \"${x:-${y}}\"\n"),
        "to pass `${x:-${y}}` to a shell, write `$${x:-$${y}}`"
    );
    for text in ["${x:-\"y\"}", &format!("${{x:-{}}}", "y".repeat(100))] {
        assert_eq!(
            hint(&format!("a = \"{text}\"\n")),
            "to pass it to a shell, write `$${` instead of `${`"
        );
    }
    for text in [
        "a = \"${1}${!x}${x/a/b}${x[0]}${x[*]}${x-y}${x%y}${x?y:z}${x}\"\n",
        "a = \"${x#y}\"\n}\"\n",
        "a = \"${# x}\"\nx }\"\n",
        "a = <<E\n${x //y}\n % 2 ? y : /* ${ */ z }\nE\n",
    ] {
        assert_eq!(error(text), "", "{text}");
    }
    for (text, length) in [
        ("${!x} y", Some(5)),
        ("${x/a/b}", Some(8)),
        ("${x[*]}", Some(7)),
        ("${x-${y}}", Some(9)),
        ("${x#y}\n}", Some(6)),
        ("${x}", Some(4)),
        ("${x", None),
        ("${x - y}", None),
        ("${x.y}", None),
        ("${ x }", None),
        ("$${x}", None),
        ("x", None),
        ("", None),
    ] {
        let found = shell_expansion(text).map(|(length, _)| length);
        assert_eq!(found, length, "{text}");
    }
}

const SAMPLE: &str = "# héllo\ngroup \"ü\" \"web\" {\r\n  size = 1 + 2 * -3 // c\n  tags = { a = \"x${b[0].c}y\", (d) : [1, 2], }\n  text = <<-EOT\n    %{ for k, v in x ~}\n    ${~ v } {{ .Go }} $${n}\n    %{ endfor }\n  EOT\n  l = [for k, v in {a = 1} : k => f(v...) if v > 1 ? true : !false]\n  m = {for s in x[*].y.*.z : s => null...}\n  one { e = \"\\u00e9\\\"\" } /* x */\n}\n";

#[test]
fn survives_a_text_cut_anywhere_and_anything_in_between() {
    for (cut, _) in SAMPLE.char_indices() {
        let _ = error(&SAMPLE[..cut]);
        for inserted in [
            "\"", "${", "}", "[", "\u{0}", "é", "\r\n", "<<E\n", "\\", "/*", "%{", "~",
        ] {
            let _ = error(&format!("{}{inserted}{}", &SAMPLE[..cut], &SAMPLE[cut..]));
        }
    }
}

#[test]
fn survives_what_is_deep_or_long() {
    for deep in [
        "[",
        "{a=",
        "(",
        "f(",
        "-",
        "!",
        "a ? b : ",
        "\"${",
        "a[",
        "a[*]",
        "x {\n",
        "{for a in ",
        "<<A\n${",
        "\"%{if a}",
    ] {
        let text = format!("a = {}", deep.repeat(100_000));
        assert!(parse(&text, 0).is_err(), "{deep}");
        let _ = parse(&deep.repeat(100_000), 0);
    }
    let long = format!("a = \"{}\"\n", "é".repeat(500_000));
    assert!(parse(&long, 0).is_ok());
    let chain = format!("a = 1{}\n", " + 1 * 2".repeat(100_000));
    assert!(parse(&chain, 0).is_ok());
    let keys: Vec<String> = (0..50_000)
        .map(|key| {
            format!(
                "k{key} = {key}
"
            )
        })
        .collect();
    let keys = keys.concat();
    assert!(parse(&format!("a = {{\n{keys}}}\n{keys}"), 0).is_ok());
}

#[test]
fn takes_two_hundred_levels() {
    for levels in [150, 199, 200] {
        let text = format!("a = {}1{}\n", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(parse(&text, 0).is_ok(), levels < 199, "{levels}");
    }
}

#[test]
fn says_that_levels_are_too_many() {
    for (text, place) in [
        ("b {\n".repeat(1_000), "201 \"b\""),
        (format!("a = {}\n", "[".repeat(1_000)), "1 \"[\""),
    ] {
        let want = format!("{place} This is nested more than 200 levels deep");
        assert_eq!(error(&text), want);
    }
}

#[test]
fn keeps_places() {
    let text = "# far\n\n# one\n# two\na = 1 # behind\nb = 2\n";
    let body = parse(text, 7).unwrap();
    let spans: Vec<_> = body.attributes().map(|attribute| attribute.span).collect();
    assert_eq!(&text[spans[0].range()], "a = 1");
    assert_eq!(spans[0].file, 7);
}

/// hcl-edit reads the same language, in another way: what both take and refuse must be the same.
#[test]
fn agrees_with_hcl_edit() {
    for text in [
        SAMPLE,
        "",
        "a = 1",
        "a = 1\n",
        "a {}\n",
        "a b \"c\" {\n}\n",
        "a = [\n1\n,\n]\n",
        "a = {\nb = 1\nc : 2, d = 3\n}\n",
        "a = (1\n+ 2)\n",
        "a = f(\n1,\n2,\n)\n",
        "a = b.c[0].1.*.d\n",
        "a = \"$\"\n",
        "a = \"$${b}\"\n",
        "a = <<E\n  x\n  E\n",
        "a = -b\n",
        "a = !b == c\n",
        "a = b ? c : d ? e : f\n",
        "a { b = 1 }\n",
        "a = [for b in c : b]\n",
        "a-b = c-d\n",
        "ä = ö\n",
        "a",
        "a =",
        "a = ,",
        "a = [1 2]",
        "a = {b}",
        "a = \"",
        "a = \"${\"",
        "a = f(",
        "a b",
        "= 1",
        "a = 1 2",
        "a { b = 1",
        "a = <<E\nx",
        "a = [for b c : d]",
        "a = b.",
        "a = b[",
        "a = \"\\x\"",
    ] {
        assert_eq!(
            parse(text, 0).is_ok(),
            hcl_edit::parser::parse_body(text).is_ok(),
            "{text:?}"
        );
    }
}

proptest! {
    #[test]
    fn never_panics(text in "[a\"${}%~\\[\\]()<>=:,.\n\r #/*\\\\1é{ ]{0,60}") {
        let _ = error(&text);
        let _ = parse_expression(&text, 0);
        let _ = parse_template(&text, 0);
    }

    #[test]
    fn never_panics_on_words(words in prop::collection::vec(
        prop::sample::select(vec!["for", "in", "if", "a", "=", "=>", "\"", "${", "%{", "}", "{", "[", "]",
            "(", ")", "<<E\n", "<<-E\n", "\nE\n", "~", ":", ",", "...", "?", "endif", "endfor", "else", ".",
            "*", "\n", "1", "\\u00e9", "$${", "#", "/*", "*/", "&&", "-", "!"]), 0..40)) {
        let _ = error(&words.join(" "));
        let _ = parse_template(&words.concat(), 0);
    }
}
