//! `ModifyInstanceCreditSpecification`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::modify_instance_credit_specification::{
    ModifyInstanceCreditSpecificationInput, ModifyInstanceCreditSpecificationOutput,
    builders::ModifyInstanceCreditSpecificationInputBuilder,
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

fn read_input(value: &Value) -> Result<ModifyInstanceCreditSpecificationInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = ModifyInstanceCreditSpecificationInput::builder()
        .set_client_token(members.get("ClientToken", read::text)?)
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_instance_credit_specifications(members.list(
            "InstanceCreditSpecifications",
            read_instance_credit_specification_request,
        )?);
    members.end("ModifyInstanceCreditSpecification")?;
    Ok(builder)
}

fn write_output(value: &ModifyInstanceCreditSpecificationOutput) -> Value {
    let mut members = Object::new();
    members.list(
        "SuccessfulInstanceCreditSpecifications",
        value.successful_instance_credit_specifications.as_ref(),
        write_successful_instance_credit_specification_item,
    );
    members.list(
        "UnsuccessfulInstanceCreditSpecifications",
        value.unsuccessful_instance_credit_specifications.as_ref(),
        write_unsuccessful_instance_credit_specification_item,
    );
    members.end()
}

pub(super) fn read_instance_credit_specification_request(
    value: &Value,
) -> Result<types::InstanceCreditSpecificationRequest, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::InstanceCreditSpecificationRequest::builder()
        .set_cpu_credits(members.get("CpuCredits", read::text)?)
        .set_instance_id(members.get("InstanceId", read::text)?)
        .build();
    members.end("InstanceCreditSpecificationRequest")?;
    Ok(structure)
}

pub(super) fn write_successful_instance_credit_specification_item(
    value: &types::SuccessfulInstanceCreditSpecificationItem,
) -> Value {
    let mut members = Object::new();
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_unsuccessful_instance_credit_specification_item(
    value: &types::UnsuccessfulInstanceCreditSpecificationItem,
) -> Value {
    let mut members = Object::new();
    members.put(
        "Error",
        value.error.as_ref(),
        write_unsuccessful_instance_credit_specification_item_error,
    );
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_unsuccessful_instance_credit_specification_item_error(
    value: &types::UnsuccessfulInstanceCreditSpecificationItemError,
) -> Value {
    let mut members = Object::new();
    members.put("Code", value.code.as_ref(), write::enumeration);
    members.put("Message", value.message.as_ref(), write::text);
    members.end()
}
