//! `cargo xtask bench --aws`: what a fleet on AWS costs nstance itself.
//!
//! In: nothing. Out: a table for `docs/performance.md`. May not: count moto's time as ours, which is
//! why this is about processor time and calls.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::account::{self, Account};
use crate::fuzz::random::Random;
use crate::kill::Place as _;
use crate::moto::Moto;
use crate::{Failure, kill, process};

pub(crate) const OPTION: &str = "--aws";
pub(crate) const COMMAND: &str = "cargo xtask bench --aws";

/// How large the fleets are.
const SIZES: [u32; 2] = [100, 1_000];

/// Runs its arguments, and prints the seconds of processor time that they took.
const TIMED: &str = "\
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
sys.exit(code)
";

pub(crate) fn run() -> Result<String, Failure> {
    let build = ["build", "--locked", "--features", "aws", "--bin", "nstance"];
    process::run(process::cargo().args(build))?;
    let program = kill::program()?;
    let moto = Moto::start()?;
    let mut table = String::from(
        "| what | processor time | each instance | calls |\n| --- | ---: | ---: | --- |\n",
    );
    for size in SIZES {
        eprintln!("measuring a fleet of {size}");
        let account = Account::new(moto.address())?;
        let folder = tempfile::tempdir()?;
        let sizes = BTreeMap::from([("web", size)]);
        let configuration = account.configuration(&sizes, &mut Random::new(1));
        std::fs::write(folder.path().join("nstance.jsonc"), configuration)?;
        for (what, words) in [
            ("`apply`, all to create", "apply --auto-approve"),
            ("`plan`, no change", "plan"),
            ("`plan`, no change, again", "plan"),
            ("`destroy`", "destroy --auto-approve --allow-delete all"),
        ] {
            account.proxy().take_calls();
            let seconds = seconds(&moto, &program, folder.path(), words)?;
            let mut calls = BTreeMap::<String, usize>::new();
            for call in account.proxy().take_calls() {
                *calls.entry(call.query.action).or_default() += 1;
            }
            let calls: Vec<String> = calls
                .into_iter()
                .map(|(action, count)| format!("{count} {action}"))
                .collect();
            let each = seconds * 1_000.0 / f64::from(size);
            let _ = writeln!(
                table,
                "| {what}, {size} instances | {seconds:.2} s | {each:.2} ms | {} |",
                calls.join(", ")
            );
        }
    }
    Ok(table)
}

/// The processor time of a command, its own and the kernel's for it.
fn seconds(moto: &Moto, program: &Path, folder: &Path, words: &str) -> Result<f64, Failure> {
    let mut command = Command::new(moto.python());
    command
        .args(["-c", TIMED])
        .arg(program)
        .args(words.split(' '))
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null());
    account::credentials(&mut command);
    let said = process::output(&mut command)?;
    Ok(said.trim().parse()?)
}
