//! Packages of Debian that tests need.
//!
//! In: the machine. Out: what is installed. Must not: install anything without root's rights.

use std::process::Command;

use crate::{Failure, process};

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
