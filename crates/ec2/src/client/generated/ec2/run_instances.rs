//! `RunInstances`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::run_instances::{
    RunInstancesInput, RunInstancesOutput, builders::RunInstancesInputBuilder,
};
use aws_sdk_ec2::types;
use serde_json::Value;

use super::shared::{
    read_capacity_reservation_specification, read_connection_tracking_specification_request,
    read_enclave_options_request, read_iam_instance_profile_specification, read_tag,
    write_group_identifier, write_instance,
};
use crate::ApiError;
use crate::client::failure::failure;
use crate::client::read::{self, Members, Misfit};
use crate::client::write::{self, Object};

/// Makes the call.
pub(in crate::client) async fn call(client: &Client, input: &Value) -> Result<Value, ApiError> {
    let output = read_input(input)?
        .send_with(client)
        .await
        .map_err(failure)?;
    Ok(write_output(&output))
}

#[expect(deprecated, reason = "the API still has these members")]
fn read_input(value: &Value) -> Result<RunInstancesInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = RunInstancesInput::builder()
        .set_additional_info(members.get("AdditionalInfo", read::text)?)
        .set_block_device_mappings(members.list("BlockDeviceMappings", read_block_device_mapping)?)
        .set_capacity_reservation_specification(members.get(
            "CapacityReservationSpecification",
            read_capacity_reservation_specification,
        )?)
        .set_client_token(members.get("ClientToken", read::text)?)
        .set_cpu_options(members.get("CpuOptions", read_cpu_options_request)?)
        .set_credit_specification(
            members.get("CreditSpecification", read_credit_specification_request)?,
        )
        .set_disable_api_stop(members.get("DisableApiStop", read::flag)?)
        .set_disable_api_termination(members.get("DisableApiTermination", read::flag)?)
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_ebs_optimized(members.get("EbsOptimized", read::flag)?)
        .set_elastic_gpu_specification(
            members.list("ElasticGpuSpecification", read_elastic_gpu_specification)?,
        )
        .set_elastic_inference_accelerators(members.list(
            "ElasticInferenceAccelerators",
            read_elastic_inference_accelerator,
        )?)
        .set_enable_primary_ipv6(members.get("EnablePrimaryIpv6", read::flag)?)
        .set_enclave_options(members.get("EnclaveOptions", read_enclave_options_request)?)
        .set_hibernation_options(
            members.get("HibernationOptions", read_hibernation_options_request)?,
        )
        .set_iam_instance_profile(members.get(
            "IamInstanceProfile",
            read_iam_instance_profile_specification,
        )?)
        .set_image_id(members.get("ImageId", read::text)?)
        .set_instance_initiated_shutdown_behavior(
            members.get("InstanceInitiatedShutdownBehavior", read::enumeration)?,
        )
        .set_instance_market_options(members.get(
            "InstanceMarketOptions",
            read_instance_market_options_request,
        )?)
        .set_instance_type(members.get("InstanceType", read::enumeration)?)
        .set_ipv6_address_count(members.get("Ipv6AddressCount", read::whole)?)
        .set_ipv6_addresses(members.list("Ipv6Addresses", read_instance_ipv6_address)?)
        .set_kernel_id(members.get("KernelId", read::text)?)
        .set_key_name(members.get("KeyName", read::text)?)
        .set_launch_template(members.get("LaunchTemplate", read_launch_template_specification)?)
        .set_license_specifications(
            members.list("LicenseSpecifications", read_license_configuration_request)?,
        )
        .set_maintenance_options(members.get(
            "MaintenanceOptions",
            read_instance_maintenance_options_request,
        )?)
        .set_max_count(members.get("MaxCount", read::whole)?)
        .set_metadata_options(
            members.get("MetadataOptions", read_instance_metadata_options_request)?,
        )
        .set_min_count(members.get("MinCount", read::whole)?)
        .set_monitoring(members.get("Monitoring", read_run_instances_monitoring_enabled)?)
        .set_network_interfaces(members.list(
            "NetworkInterfaces",
            read_instance_network_interface_specification,
        )?)
        .set_network_performance_options(members.get(
            "NetworkPerformanceOptions",
            read_instance_network_performance_options_request,
        )?)
        .set_operator(members.get("Operator", read_operator_request)?)
        .set_placement(members.get("Placement", read_placement)?)
        .set_private_dns_name_options(members.get(
            "PrivateDnsNameOptions",
            read_private_dns_name_options_request,
        )?)
        .set_private_ip_address(members.get("PrivateIpAddress", read::text)?)
        .set_ramdisk_id(members.get("RamdiskId", read::text)?)
        .set_secondary_interfaces(members.list(
            "SecondaryInterfaces",
            read_instance_secondary_interface_specification_request,
        )?)
        .set_security_group_ids(members.list("SecurityGroupIds", read::text)?)
        .set_security_groups(members.list("SecurityGroups", read::text)?)
        .set_subnet_id(members.get("SubnetId", read::text)?)
        .set_tag_specifications(members.list("TagSpecifications", read_tag_specification)?)
        .set_user_data(members.get("UserData", read::text)?);
    members.end("RunInstances")?;
    Ok(builder)
}

fn write_output(value: &RunInstancesOutput) -> Value {
    let mut members = Object::new();
    members.list("Groups", value.groups.as_ref(), write_group_identifier);
    members.list("Instances", value.instances.as_ref(), write_instance);
    members.put("OwnerId", value.owner_id.as_ref(), write::text);
    members.put("RequesterId", value.requester_id.as_ref(), write::text);
    members.put("ReservationId", value.reservation_id.as_ref(), write::text);
    members.end()
}

pub(super) fn read_block_device_mapping(
    value: &Value,
) -> Result<types::BlockDeviceMapping, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::BlockDeviceMapping::builder()
        .set_device_name(members.get("DeviceName", read::text)?)
        .set_ebs(members.get("Ebs", read_ebs_block_device)?)
        .set_no_device(members.get("NoDevice", read::text)?)
        .set_virtual_name(members.get("VirtualName", read::text)?)
        .build();
    members.end("BlockDeviceMapping")?;
    Ok(structure)
}

pub(super) fn read_cpu_options_request(value: &Value) -> Result<types::CpuOptionsRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::CpuOptionsRequest::builder()
        .set_amd_sev_snp(members.get("AmdSevSnp", read::enumeration)?)
        .set_core_count(members.get("CoreCount", read::whole)?)
        .set_nested_virtualization(members.get("NestedVirtualization", read::enumeration)?)
        .set_threads_per_core(members.get("ThreadsPerCore", read::whole)?)
        .build();
    members.end("CpuOptionsRequest")?;
    Ok(structure)
}

pub(super) fn read_credit_specification_request(
    value: &Value,
) -> Result<types::CreditSpecificationRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::CreditSpecificationRequest::builder()
        .set_cpu_credits(members.get("CpuCredits", read::text)?)
        .build();
    members.end("CreditSpecificationRequest")?;
    Ok(structure)
}

pub(super) fn read_ebs_block_device(value: &Value) -> Result<types::EbsBlockDevice, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::EbsBlockDevice::builder()
        .set_availability_zone(members.get("AvailabilityZone", read::text)?)
        .set_availability_zone_id(members.get("AvailabilityZoneId", read::text)?)
        .set_delete_on_termination(members.get("DeleteOnTermination", read::flag)?)
        .set_ebs_card_index(members.get("EbsCardIndex", read::whole)?)
        .set_encrypted(members.get("Encrypted", read::flag)?)
        .set_iops(members.get("Iops", read::whole)?)
        .set_kms_key_id(members.get("KmsKeyId", read::text)?)
        .set_outpost_arn(members.get("OutpostArn", read::text)?)
        .set_snapshot_id(members.get("SnapshotId", read::text)?)
        .set_throughput(members.get("Throughput", read::whole)?)
        .set_volume_initialization_rate(members.get("VolumeInitializationRate", read::whole)?)
        .set_volume_size(members.get("VolumeSize", read::whole)?)
        .set_volume_type(members.get("VolumeType", read::enumeration)?)
        .build();
    members.end("EbsBlockDevice")?;
    Ok(structure)
}

pub(super) fn read_elastic_gpu_specification(
    value: &Value,
) -> Result<types::ElasticGpuSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::ElasticGpuSpecification::builder()
        .set_type(members.get("Type", read::text)?)
        .build();
    members.end("ElasticGpuSpecification")?;
    Ok(structure)
}

pub(super) fn read_elastic_inference_accelerator(
    value: &Value,
) -> Result<types::ElasticInferenceAccelerator, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::ElasticInferenceAccelerator::builder()
        .set_count(members.get("Count", read::whole)?)
        .set_type(members.get("Type", read::text)?)
        .build();
    members.end("ElasticInferenceAccelerator")?;
    Ok(structure)
}

pub(super) fn read_ena_srd_specification_request(
    value: &Value,
) -> Result<types::EnaSrdSpecificationRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::EnaSrdSpecificationRequest::builder()
        .set_ena_srd_enabled(members.get("EnaSrdEnabled", read::flag)?)
        .set_ena_srd_udp_specification(members.get(
            "EnaSrdUdpSpecification",
            read_ena_srd_udp_specification_request,
        )?)
        .build();
    members.end("EnaSrdSpecificationRequest")?;
    Ok(structure)
}

pub(super) fn read_ena_srd_udp_specification_request(
    value: &Value,
) -> Result<types::EnaSrdUdpSpecificationRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::EnaSrdUdpSpecificationRequest::builder()
        .set_ena_srd_udp_enabled(members.get("EnaSrdUdpEnabled", read::flag)?)
        .build();
    members.end("EnaSrdUdpSpecificationRequest")?;
    Ok(structure)
}

pub(super) fn read_hibernation_options_request(
    value: &Value,
) -> Result<types::HibernationOptionsRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::HibernationOptionsRequest::builder()
        .set_configured(members.get("Configured", read::flag)?)
        .build();
    members.end("HibernationOptionsRequest")?;
    Ok(structure)
}

pub(super) fn read_instance_ipv6_address(
    value: &Value,
) -> Result<types::InstanceIpv6Address, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::InstanceIpv6Address::builder()
        .set_ipv6_address(members.get("Ipv6Address", read::text)?)
        .set_is_primary_ipv6(members.get("IsPrimaryIpv6", read::flag)?)
        .build();
    members.end("InstanceIpv6Address")?;
    Ok(structure)
}

pub(super) fn read_instance_maintenance_options_request(
    value: &Value,
) -> Result<types::InstanceMaintenanceOptionsRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::InstanceMaintenanceOptionsRequest::builder()
        .set_auto_recovery(members.get("AutoRecovery", read::enumeration)?)
        .build();
    members.end("InstanceMaintenanceOptionsRequest")?;
    Ok(structure)
}

pub(super) fn read_instance_market_options_request(
    value: &Value,
) -> Result<types::InstanceMarketOptionsRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::InstanceMarketOptionsRequest::builder()
        .set_market_type(members.get("MarketType", read::enumeration)?)
        .set_spot_options(members.get("SpotOptions", read_spot_market_options)?)
        .build();
    members.end("InstanceMarketOptionsRequest")?;
    Ok(structure)
}

pub(super) fn read_instance_metadata_options_request(
    value: &Value,
) -> Result<types::InstanceMetadataOptionsRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::InstanceMetadataOptionsRequest::builder()
        .set_http_endpoint(members.get("HttpEndpoint", read::enumeration)?)
        .set_http_protocol_ipv6(members.get("HttpProtocolIpv6", read::enumeration)?)
        .set_http_put_response_hop_limit(members.get("HttpPutResponseHopLimit", read::whole)?)
        .set_http_tokens(members.get("HttpTokens", read::enumeration)?)
        .set_instance_metadata_tags(members.get("InstanceMetadataTags", read::enumeration)?)
        .build();
    members.end("InstanceMetadataOptionsRequest")?;
    Ok(structure)
}

pub(super) fn read_instance_network_interface_specification(
    value: &Value,
) -> Result<types::InstanceNetworkInterfaceSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::InstanceNetworkInterfaceSpecification::builder()
        .set_associate_carrier_ip_address(members.get("AssociateCarrierIpAddress", read::flag)?)
        .set_associate_public_ip_address(members.get("AssociatePublicIpAddress", read::flag)?)
        .set_connection_tracking_specification(members.get(
            "ConnectionTrackingSpecification",
            read_connection_tracking_specification_request,
        )?)
        .set_delete_on_termination(members.get("DeleteOnTermination", read::flag)?)
        .set_description(members.get("Description", read::text)?)
        .set_device_index(members.get("DeviceIndex", read::whole)?)
        .set_ena_queue_count(members.get("EnaQueueCount", read::whole)?)
        .set_ena_srd_specification(
            members.get("EnaSrdSpecification", read_ena_srd_specification_request)?,
        )
        .set_groups(members.list("Groups", read::text)?)
        .set_interface_type(members.get("InterfaceType", read::text)?)
        .set_ipv4_prefix_count(members.get("Ipv4PrefixCount", read::whole)?)
        .set_ipv4_prefixes(members.list("Ipv4Prefixes", read_ipv4_prefix_specification_request)?)
        .set_ipv6_address_count(members.get("Ipv6AddressCount", read::whole)?)
        .set_ipv6_addresses(members.list("Ipv6Addresses", read_instance_ipv6_address)?)
        .set_ipv6_prefix_count(members.get("Ipv6PrefixCount", read::whole)?)
        .set_ipv6_prefixes(members.list("Ipv6Prefixes", read_ipv6_prefix_specification_request)?)
        .set_network_card_index(members.get("NetworkCardIndex", read::whole)?)
        .set_network_interface_id(members.get("NetworkInterfaceId", read::text)?)
        .set_primary_ipv6(members.get("PrimaryIpv6", read::flag)?)
        .set_private_ip_address(members.get("PrivateIpAddress", read::text)?)
        .set_private_ip_addresses(
            members.list("PrivateIpAddresses", read_private_ip_address_specification)?,
        )
        .set_secondary_private_ip_address_count(
            members.get("SecondaryPrivateIpAddressCount", read::whole)?,
        )
        .set_subnet_id(members.get("SubnetId", read::text)?)
        .build();
    members.end("InstanceNetworkInterfaceSpecification")?;
    Ok(structure)
}

pub(super) fn read_instance_network_performance_options_request(
    value: &Value,
) -> Result<types::InstanceNetworkPerformanceOptionsRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::InstanceNetworkPerformanceOptionsRequest::builder()
        .set_bandwidth_weighting(members.get("BandwidthWeighting", read::enumeration)?)
        .build();
    members.end("InstanceNetworkPerformanceOptionsRequest")?;
    Ok(structure)
}

pub(super) fn read_instance_secondary_interface_private_ip_address_request(
    value: &Value,
) -> Result<types::InstanceSecondaryInterfacePrivateIpAddressRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::InstanceSecondaryInterfacePrivateIpAddressRequest::builder()
        .set_private_ip_address(members.get("PrivateIpAddress", read::text)?)
        .build();
    members.end("InstanceSecondaryInterfacePrivateIpAddressRequest")?;
    Ok(structure)
}

pub(super) fn read_instance_secondary_interface_specification_request(
    value: &Value,
) -> Result<types::InstanceSecondaryInterfaceSpecificationRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::InstanceSecondaryInterfaceSpecificationRequest::builder()
        .set_delete_on_termination(members.get("DeleteOnTermination", read::flag)?)
        .set_device_index(members.get("DeviceIndex", read::whole)?)
        .set_interface_type(members.get("InterfaceType", read::enumeration)?)
        .set_network_card_index(members.get("NetworkCardIndex", read::whole)?)
        .set_private_ip_address_count(members.get("PrivateIpAddressCount", read::whole)?)
        .set_private_ip_addresses(members.list(
            "PrivateIpAddresses",
            read_instance_secondary_interface_private_ip_address_request,
        )?)
        .set_secondary_subnet_id(members.get("SecondarySubnetId", read::text)?)
        .build();
    members.end("InstanceSecondaryInterfaceSpecificationRequest")?;
    Ok(structure)
}

pub(super) fn read_ipv4_prefix_specification_request(
    value: &Value,
) -> Result<types::Ipv4PrefixSpecificationRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::Ipv4PrefixSpecificationRequest::builder()
        .set_ipv4_prefix(members.get("Ipv4Prefix", read::text)?)
        .build();
    members.end("Ipv4PrefixSpecificationRequest")?;
    Ok(structure)
}

pub(super) fn read_ipv6_prefix_specification_request(
    value: &Value,
) -> Result<types::Ipv6PrefixSpecificationRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::Ipv6PrefixSpecificationRequest::builder()
        .set_ipv6_prefix(members.get("Ipv6Prefix", read::text)?)
        .build();
    members.end("Ipv6PrefixSpecificationRequest")?;
    Ok(structure)
}

pub(super) fn read_launch_template_specification(
    value: &Value,
) -> Result<types::LaunchTemplateSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::LaunchTemplateSpecification::builder()
        .set_launch_template_id(members.get("LaunchTemplateId", read::text)?)
        .set_launch_template_name(members.get("LaunchTemplateName", read::text)?)
        .set_version(members.get("Version", read::text)?)
        .build();
    members.end("LaunchTemplateSpecification")?;
    Ok(structure)
}

pub(super) fn read_license_configuration_request(
    value: &Value,
) -> Result<types::LicenseConfigurationRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::LicenseConfigurationRequest::builder()
        .set_license_configuration_arn(members.get("LicenseConfigurationArn", read::text)?)
        .build();
    members.end("LicenseConfigurationRequest")?;
    Ok(structure)
}

pub(super) fn read_operator_request(value: &Value) -> Result<types::OperatorRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::OperatorRequest::builder()
        .set_principal(members.get("Principal", read::text)?)
        .build();
    members.end("OperatorRequest")?;
    Ok(structure)
}

pub(super) fn read_placement(value: &Value) -> Result<types::Placement, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::Placement::builder()
        .set_affinity(members.get("Affinity", read::text)?)
        .set_availability_zone(members.get("AvailabilityZone", read::text)?)
        .set_availability_zone_id(members.get("AvailabilityZoneId", read::text)?)
        .set_group_id(members.get("GroupId", read::text)?)
        .set_group_name(members.get("GroupName", read::text)?)
        .set_host_id(members.get("HostId", read::text)?)
        .set_host_resource_group_arn(members.get("HostResourceGroupArn", read::text)?)
        .set_partition_number(members.get("PartitionNumber", read::whole)?)
        .set_spread_domain(members.get("SpreadDomain", read::text)?)
        .set_tenancy(members.get("Tenancy", read::enumeration)?)
        .build();
    members.end("Placement")?;
    Ok(structure)
}

pub(super) fn read_private_dns_name_options_request(
    value: &Value,
) -> Result<types::PrivateDnsNameOptionsRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::PrivateDnsNameOptionsRequest::builder()
        .set_enable_resource_name_dns_aaaa_record(
            members.get("EnableResourceNameDnsAAAARecord", read::flag)?,
        )
        .set_enable_resource_name_dns_a_record(
            members.get("EnableResourceNameDnsARecord", read::flag)?,
        )
        .set_hostname_type(members.get("HostnameType", read::enumeration)?)
        .build();
    members.end("PrivateDnsNameOptionsRequest")?;
    Ok(structure)
}

pub(super) fn read_private_ip_address_specification(
    value: &Value,
) -> Result<types::PrivateIpAddressSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::PrivateIpAddressSpecification::builder()
        .set_primary(members.get("Primary", read::flag)?)
        .set_private_ip_address(members.get("PrivateIpAddress", read::text)?)
        .build();
    members.end("PrivateIpAddressSpecification")?;
    Ok(structure)
}

pub(super) fn read_run_instances_monitoring_enabled(
    value: &Value,
) -> Result<types::RunInstancesMonitoringEnabled, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::RunInstancesMonitoringEnabled::builder()
        .set_enabled(members.get("Enabled", read::flag)?)
        .build();
    members.end("RunInstancesMonitoringEnabled")?;
    Ok(structure)
}

pub(super) fn read_spot_market_options(value: &Value) -> Result<types::SpotMarketOptions, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::SpotMarketOptions::builder()
        .set_block_duration_minutes(members.get("BlockDurationMinutes", read::whole)?)
        .set_instance_interruption_behavior(
            members.get("InstanceInterruptionBehavior", read::enumeration)?,
        )
        .set_max_price(members.get("MaxPrice", read::text)?)
        .set_spot_instance_type(members.get("SpotInstanceType", read::enumeration)?)
        .set_valid_until(members.get("ValidUntil", read::time)?)
        .build();
    members.end("SpotMarketOptions")?;
    Ok(structure)
}

pub(super) fn read_tag_specification(value: &Value) -> Result<types::TagSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::TagSpecification::builder()
        .set_resource_type(members.get("ResourceType", read::enumeration)?)
        .set_tags(members.list("Tags", read_tag)?)
        .build();
    members.end("TagSpecification")?;
    Ok(structure)
}
