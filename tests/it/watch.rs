//! `validate --watch`.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Harness, STARTER};

/// Far more than any of this takes: what is waited for is a line.
const LIMIT: Duration = Duration::from_mins(1);

/// A command that doesn't end by itself, and what it says.
struct Watching {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Watching {
    fn start(harness: &Harness, words: &str) -> Self {
        let mut child = harness.command(words).spawn().unwrap();
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// The next line of results.
    #[track_caller]
    fn verdict(&self) -> String {
        self.stdout.recv_timeout(LIMIT).expect("a verdict comes")
    }

    /// Passes what is said until it is watching; gives what was changed, if that was said.
    #[track_caller]
    fn watches(&self) -> Option<String> {
        let mut changed = None;
        loop {
            let line = self
                .stderr
                .recv_timeout(LIMIT)
                .expect("it says that it watches");
            if line.starts_with("Watching") {
                return changed;
            }
            if let Some(names) = line.strip_prefix("Changed: ") {
                assert!(changed.is_none(), "{changed:?}, then {names}");
                changed = Some(names.to_owned());
            }
        }
    }

    fn interrupt(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        let code = self.child.wait().unwrap().code();
        // Nothing was said that no test asked for.
        assert_eq!(self.stdout.iter().collect::<Vec<_>>(), [""; 0]);
        code
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            if sender.send(line.unwrap()).is_err() {
                break;
            }
        }
    });
    receiver
}

const VALID: &str = "The configuration is valid: 1 group.";
const INVALID: &str = "The configuration has errors.";

#[test]
fn every_change_is_validated_and_nothing_else() {
    let harness = Harness::starter();
    let watching = Watching::start(&harness, "validate --watch");
    assert_eq!(watching.verdict(), VALID);
    assert_eq!(watching.watches(), None);

    // What isn't part of the configuration doesn't matter: had it been validated, another verdict
    // would come first.
    harness.write("README.md", "notes");
    harness.edit("\"size\": 3", "\"size\": -3");
    assert_eq!(watching.verdict(), INVALID);
    assert_eq!(watching.watches().as_deref(), Some("nstance.jsonc"));

    // As editors save: another file takes its place.
    harness.write(".nstance.jsonc.new", STARTER);
    std::fs::rename(
        harness.path(".nstance.jsonc.new"),
        harness.path("nstance.jsonc"),
    )
    .unwrap();
    assert_eq!(watching.verdict(), VALID);
    assert_eq!(watching.watches().as_deref(), Some("nstance.jsonc"));

    std::fs::remove_file(harness.path("nstance.jsonc")).unwrap();
    assert_eq!(watching.verdict(), INVALID);
    watching.watches();
    harness.configure(STARTER);
    assert_eq!(watching.verdict(), VALID);
    watching.watches();
    assert_eq!(watching.interrupt(), Some(130));
}

#[test]
fn all_that_a_configuration_reads_is_watched() {
    let harness = Harness::empty();
    harness.write(
        "fleet/main.jsonc",
        "{\"include\": [\"../more/*.jsonc\"], \"cluster\": {\"id\": \"c\"},
          \"shard\": {\"id\": \"s\", \"infra\": {\"provider\": \"sim\", \"region\": \"r\", \"zone\": \"z\"}}}",
    );
    harness.write(
        "more/web.jsonc",
        "{\"groups\": {\"default\": {\"web\": {\"size\": 1, \"instance_type\": \"small\",
          \"userdata\": {\"source\": \"url\", \"content\": \"file:../data/init.sh\"}}}}}",
    );
    harness.write("data/init.sh", "#!/bin/sh\n");
    let watching = Watching::start(&harness, "-c fleet validate --watch --json");
    let document = |watching: &Watching| -> Value {
        serde_json::from_str(&watching.verdict()).expect("a line is a document")
    };
    assert_eq!(document(&watching)["valid"], true);
    watching.watches();
    for (file, text, valid) in [
        ("data/init.sh", "{{ nope }}", false),
        ("data/init.sh", "#!/bin/sh\n", true),
        ("more/another.jsonc", "{\"groups\": ", false),
        ("more/another.jsonc", "{}", true),
        ("fleet/new.jsonc", "{\"strict\": 1}", false),
        ("fleet/new.jsonc", "{\"strict\": true}", true),
    ] {
        harness.write(file, text);
        let found = document(&watching);
        assert_eq!(found["valid"], valid, "{file}: {found:#}");
        assert_eq!(watching.watches().as_deref(), Some(file));
    }
    assert_eq!(watching.interrupt(), Some(130));
}

#[test]
fn what_functions_read_and_files_of_variables_are_watched() {
    let harness = Harness::empty();
    harness.write(
        "nstance.hcl",
        r#"
variable "size" { type = number }
cluster { id = "c" }
shard {
  id = "s"
  infra {
    provider = "sim"
    region   = "r"
    zone     = "z"
  }
}
group "web" {
  instance_type = "small"
  size          = var.size
  userdata      = templatefile("data/init.tftpl", { name = "web" })
  vars          = { PARTS = join(",", fileset("parts", "*.sh")) }
}
"#,
    );
    harness.write("data/init.tftpl", "#!/bin/sh\necho ${name}\n");
    harness.write("parts/one.sh", "");
    harness.write("prod.tfvars", "size = 1\n");
    let watching = Watching::start(&harness, "validate --watch --var-file prod.tfvars");
    assert_eq!(watching.verdict(), VALID);
    watching.watches();
    for (file, text, verdict) in [
        ("data/init.tftpl", "echo ${nope}\n", INVALID),
        ("data/init.tftpl", "echo ${name}\n", VALID),
        ("prod.tfvars", "size = -1\n", INVALID),
        ("prod.tfvars", "size = 2\n", VALID),
        ("parts/two.sh", "", VALID),
    ] {
        harness.write(file, text);
        assert_eq!(watching.verdict(), verdict, "{file}");
        assert_eq!(watching.watches().as_deref(), Some(file));
    }
    assert_eq!(watching.interrupt(), Some(130));
}
