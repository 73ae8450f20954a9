//! What errors tell: the expression, what was read and what was there, and which limit was reached.
#![expect(clippy::unwrap_used, reason = "tests may panic: that is how they fail")]

use nstance_gotemplate::{
    Environment, ExecError, ExecErrorKind, Function, FunctionError, Limits, Map, MissingKey,
    Struct, StructType, Template, Value,
};
use std::sync::Arc;

fn data() -> Value {
    let inner: Map = [("B", Value::from("it's")), ("Null", Value::Nil)]
        .into_iter()
        .collect();
    let vars: Map = [
        ("A", Value::from(inner)),
        ("S", Value::from("hello")),
        ("L", Value::from(vec!["x", "y"])),
        ("N", Value::from(7)),
        ("Long", Value::from("0123456789".repeat(20))),
    ]
    .into_iter()
    .collect();
    let instance = Struct::new(StructType::new("Instance", ["ID"]), vec![Value::from("i")]);
    Value::from(Map::from_iter([
        ("Vars", Value::from(vars)),
        ("Instance", instance.into()),
    ]))
}

fn failed(text: &str) -> ExecError {
    let refuse = Function::new(
        0,
        None,
        Arc::new(|_: &[Value]| Err(FunctionError::new("no"))),
    );
    let environment = Environment::new()
        .with_missing_key(MissingKey::Error)
        .with_function("refuse", refuse);
    let template = Template::parse("t", text, &environment).unwrap();
    template.render(&data()).unwrap_err()
}

#[test]
fn the_expression_and_what_was_there() {
    for (text, expression, found) in [
        (
            "{{.Vars.S.T}}",
            ".Vars.S.T",
            &[".Vars.S: a string, \"hello\""][..],
        ),
        (
            "{{.Vars.A.B.C.D}}",
            ".Vars.A.B.C.D",
            &[".Vars.A.B: a string, \"it's\""],
        ),
        (
            "{{.Vars.A.Null.X}}",
            ".Vars.A.Null.X",
            &[".Vars.A.Null: null"],
        ),
        (
            "{{with .Vars.A}}{{.B.C}}{{end}}",
            ".B.C",
            &[".Vars.A.B: a string, \"it's\""],
        ),
        (
            "{{$v := .Vars}}{{$v.N.X}}",
            "$v.N.X",
            &[".Vars.N: a whole number, 7"],
        ),
        (
            "{{.Instance.Nope}}",
            ".Instance.Nope",
            &[".Instance: a struct `Instance`"],
        ),
        (
            "{{.Nope}}",
            ".Nope",
            &[".: a map of 2 keys, map[Instance:{i} Vars:map[A:map[B:it's Null:<nil>] L:[x y] …"],
        ),
        (
            "{{(.Vars.S).T}}",
            "(.Vars.S).T",
            &[".Vars.S: a string, \"hello\""],
        ),
        (
            "{{index .Vars.L 5}}",
            "index .Vars.L 5",
            &[".Vars.L: a list of 2 items, [x y]"],
        ),
        (
            "{{with .Vars.L}}{{index . 5}}{{end}}",
            "index . 5",
            &[".Vars.L: a list of 2 items, [x y]"],
        ),
        (
            "{{if eq .Vars.S .Vars.N}}{{end}}",
            "eq .Vars.S .Vars.N",
            &[".Vars.S: a string, \"hello\"", ".Vars.N: a whole number, 7"],
        ),
        (
            "{{.Vars.N | index .Vars.L}}",
            "index .Vars.L",
            &[
                ".Vars.L: a list of 2 items, [x y]",
                ".Vars.N: a whole number, 7",
            ],
        ),
        (
            "{{refuse (print .Vars.N 1) .Vars.S}}",
            "refuse (print .Vars.N 1) .Vars.S",
            &[
                "(print .Vars.N 1): a string, \"7 1\"",
                ".Vars.S: a string, \"hello\"",
            ],
        ),
        (
            "{{range .Vars.S}}{{end}}",
            ".Vars.S",
            &[".Vars.S: a string, \"hello\""],
        ),
        (
            "{{range $i, $n := .Vars.N}}{{end}}",
            "$i, $n := .Vars.N",
            &[".Vars.N: a whole number, 7"],
        ),
        (
            "{{len .Vars.N}}",
            "len .Vars.N",
            &[".Vars.N: a whole number, 7"],
        ),
        (
            "{{index .Vars.Long 500}}",
            "index .Vars.Long 500",
            &[
                ".Vars.Long: a string, \"01234567890123456789012345678901234567890123456789012345678…\"",
            ],
        ),
        ("{{template \"x\"}}", "{{template \"x\"}}", &[]),
    ] {
        let error = failed(text);
        let told: Vec<String> = error
            .found()
            .iter()
            .map(|found| match &found.value {
                Some(value) => format!("{}: {}, {value}", found.path, found.kind),
                None => format!("{}: {}", found.path, found.kind),
            })
            .collect();
        assert_eq!(error.expression(), expression, "{text}");
        assert_eq!(told, found, "{text}: {error}");
        assert!(
            error.go_message().contains(&format!("at <{expression}>")),
            "{}",
            error.go_message()
        );
    }
}

#[test]
fn names_that_are_not_there_bring_the_nearest() {
    for (text, hint) in [
        ("{{prntf .}}", "did you mean \"printf\"?"),
        ("{{$name := 1}}{{$nme}}", "did you mean $name?"),
    ] {
        let error = Template::parse("t", text, &Environment::new()).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some(hint), "{text}");
    }
    assert_eq!(
        failed("{{define \"header\"}}x{{end}}{{template \"heder\"}}")
            .hint
            .as_deref(),
        Some("did you mean \"header\"?")
    );
}

#[test]
fn very_many_callers_are_told_in_part() {
    let error = failed("{{define \"a\"}}{{template \"a\" .}}{{end}}start {{template \"a\" .}}");
    assert_eq!(error.kind(), ExecErrorKind::Limit("template_depth"));
    let offsets: Vec<usize> = error.callers().iter().map(|caller| caller.offset).collect();
    let (outermost, inner) = offsets.split_last().unwrap();
    assert_eq!((*outermost, inner), (45, &[14; 8][..]));
}

#[test]
fn every_limit_is_named_with_its_value() {
    let limits = Limits {
        steps: 1_000,
        output_bytes: 100,
        template_depth: 20,
        nesting: 10,
        printf_width: 50,
    };
    let environment = Environment::new().with_limits(limits);
    for (text, name, message) in [
        (
            "{{range 1000000}}{{end}}",
            "steps",
            "the template takes more than the limit of 1000 steps",
        ),
        (
            "{{range 20}}0123456789{{end}}",
            "output_bytes",
            "the output is larger than the limit of 100 bytes",
        ),
        (
            "{{$x := \"0123456789\"}}{{range 9}}{{$x = print $x $x}}{{end}}",
            "output_bytes",
            "the output is larger than the limit of 100 bytes",
        ),
        (
            "{{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}",
            "template_depth",
            "templates call one another deeper than the limit of 20",
        ),
        (
            "{{printf \"%51d\" 1}}",
            "printf_width",
            "a width or precision of 51 is above the limit of 50",
        ),
        (
            "{{printf \"%.60f\" 1.0}}",
            "printf_width",
            "a width or precision of 60 is above the limit of 50",
        ),
        (
            "{{printf \"%*d\" -70 1}}",
            "printf_width",
            "a width or precision of 70 is above the limit of 50",
        ),
        (
            "{{printf \"%.*f\" 80 1.0}}",
            "printf_width",
            "a width or precision of 80 is above the limit of 50",
        ),
        (
            "{{printf \"%99999999999999999999999d\" 1}}",
            "printf_width",
            "a width or precision of 18446744073709551615 is above the limit of 50",
        ),
    ] {
        let template = Template::parse("t", text, &environment).unwrap();
        let error = template.render(&Value::Nil).unwrap_err();
        assert_eq!(error.kind(), ExecErrorKind::Limit(name), "{text}");
        assert_eq!(error.message, message, "{text}");
    }
    for (text, message) in [
        (
            format!("{{{{{}1{}}}}}", "(".repeat(11), ")".repeat(11)),
            "parentheses are nested deeper than the limit of 10",
        ),
        (
            "{{if 1}}".repeat(11),
            "blocks are nested deeper than the limit of 10",
        ),
    ] {
        let error = Template::parse("t", &text, &environment).unwrap_err();
        assert_eq!(error.message, message, "{text}");
    }
}

#[test]
fn up_to_the_width_limit_printf_is_as_ever() {
    let limits = Limits {
        printf_width: 5,
        ..Limits::default()
    };
    let low = Environment::new().with_limits(limits);
    for (text, environment, expected) in [
        ("{{printf \"%5d\" 1}}", &low, "    1"),
        // The number of an argument is no width.
        ("{{printf \"%[9]d\" 1}}", &low, "%!d(BADINDEX)"),
        // Go's own limit prints as Go has it.
        (
            "{{printf \"%*d\" 1000001 1}}",
            &Environment::new(),
            "%!(BADWIDTH)1",
        ),
        (
            "{{printf \"%.*f\" 1000001 1.5}}",
            &Environment::new(),
            "%!(BADPREC)1.500000",
        ),
    ] {
        let template = Template::parse("t", text, environment).unwrap();
        let rendered = template.render(&Value::Nil).unwrap().output;
        assert_eq!(String::from_utf8(rendered).unwrap(), expected, "{text}");
    }
}
