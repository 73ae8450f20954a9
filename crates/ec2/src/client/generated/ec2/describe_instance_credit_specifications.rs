//! `DescribeInstanceCreditSpecifications`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::describe_instance_credit_specifications::{
    DescribeInstanceCreditSpecificationsInput, DescribeInstanceCreditSpecificationsOutput,
    builders::DescribeInstanceCreditSpecificationsInputBuilder,
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

fn read_input(value: &Value) -> Result<DescribeInstanceCreditSpecificationsInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeInstanceCreditSpecificationsInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_filters(members.list("Filters", read_filter)?)
        .set_instance_ids(members.list("InstanceIds", read::text)?)
        .set_max_results(members.get("MaxResults", read::whole)?)
        .set_next_token(members.get("NextToken", read::text)?);
    members.end("DescribeInstanceCreditSpecifications")?;
    Ok(builder)
}

fn write_output(value: &DescribeInstanceCreditSpecificationsOutput) -> Value {
    let mut members = Object::new();
    members.list(
        "InstanceCreditSpecifications",
        value.instance_credit_specifications.as_ref(),
        write_instance_credit_specification,
    );
    members.put("NextToken", value.next_token.as_ref(), write::text);
    members.end()
}

pub(super) fn write_instance_credit_specification(
    value: &types::InstanceCreditSpecification,
) -> Value {
    let mut members = Object::new();
    members.put("CpuCredits", value.cpu_credits.as_ref(), write::text);
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.end()
}
