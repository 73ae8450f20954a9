//! `DescribeInstances`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::describe_instances::{
    DescribeInstancesInput, DescribeInstancesOutput, builders::DescribeInstancesInputBuilder,
};
use aws_sdk_ec2::types;
use serde_json::Value;

use super::shared::{read_filter, write_group_identifier, write_instance};
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

fn read_input(value: &Value) -> Result<DescribeInstancesInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeInstancesInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_filters(members.list("Filters", read_filter)?)
        .set_include_managed_resources(members.get("IncludeManagedResources", read::flag)?)
        .set_instance_ids(members.list("InstanceIds", read::text)?)
        .set_max_results(members.get("MaxResults", read::whole)?)
        .set_next_token(members.get("NextToken", read::text)?);
    members.end("DescribeInstances")?;
    Ok(builder)
}

fn write_output(value: &DescribeInstancesOutput) -> Value {
    let mut members = Object::new();
    members.put("NextToken", value.next_token.as_ref(), write::text);
    members.list(
        "Reservations",
        value.reservations.as_ref(),
        write_reservation,
    );
    members.end()
}

pub(super) fn write_reservation(value: &types::Reservation) -> Value {
    let mut members = Object::new();
    members.list("Groups", value.groups.as_ref(), write_group_identifier);
    members.list("Instances", value.instances.as_ref(), write_instance);
    members.put("OwnerId", value.owner_id.as_ref(), write::text);
    members.put("RequesterId", value.requester_id.as_ref(), write::text);
    members.put("ReservationId", value.reservation_id.as_ref(), write::text);
    members.end()
}
