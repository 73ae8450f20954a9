//! Chores of this repository: `cargo xtask test`, `conformance`, `simulate`,
//! `kill`, `fuzz-gotemplate`, `sprig-corpus`, `terraform-corpus`, `gen-ec2-args`,
//! `ec2-cases`, `bench`.
//!
//! In: arguments. Out: what the chore prints, and whether it went well. May not: be needed to build
//! or to use nstance.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are programs for a terminal, and nothing uses them as a library"
)]

mod account;
mod actionlint;
mod bench;
mod bench_aws;
#[path = "../../crates/bosh/tests/case/mod.rs"]
#[expect(clippy::unwrap_used, reason = "a case that panics fails")]
mod bosh_case;
mod chromium;
mod cloud_init;
mod conformance;
mod discovery;
mod ec2;
#[path = "../../crates/erb/tests/common/corpus_case.rs"]
mod erb_case;
mod fuzz;
mod kill;
mod measure;
mod memory;
mod moto;
#[path = "../../tests/it/nstance_case.rs"]
mod nstance_case;
mod packages;
mod postgres;
mod process;
mod project;
mod ruby;
mod simulate;
mod sprig;
mod templates;
mod terraform;
mod test;
mod venv;
#[path = "../../tests/it/yandex_case.rs"]
mod yandex_case;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test                            run all tests of the default features
cargo xtask test --all                      also the clients of clouds, simulations and kills
cargo xtask test ARGS…                      run `cargo test ARGS…` with what the tests need
cargo xtask conformance gotemplate FILE…    run the cases of a corpus
cargo xtask conformance hcl FILE…           the same against Terraform's answers
cargo xtask conformance nstance FILE…       configurations of the Nstance server
cargo xtask conformance yandex FILE…        instance groups of Yandex Cloud
cargo xtask conformance bosh FILE…          manifests and job templates of BOSH (needs Ruby)
cargo xtask simulate --seeds N --from S     whole lifetimes of random fleets, every fault included
                                            --minutes M: end after that; --jobs J: processes
                                            --tell: say what happens; --mutants: break nstance
                                            in each way there is, and see that it is noticed
                                            --points, --disk: every fault, without chance
cargo xtask kill --rounds N [--from S]      kill the real program at random moments of apply;
                                            --aws, --gcp: on servers that stand for them
                                            --aws: against moto; --built: as it was built last
cargo xtask fuzz-gotemplate --minutes N     look for differences from Go (see CONTRIBUTING.md)
cargo xtask fuzz-seeds                      the corpora, as cargo-fuzz's targets take them
cargo xtask sprig-corpus                    ask the real Sprig about each case of its corpus
cargo xtask terraform-corpus                ask Terraform anew for tests/corpora/hcl.jsonl
cargo xtask cloud-init --cases N [--from S] give random layers of userdata to the real cloud-init
cargo xtask gen-ec2-args [--check]          the code between JSON and AWS's SDKs, from the models
cargo xtask ec2-cases                       calls as botocore makes them, for the tests of ec2/
cargo xtask bench [--up-to N] [--quick]     measure, and write the tables of docs/performance.md
                                            --up-to: no fleet larger than N (100000)
                                            --quick: the planner only, no `cargo bench`
cargo xtask bench --aws                     an apply against moto: processor time, calls
cargo xtask bench --templates               the template engine only, against Go and other crates";

/// Why a chore ended badly, in words for a terminal; empty where it was said already.
struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl Failure {
    fn say(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["test", ref rest @ ..] => test::run(rest),
        ["conformance", kind, ref files @ ..]
            if conformance::KINDS.contains(&kind) && !files.is_empty() =>
        {
            conformance::run(kind, files)
        }
        ["conformance", ..] => Err(Failure::say(
            "usage: cargo xtask conformance gotemplate|hcl|cloud-init|nstance|yandex|bosh FILE…",
        )),
        ["cloud-init", ref rest @ ..] => cloud_init::run(rest),
        ["fuzz-gotemplate", ref rest @ ..] => fuzz::run(rest),
        ["fuzz-seeds"] => fuzz::seeds::run(),
        ["simulate", ref rest @ ..] => simulate::run(rest),
        ["kill", ref rest @ ..] => kill::run(rest),
        ["sprig-corpus"] => sprig::run(),
        ["terraform-corpus"] => terraform::run(),
        ["gen-ec2-args", ref rest @ ..] => ec2::run(rest),
        ["ec2-cases", ref rest @ ..] => ec2::proof::corpus(rest),
        ["bench", ref rest @ ..] => bench::run(rest),
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(Failure::say(HELP)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(text)) => {
            if !text.is_empty() {
                eprintln!("{text}");
            }
            ExitCode::FAILURE
        }
    }
}
