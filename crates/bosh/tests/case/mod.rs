//! Runs cases of the corpus.

mod diff;
mod e2e;
mod interpolate;
mod resolve;
mod ruby;
mod services;
mod update;

use nstance_bosh::Error;
use serde_json::Value as Json;

/// Runs a case: an error says how its answer differs. `None` for a kind that another crate runs.
pub(crate) fn check(case: &Json) -> Option<Result<(), String>> {
    match case["kind"].as_str()? {
        "bpm" => Some(e2e::check_bpm(case, &ruby::Ruby)),
        "diff" => Some(diff::check(case)),
        "e2e" => Some(e2e::check(case, &ruby::Ruby)),
        "interpolate" => Some(interpolate::check(case)),
        "resolve" => Some(resolve::check(case)),
        "services" => Some(services::check(case)),
        "update" => Some(update::check(case)),
        // `nstance_erb` runs these.
        "render" => None,
        kind => Some(Err(format!("unknown kind: {kind}"))),
    }
}

/// Compares an answer with the expected one.
pub(crate) fn same(ours: &Json, expected: &Json) -> Result<(), String> {
    if ours == expected {
        return Ok(());
    }
    Err(format!("{ours}\nexpected {expected}"))
}

/// Compares an answer under a key, or errors, with what a case expects.
pub(crate) fn compare(case: &Json, answer: Result<(&str, Json), Vec<Error>>) -> Result<(), String> {
    let expected = &case["expect"];
    match answer {
        Ok((key, ours)) if expected["ok"] == true => same(&ours, &expected[key]),
        Ok((_, ours)) => Err(format!("{ours}\nexpected an error: {}", expected["error"])),
        Err(errors) => compare_errors(&errors, expected),
    }
}

/// Compares errors with the expected one. The real programs report the first, or join several lines.
pub(crate) fn compare_errors(errors: &[Error], expected: &Json) -> Result<(), String> {
    let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    let joined = messages.join("\n");
    let is_same = match (&expected["error"], &expected["contains"]) {
        (Json::Null, _) => false,
        (_, Json::String(part)) => joined.contains(part.as_str()),
        (error, _) => *error == joined || *error == messages[0],
    };
    if is_same {
        return Ok(());
    }
    Err(format!("{joined}\nexpected {expected}"))
}
