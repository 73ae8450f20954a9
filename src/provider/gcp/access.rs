//! Checks the credentials and their permissions.
//!
//! In: the groups that are configured. Out: each required permission, and whether it is granted. Must
//! not: change anything.

use nstance_gce::Operation;
use serde_json::{Value, json};

use crate::provider::{Access, CloudError, Permission, Verdict};

use super::calls::Calls;
use super::observe::items;

/// Permissions besides those that operations are named for: what they are needed for, and whether
/// nstance works without.
const FURTHER: [(&str, &str, bool); 6] = [
    ("compute.disks.create", "creating instances", false),
    ("compute.subnetworks.use", "creating instances", false),
    (
        "compute.images.useReadOnly",
        "creating instances of images of the project",
        true,
    ),
    ("compute.instances.use", "load balancers", true),
    (
        "compute.subnetworks.useExternalIp",
        "instances with an external address",
        true,
    ),
    (
        "iam.serviceAccounts.actAs",
        "instances with a service account",
        true,
    ),
];

/// Asks for each permission.
///
/// Fails if the API does.
pub(super) fn check(calls: &Calls, has_groups: bool) -> Result<Access, CloudError> {
    let mut asked: Vec<(&'static str, &'static str, bool)> = Vec::new();
    for operation in Operation::ALL {
        let Some(permission) = operation.permission() else {
            continue;
        };
        let (needed_for, optional) = need(*operation, has_groups);
        if let Some(needed_for) = needed_for
            && !asked.iter().any(|(known, ..)| *known == permission)
        {
            asked.push((permission, needed_for, optional));
        }
    }
    asked.extend(FURTHER);
    let names: Vec<&str> = asked.iter().map(|(name, ..)| *name).collect();
    let resource = format!("projects/{}", calls.place.project);
    let input = json!({"resource": resource, "body": {"permissions": names}});
    let answer = calls.call(Operation::ProjectsTestIamPermissions, input)?;
    let granted: Vec<&str> = items(&answer, "permissions")
        .filter_map(Value::as_str)
        .collect();
    let permissions = asked
        .into_iter()
        .map(|(name, needed_for, optional)| Permission {
            name: name.to_owned(),
            needed_for,
            optional,
            verdict: if granted.contains(&name) {
                Verdict::Allowed
            } else {
                Verdict::Missing
            },
        });
    let place = &calls.place;
    Ok(Access {
        who: format!("project {}, region {}", place.project, place.region),
        permissions: permissions.collect(),
        policy_page: "docs/gcp.md",
    })
}

/// What an operation is needed for, if it is, and whether nstance works without it.
fn need(operation: Operation, has_groups: bool) -> (Option<&'static str>, bool) {
    use Operation as Op;
    match operation {
        Op::InstancesInsert => (Some("creating instances"), false),
        Op::InstancesGet | Op::InstancesAggregatedList => (Some("seeing instances"), false),
        Op::InstancesDelete => (Some("deleting instances"), false),
        Op::ZoneOperationsGet => (Some("waiting for what was begun"), false),
        Op::InstancesSetLabels | Op::InstancesSetMetadata => {
            (Some("creating and updating instances"), false)
        }
        Op::InstancesSetTags
        | Op::InstancesSetScheduling
        | Op::InstancesSetServiceAccount
        | Op::InstancesSetMachineType
        | Op::InstancesSetMinCpuPlatform
        | Op::InstancesSetDeletionProtection
        | Op::InstancesUpdateShieldedInstanceConfig => (Some("updating instances"), true),
        Op::InstancesStart | Op::InstancesStop => (Some("restarting instances"), true),
        Op::ImagesGetFromFamily | Op::ImagesList => (Some("looking up images"), true),
        Op::SubnetworksGet => (Some("counting free addresses"), false),
        Op::RegionsGet => (Some("comparing a plan with the quotas"), true),
        Op::InstanceGroupsAddInstances
        | Op::InstanceGroupsRemoveInstances
        | Op::InstanceGroupsListInstances
        | Op::NetworkEndpointGroupsAttachNetworkEndpoints
        | Op::NetworkEndpointGroupsDetachNetworkEndpoints
        | Op::NetworkEndpointGroupsListNetworkEndpoints => {
            (has_groups.then_some("load balancers"), false)
        }
        Op::BackendServicesList
        | Op::BackendServicesGetHealth
        | Op::RegionBackendServicesList
        | Op::RegionBackendServicesGetHealth => {
            (has_groups.then_some("health of load balancers"), true)
        }
        Op::InstancesList | Op::ImagesGet | Op::ProjectsTestIamPermissions => (None, true),
    }
}
