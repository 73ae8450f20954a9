//! The client held to botocore: `cargo xtask ec2-cases`, and its part of `cargo xtask test`.
//!
//! In: a seed and how many calls. Out: calls with what botocore sends and reads, as
//! `crates/ec2/tests/client/botocore.rs` takes them. May not: know what is right.

use std::fs;
use std::process::Command;

use nstance_ec2::Operation;

use super::{BOTOCORE, SOURCES};
use crate::test::leave_out;
use crate::{Failure, process, venv};

/// The cases that plain `cargo test` runs, made by `cargo xtask ec2-cases`.
const CORPUS: &str = "crates/ec2/tests/corpora/botocore.jsonl";

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

/// Checks the generated files, then, where it can be built, the client against thousands of calls
/// of botocore's. Without botocore, which is fetched from `PyPI`, nothing of it can be done.
pub(crate) fn test(has_client: bool) -> Result<(), Failure> {
    if let Err(failure) = venv::ensure("botocore", &[BOTOCORE]) {
        return leave_out("What is held to botocore is", failure);
    }
    super::run(&["--check"])?;
    if !has_client {
        return Ok(());
    }
    let path = process::root().join("target/botocore/cases.jsonl");
    fs::write(&path, cases("test", &IN_TESTS)?)?;
    // The features of dependencies depend on what is built together: with others than those of
    // all tests the SDK would be built again.
    process::run(
        process::cargo()
            .args(["test", "--locked", "--workspace", "--all-features"])
            .args(["--test", "client"])
            .env("NSTANCE_EC2_CASES", path),
    )
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
