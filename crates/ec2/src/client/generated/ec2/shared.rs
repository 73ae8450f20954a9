//! Structures of more than one operation, from JSON and to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::types;
use serde_json::Value;

use crate::client::read::{self, Members, Misfit};
use crate::client::write::{self, Object};

pub(super) fn read_attribute_boolean_value(
    value: &Value,
) -> Result<types::AttributeBooleanValue, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::AttributeBooleanValue::builder()
        .set_value(members.get("Value", read::flag)?)
        .build();
    members.end("AttributeBooleanValue")?;
    Ok(structure)
}

pub(super) fn read_attribute_value(value: &Value) -> Result<types::AttributeValue, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::AttributeValue::builder()
        .set_value(members.get("Value", read::text)?)
        .build();
    members.end("AttributeValue")?;
    Ok(structure)
}

pub(super) fn read_capacity_reservation_specification(
    value: &Value,
) -> Result<types::CapacityReservationSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::CapacityReservationSpecification::builder()
        .set_capacity_reservation_preference(
            members.get("CapacityReservationPreference", read::enumeration)?,
        )
        .set_capacity_reservation_target(members.get(
            "CapacityReservationTarget",
            read_capacity_reservation_target,
        )?)
        .build();
    members.end("CapacityReservationSpecification")?;
    Ok(structure)
}

pub(super) fn write_capacity_reservation_specification_response(
    value: &types::CapacityReservationSpecificationResponse,
) -> Value {
    let mut members = Object::new();
    members.put(
        "CapacityReservationPreference",
        value.capacity_reservation_preference.as_ref(),
        write::enumeration,
    );
    members.put(
        "CapacityReservationTarget",
        value.capacity_reservation_target.as_ref(),
        write_capacity_reservation_target_response,
    );
    members.end()
}

pub(super) fn read_capacity_reservation_target(
    value: &Value,
) -> Result<types::CapacityReservationTarget, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::CapacityReservationTarget::builder()
        .set_capacity_reservation_id(members.get("CapacityReservationId", read::text)?)
        .set_capacity_reservation_resource_group_arn(
            members.get("CapacityReservationResourceGroupArn", read::text)?,
        )
        .build();
    members.end("CapacityReservationTarget")?;
    Ok(structure)
}

pub(super) fn write_capacity_reservation_target_response(
    value: &types::CapacityReservationTargetResponse,
) -> Value {
    let mut members = Object::new();
    members.put(
        "CapacityReservationId",
        value.capacity_reservation_id.as_ref(),
        write::text,
    );
    members.put(
        "CapacityReservationResourceGroupArn",
        value.capacity_reservation_resource_group_arn.as_ref(),
        write::text,
    );
    members.end()
}

pub(super) fn read_connection_tracking_specification_request(
    value: &Value,
) -> Result<types::ConnectionTrackingSpecificationRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::ConnectionTrackingSpecificationRequest::builder()
        .set_tcp_established_timeout(members.get("TcpEstablishedTimeout", read::whole)?)
        .set_udp_stream_timeout(members.get("UdpStreamTimeout", read::whole)?)
        .set_udp_timeout(members.get("UdpTimeout", read::whole)?)
        .build();
    members.end("ConnectionTrackingSpecificationRequest")?;
    Ok(structure)
}

pub(super) fn write_connection_tracking_specification_response(
    value: &types::ConnectionTrackingSpecificationResponse,
) -> Value {
    let mut members = Object::new();
    members.put(
        "TcpEstablishedTimeout",
        value.tcp_established_timeout.as_ref(),
        write::whole,
    );
    members.put(
        "UdpStreamTimeout",
        value.udp_stream_timeout.as_ref(),
        write::whole,
    );
    members.put("UdpTimeout", value.udp_timeout.as_ref(), write::whole);
    members.end()
}

pub(super) fn write_cpu_options(value: &types::CpuOptions) -> Value {
    let mut members = Object::new();
    members.put("AmdSevSnp", value.amd_sev_snp.as_ref(), write::enumeration);
    members.put("CoreCount", value.core_count.as_ref(), write::whole);
    members.put(
        "NestedVirtualization",
        value.nested_virtualization.as_ref(),
        write::enumeration,
    );
    members.put(
        "ThreadsPerCore",
        value.threads_per_core.as_ref(),
        write::whole,
    );
    members.end()
}

pub(super) fn write_ebs_instance_block_device(value: &types::EbsInstanceBlockDevice) -> Value {
    let mut members = Object::new();
    members.put(
        "AssociatedResource",
        value.associated_resource.as_ref(),
        write::text,
    );
    members.put("AttachTime", value.attach_time.as_ref(), write::time);
    members.put(
        "DeleteOnTermination",
        value.delete_on_termination.as_ref(),
        write::flag,
    );
    members.put("EbsCardIndex", value.ebs_card_index.as_ref(), write::whole);
    members.put("Operator", value.operator.as_ref(), write_operator_response);
    members.put("Status", value.status.as_ref(), write::enumeration);
    members.put("VolumeId", value.volume_id.as_ref(), write::text);
    members.put("VolumeOwnerId", value.volume_owner_id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_elastic_gpu_association(value: &types::ElasticGpuAssociation) -> Value {
    let mut members = Object::new();
    members.put(
        "ElasticGpuAssociationId",
        value.elastic_gpu_association_id.as_ref(),
        write::text,
    );
    members.put(
        "ElasticGpuAssociationState",
        value.elastic_gpu_association_state.as_ref(),
        write::text,
    );
    members.put(
        "ElasticGpuAssociationTime",
        value.elastic_gpu_association_time.as_ref(),
        write::text,
    );
    members.put("ElasticGpuId", value.elastic_gpu_id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_elastic_inference_accelerator_association(
    value: &types::ElasticInferenceAcceleratorAssociation,
) -> Value {
    let mut members = Object::new();
    members.put(
        "ElasticInferenceAcceleratorArn",
        value.elastic_inference_accelerator_arn.as_ref(),
        write::text,
    );
    members.put(
        "ElasticInferenceAcceleratorAssociationId",
        value.elastic_inference_accelerator_association_id.as_ref(),
        write::text,
    );
    members.put(
        "ElasticInferenceAcceleratorAssociationState",
        value
            .elastic_inference_accelerator_association_state
            .as_ref(),
        write::text,
    );
    members.put(
        "ElasticInferenceAcceleratorAssociationTime",
        value
            .elastic_inference_accelerator_association_time
            .as_ref(),
        write::time,
    );
    members.end()
}

pub(super) fn write_enclave_options(value: &types::EnclaveOptions) -> Value {
    let mut members = Object::new();
    members.put("Enabled", value.enabled.as_ref(), write::flag);
    members.end()
}

pub(super) fn read_enclave_options_request(
    value: &Value,
) -> Result<types::EnclaveOptionsRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::EnclaveOptionsRequest::builder()
        .set_enabled(members.get("Enabled", read::flag)?)
        .build();
    members.end("EnclaveOptionsRequest")?;
    Ok(structure)
}

pub(super) fn read_filter(value: &Value) -> Result<types::Filter, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::Filter::builder()
        .set_name(members.get("Name", read::text)?)
        .set_values(members.list("Values", read::text)?)
        .build();
    members.end("Filter")?;
    Ok(structure)
}

pub(super) fn write_group_identifier(value: &types::GroupIdentifier) -> Value {
    let mut members = Object::new();
    members.put("GroupId", value.group_id.as_ref(), write::text);
    members.put("GroupName", value.group_name.as_ref(), write::text);
    members.end()
}

pub(super) fn write_hibernation_options(value: &types::HibernationOptions) -> Value {
    let mut members = Object::new();
    members.put("Configured", value.configured.as_ref(), write::flag);
    members.end()
}

pub(super) fn write_iam_instance_profile(value: &types::IamInstanceProfile) -> Value {
    let mut members = Object::new();
    members.put("Arn", value.arn.as_ref(), write::text);
    members.put("Id", value.id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_iam_instance_profile_association(
    value: &types::IamInstanceProfileAssociation,
) -> Value {
    let mut members = Object::new();
    members.put("AssociationId", value.association_id.as_ref(), write::text);
    members.put(
        "IamInstanceProfile",
        value.iam_instance_profile.as_ref(),
        write_iam_instance_profile,
    );
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.put("State", value.state.as_ref(), write::enumeration);
    members.put("Timestamp", value.timestamp.as_ref(), write::time);
    members.end()
}

pub(super) fn read_iam_instance_profile_specification(
    value: &Value,
) -> Result<types::IamInstanceProfileSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::IamInstanceProfileSpecification::builder()
        .set_arn(members.get("Arn", read::text)?)
        .set_name(members.get("Name", read::text)?)
        .build();
    members.end("IamInstanceProfileSpecification")?;
    Ok(structure)
}

pub(super) fn write_instance(value: &types::Instance) -> Value {
    let mut members = Object::new();
    members.put(
        "AmiLaunchIndex",
        value.ami_launch_index.as_ref(),
        write::whole,
    );
    members.put(
        "Architecture",
        value.architecture.as_ref(),
        write::enumeration,
    );
    members.list(
        "BlockDeviceMappings",
        value.block_device_mappings.as_ref(),
        write_instance_block_device_mapping,
    );
    members.put("BootMode", value.boot_mode.as_ref(), write::enumeration);
    members.put(
        "CapacityBlockId",
        value.capacity_block_id.as_ref(),
        write::text,
    );
    members.put(
        "CapacityReservationId",
        value.capacity_reservation_id.as_ref(),
        write::text,
    );
    members.put(
        "CapacityReservationSpecification",
        value.capacity_reservation_specification.as_ref(),
        write_capacity_reservation_specification_response,
    );
    members.put("ClientToken", value.client_token.as_ref(), write::text);
    members.put("CpuOptions", value.cpu_options.as_ref(), write_cpu_options);
    members.put(
        "CurrentInstanceBootMode",
        value.current_instance_boot_mode.as_ref(),
        write::enumeration,
    );
    members.put("EbsOptimized", value.ebs_optimized.as_ref(), write::flag);
    members.list(
        "ElasticGpuAssociations",
        value.elastic_gpu_associations.as_ref(),
        write_elastic_gpu_association,
    );
    members.list(
        "ElasticInferenceAcceleratorAssociations",
        value.elastic_inference_accelerator_associations.as_ref(),
        write_elastic_inference_accelerator_association,
    );
    members.put("EnaSupport", value.ena_support.as_ref(), write::flag);
    members.put(
        "EnclaveOptions",
        value.enclave_options.as_ref(),
        write_enclave_options,
    );
    members.put(
        "HibernationOptions",
        value.hibernation_options.as_ref(),
        write_hibernation_options,
    );
    members.put("Hypervisor", value.hypervisor.as_ref(), write::enumeration);
    members.put(
        "IamInstanceProfile",
        value.iam_instance_profile.as_ref(),
        write_iam_instance_profile,
    );
    members.put("ImageId", value.image_id.as_ref(), write::text);
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.put(
        "InstanceLifecycle",
        value.instance_lifecycle.as_ref(),
        write::enumeration,
    );
    members.put(
        "InstanceType",
        value.instance_type.as_ref(),
        write::enumeration,
    );
    members.put("Ipv6Address", value.ipv6_address.as_ref(), write::text);
    members.put("KernelId", value.kernel_id.as_ref(), write::text);
    members.put("KeyName", value.key_name.as_ref(), write::text);
    members.put("LaunchTime", value.launch_time.as_ref(), write::time);
    members.list(
        "Licenses",
        value.licenses.as_ref(),
        write_license_configuration,
    );
    members.put(
        "MaintenanceOptions",
        value.maintenance_options.as_ref(),
        write_instance_maintenance_options,
    );
    members.put(
        "MetadataOptions",
        value.metadata_options.as_ref(),
        write_instance_metadata_options_response,
    );
    members.put("Monitoring", value.monitoring.as_ref(), write_monitoring);
    members.list(
        "NetworkInterfaces",
        value.network_interfaces.as_ref(),
        write_instance_network_interface,
    );
    members.put(
        "NetworkPerformanceOptions",
        value.network_performance_options.as_ref(),
        write_instance_network_performance_options,
    );
    members.put("Operator", value.operator.as_ref(), write_operator_response);
    members.put("OutpostArn", value.outpost_arn.as_ref(), write::text);
    members.put("Placement", value.placement.as_ref(), write_placement);
    members.put("Platform", value.platform.as_ref(), write::enumeration);
    members.put(
        "PlatformDetails",
        value.platform_details.as_ref(),
        write::text,
    );
    members.put(
        "PrivateDnsName",
        value.private_dns_name.as_ref(),
        write::text,
    );
    members.put(
        "PrivateDnsNameOptions",
        value.private_dns_name_options.as_ref(),
        write_private_dns_name_options_response,
    );
    members.put(
        "PrivateIpAddress",
        value.private_ip_address.as_ref(),
        write::text,
    );
    members.list(
        "ProductCodes",
        value.product_codes.as_ref(),
        write_product_code,
    );
    members.put("PublicDnsName", value.public_dns_name.as_ref(), write::text);
    members.put(
        "PublicIpAddress",
        value.public_ip_address.as_ref(),
        write::text,
    );
    members.put("RamdiskId", value.ramdisk_id.as_ref(), write::text);
    members.put(
        "RootDeviceName",
        value.root_device_name.as_ref(),
        write::text,
    );
    members.put(
        "RootDeviceType",
        value.root_device_type.as_ref(),
        write::enumeration,
    );
    members.list(
        "SecondaryInterfaces",
        value.secondary_interfaces.as_ref(),
        write_instance_secondary_interface,
    );
    members.list(
        "SecurityGroups",
        value.security_groups.as_ref(),
        write_group_identifier,
    );
    members.put(
        "SourceDestCheck",
        value.source_dest_check.as_ref(),
        write::flag,
    );
    members.put(
        "SpotInstanceRequestId",
        value.spot_instance_request_id.as_ref(),
        write::text,
    );
    members.put(
        "SriovNetSupport",
        value.sriov_net_support.as_ref(),
        write::text,
    );
    members.put("State", value.state.as_ref(), write_instance_state);
    members.put(
        "StateReason",
        value.state_reason.as_ref(),
        write_state_reason,
    );
    members.put(
        "StateTransitionReason",
        value.state_transition_reason.as_ref(),
        write::text,
    );
    members.put("SubnetId", value.subnet_id.as_ref(), write::text);
    members.list("Tags", value.tags.as_ref(), write_tag);
    members.put("TpmSupport", value.tpm_support.as_ref(), write::text);
    members.put(
        "UsageOperation",
        value.usage_operation.as_ref(),
        write::text,
    );
    members.put(
        "UsageOperationUpdateTime",
        value.usage_operation_update_time.as_ref(),
        write::time,
    );
    members.put(
        "VirtualizationType",
        value.virtualization_type.as_ref(),
        write::enumeration,
    );
    members.put("VpcId", value.vpc_id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_instance_attachment_ena_srd_specification(
    value: &types::InstanceAttachmentEnaSrdSpecification,
) -> Value {
    let mut members = Object::new();
    members.put("EnaSrdEnabled", value.ena_srd_enabled.as_ref(), write::flag);
    members.put(
        "EnaSrdUdpSpecification",
        value.ena_srd_udp_specification.as_ref(),
        write_instance_attachment_ena_srd_udp_specification,
    );
    members.end()
}

pub(super) fn write_instance_attachment_ena_srd_udp_specification(
    value: &types::InstanceAttachmentEnaSrdUdpSpecification,
) -> Value {
    let mut members = Object::new();
    members.put(
        "EnaSrdUdpEnabled",
        value.ena_srd_udp_enabled.as_ref(),
        write::flag,
    );
    members.end()
}

pub(super) fn write_instance_block_device_mapping(
    value: &types::InstanceBlockDeviceMapping,
) -> Value {
    let mut members = Object::new();
    members.put("DeviceName", value.device_name.as_ref(), write::text);
    members.put("Ebs", value.ebs.as_ref(), write_ebs_instance_block_device);
    members.end()
}

pub(super) fn write_instance_ipv4_prefix(value: &types::InstanceIpv4Prefix) -> Value {
    let mut members = Object::new();
    members.put("Ipv4Prefix", value.ipv4_prefix.as_ref(), write::text);
    members.end()
}

pub(super) fn write_instance_ipv6_address(value: &types::InstanceIpv6Address) -> Value {
    let mut members = Object::new();
    members.put("Ipv6Address", value.ipv6_address.as_ref(), write::text);
    members.put("IsPrimaryIpv6", value.is_primary_ipv6.as_ref(), write::flag);
    members.end()
}

pub(super) fn write_instance_ipv6_prefix(value: &types::InstanceIpv6Prefix) -> Value {
    let mut members = Object::new();
    members.put("Ipv6Prefix", value.ipv6_prefix.as_ref(), write::text);
    members.end()
}

pub(super) fn write_instance_maintenance_options(
    value: &types::InstanceMaintenanceOptions,
) -> Value {
    let mut members = Object::new();
    members.put(
        "AutoRecovery",
        value.auto_recovery.as_ref(),
        write::enumeration,
    );
    members.put(
        "RebootMigration",
        value.reboot_migration.as_ref(),
        write::enumeration,
    );
    members.end()
}

pub(super) fn write_instance_metadata_options_response(
    value: &types::InstanceMetadataOptionsResponse,
) -> Value {
    let mut members = Object::new();
    members.put(
        "HttpEndpoint",
        value.http_endpoint.as_ref(),
        write::enumeration,
    );
    members.put(
        "HttpProtocolIpv6",
        value.http_protocol_ipv6.as_ref(),
        write::enumeration,
    );
    members.put(
        "HttpPutResponseHopLimit",
        value.http_put_response_hop_limit.as_ref(),
        write::whole,
    );
    members.put("HttpTokens", value.http_tokens.as_ref(), write::enumeration);
    members.put(
        "InstanceMetadataTags",
        value.instance_metadata_tags.as_ref(),
        write::enumeration,
    );
    members.put("State", value.state.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_instance_monitoring(value: &types::InstanceMonitoring) -> Value {
    let mut members = Object::new();
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.put("Monitoring", value.monitoring.as_ref(), write_monitoring);
    members.end()
}

pub(super) fn write_instance_network_interface(value: &types::InstanceNetworkInterface) -> Value {
    let mut members = Object::new();
    members.put(
        "Association",
        value.association.as_ref(),
        write_instance_network_interface_association,
    );
    members.put(
        "Attachment",
        value.attachment.as_ref(),
        write_instance_network_interface_attachment,
    );
    members.put(
        "ConnectionTrackingConfiguration",
        value.connection_tracking_configuration.as_ref(),
        write_connection_tracking_specification_response,
    );
    members.put("Description", value.description.as_ref(), write::text);
    members.list("Groups", value.groups.as_ref(), write_group_identifier);
    members.put("InterfaceType", value.interface_type.as_ref(), write::text);
    members.list(
        "Ipv4Prefixes",
        value.ipv4_prefixes.as_ref(),
        write_instance_ipv4_prefix,
    );
    members.list(
        "Ipv6Addresses",
        value.ipv6_addresses.as_ref(),
        write_instance_ipv6_address,
    );
    members.list(
        "Ipv6Prefixes",
        value.ipv6_prefixes.as_ref(),
        write_instance_ipv6_prefix,
    );
    members.put("MacAddress", value.mac_address.as_ref(), write::text);
    members.put(
        "NetworkInterfaceId",
        value.network_interface_id.as_ref(),
        write::text,
    );
    members.put("Operator", value.operator.as_ref(), write_operator_response);
    members.put("OwnerId", value.owner_id.as_ref(), write::text);
    members.put(
        "PrivateDnsName",
        value.private_dns_name.as_ref(),
        write::text,
    );
    members.put(
        "PrivateIpAddress",
        value.private_ip_address.as_ref(),
        write::text,
    );
    members.list(
        "PrivateIpAddresses",
        value.private_ip_addresses.as_ref(),
        write_instance_private_ip_address,
    );
    members.put(
        "SourceDestCheck",
        value.source_dest_check.as_ref(),
        write::flag,
    );
    members.put("Status", value.status.as_ref(), write::enumeration);
    members.put("SubnetId", value.subnet_id.as_ref(), write::text);
    members.put("VpcId", value.vpc_id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_instance_network_interface_association(
    value: &types::InstanceNetworkInterfaceAssociation,
) -> Value {
    let mut members = Object::new();
    members.put("CarrierIp", value.carrier_ip.as_ref(), write::text);
    members.put(
        "CustomerOwnedIp",
        value.customer_owned_ip.as_ref(),
        write::text,
    );
    members.put("IpOwnerId", value.ip_owner_id.as_ref(), write::text);
    members.put("PublicDnsName", value.public_dns_name.as_ref(), write::text);
    members.put("PublicIp", value.public_ip.as_ref(), write::text);
    members.end()
}

pub(super) fn write_instance_network_interface_attachment(
    value: &types::InstanceNetworkInterfaceAttachment,
) -> Value {
    let mut members = Object::new();
    members.put("AttachTime", value.attach_time.as_ref(), write::time);
    members.put("AttachmentId", value.attachment_id.as_ref(), write::text);
    members.put(
        "DeleteOnTermination",
        value.delete_on_termination.as_ref(),
        write::flag,
    );
    members.put("DeviceIndex", value.device_index.as_ref(), write::whole);
    members.put(
        "EnaQueueCount",
        value.ena_queue_count.as_ref(),
        write::whole,
    );
    members.put(
        "EnaSrdSpecification",
        value.ena_srd_specification.as_ref(),
        write_instance_attachment_ena_srd_specification,
    );
    members.put(
        "NetworkCardIndex",
        value.network_card_index.as_ref(),
        write::whole,
    );
    members.put("Status", value.status.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_instance_network_performance_options(
    value: &types::InstanceNetworkPerformanceOptions,
) -> Value {
    let mut members = Object::new();
    members.put(
        "BandwidthWeighting",
        value.bandwidth_weighting.as_ref(),
        write::enumeration,
    );
    members.end()
}

pub(super) fn write_instance_private_ip_address(value: &types::InstancePrivateIpAddress) -> Value {
    let mut members = Object::new();
    members.put(
        "Association",
        value.association.as_ref(),
        write_instance_network_interface_association,
    );
    members.put("Primary", value.primary.as_ref(), write::flag);
    members.put(
        "PrivateDnsName",
        value.private_dns_name.as_ref(),
        write::text,
    );
    members.put(
        "PrivateIpAddress",
        value.private_ip_address.as_ref(),
        write::text,
    );
    members.end()
}

pub(super) fn write_instance_secondary_interface(
    value: &types::InstanceSecondaryInterface,
) -> Value {
    let mut members = Object::new();
    members.put(
        "Attachment",
        value.attachment.as_ref(),
        write_instance_secondary_interface_attachment,
    );
    members.put(
        "InterfaceType",
        value.interface_type.as_ref(),
        write::enumeration,
    );
    members.put("MacAddress", value.mac_address.as_ref(), write::text);
    members.put("OwnerId", value.owner_id.as_ref(), write::text);
    members.list(
        "PrivateIpAddresses",
        value.private_ip_addresses.as_ref(),
        write_instance_secondary_interface_private_ip_address,
    );
    members.put(
        "SecondaryInterfaceId",
        value.secondary_interface_id.as_ref(),
        write::text,
    );
    members.put(
        "SecondaryNetworkId",
        value.secondary_network_id.as_ref(),
        write::text,
    );
    members.put(
        "SecondarySubnetId",
        value.secondary_subnet_id.as_ref(),
        write::text,
    );
    members.put(
        "SourceDestCheck",
        value.source_dest_check.as_ref(),
        write::flag,
    );
    members.put("Status", value.status.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_instance_secondary_interface_attachment(
    value: &types::InstanceSecondaryInterfaceAttachment,
) -> Value {
    let mut members = Object::new();
    members.put("AttachTime", value.attach_time.as_ref(), write::time);
    members.put("AttachmentId", value.attachment_id.as_ref(), write::text);
    members.put(
        "DeleteOnTermination",
        value.delete_on_termination.as_ref(),
        write::flag,
    );
    members.put("DeviceIndex", value.device_index.as_ref(), write::whole);
    members.put(
        "NetworkCardIndex",
        value.network_card_index.as_ref(),
        write::whole,
    );
    members.put("Status", value.status.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_instance_secondary_interface_private_ip_address(
    value: &types::InstanceSecondaryInterfacePrivateIpAddress,
) -> Value {
    let mut members = Object::new();
    members.put(
        "PrivateIpAddress",
        value.private_ip_address.as_ref(),
        write::text,
    );
    members.end()
}

pub(super) fn write_instance_state(value: &types::InstanceState) -> Value {
    let mut members = Object::new();
    members.put("Code", value.code.as_ref(), write::whole);
    members.put("Name", value.name.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_instance_state_change(value: &types::InstanceStateChange) -> Value {
    let mut members = Object::new();
    members.put(
        "CurrentState",
        value.current_state.as_ref(),
        write_instance_state,
    );
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.put(
        "PreviousState",
        value.previous_state.as_ref(),
        write_instance_state,
    );
    members.end()
}

pub(super) fn write_license_configuration(value: &types::LicenseConfiguration) -> Value {
    let mut members = Object::new();
    members.put(
        "LicenseConfigurationArn",
        value.license_configuration_arn.as_ref(),
        write::text,
    );
    members.end()
}

pub(super) fn write_monitoring(value: &types::Monitoring) -> Value {
    let mut members = Object::new();
    members.put("State", value.state.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_operator_response(value: &types::OperatorResponse) -> Value {
    let mut members = Object::new();
    members.put(
        "HiddenByDefault",
        value.hidden_by_default.as_ref(),
        write::flag,
    );
    members.put("Managed", value.managed.as_ref(), write::flag);
    members.put("Principal", value.principal.as_ref(), write::text);
    members.end()
}

pub(super) fn write_placement(value: &types::Placement) -> Value {
    let mut members = Object::new();
    members.put("Affinity", value.affinity.as_ref(), write::text);
    members.put(
        "AvailabilityZone",
        value.availability_zone.as_ref(),
        write::text,
    );
    members.put(
        "AvailabilityZoneId",
        value.availability_zone_id.as_ref(),
        write::text,
    );
    members.put("GroupId", value.group_id.as_ref(), write::text);
    members.put("GroupName", value.group_name.as_ref(), write::text);
    members.put("HostId", value.host_id.as_ref(), write::text);
    members.put(
        "HostResourceGroupArn",
        value.host_resource_group_arn.as_ref(),
        write::text,
    );
    members.put(
        "PartitionNumber",
        value.partition_number.as_ref(),
        write::whole,
    );
    members.put("SpreadDomain", value.spread_domain.as_ref(), write::text);
    members.put("Tenancy", value.tenancy.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_private_dns_name_options_response(
    value: &types::PrivateDnsNameOptionsResponse,
) -> Value {
    let mut members = Object::new();
    members.put(
        "EnableResourceNameDnsAAAARecord",
        value.enable_resource_name_dns_aaaa_record.as_ref(),
        write::flag,
    );
    members.put(
        "EnableResourceNameDnsARecord",
        value.enable_resource_name_dns_a_record.as_ref(),
        write::flag,
    );
    members.put(
        "HostnameType",
        value.hostname_type.as_ref(),
        write::enumeration,
    );
    members.end()
}

pub(super) fn write_product_code(value: &types::ProductCode) -> Value {
    let mut members = Object::new();
    members.put("ProductCodeId", value.product_code_id.as_ref(), write::text);
    members.put(
        "ProductCodeType",
        value.product_code_type.as_ref(),
        write::enumeration,
    );
    members.end()
}

pub(super) fn write_state_reason(value: &types::StateReason) -> Value {
    let mut members = Object::new();
    members.put("Code", value.code.as_ref(), write::text);
    members.put("Message", value.message.as_ref(), write::text);
    members.end()
}

pub(super) fn read_tag(value: &Value) -> Result<types::Tag, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::Tag::builder()
        .set_key(members.get("Key", read::text)?)
        .set_value(members.get("Value", read::text)?)
        .build();
    members.end("Tag")?;
    Ok(structure)
}

pub(super) fn write_tag(value: &types::Tag) -> Value {
    let mut members = Object::new();
    members.put("Key", value.key.as_ref(), write::text);
    members.put("Value", value.value.as_ref(), write::text);
    members.end()
}
