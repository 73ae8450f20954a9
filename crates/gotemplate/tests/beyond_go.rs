//! What isn't Go's: unset and unknown values, reads, positions, hints, limits.

use std::sync::Arc;

use nstance_gotemplate::{
    Access, Environment, ExecErrorKind, Function, Limits, Map, MissingKey, Struct, StructType,
    Template, Value,
};

fn parse(text: &str) -> Template {
    parse_in(text, &environment())
}

fn parse_in(text: &str, environment: &Environment) -> Template {
    Template::parse("t", text, environment).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn environment() -> Environment {
    let default = Function::new(
        2,
        Some(2),
        Arc::new(|arguments: &[Value]| {
            Ok(if arguments[1].truth() {
                arguments[1].clone()
            } else {
                arguments[0].clone()
            })
        }),
    )
    .testing();
    Environment::new()
        .with_missing_key(MissingKey::Zero)
        .with_function("default", default)
}

/// The planner's data in small: `.Vars` lenient, `.Image` of strings, one image unknown.
fn data() -> Value {
    let instance = StructType::new("Instance", ["ID", "Kind", "IP4"]);
    let root = StructType::new("Data", ["Vars", "Image", "Instance"]);
    let nested: Map = [("Inner", "deep")].into_iter().collect();
    let vars: Map = [
        ("A", Value::from("a")),
        ("Nested", Value::from(nested)),
        ("List", Value::from(vec!["x", "y"])),
    ]
    .into_iter()
    .collect();
    let images: Map = [
        ("known", Value::from("ami-1")),
        ("later", Value::unknown("not looked up")),
    ]
    .into_iter()
    .collect();
    let instance = Struct::new(
        instance,
        vec![
            Value::from("i-1"),
            Value::from("knc"),
            Value::unknown("known after apply"),
        ],
    );
    let fields = vec![
        vars.lenient().into(),
        images.string_typed().into(),
        instance.into(),
    ];
    Value::from(Struct::new(root, fields))
}

fn paths(accesses: &[Access]) -> Vec<String> {
    accesses
        .iter()
        .map(|access| format!("{}@{}", access.path, access.offset))
        .collect()
}

#[test]
fn unset_values_are_empty_strings_and_reported() {
    let cases: [(&str, &str, &[&str]); 22] = [
        ("[{{.Vars.X}}]", "[]", &[".Vars.X@3"]),
        ("[{{.Vars.X.Y.Z}}]", "[]", &[".Vars.X.Y.Z@3"]),
        (
            "[{{.Vars.Nested.X}}{{.Vars.Nested.Inner}}]",
            "[deep]",
            &[".Vars.Nested.X@3"],
        ),
        ("{{len .Vars.X}}", "0", &[".Vars.X@6"]),
        ("{{eq .Vars.X \"\"}}", "true", &[".Vars.X@5"]),
        ("{{printf \"%q\" .Vars.X}}", "\"\"", &[".Vars.X@14"]),
        ("{{if .Vars.X}}y{{else}}n{{end}}", "n", &[]),
        ("{{if .Vars.A}}y{{else if .Vars.X}}n{{end}}", "y", &[]),
        (
            "{{if .Vars.X}}y{{else if .Vars.Y}}n{{else}}e{{end}}",
            "e",
            &[],
        ),
        ("{{with .Vars.X}}y{{end}}", "", &[]),
        ("{{if not .Vars.X}}y{{end}}", "y", &[]),
        ("{{if and .Vars.X .Vars.Y}}y{{else}}n{{end}}", "n", &[]),
        ("{{if (.Vars.X)}}y{{end}}", "", &[]),
        ("{{or .Vars.X .Vars.Y \"z\"}}", "z", &[]),
        (
            "{{default \"d\" .Vars.X}}{{.Vars.X | default \"d\"}}",
            "dd",
            &[],
        ),
        (
            "{{if eq .Vars.X \"a\"}}y{{else}}n{{end}}",
            "n",
            &[".Vars.X@8"],
        ),
        ("{{with .Vars}}{{.X}}{{end}}", "", &[".Vars.X@16"]),
        (
            "{{define \"d\"}}{{.X}}{{end}}{{template \"d\" .Vars}}",
            "",
            &[".Vars.X@16"],
        ),
        ("{{$v := .Vars}}{{$v.X}}", "", &[".Vars.X@17"]),
        (
            "{{range .Vars.List}}{{$.Vars.X}}{{end}}",
            "",
            &[".Vars.X@22"],
        ),
        ("{{range .Vars.X}}y{{else}}n{{end}}", "n", &[".Vars.X@8"]),
        (
            "{{index .Vars \"X\"}}{{.Vars.A | index .Vars}}",
            "",
            &[".Vars.X@2", "index .Vars@31"],
        ),
    ];
    for (text, output, unset) in cases {
        let rendered = parse(text).render(&data()).unwrap();
        assert_eq!(String::from_utf8_lossy(&rendered.output), output, "{text}");
        assert_eq!(paths(&rendered.report.unset), unset, "{text}");
        assert!(rendered.is_known(), "{text}");
    }
}

#[test]
fn what_depends_on_an_unknown_value_is_unknown() {
    let cases: [(&str, &[&str]); 19] = [
        ("{{.Image.known}}", &[]),
        ("{{.Image.later}}", &[".Image.later@2"]),
        ("{{.Image.later.x.y}}", &[".Image.later.x.y@2"]),
        ("{{printf \"%s\" .Image.later}}", &[".Image.later@14"]),
        (
            "{{if .Image.later}}{{index \"\" 5}}{{end}}",
            &[".Image.later@5"],
        ),
        ("{{if eq .Image.later \"x\"}}y{{end}}", &[".Image.later@8"]),
        ("{{with .Instance.IP4}}{{.}}{{end}}", &[".Instance.IP4@7"]),
        ("{{range .Instance.IP4}}{{.}}{{end}}", &[".Instance.IP4@8"]),
        ("{{and .Image.later \"x\"}}", &[".Image.later@6"]),
        ("{{index .Image \"later\"}}", &[".Image.later@2"]),
        ("{{index .Vars .Image.later}}", &[".Image.later@14"]),
        ("{{.Instance}}", &[".Instance@2"]),
        ("{{printf \"%v\" .Instance}}", &[".Instance@2"]),
        ("{{with .Instance}}{{.ID}}{{end}}", &[]),
        ("{{$x := .Image.later}}ok", &[]),
        ("{{$x := .Image.later}}{{$x}}", &[".Image.later@8"]),
        (
            "{{.Image.later}}{{.Instance.IP4}}{{.Image.later}}",
            &[".Image.later@2", ".Instance.IP4@18", ".Image.later@35"],
        ),
        (
            "{{$s := \"\"}}{{if .Image.later}}{{$s = \"abc\"}}{{end}}{{index $s 1}}",
            &[".Image.later@17"],
        ),
        (
            "{{print .Image.known .Image.later | len}}",
            &[".Image.later@21"],
        ),
    ];
    for (text, unknown) in cases {
        let rendered = parse(text)
            .render(&data())
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(paths(&rendered.report.unknown), unknown, "{text}");
        assert_eq!(rendered.is_known(), unknown.is_empty(), "{text}");
    }
}

#[test]
fn reads_are_what_an_execution_may_read() {
    let cases: [(&str, &[&str], bool); 27] = [
        ("{{$x := .A.B}}", &[".A.B"], false),
        (
            "{{print .N (and 0 ((and 2 .M) \"\" | print)) .O}}{{ .A.X | .Y.Z }}",
            &[".A.X", ".N", ".O", ".Y.Z"],
            false,
        ),
        ("{{.A.B}} {{.A.C}}", &[".A.B", ".A.C"], false),
        ("plain {{print 1}}", &[], false),
        ("{{.}}", &[], true),
        ("{{print .}}", &[], true),
        (
            "{{with .A}}{{.B}}{{$.C}}{{end}}",
            &[".A", ".A.B", ".C"],
            false,
        ),
        (
            "{{with .A}}{{.B}}{{else}}{{.D}}{{end}}",
            &[".A", ".A.B", ".D"],
            false,
        ),
        (
            "{{with .A}}{{.X}}{{else with .B}}{{.Y}}{{else}}{{.Z}}{{end}}",
            &[".A", ".A.X", ".B", ".B.Y", ".Z"],
            false,
        ),
        ("{{if .A}}{{.B}}{{end}}", &[".A", ".B"], false),
        (
            "{{range .A}}{{.B}}{{else}}{{.C}}{{end}}{{.D}}",
            &[".A", ".C", ".D"],
            false,
        ),
        (
            "{{range $k, $v := .A}}{{$v.B}}{{end}}",
            &[".A", ".A.B"],
            false,
        ),
        ("{{$x := .A}}{{$x.B}}", &[".A.B"], false),
        (
            "{{$x := .A}}{{if .T}}{{$x = .B}}{{end}}{{$x.C}}",
            &[".A.C", ".B.C", ".T"],
            false,
        ),
        (
            "{{$x := .A}}{{range .L}}{{$x.C}}{{$x = .}}{{end}}",
            &[".A.C", ".L"],
            false,
        ),
        (
            "{{define \"d\"}}{{.B}}{{$.C}}{{end}}{{template \"d\" .A}}",
            &[".A.B", ".A.C"],
            false,
        ),
        (
            "{{define \"d\"}}{{.B}}{{end}}{{template \"d\" .A}}{{template \"d\" .Z}}",
            &[".A.B", ".Z.B"],
            false,
        ),
        ("{{define \"d\"}}{{.B}}{{end}}", &[], false),
        ("{{block \"d\" .A}}{{.B}}{{end}}", &[".A.B"], false),
        ("{{index .A \"B\"}}", &[".A.B"], false),
        ("{{index .A \"B\" 1}}", &[".A.B"], false),
        ("{{index .A .K}}", &[".A", ".K"], false),
        ("{{(index .A .K).C}}", &[".A", ".K"], false),
        ("{{(or .A .B).C}}", &[".A", ".A.C", ".B.C"], false),
        ("{{.A | or .B}}", &[".A", ".B"], false),
        ("{{len .A | printf \"%d %s\" .B}}", &[".A", ".B"], false),
        (
            "{{range .L}}{{break}}{{.X}}{{end}}{{template \"none\" .Y}}",
            &[".L"],
            false,
        ),
    ];
    for (text, expected, anything) in cases {
        let template = parse(text);
        let reads = template.reads();
        let mut found: Vec<&str> = reads.paths.iter().map(|read| read.path.as_str()).collect();
        found.sort_unstable();
        found.dedup();
        if !anything {
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(reads.anything, anything, "{text}: {found:?}");
    }
}

#[test]
fn reads_answer_questions() {
    let template =
        parse("{{with .Vars}}{{.A}}{{end}}{{.Image.x.y}}{{template \"other\"}}{{len .Group}}");
    let reads = template.reads();
    assert!(reads.reads(".Vars.A") && reads.reads(".Image.x") && reads.reads(".Group.Size"));
    assert!(reads.any_under(".Vars") && reads.any_under(".Image.x.y.z"));
    assert!(!reads.reads(".Image.z") && !reads.any_under(".Instance") && !reads.reads(".Im"));
    assert_eq!(reads.names_under(".Vars"), Some(["A"].into()));
    assert_eq!(reads.names_under(".Image"), Some(["x"].into()));
    assert_eq!(reads.names_under(".Group"), None);
    assert_eq!(reads.tested.len(), 1);
    let recursive =
        parse("{{define \"d\"}}{{.N}}{{template \"d\" .M}}{{end}}{{template \"d\" .A}}");
    assert!(recursive.reads().reads(".A.M.M.N") && !recursive.reads().reads(".B"));
    assert!(reads.functions.contains("len") && reads.templates.contains("other"));
}

#[test]
fn what_only_inserts_is_known() {
    for text in [
        "",
        "text",
        "a {{ .Vars.A }} b {{- .Instance.ID }}",
        "{{/* c */}}{{ .A }}",
    ] {
        assert!(parse(text).only_inserts(), "{text}");
    }
    for text in [
        "{{ . }}",
        "{{ \"a\" }}",
        "{{ len .A }}",
        "{{ .A | len }}",
        "{{ $.A }}",
        "{{ (index .A 0).B }}",
        "{{ if .A }}{{ end }}",
        "{{ with .A }}{{ .B }}{{ end }}",
        "{{ range .A }}{{ end }}",
        "{{ $x := .A }}",
        "{{ template \"t\" . }}",
    ] {
        assert!(!parse(text).only_inserts(), "{text}");
    }
}

#[test]
fn parse_errors_have_a_place_and_a_hint() {
    let cases = [
        (
            "a\n  {{ pint .X }}",
            "function \"pint\" not defined",
            7,
            2,
            6,
            Some("print"),
        ),
        (
            "é{{$x := 1}}{{$y}}",
            "undefined variable \"$y\"",
            15,
            1,
            15,
            Some("$x"),
        ),
        (
            "{{if .X}}\n…",
            "unexpected EOF: this `if` has no `{{ end }}`",
            0,
            1,
            1,
            None,
        ),
        (
            "{{if .X}}{{end}}{{with .X}}{{- range .Y }}{{ else }}",
            "unexpected EOF: this `range` has no `{{ end }}`",
            27,
            1,
            28,
            None,
        ),
        (
            "{{define \"x\"}}{{ with .X }}{{end}}",
            "unexpected EOF: this `define` has no `{{ end }}`",
            0,
            1,
            1,
            None,
        ),
        (
            "{{ block \"x\" . }}",
            "unexpected EOF: this `block` has no `{{ end }}`",
            0,
            1,
            1,
            None,
        ),
        (
            "{{if .X}}{{else if .Y}}",
            "unexpected EOF: this `if` has no `{{ end }}`",
            0,
            1,
            1,
            None,
        ),
        ("a {{ .X", "unclosed action", 2, 1, 3, None),
        ("{{.X}}{{end}}", "unexpected {{end}}", 6, 1, 7, None),
        (
            "{{range .X}}{{else}}{{else}}{{end}}",
            "expected end; found {{else}}",
            22,
            1,
            23,
            None,
        ),
        (
            "{{1 | 2}}",
            "non executable command in pipeline stage 2",
            6,
            1,
            7,
            None,
        ),
        ("{{\"\\q\"}}", "invalid syntax", 2, 1, 3, None),
    ];
    for (text, message, offset, line, column, hint) in cases {
        let error = Template::parse("t", text, &environment()).unwrap_err();
        assert_eq!(error.message, message, "{text}");
        assert_eq!(
            (error.offset, error.line, error.column),
            (offset, line, column),
            "{text}"
        );
        assert_eq!(error.template, "t");
        match hint {
            Some(hint) => assert!(
                error
                    .hint
                    .as_deref()
                    .is_some_and(|found| found.contains(hint))
            ),
            None => assert_eq!(error.hint, None, "{text}"),
        }
    }
}

#[test]
fn exec_errors_have_a_place_and_a_hint() {
    let cases = [
        (
            "x\n {{ .Instance.Id }}",
            "`Instance` has no field `Id`",
            6,
            Some("`ID`"),
        ),
        (
            "{{.Instance.Hostname}}",
            "`Instance` has no field `Hostname`",
            2,
            Some("ID, Kind, IP4"),
        ),
        ("{{.Vars.A.B}}", "a string has no field `B`", 2, None),
        (
            "{{template \"heder\"}}{{define \"header\"}}h{{end}}",
            "template \"heder\" not defined",
            0,
            Some("header"),
        ),
        (
            "{{index .Vars.List 9}}",
            "error calling index: index out of range: 9",
            2,
            None,
        ),
        (
            "{{range .Vars.A}}{{end}}",
            "range can't iterate over a",
            8,
            None,
        ),
    ];
    for (text, message, offset, hint) in cases {
        let error = parse(text).render(&data()).unwrap_err();
        assert_eq!(
            (error.message.as_str(), error.offset),
            (message, offset),
            "{text}"
        );
        match hint {
            Some(hint) => {
                assert!(
                    error
                        .hint
                        .as_deref()
                        .is_some_and(|found| found.contains(hint)),
                    "{error}"
                );
            }
            None => assert_eq!(error.hint, None, "{text}"),
        }
    }
    let error = parse("{{define \"d\"}}{{.X.Y}}{{end}}{{template \"d\" 1}}").render(&data());
    let error = error.unwrap_err();
    assert_eq!((error.executing(), error.template.as_str()), ("d", "t"));
    assert_eq!(error.kind(), ExecErrorKind::Template);
    assert_eq!(
        error.go_message(),
        "template: t:1:18: executing \"d\" at <.X.Y>: can't evaluate field X in type int"
    );
}

#[test]
fn every_limit_is_an_error_that_names_it() {
    let limits = Limits {
        steps: 1_000,
        output_bytes: 100,
        template_depth: 10,
        nesting: 5,
        ..Limits::default()
    };
    let environment = environment().with_limits(limits);
    let cases = [
        ("{{range 1000000000}}{{end}}", "steps"),
        ("{{range 20}}0123456789{{end}}", "output_bytes"),
        ("{{printf \"%200d\" 1}}", "output_bytes"),
        ("{{$x := printf \"%200d\" 1}}", "output_bytes"),
        (
            "{{define \"d\"}}{{template \"d\"}}{{end}}{{template \"d\"}}",
            "template_depth",
        ),
    ];
    for (text, limit) in cases {
        let error = parse_in(text, &environment)
            .render(&Value::Nil)
            .unwrap_err();
        assert_eq!(error.kind(), ExecErrorKind::Limit(limit), "{text}: {error}");
    }
    for text in [
        "{{((((((1))))))}}",
        "{{if 1}}{{if 1}}{{if 1}}{{if 1}}{{if 1}}{{if 1}}",
    ] {
        assert!(Template::parse("t", text, &environment).is_err(), "{text}");
    }
    parse_in(
        "{{(((((1)))))}}{{if 1}}{{end}}{{if 1}}{{if 1}}{{else if 2}}{{end}}{{end}}",
        &environment,
    );
}

#[test]
fn functions_take_places_and_counts() {
    let shout = Function::new(
        1,
        Some(2),
        Arc::new(|arguments: &[Value]| match arguments[0].as_bytes() {
            Some(text) => Ok(Value::Str(text.to_ascii_uppercase().into())),
            None => Err("not a string".into()),
        }),
    );
    let environment = Environment::new()
        .with_function("shout", shout.clone())
        .with_function("len", shout);
    let render = |text: &str| parse_in(text, &environment).render(&Value::Nil);
    assert_eq!(
        render("{{shout \"a\"}}{{\"b\" | len}}").unwrap().output,
        b"AB"
    );
    let error = render("{{shout 1}}").unwrap_err();
    assert_eq!(error.message, "error calling shout: not a string");
    assert_eq!(error.kind(), ExecErrorKind::Function);
    for text in ["{{shout}}", "{{shout 1 2 3}}", "{{1 | shout 2 3}}"] {
        assert!(
            render(text)
                .unwrap_err()
                .message
                .starts_with("wrong number of args"),
            "{text}"
        );
    }
}
