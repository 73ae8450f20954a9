//! The `nstance` binary: an exit code, and the allocator.

/// A plan of 100,000 instances takes a sixth less time than with the system's allocator
/// (`docs/performance.md`).
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    nstance::cli::main()
}
