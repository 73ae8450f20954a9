//! The `nstance` binary: an exit code, and where memory comes from.

fn main() -> std::process::ExitCode {
    // Most of what a run does is to build and drop small things; the system's allocator took a third
    // of the time (`docs/performance.md`). To name mimalloc links it, and its `malloc` is then
    // everyone's: Rust's, for which it is quicker than `#[global_allocator]`, whose every call names
    // an alignment, and SQLite's.
    std::hint::black_box(mimalloc::MiMalloc.version());
    nstance::cli::main()
}
