//! Loads a whole configuration from a path or a text.
//!
//! In: a path or a text, and input variables. Out: [`Loaded`]: a configuration, or all errors of
//! the stage that failed. Must not: print, or read files that the configuration doesn't name.

use std::path::Path;

use crate::check::{Purpose, check};
use crate::config::decode::Draft;
use crate::config::load::{Loaded, decode_files, decode_text};
use crate::config::variables::Given;
use crate::diagnostic::Reported;

/// Loads a configuration to be planned: `path` as given, or that of `working_dir`.
pub fn load(path: Option<&Path>, working_dir: &Path, given: &Given) -> Loaded {
    load_for(Purpose::Plan, path, working_dir, given)
}

/// Loads a configuration for the given purpose.
pub fn load_for(
    purpose: Purpose,
    path: Option<&Path>,
    working_dir: &Path,
    given: &Given,
) -> Loaded {
    let (loaded, draft) = decode_files(path, working_dir, given);
    checked(loaded, draft, purpose)
}

/// Loads a configuration from a text. Messages call it `name`, whose extension selects the
/// language. Its functions can't read files.
pub fn load_text(purpose: Purpose, name: &str, text: &str, given: &Given) -> Loaded {
    let (loaded, draft) = decode_text(name, text, given);
    checked(loaded, draft, purpose)
}

/// Checks references and the provider's rules.
fn checked(mut loaded: Loaded, draft: Result<Draft, Reported>, purpose: Purpose) -> Loaded {
    let config = draft.and_then(|draft| {
        check(&draft, purpose, &loaded.sources, &mut loaded.findings);
        draft.finish(&loaded.findings)
    });
    loaded.finish(config)
}
