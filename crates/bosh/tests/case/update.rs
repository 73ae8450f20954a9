//! Cases of `update`.

use nstance_bosh::Error;
use nstance_bosh::update::{Update, WatchTime};
use nstance_bosh::value::{Place, Value};
use serde_json::{Value as Json, json};

pub(crate) fn check(case: &Json) -> Result<(), String> {
    let ours = answer(case).map(|mut ours| {
        ours["ok"] = true.into();
        ours
    });
    match ours {
        Ok(ours) => super::same(&ours, &case["expect"]),
        Err(errors) => super::compare_errors(&errors, &case["expect"]),
    }
}

fn answer(case: &Json) -> Result<Json, Vec<Error>> {
    let place = Place::default();
    let block = |key| case.get(key).map(|json| Value::from_json(json, place));
    let (deployment, group) = (block("update"), block("group_update"));
    let size = case["size"].as_u64().unwrap_or_default();
    let update = Update::resolve(deployment.as_ref(), group.as_ref(), place)?;
    let times = |time: WatchTime| json!([time.min, time.max]);
    Ok(json!({
        "canaries": update.canaries.of(size),
        "max_in_flight": update.effective_max_in_flight(size),
        "effective_canaries": update.effective_canaries(size),
        "canary_watch_time": times(update.canary_watch_time),
        "update_watch_time": times(update.update_watch_time),
        "serial": update.serial,
        "vm_strategy": update.vm_strategy.name(),
        "initial_deploy_az_update_strategy": update.initial_deploy_az_update_strategy.name(),
    }))
}
