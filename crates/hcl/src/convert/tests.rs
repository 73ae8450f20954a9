use super::*;
use crate::syntax::parse_expression;

fn of(text: &str) -> Type {
    Type::from_expression(&parse_expression(text, 0).unwrap()).unwrap()
}

fn value(text: &str) -> Value {
    crate::eval::tests::evaluate(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
}

#[test]
fn converts_as_terraform_does() {
    for (from, to, want) in [
        ("1", "string", "\"1\""),
        ("\"1.50\"", "number", "1.5"),
        ("\"1\"", "bool", "true"),
        ("true", "string", "\"true\""),
        ("null", "string", "tostring(null)"),
        (
            "[1, \"a\"]",
            "list(any)",
            "tolist([\n  \"1\",\n  \"a\",\n])",
        ),
        ("[1, 2]", "set(string)", "toset([\n  \"1\",\n  \"2\",\n])"),
        ("[]", "list(any)", "tolist([])"),
        ("[sensitive(1), 2]", "set(any)", "(sensitive)"),
        (
            "{a = 1, b = \"x\"}",
            "map(any)",
            "tomap({\n  \"a\" = \"1\"\n  \"b\" = \"x\"\n})",
        ),
        (
            "{a = 1, b = 2}",
            "object({a = string})",
            "{\n  \"a\" = \"1\"\n}",
        ),
        (
            "{}",
            "object({a = optional(number)})",
            "{\n  \"a\" = tonumber(null)\n}",
        ),
        (
            "{}",
            "object({a = optional(number, 3)})",
            "{\n  \"a\" = 3\n}",
        ),
        (
            "{a = null}",
            "object({a = optional(string, 3)})",
            "{\n  \"a\" = \"3\"\n}",
        ),
        (
            "[1, \"2\"]",
            "tuple([string, number])",
            "[\n  \"1\",\n  2,\n]",
        ),
        (
            "[[1], [\"a\", \"b\"]]",
            "list(any)",
            "tolist([\n  tolist([\n    \"1\",\n  ]),\n  tolist([\n    \"a\",\n    \"b\",\n  ]),\n])",
        ),
    ] {
        let converted = convert(&value(from), &of(to));
        let shown = converted.map_err(|error| error.to_string());
        assert_eq!(
            shown.as_ref().map(crate::format::console),
            Ok(want.to_owned()),
            "{from} to {to}"
        );
    }
}

#[test]
fn says_what_is_required_and_where() {
    for (from, to, want) in [
        ("\"a\"", "number", "a number is required"),
        (
            "\"True\"",
            "bool",
            "a bool is required; to convert from string, use lowercase \"true\"",
        ),
        ("1", "bool", "bool required"),
        ("{}", "list(string)", "list of string required"),
        ("[[]]", "list(string)", "element 0: string required"),
        (
            "[true, 1]",
            "list(any)",
            "all list elements must have the same type",
        ),
        (
            "{a = {b = \"x\"}}",
            "object({a = object({b = number})})",
            "attribute \"a\": attribute \"b\": a number is required",
        ),
        (
            "{}",
            "object({a = string, b = string})",
            "attributes \"a\" and \"b\" are required",
        ),
        ("{a = []}", "map(string)", "element \"a\": string required"),
        (
            "[1]",
            "tuple([number, number])",
            "2 elements required, but there are 1",
        ),
    ] {
        let error = convert(&value(from), &of(to)).unwrap_err();
        assert_eq!(error.to_string(), want, "{from} to {to}");
    }
}

#[test]
fn unifies_as_terraform_does() {
    for (types, want) in [
        ("[bool, string, number]", Some("string")),
        ("[bool, number]", None),
        ("[list(number), tuple([string])]", Some("list(string)")),
        ("[map(number), object({ a = string })]", Some("map(string)")),
        ("[list(number), set(string)]", Some("set(string)")),
        (
            "[object({ a = number }), object({ a = string })]",
            Some("object({ a = string })"),
        ),
        (
            "[object({ a = number }), object({ b = string })]",
            Some("map(string)"),
        ),
        ("[tuple([number]), tuple([])]", Some("list(number)")),
        ("[object({}), tuple([])]", None),
        ("[list(number), number]", None),
        ("[any, number]", Some("number")),
    ] {
        let Type::Tuple(types) = of(&format!("tuple({types})")) else {
            panic!("it is a tuple");
        };
        let unified = unify(&types).map(|of| of.to_string());
        assert_eq!(unified.as_deref(), want, "{types:?}");
    }
}
