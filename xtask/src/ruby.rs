//! Ruby, which evaluates the ERB of job templates in tests.
//!
//! In: the machine. Out: whether Ruby is there, installed from Debian's packages where that is
//! allowed. Must not: install anything without root's rights.

use crate::{Failure, packages, process};

/// Installs Ruby on Debian, as root, if there is none.
///
/// Fails with what to install.
pub(crate) fn ensure() -> Result<(), Failure> {
    let install = || packages::may_install() && packages::install("ruby").is_ok();
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
