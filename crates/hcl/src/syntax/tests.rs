use proptest::prelude::*;

use super::*;

/// Each error as its place's text and its sentence.
fn errors(text: &str) -> Vec<String> {
    let errors = parse(text, 0).map_or_else(|errors| errors, |_| Vec::new());
    errors
        .iter()
        .map(|error| {
            assert!(
                text.get(error.span.range()).is_some(),
                "{text:?}: {error:?}"
            );
            let line = text[..error.span.start as usize].matches('\n').count() + 1;
            format!("{line} {:?} {}", &text[error.span.range()], error.summary)
        })
        .collect()
}

#[test]
fn says_what_is_wrong_and_goes_on() {
    for (text, want) in [
        (
            "a = 1 b = 2\nc = 'x'\nd = 4\n",
            &[
                "1 \"b\" Expected a new line after this argument",
                "2 \"'\" Expected a value",
            ][..],
        ),
        (
            "a = [1, 2\nb = 3\n",
            &["2 \"b\" Expected `]` or a comma between the elements"],
        ),
        (
            "g {\n  a = {\n    b = \n  }\n  c = 1\n  d\n}\ne = 'x'\n",
            &[
                "3 \"\" Expected a value",
                "6 \"\" Expected `=` or `{` after `d`",
                "8 \"'\" Expected a value",
            ],
        ),
        ("g {\na = 'x'\n}\nb = 1\n", &["2 \"'\" Expected a value"]),
        ("g {\n  a = 1\n", &["1 \"{\" This block isn't closed"]),
        ("}\n", &["1 \"}\" This `}` closes nothing"]),
        (
            "a = \"x\nb = 'y'\n",
            &[
                "1 \"\\\"\" This string isn't closed",
                "2 \"'\" Expected a value",
            ],
        ),
        (
            "a = <<EOT\n${1 2}\nb = 'c'\nEOT\nd = 'x'\n",
            &[
                "2 \"2\" Expected `}` at the end of `${`",
                "5 \"'\" Expected a value",
            ],
        ),
        ("a = <<EOT\nx\n", &["1 \"<<EOT\" This text has no end"]),
        ("a = 1\nb = 2\na = 3\n", &["3 \"a\" `a` is set twice"]),
        ("a = 1 /* x\n", &["1 \"/*\" This comment isn't closed"]),
        (
            "a = 'x'\nb = /* \"c\n",
            &[
                "1 \"'\" Expected a value",
                "2 \"/*\" This comment isn't closed",
            ],
        ),
        (
            "a {\n  b = [1, /*\n}\n",
            &["2 \"/*\" This comment isn't closed"],
        ),
        ("a {\n/*/\n}\n", &["2 \"/*\" This comment isn't closed"]),
        ("a \"b\" /* {\n}\n", &["1 \"/*\" This comment isn't closed"]),
        ("a /*", &["1 \"/*\" This comment isn't closed"]),
        (
            "a { b = 1, c = 2 }\n",
            &["1 \",\" Expected `}`: a block on one line holds one argument"],
        ),
        ("a: 1\n", &["1 \":\" Expected `=` or `{` after `a`"]),
        (
            "a = \"\\q\"\nb = \"\\ud800\"\n",
            &[
                "1 \"\\\\q\" There is no escape `\\q`",
                "2 \"\\\\ud800\" This escape is no character",
            ],
        ),
        (
            "a = \"%{if true}\"\n",
            &["1 \"%{if true}\" This `if` has no `%{ endif }`"],
        ),
        (
            "a = \"%{endif}\"\n",
            &["1 \"%{endif}\" This `endif` belongs to nothing"],
        ),
        (
            "a = \"%{fo}\"\n",
            &["1 \"fo\" Expected `if`, `else`, `endif`, `for` or `endfor`"],
        ),
        ("a = b & c\n", &["1 \"&\" There is no operator `&`"]),
        (
            "a = [for x in y : x => 1]\n",
            &["1 \"=>\" A list has no keys"],
        ),
        (
            "a = x.*.b.*.c\n",
            &["1 \"*\" A `.*` can't be within another"],
        ),
        (
            "a \"b\"\nc {\n  d 3\n  e [1]\n  f g\n}\nh { i \"j\" }\nk { l { m = 1 } }\n",
            &[
                "1 \"\\\"b\\\"\" Expected `=` after `a`",
                "3 \"3\" Expected `=` after `d`",
                "4 \"[\" Expected `=` after `e`",
                "5 \"g\" Expected `=` after `f`",
                "7 \"\\\"\" Expected `=` after `i`",
                "8 \"{\" Expected `=` after `l`",
            ],
        ),
        (
            "a = 1 ? 2\n",
            &["1 \"\" Expected `:` and what the value is otherwise: `condition ? value : other`"],
        ),
        (
            "a \"b\"\n{\n  c = 'x'\n}\nd\n\n# e\n{\n}\nf =\n{\n  g = 1\n}\nh = 'x'\n",
            &[
                "1 \"\" Expected a label or `{`",
                "3 \"'\" Expected a value",
                "5 \"\" Expected a label or `{`",
                "10 \"\" Expected a value",
                "14 \"'\" Expected a value",
            ],
        ),
        (
            "a == 'x'\nb { c == 1 }\nd = { e == 1, f = 'x' }\n",
            &[
                "1 \"==\" `a` is set with one `=`",
                "1 \"'\" Expected a value",
                "2 \"==\" `c` is set with one `=`",
                "3 \"==\" `e` is set with one `=`",
                "3 \"'\" Expected a value",
            ],
        ),
        (
            "a = \"x\ny=\\\" ${z}\n  \"é\" w\"\nb = [\"c\nd\"]\ne = 'x'\n",
            &[
                "1 \"\\\"\" This string goes over several lines",
                "4 \"\\\"\" This string goes over several lines",
                "6 \"'\" Expected a value",
            ],
        ),
        (
            "a = \"x\nb = \"y\nc \"d\" {\n  e = \"\n}\nf = \"z\ng \"h\" {\n}\n",
            &[
                "1 \"\\\"\" This string isn't closed",
                "2 \"\\\"\" This string isn't closed",
                "4 \"\\\"\" This string isn't closed",
                "6 \"\\\"\" This string isn't closed",
            ],
        ),
        (
            "a “b” ”c\" {\n  d = [“e”, ‘f’]\n  g = {“h” = \"i”}\n  j \"k” {\n}\n  l = “m\n  “n” = \"“o”\"\n}\n",
            &[
                "1 \"“b”\" This string has curly quotes",
                "1 \"”c\\\"\" This string has curly quotes",
                "2 \"“e”\" This string has curly quotes",
                "2 \"‘f’\" This string has curly quotes",
                "3 \"“h”\" This string has curly quotes",
                "3 \"”\" This quote is curly",
                "4 \"”\" This quote is curly",
                "6 \"“\" This quote is curly",
                "7 \"“\" Expected an argument or a block",
            ],
        ),
        (
            "a = <<\"E\"\n${b}\nE\nc = <<-'E'\n'\n  E\nd = << E\n'\nE\ne = <<E x\n${f y}\n\"\nE\ng = 'x'\n",
            &[
                "1 \"\\\"E\\\"\" A heredoc's marker has no quotation marks",
                "4 \"'E'\" A heredoc's marker has no quotation marks",
                "7 \" E\" A heredoc's marker stands right behind `<<`",
                "10 \"x\" Expected a new line behind `<<E`",
                "11 \"y\" Expected `}` at the end of `${`",
                "14 \"'\" Expected a value",
            ],
        ),
        (
            "a = <<'E'\nb = <<E x\nc = 'x'\n",
            &[
                "1 \"'E'\" A heredoc's marker has no quotation marks",
                "2 \"x\" Expected a new line behind `<<E`",
                "3 \"'\" Expected a value",
            ],
        ),
        (
            "a = f(<<EOT\n  ${b c} EOT, EOTX\n  EOT, 2)\nd = <<EOT\n  eot\ne = \"${f:-g}\"\nh = 'x'\n",
            &[
                "2 \"c\" Expected `}` at the end of `${`",
                "1 \"<<EOT\" This text has no end",
                "4 \"<<EOT\" This text has no end",
                "6 \"${f:-g}\" This is a shell's expansion, not an expression",
                "7 \"'\" Expected a value",
            ],
        ),
        (
            "a = { b.c = 1, (b.c) = 2, \"b.c\" = 3, b = 4, b[0] = 5, b[c] = 6, b().c = 7, b[*].c = 'x' }\n",
            &[
                "1 \"b.c\" This key is ambiguous",
                "1 \"b[0]\" This key is ambiguous",
                "1 \"'\" Expected a value",
            ],
        ),
        (
            "a = <<E\n%{x} ${b c} %{ if d e }\n${f(\ng h\n)} ${i j}\n%{ endif }\nE\nk = {\nl = <<E\n${m n}              %{ endif }\nE\no = 'x'\n}\n",
            &[
                "2 \"x\" Expected `if`, `else`, `endif`, `for` or `endfor`",
                "2 \"c\" Expected `}` at the end of `${`",
                "2 \"e\" Expected `}` at the end of `%{`",
                "4 \"h\" Expected `)` or a comma between the arguments",
                "10 \"n\" Expected `}` at the end of `${`",
                "12 \"'\" Expected a value",
            ],
        ),
        (
            "\"a\" = 1\n",
            &["1 \"\\\"\" Expected an argument or a block"],
        ),
        (
            "a \"${b}\" {}\n",
            &["1 \"\\\"${b}\\\"\" A label must be plain text"],
        ),
    ] {
        assert_eq!(errors(text), want, "{text:?}");
    }
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
        "${x:-\\}}",
        "${x=y}",
        "${x?no x}",
    ] {
        let quoted = format!("a = \"x ${{v}} {expansion} y\"\n");
        let twice = format!("a = \"{expansion}{expansion}\"\nb {{\n  c = [\"{expansion}\"]\n}}\n");
        let heredoc =
            format!("a = <<E\n\"{expansion}\" {expansion} ${{v}}\n  {expansion}\nz\nE\nb = 'x'\n");
        let error =
            |line| format!("{line} {expansion:?} This is a shell's expansion, not an expression");
        let single = "6 \"'\" Expected a value".to_owned();
        assert_eq!(errors(&quoted), [error(1)]);
        assert_eq!(errors(&twice), [error(1), error(1), error(3)]);
        let want = [error(2), error(2), error(3), single];
        assert_eq!(errors(&heredoc), want, "{heredoc}");
    }
    let hint = |text: &str| parse(text, 0).unwrap_err()[0].hint.clone().unwrap();
    assert_eq!(
        hint("a = \"${x:-${y}}\"\n"),
        "if a shell is to see `${x:-${y}}`, write `$${x:-$${y}}`"
    );
    assert_eq!(
        hint("a = \"${x:-\"y\"}\"\n"),
        "if a shell is to see `${x:-\"y\"}`, write `$${x:-\\\"y\\\"}`"
    );
    assert_eq!(
        hint(&format!("a = \"${{x:-{}}}\"\n", "y".repeat(100))),
        "if a shell is to see it, write `$${` instead of `${`"
    );
    for text in [
        "a = \"${1}${!x}${x/a/b}${x[0]}${x[*]}${x-y}${x%y}${x?y:z}${x}\"\n",
        "a = \"${x#y}\"\n}\"\n",
        "a = \"${# x}\"\nx }\"\n",
        "a = <<E\n${x //y}\n % 2 ? y : /* ${ */ z }\nE\n",
    ] {
        assert_eq!(errors(text), [""; 0], "{text}");
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
    let hint = |text| shell_expansion(text).unwrap().1;
    assert_eq!(
        hint("${x-${y}}"),
        "if a shell is to see `${x-${y}}`, write `$${x-$${y}}`"
    );
    assert_eq!(
        hint("${x-\"y\"}"),
        "if a shell is to see it, write `$${` instead of `${`"
    );
    // What is tried in vain is tried once, and not again within each string around it.
    let lines = format!("a = 1\n{}", "  + \"${x#y}\"\n".repeat(2_000));
    assert!(parse(&format!("a = \"${{x#y}}\"\n{lines}"), 0).is_err());
}

const SAMPLE: &str = "# héllo\ngroup \"ü\" \"web\" {\r\n  size = 1 + 2 * -3 // c\n  tags = { a = \"x${b[0].c}y\", (d) : [1, 2], }\n  text = <<-EOT\n    %{ for k, v in x ~}\n    ${~ v } {{ .Go }} $${n}\n    %{ endfor }\n  EOT\n  l = [for k, v in {a = 1} : k => f(v...) if v > 1 ? true : !false]\n  m = {for s in x[*].y.*.z : s => null...}\n  one { e = \"\\u00e9\\\"\" } /* x */\n}\n";

#[test]
fn survives_a_text_cut_anywhere_and_anything_in_between() {
    for (cut, _) in SAMPLE.char_indices() {
        let _ = errors(&SAMPLE[..cut]);
        for inserted in [
            "\"", "${", "}", "[", "\u{0}", "é", "\r\n", "<<E\n", "\\", "/*", "%{", "~",
        ] {
            let _ = errors(&format!("{}{inserted}{}", &SAMPLE[..cut], &SAMPLE[cut..]));
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
    // What is read once more behind an error isn't read again and again.
    for again in [
        "\"${x#y}\"\n+",
        "\"${x?\"${x#y}\n",
        "<<E\n${f(<<E }\n",
        "<<E\n${x?<<E y}${z ",
    ] {
        let text = format!("a = {}{}", again.repeat(3_000), "\nE\n".repeat(1_000));
        assert!(parse(&text, 0).is_err(), "{again}");
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
fn says_once_that_levels_are_too_many() {
    let blocks = "b {\n".repeat(1_000);
    let closed = format!("{blocks}{}a = 'x'\n", "}\n".repeat(1_000));
    let lists = format!("{0}{0}", format!("a = {}\n", "[".repeat(1_000)));
    for (text, want) in [
        (
            &blocks,
            &["201 \"b\" This is nested more than 200 levels deep"][..],
        ),
        (
            &closed,
            &[
                "201 \"b\" This is nested more than 200 levels deep",
                "2001 \"'\" Expected a value",
            ],
        ),
        (
            &lists,
            &["1 \"[\" This is nested more than 200 levels deep"],
        ),
    ] {
        assert_eq!(errors(text), want);
    }
}

#[test]
fn keeps_comments_and_places() {
    let text = "# far\n\n# one\n# two\na = 1 # behind\nb = 2\n";
    let document = parse(text, 7).unwrap();
    let comments: Vec<_> = document
        .comments
        .iter()
        .map(|span| &text[span.range()])
        .collect();
    assert_eq!(comments, ["# far", "# one", "# two", "# behind"]);
    let spans: Vec<_> = document
        .body
        .attributes()
        .map(|attribute| attribute.span)
        .collect();
    assert_eq!(&text[spans[0].range()], "a = 1");
    assert_eq!(spans[0].file, 7);
    assert_eq!(document.comments_above(text, spans[0].start).len(), 2);
    assert_eq!(document.comments_above(text, spans[1].start).len(), 0);
}

#[test]
fn knows_what_an_expression_refers_to() {
    let text = "[for v in var.list : \"${v}${local.a[each.key]}\" if f(x.*.y)]";
    let expression = parse_expression(text, 0).unwrap();
    let mut found = Vec::new();
    expression.references(&mut |reference| found.push(&text[reference.span.range()]));
    assert_eq!(
        found,
        ["var.list", "local.a[each.key]", "each.key", "x.*.y"]
    );
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
        let _ = errors(&text);
        let _ = parse_expression(&text, 0);
        let _ = parse_template(&text, 0);
    }

    #[test]
    fn never_panics_on_words(words in prop::collection::vec(
        prop::sample::select(vec!["for", "in", "if", "a", "=", "=>", "\"", "${", "%{", "}", "{", "[", "]",
            "(", ")", "<<E\n", "<<-E\n", "\nE\n", "~", ":", ",", "...", "?", "endif", "endfor", "else", ".",
            "*", "\n", "1", "\\u00e9", "$${", "#", "/*", "*/", "&&", "-", "!"]), 0..40)) {
        let _ = errors(&words.join(" "));
        let _ = parse_template(&words.concat(), 0);
    }
}
