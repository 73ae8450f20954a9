//! Warns of quotas that a plan would exceed.
//!
//! In: instances that a plan creates. Out: messages. Must not: forbid anything; Compute Engine does.

use std::collections::BTreeMap;

use nstance_gce::Operation;
use serde_json::{Value, json};

use crate::provider::WantedCapacity;

use super::calls::Calls;
use super::observe::{items, text};

/// The quota of vCPUs of spot instances.
const SPOT: &str = "PREEMPTIBLE_CPUS";

/// Messages about quotas of the region that creating `wanted` would exceed. What can't be queried is
/// ignored.
pub(super) fn limits_ahead(calls: &Calls, wanted: &[WantedCapacity]) -> Vec<String> {
    let region = calls.place.region.as_str();
    let Ok(answer) = calls.call(Operation::RegionsGet, json!({"region": region})) else {
        return Vec::new();
    };
    let mut asked: BTreeMap<String, f64> = BTreeMap::new();
    for wanted in wanted {
        let count = wanted.count as f64;
        *asked.entry("INSTANCES".to_owned()).or_default() += count;
        let Some(cpus) = cpus(&wanted.instance_type) else {
            continue;
        };
        // A project without that quota takes spot instances from the ordinary one.
        let has_spot = items(&answer, "quotas").any(|quota| {
            text(quota, "metric") == Some(SPOT) && quota["limit"].as_f64() > Some(0.0)
        });
        let metric = metric(&wanted.instance_type, wanted.interruptible && has_spot);
        *asked.entry(metric).or_default() += count * f64::from(cpus);
    }
    let mut messages = Vec::new();
    for (metric, more) in asked {
        let is_it = |quota: &&Value| text(quota, "metric") == Some(&metric);
        let Some(quota) = items(&answer, "quotas").find(is_it) else {
            continue;
        };
        let number = |name: &str| quota.get(name).and_then(Value::as_f64);
        let (Some(limit), Some(usage)) = (number("limit"), number("usage")) else {
            continue;
        };
        if usage + more > limit {
            messages.push(format!(
                "the quota {metric} of {region} is {limit}: {usage} are used, and the plan needs {more} more"
            ));
        }
    }
    messages
}

/// The vCPUs of a machine type, as its name says; `None` if it doesn't.
fn cpus(machine_type: &str) -> Option<u32> {
    let mut parts = machine_type.split('-');
    let family = parts.next()?;
    let rest: Vec<&str> = parts.collect();
    match (family, &rest[..]) {
        ("e2", ["micro" | "small" | "medium"]) => Some(2),
        ("f1" | "g1", _) => Some(1),
        // `custom-4-8192`, `n2-custom-4-8192`, `n2-standard-4`, `c3-standard-4-lssd`.
        ("custom", [cpus, ..]) | (_, [_, cpus, ..]) => cpus.parse().ok(),
        _ => None,
    }
}

/// The quota that counts a machine type's vCPUs. The first families share one.
fn metric(machine_type: &str, interruptible: bool) -> String {
    if interruptible {
        return SPOT.to_owned();
    }
    let family = machine_type.split('-').next().unwrap_or_default();
    match family {
        "n1" | "e2" | "f1" | "g1" | "custom" => "CPUS".to_owned(),
        family => format!("{}_CPUS", family.to_uppercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_machine_types_say_their_size() {
        for (machine_type, expected, quota) in [
            ("e2-medium", Some(2), "CPUS"),
            ("n1-standard-4", Some(4), "CPUS"),
            ("n2-custom-6-3072", Some(6), "N2_CPUS"),
            ("custom-2-4096", Some(2), "CPUS"),
            ("c3-standard-8-lssd", Some(8), "C3_CPUS"),
            ("g1-small", Some(1), "CPUS"),
            ("unheard", None, "UNHEARD_CPUS"),
        ] {
            assert_eq!(cpus(machine_type), expected, "{machine_type}");
            assert_eq!(metric(machine_type, false), quota, "{machine_type}");
        }
    }
}
