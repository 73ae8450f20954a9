//! Layouts: that they mean the same, and stay as they are.

use std::fs;
use std::path::Path;

use super::*;

fn laid_out(name: &str, text: &str) -> String {
    let mut sources = SourceMap::default();
    let source = sources.add(name, text);
    match layout(&sources, source) {
        Ok(text) => text.expect("the language is laid out"),
        Err(findings) => panic!(
            "{}\n{text}",
            crate::report::diagnostic::render(&findings, &sources, false)
        ),
    }
}

/// What `terraform fmt` makes of messy files: `terraform fmt - < NAME.in.hcl > NAME.out.hcl`, but
/// for empty lines, of which it keeps any number.
#[test]
fn hcl_is_laid_out_as_terraform_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpora/hcl-layout");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        let Some(stem) = name.strip_suffix(".in.hcl") else {
            continue;
        };
        let expected = fs::read_to_string(format!("{stem}.out.hcl")).unwrap();
        let found = laid_out("a.hcl", &fs::read_to_string(&path).unwrap());
        pretty_assertions(&found, &expected, &name);
        pretty_assertions(&laid_out("a.hcl", &found), &expected, &name);
        count += 1;
    }
    assert!(count > 0);
}

/// Where Terraform would do otherwise: it writes what stands on the right of a string alone, lays out
/// what is in strings, drops a comment before a label, and keeps blanks and empty lines.
#[test]
fn hcl_keeps_strings_and_comments() {
    for (text, expected) in [
        ("a=\"${x}\"\n", "a = \"${x}\"\n"),
        ("a=\"${ [1,2][0] }b\"\n", "a = \"${ [1,2][0] }b\"\n"),
        (
            "a=<<EOT\n ${\n b }\nEOT\nccc=1\n",
            "a   = <<EOT\n ${\n b }\nEOT\nccc = 1\n",
        ),
        (
            "variable \"x\" {\ntype=\"string\"\n}\n",
            "variable \"x\" {\n  type = \"string\"\n}\n",
        ),
        (
            "group /* a */ default /* b */ \"web\" {}\n",
            "group /* a */ \"default\" /* b */ \"web\" {}\n",
        ),
        ("\n\na=1 # b \t\n\n\n\nc=2", "a = 1 # b\n\nc = 2\n"),
        // `in` and `if` may belong to a `for`.
        (
            "a = [for\nk in {} : k\nif k != {}]\n",
            "a = [for\n  k in {} : k\nif k != {}]\n",
        ),
        ("block in {}\n", "block in {}\n"),
    ] {
        assert_eq!(laid_out("a.hcl", text), expected);
        hcl_keeps(text);
    }
}

#[track_caller]
fn pretty_assertions(found: &str, expected: &str, name: &str) {
    let diff = similar::TextDiff::from_lines(expected, found);
    assert!(
        found == expected,
        "{name}:\n{}",
        diff.unified_diff().header("expected", "found")
    );
}

/// What HCL means: its tree without places and quotes around labels.
fn hcl_tree(text: &str) -> String {
    let body = nstance_hcl::parse(text, 0).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    without_places(&format!("{body:#?}"))
}

pub(super) fn without_places(tree: &str) -> String {
    tree.lines()
        .filter(|line| {
            !["start:", "end:", "quoted:"]
                .iter()
                .any(|part| line.trim().starts_with(part))
        })
        .collect()
}

fn json_tree(text: &str) -> serde_json::Value {
    let root = config::jsonc::read(SourceId(0), text);
    root.unwrap_or_else(|_| panic!("{text}")).to_json()
}

/// The words of all comments.
fn words_of(comments: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = comments
        .flat_map(|comment| {
            comment
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .collect();
    words.sort();
    words
}

#[track_caller]
fn hcl_keeps(text: &str) {
    let once = laid_out("a.hcl", text);
    assert_eq!(hcl_tree(&once), hcl_tree(text), "{text}\n->\n{once}");
    assert_eq!(laid_out("a.hcl", &once), once, "{text}");
    let comments = |text: &str| {
        let tokens = hcl_tokens::tokens(text);
        words_of(
            tokens
                .iter()
                .filter(|token| token.kind == hcl_tokens::Kind::Comment)
                .map(|token| token.text.to_owned())
                .collect::<Vec<_>>()
                .into_iter(),
        )
    };
    assert_eq!(comments(&once), comments(text), "{text}\n->\n{once}");
}

#[track_caller]
fn jsonc_keeps(text: &str) {
    let once = laid_out("a.jsonc", text);
    assert_eq!(json_tree(&once), json_tree(text), "{text}\n->\n{once}");
    assert_eq!(laid_out("a.jsonc", &once), once, "{text}\n->\n{once}");
    let comments = |text: &str| {
        words_of(
            jsonc_layout::tokens(text)
                .into_iter()
                .filter(jsonc_layout::Token::is_comment)
                .map(|token| token.text.to_owned()),
        )
    };
    assert_eq!(comments(&once), comments(text), "{text}\n->\n{once}");
}

/// Every expression of the corpus whose answer Terraform gave.
#[test]
fn every_expression_keeps_its_meaning() {
    let corpus = include_str!("../../tests/corpora/hcl.jsonl");
    let mut count = 0;
    for line in corpus.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let expression = case["expression"].as_str().unwrap();
        let text = format!("a = 1\nbcd = {expression} # note\nblock {{\n x = {expression}\n}}\n");
        if nstance_hcl::parse(&text, 0).is_ok() {
            hcl_keeps(&text);
            count += 1;
        }
    }
    assert!(count > 500, "only {count}");
}

#[test]
fn every_configuration_keeps_its_meaning() {
    for text in [
        include_str!("../../tests/good/everything.jsonc"),
        include_str!("../../tests/it/data/aws.jsonc"),
        include_str!("../../tests/it/data/two.jsonc"),
        include_str!("../cli/starter.jsonc"),
        include_str!("../../examples/kubernetes/nstance.jsonc"),
        include_str!("../../examples/quickstart/nstance.jsonc"),
    ] {
        jsonc_keeps(text);
        jsonc_keeps(&text.replace('\n', "\r\n"));
    }
}

/// Text made of a tree and noise: spaces, line breaks and comments wherever they may stand.
pub(super) mod noise {
    use proptest::prelude::*;
    use serde_json::Value;

    pub(super) fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~é\n\t]{0,12}".prop_map(Value::from),
            Just(Value::from("// no comment /* neither */ # \"")),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[a-z ]{0,6}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    pub(in crate::format) struct Noise<'n> {
        pub(in crate::format) seed: &'n [u8],
        pub(in crate::format) at: usize,
    }

    impl Noise<'_> {
        fn next(&mut self) -> u8 {
            self.at += 1;
            self.seed[self.at % self.seed.len()].wrapping_add((self.at / self.seed.len()) as u8)
        }

        fn space(&mut self, out: &mut String) {
            for _ in 0..self.next() % 3 {
                let number = self.at;
                match self.next() % 12 {
                    0 => out.push_str(&format!("// line{number}\n")),
                    1 => out.push_str(&format!("/* block{number} */")),
                    2 => out.push_str(&format!("/* two{number}\n   * lines */")),
                    3 | 4 => out.push('\n'),
                    5 => out.push_str("\n\n\n"),
                    _ => out.push(' '),
                }
            }
        }

        pub(in crate::format) fn write(&mut self, value: &Value, out: &mut String) {
            self.space(out);
            match value {
                Value::Array(items) => {
                    out.push('[');
                    for (index, item) in items.iter().enumerate() {
                        self.write(item, out);
                        self.comma(index + 1 == items.len(), out);
                    }
                    self.space(out);
                    out.push(']');
                }
                Value::Object(entries) => {
                    out.push('{');
                    for (index, (key, item)) in entries.iter().enumerate() {
                        self.space(out);
                        out.push_str(&Value::from(key.as_str()).to_string());
                        self.space(out);
                        out.push(':');
                        self.write(item, out);
                        self.comma(index + 1 == entries.len(), out);
                    }
                    self.space(out);
                    out.push('}');
                }
                leaf => out.push_str(&leaf.to_string()),
            }
            self.space(out);
        }

        fn comma(&mut self, is_last: bool, out: &mut String) {
            if !is_last || self.next().is_multiple_of(2) {
                out.push(',');
            }
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn any_jsonc_keeps_its_meaning_and_comments(
        tree in noise::tree(),
        seed in proptest::collection::vec(proptest::prelude::any::<u8>(), 40..200),
    ) {
        let mut text = String::new();
        noise::Noise { seed: &seed, at: 0 }.write(&tree, &mut text);
        jsonc_keeps(&text);
    }

    /// Tokens of real files, with other spaces between them.
    #[test]
    fn any_hcl_keeps_its_meaning_and_comments(
        which in 0..3_usize,
        seed in proptest::collection::vec(0..12_u8, 60..300),
    ) {
        let text = [
            include_str!("../../tests/corpora/hcl-layout/messy.in.hcl"),
            include_str!("../../tests/corpora/hcl-layout/shapes.in.hcl"),
            include_str!("../../tests/corpora/hcl-layout/lines.in.hcl"),
        ][which];
        let mut noisy = String::new();
        for (index, token) in hcl_tokens::tokens(text).iter().enumerate() {
            let heredoc = noisy.ends_with("EOT");
            let noise = if heredoc { 11 } else { seed[index % seed.len()] };
            let lines = token.newlines;
            if lines > 0 {
                noisy.push_str(match noise {
                    0 => "\n\n\n",
                    1 => " # note\n",
                    2 => "\n/* block\n   x */\n",
                    3 => "\n    // alone\n\n",
                    _ => "\n",
                });
            } else if index > 0 {
                noisy.push_str(match noise {
                    0 => "  ",
                    1 => " /* here */ ",
                    _ => " ",
                });
            }
            noisy.push_str(token.text);
        }
        noisy.push('\n');
        hcl_keeps(&noisy);
    }
}

#[test]
fn jsonc_has_one_layout() {
    insta::assert_snapshot!(laid_out(
        "a.jsonc",
        r#"// The file.


// The cluster.
{ // All of it
"a":1,"b":[1,2, {"c":  null}], /* before d */ "d": {
  "e":"\u0041/", // e
      // f


  "f":[], "g": /* of g */ {}


  // nothing follows
  ,

  },
  /* A block
   * of stars
     and none */
  "long": ["aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "ccccccccccccccccccccccc"],
  "h": [
    // empty
  ], "i": [ // first
    1e3, -0.50
  ] // i
} // end

// After all
"#
    ));
}
