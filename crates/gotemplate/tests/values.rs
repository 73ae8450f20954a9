//! Values: making them, what they hold, and how templates see each kind.

use nstance_gotemplate::{
    Environment, List, Map, MissingKey, Struct, StructType, Template, Text, Value,
};

fn render(text: &str, data: &Value) -> String {
    let environment = Environment::new().with_missing_key(MissingKey::Zero);
    let template = Template::parse("t", text, &environment).expect("it parses");
    match template.render(data) {
        Ok(rendered) => String::from_utf8_lossy(&rendered.output).into_owned(),
        Err(error) => format!("error: {}", error.message),
    }
}

fn struct_of(name: &str, fields: &[(&str, Value)]) -> Value {
    let struct_type = StructType::new(name, fields.iter().map(|(name, _)| name));
    Struct::new(
        struct_type,
        fields.iter().map(|(_, value)| value.clone()).collect(),
    )
    .into()
}

#[test]
fn every_kind_prints_as_in_go() {
    let strings = List::of_strings(vec!["a".into(), "b".into()]);
    let map: Map = [("b", Value::Nil), ("a", Value::from(1))]
        .into_iter()
        .collect();
    let typed: Map = [("k", "v")].into_iter().collect();
    let cases = [
        (Value::Nil, "<no value>", "<nil>", "<nil>"),
        (Value::Missing, "<no value>", "<nil>", "<nil>"),
        (Value::from(true), "true", "bool", "true"),
        (Value::from(-3), "-3", "int", "-3"),
        (
            Value::from(i64::MIN),
            "-9223372036854775808",
            "int",
            "-9223372036854775808",
        ),
        (Value::Uint8(7), "7", "uint8", "0x7"),
        (Value::from(1e6), "1e+06", "float64", "1e+06"),
        (Value::Complex(1.0, -2.0), "(1-2i)", "complex128", "(1-2i)"),
        (Value::from("x\"y"), "x\"y", "string", r#""x\"y""#),
        (
            Value::Number("1.50".into()),
            "1.50",
            "json.Number",
            r#""1.50""#,
        ),
        (
            Value::from(vec![1, 2]),
            "[1 2]",
            "[]interface {}",
            "[]interface {}{1, 2}",
        ),
        (strings.into(), "[a b]", "[]string", r#"[]string{"a", "b"}"#),
        (
            map.into(),
            "map[a:1 b:<nil>]",
            "map[string]interface {}",
            r#"map[string]interface {}{"a":1, "b":interface {}(nil)}"#,
        ),
        (
            typed.string_typed().into(),
            "map[k:v]",
            "map[string]string",
            r#"map[string]string{"k":"v"}"#,
        ),
        (
            struct_of("S", &[("A", "x".into()), ("B", 1.into())]),
            "{x 1}",
            "S",
            r#"S{A:"x", B:1}"#,
        ),
        (
            struct_of("", &[("A", "x".into())]),
            "{x}",
            "struct { A string }",
            r#"struct { A string }{A:"x"}"#,
        ),
        (Value::Unset, "", "string", r#""""#),
    ];
    for (value, plain, go_type, go_syntax) in cases {
        let data = Value::from([("V", value.clone())].into_iter().collect::<Map>());
        assert_eq!(render("{{.V}}", &data), plain, "{value:?}");
        assert_eq!(render("{{printf \"%T\" .V}}", &data), go_type, "{value:?}");
        assert_eq!(
            render("{{printf \"%#v\" .V}}", &data),
            go_syntax,
            "{value:?}"
        );
    }
}

#[test]
fn maps_are_sorted_and_the_last_of_equal_keys_wins() {
    let map: Map = [("b", 1), ("a", 2), ("b", 3)].into_iter().collect();
    assert_eq!(map.len(), 2);
    assert!(matches!(map.get("b"), Some(Value::Int(3))));
    assert_eq!(
        render("{{range $k, $v := .}}{{$k}}{{$v}};{{end}}", &map.into()),
        "a2;b3;"
    );
}

#[test]
fn a_missing_key_is_what_its_map_makes_of_it() {
    let entries = || [("k", "v")].into_iter().collect::<Map>();
    let nested: Map = [("in", Value::from(entries()))].into_iter().collect();
    for (map, text, expected) in [
        (entries(), "{{.x}}", "<no value>"),
        (
            entries(),
            "{{.x.y}}",
            "error: the value that `.y` is read of is null",
        ),
        (entries().string_typed(), "{{printf \"%q\" .x}}", "\"\""),
        (
            entries().string_typed(),
            "{{.x.y}}",
            "error: a string has no field `y`",
        ),
        (
            entries().string_typed(),
            "{{range .x}}{{end}}",
            "error: range can't iterate over ",
        ),
        (entries().lenient(), "{{printf \"%q\" .x.y.z}}", "\"\""),
        (
            entries().lenient(),
            "{{.k.y}}",
            "error: a string has no field `y`",
        ),
        (
            nested.lenient(),
            "{{.in.k}}[{{.in.x}}]{{len .in.x.y}}",
            "v[]0",
        ),
    ] {
        assert_eq!(render(text, &map.into()), expected, "{text}");
    }
}

#[test]
fn lists_can_be_sliced_up_to_their_capacity() {
    let list = |items: i32| List::as_decoded_from_json((0..items).map(Value::from).collect());
    assert_eq!(list(5).capacity(), 8);
    assert_eq!(list(0).capacity(), 0);
    let data = Value::from(list(3));
    assert_eq!(render("{{slice . 1 4}}{{len .}}", &data), "[1 2 <nil>]3");
    assert_eq!(render("{{slice . 0 1 1}}", &data), "[0]");
    assert!(render("{{slice (slice . 0 1 1) 0 2}}", &data).starts_with("error: "));
    assert!(render("{{slice . 0 5}}", &data).starts_with("error: "));
}

#[test]
fn strings_are_bytes() {
    let data = Value::Str(Text::from(vec![0xff, b'a', 0xc3, 0xa9]));
    assert_eq!(
        render(
            "{{len .}} {{index . 0}} {{printf \"%q %x %.2s|\" . . .}}",
            &data
        ),
        "4 255 \"\\xffaé\" ff61c3a9 \u{fffd}a|"
    );
    let template = Template::parse("t", "{{slice . 0 1}}", &Environment::new()).unwrap();
    assert_eq!(template.render(&data).unwrap().output, [0xff]);
}

#[test]
fn gtmpl_values_become_ours() {
    let nested = gtmpl_value::Value::Array(vec![1.into(), 2.5.into(), "x".into(), true.into()]);
    let object = [
        ("List".to_owned(), nested),
        ("Nil".to_owned(), gtmpl_value::Value::Nil),
    ];
    let data = Value::from(gtmpl_value::Value::Object(object.into_iter().collect()));
    assert_eq!(
        render("{{.List}} {{.Nil}}", &data),
        "[1 2.5 x true] <no value>"
    );
}

#[test]
fn templates_are_shared_between_threads() {
    let template = Template::parse_with(
        "t",
        "{{template \"a\" .}}",
        &Environment::new(),
        &[("a", "<{{.}}>")],
    );
    let template = template.unwrap();
    assert_eq!(template.lookup("a").unwrap().name(), "a");
    assert!(template.lookup("b").is_none());
    std::thread::scope(|scope| {
        for number in 0..4 {
            let template = &template;
            scope.spawn(move || {
                let rendered = template.render(&Value::from(number)).unwrap();
                assert_eq!(rendered.output, format!("<{number}>").as_bytes());
            });
        }
    });
}

#[test]
fn rendering_appends() {
    let template = Template::parse("t", "b{{.}}", &Environment::new()).unwrap();
    let mut out = b"a".to_vec();
    let report = template.render_into(&Value::from("c"), &mut out).unwrap();
    assert_eq!(
        (out.as_slice(), report.unset.len(), report.unknown.len()),
        (&b"abc"[..], 0, 0)
    );
}
