//! `nstance init`: a commented starter configuration.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;

use super::failure::Failure;
use super::{Ending, Globals, console, exit, unplaced};
use crate::diagnostic::Diagnostic;

/// The starter; a test validates, plans and applies it.
const STARTER: &str = include_str!("starter.jsonc");

/// Options of `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// The folder to write it to
    #[arg(default_value = ".")]
    folder: PathBuf,
}

/// Runs `init`.
pub fn run(globals: &Globals, command: &Init) -> Ending {
    let path = command.folder.join("nstance.jsonc");
    write(&path).map_err(unplaced)?;
    if !globals.quiet {
        console::print(&format!(
            "Wrote {0}\n\nIt describes a small fleet on the embedded cloud. Try it:\n\n  nstance -c {0} plan\n  nstance -c {0} apply\n",
            path.display()
        ));
    }
    Ok(exit::SUCCESS)
}

fn write(path: &std::path::Path) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // `create_new` never overwrites a file, even one created meanwhile.
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path);
    match file {
        Ok(mut file) => Ok(file.write_all(STARTER.as_bytes())?),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Failure::new(
            Diagnostic::error(format!(
                "a configuration exists already: {}",
                path.display()
            ))
            .hint("Name another folder: nstance init FOLDER"),
        )),
        Err(error) => Err(Failure::say(format!("{error}: {}", path.display()))),
    }
}
