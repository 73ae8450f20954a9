//! Python environments with pinned packages, under `target/`.
//!
//! In: a name and the packages. Out: the environment's path, installed into only where the packages
//! aren't those that are there. May not: touch the Python of the machine.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{Failure, process};

/// Makes sure that `target/NAME/venv` has these packages (`NAME==VERSION`), and returns its path.
pub(crate) fn ensure(name: &str, packages: &[&str]) -> Result<PathBuf, Failure> {
    let venv = process::root().join("target").join(name).join("venv");
    // Written last, so an installation that was interrupted is done again.
    let installed = venv.join("installed.txt");
    let wanted = packages.join("\n");
    if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
        return Ok(venv);
    }
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    process::run(
        Command::new(python)
            .args(["-m", "venv", "--clear"])
            .arg(&venv),
    )?;
    process::run(
        Command::new(venv.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet"])
            .arg("--disable-pip-version-check")
            .args(packages),
    )?;
    fs::write(&installed, wanted)?;
    Ok(venv)
}
