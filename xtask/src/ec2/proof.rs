//! The client held to botocore: `cargo xtask ec2-cases`, and its part of `cargo xtask test`.
//!
//! In: a seed and how many calls. Out: calls with what botocore sends and reads, as
//! `ec2/tests/client/botocore.rs` takes them. May not: know what is right.

use std::fs;
use std::process::Command;

use nstance_ec2::Operation;

use super::{BOTOCORE, SOURCES};
use crate::{Failure, process, venv};

/// The cases that plain `cargo test` runs, made by `cargo xtask ec2-cases`.
const CORPUS: &str = "ec2/tests/corpora/botocore.jsonl";

/// How much memory building the SDK takes, in GiB: rustc alone needs 7.4.
const MEMORY: u64 = 10;

/// Calls of `RunInstances`, and of each other operation.
struct Count {
    run_instances: u32,
    others: u32,
}

const IN_CORPUS: Count = Count {
    run_instances: 16,
    others: 2,
};

const IN_TESTS: Count = Count {
    run_instances: 2000,
    others: 30,
};

/// Writes the corpus anew.
pub(crate) fn corpus(arguments: &[&str]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::say("usage: cargo xtask ec2-cases"));
    }
    let cases = cases("corpus", &IN_CORPUS)?;
    fs::write(process::root().join(CORPUS), &cases)?;
    println!("{CORPUS}: {} calls", cases.lines().count());
    Ok(())
}

/// Checks the generated files, then the client against thousands of calls of botocore's.
///
/// What it needs is fetched from `PyPI`, and the SDK needs memory; where one of them is missing, it
/// says so and leaves the rest to those who have it. In CI that is a failure.
pub(crate) fn test() -> Result<(), Failure> {
    if let Err(Failure(reason)) = venv::ensure("botocore", &[BOTOCORE]) {
        return leave_out(&format!("botocore can't be installed: {reason}"));
    }
    super::run(&["--check"])?;
    if let Some(memory) = memory().filter(|memory| *memory < MEMORY) {
        return leave_out(&format!(
            "the client of AWS isn't tested: its SDK takes {MEMORY} GiB to build, and there are {memory}"
        ));
    }
    let path = process::root().join("target/botocore/cases.jsonl");
    fs::write(&path, cases("test", &IN_TESTS)?)?;
    // Both packages, since the features of dependencies depend on what is built together, and with
    // others the SDK would be built again.
    process::run(
        process::cargo()
            .args(["test", "--locked", "--features", "aws"])
            .args(["-p", "nstance", "-p", "nstance-ec2", "--test", "client"])
            .env("NSTANCE_EC2_CASES", path),
    )
}

fn leave_out(reason: &str) -> Result<(), Failure> {
    if std::env::var_os("CI").is_some_and(|value| value == "true") {
        return Err(Failure::say(reason));
    }
    eprintln!("left out: {reason}");
    Ok(())
}

/// A call a line.
fn cases(seed: &str, count: &Count) -> Result<String, Failure> {
    let python = venv::ensure("botocore", &[BOTOCORE])?.join("bin/python");
    let operations = Operation::ALL.iter().map(|operation| {
        let source = SOURCES
            .iter()
            .find(|source| source.service == operation.service());
        source.map_or_else(String::new, |source| {
            format!("{}/{}/{}", source.model, source.version, operation.name())
        })
    });
    process::output(
        Command::new(python)
            .arg(process::root().join("xtask/src/ec2/cases.py"))
            .args([
                seed,
                &count.run_instances.to_string(),
                &count.others.to_string(),
            ])
            .args(operations),
    )
}

/// The machine's memory in GiB, where Linux says it.
fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    memory_of(&text)
}

fn memory_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    // A machine of 16 GiB has somewhat less for programs.
    Some((kibibytes + 512 * 1024) / (1024 * 1024))
}

#[cfg(test)]
mod tests {
    use super::memory_of;

    #[test]
    fn memory_is_read_in_gibibytes() {
        for (text, memory) in [
            ("MemTotal:       24630352 kB\nMemFree: 1 kB\n", Some(23)),
            ("MemFree: 1 kB\nMemTotal: 8038032 kB\n", Some(8)),
            ("", None),
        ] {
            assert_eq!(memory_of(text), memory);
        }
    }
}
