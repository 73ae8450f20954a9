//! The operations that a client knows.
//!
//! In: nothing. Out: their names and permissions. Must not: hold their shapes.

/// One method of the API, by the names of Google's discovery document.
///
/// All are Compute Engine's but [`Operation::ProjectsTestIamPermissions`], which is Resource
/// Manager's (version 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "Google documents them by these names")]
pub enum Operation {
    InstancesInsert,
    InstancesGet,
    InstancesList,
    InstancesAggregatedList,
    InstancesDelete,
    InstancesStart,
    InstancesStop,
    InstancesSetLabels,
    InstancesSetMetadata,
    InstancesSetTags,
    InstancesSetScheduling,
    InstancesSetServiceAccount,
    InstancesSetMachineType,
    InstancesSetMinCpuPlatform,
    InstancesSetDeletionProtection,
    InstancesUpdateShieldedInstanceConfig,
    ZoneOperationsGet,
    ImagesGet,
    ImagesGetFromFamily,
    ImagesList,
    SubnetworksGet,
    RegionsGet,
    InstanceGroupsAddInstances,
    InstanceGroupsRemoveInstances,
    InstanceGroupsListInstances,
    NetworkEndpointGroupsAttachNetworkEndpoints,
    NetworkEndpointGroupsDetachNetworkEndpoints,
    NetworkEndpointGroupsListNetworkEndpoints,
    BackendServicesList,
    BackendServicesGetHealth,
    RegionBackendServicesList,
    RegionBackendServicesGetHealth,
    ProjectsTestIamPermissions,
}

impl Operation {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::InstancesInsert,
        Self::InstancesGet,
        Self::InstancesList,
        Self::InstancesAggregatedList,
        Self::InstancesDelete,
        Self::InstancesStart,
        Self::InstancesStop,
        Self::InstancesSetLabels,
        Self::InstancesSetMetadata,
        Self::InstancesSetTags,
        Self::InstancesSetScheduling,
        Self::InstancesSetServiceAccount,
        Self::InstancesSetMachineType,
        Self::InstancesSetMinCpuPlatform,
        Self::InstancesSetDeletionProtection,
        Self::InstancesUpdateShieldedInstanceConfig,
        Self::ZoneOperationsGet,
        Self::ImagesGet,
        Self::ImagesGetFromFamily,
        Self::ImagesList,
        Self::SubnetworksGet,
        Self::RegionsGet,
        Self::InstanceGroupsAddInstances,
        Self::InstanceGroupsRemoveInstances,
        Self::InstanceGroupsListInstances,
        Self::NetworkEndpointGroupsAttachNetworkEndpoints,
        Self::NetworkEndpointGroupsDetachNetworkEndpoints,
        Self::NetworkEndpointGroupsListNetworkEndpoints,
        Self::BackendServicesList,
        Self::BackendServicesGetHealth,
        Self::RegionBackendServicesList,
        Self::RegionBackendServicesGetHealth,
        Self::ProjectsTestIamPermissions,
    ];

    /// Its name, such as `instances.insert`.
    pub fn name(self) -> &'static str {
        match self {
            Self::InstancesInsert => "instances.insert",
            Self::InstancesGet => "instances.get",
            Self::InstancesList => "instances.list",
            Self::InstancesAggregatedList => "instances.aggregatedList",
            Self::InstancesDelete => "instances.delete",
            Self::InstancesStart => "instances.start",
            Self::InstancesStop => "instances.stop",
            Self::InstancesSetLabels => "instances.setLabels",
            Self::InstancesSetMetadata => "instances.setMetadata",
            Self::InstancesSetTags => "instances.setTags",
            Self::InstancesSetScheduling => "instances.setScheduling",
            Self::InstancesSetServiceAccount => "instances.setServiceAccount",
            Self::InstancesSetMachineType => "instances.setMachineType",
            Self::InstancesSetMinCpuPlatform => "instances.setMinCpuPlatform",
            Self::InstancesSetDeletionProtection => "instances.setDeletionProtection",
            Self::InstancesUpdateShieldedInstanceConfig => "instances.updateShieldedInstanceConfig",
            Self::ZoneOperationsGet => "zoneOperations.get",
            Self::ImagesGet => "images.get",
            Self::ImagesGetFromFamily => "images.getFromFamily",
            Self::ImagesList => "images.list",
            Self::SubnetworksGet => "subnetworks.get",
            Self::RegionsGet => "regions.get",
            Self::InstanceGroupsAddInstances => "instanceGroups.addInstances",
            Self::InstanceGroupsRemoveInstances => "instanceGroups.removeInstances",
            Self::InstanceGroupsListInstances => "instanceGroups.listInstances",
            Self::NetworkEndpointGroupsAttachNetworkEndpoints => {
                "networkEndpointGroups.attachNetworkEndpoints"
            }
            Self::NetworkEndpointGroupsDetachNetworkEndpoints => {
                "networkEndpointGroups.detachNetworkEndpoints"
            }
            Self::NetworkEndpointGroupsListNetworkEndpoints => {
                "networkEndpointGroups.listNetworkEndpoints"
            }
            Self::BackendServicesList => "backendServices.list",
            Self::BackendServicesGetHealth => "backendServices.getHealth",
            Self::RegionBackendServicesList => "regionBackendServices.list",
            Self::RegionBackendServicesGetHealth => "regionBackendServices.getHealth",
            Self::ProjectsTestIamPermissions => "projects.testIamPermissions",
        }
    }

    /// The operation of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|operation| operation.name() == name)
    }

    /// Whether it changes nothing.
    pub fn is_read(self) -> bool {
        let (_, method) = self.name().split_once('.').unwrap_or_default();
        method == "aggregatedList"
            || ["get", "list", "test"]
                .iter()
                .any(|verb| method.starts_with(verb))
    }

    /// The IAM permission it requires on the resource that it names, such as
    /// `compute.instances.create`; none if everybody may call it.
    ///
    /// Inputs that refer to other resources require more: an instance also `compute.disks.create`,
    /// `compute.subnetworks.use` and `iam.serviceAccounts.actAs`, and a member of an instance group
    /// or network endpoint group `compute.instances.use`.
    ///
    /// Source: the section "IAM Permissions" of each method's reference page.
    pub fn permission(self) -> Option<&'static str> {
        Some(match self {
            Self::InstancesInsert => "compute.instances.create",
            Self::InstancesGet => "compute.instances.get",
            Self::InstancesList | Self::InstancesAggregatedList => "compute.instances.list",
            Self::InstancesDelete => "compute.instances.delete",
            Self::InstancesStart => "compute.instances.start",
            Self::InstancesStop => "compute.instances.stop",
            Self::InstancesSetLabels => "compute.instances.setLabels",
            Self::InstancesSetMetadata => "compute.instances.setMetadata",
            Self::InstancesSetTags => "compute.instances.setTags",
            Self::InstancesSetScheduling => "compute.instances.setScheduling",
            Self::InstancesSetServiceAccount => "compute.instances.setServiceAccount",
            Self::InstancesSetMachineType => "compute.instances.setMachineType",
            Self::InstancesSetMinCpuPlatform => "compute.instances.setMinCpuPlatform",
            Self::InstancesSetDeletionProtection => "compute.instances.setDeletionProtection",
            Self::InstancesUpdateShieldedInstanceConfig => {
                "compute.instances.updateShieldedInstanceConfig"
            }
            Self::ZoneOperationsGet => "compute.zoneOperations.get",
            Self::ImagesGet => "compute.images.get",
            Self::ImagesGetFromFamily => "compute.images.getFromFamily",
            Self::ImagesList => "compute.images.list",
            Self::SubnetworksGet => "compute.subnetworks.get",
            Self::RegionsGet => "compute.regions.get",
            Self::InstanceGroupsAddInstances | Self::InstanceGroupsRemoveInstances => {
                "compute.instanceGroups.update"
            }
            Self::InstanceGroupsListInstances => "compute.instanceGroups.list",
            Self::NetworkEndpointGroupsAttachNetworkEndpoints => {
                "compute.networkEndpointGroups.attachNetworkEndpoints"
            }
            Self::NetworkEndpointGroupsDetachNetworkEndpoints => {
                "compute.networkEndpointGroups.detachNetworkEndpoints"
            }
            Self::NetworkEndpointGroupsListNetworkEndpoints => "compute.networkEndpointGroups.get",
            Self::BackendServicesList => "compute.backendServices.list",
            Self::BackendServicesGetHealth => "compute.backendServices.get",
            Self::RegionBackendServicesList => "compute.regionBackendServices.list",
            Self::RegionBackendServicesGetHealth => "compute.regionBackendServices.get",
            Self::ProjectsTestIamPermissions => return None,
        })
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for operation in Operation::ALL {
            assert_eq!(Operation::from_name(operation.name()), Some(*operation));
        }
        assert_eq!(Operation::from_name("instances"), None);
    }

    #[test]
    fn reads_and_their_permissions_are_known() {
        for (operation, read, permission) in [
            (
                Operation::InstancesInsert,
                false,
                Some("compute.instances.create"),
            ),
            (
                Operation::InstancesAggregatedList,
                true,
                Some("compute.instances.list"),
            ),
            (
                Operation::InstanceGroupsListInstances,
                true,
                Some("compute.instanceGroups.list"),
            ),
            (
                Operation::NetworkEndpointGroupsDetachNetworkEndpoints,
                false,
                Some("compute.networkEndpointGroups.detachNetworkEndpoints"),
            ),
            (
                Operation::BackendServicesGetHealth,
                true,
                Some("compute.backendServices.get"),
            ),
            (Operation::ProjectsTestIamPermissions, true, None),
        ] {
            assert_eq!(operation.is_read(), read, "{operation}");
            assert_eq!(operation.permission(), permission, "{operation}");
        }
    }
}
