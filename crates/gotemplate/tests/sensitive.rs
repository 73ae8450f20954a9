//! What a template makes of sensitive data and text is marked, whatever way it takes; the rest of the
//! output is the same with any other secret.
#![expect(clippy::unwrap_used, reason = "tests may panic: that is how they fail")]

use std::iter::once;
use std::ops::Range;

use nstance_gotemplate::{
    Environment, ExecError, Library, Map, MissingKey, Sensitive, Template, Value,
};

const SECRET: &str = "hunter2";

fn data(secret: &str) -> Value {
    let nested: Map = [("Pw", Value::from(secret)), ("Open", "inner".into())]
        .into_iter()
        .collect();
    let vars: Map = [
        ("PW", Value::from(secret)),
        ("OPEN", "open".into()),
        ("NESTED", nested.into()),
        ("LIST", vec!["a", "b"].into()),
        ("SECRETS", vec!["a", secret].into()),
    ]
    .into_iter()
    .collect();
    Map::from_iter([("Vars", Value::from(vars))]).into()
}

fn sensitive() -> Sensitive {
    let mut sensitive = Sensitive::default();
    for path in [".Vars.PW", ".Vars.NESTED.Pw", ".Vars.SECRETS"] {
        sensitive.add_path(path);
    }
    sensitive
}

fn environment() -> Environment {
    Environment::new()
        .with_missing_key(MissingKey::Zero)
        .with_sprig()
}

fn library() -> Library {
    let texts = [
        ("labels", "name={{ .Vars.OPEN }}"),
        ("login", "login {{ .Vars.PW }};"),
        ("shown", "[{{ . }}]"),
        ("outer", "<{{ template \"login\" . }}>"),
    ];
    Library::parse(&texts, &environment()).unwrap()
}

fn parse(text: &str) -> Template {
    Template::parse_in("main", text, &environment(), &library()).unwrap()
}

/// The output, and what of it is marked.
fn render(
    template: &Template,
    sensitive: &Sensitive,
    secret: &str,
) -> Result<(String, Vec<Range<usize>>), ExecError> {
    let mut output = Vec::new();
    let report = match template.trace(sensitive) {
        Some(trace) => template.render_traced(&data(secret), &trace, &mut output)?,
        None => template.render_into(&data(secret), &mut output)?,
    };
    Ok((String::from_utf8(output).unwrap(), report.sensitive))
}

/// The output with each marked piece replaced.
fn replaced((output, marked): &(String, Vec<Range<usize>>), by: impl Fn(&str) -> String) -> String {
    let mut shown = String::new();
    let mut at = 0;
    for range in marked {
        assert!(range.start >= at && !range.is_empty(), "{marked:?}");
        shown.push_str(&output[at..range.start]);
        shown.push_str(&by(&output[range.clone()]));
        at = range.end;
    }
    shown + &output[at..]
}

#[test]
fn what_is_made_of_a_secret_is_marked() {
    for (text, expected) in [
        // Nothing of it.
        ("{{ .Vars.OPEN }} {{ .Vars.NESTED.Open }}", "open inner"),
        ("{{ with .Vars }}{{ .OPEN }}{{ end }}", "open"),
        ("{{ if .Vars }}yes{{ end }}", "yes"),
        ("{{ template \"labels\" . }}", "name=open"),
        ("{{ include \"labels\" . }}", "name=open"),
        ("{{ index .Vars \"OPEN\" }}", "open"),
        ("{{ range .Vars.LIST }}{{ . }},{{ end }}", "a,b,"),
        // What an action writes.
        ("a {{ .Vars.PW }} b", "a «hunter2» b"),
        ("a {{ $.Vars.PW | upper | quote }} b", "a «\"HUNTER2\"» b"),
        ("{{ .Vars.OPEN }}{{ len .Vars.PW }}", "open«7»"),
        ("{{ .Vars.NESTED }}", "«map[Open:inner Pw:hunter2]»"),
        (
            "{{ with .Vars.NESTED }}{{ .Open }} {{ .Pw }}{{ end }}",
            "inner «hunter2»",
        ),
        (
            "{{ index .Vars \"PW\" }}{{ index .Vars.NESTED \"Open\" }}",
            "«hunter2»inner",
        ),
        ("{{ index .Vars.LIST (len .Vars.PW | sub 8) }}", "«b»"),
        ("{{ print .Vars.OPEN .Vars.PW }}", "«openhunter2»"),
        (
            "{{ and .Vars.PW \"x\" }}{{ or .Vars.PW \"x\" }}{{ not .Vars.PW }}",
            "«xhunter2false»",
        ),
        (
            "{{ default \"x\" .Vars.PW }}{{ default \"x\" .Vars.OPEN }}",
            "«hunter2»open",
        ),
        (
            "{{ substr 0 2 .Vars.PW }}{{ printf \"%.1s\" .Vars.PW }}",
            "«huh»",
        ),
        ("{{ (dict \"a\" .Vars.PW \"b\" 1).b }}", "«1»"),
        // Variables.
        (
            "{{ $x := .Vars.PW }}{{ $y := .Vars.OPEN }}{{ $x }}{{ $y }}",
            "«hunter2»open",
        ),
        ("{{ $x := b64enc .Vars.PW }}{{ $x }}", "«aHVudGVyMg==»"),
        ("{{ $x := \"\" }}{{ $x = .Vars.PW }}{{ $x }}", "«hunter2»"),
        (
            "{{ $x := 1 }}{{ if .Vars.PW }}{{ $x = 2 }}{{ end }}a{{ $x }}",
            "a«2»",
        ),
        (
            "{{ $x := 0 }}{{ range .Vars.SECRETS }}{{ $x = add $x 1 }}{{ end }}a{{ $x }}",
            "a«2»",
        ),
        ("{{ $v := .Vars }}{{ $v.PW }}{{ $v.OPEN }}", "«hunter2»open"),
        // Blocks.
        (
            "a{{ if .Vars.PW }}b{{ .Vars.OPEN }}{{ else }}c{{ end }}d",
            "a«bopen»d",
        ),
        ("a{{ if eq .Vars.PW \"\" }}b{{ else }}c{{ end }}d", "a«c»d"),
        (
            "{{ if eq .Vars.OPEN \"x\" }}a{{ else if .Vars.PW }}b{{ else }}c{{ end }}",
            "«b»",
        ),
        ("{{ if .Vars.OPEN }}a{{ else if .Vars.PW }}b{{ end }}", "a"),
        ("{{ with .Vars.PW }}pw={{ . }}{{ end }} x", "«pw=hunter2» x"),
        ("{{ range .Vars.SECRETS }}-{{ end }}x", "«--»x"),
        ("{{ range $k, $v := .Vars }}{{ end }}x", "x"),
        (
            "{{ range .Vars.LIST }}a{{ if $.Vars.PW }}{{ break }}{{ end }}b{{ end }}",
            "«a»",
        ),
        ("{{ if and .Vars.OPEN .Vars.PW }}a{{ end }}", "«a»"),
        // Templates.
        ("a{{ template \"login\" . }}b", "alogin «hunter2»;b"),
        ("{{ template \"outer\" . }}", "<login «hunter2»;>"),
        ("a{{ include \"login\" . | upper }}b", "a«LOGIN HUNTER2;»b"),
        ("a{{ include \"outer\" . }}b", "a«<login hunter2;>»b"),
        ("{{ template \"shown\" .Vars.PW }}", "[«hunter2»]"),
        (
            "{{ template \"shown\" (b64enc .Vars.PW) }}",
            "«[aHVudGVyMg==]»",
        ),
        (
            "{{ if .Vars.PW }}{{ template \"labels\" . }}{{ end }}",
            "«name=open»",
        ),
        ("{{ $n := \"shown\" }}{{ include $n .Vars.OPEN }}", "[open]"),
        (
            "{{ $n := \"login\" }}{{ include $n . }}",
            "«login hunter2;»",
        ),
        (
            "{{ $n := \"shown\" }}{{ include $n .Vars.PW }}",
            "«[hunter2]»",
        ),
        (
            "{{ tpl \"{{ .Vars.PW }}\" . }} {{ tpl \"{{ . }}\" .Vars.OPEN }}",
            "«hunter2» open",
        ),
        (
            "{{ define \"own\" }}x{{ .Vars.PW }}{{ end }}{{ block \"b\" . }}{{ .Vars.PW }}{{ end }}",
            "«hunter2»",
        ),
        (
            "{{ define \"r\" }}{{ if .a }}{{ template \"r\" (dict \"v\" .v) }}{{ end }}{{ .v }}{{ end }}\
             a{{ template \"r\" (dict \"a\" 1 \"v\" .Vars.PW) }}",
            "a«hunter2hunter2»",
        ),
        // What changes under the hand: all of it.
        (
            "a{{ $d := dict }}{{ $_ := set $d \"p\" .Vars.PW }}{{ $d.p }}",
            "«ahunter2»",
        ),
        (
            "a{{ $d := dict }}{{ $_ := and .Vars.PW (set $d \"p\" \"x\") }}{{ $d.p }}",
            "«ax»",
        ),
        (
            "a{{ $d := dict \"p\" \"\" }}{{ if .Vars.PW }}{{ $_ := unset $d \"p\" }}{{ end }}{{ len $d }}",
            "«a0»",
        ),
        (
            "a{{ $d := dict }}{{ $_ := set $d \"p\" .Vars.OPEN }}{{ $d.p }}{{ .Vars.PW }}",
            "aopen«hunter2»",
        ),
    ] {
        let template = parse(text);
        let rendered = render(&template, &sensitive(), SECRET).unwrap();
        let shown = replaced(&rendered, |piece| format!("«{piece}»"));
        assert_eq!(shown, expected, "{text}");
        let open = replaced(&rendered, |_| String::new());
        for other in ["", "x", "hunter3", "a longer secret"] {
            let Ok(rendered) = render(&template, &sensitive(), other) else {
                continue;
            };
            let there = replaced(&rendered, |_| String::new());
            assert_eq!(there, open, "{text} with {other:?}");
        }
    }
}

#[test]
fn nothing_is_traced_where_nothing_sensitive_is_read() {
    let sensitive = sensitive();
    assert!(parse("{{ .Vars.OPEN }}").trace(&sensitive).is_none());
    assert!(parse("{{ .Vars.PW }}").trace(&sensitive).is_some());
    assert!(parse("{{ . }}").trace(&sensitive).is_some());
    assert!(parse("{{ . }}").trace(&Sensitive::default()).is_none());
}

#[test]
fn sensitive_text_is_marked_where_it_is_written() {
    let mark = |text: &str, piece: &str| {
        let mut sensitive = Sensitive::default();
        let start = text.find(piece).unwrap();
        sensitive.add_text("main", once(start..start + piece.len()));
        let rendered = render(&parse(text), &sensitive, SECRET).unwrap();
        replaced(&rendered, |piece| format!("«{piece}»"))
    };
    for (text, piece, expected) in [
        ("a secret b", "secret", "a «secret» b"),
        (
            "{{ .Vars.OPEN }} secret{{ .Vars.PW }}",
            "secret",
            "open «secret»hunter2",
        ),
        (
            "{{ range .Vars.LIST }}a secret{{ end }}",
            "secret",
            "a «secret»a «secret»",
        ),
        (
            "{{ define \"x\" }}a secret{{ end }}{{ template \"x\" }}b",
            "secret",
            "a «secret»b",
        ),
        (
            "{{ define \"x\" }}a secret{{ end }}{{ include \"x\" . }}b",
            "secret",
            "«a secret»b",
        ),
        // It is part of an action: there is no telling what it does.
        ("a {{ \"secret\" }} b", "secret", "«a secret b»"),
        ("a {{/* secret */}} b", "secret", "«a  b»"),
        (
            "a x}}{{ \"y\" }} b".replacen("x}}", "x", 1).as_str(),
            "x{{ \"y",
            "«a xy b»",
        ),
    ] {
        assert_eq!(mark(text, piece), expected, "{text}");
    }
    let mut sensitive = Sensitive::default();
    sensitive.add_text("labels", once(0..4));
    for (text, expected) in [
        ("a{{ template \"labels\" . }}", "a«name»=open"),
        ("{{ $n := \"labels\" }}{{ include $n . }}", "«name=open»"),
        ("no call", "no call"),
    ] {
        let rendered = render(&parse(text), &sensitive, SECRET).unwrap();
        let shown = replaced(&rendered, |piece| format!("«{piece}»"));
        assert_eq!(shown, expected, "{text}");
    }
}

#[test]
fn errors_say_whether_they_may_tell_a_secret() {
    for (text, is_sensitive) in [
        ("{{ fail .Vars.PW }}", true),
        ("{{ index .Vars.PW 99 }}", true),
        ("{{ .Vars.PW.x }}", true),
        ("{{ mustFromJson .Vars.PW }}", true),
        ("{{ include .Vars.PW . }}", true),
        ("{{ tpl (print \"{{\" .Vars.PW) . }}", true),
        ("{{ if .Vars.PW }}{{ fail \"x\" }}{{ end }}", true),
        ("{{ .Vars.PW | fail }}", true),
        ("{{ range .Vars.PW }}{{ end }}", true),
        (
            "{{ define \"x\" }}{{ fail . }}{{ end }}{{ template \"x\" .Vars.PW }}",
            true,
        ),
        (
            "{{ $n := \"shown\" }}{{ include $n .Vars.PW }}{{ fail \"x\" }}",
            false,
        ),
        ("{{ .Vars.PW }}{{ index .Vars.LIST 5 }}", false),
        ("{{ .Vars.PW }}{{ fail .Vars.OPEN }}", false),
        ("{{ .Vars.PW }}{{ .Vars.OPEN.x }}", false),
    ] {
        let error = render(&parse(text), &sensitive(), SECRET).unwrap_err();
        assert_eq!(error.is_sensitive(), is_sensitive, "{text}: {error}");
    }
}
