//! Cases of `interpolate`.

use nstance_bosh::Error;
use nstance_bosh::interpolate::{Options, interpolate};
use nstance_bosh::yaml::{read_as_cli, read_vars};
use serde_json::Value as Json;

pub(crate) fn check(case: &Json) -> Result<(), String> {
    super::compare(case, answer(case).map(|output| ("output", output)))
}

fn answer(case: &Json) -> Result<Json, Vec<Error>> {
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let read = |json: &Json, file| read_as_cli(&text(json), file).map_err(|error| vec![error]);
    let ops = case["ops"].as_array().cloned().unwrap_or_default();
    let ops: Result<Vec<_>, _> = ops
        .iter()
        .zip(2..)
        .map(|(ops, file)| read(ops, file))
        .collect();
    let options = Options {
        var_errs: case["var_errs"] == true,
        var_errs_unused: case["var_errs_unused"] == true,
    };
    let manifest = read(&case["manifest"], 0)?;
    let vars = read_vars(&text(&case["vars"]), 1).map_err(|error| vec![error])?;
    Ok(interpolate(&manifest, &ops?, &[vars], options)?.to_json())
}
