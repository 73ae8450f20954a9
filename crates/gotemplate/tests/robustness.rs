//! Whatever a person types: no panic, no overflowing stack, no hang, no unbounded growth.

use nstance_gotemplate::{Environment, ExecErrorKind, Limits, Map, Template, Value};

fn data() -> Value {
    let inner: Map = [("X", Value::from("x")), ("N", Value::from(3))]
        .into_iter()
        .collect();
    let root: Map = [
        ("S", Value::from("hello")),
        ("N", Value::from(3)),
        ("F", Value::from(0.1)),
        ("T", Value::from(true)),
        ("L", Value::from(vec!["a", "b", "c"])),
        ("M", inner.into()),
        ("Nil", Value::Nil),
    ]
    .into_iter()
    .collect();
    root.into()
}

/// Small enough that thousands of mutants run within a second.
fn small() -> Environment {
    let limits = Limits {
        steps: 20_000,
        output_bytes: 1 << 16,
        ..Limits::default()
    };
    Environment::new().with_limits(limits)
}

/// Parses and renders; what comes of it doesn't matter, that it ends does.
fn survive(text: &str, environment: &Environment) -> Option<Vec<u8>> {
    let template = match Template::parse("t", text, environment) {
        Ok(template) => template,
        Err(error) => {
            assert!(text.is_char_boundary(error.offset), "{text}: {error}");
            assert!(!error.message.is_empty() && !error.go_message().is_empty());
            return None;
        }
    };
    let _reads = template.reads();
    match template.render(&data()) {
        Ok(rendered) => Some(rendered.output),
        Err(error) => {
            assert!(text.is_char_boundary(error.offset), "{text}: {error}");
            None
        }
    }
}

fn nested(opening: &str, inner: &str, closing: &str, depth: usize) -> String {
    format!("{}{inner}{}", opening.repeat(depth), closing.repeat(depth))
}

#[test]
fn nesting_ends_at_the_limit() {
    let environment = Environment::new();
    let deep = format!("{{{{{}}}}}", nested("(", "1", ")", 10_000));
    assert_eq!(survive(&deep, &environment).as_deref(), Some(&b"1"[..]));
    let too_deep = format!("{{{{{}}}}}", nested("(", "1", ")", 10_001));
    let error = Template::parse("t", &too_deep, &environment).unwrap_err();
    assert_eq!(
        error.message,
        "parentheses are nested deeper than the limit of 10000"
    );
    assert_eq!(
        error.go_message(),
        "template: t:1: max expression depth exceeded"
    );
    for opening in ["{{if 1}}", "{{with 1}}", "{{range 1}}", "{{block \"b\" 1}}"] {
        let deep = nested(opening, "x", "{{end}}", 9_999);
        if !opening.contains("block") {
            assert_eq!(
                survive(&deep, &environment).as_deref(),
                Some(&b"x"[..]),
                "{opening}"
            );
        }
        let too_deep = nested(opening, "x", "{{end}}", 10_001);
        assert!(
            Template::parse("t", &too_deep, &environment).is_err(),
            "{opening}"
        );
    }
    let chain = format!(
        "{{{{if 0}}}}{}{{{{else}}}}x{{{{end}}}}",
        "{{else if 0}}".repeat(50_000)
    );
    assert_eq!(survive(&chain, &environment).as_deref(), Some(&b"x"[..]));
    let path = format!("{{{{{}}}}}", ".M".repeat(100_000));
    assert_eq!(
        survive(&path, &environment).as_deref(),
        Some(&b"<no value>"[..])
    );
}

#[test]
fn recursion_ends_at_the_limit() {
    for text in [
        "{{template \"t\"}}",
        "{{define \"a\"}}{{with 1}}{{range 2}}{{if 1}}{{template \"a\"}}{{end}}{{end}}{{end}}{{end}}{{template \"a\"}}",
        "{{define \"a\"}}{{template \"b\" .}}{{end}}{{define \"b\"}}{{template \"a\" .}}{{end}}{{template \"a\" .}}",
    ] {
        let template = Template::parse("t", text, &Environment::new()).unwrap();
        let error = template.render(&data()).unwrap_err();
        assert_eq!(
            error.kind(),
            ExecErrorKind::Limit("template_depth"),
            "{text}"
        );
    }
}

#[test]
fn growth_ends_at_a_limit() {
    let cases = [
        // Strings that double, and that each level of a recursion keeps.
        "{{$x := \"aaaaaaaaaaaaaaaa\"}}{{range 100}}{{$x = print $x $x}}{{end}}",
        "{{define \"a\"}}{{template \"a\" (print . \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\")}}{{end}}{{template \"a\" \"\"}}",
        "{{range 1000000000000}}{{end}}",
        "{{range 1000000}}{{range 1000000}}{{$.S}}{{end}}{{end}}",
        "{{range 100000}}{{$x := printf \"%1000000d\" 1}}{{end}}",
        // Little output, much to look at.
        "{{$x := printf \"%1000000d\" 1}}{{range 10000000}}{{if eq $x $x}}{{end}}{{end}}",
        "{{$x := printf \"%1000000d\" 1}}{{range 10000000}}{{printf \"%.0s\" $x}}{{end}}",
    ];
    // A tenth of the default, because this runs without optimisation.
    let limits = Limits {
        steps: Limits::default().steps / 10,
        ..Limits::default()
    };
    let environment = Environment::new().with_limits(limits);
    for text in cases {
        let template = Template::parse("t", text, &environment).unwrap();
        let error = template.render(&data()).unwrap_err();
        assert!(
            matches!(error.kind(), ExecErrorKind::Limit(_)),
            "{text}: {error}"
        );
    }
}

#[test]
fn widths_are_as_wide_as_go_has_them() {
    let environment = Environment::new();
    let width = |format: &str| {
        let text = format!("{{{{printf \"{format}\" 1 2 3}}}}");
        survive(&text, &environment).map(|output| output.len())
    };
    assert_eq!(width("%1000000d%d%d"), Some(1_000_002));
    assert_eq!(width("%.1000000d%d%d"), Some(1_000_002));
    assert_eq!(
        width(&"%[1]1000000d".repeat(20)),
        Some(20 * "%!d(BADINDEX)".len())
    );
    assert_eq!(width(&"%1000000d".repeat(3)), Some(3_000_000));
    let many = format!("{{{{printf \"{}\" 1}}}}", "%[1]*[1]d%1000000s".repeat(100));
    survive(&many, &environment);
    for verb in ["f", "e", "g", "x", "b", "v"] {
        let text = format!("{{{{printf \"%.1000000{verb}\" 1.5}}}}");
        assert!(survive(&text, &environment).is_some(), "{verb}");
        let text = format!("{{{{printf \"%#+ 0-1000.999{verb}\" -1e300}}}}");
        assert!(survive(&text, &environment).is_some(), "{verb}");
    }
    assert_eq!(
        width("%99999999999999999999d"),
        Some("%!(NOVERB)%!(EXTRA int=1, int=2, int=3)".len())
    );
}

#[test]
fn whatever_is_left_open_is_an_error() {
    let environment = Environment::new();
    assert_eq!(
        survive("{{`\\`}}", &environment).as_deref(),
        Some(&b"\\"[..])
    );
    let cases = [
        "{{",
        "{{ ",
        "{{-",
        "{{- ",
        "{{/*",
        "{{/* */",
        "{{\"",
        "{{\"\\",
        "{{`",
        "{{'",
        "{{'\\",
        "{{(",
        "{{(}}",
        "{{(1}}",
        "{{1)}}",
        "{{if",
        "{{if}}",
        "{{if 1}}",
        "{{if 1}}{{else}}",
        "{{range",
        "{{range 1}}",
        "{{with 1}}",
        "{{define",
        "{{define \"a\"",
        "{{define \"a\"}}",
        "{{block \"a\" 1}}",
        "{{template",
        "{{template \"a\"",
        "{{end",
        "{{end}}",
        "{{else}}",
        "{{.",
        "{{.S",
        "{{$",
        "{{$x",
        "{{$x :",
        "{{$x :=",
        "{{$x := }}",
        "{{1 |",
        "{{|}}",
        "{{1 | | 1}}",
        "{{:}}",
        "{{=}}",
        "{{,}}",
        "{{0x",
        "{{1e",
        "{{1+",
        "{{1+2",
        "{{+",
        "{{-1-",
        "{{}}",
    ];
    for text in cases {
        for suffix in ["", "\n", " }", "é", "\u{0}"] {
            let text = format!("{text}{suffix}");
            assert_eq!(survive(&text, &environment), None, "{text:?}");
        }
    }
}

/// A xorshift generator: the same numbers each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

const SEEDS: [&str; 12] = [
    "a {{.S}} b {{- .N -}} c {{/* d */}}{{.M.X}}",
    "{{if and .T (not .Nil) | or .F}}y{{else if eq .S \"hello\" `x`}}n{{else}}e{{end}}",
    "{{range $i, $x := .L}}{{$i}}={{$x}}{{if eq $i 1}}{{break}}{{else}}{{continue}}{{end}}{{else}}none{{end}}",
    "{{with $m := .M}}{{$m.X}}{{.N}}{{else with .S}}{{.}}{{end}}{{range 3}}{{.}}{{end}}",
    "{{define \"d\"}}<{{.}}{{$}}>{{end}}{{template \"d\" .S}}{{block \"e\" .M}}{{.X}}{{end}}",
    "{{printf \"%-5d|%+.3e|%#q|%[1]*[2]v|% x|%T %%\" 42 1.5 \"s\" 3}}{{print 1 nil true 'x' 1i}}",
    "{{slice .S 1 3}}{{index .L 1}}{{index .M \"X\"}}{{len .L}}{{html \"<&>\"}}{{js \"'<\"}}{{urlquery \"a b\"}}",
    "{{$x := 1}}{{$x = 2}}{{$y := $x}}{{if $z := .M}}{{$z.N}}{{end}}{{$x | printf \"%d-%d\" $y}}",
    "{{0x1F}} {{1_000}} {{0b11}} {{0o17}} {{1e3}} {{.5}} {{-1.5}} {{1+2i}} {{'\\u00e9'}} {{\"\\xff\\n\\\"\"}}",
    "{{lt 1 2}}{{ge 2.5 1.5}}{{ne .S \"x\"}}{{le \"a\" \"b\"}}{{gt 3 2}}{{call .S}}{{println .L}}",
    "{{ (index .L 0) }}{{(print .S).X}}{{.Nil.X}}{{.Nope.X.Y}}{{$.M.X}}{{((.S))}}",
    "{{range .M}}{{range $.L}}{{with .}}{{template \"t\"}}{{end}}{{end}}{{end}}",
];

const PIECES: [&str; 30] = [
    "{{", "}}", "{{-", "-}}", "(", ")", "|", "\"", "`", "'", ".", "$", "$x", ":=", "=", ",", " ",
    "\n", "end", "else", "if", "range", "nil", "1", "%", "\\", "é", "\u{feff}", "/*", "{{end}}",
];

fn mutate(random: &mut Random, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(characters.len() + 1);
        match random.below(5) {
            0 if at < characters.len() => {
                characters.remove(at);
            }
            1 => {
                let end = (at + random.below(12)).min(characters.len());
                characters.drain(at..end);
            }
            2 => {
                let end = (at + random.below(12)).min(characters.len());
                let copy: Vec<char> = characters[at..end].to_vec();
                let to = random.below(characters.len() + 1);
                characters.splice(to..to, copy);
            }
            3 => {
                let other = SEEDS[random.below(SEEDS.len())];
                let other: Vec<char> = other.chars().skip(random.below(40)).take(20).collect();
                characters.splice(at..at, other);
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                characters.splice(at..at, piece.chars());
            }
        }
    }
    characters.into_iter().collect()
}

#[test]
fn mutants_neither_panic_nor_hang() {
    let environment = small();
    let mut random = Random(0x5eed_cafe_f00d_1234);
    let (mut parsed, mut rendered) = (0, 0);
    for round in 0..20_000 {
        let text = mutate(&mut random, SEEDS[round % SEEDS.len()]);
        if Template::parse("t", &text, &environment).is_ok() {
            parsed += 1;
        }
        rendered += u32::from(survive(&text, &environment).is_some());
    }
    // The mutants reach both stages.
    assert!(
        parsed > 2_000 && rendered > 1_000,
        "{parsed} parsed, {rendered} rendered"
    );
}

#[test]
fn formats_neither_panic_nor_hang() {
    let alphabet: Vec<char> = "%%%[]*.0123456789+-# vTtbcdoOqxXUeEfFgGspw!é"
        .chars()
        .collect();
    let environment = small();
    let mut random = Random(0x0f0f_1234_5678_9abc);
    for _ in 0..20_000 {
        let length = random.below(12);
        let format: String = (0..length)
            .map(|_| alphabet[random.below(alphabet.len())])
            .collect();
        let text = format!("{{{{printf \"%{format}\" .S .N -1.5e-7 .L .M nil 'x' 0x1p-1074 1i}}}}");
        survive(&text, &environment);
    }
}
