//! No text makes the crate panic, recurse without bound, or take time or memory without bound.

use std::cell::RefCell;
use std::collections::HashMap;

use nstance_hcl::{
    Body, Context, Error, Evaluator, Expression, NoFiles, Reference, Scope, Value, format, parse,
    parse_expression, parse_template, undefined,
};
use proptest::prelude::*;

/// The attributes of a file, which may refer to each other: each is evaluated once.
struct Locals<'a> {
    body: &'a Body,
    context: &'a Context<'a>,
    known: RefCell<HashMap<String, Value>>,
}

impl Scope for Locals<'_> {
    fn resolve(&self, reference: Reference<'_>) -> Result<(Value, usize), Vec<Error>> {
        let name = &*reference.root.name;
        if let Some(value) = self.known.borrow().get(name) {
            return Ok((value.clone(), 0));
        }
        let mut attributes = self.body.attributes();
        let Some(attribute) = attributes.find(|attribute| *attribute.name.name == *name) else {
            return Err(vec![undefined(reference.root, [])]);
        };
        let value = Evaluator::new(self, self.context).evaluate(&attribute.value)?;
        self.known
            .borrow_mut()
            .insert(name.to_owned(), value.clone());
        Ok((value, 0))
    }
}

/// What the last attribute of a file gives, or what is wrong first.
fn last(text: &str) -> String {
    let mut context = Context::new(&NoFiles);
    // A tenth, for tests that are ten times as fast.
    context.limits.steps = 1_000_000;
    let parsed = parse(text, 0).map_err(|error| vec![error]);
    let result = parsed.and_then(|body| {
        let locals = Locals {
            body: &body,
            context: &context,
            known: RefCell::default(),
        };
        let evaluator = Evaluator::new(&locals, &context);
        let mut last = Value::null();
        for attribute in body.attributes() {
            last = evaluator.evaluate(&attribute.value)?;
            let known = (attribute.name.name.to_string(), last.clone());
            locals.known.borrow_mut().insert(known.0, known.1);
        }
        Ok(format::console(&last))
    });
    result.unwrap_or_else(|errors| errors[0].to_string())
}

fn chain(first: &str, next: impl Fn(usize) -> String, count: usize) -> String {
    let rest: String = (1..count)
        .map(|n| format!("a{n} = {}\n", next(n - 1)))
        .collect::<Vec<_>>()
        .concat();
    format!("a0 = {first}\n{rest}")
}

#[test]
fn what_doubles_is_bounded() {
    let strings = chain("\"0123456789\"", |n| format!("\"${{a{n}}}${{a{n}}}\""), 60);
    assert!(last(&strings).contains("more than 64 MB of text"));
    let lists = chain("[1, 1]", |n| format!("[a{n}, a{n}]"), 60);
    assert!(last(&lists).contains("more than 1000000 parts"));
    let objects = chain("{x = 1}", |n| format!("{{x = a{n}, y = a{n}}}"), 60);
    assert!(last(&objects).contains("more than 1000000 parts"));
    let deep = chain("[1]", |n| format!("[[[[[[a{n}]]]]]]"), 100_000 / 64);
    assert!(last(&deep).contains("more than 400 levels"));
    let shared = "a = join(\"\", [for i in range(1000): \"0123456789\"])\n\
                  b = [for i in range(1000): [for j in range(100): a]]\n";
    assert!(last(shared).contains("more than 256 MB of text"));
    let merged = chain("{x = {}}", |n| format!("merge({{k{n} = a{n}}}, a{n})"), 60);
    assert!(last(&merged).contains("more than 1000000 parts"));
    for doubled in [
        "concat(x, x)",
        "flatten([x, x])",
        "setproduct(x, x)",
        "[for y in concat(x, x) : y]",
    ] {
        let mut text = "range(16)".to_owned();
        for _ in 0..24 {
            text = format!("[for x in [{text}] : {doubled}][0]");
        }
        let shown = last(&format!("a = length({text})\n"));
        assert!(
            shown.contains("more than 1000000 steps"),
            "{doubled}: {shown}"
        );
    }
    let encoded = "a = join(\"\", [for i in range(1000): \"0123456789\"])\n\
                   b = length(jsonencode([for i in range(1000): [for j in range(100): a]]))\n";
    assert!(last(encoded).contains("more than 64 MB of text"));
}

#[test]
fn what_refers_to_itself_through_many_is_bounded() {
    let backwards: Vec<String> = (0..100_000)
        .map(|n| format!("a{n} = a{}\n", n + 1))
        .collect();
    assert!(last(&backwards.concat()).contains("more than 400 expressions deep"));
}

#[test]
fn what_is_long_or_deep_is_bounded() {
    let long = "# a comment\n".repeat(9_000_000);
    let error = parse(&long, 0).expect_err("it is too long").to_string();
    assert!(
        error.contains("longer than 16 MB: this has 103 MB"),
        "{error}"
    );
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{a=", "}"),
        ("-", ""),
        ("!", ""),
        ("f(", ")"),
        ("[for x in ", ":x]"),
        ("true ? ", ": 1"),
        ("\"${", "}\""),
        ("\"%{ if true }", "%{ endif }\""),
        ("a[", "]"),
        ("1 + ", ""),
        ("a.*.b", ""),
        ("x ? 1 : ", ""),
    ] {
        let text = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        if let Ok(parsed) = parse_expression(&text, 0) {
            let _ =
                Evaluator::new(&nstance_hcl::NoNames, &Context::new(&NoFiles)).evaluate(&parsed);
        }
        let _ = parse(&format!("a = {text}\n"), 0);
        let _ = parse_template(&text, 0);
    }
    assert!(parse(&"a {\n".repeat(100_000), 0).is_err());
    assert!(parse(&"a = <<A\n${<<A\n".repeat(100_000), 0).is_err());
    assert!(last("a = range(1000000)\n").contains("1024"));
    assert!(
        last("a = [for i in range(1024): [for j in range(1024): [for k in range(1024): k]]]\n")
            .contains("more than 1000000 steps")
    );
}

#[test]
fn errors_point_into_a_text_that_ends_too_deep() {
    for end in ["", "é", "\"", "${"] {
        let text = format!("{}{end}", "[".repeat(200));
        check(&text, parse_expression(&text, 0));
    }
}

/// Pieces of the language, well and badly put together.
fn texts() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "b",
        "=",
        " ",
        "\n",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ":",
        "?",
        ".",
        "*",
        "...",
        "\"",
        "${",
        "%{",
        "~}",
        "~",
        "$",
        "%",
        "\\",
        "\\u00e9",
        "<<EOT\n",
        "<<-EOT\n",
        "EOT",
        "EOT\n",
        "for",
        "in",
        "if",
        "else",
        "endif",
        "endfor",
        "true",
        "null",
        "1",
        "0.5",
        "1e9",
        "-",
        "!",
        "+",
        "/",
        "&&",
        "==",
        "=>",
        "#",
        "//",
        "/*",
        "*/",
        "é",
        "\u{301}",
        "\0",
        "\u{feff}",
        "try(",
        "format(",
        "\"%s\"",
        "jsondecode(",
        "regex(",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

fn check(text: &str, result: Result<Expression, Error>) {
    let context = Context::new(&NoFiles);
    let evaluated = result
        .map_err(|error| vec![error])
        .and_then(|parsed| Evaluator::new(&nstance_hcl::NoNames, &context).evaluate(&parsed));
    match evaluated {
        Ok(value) => drop(format::console(&value)),
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(text.get(error.span.range()).is_some(), "{error:?}");
                assert!(!error.summary.is_empty());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in texts()) {
        check(&text, parse_expression(&text, 0));
        check(&text, parse_template(&text, 0));
        if let Err(error) = parse(&text, 0) {
            prop_assert!(text.get(error.span.range()).is_some(), "{:?}", error);
        }
    }

    #[test]
    fn what_is_printed_reads_back(value in values()) {
        let printed = format::console(&value);
        let parsed = parse_expression(&printed, 0)
            .map_err(|error| TestCaseError::fail(format!("{printed}: {error:?}")))?;
        let context = Context::new(&NoFiles);
        let read = Evaluator::new(&nstance_hcl::NoNames, &context).evaluate(&parsed)
            .map_err(|errors| TestCaseError::fail(format!("{printed}: {errors:?}")))?;
        prop_assert_eq!(&read, &value, "{}", printed);
    }
}

/// Values whose printed form is an expression. Left out is what Terraform prints otherwise than it
/// reads: line breaks (a heredoc has one more at its end), escapes that only Go has, `${` and `%{`,
/// nulls of a type, and types that a list of nothing has lost.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::null()),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -#&-~é☃🎉\t\"\\\\]{0,12}".prop_map(|text: String| Value::from(text)),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::tuple),
            prop::collection::btree_map("[a-z \"\\\\]{1,8}", inner, 0..6).prop_map(|entries| {
                Value::object(
                    entries
                        .into_iter()
                        .map(|(key, value)| (key.into(), value))
                        .collect(),
                )
            }),
            prop::collection::vec(any::<i64>(), 1..6).prop_map(|numbers| {
                Value::list(
                    nstance_hcl::Type::Number,
                    numbers.into_iter().map(Value::from).collect::<Vec<_>>(),
                )
            }),
            prop::collection::vec("[a-z☃]{0,4}", 1..6).prop_map(|texts| {
                Value::set(
                    nstance_hcl::Type::String,
                    texts.into_iter().map(Value::from).collect(),
                )
            }),
            prop::collection::btree_map("[a-z]{1,4}", any::<bool>(), 1..4).prop_map(|entries| {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| (key.into(), Value::from(value)));
                Value::map(nstance_hcl::Type::Bool, entries.collect())
            }),
        ]
    })
}
