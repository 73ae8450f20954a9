//! `GetCallerIdentity`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from sts/2011-06-15 of botocore==1.43.127, for aws-sdk-sts 1.124.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_sts::Client;
use aws_sdk_sts::operation::get_caller_identity::{
    GetCallerIdentityInput, GetCallerIdentityOutput, builders::GetCallerIdentityInputBuilder,
};
use serde_json::Value;

use crate::ApiError;
use crate::client::failure::failure;
use crate::client::read::{Members, Misfit};
use crate::client::write::{self, Object};

/// Makes the call.
pub(in crate::client) async fn call(client: &Client, input: &Value) -> Result<Value, ApiError> {
    let output = read_input(input)?
        .send_with(client)
        .await
        .map_err(failure)?;
    Ok(write_output(&output))
}

fn read_input(value: &Value) -> Result<GetCallerIdentityInputBuilder, Misfit> {
    let members = Members::of(value)?;
    let builder = GetCallerIdentityInput::builder();
    members.end("GetCallerIdentity")?;
    Ok(builder)
}

fn write_output(value: &GetCallerIdentityOutput) -> Value {
    let mut members = Object::new();
    members.put("Account", value.account.as_ref(), write::text);
    members.put("Arn", value.arn.as_ref(), write::text);
    members.put("UserId", value.user_id.as_ref(), write::text);
    members.end()
}
