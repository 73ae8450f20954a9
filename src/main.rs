//! The `nstance` binary: an exit code, and where memory comes from.

/// Most of what a run does is to build and drop small things; the system's allocator took a third of
/// the time (`docs/performance.md`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    nstance::cli::main()
}
