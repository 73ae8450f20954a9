//! `DescribeInstanceTypes`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::describe_instance_types::{
    DescribeInstanceTypesInput, DescribeInstanceTypesOutput,
    builders::DescribeInstanceTypesInputBuilder,
};
use aws_sdk_ec2::types;
use serde_json::Value;

use super::shared::read_filter;
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

fn read_input(value: &Value) -> Result<DescribeInstanceTypesInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeInstanceTypesInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_filters(members.list("Filters", read_filter)?)
        .set_include_unsupported_in_region(members.get("IncludeUnsupportedInRegion", read::flag)?)
        .set_instance_types(members.list("InstanceTypes", read::enumeration)?)
        .set_max_results(members.get("MaxResults", read::whole)?)
        .set_next_token(members.get("NextToken", read::text)?);
    members.end("DescribeInstanceTypes")?;
    Ok(builder)
}

fn write_output(value: &DescribeInstanceTypesOutput) -> Value {
    let mut members = Object::new();
    members.list(
        "InstanceTypes",
        value.instance_types.as_ref(),
        write_instance_type_info,
    );
    members.put("NextToken", value.next_token.as_ref(), write::text);
    members.end()
}

pub(super) fn write_default_connection_tracking_configuration(
    value: &types::DefaultConnectionTrackingConfiguration,
) -> Value {
    let mut members = Object::new();
    members.put(
        "DefaultTcpEstablishedTimeout",
        value.default_tcp_established_timeout.as_ref(),
        write::whole,
    );
    members.put(
        "DefaultUdpStreamTimeout",
        value.default_udp_stream_timeout.as_ref(),
        write::whole,
    );
    members.put(
        "DefaultUdpTimeout",
        value.default_udp_timeout.as_ref(),
        write::whole,
    );
    members.end()
}

pub(super) fn write_disk_info(value: &types::DiskInfo) -> Value {
    let mut members = Object::new();
    members.put("Count", value.count.as_ref(), write::whole);
    members.put("SizeInGB", value.size_in_gb.as_ref(), write::long);
    members.put("Type", value.r#type.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_ebs_card_info(value: &types::EbsCardInfo) -> Value {
    let mut members = Object::new();
    members.put(
        "BaselineBandwidthInMbps",
        value.baseline_bandwidth_in_mbps.as_ref(),
        write::whole,
    );
    members.put("BaselineIops", value.baseline_iops.as_ref(), write::whole);
    members.put(
        "BaselineThroughputInMBps",
        value.baseline_throughput_in_m_bps.as_ref(),
        write::number,
    );
    members.put("EbsCardIndex", value.ebs_card_index.as_ref(), write::whole);
    members.put(
        "MaximumBandwidthInMbps",
        value.maximum_bandwidth_in_mbps.as_ref(),
        write::whole,
    );
    members.put("MaximumIops", value.maximum_iops.as_ref(), write::whole);
    members.put(
        "MaximumThroughputInMBps",
        value.maximum_throughput_in_m_bps.as_ref(),
        write::number,
    );
    members.end()
}

pub(super) fn write_ebs_info(value: &types::EbsInfo) -> Value {
    let mut members = Object::new();
    members.put(
        "AttachmentLimitType",
        value.attachment_limit_type.as_ref(),
        write::enumeration,
    );
    members.list("EbsCards", value.ebs_cards.as_ref(), write_ebs_card_info);
    members.put(
        "EbsOptimizedInfo",
        value.ebs_optimized_info.as_ref(),
        write_ebs_optimized_info,
    );
    members.put(
        "EbsOptimizedSupport",
        value.ebs_optimized_support.as_ref(),
        write::enumeration,
    );
    members.put(
        "EncryptionSupport",
        value.encryption_support.as_ref(),
        write::enumeration,
    );
    members.put(
        "MaximumEbsAttachments",
        value.maximum_ebs_attachments.as_ref(),
        write::whole,
    );
    members.put(
        "MaximumEbsCards",
        value.maximum_ebs_cards.as_ref(),
        write::whole,
    );
    members.put(
        "NvmeSupport",
        value.nvme_support.as_ref(),
        write::enumeration,
    );
    members.end()
}

pub(super) fn write_ebs_optimized_info(value: &types::EbsOptimizedInfo) -> Value {
    let mut members = Object::new();
    members.put(
        "BaselineBandwidthInMbps",
        value.baseline_bandwidth_in_mbps.as_ref(),
        write::whole,
    );
    members.put("BaselineIops", value.baseline_iops.as_ref(), write::whole);
    members.put(
        "BaselineThroughputInMBps",
        value.baseline_throughput_in_m_bps.as_ref(),
        write::number,
    );
    members.put(
        "MaximumBandwidthInMbps",
        value.maximum_bandwidth_in_mbps.as_ref(),
        write::whole,
    );
    members.put("MaximumIops", value.maximum_iops.as_ref(), write::whole);
    members.put(
        "MaximumThroughputInMBps",
        value.maximum_throughput_in_m_bps.as_ref(),
        write::number,
    );
    members.end()
}

pub(super) fn write_efa_info(value: &types::EfaInfo) -> Value {
    let mut members = Object::new();
    members.put(
        "MaximumEfaInterfaces",
        value.maximum_efa_interfaces.as_ref(),
        write::whole,
    );
    members.end()
}

pub(super) fn write_fpga_device_info(value: &types::FpgaDeviceInfo) -> Value {
    let mut members = Object::new();
    members.put("Count", value.count.as_ref(), write::whole);
    members.put("Manufacturer", value.manufacturer.as_ref(), write::text);
    members.put(
        "MemoryInfo",
        value.memory_info.as_ref(),
        write_fpga_device_memory_info,
    );
    members.put("Name", value.name.as_ref(), write::text);
    members.end()
}

pub(super) fn write_fpga_device_memory_info(value: &types::FpgaDeviceMemoryInfo) -> Value {
    let mut members = Object::new();
    members.put("SizeInMiB", value.size_in_mib.as_ref(), write::whole);
    members.end()
}

pub(super) fn write_fpga_info(value: &types::FpgaInfo) -> Value {
    let mut members = Object::new();
    members.list("Fpgas", value.fpgas.as_ref(), write_fpga_device_info);
    members.put(
        "TotalFpgaMemoryInMiB",
        value.total_fpga_memory_in_mib.as_ref(),
        write::whole,
    );
    members.end()
}

pub(super) fn write_gpu_device_info(value: &types::GpuDeviceInfo) -> Value {
    let mut members = Object::new();
    members.put("Count", value.count.as_ref(), write::whole);
    members.put(
        "GpuPartitionSize",
        value.gpu_partition_size.as_ref(),
        write::number,
    );
    members.put(
        "LogicalGpuCount",
        value.logical_gpu_count.as_ref(),
        write::whole,
    );
    members.put("Manufacturer", value.manufacturer.as_ref(), write::text);
    members.put(
        "MemoryInfo",
        value.memory_info.as_ref(),
        write_gpu_device_memory_info,
    );
    members.put("Name", value.name.as_ref(), write::text);
    members.list("Workloads", value.workloads.as_ref(), write::text);
    members.end()
}

pub(super) fn write_gpu_device_memory_info(value: &types::GpuDeviceMemoryInfo) -> Value {
    let mut members = Object::new();
    members.put("SizeInMiB", value.size_in_mib.as_ref(), write::whole);
    members.end()
}

pub(super) fn write_gpu_info(value: &types::GpuInfo) -> Value {
    let mut members = Object::new();
    members.list("Gpus", value.gpus.as_ref(), write_gpu_device_info);
    members.put(
        "TotalGpuMemoryInMiB",
        value.total_gpu_memory_in_mib.as_ref(),
        write::whole,
    );
    members.end()
}

pub(super) fn write_inference_accelerator_info(value: &types::InferenceAcceleratorInfo) -> Value {
    let mut members = Object::new();
    members.list(
        "Accelerators",
        value.accelerators.as_ref(),
        write_inference_device_info,
    );
    members.put(
        "TotalInferenceMemoryInMiB",
        value.total_inference_memory_in_mib.as_ref(),
        write::whole,
    );
    members.end()
}

pub(super) fn write_inference_device_info(value: &types::InferenceDeviceInfo) -> Value {
    let mut members = Object::new();
    members.put("Count", value.count.as_ref(), write::whole);
    members.put("Manufacturer", value.manufacturer.as_ref(), write::text);
    members.put(
        "MemoryInfo",
        value.memory_info.as_ref(),
        write_inference_device_memory_info,
    );
    members.put("Name", value.name.as_ref(), write::text);
    members.end()
}

pub(super) fn write_inference_device_memory_info(
    value: &types::InferenceDeviceMemoryInfo,
) -> Value {
    let mut members = Object::new();
    members.put("SizeInMiB", value.size_in_mib.as_ref(), write::whole);
    members.end()
}

pub(super) fn write_instance_storage_info(value: &types::InstanceStorageInfo) -> Value {
    let mut members = Object::new();
    members.list("Disks", value.disks.as_ref(), write_disk_info);
    members.put(
        "EncryptionSupport",
        value.encryption_support.as_ref(),
        write::enumeration,
    );
    members.put(
        "NvmeSupport",
        value.nvme_support.as_ref(),
        write::enumeration,
    );
    members.put(
        "TotalSizeInGB",
        value.total_size_in_gb.as_ref(),
        write::long,
    );
    members.end()
}

pub(super) fn write_instance_type_info(value: &types::InstanceTypeInfo) -> Value {
    let mut members = Object::new();
    members.put(
        "AutoRecoverySupported",
        value.auto_recovery_supported.as_ref(),
        write::flag,
    );
    members.put("BareMetal", value.bare_metal.as_ref(), write::flag);
    members.put(
        "BurstablePerformanceSupported",
        value.burstable_performance_supported.as_ref(),
        write::flag,
    );
    members.put(
        "CurrentGeneration",
        value.current_generation.as_ref(),
        write::flag,
    );
    members.put(
        "DedicatedHostsSupported",
        value.dedicated_hosts_supported.as_ref(),
        write::flag,
    );
    members.put("EbsInfo", value.ebs_info.as_ref(), write_ebs_info);
    members.put("FpgaInfo", value.fpga_info.as_ref(), write_fpga_info);
    members.put(
        "FreeTierEligible",
        value.free_tier_eligible.as_ref(),
        write::flag,
    );
    members.put("GpuInfo", value.gpu_info.as_ref(), write_gpu_info);
    members.put(
        "HibernationSupported",
        value.hibernation_supported.as_ref(),
        write::flag,
    );
    members.put("Hypervisor", value.hypervisor.as_ref(), write::enumeration);
    members.put(
        "InferenceAcceleratorInfo",
        value.inference_accelerator_info.as_ref(),
        write_inference_accelerator_info,
    );
    members.put(
        "InstanceStorageInfo",
        value.instance_storage_info.as_ref(),
        write_instance_storage_info,
    );
    members.put(
        "InstanceStorageSupported",
        value.instance_storage_supported.as_ref(),
        write::flag,
    );
    members.put(
        "InstanceType",
        value.instance_type.as_ref(),
        write::enumeration,
    );
    members.put(
        "MediaAcceleratorInfo",
        value.media_accelerator_info.as_ref(),
        write_media_accelerator_info,
    );
    members.put("MemoryInfo", value.memory_info.as_ref(), write_memory_info);
    members.put(
        "NetworkInfo",
        value.network_info.as_ref(),
        write_network_info,
    );
    members.put("NeuronInfo", value.neuron_info.as_ref(), write_neuron_info);
    members.put(
        "NitroEnclavesSupport",
        value.nitro_enclaves_support.as_ref(),
        write::enumeration,
    );
    members.put(
        "NitroTpmInfo",
        value.nitro_tpm_info.as_ref(),
        write_nitro_tpm_info,
    );
    members.put(
        "NitroTpmSupport",
        value.nitro_tpm_support.as_ref(),
        write::enumeration,
    );
    members.put("PhcSupport", value.phc_support.as_ref(), write::enumeration);
    members.put(
        "PlacementGroupInfo",
        value.placement_group_info.as_ref(),
        write_placement_group_info,
    );
    members.put(
        "ProcessorInfo",
        value.processor_info.as_ref(),
        write_processor_info,
    );
    members.put(
        "RebootMigrationSupport",
        value.reboot_migration_support.as_ref(),
        write::enumeration,
    );
    members.list(
        "SupportedBootModes",
        value.supported_boot_modes.as_ref(),
        write::enumeration,
    );
    members.put(
        "SupportedInRegion",
        value.supported_in_region.as_ref(),
        write::flag,
    );
    members.list(
        "SupportedRootDeviceTypes",
        value.supported_root_device_types.as_ref(),
        write::enumeration,
    );
    members.list(
        "SupportedUsageClasses",
        value.supported_usage_classes.as_ref(),
        write::enumeration,
    );
    members.list(
        "SupportedVirtualizationTypes",
        value.supported_virtualization_types.as_ref(),
        write::enumeration,
    );
    members.put("VCpuInfo", value.v_cpu_info.as_ref(), write_v_cpu_info);
    members.end()
}

pub(super) fn write_media_accelerator_info(value: &types::MediaAcceleratorInfo) -> Value {
    let mut members = Object::new();
    members.list(
        "Accelerators",
        value.accelerators.as_ref(),
        write_media_device_info,
    );
    members.put(
        "TotalMediaMemoryInMiB",
        value.total_media_memory_in_mib.as_ref(),
        write::whole,
    );
    members.end()
}

pub(super) fn write_media_device_info(value: &types::MediaDeviceInfo) -> Value {
    let mut members = Object::new();
    members.put("Count", value.count.as_ref(), write::whole);
    members.put("Manufacturer", value.manufacturer.as_ref(), write::text);
    members.put(
        "MemoryInfo",
        value.memory_info.as_ref(),
        write_media_device_memory_info,
    );
    members.put("Name", value.name.as_ref(), write::text);
    members.end()
}

pub(super) fn write_media_device_memory_info(value: &types::MediaDeviceMemoryInfo) -> Value {
    let mut members = Object::new();
    members.put("SizeInMiB", value.size_in_mib.as_ref(), write::whole);
    members.end()
}

pub(super) fn write_memory_info(value: &types::MemoryInfo) -> Value {
    let mut members = Object::new();
    members.put("SizeInMiB", value.size_in_mib.as_ref(), write::long);
    members.end()
}

pub(super) fn write_network_card_info(value: &types::NetworkCardInfo) -> Value {
    let mut members = Object::new();
    members.put(
        "AdditionalFlexibleNetworkInterfaces",
        value.additional_flexible_network_interfaces.as_ref(),
        write::whole,
    );
    members.put(
        "BaselineBandwidthInGbps",
        value.baseline_bandwidth_in_gbps.as_ref(),
        write::number,
    );
    members.put(
        "DefaultEnaQueueCountPerInterface",
        value.default_ena_queue_count_per_interface.as_ref(),
        write::whole,
    );
    members.list(
        "InterfaceTypes",
        value.interface_types.as_ref(),
        write::enumeration,
    );
    members.put(
        "MaximumEnaQueueCount",
        value.maximum_ena_queue_count.as_ref(),
        write::whole,
    );
    members.put(
        "MaximumEnaQueueCountPerInterface",
        value.maximum_ena_queue_count_per_interface.as_ref(),
        write::whole,
    );
    members.put(
        "MaximumNetworkInterfaces",
        value.maximum_network_interfaces.as_ref(),
        write::whole,
    );
    members.put(
        "NetworkCardIndex",
        value.network_card_index.as_ref(),
        write::whole,
    );
    members.put(
        "NetworkPerformance",
        value.network_performance.as_ref(),
        write::text,
    );
    members.put(
        "PeakBandwidthInGbps",
        value.peak_bandwidth_in_gbps.as_ref(),
        write::number,
    );
    members.end()
}

pub(super) fn write_network_info(value: &types::NetworkInfo) -> Value {
    let mut members = Object::new();
    members.list(
        "BandwidthWeightings",
        value.bandwidth_weightings.as_ref(),
        write::enumeration,
    );
    members.put(
        "ConnectionTrackingConfiguration",
        value.connection_tracking_configuration.as_ref(),
        write_default_connection_tracking_configuration,
    );
    members.put(
        "DefaultNetworkCardIndex",
        value.default_network_card_index.as_ref(),
        write::whole,
    );
    members.put("EfaInfo", value.efa_info.as_ref(), write_efa_info);
    members.put("EfaSupported", value.efa_supported.as_ref(), write::flag);
    members.put(
        "EnaSrdSupported",
        value.ena_srd_supported.as_ref(),
        write::flag,
    );
    members.put("EnaSupport", value.ena_support.as_ref(), write::enumeration);
    members.put(
        "EncryptionInTransitSupported",
        value.encryption_in_transit_supported.as_ref(),
        write::flag,
    );
    members.put(
        "FlexibleEnaQueuesSupport",
        value.flexible_ena_queues_support.as_ref(),
        write::enumeration,
    );
    members.put(
        "Ipv4AddressesPerInterface",
        value.ipv4_addresses_per_interface.as_ref(),
        write::whole,
    );
    members.put(
        "Ipv4AddressesPerSecondaryInterface",
        value.ipv4_addresses_per_secondary_interface.as_ref(),
        write::whole,
    );
    members.put(
        "Ipv6AddressesPerInterface",
        value.ipv6_addresses_per_interface.as_ref(),
        write::whole,
    );
    members.put("Ipv6Supported", value.ipv6_supported.as_ref(), write::flag);
    members.put(
        "MaximumNetworkCards",
        value.maximum_network_cards.as_ref(),
        write::whole,
    );
    members.put(
        "MaximumNetworkInterfaces",
        value.maximum_network_interfaces.as_ref(),
        write::whole,
    );
    members.put(
        "MaximumSecondaryNetworkInterfaces",
        value.maximum_secondary_network_interfaces.as_ref(),
        write::whole,
    );
    members.list(
        "NetworkCards",
        value.network_cards.as_ref(),
        write_network_card_info,
    );
    members.put(
        "NetworkPerformance",
        value.network_performance.as_ref(),
        write::text,
    );
    members.put(
        "SecondaryNetworkSupported",
        value.secondary_network_supported.as_ref(),
        write::flag,
    );
    members.end()
}

pub(super) fn write_neuron_device_core_info(value: &types::NeuronDeviceCoreInfo) -> Value {
    let mut members = Object::new();
    members.put("Count", value.count.as_ref(), write::whole);
    members.put("Version", value.version.as_ref(), write::whole);
    members.end()
}

pub(super) fn write_neuron_device_info(value: &types::NeuronDeviceInfo) -> Value {
    let mut members = Object::new();
    members.put(
        "CoreInfo",
        value.core_info.as_ref(),
        write_neuron_device_core_info,
    );
    members.put("Count", value.count.as_ref(), write::whole);
    members.put(
        "MemoryInfo",
        value.memory_info.as_ref(),
        write_neuron_device_memory_info,
    );
    members.put("Name", value.name.as_ref(), write::text);
    members.end()
}

pub(super) fn write_neuron_device_memory_info(value: &types::NeuronDeviceMemoryInfo) -> Value {
    let mut members = Object::new();
    members.put("SizeInMiB", value.size_in_mib.as_ref(), write::whole);
    members.end()
}

pub(super) fn write_neuron_info(value: &types::NeuronInfo) -> Value {
    let mut members = Object::new();
    members.list(
        "NeuronDevices",
        value.neuron_devices.as_ref(),
        write_neuron_device_info,
    );
    members.put(
        "TotalNeuronDeviceMemoryInMiB",
        value.total_neuron_device_memory_in_mib.as_ref(),
        write::whole,
    );
    members.end()
}

pub(super) fn write_nitro_tpm_info(value: &types::NitroTpmInfo) -> Value {
    let mut members = Object::new();
    members.list(
        "SupportedVersions",
        value.supported_versions.as_ref(),
        write::text,
    );
    members.end()
}

pub(super) fn write_placement_group_info(value: &types::PlacementGroupInfo) -> Value {
    let mut members = Object::new();
    members.list(
        "SupportedStrategies",
        value.supported_strategies.as_ref(),
        write::enumeration,
    );
    members.end()
}

pub(super) fn write_processor_info(value: &types::ProcessorInfo) -> Value {
    let mut members = Object::new();
    members.put("Manufacturer", value.manufacturer.as_ref(), write::text);
    members.list(
        "SupportedArchitectures",
        value.supported_architectures.as_ref(),
        write::enumeration,
    );
    members.list(
        "SupportedFeatures",
        value.supported_features.as_ref(),
        write::enumeration,
    );
    members.put(
        "SustainedClockSpeedInGhz",
        value.sustained_clock_speed_in_ghz.as_ref(),
        write::number,
    );
    members.end()
}

pub(super) fn write_v_cpu_info(value: &types::VCpuInfo) -> Value {
    let mut members = Object::new();
    members.put("DefaultCores", value.default_cores.as_ref(), write::whole);
    members.put(
        "DefaultThreadsPerCore",
        value.default_threads_per_core.as_ref(),
        write::whole,
    );
    members.put("DefaultVCpus", value.default_v_cpus.as_ref(), write::whole);
    members.list("ValidCores", value.valid_cores.as_ref(), write::whole);
    members.list(
        "ValidThreadsPerCore",
        value.valid_threads_per_core.as_ref(),
        write::whole,
    );
    members.end()
}
