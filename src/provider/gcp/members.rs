//! The members of Compute Engine's Instance resource, except those that nstance manages.
//!
//! In: nothing; the table follows the API's description (compute v1). Out: [`INSTANCE`]. Must not:
//! contain rules; the parent module does.

use crate::provider::shape::Members;
use crate::provider::shape::Shape::{Flag, List, Long, Map, Reported, Structure, Text, Whole};

/// The valid args besides the short names.
pub(super) const INSTANCE: Members = &[
    (
        "advancedMachineFeatures",
        Structure(ADVANCED_MACHINE_FEATURES),
    ),
    ("canIpForward", Flag),
    (
        "confidentialInstanceConfig",
        Structure(CONFIDENTIAL_INSTANCE_CONFIG),
    ),
    ("cpuPlatform", Reported),
    ("creationTimestamp", Reported),
    ("deletionProtection", Flag),
    ("description", Text),
    ("disks", List(&Structure(ATTACHED_DISK))),
    ("displayDevice", Structure(DISPLAY_DEVICE)),
    ("fingerprint", Text),
    ("guestAccelerators", List(&Structure(ACCELERATOR_CONFIG))),
    ("hostname", Text),
    ("id", Reported),
    ("instanceEncryptionKey", Structure(CUSTOMER_ENCRYPTION_KEY)),
    ("keyRevocationActionType", Text),
    ("kind", Reported),
    ("labelFingerprint", Text),
    ("labels", Map(&Text)),
    ("lastStartTimestamp", Reported),
    ("lastStopTimestamp", Reported),
    ("lastSuspendedTimestamp", Reported),
    ("localSsdEncryptionMode", Text),
    ("metadata", Structure(METADATA)),
    ("minCpuPlatform", Text),
    ("networkInterfaces", List(&Structure(NETWORK_INTERFACE))),
    (
        "networkPerformanceConfig",
        Structure(NETWORK_PERFORMANCE_CONFIG),
    ),
    ("params", Structure(INSTANCE_PARAMS)),
    ("privateIpv6GoogleAccess", Text),
    ("reservationAffinity", Structure(RESERVATION_AFFINITY)),
    ("resourcePolicies", List(&Text)),
    ("resourceStatus", Reported),
    ("satisfiesPzi", Reported),
    ("satisfiesPzs", Reported),
    ("scheduling", Structure(SCHEDULING)),
    ("selfLink", Reported),
    ("serviceAccounts", List(&Structure(SERVICE_ACCOUNT))),
    (
        "shieldedInstanceConfig",
        Structure(SHIELDED_INSTANCE_CONFIG),
    ),
    (
        "shieldedInstanceIntegrityPolicy",
        Structure(SHIELDED_INSTANCE_INTEGRITY_POLICY),
    ),
    ("sourceMachineImage", Text),
    (
        "sourceMachineImageEncryptionKey",
        Structure(CUSTOMER_ENCRYPTION_KEY),
    ),
    ("startRestricted", Reported),
    ("status", Reported),
    ("statusMessage", Reported),
    ("tags", Structure(TAGS)),
    (
        "workloadIdentityConfig",
        Structure(WORKLOAD_IDENTITY_CONFIG),
    ),
];

const ACCELERATOR_CONFIG: Members = &[("acceleratorCount", Whole), ("acceleratorType", Text)];

const ACCESS_CONFIG: Members = &[
    ("externalIpv6", Text),
    ("externalIpv6PrefixLength", Whole),
    ("ipCollection", Text),
    ("kind", Reported),
    ("name", Text),
    ("natIP", Text),
    ("networkTier", Text),
    ("publicPtrDomainName", Text),
    ("securityPolicy", Text),
    ("setPublicPtr", Flag),
    ("type", Text),
];

const ADVANCED_MACHINE_FEATURES: Members = &[
    ("enableNestedVirtualization", Flag),
    ("enableUefiNetworking", Flag),
    ("performanceMonitoringUnit", Text),
    ("threadsPerCore", Whole),
    ("turboMode", Text),
    ("visibleCoreCount", Whole),
];

const ALIAS_IP_RANGE: Members = &[("ipCidrRange", Text), ("subnetworkRangeName", Text)];

const ATTACHED_DISK: Members = &[
    ("architecture", Reported),
    ("autoDelete", Flag),
    ("boot", Flag),
    ("deviceName", Text),
    ("diskEncryptionKey", Structure(CUSTOMER_ENCRYPTION_KEY)),
    ("diskSizeGb", Long),
    ("forceAttach", Flag),
    ("guestOsFeatures", List(&Structure(GUEST_OS_FEATURE))),
    ("index", Reported),
    (
        "initializeParams",
        Structure(ATTACHED_DISK_INITIALIZE_PARAMS),
    ),
    ("interface", Text),
    ("kind", Reported),
    ("licenses", Reported),
    ("mode", Text),
    ("savedState", Reported),
    ("shieldedInstanceInitialState", Reported),
    ("source", Text),
    ("type", Text),
];

const ATTACHED_DISK_INITIALIZE_PARAMS: Members = &[
    ("architecture", Text),
    ("description", Text),
    ("diskName", Text),
    ("diskSizeGb", Long),
    ("diskType", Text),
    ("enableConfidentialCompute", Flag),
    ("labels", Map(&Text)),
    ("licenses", List(&Text)),
    ("onUpdateAction", Text),
    ("provisionedIops", Long),
    ("provisionedThroughput", Long),
    ("replicaZones", List(&Text)),
    ("resourceManagerTags", Map(&Text)),
    ("resourcePolicies", List(&Text)),
    ("sourceImage", Text),
    (
        "sourceImageEncryptionKey",
        Structure(CUSTOMER_ENCRYPTION_KEY),
    ),
    ("sourceSnapshot", Text),
    (
        "sourceSnapshotEncryptionKey",
        Structure(CUSTOMER_ENCRYPTION_KEY),
    ),
    ("storagePool", Text),
];

const CONFIDENTIAL_INSTANCE_CONFIG: Members = &[
    ("confidentialInstanceType", Text),
    (
        "confidentialParavisorConfig",
        Structure(CONFIDENTIAL_PARAVISOR_CONFIG),
    ),
    ("enableConfidentialCompute", Flag),
];

const CONFIDENTIAL_PARAVISOR_CONFIG: Members =
    &[("confidentialTpmType", Text), ("sevSnpIrqMode", Text)];

const CUSTOMER_ENCRYPTION_KEY: Members = &[
    ("kmsKeyName", Text),
    ("kmsKeyServiceAccount", Text),
    ("rawKey", Text),
    ("rsaEncryptedKey", Text),
    ("sha256", Text),
];

const DISPLAY_DEVICE: Members = &[("enableDisplay", Flag)];

const DURATION: Members = &[("nanos", Whole), ("seconds", Long)];

const GUEST_OS_FEATURE: Members = &[("type", Text)];

const INSTANCE_PARAMS: Members = &[
    ("requestValidForDuration", Structure(DURATION)),
    ("resourceManagerTags", Map(&Text)),
];

const METADATA: Members = &[
    ("fingerprint", Text),
    ("items", List(&Structure(METADATA_ITEMS))),
    ("kind", Reported),
];

const METADATA_ITEMS: Members = &[("key", Text), ("value", Text)];

const NETWORK_INTERFACE: Members = &[
    ("accessConfigs", List(&Structure(ACCESS_CONFIG))),
    ("aliasIpRanges", List(&Structure(ALIAS_IP_RANGE))),
    ("aliasIpv6Ranges", List(&Structure(ALIAS_IP_RANGE))),
    ("enableVpcScopedDns", Flag),
    ("fingerprint", Text),
    ("igmpQuery", Text),
    ("internalIpv6PrefixLength", Whole),
    ("ipv6AccessConfigs", List(&Structure(ACCESS_CONFIG))),
    ("ipv6AccessType", Reported),
    ("ipv6Address", Text),
    ("kind", Reported),
    ("name", Reported),
    ("network", Text),
    ("networkAttachment", Text),
    ("networkIP", Text),
    ("nicType", Text),
    ("parentNicName", Text),
    ("queueCount", Whole),
    ("serviceClassId", Text),
    ("stackType", Text),
    ("subnetwork", Text),
    ("vlan", Whole),
];

const NETWORK_PERFORMANCE_CONFIG: Members = &[("totalEgressBandwidthTier", Text)];

const RESERVATION_AFFINITY: Members = &[
    ("consumeReservationType", Text),
    ("key", Text),
    ("values", List(&Text)),
];

const SCHEDULING: Members = &[
    ("automaticRestart", Flag),
    ("availabilityDomain", Whole),
    ("exposeHostTopology", Flag),
    ("gracefulShutdown", Structure(SCHEDULING_GRACEFUL_SHUTDOWN)),
    ("hostErrorTimeoutSeconds", Whole),
    ("instanceTerminationAction", Text),
    ("localSsdRecoveryTimeout", Structure(DURATION)),
    ("locationHint", Text),
    ("maxRunDuration", Structure(DURATION)),
    ("minNodeCpus", Whole),
    ("nodeAffinities", List(&Structure(SCHEDULING_NODE_AFFINITY))),
    ("onHostMaintenance", Text),
    (
        "onInstanceStopAction",
        Structure(SCHEDULING_ON_INSTANCE_STOP_ACTION),
    ),
    ("preemptible", Flag),
    ("preemptionNoticeDuration", Structure(DURATION)),
    ("protectionTier", Text),
    ("provisioningModel", Text),
    ("skipGuestOsShutdown", Flag),
    ("terminationTime", Text),
];

const SCHEDULING_GRACEFUL_SHUTDOWN: Members =
    &[("enabled", Flag), ("maxDuration", Structure(DURATION))];

const SCHEDULING_NODE_AFFINITY: Members =
    &[("key", Text), ("operator", Text), ("values", List(&Text))];

const SCHEDULING_ON_INSTANCE_STOP_ACTION: Members = &[("discardLocalSsd", Flag)];

const SERVICE_ACCOUNT: Members = &[("email", Text), ("scopes", List(&Text))];

const SHIELDED_INSTANCE_CONFIG: Members = &[
    ("enableIntegrityMonitoring", Flag),
    ("enableSecureBoot", Flag),
    ("enableVtpm", Flag),
];

const SHIELDED_INSTANCE_INTEGRITY_POLICY: Members = &[("updateAutoLearnPolicy", Flag)];

const TAGS: Members = &[("fingerprint", Text), ("items", List(&Text))];

const WORKLOAD_IDENTITY_CONFIG: Members = &[
    ("identity", Text),
    ("identityCertificateEnabled", Flag),
    ("identityType", Text),
];
