//! `DescribeSecurityGroups`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::describe_security_groups::{
    DescribeSecurityGroupsInput, DescribeSecurityGroupsOutput,
    builders::DescribeSecurityGroupsInputBuilder,
};
use aws_sdk_ec2::types;
use serde_json::Value;

use super::shared::{read_filter, write_tag};
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

fn read_input(value: &Value) -> Result<DescribeSecurityGroupsInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeSecurityGroupsInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_filters(members.list("Filters", read_filter)?)
        .set_group_ids(members.list("GroupIds", read::text)?)
        .set_group_names(members.list("GroupNames", read::text)?)
        .set_max_results(members.get("MaxResults", read::whole)?)
        .set_next_token(members.get("NextToken", read::text)?);
    members.end("DescribeSecurityGroups")?;
    Ok(builder)
}

fn write_output(value: &DescribeSecurityGroupsOutput) -> Value {
    let mut members = Object::new();
    members.put("NextToken", value.next_token.as_ref(), write::text);
    members.list(
        "SecurityGroups",
        value.security_groups.as_ref(),
        write_security_group,
    );
    members.end()
}

pub(super) fn write_ip_permission(value: &types::IpPermission) -> Value {
    let mut members = Object::new();
    members.put("FromPort", value.from_port.as_ref(), write::whole);
    members.put("IpProtocol", value.ip_protocol.as_ref(), write::text);
    members.list("IpRanges", value.ip_ranges.as_ref(), write_ip_range);
    members.list("Ipv6Ranges", value.ipv6_ranges.as_ref(), write_ipv6_range);
    members.list(
        "PrefixListIds",
        value.prefix_list_ids.as_ref(),
        write_prefix_list_id,
    );
    members.put("ToPort", value.to_port.as_ref(), write::whole);
    members.list(
        "UserIdGroupPairs",
        value.user_id_group_pairs.as_ref(),
        write_user_id_group_pair,
    );
    members.end()
}

pub(super) fn write_ip_range(value: &types::IpRange) -> Value {
    let mut members = Object::new();
    members.put("CidrIp", value.cidr_ip.as_ref(), write::text);
    members.put("Description", value.description.as_ref(), write::text);
    members.end()
}

pub(super) fn write_ipv6_range(value: &types::Ipv6Range) -> Value {
    let mut members = Object::new();
    members.put("CidrIpv6", value.cidr_ipv6.as_ref(), write::text);
    members.put("Description", value.description.as_ref(), write::text);
    members.end()
}

pub(super) fn write_prefix_list_id(value: &types::PrefixListId) -> Value {
    let mut members = Object::new();
    members.put("Description", value.description.as_ref(), write::text);
    members.put("PrefixListId", value.prefix_list_id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_security_group(value: &types::SecurityGroup) -> Value {
    let mut members = Object::new();
    members.put("Description", value.description.as_ref(), write::text);
    members.put("GroupId", value.group_id.as_ref(), write::text);
    members.put("GroupName", value.group_name.as_ref(), write::text);
    members.list(
        "IpPermissions",
        value.ip_permissions.as_ref(),
        write_ip_permission,
    );
    members.list(
        "IpPermissionsEgress",
        value.ip_permissions_egress.as_ref(),
        write_ip_permission,
    );
    members.put("OwnerId", value.owner_id.as_ref(), write::text);
    members.put(
        "SecurityGroupArn",
        value.security_group_arn.as_ref(),
        write::text,
    );
    members.list("Tags", value.tags.as_ref(), write_tag);
    members.put("VpcId", value.vpc_id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_user_id_group_pair(value: &types::UserIdGroupPair) -> Value {
    let mut members = Object::new();
    members.put("Description", value.description.as_ref(), write::text);
    members.put("GroupId", value.group_id.as_ref(), write::text);
    members.put("GroupName", value.group_name.as_ref(), write::text);
    members.put("PeeringStatus", value.peering_status.as_ref(), write::text);
    members.put("UserId", value.user_id.as_ref(), write::text);
    members.put("VpcId", value.vpc_id.as_ref(), write::text);
    members.put(
        "VpcPeeringConnectionId",
        value.vpc_peering_connection_id.as_ref(),
        write::text,
    );
    members.end()
}
