//! `cargo xtask test`: what the tests need, then the tests; and, where everything is tested, the
//! simulation and the kills.
//!
//! In: arguments for `cargo test`. Out: its output. May not: install anything but under `target/`.
//!
//! The tests need no service, no account and no network: the cloud is embedded, states are files.
//! All they need beyond Rust is a C compiler, for the `SQLite` that is compiled in. Without
//! arguments the clients of clouds are tested as well, for which Python packages are fetched.

use crate::{Failure, ec2, kill, process, simulate};

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    check_compiler()?;
    let mut tests = process::cargo();
    tests.arg("test").arg("--locked");
    // A package that was asked for is asked for in place of all. Benchmarks are not run: clippy
    // compiles them, and what they measure is a matter of `cargo xtask bench`.
    if !names_any(arguments, &["-p", "--package", "--workspace"]) {
        tests.arg("--workspace");
    }
    process::run(tests.args(arguments))?;
    if !arguments.is_empty() {
        return Ok(());
    }
    ec2::proof::test()?;
    simulate::run(&["--mutants"])?;
    simulate::run(&["--points"])?;
    simulate::run(&["--seeds", simulate::IN_TESTS])?;
    kill::run(&["--rounds", kill::IN_TESTS])
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
    use super::names_any;

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
