//! Runs cases of the corpus.

use serde_json::Value as Json;

/// Runs a case: an error says how its answer differs. `None` for kinds that aren't run here.
#[expect(clippy::match_single_binding, reason = "no kind is run yet")]
pub(crate) fn check(case: &Json) -> Option<Result<(), String>> {
    match case["kind"].as_str()? {
        _ => None,
    }
}
