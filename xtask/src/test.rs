//! `cargo xtask test`: what the tests need, then the tests; and, where everything is tested, the
//! simulation and the kills.
//!
//! In: arguments for `cargo test`. Out: its output. May not: install anything but Python packages
//! under `target/`.
//!
//! Most tests need no service, no account and no network: the cloud is embedded, states are files.
//! All they need beyond Rust is a C compiler, for the `SQLite` that is compiled in. The tests of
//! AWS need the client, which takes minutes to build, and moto, which is Python: they run where
//! everything is tested, and where they are asked for by feature or package.

use crate::moto::{self, Moto};
use crate::{Failure, cloud_init, ec2, kill, memory, process, simulate};

/// The package with the proxy that stands before moto.
const PROXY: &str = "nstance-ec2-proxy";
/// How many random stacks of userdata the real cloud-init is given.
const CLOUD_INIT_CASES: &str = "200";

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    check_compiler()?;
    if arguments.is_empty() {
        return run_all();
    }
    let moto = wants_moto(arguments).then(Moto::start).transpose()?;
    cargo_test(arguments, moto.as_ref())
}

/// Everything there is, as far as this machine goes. In CI it goes all the way.
fn run_all() -> Result<(), Failure> {
    let moto = match check_memory().and_then(|()| Moto::start()) {
        Ok(moto) => Some(moto),
        Err(failure) => {
            leave_out("The tests of AWS are", failure)?;
            None
        }
    };
    // One set of features for all: what the clients are made of is built once.
    let features: &[&str] = if moto.is_some() {
        &["--all-features"]
    } else {
        &[]
    };
    cargo_test(features, moto.as_ref())?;
    drop(moto);
    ec2::proof::test(!features.is_empty())?;
    if let Err(failure) = cloud_init::run(&["--cases", CLOUD_INIT_CASES]) {
        leave_out("The comparison with the real cloud-init is", failure)?;
    }
    simulate::run(&["--mutants"])?;
    simulate::run(&["--points"])?;
    simulate::run(&["--seeds", simulate::IN_TESTS])?;
    // The program is the one that was just tested; another set of features would be built anew.
    kill::run(&["--rounds", kill::IN_TESTS, "--built"])?;
    if features.is_empty() {
        return Ok(());
    }
    kill::run(&["--aws", "--rounds", kill::IN_TESTS, "--built"])
}

/// Says that something this machine can't do is left out; in CI that is a failure.
pub(crate) fn leave_out(what: &str, Failure(why): Failure) -> Result<(), Failure> {
    if in_ci() {
        return Err(Failure(why));
    }
    eprintln!("{why}\n{what} left out; everything else runs.");
    Ok(())
}

/// Whether this is CI, where nothing is left out.
fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true")
}

fn cargo_test(arguments: &[&str], moto: Option<&Moto>) -> Result<(), Failure> {
    let mut tests = process::cargo();
    tests.arg("test").arg("--locked");
    // A package that was asked for is asked for in place of all. Benchmarks are not run: clippy
    // compiles them, and what they measure is a matter of `cargo xtask bench`.
    if !names_any(arguments, &["-p", "--package", "--workspace"]) {
        tests.arg("--workspace");
    }
    if let Some(moto) = moto {
        tests.env(moto::ADDRESS, moto.address().to_string());
    }
    process::run(tests.args(arguments))
}

/// Whether this machine has the memory that the clouds' clients take to build.
fn check_memory() -> Result<(), Failure> {
    match memory::total() {
        Some(bytes) if bytes < memory::FOR_CLIENTS => Err(Failure::say(format!(
            "Building the client for AWS takes {} GB of memory; this machine has {}.",
            memory::FOR_CLIENTS / 1_000_000_000,
            bytes / 1_000_000_000
        ))),
        _ => Ok(()),
    }
}

/// Whether tests are asked for that need moto.
fn wants_moto(arguments: &[&str]) -> bool {
    names_any(arguments, &["--features", "-F", "--all-features"])
        || arguments.iter().any(|argument| argument.contains(PROXY))
}

fn names_any(arguments: &[&str], options: &[&str]) -> bool {
    arguments
        .iter()
        .take_while(|argument| **argument != "--")
        .any(|argument| {
            let name = argument.split('=').next().unwrap_or(argument);
            options.contains(&name)
        })
}

/// Says what to install before a build script says it in a hundred lines.
fn check_compiler() -> Result<(), Failure> {
    let given = std::env::var("CC").ok().filter(|name| !name.is_empty());
    let compiler = given.as_deref().unwrap_or("cc");
    if process::exists(compiler) {
        return Ok(());
    }
    Err(Failure::say(format!(
        "There is no C compiler (`{compiler}`), which the SQLite that is compiled in needs.
Install one, then run this again:
  Debian, Ubuntu:  apt-get install gcc libc6-dev
  Fedora:          dnf install gcc
  Alpine:          apk add gcc musl-dev
  macOS:           xcode-select --install"
    )))
}

#[cfg(test)]
mod tests {
    use super::{names_any, wants_moto};

    #[test]
    fn moto_runs_for_tests_that_need_it() {
        for (arguments, wanted) in [
            (&["--features", "aws", "aws"] as &[&str], true),
            (&["--features=aws"], true),
            (&["--all-features"], true),
            (&["-p", "nstance-ec2-proxy"], true),
            (&["--package=nstance-ec2-proxy"], true),
            (&["-p", "nstance", "plan"], false),
            (&["plan::"], false),
        ] {
            assert_eq!(wants_moto(arguments), wanted, "{arguments:?}");
        }
    }

    #[test]
    fn options_are_seen_before_the_dashes_only() {
        for (arguments, seen) in [
            (&["-p", "x"] as &[&str], true),
            (&["--package=x"], true),
            (&["name_of_a_test"], false),
            (&["--", "-p"], false),
            (&[], false),
        ] {
            assert_eq!(
                names_any(arguments, &["-p", "--package"]),
                seen,
                "{arguments:?}"
            );
        }
    }
}
