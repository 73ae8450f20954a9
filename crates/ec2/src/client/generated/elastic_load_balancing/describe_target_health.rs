//! `DescribeTargetHealth`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from elbv2/2015-12-01 of botocore==1.43.127, for aws-sdk-elasticloadbalancingv2 1.134.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::operation::describe_target_health::{
    DescribeTargetHealthInput, DescribeTargetHealthOutput,
    builders::DescribeTargetHealthInputBuilder,
};
use aws_sdk_elasticloadbalancingv2::types;
use serde_json::Value;

use super::shared::read_target_description;
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

fn read_input(value: &Value) -> Result<DescribeTargetHealthInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeTargetHealthInput::builder()
        .set_include(members.list("Include", read::enumeration)?)
        .set_target_group_arn(members.get("TargetGroupArn", read::text)?)
        .set_targets(members.list("Targets", read_target_description)?);
    members.end("DescribeTargetHealth")?;
    Ok(builder)
}

fn write_output(value: &DescribeTargetHealthOutput) -> Value {
    let mut members = Object::new();
    members.list(
        "TargetHealthDescriptions",
        value.target_health_descriptions.as_ref(),
        write_target_health_description,
    );
    members.end()
}

pub(super) fn write_administrative_override(value: &types::AdministrativeOverride) -> Value {
    let mut members = Object::new();
    members.put("Description", value.description.as_ref(), write::text);
    members.put("Reason", value.reason.as_ref(), write::enumeration);
    members.put("State", value.state.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_anomaly_detection(value: &types::AnomalyDetection) -> Value {
    let mut members = Object::new();
    members.put(
        "MitigationInEffect",
        value.mitigation_in_effect.as_ref(),
        write::enumeration,
    );
    members.put("Result", value.result.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_target_description(value: &types::TargetDescription) -> Value {
    let mut members = Object::new();
    members.put(
        "AvailabilityZone",
        value.availability_zone.as_ref(),
        write::text,
    );
    members.put("Id", value.id.as_ref(), write::text);
    members.put("Port", value.port.as_ref(), write::whole);
    members.put("QuicServerId", value.quic_server_id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_target_health(value: &types::TargetHealth) -> Value {
    let mut members = Object::new();
    members.put("Description", value.description.as_ref(), write::text);
    members.put("Reason", value.reason.as_ref(), write::enumeration);
    members.put("State", value.state.as_ref(), write::enumeration);
    members.end()
}

pub(super) fn write_target_health_description(value: &types::TargetHealthDescription) -> Value {
    let mut members = Object::new();
    members.put(
        "AdministrativeOverride",
        value.administrative_override.as_ref(),
        write_administrative_override,
    );
    members.put(
        "AnomalyDetection",
        value.anomaly_detection.as_ref(),
        write_anomaly_detection,
    );
    members.put(
        "HealthCheckPort",
        value.health_check_port.as_ref(),
        write::text,
    );
    members.put("Target", value.target.as_ref(), write_target_description);
    members.put(
        "TargetHealth",
        value.target_health.as_ref(),
        write_target_health,
    );
    members.end()
}
