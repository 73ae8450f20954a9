//! `fmt`.

use std::io::Write as _;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::harness::{Ended, Harness};

const MESSY: &str = "{ \"cluster\":{\"id\":\"c\"}, // mine\n\"shard\": null\n}\n";
const TIDY: &str = "{\n  \"cluster\": {\"id\": \"c\"}, // mine\n  \"shard\": null\n}\n";

#[test]
fn the_configuration_is_laid_out_once() {
    let harness = Harness::with(MESSY);
    assert_snapshot!(harness.ok("fmt"));
    assert_eq!(harness.read("nstance.jsonc"), TIDY.as_bytes());
    let again = harness.ok("fmt");
    assert_eq!(again.stdout + &again.stderr, "");
    assert_eq!(harness.files(), ["nstance.jsonc"]);
}

#[test]
fn check_writes_nothing_and_says_by_its_exit_code() {
    let harness = Harness::with(MESSY);
    harness.write("tidy.jsonc", TIDY);
    let ended = harness.run("fmt --check --diff nstance.jsonc tidy.jsonc");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    assert_eq!(harness.read("nstance.jsonc"), MESSY.as_bytes());
    assert_eq!(harness.ok("fmt --check tidy.jsonc").stdout, "");
    let listed = harness.run("fmt --check nstance.jsonc tidy.jsonc");
    assert_eq!((listed.code, &*listed.stdout), (Some(1), "nstance.jsonc\n"));
    assert_snapshot!(harness.run("fmt --check --json nstance.jsonc tidy.jsonc"));
}

/// What can be laid out is, whatever is wrong elsewhere.
#[test]
fn what_cannot_be_read_stays_as_it_is() {
    let harness = Harness::empty();
    let files = [
        ("f/a.jsonc", "{\"a\": [1, 2}\n"),
        ("f/b.hcl", "a = \nb=1\n"),
        ("f/c.hcl", "a=1\nbc = 2\n"),
        ("f/nstance.yaml", "a:   1\n"),
    ];
    for (file, text) in files {
        harness.write(file, text);
    }
    let ended = harness.run("fmt f missing.jsonc");
    assert_eq!(ended.code, Some(1));
    assert_snapshot!(ended);
    for (file, text) in files {
        let expected = if file == "f/c.hcl" {
            "a  = 1\nbc = 2\n"
        } else {
            text
        };
        assert_eq!(harness.read(file), expected.as_bytes(), "{file}");
    }
}

/// In a folder YAML is skipped; a YAML file that is named is an error.
#[test]
fn yaml_is_for_other_formatters() {
    let harness = Harness::empty();
    harness.write("nstance.yaml", "a:   1\n");
    for words in ["fmt", "fmt --check .", "-c nstance.yaml fmt"] {
        let skipped = harness.ok(words);
        assert!(skipped.stderr.contains("skipped YAML file"), "{skipped}");
    }
    let refused = harness.run("fmt nstance.yaml");
    assert_eq!(refused.code, Some(1));
    assert_snapshot!(refused);
    assert_eq!(harness.read("nstance.yaml"), b"a:   1\n");
}

#[cfg(unix)]
#[test]
fn a_file_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let harness = Harness::with(MESSY);
    let path = harness.path("nstance.jsonc");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    harness.ok("fmt");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn standard_input_is_laid_out_to_standard_output() {
    let harness = Harness::empty();
    let fmt = |words: &str, text: &str| -> Ended {
        let mut command = harness.command(words);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        harness.wait(words, child)
    };
    for (text, expected) in [
        (MESSY, TIDY),
        (
            "/* a\n b */ // c\n{\"a\":1}",
            "/* a\n b */ // c\n{\"a\": 1}\n",
        ),
        ("// c\na=1", "// c\na = 1\n"),
    ] {
        let ended = fmt("fmt -", text);
        assert_eq!((ended.code, &*ended.stdout), (Some(0), expected), "{ended}");
    }
    assert_eq!(fmt("fmt - --check", MESSY).code, Some(1));
    assert_eq!(fmt("fmt - --check", TIDY).code, Some(0));
    assert_snapshot!(fmt("fmt -", "{\"a\": }"));
}
