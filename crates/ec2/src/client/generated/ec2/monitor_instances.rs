//! `MonitorInstances`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::monitor_instances::{
    MonitorInstancesInput, MonitorInstancesOutput, builders::MonitorInstancesInputBuilder,
};
use serde_json::Value;

use super::shared::write_instance_monitoring;
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

fn read_input(value: &Value) -> Result<MonitorInstancesInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = MonitorInstancesInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_instance_ids(members.list("InstanceIds", read::text)?);
    members.end("MonitorInstances")?;
    Ok(builder)
}

fn write_output(value: &MonitorInstancesOutput) -> Value {
    let mut members = Object::new();
    members.list(
        "InstanceMonitorings",
        value.instance_monitorings.as_ref(),
        write_instance_monitoring,
    );
    members.end()
}
