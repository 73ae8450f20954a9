//! The members of EC2's `RunInstances`, those that nstance sets itself left out.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127.
//!
//! In: nothing. Out: [`RUN_INSTANCES`]. Must not: hold rules, which are in `rules.rs`, or be
//! edited.

use crate::provider::shape::Members;
use crate::provider::shape::Shape::{
    Between, Choice, Deprecated, Flag, List, Required, Structure, Text, Time, Whole,
};

/// What args may hold.
pub(super) const RUN_INSTANCES: Members = &[
    ("AdditionalInfo", Text),
    (
        "BlockDeviceMappings",
        List(&Structure(BLOCK_DEVICE_MAPPING)),
    ),
    (
        "CapacityReservationSpecification",
        Structure(CAPACITY_RESERVATION_SPECIFICATION),
    ),
    ("CpuOptions", Structure(CPU_OPTIONS_REQUEST)),
    (
        "CreditSpecification",
        Structure(CREDIT_SPECIFICATION_REQUEST),
    ),
    ("DisableApiStop", Flag),
    ("DisableApiTermination", Flag),
    ("EbsOptimized", Flag),
    (
        "ElasticGpuSpecification",
        Deprecated(
            "Specifying Elastic Graphics accelerators is no longer supported on the RunInstances API.",
            &List(&Structure(ELASTIC_GPU_SPECIFICATION)),
        ),
    ),
    (
        "ElasticInferenceAccelerators",
        Deprecated(
            "Specifying Elastic Inference accelerators is no longer supported on the RunInstances API.",
            &List(&Structure(ELASTIC_INFERENCE_ACCELERATOR)),
        ),
    ),
    ("EnablePrimaryIpv6", Flag),
    ("EnclaveOptions", Structure(ENCLAVE_OPTIONS_REQUEST)),
    ("HibernationOptions", Structure(HIBERNATION_OPTIONS_REQUEST)),
    (
        "IamInstanceProfile",
        Structure(IAM_INSTANCE_PROFILE_SPECIFICATION),
    ),
    ("ImageId", Text),
    (
        "InstanceInitiatedShutdownBehavior",
        Choice(SHUTDOWN_BEHAVIOR),
    ),
    (
        "InstanceMarketOptions",
        Structure(INSTANCE_MARKET_OPTIONS_REQUEST),
    ),
    ("Ipv6AddressCount", Whole),
    ("Ipv6Addresses", List(&Structure(INSTANCE_IPV6_ADDRESS))),
    ("KernelId", Text),
    ("KeyName", Text),
    ("LaunchTemplate", Structure(LAUNCH_TEMPLATE_SPECIFICATION)),
    (
        "LicenseSpecifications",
        List(&Structure(LICENSE_CONFIGURATION_REQUEST)),
    ),
    (
        "MaintenanceOptions",
        Structure(INSTANCE_MAINTENANCE_OPTIONS_REQUEST),
    ),
    (
        "MetadataOptions",
        Structure(INSTANCE_METADATA_OPTIONS_REQUEST),
    ),
    ("Monitoring", Structure(RUN_INSTANCES_MONITORING_ENABLED)),
    (
        "NetworkInterfaces",
        List(&Structure(INSTANCE_NETWORK_INTERFACE_SPECIFICATION)),
    ),
    (
        "NetworkPerformanceOptions",
        Structure(INSTANCE_NETWORK_PERFORMANCE_OPTIONS_REQUEST),
    ),
    ("Operator", Structure(OPERATOR_REQUEST)),
    ("Placement", Structure(PLACEMENT)),
    (
        "PrivateDnsNameOptions",
        Structure(PRIVATE_DNS_NAME_OPTIONS_REQUEST),
    ),
    ("PrivateIpAddress", Text),
    ("RamdiskId", Text),
    (
        "SecondaryInterfaces",
        List(&Structure(
            INSTANCE_SECONDARY_INTERFACE_SPECIFICATION_REQUEST,
        )),
    ),
    ("SecurityGroupIds", List(&Text)),
    ("SecurityGroups", List(&Text)),
    ("TagSpecifications", List(&Structure(TAG_SPECIFICATION))),
];

const AMD_SEV_SNP_SPECIFICATION: &[&str] = &["enabled", "disabled"];

const BLOCK_DEVICE_MAPPING: Members = &[
    ("DeviceName", Text),
    ("Ebs", Structure(EBS_BLOCK_DEVICE)),
    ("NoDevice", Text),
    ("VirtualName", Text),
];

const CAPACITY_RESERVATION_PREFERENCE: &[&str] = &["capacity-reservations-only", "open", "none"];

const CAPACITY_RESERVATION_SPECIFICATION: Members = &[
    (
        "CapacityReservationPreference",
        Choice(CAPACITY_RESERVATION_PREFERENCE),
    ),
    (
        "CapacityReservationTarget",
        Structure(CAPACITY_RESERVATION_TARGET),
    ),
];

const CAPACITY_RESERVATION_TARGET: Members = &[
    ("CapacityReservationId", Text),
    ("CapacityReservationResourceGroupArn", Text),
];

const CONNECTION_TRACKING_SPECIFICATION_REQUEST: Members = &[
    ("TcpEstablishedTimeout", Whole),
    ("UdpStreamTimeout", Whole),
    ("UdpTimeout", Whole),
];

const CPU_OPTIONS_REQUEST: Members = &[
    ("AmdSevSnp", Choice(AMD_SEV_SNP_SPECIFICATION)),
    ("CoreCount", Whole),
    (
        "NestedVirtualization",
        Choice(NESTED_VIRTUALIZATION_SPECIFICATION),
    ),
    ("ThreadsPerCore", Whole),
];

const CREDIT_SPECIFICATION_REQUEST: Members = &[("CpuCredits", Required(&Text))];

const EBS_BLOCK_DEVICE: Members = &[
    ("AvailabilityZone", Text),
    ("AvailabilityZoneId", Text),
    ("DeleteOnTermination", Flag),
    ("EbsCardIndex", Whole),
    ("Encrypted", Flag),
    ("Iops", Whole),
    ("KmsKeyId", Text),
    ("OutpostArn", Text),
    ("SnapshotId", Text),
    ("Throughput", Whole),
    ("VolumeInitializationRate", Whole),
    ("VolumeSize", Whole),
    ("VolumeType", Choice(VOLUME_TYPE)),
];

const ELASTIC_GPU_SPECIFICATION: Members = &[("Type", Required(&Text))];

const ELASTIC_INFERENCE_ACCELERATOR: Members = &[
    ("Count", Between(1, 2_147_483_647)),
    ("Type", Required(&Text)),
];

const ENA_SRD_SPECIFICATION_REQUEST: Members = &[
    ("EnaSrdEnabled", Flag),
    (
        "EnaSrdUdpSpecification",
        Structure(ENA_SRD_UDP_SPECIFICATION_REQUEST),
    ),
];

const ENA_SRD_UDP_SPECIFICATION_REQUEST: Members = &[("EnaSrdUdpEnabled", Flag)];

const ENCLAVE_OPTIONS_REQUEST: Members = &[("Enabled", Flag)];

const HIBERNATION_OPTIONS_REQUEST: Members = &[("Configured", Flag)];

const HOSTNAME_TYPE: &[&str] = &["ip-name", "resource-name"];

const HTTP_TOKENS_STATE: &[&str] = &["optional", "required"];

const IAM_INSTANCE_PROFILE_SPECIFICATION: Members = &[("Arn", Text), ("Name", Text)];

const INSTANCE_AUTO_RECOVERY_STATE: &[&str] = &["disabled", "default"];

const INSTANCE_BANDWIDTH_WEIGHTING: &[&str] = &["default", "vpc-1", "ebs-1"];

const INSTANCE_INTERRUPTION_BEHAVIOR: &[&str] = &["hibernate", "stop", "terminate"];

const INSTANCE_IPV6_ADDRESS: Members = &[("Ipv6Address", Text), ("IsPrimaryIpv6", Flag)];

const INSTANCE_MAINTENANCE_OPTIONS_REQUEST: Members =
    &[("AutoRecovery", Choice(INSTANCE_AUTO_RECOVERY_STATE))];

const INSTANCE_MARKET_OPTIONS_REQUEST: Members = &[
    ("MarketType", Choice(MARKET_TYPE)),
    ("SpotOptions", Structure(SPOT_MARKET_OPTIONS)),
];

const INSTANCE_METADATA_ENDPOINT_STATE: &[&str] = &["disabled", "enabled"];

const INSTANCE_METADATA_OPTIONS_REQUEST: Members = &[
    ("HttpEndpoint", Choice(INSTANCE_METADATA_ENDPOINT_STATE)),
    ("HttpProtocolIpv6", Choice(INSTANCE_METADATA_PROTOCOL_STATE)),
    ("HttpPutResponseHopLimit", Whole),
    ("HttpTokens", Choice(HTTP_TOKENS_STATE)),
    ("InstanceMetadataTags", Choice(INSTANCE_METADATA_TAGS_STATE)),
];

const INSTANCE_METADATA_PROTOCOL_STATE: &[&str] = &["disabled", "enabled"];

const INSTANCE_METADATA_TAGS_STATE: &[&str] = &["disabled", "enabled"];

const INSTANCE_NETWORK_INTERFACE_SPECIFICATION: Members = &[
    ("AssociateCarrierIpAddress", Flag),
    ("AssociatePublicIpAddress", Flag),
    (
        "ConnectionTrackingSpecification",
        Structure(CONNECTION_TRACKING_SPECIFICATION_REQUEST),
    ),
    ("DeleteOnTermination", Flag),
    ("Description", Text),
    ("DeviceIndex", Whole),
    ("EnaQueueCount", Whole),
    (
        "EnaSrdSpecification",
        Structure(ENA_SRD_SPECIFICATION_REQUEST),
    ),
    ("Groups", List(&Text)),
    ("InterfaceType", Text),
    ("Ipv4PrefixCount", Whole),
    (
        "Ipv4Prefixes",
        List(&Structure(IPV4_PREFIX_SPECIFICATION_REQUEST)),
    ),
    ("Ipv6AddressCount", Whole),
    ("Ipv6Addresses", List(&Structure(INSTANCE_IPV6_ADDRESS))),
    ("Ipv6PrefixCount", Whole),
    (
        "Ipv6Prefixes",
        List(&Structure(IPV6_PREFIX_SPECIFICATION_REQUEST)),
    ),
    ("NetworkCardIndex", Whole),
    ("NetworkInterfaceId", Text),
    ("PrimaryIpv6", Flag),
    ("PrivateIpAddress", Text),
    (
        "PrivateIpAddresses",
        List(&Structure(PRIVATE_IP_ADDRESS_SPECIFICATION)),
    ),
    ("SecondaryPrivateIpAddressCount", Whole),
    ("SubnetId", Text),
];

const INSTANCE_NETWORK_PERFORMANCE_OPTIONS_REQUEST: Members =
    &[("BandwidthWeighting", Choice(INSTANCE_BANDWIDTH_WEIGHTING))];

const INSTANCE_SECONDARY_INTERFACE_PRIVATE_IP_ADDRESS_REQUEST: Members =
    &[("PrivateIpAddress", Required(&Text))];

const INSTANCE_SECONDARY_INTERFACE_SPECIFICATION_REQUEST: Members = &[
    ("DeleteOnTermination", Flag),
    ("DeviceIndex", Whole),
    ("InterfaceType", Choice(SECONDARY_INTERFACE_TYPE)),
    ("NetworkCardIndex", Whole),
    ("PrivateIpAddressCount", Whole),
    (
        "PrivateIpAddresses",
        List(&Structure(
            INSTANCE_SECONDARY_INTERFACE_PRIVATE_IP_ADDRESS_REQUEST,
        )),
    ),
    ("SecondarySubnetId", Text),
];

const IPV4_PREFIX_SPECIFICATION_REQUEST: Members = &[("Ipv4Prefix", Text)];

const IPV6_PREFIX_SPECIFICATION_REQUEST: Members = &[("Ipv6Prefix", Text)];

const LAUNCH_TEMPLATE_SPECIFICATION: Members = &[
    ("LaunchTemplateId", Text),
    ("LaunchTemplateName", Text),
    ("Version", Text),
];

const LICENSE_CONFIGURATION_REQUEST: Members = &[("LicenseConfigurationArn", Text)];

const MARKET_TYPE: &[&str] = &[
    "spot",
    "capacity-block",
    "interruptible-capacity-reservation",
    "on-demand",
];

const NESTED_VIRTUALIZATION_SPECIFICATION: &[&str] = &["enabled", "disabled"];

const OPERATOR_REQUEST: Members = &[("Principal", Text)];

const PLACEMENT: Members = &[
    ("Affinity", Text),
    ("AvailabilityZone", Text),
    ("AvailabilityZoneId", Text),
    ("GroupId", Text),
    ("GroupName", Text),
    ("HostId", Text),
    ("HostResourceGroupArn", Text),
    ("PartitionNumber", Whole),
    ("SpreadDomain", Text),
    ("Tenancy", Choice(TENANCY)),
];

const PRIVATE_DNS_NAME_OPTIONS_REQUEST: Members = &[
    ("EnableResourceNameDnsAAAARecord", Flag),
    ("EnableResourceNameDnsARecord", Flag),
    ("HostnameType", Choice(HOSTNAME_TYPE)),
];

const PRIVATE_IP_ADDRESS_SPECIFICATION: Members = &[("Primary", Flag), ("PrivateIpAddress", Text)];

const RESOURCE_TYPE: &[&str] = &[
    "capacity-reservation",
    "client-vpn-endpoint",
    "customer-gateway",
    "carrier-gateway",
    "coip-pool",
    "declarative-policies-report",
    "dedicated-host",
    "dhcp-options",
    "egress-only-internet-gateway",
    "elastic-ip",
    "elastic-gpu",
    "export-image-task",
    "export-instance-task",
    "fleet",
    "fpga-image",
    "host-reservation",
    "image",
    "image-usage-report",
    "import-image-task",
    "import-snapshot-task",
    "instance",
    "instance-event-window",
    "internet-gateway",
    "ipam",
    "ipam-pool",
    "ipam-scope",
    "ipv4pool-ec2",
    "ipv6pool-ec2",
    "key-pair",
    "launch-template",
    "local-gateway",
    "local-gateway-route-table",
    "local-gateway-virtual-interface",
    "local-gateway-virtual-interface-group",
    "local-gateway-route-table-vpc-association",
    "local-gateway-route-table-virtual-interface-group-association",
    "natgateway",
    "network-acl",
    "network-interface",
    "network-insights-analysis",
    "network-insights-path",
    "network-insights-access-scope",
    "network-insights-access-scope-analysis",
    "outpost-lag",
    "placement-group",
    "prefix-list",
    "replace-root-volume-task",
    "reserved-instances",
    "route-table",
    "security-group",
    "security-group-rule",
    "service-link-virtual-interface",
    "snapshot",
    "spot-fleet-request",
    "spot-instances-request",
    "subnet",
    "subnet-cidr-reservation",
    "traffic-mirror-filter",
    "traffic-mirror-session",
    "traffic-mirror-target",
    "transit-gateway",
    "transit-gateway-attachment",
    "transit-gateway-connect-peer",
    "transit-gateway-multicast-domain",
    "transit-gateway-policy-table",
    "transit-gateway-metering-policy",
    "transit-gateway-route-table",
    "transit-gateway-route-table-announcement",
    "volume",
    "vpc",
    "vpc-endpoint",
    "vpc-endpoint-connection",
    "vpc-endpoint-service",
    "vpc-endpoint-service-permission",
    "vpc-peering-connection",
    "vpn-connection",
    "vpn-gateway",
    "vpc-flow-log",
    "capacity-reservation-fleet",
    "traffic-mirror-filter-rule",
    "vpc-endpoint-connection-device-type",
    "verified-access-instance",
    "verified-access-group",
    "verified-access-endpoint",
    "verified-access-policy",
    "verified-access-trust-provider",
    "vpn-connection-device-type",
    "vpc-block-public-access-exclusion",
    "vpc-encryption-control",
    "route-server",
    "route-server-endpoint",
    "route-server-peer",
    "ipam-resource-discovery",
    "ipam-resource-discovery-association",
    "instance-connect-endpoint",
    "verified-access-endpoint-target",
    "ipam-external-resource-verification-token",
    "capacity-block",
    "mac-modification-task",
    "ipam-prefix-list-resolver",
    "ipam-policy",
    "ipam-prefix-list-resolver-target",
    "ipam-internet-registry-association",
    "secondary-interface",
    "secondary-network",
    "secondary-subnet",
    "capacity-manager-data-export",
    "vpn-concentrator",
    "ipam-pool-allocation",
    "capacity-reservation-cancellation-quote",
    "application-status-check",
    "capacity-reservation-modification-quote",
];

const RUN_INSTANCES_MONITORING_ENABLED: Members = &[("Enabled", Required(&Flag))];

const SECONDARY_INTERFACE_TYPE: &[&str] = &["secondary"];

const SHUTDOWN_BEHAVIOR: &[&str] = &["stop", "terminate"];

const SPOT_INSTANCE_TYPE: &[&str] = &["one-time", "persistent"];

const SPOT_MARKET_OPTIONS: Members = &[
    ("BlockDurationMinutes", Whole),
    (
        "InstanceInterruptionBehavior",
        Choice(INSTANCE_INTERRUPTION_BEHAVIOR),
    ),
    ("MaxPrice", Text),
    ("SpotInstanceType", Choice(SPOT_INSTANCE_TYPE)),
    ("ValidUntil", Time),
];

const TAG: Members = &[("Key", Text), ("Value", Text)];

const TAG_SPECIFICATION: Members = &[
    ("ResourceType", Choice(RESOURCE_TYPE)),
    ("Tags", List(&Structure(TAG))),
];

const TENANCY: &[&str] = &["default", "dedicated", "host"];

const VOLUME_TYPE: &[&str] = &["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"];
