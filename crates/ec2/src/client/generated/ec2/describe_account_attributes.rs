//! `DescribeAccountAttributes`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::describe_account_attributes::{
    DescribeAccountAttributesInput, DescribeAccountAttributesOutput,
    builders::DescribeAccountAttributesInputBuilder,
};
use aws_sdk_ec2::types;
use serde_json::Value;

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

fn read_input(value: &Value) -> Result<DescribeAccountAttributesInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeAccountAttributesInput::builder()
        .set_attribute_names(members.list("AttributeNames", read::enumeration)?)
        .set_dry_run(members.get("DryRun", read::flag)?);
    members.end("DescribeAccountAttributes")?;
    Ok(builder)
}

fn write_output(value: &DescribeAccountAttributesOutput) -> Value {
    let mut members = Object::new();
    members.list(
        "AccountAttributes",
        value.account_attributes.as_ref(),
        write_account_attribute,
    );
    members.end()
}

pub(super) fn write_account_attribute(value: &types::AccountAttribute) -> Value {
    let mut members = Object::new();
    members.put("AttributeName", value.attribute_name.as_ref(), write::text);
    members.list(
        "AttributeValues",
        value.attribute_values.as_ref(),
        write_account_attribute_value,
    );
    members.end()
}

pub(super) fn write_account_attribute_value(value: &types::AccountAttributeValue) -> Value {
    let mut members = Object::new();
    members.put(
        "AttributeValue",
        value.attribute_value.as_ref(),
        write::text,
    );
    members.end()
}
