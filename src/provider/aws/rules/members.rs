//! The members of EC2's `RunInstances`, those that nstance sets itself left out.
//!
//! In: nothing; a table after the API's model of 2016-11-15. Out: [`RUN_INSTANCES`]. May not: hold
//! rules; `rules.rs` does.

use crate::provider::shape::Members;
use crate::provider::shape::Shape::{Flag, List, Structure, Text, Whole};

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
        List(&Structure(ELASTIC_GPU_SPECIFICATION)),
    ),
    (
        "ElasticInferenceAccelerators",
        List(&Structure(ELASTIC_INFERENCE_ACCELERATOR)),
    ),
    ("EnablePrimaryIpv6", Flag),
    ("EnclaveOptions", Structure(ENCLAVE_OPTIONS_REQUEST)),
    ("HibernationOptions", Structure(HIBERNATION_OPTIONS_REQUEST)),
    (
        "IamInstanceProfile",
        Structure(IAM_INSTANCE_PROFILE_SPECIFICATION),
    ),
    ("ImageId", Text),
    ("InstanceInitiatedShutdownBehavior", Text),
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

const BLOCK_DEVICE_MAPPING: Members = &[
    ("DeviceName", Text),
    ("Ebs", Structure(EBS_BLOCK_DEVICE)),
    ("NoDevice", Text),
    ("VirtualName", Text),
];

const CAPACITY_RESERVATION_SPECIFICATION: Members = &[
    ("CapacityReservationPreference", Text),
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
    ("AmdSevSnp", Text),
    ("CoreCount", Whole),
    ("NestedVirtualization", Text),
    ("ThreadsPerCore", Whole),
];

const CREDIT_SPECIFICATION_REQUEST: Members = &[("CpuCredits", Text)];

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
    ("VolumeType", Text),
];

const ELASTIC_GPU_SPECIFICATION: Members = &[("Type", Text)];

const ELASTIC_INFERENCE_ACCELERATOR: Members = &[("Count", Whole), ("Type", Text)];

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

const IAM_INSTANCE_PROFILE_SPECIFICATION: Members = &[("Arn", Text), ("Name", Text)];

const INSTANCE_IPV6_ADDRESS: Members = &[("Ipv6Address", Text), ("IsPrimaryIpv6", Flag)];

const INSTANCE_MAINTENANCE_OPTIONS_REQUEST: Members = &[("AutoRecovery", Text)];

const INSTANCE_MARKET_OPTIONS_REQUEST: Members = &[
    ("MarketType", Text),
    ("SpotOptions", Structure(SPOT_MARKET_OPTIONS)),
];

const INSTANCE_METADATA_OPTIONS_REQUEST: Members = &[
    ("HttpEndpoint", Text),
    ("HttpProtocolIpv6", Text),
    ("HttpPutResponseHopLimit", Whole),
    ("HttpTokens", Text),
    ("InstanceMetadataTags", Text),
];

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

const INSTANCE_NETWORK_PERFORMANCE_OPTIONS_REQUEST: Members = &[("BandwidthWeighting", Text)];

const INSTANCE_SECONDARY_INTERFACE_PRIVATE_IP_ADDRESS_REQUEST: Members =
    &[("PrivateIpAddress", Text)];

const INSTANCE_SECONDARY_INTERFACE_SPECIFICATION_REQUEST: Members = &[
    ("DeleteOnTermination", Flag),
    ("DeviceIndex", Whole),
    ("InterfaceType", Text),
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
    ("Tenancy", Text),
];

const PRIVATE_DNS_NAME_OPTIONS_REQUEST: Members = &[
    ("EnableResourceNameDnsAAAARecord", Flag),
    ("EnableResourceNameDnsARecord", Flag),
    ("HostnameType", Text),
];

const PRIVATE_IP_ADDRESS_SPECIFICATION: Members = &[("Primary", Flag), ("PrivateIpAddress", Text)];

const RUN_INSTANCES_MONITORING_ENABLED: Members =
    &[("Enabled", Flag), ("MetricCategoryIds", List(&Text))];

const SPOT_MARKET_OPTIONS: Members = &[
    ("BlockDurationMinutes", Whole),
    ("InstanceInterruptionBehavior", Text),
    ("MaxPrice", Text),
    ("SpotInstanceType", Text),
    ("ValidUntil", Text),
];

const TAG: Members = &[("Key", Text), ("Value", Text)];

const TAG_SPECIFICATION: Members = &[("ResourceType", Text), ("Tags", List(&Structure(TAG)))];
