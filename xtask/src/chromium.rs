//! Chromium, in which the pages of plans are tested.
//!
//! In: the machine. Out: the path of a browser, installed from Debian's packages where that is
//! allowed. Must not: install anything without root's rights.

use crate::{Failure, packages, process};

/// The variable that names the browser for tests.
pub(crate) const PATH: &str = "NSTANCE_TEST_CHROMIUM";

/// What the browser is called on the systems there are.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// The browser's name; installs it on Debian, as root, if there is none.
///
/// Fails with what to install.
pub(crate) fn ensure() -> Result<&'static str, Failure> {
    let install = || packages::may_install() && packages::install("chromium").is_ok();
    let found = find().or_else(|| install().then(find).flatten());
    found.ok_or_else(|| {
        Failure::say(
            "Chromium (`chromium`) is missing. The pages of plans are tested in it.
Install Chromium:
  Debian:  apt-get install --no-install-recommends chromium
  Fedora:  dnf install chromium
  Alpine:  apk add chromium",
        )
    })
}

/// The name of a browser, if there is one.
pub(crate) fn find() -> Option<&'static str> {
    NAMES.into_iter().find(|name| process::exists(name))
}
