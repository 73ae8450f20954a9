//! `ModifyInstanceAttribute`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::modify_instance_attribute::{
    ModifyInstanceAttributeInput, builders::ModifyInstanceAttributeInputBuilder,
};
use aws_sdk_ec2::types;
use serde_json::Value;

use super::shared::{
    read_attribute_boolean_value, read_attribute_value, read_enclave_options_request,
};
use crate::ApiError;
use crate::client::failure::failure;
use crate::client::read::{self, Members, Misfit};
use crate::client::write;

/// Makes the call.
pub(in crate::client) async fn call(client: &Client, input: &Value) -> Result<Value, ApiError> {
    read_input(input)?
        .send_with(client)
        .await
        .map_err(failure)?;
    Ok(write::nothing())
}

fn read_input(value: &Value) -> Result<ModifyInstanceAttributeInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = ModifyInstanceAttributeInput::builder()
        .set_attribute(members.get("Attribute", read::enumeration)?)
        .set_block_device_mappings(members.list(
            "BlockDeviceMappings",
            read_instance_block_device_mapping_specification,
        )?)
        .set_disable_api_stop(members.get("DisableApiStop", read_attribute_boolean_value)?)
        .set_disable_api_termination(
            members.get("DisableApiTermination", read_attribute_boolean_value)?,
        )
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_ebs_optimized(members.get("EbsOptimized", read_attribute_boolean_value)?)
        .set_ena_support(members.get("EnaSupport", read_attribute_boolean_value)?)
        .set_enclave_options(members.get("EnclaveOptions", read_enclave_options_request)?)
        .set_groups(members.list("Groups", read::text)?)
        .set_instance_id(members.get("InstanceId", read::text)?)
        .set_instance_initiated_shutdown_behavior(
            members.get("InstanceInitiatedShutdownBehavior", read_attribute_value)?,
        )
        .set_instance_type(members.get("InstanceType", read_attribute_value)?)
        .set_kernel(members.get("Kernel", read_attribute_value)?)
        .set_ramdisk(members.get("Ramdisk", read_attribute_value)?)
        .set_source_dest_check(members.get("SourceDestCheck", read_attribute_boolean_value)?)
        .set_sriov_net_support(members.get("SriovNetSupport", read_attribute_value)?)
        .set_user_data(members.get("UserData", read_secure_blob_attribute_value)?)
        .set_value(members.get("Value", read::text)?);
    members.end("ModifyInstanceAttribute")?;
    Ok(builder)
}

pub(super) fn read_ebs_instance_block_device_specification(
    value: &Value,
) -> Result<types::EbsInstanceBlockDeviceSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::EbsInstanceBlockDeviceSpecification::builder()
        .set_delete_on_termination(members.get("DeleteOnTermination", read::flag)?)
        .set_volume_id(members.get("VolumeId", read::text)?)
        .build();
    members.end("EbsInstanceBlockDeviceSpecification")?;
    Ok(structure)
}

pub(super) fn read_instance_block_device_mapping_specification(
    value: &Value,
) -> Result<types::InstanceBlockDeviceMappingSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::InstanceBlockDeviceMappingSpecification::builder()
        .set_device_name(members.get("DeviceName", read::text)?)
        .set_ebs(members.get("Ebs", read_ebs_instance_block_device_specification)?)
        .set_no_device(members.get("NoDevice", read::text)?)
        .set_virtual_name(members.get("VirtualName", read::text)?)
        .build();
    members.end("InstanceBlockDeviceMappingSpecification")?;
    Ok(structure)
}

pub(super) fn read_secure_blob_attribute_value(
    value: &Value,
) -> Result<types::SecureBlobAttributeValue, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::SecureBlobAttributeValue::builder()
        .set_value(members.get("Value", read::blob)?)
        .build();
    members.end("SecureBlobAttributeValue")?;
    Ok(structure)
}
