//! `RegisterTargets`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from elbv2/2015-12-01 of botocore==1.43.127, for aws-sdk-elasticloadbalancingv2 1.134.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::operation::register_targets::{
    RegisterTargetsInput, builders::RegisterTargetsInputBuilder,
};
use serde_json::Value;

use super::shared::read_target_description;
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

fn read_input(value: &Value) -> Result<RegisterTargetsInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = RegisterTargetsInput::builder()
        .set_target_group_arn(members.get("TargetGroupArn", read::text)?)
        .set_targets(members.list("Targets", read_target_description)?);
    members.end("RegisterTargets")?;
    Ok(builder)
}
