//! `StopInstances`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::stop_instances::{
    StopInstancesInput, StopInstancesOutput, builders::StopInstancesInputBuilder,
};
use serde_json::Value;

use super::shared::write_instance_state_change;
use crate::ApiError;
use crate::client::failure::failure;
use crate::client::read::{self, Members, Misfit};
use crate::client::write::Object;

/// Makes the call.
pub(in crate::client) async fn call(client: &Client, input: &Value) -> Result<Value, ApiError> {
    let output = read_input(input)?
        .send_with(client)
        .await
        .map_err(failure)?;
    Ok(write_output(&output))
}

fn read_input(value: &Value) -> Result<StopInstancesInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = StopInstancesInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_force(members.get("Force", read::flag)?)
        .set_hibernate(members.get("Hibernate", read::flag)?)
        .set_instance_ids(members.list("InstanceIds", read::text)?)
        .set_skip_os_shutdown(members.get("SkipOsShutdown", read::flag)?);
    members.end("StopInstances")?;
    Ok(builder)
}

fn write_output(value: &StopInstancesOutput) -> Value {
    let mut members = Object::new();
    members.list(
        "StoppingInstances",
        value.stopping_instances.as_ref(),
        write_instance_state_change,
    );
    members.end()
}
