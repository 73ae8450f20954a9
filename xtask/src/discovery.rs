//! Google's own description of Compute Engine's API, which the tests' server checks calls against.
//!
//! In: nothing. Out: where the description is, installed from a package under `target/` once. Must not:
//! keep a copy in the repository.

use std::path::PathBuf;

use crate::{Failure, venv};

/// The variable that tells tests where it is.
pub(crate) const PATH: &str = "NSTANCE_TEST_DISCOVERY";

/// The package that has it, without what it depends on: nothing of it is run.
const PACKAGE: &str = "google-api-python-client==2.202.0";

/// Where it is in the package.
const DOCUMENT: &str = "googleapiclient/discovery_cache/documents/compute.v1.json";

/// Makes sure that the description is there, and returns its path.
pub(crate) fn ensure() -> Result<PathBuf, Failure> {
    let venv = venv::ensure("google", &["--no-deps", PACKAGE]).map_err(|Failure(why)| {
        Failure::say(format!(
            "{why}\nThe description of Compute Engine's API needs Python 3 with venv and pip, and PyPI once.
  Debian, Ubuntu:  apt-get install python3 python3-venv"
        ))
    })?;
    let libraries = std::fs::read_dir(venv.join("lib"))?;
    let mut found = libraries
        .filter_map(Result::ok)
        .map(|folder| folder.path().join("site-packages").join(DOCUMENT))
        .filter(|path| path.is_file());
    found
        .next()
        .ok_or_else(|| Failure::say(format!("{PACKAGE} has no {DOCUMENT}")))
}
