//! Writes `update` blocks as nstance's.
//!
//! In: a group's settings and its number of instances. Out: the native `update`, and which groups a
//! group comes after. Must not: read blocks; [`nstance_bosh::update`] does.

use std::time::Duration;

use nstance_bosh::update::{Update, VmStrategy};
use serde_json::{Value as Json, json};

use crate::config::duration::shown;

/// How long the Director waits for a new VM's agent, in milliseconds. Its watch times begin after
/// that, nstance's deadline begins with the creation.
const AGENT_TIMEOUT: u64 = 600_000;

/// The native `update` of a group with `size` instances in `zones` zones.
pub(super) fn native(update: &Update, size: u32, zones: usize) -> Json {
    let most = i64::from(size.max(1));
    let in_flight = update.effective_max_in_flight(size.into()).min(most);
    let (order, unavailable, surge) = match update.vm_strategy {
        VmStrategy::DeleteCreate => ("delete_first", in_flight, 0),
        VmStrategy::CreateSwapDelete => ("create_first", 0, in_flight),
    };
    let (canary, later) = (update.canary_watch_time, update.update_watch_time);
    let deadline = canary.max.max(later.max).saturating_add(AGENT_TIMEOUT);
    let canaries = update.effective_canaries(size.into()).max(0);
    let mut native = json!({
        "order": order,
        "max_unavailable": unavailable,
        "max_surge": surge,
        "canaries": canaries,
        "health": {
            "check": "running",
            "min_healthy_time": duration(later.min),
            "deadline": duration(deadline),
        },
    });
    // Canaries are watched longer than the others.
    let pause = canary.min.saturating_sub(later.min);
    if canaries > 0 && pause > 0 {
        native["canary_pause"] = duration(pause).into();
    }
    if zones > 1 {
        native["zone_order"] = "one_at_a_time".into();
    }
    native
}

/// The groups that each group comes after, given which of them are serial: all of the step before.
/// Neighbours that aren't serial make one step, every serial group is a step of its own.
pub(super) fn predecessors(serial: &[bool]) -> Vec<Vec<usize>> {
    let mut steps: Vec<Vec<usize>> = Vec::new();
    let mut all = Vec::new();
    for (index, &is_serial) in serial.iter().enumerate() {
        let is_joined = !is_serial && index > 0 && !serial[index - 1];
        if !is_joined {
            steps.push(Vec::new());
        }
        let before = steps.len().checked_sub(2).map(|step| steps[step].clone());
        all.push(before.unwrap_or_default());
        if let Some(step) = steps.last_mut() {
            step.push(index);
        }
    }
    all
}

fn duration(milliseconds: u64) -> String {
    if milliseconds.is_multiple_of(1000) {
        shown(Duration::from_millis(milliseconds))
    } else {
        format!("{milliseconds}ms")
    }
}

#[cfg(test)]
mod tests {
    use nstance_bosh::value::Place;
    use nstance_bosh::yaml::read;

    use super::*;

    #[test]
    fn settings_have_their_equals() {
        let block = "{canaries: 1, max_in_flight: 25%, canary_watch_time: 30000-240000, \
                     update_watch_time: 5000}";
        let health = |least: &str, deadline: &str| json!({"check": "running", "min_healthy_time": least, "deadline": deadline});
        for (own, size, zones, expected) in [
            (
                "{}",
                8,
                1,
                json!({
                    "order": "delete_first", "max_unavailable": 2, "max_surge": 0, "canaries": 1,
                    "canary_pause": "25s", "health": health("5s", "14m"),
                }),
            ),
            // At least one, and the zones one after another.
            (
                "{canaries: 0, canary_watch_time: 1500, update_watch_time: 1500-2500}",
                2,
                2,
                json!({
                    "order": "delete_first", "max_unavailable": 1, "max_surge": 0, "canaries": 0,
                    "health": health("1500ms", "602500ms"), "zone_order": "one_at_a_time",
                }),
            ),
            (
                "{vm_strategy: create-swap-delete, max_in_flight: 30, canaries: 50%}",
                4,
                1,
                json!({
                    "order": "create_first", "max_unavailable": 0, "max_surge": 4, "canaries": 2,
                    "canary_pause": "25s", "health": health("5s", "14m"),
                }),
            ),
            // A group without instances.
            (
                "{max_in_flight: -3, canaries: -1}",
                0,
                1,
                json!({
                    "order": "delete_first", "max_unavailable": 1, "max_surge": 0, "canaries": 0,
                    "health": health("5s", "14m"),
                }),
            ),
        ] {
            let (block, group) = (read(block, 0).unwrap(), read(own, 0).unwrap());
            let update = Update::resolve(Some(&block), Some(&group), Place::default()).unwrap();
            assert_eq!(native(&update, size, zones), expected, "{own}");
        }
    }

    #[test]
    fn serial_groups_come_one_after_another() {
        let (serial, parallel) = (true, false);
        for (groups, expected) in [
            (vec![], vec![]),
            (vec![serial, serial, serial], vec![vec![], vec![0], vec![1]]),
            (
                vec![serial, parallel, parallel, serial],
                vec![vec![], vec![0], vec![0], vec![1, 2]],
            ),
            (vec![parallel, parallel], vec![vec![], vec![]]),
            (
                vec![parallel, serial, parallel],
                vec![vec![], vec![0], vec![1]],
            ),
        ] {
            assert_eq!(predecessors(&groups), expected, "{groups:?}");
        }
    }
}
