//! The operations that a client knows.
//!
//! In: nothing. Out: their names and services. May not: hold their shapes.

/// A service of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Amazon EC2.
    Ec2,
    /// Elastic Load Balancing, version 2: target groups.
    ElasticLoadBalancing,
    /// Systems Manager: public parameters.
    Ssm,
    /// Security Token Service: who is asking.
    Sts,
    /// Service Quotas.
    ServiceQuotas,
}

impl Service {
    /// The prefix of its actions in IAM policies, such as `ec2`.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::ElasticLoadBalancing => "elasticloadbalancing",
            Self::Ssm => "ssm",
            Self::Sts => "sts",
            Self::ServiceQuotas => "servicequotas",
        }
    }
}

/// One operation of one service. Their names differ between services, so the name is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "AWS documents them by these names")]
pub enum Operation {
    RunInstances,
    DescribeInstances,
    DescribeInstanceAttribute,
    DescribeImages,
    DescribeSubnets,
    DescribeInstanceTypes,
    DescribeVolumes,
    DescribeIamInstanceProfileAssociations,
    DescribeAccountAttributes,
    DescribeInstanceCreditSpecifications,
    DescribeSecurityGroups,
    TerminateInstances,
    StartInstances,
    StopInstances,
    CreateTags,
    DeleteTags,
    ModifyInstanceAttribute,
    ModifyInstanceMetadataOptions,
    ModifyInstanceCreditSpecification,
    ModifyInstanceMaintenanceOptions,
    ModifyPrivateDnsNameOptions,
    ModifyInstanceCapacityReservationAttributes,
    MonitorInstances,
    UnmonitorInstances,
    AssociateIamInstanceProfile,
    DisassociateIamInstanceProfile,
    ReplaceIamInstanceProfileAssociation,
    ModifyNetworkInterfaceAttribute,
    DescribeTargetGroups,
    DescribeTargetHealth,
    RegisterTargets,
    DeregisterTargets,
    GetParameter,
    GetCallerIdentity,
    GetServiceQuota,
}

impl Operation {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::RunInstances,
        Self::DescribeInstances,
        Self::DescribeInstanceAttribute,
        Self::DescribeImages,
        Self::DescribeSubnets,
        Self::DescribeInstanceTypes,
        Self::DescribeVolumes,
        Self::DescribeIamInstanceProfileAssociations,
        Self::DescribeAccountAttributes,
        Self::DescribeInstanceCreditSpecifications,
        Self::DescribeSecurityGroups,
        Self::TerminateInstances,
        Self::StartInstances,
        Self::StopInstances,
        Self::CreateTags,
        Self::DeleteTags,
        Self::ModifyInstanceAttribute,
        Self::ModifyInstanceMetadataOptions,
        Self::ModifyInstanceCreditSpecification,
        Self::ModifyInstanceMaintenanceOptions,
        Self::ModifyPrivateDnsNameOptions,
        Self::ModifyInstanceCapacityReservationAttributes,
        Self::MonitorInstances,
        Self::UnmonitorInstances,
        Self::AssociateIamInstanceProfile,
        Self::DisassociateIamInstanceProfile,
        Self::ReplaceIamInstanceProfileAssociation,
        Self::ModifyNetworkInterfaceAttribute,
        Self::DescribeTargetGroups,
        Self::DescribeTargetHealth,
        Self::RegisterTargets,
        Self::DeregisterTargets,
        Self::GetParameter,
        Self::GetCallerIdentity,
        Self::GetServiceQuota,
    ];

    /// The service that has it.
    pub fn service(self) -> Service {
        match self {
            Self::DescribeTargetGroups
            | Self::DescribeTargetHealth
            | Self::RegisterTargets
            | Self::DeregisterTargets => Service::ElasticLoadBalancing,
            Self::GetParameter => Service::Ssm,
            Self::GetCallerIdentity => Service::Sts,
            Self::GetServiceQuota => Service::ServiceQuotas,
            _ => Service::Ec2,
        }
    }

    /// Its name, such as `RunInstances`.
    pub fn name(self) -> &'static str {
        match self {
            Self::RunInstances => "RunInstances",
            Self::DescribeInstances => "DescribeInstances",
            Self::DescribeInstanceAttribute => "DescribeInstanceAttribute",
            Self::DescribeImages => "DescribeImages",
            Self::DescribeSubnets => "DescribeSubnets",
            Self::DescribeInstanceTypes => "DescribeInstanceTypes",
            Self::DescribeVolumes => "DescribeVolumes",
            Self::DescribeIamInstanceProfileAssociations => {
                "DescribeIamInstanceProfileAssociations"
            }
            Self::DescribeAccountAttributes => "DescribeAccountAttributes",
            Self::DescribeInstanceCreditSpecifications => "DescribeInstanceCreditSpecifications",
            Self::DescribeSecurityGroups => "DescribeSecurityGroups",
            Self::TerminateInstances => "TerminateInstances",
            Self::StartInstances => "StartInstances",
            Self::StopInstances => "StopInstances",
            Self::CreateTags => "CreateTags",
            Self::DeleteTags => "DeleteTags",
            Self::ModifyInstanceAttribute => "ModifyInstanceAttribute",
            Self::ModifyInstanceMetadataOptions => "ModifyInstanceMetadataOptions",
            Self::ModifyInstanceCreditSpecification => "ModifyInstanceCreditSpecification",
            Self::ModifyInstanceMaintenanceOptions => "ModifyInstanceMaintenanceOptions",
            Self::ModifyPrivateDnsNameOptions => "ModifyPrivateDnsNameOptions",
            Self::ModifyInstanceCapacityReservationAttributes => {
                "ModifyInstanceCapacityReservationAttributes"
            }
            Self::MonitorInstances => "MonitorInstances",
            Self::UnmonitorInstances => "UnmonitorInstances",
            Self::AssociateIamInstanceProfile => "AssociateIamInstanceProfile",
            Self::DisassociateIamInstanceProfile => "DisassociateIamInstanceProfile",
            Self::ReplaceIamInstanceProfileAssociation => "ReplaceIamInstanceProfileAssociation",
            Self::ModifyNetworkInterfaceAttribute => "ModifyNetworkInterfaceAttribute",
            Self::DescribeTargetGroups => "DescribeTargetGroups",
            Self::DescribeTargetHealth => "DescribeTargetHealth",
            Self::RegisterTargets => "RegisterTargets",
            Self::DeregisterTargets => "DeregisterTargets",
            Self::GetParameter => "GetParameter",
            Self::GetCallerIdentity => "GetCallerIdentity",
            Self::GetServiceQuota => "GetServiceQuota",
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
        self.name().starts_with("Describe") || self.name().starts_with("Get")
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
    fn every_operation_is_found_by_its_name() {
        for operation in Operation::ALL {
            assert_eq!(Operation::from_name(operation.name()), Some(*operation));
            assert_eq!(format!("{operation:?}"), operation.name());
        }
        assert_eq!(Operation::from_name("runInstances"), None);
    }

    #[test]
    fn services_and_reads() {
        for (operation, service, read) in [
            (Operation::RunInstances, Service::Ec2, false),
            (Operation::DescribeInstances, Service::Ec2, true),
            (
                Operation::ModifyNetworkInterfaceAttribute,
                Service::Ec2,
                false,
            ),
            (
                Operation::DescribeTargetHealth,
                Service::ElasticLoadBalancing,
                true,
            ),
            (
                Operation::RegisterTargets,
                Service::ElasticLoadBalancing,
                false,
            ),
            (Operation::GetParameter, Service::Ssm, true),
            (Operation::GetCallerIdentity, Service::Sts, true),
            (Operation::GetServiceQuota, Service::ServiceQuotas, true),
        ] {
            assert_eq!(operation.service(), service, "{operation}");
            assert_eq!(operation.is_read(), read, "{operation}");
        }
    }
}
