//! `cargo xtask conformance KIND FILE…`: the cases of a corpus, each by itself.
//!
//! In: files of one JSON object a line. Out: a line `FAIL id` for each that failed (why is on
//! standard error), and last `N passed, N failed`. May not: let one case end or hold up the rest.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nstance_gotemplate::conformance::run_case;

use crate::{Failure, bosh_case, erb_case, nstance_case, process, yandex_case};

/// What there are corpora for.
pub(crate) const KINDS: [&str; 6] = [
    "gotemplate",
    "hcl",
    "cloud-init",
    "nstance",
    "yandex",
    "bosh",
];

/// How long a case may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What came of a case: nothing, or why it failed.
pub(crate) type Verdict = Result<(), String>;

pub(crate) fn run(kind: &str, files: &[&str]) -> Result<(), Failure> {
    let (mut passed, mut failed) = (0, 0);
    let program = matches!(kind, "nstance" | "yandex")
        .then(build_nstance)
        .transpose()?;
    for file in files {
        let text = std::fs::read_to_string(Path::new(file))
            .map_err(|error| Failure::say(format!("{file}: {error}")))?;
        let folder = folder_of(Path::new(file));
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let verdict = match kind {
                "nstance" => {
                    let program = program.clone().unwrap_or_default();
                    judge(line, PATIENCE, move |line| {
                        nstance_case::run_case(&program, line)
                    })
                }
                "yandex" => {
                    let program = program.clone().unwrap_or_default();
                    judge(line, PATIENCE, move |line| {
                        yandex_case::run_case(&program, line)
                    })
                }
                "hcl" => {
                    let folder = folder.clone();
                    judge(line, PATIENCE, |line| hcl(line, folder))
                }
                "cloud-init" => judge(line, PATIENCE, cloud_init),
                "bosh" => judge(line, PATIENCE, bosh),
                _ => judge(line, PATIENCE, go_template),
            };
            match verdict {
                Ok(()) => passed += 1,
                Err(why) => {
                    failed += 1;
                    println!("FAIL {}", name(line, file, number + 1));
                    eprintln!("  {why}");
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 {
        return Ok(());
    }
    Err(Failure(String::new()))
}

/// Builds the program, and returns its path.
fn build_nstance() -> Result<PathBuf, Failure> {
    process::run(process::cargo().args(["build", "--locked", "--bin", "nstance"]))?;
    Ok(process::target().join("debug/nstance"))
}

fn go_template(line: &str) -> Verdict {
    match run_case(line).failure {
        None => Ok(()),
        Some(why) => Err(why),
    }
}

fn hcl(line: &str, folder: PathBuf) -> Verdict {
    match nstance_hcl::conformance::run_case(line, folder).failure {
        None => Ok(()),
        Some(why) => Err(why),
    }
}

fn cloud_init(line: &str) -> Verdict {
    match nstance_cloudinit::conformance::run_case(line).failure {
        None => Ok(()),
        Some(why) => Err(why),
    }
}

fn bosh(line: &str) -> Verdict {
    let case: serde_json::Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if case["kind"] == "render" {
        return erb_case::check(&case);
    }
    let unknown = || Err(format!("unknown kind {}", case["kind"]));
    bosh_case::check(&case).unwrap_or_else(unknown)
}

/// The files that expressions of a corpus read: beside the corpus, or the repository's own.
fn folder_of(corpus: &Path) -> PathBuf {
    let beside = corpus.with_file_name("hcl-files");
    if beside.is_dir() {
        return beside;
    }
    process::root().join("tests/corpora/hcl-files")
}

/// A case's id; where it has none, its place.
fn name(line: &str, file: &str, number: usize) -> String {
    let id = serde_json::from_str::<serde_json::Value>(line)
        .ok()
        .and_then(|case| Some(case.get("id")?.as_str()?.to_owned()));
    id.unwrap_or_else(|| format!("{file}:{number}"))
}

/// Runs a case on a thread of its own, which is left behind where it doesn't come back.
pub(crate) fn judge(
    line: &str,
    patience: Duration,
    case: impl FnOnce(&str) -> Verdict + Send + 'static,
) -> Verdict {
    let (sender, receiver) = mpsc::channel();
    let line = line.to_owned();
    let spawned = thread::Builder::new().spawn(move || {
        let verdict = catch_unwind(AssertUnwindSafe(|| case(&line)))
            .unwrap_or_else(|_| Err("it panicked".to_owned()));
        // Nobody listens any more where this took too long.
        let _ = sender.send(verdict);
    });
    if let Err(error) = spawned {
        return Err(format!("no thread could be had: {error}"));
    }
    receiver
        .recv_timeout(patience)
        .unwrap_or_else(|_| Err(format!("no answer within {} s", patience.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_panics_or_never_answers_fails_alone() {
        let patience = Duration::from_mins(10);
        assert_eq!(judge("a", patience, |_| Ok(())), Ok(()));
        assert_eq!(
            judge("a", patience, |line| Err(line.to_owned())),
            Err("a".to_owned())
        );
        assert_eq!(
            judge("a", patience, |_| panic!("on purpose")),
            Err("it panicked".to_owned())
        );
        let never = judge("a", Duration::ZERO, |_| {
            thread::park();
            Ok(())
        });
        assert_eq!(never, Err("no answer within 0 s".to_owned()));
    }

    #[test]
    fn a_case_is_judged_by_its_answer() {
        let case = r#"{"id": "x", "area": "y", "template": "{{.}}", "data": 1, "options": "",
            "expect": {"ok": true, "output": "1", "stage": "", "error": ""}}"#;
        assert_eq!(go_template(case), Ok(()));
        assert!(go_template(&case.replace("\"1\"", "\"2\"")).is_err());
        assert!(go_template("no case").is_err());
        let case_of_hcl = |output: &str| {
            let expect = format!(r#"{{"ok": true, "output": "{output}"}}"#);
            format!(r#"{{"id": "x", "area": "y", "expression": "1 + 1", "expect": {expect}}}"#)
        };
        assert_eq!(hcl(&case_of_hcl("2"), PathBuf::new()), Ok(()));
        assert!(hcl(&case_of_hcl("3"), PathBuf::new()).is_err());
        assert!(hcl("no case", PathBuf::new()).is_err());
        let case_of_cloud_init = |merged: &str| {
            let input = r##""parts": [{"content": "#cloud-config\na: yes"}]"##;
            let expect = format!(r#"{{"ok": true, "merged": {{"a": {merged}}}}}"#);
            format!(r#"{{"id": "x", "area": "y", {input}, "expect": {expect}}}"#)
        };
        assert_eq!(cloud_init(&case_of_cloud_init("true")), Ok(()));
        assert!(cloud_init(&case_of_cloud_init("\"yes\"")).is_err());
        assert!(cloud_init("no case").is_err());
        let case_of_bosh = |name: &str| {
            let layout = r#""replicas": 1, "az_count": 1, "versions": [1], "layout": "formula""#;
            let place = r#""namespace": "n", "service_domain": "s""#;
            let input =
                format!(r#"{{"deployment": "d", "instance_group": "g", {layout}, {place}}}"#);
            let service =
                format!(r#"{{"name": "{name}", "dns": "d-g-0.n.s", "selects": ["z0-v1-0"]}}"#);
            let expect = format!(r#"{{"ok": true, "services": [{service}]}}"#);
            format!(r#"{{"id": "x", "kind": "services", "input": {input}, "expect": {expect}}}"#)
        };
        assert_eq!(bosh(&case_of_bosh("d-g-0")), Ok(()));
        assert!(bosh(&case_of_bosh("d-g-1")).is_err());
        assert!(bosh(r#"{"id": "x", "kind": "y"}"#).is_err());
        assert!(bosh("no case").is_err());
        assert_eq!(name(case, "f", 3), "x");
        assert_eq!(name("no case", "f", 3), "f:3");
    }
}
