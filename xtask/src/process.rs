//! Other programs, run from the root of the repository.
//!
//! In: a command line. Out: whether it went well. May not: hide what it prints.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// The folder that cargo builds into.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// The cargo that runs this.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // What cargo says of this package would be taken for the others'.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command and waits; a failure names it.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let shown = shown(command);
    eprintln!("+ {shown}");
    let status = command
        .status()
        .map_err(|error| Failure::say(format!("{shown}: {error}")))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::say(format!("failed ({status}): {shown}")))
}

/// Runs a command and gives what it prints on standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let shown = shown(command);
    eprintln!("+ {shown}");
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::say(format!("{shown}: {error}")))?;
    if !output.status.success() {
        return Err(Failure::say(format!("failed ({}): {shown}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program can be started.
pub(crate) fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
