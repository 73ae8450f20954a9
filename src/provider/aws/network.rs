//! Subnets and security groups.
//!
//! In: ids and names. Out: their descriptions. Must not: choose subnets.

use nstance_ec2::Operation;
use serde_json::json;

use crate::provider::{CloudError, CloudErrorKind, SubnetInfo};

use super::calls::{Calls, FILTER_VALUES, filter};
use super::observe::text;

/// The existing ones of these subnets, by filter, so that a missing one isn't an error.
///
/// Fails if the API does.
pub(super) fn subnets(calls: &Calls, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
    let mut found = Vec::new();
    for ids in ids.chunks(FILTER_VALUES) {
        let input = json!({"Filters": [filter("subnet-id", ids)], "MaxResults": 1_000});
        let subnets = calls.pages(Operation::DescribeSubnets, &input, "Subnets")?;
        found.extend(subnets.iter().filter_map(|subnet| {
            let free = subnet.get("AvailableIpAddressCount");
            let free = free.and_then(serde_json::Value::as_u64);
            Some(SubnetInfo {
                id: text(subnet, "SubnetId")?.to_owned(),
                zone: text(subnet, "AvailabilityZone").map(str::to_owned),
                available: free.map(|free| u32::try_from(free).unwrap_or(u32::MAX)),
            })
        }));
    }
    Ok(found)
}

/// The ids of security groups by name, in a VPC.
///
/// Fails if the API does, or if a name doesn't exist.
pub(super) fn security_groups(
    calls: &Calls,
    network: &str,
    names: &[String],
) -> Result<Vec<String>, CloudError> {
    let filters = [filter("vpc-id", &[network]), filter("group-name", names)];
    let input = json!({"Filters": filters, "MaxResults": 1_000});
    let groups = calls.pages(Operation::DescribeSecurityGroups, &input, "SecurityGroups")?;
    names
        .iter()
        .map(|name| {
            groups
                .iter()
                .find(|group| text(group, "GroupName") == Some(name))
                .and_then(|group| text(group, "GroupId"))
                .map(str::to_owned)
                .ok_or_else(|| {
                    CloudError::new(
                        CloudErrorKind::Invalid,
                        "InvalidGroup.NotFound",
                        format!("the security group `{name}` isn't in the network `{network}`"),
                    )
                    .hint("correct the security groups: they must be of the subnet's network")
                })
        })
        .collect()
}
