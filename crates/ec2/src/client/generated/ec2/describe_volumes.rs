//! `DescribeVolumes`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::describe_volumes::{
    DescribeVolumesInput, DescribeVolumesOutput, builders::DescribeVolumesInputBuilder,
};
use aws_sdk_ec2::types;
use serde_json::Value;

use super::shared::{read_filter, write_operator_response, write_tag};
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

fn read_input(value: &Value) -> Result<DescribeVolumesInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeVolumesInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_filters(members.list("Filters", read_filter)?)
        .set_include_managed_resources(members.get("IncludeManagedResources", read::flag)?)
        .set_max_results(members.get("MaxResults", read::whole)?)
        .set_next_token(members.get("NextToken", read::text)?)
        .set_volume_ids(members.list("VolumeIds", read::text)?);
    members.end("DescribeVolumes")?;
    Ok(builder)
}

fn write_output(value: &DescribeVolumesOutput) -> Value {
    let mut members = Object::new();
    members.put("NextToken", value.next_token.as_ref(), write::text);
    members.list("Volumes", value.volumes.as_ref(), write_volume);
    members.end()
}

pub(super) fn write_volume(value: &types::Volume) -> Value {
    let mut members = Object::new();
    members.list(
        "Attachments",
        value.attachments.as_ref(),
        write_volume_attachment,
    );
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
    members.put("CreateTime", value.create_time.as_ref(), write::time);
    members.put("Encrypted", value.encrypted.as_ref(), write::flag);
    members.put("FastRestored", value.fast_restored.as_ref(), write::flag);
    members.put("Iops", value.iops.as_ref(), write::whole);
    members.put("KmsKeyId", value.kms_key_id.as_ref(), write::text);
    members.put(
        "MultiAttachEnabled",
        value.multi_attach_enabled.as_ref(),
        write::flag,
    );
    members.put("Operator", value.operator.as_ref(), write_operator_response);
    members.put("OutpostArn", value.outpost_arn.as_ref(), write::text);
    members.put("OwnerId", value.owner_id.as_ref(), write::text);
    members.put("Size", value.size.as_ref(), write::whole);
    members.put("SnapshotId", value.snapshot_id.as_ref(), write::text);
    members.put(
        "SourceVolumeId",
        value.source_volume_id.as_ref(),
        write::text,
    );
    members.put("SseType", value.sse_type.as_ref(), write::enumeration);
    members.put("State", value.state.as_ref(), write::enumeration);
    members.list("Tags", value.tags.as_ref(), write_tag);
    members.put("Throughput", value.throughput.as_ref(), write::whole);
    members.put("VolumeArn", value.volume_arn.as_ref(), write::text);
    members.put("VolumeId", value.volume_id.as_ref(), write::text);
    members.put(
        "VolumeInitializationRate",
        value.volume_initialization_rate.as_ref(),
        write::whole,
    );
    members.put("VolumeType", value.volume_type.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_volume_attachment(value: &types::VolumeAttachment) -> Value {
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
    members.put("Device", value.device.as_ref(), write::text);
    members.put("EbsCardIndex", value.ebs_card_index.as_ref(), write::whole);
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.put(
        "InstanceOwningService",
        value.instance_owning_service.as_ref(),
        write::text,
    );
    members.put("State", value.state.as_ref(), write::enumeration);
    members.put("VolumeId", value.volume_id.as_ref(), write::text);
    members.end()
}
