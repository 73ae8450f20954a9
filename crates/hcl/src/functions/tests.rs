//! Calls of functions, as Terraform answers them.

use crate::context::{Context, NoFiles};
use crate::error::Error;
use crate::eval::Evaluator;
use crate::types::Type;
use crate::value::{Entries, Value};

/// A call by the function's name.
fn call(name: &str, arguments: &[Value]) -> Result<Value, Vec<Error>> {
    let names: Vec<String> = (0..arguments.len())
        .map(|index| format!("a{index}"))
        .collect();
    let scope: Entries = names
        .iter()
        .map(|name| name.as_str().into())
        .zip(arguments.iter().cloned())
        .collect();
    let expression = crate::parse_expression(&format!("{name}({})", names.join(", ")), 0)
        .map_err(|error| vec![error])?;
    let context = Context::new(&NoFiles);
    Evaluator::new(&scope, &context).evaluate(&expression)
}

/// What the console prints, or `error`.
fn shown(name: &str, arguments: &[Value]) -> String {
    call(name, arguments).map_or("error".to_owned(), |value| crate::format::console(&value))
}

fn text(text: &str) -> Value {
    Value::string(text)
}

fn tuple(texts: &[&str]) -> Value {
    Value::tuple(texts.iter().map(|each| text(each)).collect::<Vec<_>>())
}

fn strings(texts: &[&str]) -> Value {
    Value::list(
        Type::String,
        texts.iter().map(|each| text(each)).collect::<Vec<_>>(),
    )
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn functions_of_text_equal_terraform() {
    for (name, arguments, expected) in [
        ("upper", &["straße ᾳ ı"] as &[&str], "\"STRAßE ᾼ I\""),
        ("lower", &["İI ẞ ΑΣ"], "\"ii ß ασ\""),
        (
            "title",
            &["don't ǆa hello_world a.b"],
            "\"Don'T ǅa Hello_world A.B\"",
        ),
        ("chomp", &["hello\r\n\n"], "\"hello\""),
        ("strrev", &["🇩🇪👨‍👩‍👧x"], "\"x👨\\u200d👩\\u200d👧🇩🇪\""),
        ("trim", &["?!hello?!", "!?"], "\"hello\""),
        ("trimprefix", &["aab", "a"], "\"ab\""),
        ("trimsuffix", &["abb", "b"], "\"ab\""),
        ("startswith", &["abc", "ab"], "true"),
        ("endswith", &["abc", "ab"], "false"),
        ("strcontains", &["abc", "b"], "true"),
        ("split", &["", "a☃"], "tolist([ \"a\", \"☃\", ])"),
        ("split", &[",", ""], "tolist([ \"\", ])"),
        (
            "md5",
            &["hello world"],
            "\"5eb63bbbe01eeed093cb22bb8f5acdc3\"",
        ),
        (
            "uuidv5",
            &["dns", "www.terraform.io"],
            "\"a5008fae-b28c-5ba5-96cd-82b4c53552d6\"",
        ),
        ("uuidv5", &["DNS", "x"], "error"),
    ] {
        let arguments: Vec<Value> = arguments.iter().map(|each| text(each)).collect();
        assert_eq!(one_line(&shown(name, &arguments)), expected, "{name}");
    }
}

#[test]
fn parts_of_text_are_counted_in_what_a_reader_sees() {
    for (whole, offset, length, expected) in [
        ("hello", -3, 2, "\"ll\""),
        ("hello", -10, 2, "\"he\""),
        ("hello", 2, -1, "\"llo\""),
        ("hello", 10, 2, "\"\""),
        ("👨‍👩‍👧x", 1, 1, "\"x\""),
    ] {
        let arguments = [text(whole), Value::from(offset), Value::from(length)];
        assert_eq!(shown("substr", &arguments), expected);
    }
    assert_eq!(shown("length", &[text("👨‍👩‍👧🇩🇪a\r\n")]), "4");
}

#[test]
fn patterns_are_those_of_re2() {
    for (pattern, whole, expected) in [
        ("[a-z]+", "534aaabbb", "\"aaabbb\""),
        (r"(\d\d)-(\d)?", "12-", "[ \"12\", tostring(null), ]"),
        (
            "(?P<x>a)(?P<y>b)?",
            "a",
            "{ \"x\" = \"a\" \"y\" = tostring(null) }",
        ),
        ("(a)(?P<y>b)", "ab", "error"),
        (r"\x{2603}\p{Greek}+", "☃αb", "\"☃α\""),
        (r"\w+", "żółw", "\"w\""),
        (r"\W+", "ż", "\"ż\""),
        (r"\bfoo\b", "a foo", "\"foo\""),
        ("[a-c&&b]", "&", "\"&\""),
        ("[[a]", "[", "\"[\""),
        ("[]a]+", "a]", "\"a]\""),
        ("x{", "x{", "\"x{\""),
        ("a{,2}", "a{,2}", "\"a{,2}\""),
        ("a{1001}", "a", "error"),
        (r"\Qa.b\E", "a.b", "\"a.b\""),
        ("(?x)a b", "ab", "error"),
        (r"\<a", "<a", "\"<a\""),
        (r"\Z", "a", "error"),
        (r"\1", "a", "error"),
        ("(?=a)", "a", "error"),
    ] {
        let shown = shown("regex", &[text(pattern), text(whole)]);
        assert_eq!(one_line(&shown), expected, "{pattern}");
    }
    for (whole, what, with, expected) in [
        ("hello", "/(l)/", "[$1]", "\"he[l][l]o\""),
        ("hello", "/(l)/", "$1x", "\"heo\""),
        ("hello", "", "-", "\"-h-e-l-l-o-\""),
        ("a//b", "//", "-", "\"-a-/-/-b-\""),
        ("baac", "/a*/", "x", "\"xbxcx\""),
        ("a/b", "/", "-", "\"a-b\""),
    ] {
        let arguments = [text(whole), text(what), text(with)];
        assert_eq!(shown("replace", &arguments), expected, "{what}");
    }
}

#[test]
fn functions_of_numbers_equal_terraform() {
    let number =
        |text: &str| Value::number(text.parse::<crate::Number>().unwrap_or_else(|_| panic!()));
    for (name, arguments, expected) in [
        ("ceil", &["-0.5"] as &[&str], "0"),
        ("ceil", &["5.1"], "6"),
        ("floor", &["-4.9"], "-5"),
        (
            "floor",
            &["123456789012345678901234567890.5"],
            "123456789012345678901234567890",
        ),
        ("log", &["50", "10"], "1.6989700043360185"),
        ("log", &["0", "10"], "error"),
        ("pow", &["2", "64"], "18446744073709550000"),
        ("pow", &["-8", "0.333"], "error"),
        ("signum", &["-13"], "-1"),
        ("signum", &["0.5"], "error"),
        ("max", &["1", "3", "2"], "3"),
        ("min", &[], "error"),
        ("range", &["4", "1"], "tolist([ 4, 3, 2, ])"),
        (
            "range",
            &["0", "1", "0.25"],
            "tolist([ 0, 0.25, 0.5, 0.75, ])",
        ),
        ("range", &["1", "4", "0"], "error"),
        ("range", &["1", "4", "-1"], "error"),
        ("range", &["1025"], "error"),
    ] {
        let arguments: Vec<Value> = arguments.iter().map(|each| number(each)).collect();
        assert_eq!(one_line(&shown(name, &arguments)), expected, "{name}");
    }
    for (digits, base, expected) in [
        ("aA", 62, "656"),
        ("zZ", 36, "1295"),
        ("+1", 10, "1"),
        ("-10", 2, "-2"),
        ("1_000", 10, "error"),
        ("12", 2, "error"),
        ("10", 63, "error"),
    ] {
        let arguments = [text(digits), Value::from(base)];
        assert_eq!(shown("parseint", &arguments), expected, "{digits}");
    }
}

#[test]
fn collections_keep_their_kind() {
    let both = |name: &str, one: &Value| one_line(&shown(name, std::slice::from_ref(one)));
    assert_eq!(both("reverse", &tuple(&["a", "b"])), "[ \"b\", \"a\", ]");
    assert_eq!(
        both("reverse", &strings(&["a", "b"])),
        "tolist([ \"b\", \"a\", ])"
    );
    assert_eq!(both("reverse", &text("a")), "error");
    assert_eq!(
        both("flatten", &Value::tuple([strings(&["a"]), text("b")])),
        "[ \"a\", \"b\", ]"
    );
    assert_eq!(
        both("sort", &strings(&["☃", "B", "a", "🎉"])),
        "tolist([ \"B\", \"a\", \"☃\", \"🎉\", ])"
    );
    assert_eq!(both("compact", &strings(&["a", ""])), "tolist([ \"a\", ])");
    assert_eq!(both("one", &strings(&[])), "tostring(null)");
    assert_eq!(both("one", &tuple(&["a", "b"])), "error");
    assert_eq!(both("merge", &Value::null()), "{}");
    let map = |key: &str| Value::map(Type::Number, Entries::from([(key.into(), Value::from(1))]));
    assert_eq!(
        one_line(&shown("merge", &[map("a"), map("b")])),
        "tomap({ \"a\" = 1 \"b\" = 1 })"
    );
    assert_eq!(
        shown("element", &[tuple(&["a", "b"]), Value::from(3)]),
        "\"b\""
    );
    assert_eq!(shown("element", &[tuple(&["a"]), Value::from(-1)]), "error");
    assert_eq!(shown("lookup", &[map("a"), text("a")]), "1");
    assert_eq!(shown("lookup", &[map("a"), text("b")]), "error");
    assert_eq!(shown("contains", &[tuple(&["a"]), text("a")]), "true");
    assert_eq!(shown("index", &[tuple(&["a"]), text("b")]), "error");
}

#[test]
fn what_is_sensitive_spreads_as_far_as_in_terraform() {
    let secret = text("a").or_sensitive(true);
    let holding = Value::tuple([secret.clone(), text("b")]);
    assert_eq!(shown("upper", std::slice::from_ref(&secret)), "(sensitive)");
    assert_eq!(shown("length", std::slice::from_ref(&holding)), "2");
    assert_eq!(
        shown("contains", &[holding.clone(), text("z")]),
        "(sensitive)"
    );
    assert_eq!(
        one_line(&shown("reverse", std::slice::from_ref(&holding))),
        "[ \"b\", (sensitive), ]"
    );
    let hidden = Value::tuple([text("a")]).or_sensitive(true);
    assert_eq!(shown("length", &[hidden]), "(sensitive)");
    let nested = Value::tuple([Value::tuple([text("a")]).or_sensitive(true)]);
    assert_eq!(shown("flatten", &[nested]), "(sensitive)");
}

#[test]
fn networks_are_cut_as_terraform_cuts_them() {
    let host = |prefix: &str, number: i64| shown("cidrhost", &[text(prefix), Value::from(number)]);
    assert_eq!(host("10.12.112.0/20", 268), "\"10.12.113.12\"");
    assert_eq!(host("10.12.112.0/20", -1), "\"10.12.127.255\"");
    assert_eq!(host("10.12.112.0/20", 4096), "error");
    assert_eq!(host("10.12.112.0/20", -4097), "error");
    assert_eq!(
        host("fd00:fd12:3456:7890:00a2::/72", 34),
        "\"fd00:fd12:3456:7890::22\""
    );
    assert_eq!(host("010.001.0.0/8", 1), "\"10.0.0.1\"");
    assert_eq!(host("10.0.0.0/32", 1), "error");
    let subnet = |prefix: &str, bits: i64, number: i64| {
        shown(
            "cidrsubnet",
            &[text(prefix), Value::from(bits), Value::from(number)],
        )
    };
    assert_eq!(subnet("172.16.0.0/12", 4, 2), "\"172.18.0.0/16\"");
    assert_eq!(subnet("10.1.2.0/24", 4, 16), "error");
    assert_eq!(
        subnet("fd00:fd12:3456:7890::/56", 16, 162),
        "\"fd00:fd12:3456:7800:a200::/72\""
    );
    assert_eq!(
        subnet("0.0.0.0/0", 32, 4_294_967_295),
        "\"255.255.255.255/32\""
    );
    let many = |prefix: &str, bits: &[i64]| {
        let mut arguments = vec![text(prefix)];
        arguments.extend(bits.iter().map(|bits| Value::from(*bits)));
        one_line(&shown("cidrsubnets", &arguments))
    };
    assert_eq!(
        many("10.1.0.0/16", &[4, 4, 8, 4]),
        "tolist([ \"10.1.0.0/20\", \"10.1.16.0/20\", \"10.1.32.0/24\", \"10.1.48.0/20\", ])"
    );
    assert_eq!(many("10.1.0.0/16", &[1, 1, 1]), "error");
    assert_eq!(many("10.1.0.0/16", &[]), "tolist([])");
    assert_eq!(
        shown("cidrnetmask", &[text("172.16.0.0/12")]),
        "\"255.240.0.0\""
    );
    assert_eq!(shown("cidrnetmask", &[text("fd00::/8")]), "\"ff00::\"");
    assert_eq!(
        shown("cidrcontains", &[text("10.0.0.0/8"), text("10.9.0.1")]),
        "true"
    );
    assert_eq!(
        shown("cidrcontains", &[text("10.0.0.0/8"), text("0.0.0.0/0")]),
        "false"
    );
}

#[test]
fn growth_has_a_limit() {
    assert_eq!(
        shown("indent", &[Value::from(1 << 40), text("a\nb")]),
        "error"
    );
    let long = strings(&vec!["a"; 4000]);
    assert_eq!(shown("setproduct", &[long.clone(), long]), "error");
}
