use crate::context::NoFiles;
use crate::syntax::parse_expression;
use crate::{Context, Entries, Error, Evaluator, Value};

pub(crate) fn evaluate(text: &str) -> Result<Value, Vec<Error>> {
    let context = Context::new(&NoFiles);
    let mut names = Entries::new();
    names.insert("secret".into(), Value::from("s3cret").or_sensitive(true));
    names.insert(
        "names".into(),
        Value::tuple(vec![Value::from("a"), Value::from("b")]),
    );
    let expression = parse_expression(text, 0).map_err(|error| vec![error])?;
    Evaluator::new(&names, &context).evaluate(&expression)
}

fn shown(text: &str) -> String {
    match evaluate(text) {
        Ok(value) => crate::format::console(&value),
        Err(errors) => errors
            .iter()
            .map(|error| format!("{:?} {error}", text.get(error.span.range()).unwrap_or("?")))
            .collect::<Vec<_>>()
            .join("; "),
    }
}

/// What Terraform 1.0.3 answers.
#[test]
fn has_terraforms_values() {
    for (expression, want) in [
        ("1 + 2 * 3 - 4 / 2 % 3", "5"),
        ("0.1 + 0.2", "0.3"),
        (r#""\u00e9" == "e\u0301""#, "true"),
        ("\"1\" + 1", "2"),
        ("-\"5\" + 1", "-4"),
        ("1 == \"1\"", "false"),
        ("1 < \"2\"", "true"),
        ("!\"true\" || 1 != 1", "false"),
        ("null == null", "true"),
        ("[1, {a = 2}] == [1, {a = 2}]", "true"),
        (
            "\"$$${1} $${x} %%{y} $ % ${\"a\"}\"",
            "\"$${1} ${x} %{y} $ % a\"",
        ),
        ("\"a ${~ \" x \" ~} b\"", "\"a x b\""),
        ("\"${[1]}\"", "[\n  1,\n]"),
        (
            "\"%{ for k, v in {a = 1, b = 2} }${k}=${v} %{ endfor }\"",
            "\"a=1 b=2 \"",
        ),
        ("\"%{ if false }a%{ else }b%{ endif }\"", "\"b\""),
        ("true ? 1 : \"a\"", "\"1\""),
        ("true ? [1] : [\"a\"]", "[\n  \"1\",\n]"),
        ("true ? [1] : [\"a\", \"b\"]", "tolist([\n  \"1\",\n])"),
        (
            "true ? {a = 1} : {b = \"x\"}",
            "tomap({\n  \"a\" = \"1\"\n})",
        ),
        ("true ? null : 1", "tonumber(null)"),
        ("false ? nope(1) : 2", "2"),
        ("false ? [][0] : 2", "2"),
        ("[10, 20].1", "20"),
        ("[10, 20][\"1\"]", "20"),
        ("{\"1\" = 2}[1]", "2"),
        ("[{a = [1, 2]}].*.a[0]", "[\n  1,\n  2,\n]"),
        ("[{a = [1, 2]}][*].a[0]", "[\n  1,\n]"),
        ("null[*]", "[]"),
        ("null.*", "[]"),
        ("\"x\"[*]", "[\n  \"x\",\n]"),
        ("{a = 1}.*.a", "[\n  1,\n]"),
        ("[for i, v in [5, 6] : i * v if v > 5]", "[\n  6,\n]"),
        (
            "{for k, v in [\"a\", \"a\"] : v => k...}",
            "{\n  \"a\" = [\n    0,\n    1,\n  ]\n}",
        ),
        ("{for v in [1] : 1 => v}", "{\n  \"1\" = 1\n}"),
        (
            "{a = 1, a = 2, (\"b\") = 3, true = 4}",
            "{\n  \"a\" = 2\n  \"b\" = 3\n  \"true\" = 4\n}",
        ),
        ("[\"a\\nb\"]", "[\n  <<-EOT\n  a\n  b\n  EOT,\n]"),
        ("try(1 + \"a\", [][0], 3)", "3"),
        ("[can(1 + \"a\"), can(1)]", "[\n  false,\n  true,\n]"),
        ("templatestring(\"a$${x}\", {x = 1})", "\"a1\""),
        (
            "\"{{ .Name }} {{ printf `%q` . }}\"",
            "\"{{ .Name }} {{ printf `%q` . }}\"",
        ),
        (
            "<<EOT\nx\n%{ if true ~}\n   b\n%{ endif ~}\n  c ${~ 1 ~}  \n   d\nEOT\n",
            "<<EOT\nx\n   b\n  c1   d\n\nEOT",
        ),
        (
            "<<-EOT\n    x\n      y\n\n  \n    z\n    EOT\n",
            "<<EOT\nx\n  y\n\n  \nz\n\nEOT",
        ),
        (
            "<<-EOT\n    x\n      %{ if true ~}\n      y\n      %{ endif ~}\n    z\n  EOT\n",
            "<<EOT\nx\n        y\n      z\n\nEOT",
        ),
        ("<<EOT\nEOT\n", "\"\""),
        (
            "<<EOT\n a\\n $${b} \"q\" {{ .X }}\n  EOT\n",
            "<<EOT\n a\\n ${b} \"q\" {{ .X }}\n\nEOT",
        ),
    ] {
        assert_eq!(shown(expression), want, "{expression}");
    }
}

#[test]
fn hides_what_depends_on_a_secret() {
    for (expression, want) in [
        ("secret", "(sensitive)"),
        ("\"a${secret}\"", "(sensitive)"),
        ("secret == \"x\"", "(sensitive)"),
        ("[secret, 1]", "[\n  (sensitive),\n  1,\n]"),
        ("{(secret) = 1}", "(sensitive)"),
        ("secret == \"x\" ? 1 : 2", "(sensitive)"),
        ("sensitive([1])[0]", "(sensitive)"),
        ("[for x in sensitive([1]) : 2]", "(sensitive)"),
        ("sensitive({a = 1})[*].a", "(sensitive)"),
        ("nonsensitive(secret)", "\"s3cret\""),
        ("issensitive(secret)", "true"),
        ("try(secret)", "(sensitive)"),
        ("templatestring(\"a$${x}\", {x = secret})", "(sensitive)"),
    ] {
        assert_eq!(shown(expression), want, "{expression}");
    }
    for expression in [
        "1 + secret",
        "secret.a",
        "secret[0]",
        "[for x in secret : x]",
        "\"${[secret]}\" + 1",
        "sensitive({hidden = 1}).b",
        "templatestring(secret, 1)",
    ] {
        let shown = shown(expression);
        assert!(
            !shown.contains("s3cret") && !shown.contains("hidden"),
            "{shown}"
        );
    }
}

#[test]
fn says_all_that_is_wrong_and_nothing_twice() {
    for (expression, want) in [
        (
            "[nams, 1 + \"a\"]",
            "\"nams\" There is nothing named `nams`: this name isn't defined (did you mean `names`?); \
             \"\\\"a\\\"\" The right side of `+` must be a number: this is the string \"a\"",
        ),
        (
            "nams + 1 + true",
            "\"nams\" There is nothing named `nams`: this name isn't defined (did you mean `names`?)",
        ),
        (
            "{size = 1}.sise",
            "\"sise\" This object has no attribute `sise`: its attributes are `size` (did you mean `size`?)",
        ),
        (
            "[1, 2][2]",
            "\"2\" There is no element with this index: the indices are 0 to 1",
        ),
        (
            "[1][-1]",
            "\"-1\" There is no element with this index: an index can't be negative",
        ),
        (
            "[1][0.5]",
            "\"0.5\" There is no element with this index: an index must be a whole number",
        ),
        ("1 / 0", "\"0\" The right side of `/` can't be 0: this is 0"),
        ("5 % 0", "\"0\" The right side of `%` can't be 0: this is 0"),
        (
            "1 && null",
            "\"1\" The left side of `&&` must be true or false: this is the number 1; \
             \"null\" The right side of `&&` must be true or false: this is null",
        ),
        (
            "true ? {a = 1} : [1]",
            "\"true ? {a = 1} : [1]\" Both results of a condition must be of one type: \
             this is object({ a = number }) or tuple([number])",
        ),
        (
            "1 ? 2 : 3",
            "\"1\" A condition must be true or false: this is the number 1",
        ),
        (
            "\"a${null}\"",
            "\"null\" Only strings, numbers and booleans go into a string: this is null \
             (give another value instead with `coalesce(…, \"\")`)",
        ),
        (
            "[for x in \"a\" : x]",
            "\"\\\"a\\\"\" `for` goes through lists, sets, maps and objects: this is the string \"a\"",
        ),
        (
            "{for k, v in [\"a\", \"a\"] : v => k}",
            "\"v\" Two elements have the key \"a\" \
             (to have all of one key in a list, put `...` behind the value)",
        ),
        (
            "[for x in [1, 2, 3] : x + y]",
            "\"y\" There is nothing named `y`: this name isn't defined",
        ),
        (
            "uuid()",
            "\"uuid\" The function `uuid` isn't offered: its result would be another each time, \
             and so would every plan (pass the value in as a variable)",
        ),
        (
            "templatestrin(1)",
            "\"templatestrin\" There is no function `templatestrin` \
             (did you mean `templatestring`?)",
        ),
        (
            "templatestring(\"a\\n $${xs}\", {ys = 1})",
            "\"\\\"a\\\\n $${xs}\\\"\" There is nothing named `xs`: \
             this name isn't defined (did you mean `ys`?): in line 2, column 4 of the template",
        ),
        (
            "try([][0])",
            "\"([][0])\" None of these expressions has a value \
             (end `try` with a value that always works)",
        ),
        (
            "[try(nope, 1), can(nope.a), can([].a)]",
            "\"nope\" There is nothing named `nope`: this name isn't defined; \
             \"nope\" There is nothing named `nope`: this name isn't defined",
        ),
        (
            "[false ? nope : 2, [1][sensitive(3)]]",
            "\"nope\" There is nothing named `nope`: this name isn't defined; \
             \"sensitive(3)\" There is no element with this index",
        ),
        (
            "list(1)",
            "\"list\" There is no function `list` \
             (Terraform has taken it out: write `tolist([…])`, or `[…]`)",
        ),
        (
            "jsondecode(secret)",
            "\"secret\" `jsondecode` has no result here: \
             an argument is sensitive, so the reason isn't shown",
        ),
    ] {
        assert_eq!(shown(expression), want, "{expression}");
    }
}

#[test]
fn points_at_where_a_value_was_written() {
    let text = "[for x in [\"a\", \"b\"] : {k = x}][1].k";
    let value = evaluate(text).unwrap();
    assert_eq!(value.span.map(|span| &text[span.range()]), Some("\"b\""));
}

#[test]
fn has_limits() {
    let all = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    let loops = format!("[for a in {all} : ").repeat(9);
    let text = format!("{loops}1{}", "]".repeat(9));
    assert!(shown(&text).contains("more than 10000000 steps"));

    let mut doubled = "\"0123456789\"".to_owned();
    for _ in 0..24 {
        doubled = format!("[for x in [{doubled}] : \"${{x}}${{x}}\"][0]");
    }
    assert!(shown(&doubled).contains("more than 64 MB of text"));

    let deep = format!("{}1{}", "(1 + ".repeat(180), ")".repeat(180));
    assert_eq!(shown(&deep), "181");
    let deeper = format!("{}1{}", "-(0 * 1 + ".repeat(90), ")".repeat(90));
    assert!(shown(&deeper).len() < 1000);
}

/// Brackets stand around what is sensitive of a string.
#[test]
fn templates_know_which_bytes_are_sensitive() {
    let marked = |expression: &str| {
        let value = evaluate(expression).unwrap();
        assert!(value.sensitive, "{expression}");
        let text = value.as_str().unwrap_or_default().to_owned();
        let bytes = value.sensitive_bytes()?;
        let mut shown = text.clone();
        for range in bytes.iter().rev() {
            shown.insert(range.end, '>');
            shown.insert(range.start, '<');
        }
        Some(shown)
    };
    for (expression, expected) in [
        ("\"a${secret}b${1}\"", "a<s3cret>b1"),
        ("\"${\"a${secret}\"}b${secret}\"", "a<s3cret>b<s3cret>"),
        ("\"é${upper(secret)}\"", "é<S3CRET>"),
        (
            "\"a %{ if secret == \"x\" }b%{ else }c${1}%{ endif } d\"",
            "a <c><1> d",
        ),
        (
            "\"a%{ for x in sensitive([1, 2]) }-${x}%{ endfor }b\"",
            "a<-><1><-><2>b",
        ),
        (
            "\"a%{ for x in [1, secret] }-${x}%{ endfor }b\"",
            "a-1-<s3cret>b",
        ),
        ("<<-EOT\n    a\n      ${secret}\n  EOT\n", "a\n  <s3cret>\n"),
        ("true ? \"a${secret}\" : \"\"", "a<s3cret>"),
        ("[\"a${secret}\"][0]", "a<s3cret>"),
        ("{a = \"a${secret}\"}.a", "a<s3cret>"),
        ("templatestring(\"a$${x}\", {x = secret})", "a<s3cret>"),
        (
            "templatestring(\"a$${x}\", {x = \"b${secret}\"})",
            "ab<s3cret>",
        ),
    ] {
        assert_eq!(
            marked(expression).as_deref(),
            Some(expected),
            "{expression}"
        );
    }
    // All of what anything else makes of it.
    for expression in [
        "secret",
        "\"${secret}\"",
        "upper(\"a${secret}\")",
        "join(\"\", [\"a${secret}\"])",
        "tostring(\"a${secret}\")",
        "sensitive(\"a${secret}\")",
        "sensitive([\"a${secret}\"])[0]",
        "secret == \"x\" ? \"\" : \"a${secret}\"",
        "templatestring(\"a$${x}\", sensitive({x = secret}))",
        // A letter and its accent become one.
        "\"e${sensitive(\"\\u0301\")}x${secret}\"",
    ] {
        assert_eq!(marked(expression), None, "{expression}");
    }
    let shown = evaluate("nonsensitive(\"a${secret}\")").unwrap();
    assert!(!shown.sensitive && shown.sensitive_bytes().is_none());
}
