//! Ruby, which evaluates the ERB of job templates in tests.
//!
//! In: the machine. Out: whether Ruby is there, installed from Debian's packages where that is
//! allowed. Must not: install anything without root's rights.

use std::process::Command;

use crate::{Failure, process};

/// Installs Ruby on Debian, as root, if there is none.
///
/// Fails with what to install.
pub(crate) fn ensure() -> Result<(), Failure> {
    let install = || may_install() && install("ruby").is_ok();
    if process::exists("ruby") || install() && process::exists("ruby") {
        return Ok(());
    }
    Err(Failure::say(
        "Ruby (`ruby`) is missing. It evaluates the ERB of BOSH's job templates.
Install Ruby 3:
  Debian, Ubuntu:  apt-get install --no-install-recommends ruby
  Fedora:          dnf install ruby
  Alpine:          apk add ruby
  macOS:           brew install ruby",
    ))
}

/// Whether this may install packages of Debian.
pub(crate) fn may_install() -> bool {
    is_root() && process::exists("apt-get")
}

/// Whether this runs as root.
pub(crate) fn is_root() -> bool {
    let user = Command::new("id").arg("-u").output();
    user.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// Installs a package of Debian.
pub(crate) fn install(package: &str) -> Result<(), Failure> {
    process::run(Command::new("apt-get").args(["update", "-qq"]))?;
    process::run(
        Command::new("apt-get")
            .args(["install", "-y", "-qq", "--no-install-recommends", package])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}
