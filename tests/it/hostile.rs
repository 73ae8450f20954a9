//! Files that nobody means to write: they end with an explanation, soon, in every language.

use std::fmt::Write as _;

use insta::assert_snapshot;

use crate::harness::Harness;

const LANGUAGES: [&str; 3] = ["jsonc", "yaml", "hcl"];

#[test]
fn a_hundred_thousand_levels() {
    let depth = 100_000;
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    for (language, text) in LANGUAGES.into_iter().zip([
        format!("{{\"vars\": {{\"A\": {open}1{close}}}}}"),
        format!("vars: {{A: {open}1{close}}}"),
        format!("vars = {{ A = {open}1{close} }}"),
    ]) {
        let harness = Harness::empty();
        harness.write(&format!("nstance.{language}"), &text);
        let ended = harness.run("validate");
        assert_eq!(ended.code, Some(1), "{language}");
        let mut errors = ended
            .stderr
            .lines()
            .filter(|line| line.starts_with("error"));
        // Where the rest could be read, it lacks what a configuration needs.
        let said = errors.find(|line| !line.contains("lacks"));
        assert_snapshot!(format!("deep_{language}"), said.unwrap_or_default());
    }
}

#[test]
fn what_is_not_utf_8() {
    for language in LANGUAGES {
        let harness = Harness::empty();
        let path = harness.path(&format!("nstance.{language}"));
        std::fs::write(path, b"# \n\n  caf\xe9\n").unwrap();
        assert_snapshot!(format!("latin1_{language}"), harness.run("validate"));
    }
}

/// A folder with as many files as there are groups, half of them in another language.
#[test]
fn ten_thousand_files() {
    let harness = Harness::empty();
    harness.write(
        "nstance.hcl",
        "cluster { id = \"many\" }\n\
         shard {\n  id = \"one\"\n  infra {\n    provider = \"sim\"\n    region = \"r\"\n    zone = \"z\"\n  }\n}\n\
         template \"t\" { instance_type = \"small\" }\n",
    );
    for number in (0..10_000).step_by(2) {
        harness.write(
            &format!("g{number}.hcl"),
            format!("group \"g{number}\" {{ template = template.t }}\n"),
        );
        let next = number + 1;
        harness.write(
            &format!("g{next}.jsonc"),
            format!("{{\"groups\": {{\"default\": {{\"g{next}\": {{\"template\": \"t\"}}}}}}}}"),
        );
    }
    let ended = harness.ok("-c . validate");
    assert_eq!(ended.stdout, "The configuration is valid: 10000 groups.\n");
}

/// Each alias stands for ten of the one before.
#[test]
fn a_billion_laughs() {
    let mut yaml = String::from("vars:\n  a0: &a0 [lol]\n");
    let mut hcl = String::from("locals {\n  a0 = [\"lol\"]\n");
    for level in 1..12 {
        let before = level - 1;
        let aliases = vec![format!("*a{before}"); 10].join(", ");
        let _ = writeln!(yaml, "  a{level}: &a{level} [{aliases}]");
        let locals = vec![format!("local.a{before}"); 10].join(", ");
        let _ = writeln!(hcl, "  a{level} = [{locals}]");
    }
    hcl.push_str("}\nvars = { A = local.a11 }\n");
    hcl.push_str("cluster { id = \"c\" }\nshard {\n  id = \"s\"\n  infra {\n    provider = \"sim\"\n    region = \"r\"\n    zone = \"z\"\n  }\n}\n");
    for (language, text) in [("yaml", yaml), ("hcl", hcl)] {
        let harness = Harness::empty();
        harness.write(&format!("nstance.{language}"), &text);
        let ended = harness.run("validate");
        assert_eq!(ended.code, Some(1), "{language}");
        let said = ended.stderr.lines().next().unwrap_or_default();
        assert_snapshot!(format!("laughs_{language}"), said);
    }
}
