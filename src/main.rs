//! The `nstance` binary: an exit code, nothing else.

fn main() -> std::process::ExitCode {
    nstance::cli::main()
}
