//! Libraries: parsed once, called from many templates, redefined by some.
#![expect(clippy::unwrap_used, reason = "tests may panic: that is how they fail")]

use nstance_gotemplate::{Call, Environment, Library, Map, ParseError, Template, Value};

fn data() -> Value {
    let vars: Map = [("A", Value::from("a")), ("B", Value::from("b"))]
        .into_iter()
        .collect();
    Value::from(Map::from_iter([("Vars", Value::from(vars))]))
}

fn library(texts: &[(&str, &str)]) -> Library {
    Library::parse(texts, &Environment::new()).unwrap()
}

fn template(text: &str, library: &Library) -> Template {
    Template::parse_in("main", text, &Environment::new(), library).unwrap()
}

fn rendered(text: &str, library: &Library) -> String {
    let rendered = template(text, library).render(&data()).unwrap();
    String::from_utf8(rendered.output).unwrap()
}

#[test]
fn templates_call_what_the_library_has() {
    let library = library(&[
        // Calls one that comes after it, and one that is defined within another text.
        (
            "outer",
            "<{{template \"inner\" .}}{{template \"helper\" .}}>",
        ),
        ("inner", "{{.Vars.A}}"),
        ("helpers", "{{define \"helper\"}}{{.Vars.B}}{{end}}\n"),
    ]);
    assert_eq!(
        library.names().collect::<Vec<_>>(),
        ["helper", "helpers", "inner", "outer"]
    );
    for (text, expected) in [
        ("no call", "no call"),
        ("{{template \"outer\" .}}", "<ab>"),
        ("{{template \"helper\" .}}", "b"),
        ("{{template \"helpers\" .}}", "\n"),
        // A definition of its own hides the library's, from the library too; an empty one doesn't.
        (
            "{{define \"inner\"}}own{{end}}{{template \"outer\" .}}",
            "<ownb>",
        ),
        (
            "{{define \"inner\"}} {{end}}{{template \"outer\" .}}",
            "<ab>",
        ),
        (
            "{{block \"inner\" .}}own{{end}}{{template \"outer\" .}}",
            "own<ownb>",
        ),
        // What hides nothing that is called changes nothing.
        (
            "{{define \"outer\"}}[{{template \"inner\" .}}]{{end}}{{template \"outer\" .}}",
            "[a]",
        ),
    ] {
        assert_eq!(rendered(text, &library), expected, "{text}");
        let same = Template::parse_with(
            "main",
            text,
            &Environment::new(),
            &[
                (
                    "outer",
                    "<{{template \"inner\" .}}{{template \"helper\" .}}>",
                ),
                ("inner", "{{.Vars.A}}"),
                ("helpers", "{{define \"helper\"}}{{.Vars.B}}{{end}}\n"),
            ],
        );
        let same = same.unwrap().render(&data()).unwrap();
        assert_eq!(same.output, expected.as_bytes(), "{text}");
    }
}

#[test]
fn redefining_is_for_one_template_alone() {
    let library = library(&[("outer", "<{{template \"inner\"}}>"), ("inner", "library")]);
    let own = template(
        "{{define \"inner\"}}own{{end}}{{template \"outer\"}}",
        &library,
    );
    let plain = template("{{template \"outer\"}}", &library);
    assert_eq!(own.render(&data()).unwrap().output, b"<own>");
    assert_eq!(plain.render(&data()).unwrap().output, b"<library>");
}

#[test]
fn a_template_may_be_called_as_one_of_the_library() {
    let library = library(&[("main", "library")]);
    assert_eq!(rendered("own", &library), "own");
    assert_eq!(rendered("{{/* nothing */}}", &library), "library");
    let found = template("own", &library);
    assert_eq!(found.name(), "main");
}

#[test]
fn templates_of_the_library_can_be_looked_up() {
    let library = library(&[("inner", "{{.Vars.A}}{{template \"hook\" .}}")]);
    let main = template("{{define \"hook\"}}!{{end}}", &library);
    let inner = main.lookup("inner").unwrap();
    assert_eq!(inner.name(), "inner");
    assert_eq!(inner.render(&data()).unwrap().output, b"a!");
    assert!(inner.reads().reads(".Vars.A") && !inner.reads().reads(".Vars.B"));
    assert!(main.lookup("other").is_none());
}

#[test]
fn reads_go_through_the_library() {
    let library = library(&[
        ("vars", "{{.A}}{{template \"deeper\" .}}"),
        ("deeper", "{{.B}}{{template \"nowhere\"}}"),
    ]);
    let main = template("x{{template \"vars\" .Vars}}", &library);
    let reads = main.reads();
    let paths: Vec<_> = reads
        .paths
        .iter()
        .map(|access| (&*access.path, &*access.template, access.offset))
        .collect();
    assert!(paths.contains(&(".Vars.A", "vars", 2)), "{paths:?}");
    assert!(paths.contains(&(".Vars.B", "deeper", 2)), "{paths:?}");
    let call = |name: &str, template: &str, offset, target: Option<&str>| Call {
        name: name.to_owned(),
        template: template.to_owned(),
        offset,
        target: target.map(str::to_owned),
        nearest: None,
    };
    for expected in [
        call("vars", "main", 1, Some("vars")),
        call("deeper", "vars", 6, Some("deeper")),
        call("nowhere", "deeper", 6, None),
    ] {
        assert!(reads.calls.contains(&expected), "{:?}", reads.calls);
    }
    let misspelt = template("{{template \"deper\" .}}", &library);
    assert_eq!(misspelt.reads().calls[0].nearest.as_deref(), Some("deeper"));
}

#[test]
fn errors_name_the_text_that_they_are_in() {
    let texts = [
        ("good", "{{.}}"),
        ("bad", "line\n  {{nope}}"),
        ("worse", "{{if}}"),
        ("again", "\n{{define \"good\"}}x{{end}}"),
    ];
    let errors = Library::parse(&texts, &Environment::new())
        .unwrap_err()
        .errors;
    let shown: Vec<String> = errors.iter().map(ParseError::to_string).collect();
    assert_eq!(
        shown,
        [
            "bad:2:5: function \"nope\" not defined (did you mean \"ne\"?)",
            "worse:1:5: missing value for if",
            "again:2:1: template \"good\" is defined twice (\"good\" defines it in line 1)",
        ]
    );
    let earlier = errors[2].earlier().unwrap();
    assert_eq!((&*earlier.template, earlier.offset), ("good", 0));

    let library = library(&[
        ("outer", "é{{template \"inner\" .}}"),
        ("inner", "\n {{index .Vars.A 5}}"),
    ]);
    let error = template("xy{{template \"outer\" .}}", &library)
        .render(&data())
        .unwrap_err();
    assert_eq!(
        (&*error.template, error.offset, error.line, error.column),
        ("inner", 4, 2, 4)
    );
    assert_eq!(error.executing(), "inner");
    let callers: Vec<_> = error
        .callers()
        .iter()
        .map(|caller| (&*caller.template, caller.offset, &*caller.called))
        .collect();
    assert_eq!(callers, [("outer", 2, "inner"), ("main", 2, "outer")]);
}

#[test]
fn ten_thousand_templates_share_one_library() {
    let body = "{{.Vars.A}} and some text that takes room\n".repeat(2_000);
    let library = library(&[("large", &body), ("small", "{{.Vars.B}}")]);
    // Copies of the library would be 800 MB of text alone.
    let templates: Vec<_> = (0..10_000)
        .map(|index| template(&format!("{index}{{{{template \"small\" .}}}}"), &library))
        .collect();
    let last = templates[9_999].render(&data()).unwrap();
    assert_eq!(last.output, b"9999b");
}
