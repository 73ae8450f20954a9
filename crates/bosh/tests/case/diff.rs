//! Cases of `diff`.

use nstance_bosh::diff::diff;
use nstance_bosh::yaml::read;
use serde_json::{Value as Json, json};

pub(crate) fn check(case: &Json) -> Result<(), String> {
    let manifest = |key: &str| {
        let text = case[key].as_str().unwrap_or_default();
        read(text, 0).map_err(|error| error.to_string())
    };
    let redact = case["redact"] != false;
    let lines: Json = diff(&manifest("before")?, &manifest("after")?, redact)
        .into_iter()
        .map(|line| json!([line.change.sign(), line.text]))
        .collect();
    super::compare(case, Ok(("lines", lines)))
}
