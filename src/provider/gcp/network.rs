//! Subnets, and their free addresses.
//!
//! In: ids. Out: descriptions. Must not: choose subnets.

use nstance_gce::Operation;
use serde_json::{Value, json};

use crate::provider::{CloudError, CloudErrorKind, SubnetInfo};

use super::calls::Calls;
use super::observe::{items, text};
use super::paths::is_same;

/// The addresses of each range that Google keeps: network, gateway, the last two.
const KEPT: u32 = 4;

/// The existing ones of these subnets.
///
/// Fails if the API does, or if one is of another region.
pub(super) fn subnets(calls: &Calls, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
    let mut found = Vec::new();
    let mut used: Option<Vec<String>> = None;
    for id in ids {
        let (project, region, name) = calls.place.subnet(id);
        if region != calls.place.region {
            let own = &calls.place.region;
            return Err(CloudError::new(
                CloudErrorKind::Invalid,
                "invalid",
                format!("the subnet `{id}` is in the region {region}, not in {own}"),
            )
            .hint("correct `shard.subnet_pools`, or `shard.infra.region`"));
        }
        let input = json!({"project": project, "region": region, "subnetwork": name});
        let Some(subnet) = calls.find(Operation::SubnetworksGet, input)? else {
            continue;
        };
        let used = match &used {
            Some(used) => used,
            None => used.insert(used_subnets(calls)?),
        };
        let path = calls.place.subnet_path(id);
        let used = used.iter().filter(|used| is_same(used, &path)).count();
        found.push(SubnetInfo {
            id: id.clone(),
            zone: None,
            available: size(&subnet).map(|size| size.saturating_sub(KEPT + used as u32)),
        });
    }
    Ok(found)
}

/// The number of addresses in a subnet's IPv4 range; `None` if it has none.
fn size(subnet: &Value) -> Option<u32> {
    let (_, bits) = text(subnet, "ipCidrRange")?.split_once('/')?;
    let bits = 32_u32.checked_sub(bits.parse().ok()?)?;
    Some(1_u32.checked_shl(bits).unwrap_or(u32::MAX))
}

/// The subnet of each network interface of the project's instances.
fn used_subnets(calls: &Calls) -> Result<Vec<String>, CloudError> {
    let mut used = Vec::new();
    let mut page = None;
    loop {
        let (instances, next) = calls.instances("", page.as_deref())?;
        let nics = instances
            .iter()
            .flat_map(|instance| items(instance, "networkInterfaces"));
        used.extend(nics.filter_map(|nic| text(nic, "subnetwork").map(str::to_owned)));
        match next {
            Some(next) => page = Some(next),
            None => return Ok(used),
        }
    }
}
