//! `nstance completions`: for shells.

use clap::Args;
use clap_complete::Shell;

use super::{Ending, console, exit};

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs `completions`.
pub fn run(command: &Completions, cli: &mut clap::Command) -> Ending {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, cli, "nstance", &mut script);
    console::print(&String::from_utf8_lossy(&script));
    Ok(exit::SUCCESS)
}
