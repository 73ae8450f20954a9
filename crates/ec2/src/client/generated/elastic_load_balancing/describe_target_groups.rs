//! `DescribeTargetGroups`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from elbv2/2015-12-01 of botocore==1.43.127, for aws-sdk-elasticloadbalancingv2 1.134.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_elasticloadbalancingv2::Client;
use aws_sdk_elasticloadbalancingv2::operation::describe_target_groups::{
    DescribeTargetGroupsInput, DescribeTargetGroupsOutput,
    builders::DescribeTargetGroupsInputBuilder,
};
use aws_sdk_elasticloadbalancingv2::types;
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

fn read_input(value: &Value) -> Result<DescribeTargetGroupsInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeTargetGroupsInput::builder()
        .set_load_balancer_arn(members.get("LoadBalancerArn", read::text)?)
        .set_marker(members.get("Marker", read::text)?)
        .set_names(members.list("Names", read::text)?)
        .set_page_size(members.get("PageSize", read::whole)?)
        .set_target_group_arns(members.list("TargetGroupArns", read::text)?);
    members.end("DescribeTargetGroups")?;
    Ok(builder)
}

fn write_output(value: &DescribeTargetGroupsOutput) -> Value {
    let mut members = Object::new();
    members.put("NextMarker", value.next_marker.as_ref(), write::text);
    members.list(
        "TargetGroups",
        value.target_groups.as_ref(),
        write_target_group,
    );
    members.end()
}

pub(super) fn write_matcher(value: &types::Matcher) -> Value {
    let mut members = Object::new();
    members.put("GrpcCode", value.grpc_code.as_ref(), write::text);
    members.put("HttpCode", value.http_code.as_ref(), write::text);
    members.end()
}

pub(super) fn write_target_group(value: &types::TargetGroup) -> Value {
    let mut members = Object::new();
    members.put(
        "HealthCheckEnabled",
        value.health_check_enabled.as_ref(),
        write::flag,
    );
    members.put(
        "HealthCheckIntervalSeconds",
        value.health_check_interval_seconds.as_ref(),
        write::whole,
    );
    members.put(
        "HealthCheckPath",
        value.health_check_path.as_ref(),
        write::text,
    );
    members.put(
        "HealthCheckPort",
        value.health_check_port.as_ref(),
        write::text,
    );
    members.put(
        "HealthCheckProtocol",
        value.health_check_protocol.as_ref(),
        write::enumeration,
    );
    members.put(
        "HealthCheckTimeoutSeconds",
        value.health_check_timeout_seconds.as_ref(),
        write::whole,
    );
    members.put(
        "HealthyThresholdCount",
        value.healthy_threshold_count.as_ref(),
        write::whole,
    );
    members.put(
        "IpAddressType",
        value.ip_address_type.as_ref(),
        write::enumeration,
    );
    members.list(
        "LoadBalancerArns",
        value.load_balancer_arns.as_ref(),
        write::text,
    );
    members.put("Matcher", value.matcher.as_ref(), write_matcher);
    members.put("Port", value.port.as_ref(), write::whole);
    members.put("Protocol", value.protocol.as_ref(), write::enumeration);
    members.put(
        "ProtocolVersion",
        value.protocol_version.as_ref(),
        write::text,
    );
    members.put(
        "TargetControlPort",
        value.target_control_port.as_ref(),
        write::whole,
    );
    members.put(
        "TargetGroupArn",
        value.target_group_arn.as_ref(),
        write::text,
    );
    members.put(
        "TargetGroupName",
        value.target_group_name.as_ref(),
        write::text,
    );
    members.put("TargetType", value.target_type.as_ref(), write::enumeration);
    members.put(
        "UnhealthyThresholdCount",
        value.unhealthy_threshold_count.as_ref(),
        write::whole,
    );
    members.put("VpcId", value.vpc_id.as_ref(), write::text);
    members.end()
}
