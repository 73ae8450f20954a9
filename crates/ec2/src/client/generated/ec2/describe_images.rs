//! `DescribeImages`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::describe_images::{
    DescribeImagesInput, DescribeImagesOutput, builders::DescribeImagesInputBuilder,
};
use aws_sdk_ec2::types;
use serde_json::Value;

use super::shared::{read_filter, write_product_code, write_state_reason, write_tag};
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

fn read_input(value: &Value) -> Result<DescribeImagesInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeImagesInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_executable_users(members.list("ExecutableUsers", read::text)?)
        .set_filters(members.list("Filters", read_filter)?)
        .set_image_ids(members.list("ImageIds", read::text)?)
        .set_include_deprecated(members.get("IncludeDeprecated", read::flag)?)
        .set_include_disabled(members.get("IncludeDisabled", read::flag)?)
        .set_max_results(members.get("MaxResults", read::whole)?)
        .set_next_token(members.get("NextToken", read::text)?)
        .set_owners(members.list("Owners", read::text)?);
    members.end("DescribeImages")?;
    Ok(builder)
}

fn write_output(value: &DescribeImagesOutput) -> Value {
    let mut members = Object::new();
    members.list("Images", value.images.as_ref(), write_image);
    members.put("NextToken", value.next_token.as_ref(), write::text);
    members.end()
}

pub(super) fn write_block_device_mapping(value: &types::BlockDeviceMapping) -> Value {
    let mut members = Object::new();
    members.put("DeviceName", value.device_name.as_ref(), write::text);
    members.put("Ebs", value.ebs.as_ref(), write_ebs_block_device);
    members.put("NoDevice", value.no_device.as_ref(), write::text);
    members.put("VirtualName", value.virtual_name.as_ref(), write::text);
    members.end()
}

pub(super) fn write_ebs_block_device(value: &types::EbsBlockDevice) -> Value {
    let mut members = Object::new();
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
    members.put(
        "DeleteOnTermination",
        value.delete_on_termination.as_ref(),
        write::flag,
    );
    members.put("EbsCardIndex", value.ebs_card_index.as_ref(), write::whole);
    members.put("Encrypted", value.encrypted.as_ref(), write::flag);
    members.put("Iops", value.iops.as_ref(), write::whole);
    members.put("KmsKeyId", value.kms_key_id.as_ref(), write::text);
    members.put("OutpostArn", value.outpost_arn.as_ref(), write::text);
    members.put("SnapshotId", value.snapshot_id.as_ref(), write::text);
    members.put("Throughput", value.throughput.as_ref(), write::whole);
    members.put(
        "VolumeInitializationRate",
        value.volume_initialization_rate.as_ref(),
        write::whole,
    );
    members.put("VolumeSize", value.volume_size.as_ref(), write::whole);
    members.put("VolumeType", value.volume_type.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_image(value: &types::Image) -> Value {
    let mut members = Object::new();
    members.put(
        "Architecture",
        value.architecture.as_ref(),
        write::enumeration,
    );
    members.list(
        "BlockDeviceMappings",
        value.block_device_mappings.as_ref(),
        write_block_device_mapping,
    );
    members.put("BootMode", value.boot_mode.as_ref(), write::enumeration);
    members.put("CreationDate", value.creation_date.as_ref(), write::text);
    members.put(
        "DeprecationTime",
        value.deprecation_time.as_ref(),
        write::text,
    );
    members.put(
        "DeregistrationProtection",
        value.deregistration_protection.as_ref(),
        write::text,
    );
    members.put("Description", value.description.as_ref(), write::text);
    members.put("EnaSupport", value.ena_support.as_ref(), write::flag);
    members.put(
        "FreeTierEligible",
        value.free_tier_eligible.as_ref(),
        write::flag,
    );
    members.put("Hypervisor", value.hypervisor.as_ref(), write::enumeration);
    members.put("ImageAllowed", value.image_allowed.as_ref(), write::flag);
    members.put("ImageId", value.image_id.as_ref(), write::text);
    members.put("ImageLocation", value.image_location.as_ref(), write::text);
    members.put(
        "ImageOwnerAlias",
        value.image_owner_alias.as_ref(),
        write::text,
    );
    members.put("ImageType", value.image_type.as_ref(), write::enumeration);
    members.list(
        "ImageWatermarks",
        value.image_watermarks.as_ref(),
        write_image_watermark,
    );
    members.put(
        "ImdsSupport",
        value.imds_support.as_ref(),
        write::enumeration,
    );
    members.put(
        "InstanceTypeSpecification",
        value.instance_type_specification.as_ref(),
        write_instance_type_specification,
    );
    members.put("KernelId", value.kernel_id.as_ref(), write::text);
    members.put(
        "LastLaunchedTime",
        value.last_launched_time.as_ref(),
        write::text,
    );
    members.put("Name", value.name.as_ref(), write::text);
    members.put("OwnerId", value.owner_id.as_ref(), write::text);
    members.put("Platform", value.platform.as_ref(), write::enumeration);
    members.put(
        "PlatformDetails",
        value.platform_details.as_ref(),
        write::text,
    );
    members.list(
        "ProductCodes",
        value.product_codes.as_ref(),
        write_product_code,
    );
    members.put("Public", value.public.as_ref(), write::flag);
    members.put(
        "PublicSsmParameterName",
        value.public_ssm_parameter_name.as_ref(),
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
    members.put(
        "ScanResults",
        value.scan_results.as_ref(),
        write_scan_results,
    );
    members.put("SourceImageId", value.source_image_id.as_ref(), write::text);
    members.put(
        "SourceImageRegion",
        value.source_image_region.as_ref(),
        write::text,
    );
    members.put(
        "SourceInstanceId",
        value.source_instance_id.as_ref(),
        write::text,
    );
    members.put(
        "SriovNetSupport",
        value.sriov_net_support.as_ref(),
        write::text,
    );
    members.put("State", value.state.as_ref(), write::enumeration);
    members.put(
        "StateReason",
        value.state_reason.as_ref(),
        write_state_reason,
    );
    members.list("Tags", value.tags.as_ref(), write_tag);
    members.put("TpmSupport", value.tpm_support.as_ref(), write::enumeration);
    members.put(
        "UsageOperation",
        value.usage_operation.as_ref(),
        write::text,
    );
    members.put(
        "VirtualizationType",
        value.virtualization_type.as_ref(),
        write::enumeration,
    );
    members.end()
}

pub(super) fn write_image_watermark(value: &types::ImageWatermark) -> Value {
    let mut members = Object::new();
    members.put(
        "SourceImageCreationTime",
        value.source_image_creation_time.as_ref(),
        write::time,
    );
    members.put("SourceImageId", value.source_image_id.as_ref(), write::text);
    members.put(
        "SourceImageRegion",
        value.source_image_region.as_ref(),
        write::text,
    );
    members.put(
        "WatermarkCreationTime",
        value.watermark_creation_time.as_ref(),
        write::time,
    );
    members.put("WatermarkKey", value.watermark_key.as_ref(), write::text);
    members.end()
}

pub(super) fn write_instance_type_item(value: &types::InstanceTypeItem) -> Value {
    let mut members = Object::new();
    members.put("InstanceType", value.instance_type.as_ref(), write::text);
    members.end()
}

pub(super) fn write_instance_type_specification(value: &types::InstanceTypeSpecification) -> Value {
    let mut members = Object::new();
    members.list(
        "SupportedInstanceTypes",
        value.supported_instance_types.as_ref(),
        write_instance_type_item,
    );
    members.list(
        "UnsupportedInstanceTypes",
        value.unsupported_instance_types.as_ref(),
        write_instance_type_item,
    );
    members.end()
}

pub(super) fn write_scan_results(value: &types::ScanResults) -> Value {
    let mut members = Object::new();
    members.put(
        "CriticalFixAvailableSince",
        value.critical_fix_available_since.as_ref(),
        write::time,
    );
    members.put(
        "FindingScanDate",
        value.finding_scan_date.as_ref(),
        write::time,
    );
    members.put(
        "HighFixAvailableSince",
        value.high_fix_available_since.as_ref(),
        write::time,
    );
    members.put(
        "HighestFindingSeverityLabel",
        value.highest_finding_severity_label.as_ref(),
        write::enumeration,
    );
    members.put(
        "InformationalFixAvailableSince",
        value.informational_fix_available_since.as_ref(),
        write::time,
    );
    members.put(
        "LowFixAvailableSince",
        value.low_fix_available_since.as_ref(),
        write::time,
    );
    members.put(
        "MediumFixAvailableSince",
        value.medium_fix_available_since.as_ref(),
        write::time,
    );
    members.end()
}
