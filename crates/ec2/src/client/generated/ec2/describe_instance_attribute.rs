//! `DescribeInstanceAttribute`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::describe_instance_attribute::{
    DescribeInstanceAttributeInput, DescribeInstanceAttributeOutput,
    builders::DescribeInstanceAttributeInputBuilder,
};
use aws_sdk_ec2::types;
use serde_json::Value;

use super::shared::{
    write_enclave_options, write_group_identifier, write_instance_block_device_mapping,
    write_product_code,
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

fn read_input(value: &Value) -> Result<DescribeInstanceAttributeInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeInstanceAttributeInput::builder()
        .set_attribute(members.get("Attribute", read::enumeration)?)
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_instance_id(members.get("InstanceId", read::text)?);
    members.end("DescribeInstanceAttribute")?;
    Ok(builder)
}

fn write_output(value: &DescribeInstanceAttributeOutput) -> Value {
    let mut members = Object::new();
    members.list(
        "BlockDeviceMappings",
        value.block_device_mappings.as_ref(),
        write_instance_block_device_mapping,
    );
    members.put(
        "DisableApiStop",
        value.disable_api_stop.as_ref(),
        write_attribute_boolean_value,
    );
    members.put(
        "DisableApiTermination",
        value.disable_api_termination.as_ref(),
        write_attribute_boolean_value,
    );
    members.put(
        "EbsOptimized",
        value.ebs_optimized.as_ref(),
        write_attribute_boolean_value,
    );
    members.put(
        "EnaSupport",
        value.ena_support.as_ref(),
        write_attribute_boolean_value,
    );
    members.put(
        "EnclaveOptions",
        value.enclave_options.as_ref(),
        write_enclave_options,
    );
    members.list("Groups", value.groups.as_ref(), write_group_identifier);
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.put(
        "InstanceInitiatedShutdownBehavior",
        value.instance_initiated_shutdown_behavior.as_ref(),
        write_attribute_value,
    );
    members.put(
        "InstanceType",
        value.instance_type.as_ref(),
        write_attribute_value,
    );
    members.put("KernelId", value.kernel_id.as_ref(), write_attribute_value);
    members.list(
        "ProductCodes",
        value.product_codes.as_ref(),
        write_product_code,
    );
    members.put(
        "RamdiskId",
        value.ramdisk_id.as_ref(),
        write_attribute_value,
    );
    members.put(
        "RootDeviceName",
        value.root_device_name.as_ref(),
        write_attribute_value,
    );
    members.put(
        "SourceDestCheck",
        value.source_dest_check.as_ref(),
        write_attribute_boolean_value,
    );
    members.put(
        "SriovNetSupport",
        value.sriov_net_support.as_ref(),
        write_attribute_value,
    );
    members.put("UserData", value.user_data.as_ref(), write_attribute_value);
    members.end()
}

pub(super) fn write_attribute_boolean_value(value: &types::AttributeBooleanValue) -> Value {
    let mut members = Object::new();
    members.put("Value", value.value.as_ref(), write::flag);
    members.end()
}

pub(super) fn write_attribute_value(value: &types::AttributeValue) -> Value {
    let mut members = Object::new();
    members.put("Value", value.value.as_ref(), write::text);
    members.end()
}
