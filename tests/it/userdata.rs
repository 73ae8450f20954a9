//! `userdata`.

use std::io::Write as _;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::harness::{Ended, Harness, TWO};

const BASE: &str = "\
#cloud-config
packages: [curl] # for the health check
users:
  - default
  - name: ops
    shell: /bin/bash
timezone: Europe/Berlin
";
const TEAM: &str = "\
#cloud-config
packages: [git, curl]
users:
  - name: ops
    groups: adm
timezone: UTC
";
const SCRIPT: &str = "#!/bin/sh\necho Grüße\n";

fn files() -> Harness {
    let harness = Harness::empty();
    for (name, text) in [
        ("base.yaml", BASE),
        ("team.yaml", TEAM),
        ("hello.sh", SCRIPT),
    ] {
        harness.write(name, text);
    }
    harness
}

/// Runs a command that reads standard input.
fn piped(harness: &Harness, words: &str, input: &[u8]) -> Ended {
    let mut command = harness.command(words);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    harness.wait(words, child)
}

#[test]
fn files_are_merged_by_each_mode() {
    let harness = files();
    for mode in ["replace", "append", "cloud-init", "nstance"] {
        let words = format!("userdata merge base.yaml team.yaml --mode {mode}");
        assert_snapshot!(format!("userdata_merge_{mode}"), harness.ok(&words));
    }
    let default = harness.ok("userdata merge base.yaml team.yaml").stdout;
    let named = harness.ok("userdata merge base.yaml team.yaml --mode cloud-init");
    assert_eq!(default, named.stdout);
}

#[test]
fn one_file_goes_out_as_it_was_written() {
    let harness = files();
    let merged = harness.ok("userdata merge base.yaml");
    assert_eq!(merged.stdout, BASE);
    harness.ok("userdata merge hello.sh --out copy.sh");
    assert_eq!(harness.read("copy.sh"), SCRIPT.as_bytes());
    let gzip = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    harness.write("empty.gz", gzip);
    harness.ok("userdata merge empty.gz base.yaml --mode replace --out base.out");
    assert_eq!(harness.read("base.out"), BASE.as_bytes());
}

#[test]
fn each_line_says_where_it_is_from() {
    let harness = files();
    assert_snapshot!(
        harness.ok("userdata merge base.yaml hello.sh team.yaml --mode nstance --explain")
    );
    assert_snapshot!(
        harness.ok("userdata merge base.yaml team.yaml --mode nstance --explain --json")
    );
}

#[test]
fn what_cloud_init_would_pass_over_is_an_error() {
    let harness = files();
    harness.write(
        "bad.yaml",
        "#cloud-config\nmerge_how: list(apend)\nruncmd:\n  - echo a: b\nwrite_files:\n  - path: /x\n    \
         permissions: 0644\n",
    );
    harness.write("plain.yaml", "packages: [vim]\n");
    harness.write("broken.yaml", "#cloud-config\npackages: [vim\n");
    harness.write(
        "odd.yaml",
        "#cloud-config\nruncmd: [echo]\napt_update: yes\nhostname: 12:30\nhostname: on\n",
    );
    for (name, files) in [
        ("options", "bad.yaml"),
        ("no_header", "plain.yaml"),
        ("no_yaml", "broken.yaml"),
    ] {
        let ended = harness.run(&format!("userdata merge base.yaml {files} --out result"));
        assert_eq!(ended.code, Some(1), "{ended}");
        assert_eq!(ended.stdout, "");
        assert_snapshot!(format!("userdata_merge_bad_{name}"), ended);
        assert!(!harness.files().contains(&"result".to_owned()));
    }
    let ended = harness.run("userdata merge base.yaml broken.yaml --json");
    assert_eq!(ended.code, Some(1));
    let finding = &ended.json()["diagnostics"][0];
    assert_eq!(finding["range"]["start"]["line"], 3, "{ended}");
    assert_snapshot!(harness.ok("userdata merge base.yaml odd.yaml"));
    let quiet = harness.ok("userdata merge base.yaml odd.yaml -q");
    assert_eq!(quiet.stderr, "");
}

#[test]
fn the_documentation_may_be_taken_by_its_word() {
    let harness = Harness::empty();
    let first = "#cloud-config\nmerge_how: list(append)+dict(recurse_list)\nruncmd: [one]\n";
    harness.write("a.yaml", first);
    harness.write("b.yaml", "#cloud-config\nruncmd: [two]\n");
    assert_snapshot!(harness.run("userdata merge a.yaml b.yaml"));
    let documented = harness.ok("userdata merge a.yaml b.yaml --as-documented");
    assert_eq!(
        documented.stdout,
        "#cloud-config\nruncmd:\n  - one\n  - two\n"
    );
    assert_snapshot!(harness.run("userdata merge a.yaml b.yaml --as-documented --mode nstance"));
}

#[test]
fn whatever_it_is_packed_in_it_is_opened() {
    let harness = files();
    harness.ok("userdata merge base.yaml hello.sh --mode append --out parts.mime");
    assert_snapshot!(harness.ok("userdata decode parts.mime"));
    assert_snapshot!(harness.ok("userdata decode parts.mime --json"));
    let script = harness.ok("userdata decode parts.mime --part 2");
    assert_eq!(script.stdout, SCRIPT);
    harness.ok("userdata decode parts.mime --part 1 --out base.out");
    assert_eq!(harness.read("base.out"), BASE.as_bytes());
    let none = harness.run("userdata decode parts.mime --part 3");
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("there are 2"), "{none}");
    // `#cloud-config\na: 1\n`, in gzip, in base64, from standard input.
    let packed = b"H4sIAAAAAAACA1NOzskvTdFNzs9Ly0znSrRSMOQCAJ6ioS4TAAAA";
    let opened = piped(&harness, "userdata decode -", packed);
    assert_eq!(opened.code, Some(0), "{opened}");
    assert_snapshot!(opened);
}

#[test]
fn what_cannot_be_read_is_said() {
    let harness = files();
    for words in [
        "userdata merge nowhere.yaml",
        "userdata decode .",
        "userdata merge",
    ] {
        let ended = harness.run(words);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert_eq!(ended.stdout, "");
    }
    assert_snapshot!(harness.run("userdata merge nowhere.yaml"));
}

#[test]
fn nothing_of_a_file_can_change_the_terminal() {
    let harness = Harness::empty();
    harness.write(
        "a.yaml",
        "#cloud-config\nrun\u{1b}[2Jcmd: [a]\nhostname: \"\\e[2J\"\n",
    );
    harness.write("b.sh", "#!/bin/sh\necho \u{1b}[2J\n");
    for words in [
        "userdata merge a.yaml b.sh --explain",
        "userdata decode a.yaml",
        "userdata decode b.sh",
    ] {
        let ended = harness.run(words);
        let said = ended.stdout + &ended.stderr;
        assert!(!said.contains('\u{1b}'), "{said}");
    }
}

#[test]
fn userdata_that_cloud_init_ignores_is_warned_of() {
    for (userdata, line) in [
        (
            "# cloud-config\\npackages: [nginx]\\n",
            Some("#cloud-config"),
        ),
        ("packages: [nginx]\\n", Some("#cloud-config")),
        ("apt-get update\\n", Some("#!/bin/sh")),
        ("#!/bin/sh\\napt-get update\\n", None),
        ("<powershell>\\nmkdir a\\n</powershell>\\n", None),
        ("{\\\"ignition\\\": {\\\"version\\\": \\\"3.4.0\\\"}}", None),
    ] {
        let harness = Harness::with(TWO);
        harness.edit(
            "\"kind\": \"srv\",",
            &format!("\"kind\": \"srv\", \"userdata\": \"{userdata}\","),
        );
        let warned = harness.ok("validate");
        let Some(line) = line else {
            assert_eq!(warned.stderr, "", "{warned}");
            continue;
        };
        let hint = format!("hint: Begin it with the line `{line}`");
        assert!(
            warned
                .stderr
                .contains("warning: cloud-init ignores this userdata"),
            "{warned}"
        );
        assert!(warned.stderr.contains(&hint), "{warned}");
        let strict = harness.run("validate --strict");
        assert_eq!(strict.code, Some(1), "{strict}");
        let planned = harness.ok("plan");
        assert!(planned.stderr.contains(&hint), "{planned}");
    }
}
