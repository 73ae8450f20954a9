//! `GetParameter`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ssm/2014-11-06 of botocore==1.43.127, for aws-sdk-ssm 1.133.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ssm::Client;
use aws_sdk_ssm::operation::get_parameter::{
    GetParameterInput, GetParameterOutput, builders::GetParameterInputBuilder,
};
use aws_sdk_ssm::types;
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

fn read_input(value: &Value) -> Result<GetParameterInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = GetParameterInput::builder()
        .set_name(members.get("Name", read::text)?)
        .set_with_decryption(members.get("WithDecryption", read::flag)?);
    members.end("GetParameter")?;
    Ok(builder)
}

fn write_output(value: &GetParameterOutput) -> Value {
    let mut members = Object::new();
    members.put("Parameter", value.parameter.as_ref(), write_parameter);
    members.end()
}

pub(super) fn write_parameter(value: &types::Parameter) -> Value {
    let mut members = Object::new();
    members.put("ARN", value.arn.as_ref(), write::text);
    members.put("DataType", value.data_type.as_ref(), write::text);
    members.put(
        "LastModifiedDate",
        value.last_modified_date.as_ref(),
        write::time,
    );
    members.put("Name", value.name.as_ref(), write::text);
    members.put("Selector", value.selector.as_ref(), write::text);
    members.put("SourceResult", value.source_result.as_ref(), write::text);
    members.put("Type", value.r#type.as_ref(), write::enumeration);
    members.put("Value", value.value.as_ref(), write::text);
    members.put("Version", Some(&value.version), write::long);
    members.end()
}
