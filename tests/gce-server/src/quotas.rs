//! Quotas: how much a region's instances and disks may use.
//!
//! In: limits that a test set; an instance that is to run. Out: what it would exceed. Must not:
//! limit a metric that has no limit.

use serde_json::{Value, json};

use crate::machine::MachineType;
use crate::world::{World, items, last, region};

/// A use of a metric.
type Use = (String, f64);

/// What an instance would exceed in a region, as Google says it.
pub(crate) fn exceeded(world: &World, region: &str, resource: &Value) -> Option<String> {
    let used = used(world, region);
    wanted(resource).into_iter().find_map(|(metric, amount)| {
        let limit = *world.quotas.get(&(region.to_owned(), metric.clone()))?;
        let before = sum(&used, &metric);
        // What is stopped still counts as an instance when it starts again.
        let is_there = world
            .instances
            .values()
            .any(|one| one.resource["id"] == resource["id"]);
        let amount = if is_there && metric == "INSTANCES" {
            0.0
        } else {
            amount
        };
        (before + amount > limit)
            .then(|| format!("Quota '{metric}' exceeded.  Limit: {limit:.1} in region {region}."))
    })
}

/// The quotas of `regions.get`.
pub(crate) fn of_region(world: &World, region: &str) -> Vec<Value> {
    let used = used(world, region);
    let of_it = world.quotas.iter().filter(|((one, _), _)| one == region);
    let quota = |((_, metric), limit): (&(String, String), &f64)| json!({"metric": metric, "limit": limit, "usage": sum(&used, metric)});
    of_it.map(quota).collect()
}

fn sum(used: &[Use], metric: &str) -> f64 {
    let of_it = used.iter().filter(|(one, _)| one == metric);
    // Not `sum`: that of nothing is -0.
    of_it.fold(0.0, |sum, (_, amount)| sum + amount)
}

fn used(world: &World, of: &str) -> Vec<Use> {
    let mut used = Vec::new();
    for ((zone, _), instance) in &world.instances {
        let resource = &instance.resource;
        if region(zone) != of {
            continue;
        }
        // Stopped instances have no CPUs.
        let is_stopped =
            ["TERMINATED", "SUSPENDED"].contains(&resource["status"].as_str().unwrap_or(""));
        let all = wanted(resource).into_iter();
        used.extend(all.filter(|(metric, _)| !is_stopped || metric == "INSTANCES"));
    }
    used
}

/// What a running instance uses.
fn wanted(resource: &Value) -> Vec<Use> {
    let machine = last(resource["machineType"].as_str().unwrap_or_default());
    let mut wanted = vec![("INSTANCES".to_owned(), 1.0)];
    if let Some(machine) = MachineType::parse(machine) {
        let cpus = machine.cpus as f64;
        let is_spot = resource["scheduling"]["preemptible"] == true
            || resource["scheduling"]["provisioningModel"] == "SPOT";
        let metric = match &*machine.family {
            _ if is_spot => "PREEMPTIBLE_CPUS".to_owned(),
            "e2" | "n1" => "CPUS".to_owned(),
            family => format!("{}_CPUS", family.to_ascii_uppercase()),
        };
        wanted.push((metric, cpus));
    }
    let interfaces = items(&resource["networkInterfaces"]).iter();
    let addresses = interfaces.map(|interface| items(&interface["accessConfigs"]).len());
    wanted.push((
        "IN_USE_ADDRESSES".to_owned(),
        addresses.sum::<usize>() as f64,
    ));
    wanted
}
