//! `DescribeSubnets`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::describe_subnets::{
    DescribeSubnetsInput, DescribeSubnetsOutput, builders::DescribeSubnetsInputBuilder,
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

fn read_input(value: &Value) -> Result<DescribeSubnetsInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DescribeSubnetsInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_filters(members.list("Filters", read_filter)?)
        .set_max_results(members.get("MaxResults", read::whole)?)
        .set_next_token(members.get("NextToken", read::text)?)
        .set_subnet_ids(members.list("SubnetIds", read::text)?);
    members.end("DescribeSubnets")?;
    Ok(builder)
}

fn write_output(value: &DescribeSubnetsOutput) -> Value {
    let mut members = Object::new();
    members.put("NextToken", value.next_token.as_ref(), write::text);
    members.list("Subnets", value.subnets.as_ref(), write_subnet);
    members.end()
}

pub(super) fn write_block_public_access_states(value: &types::BlockPublicAccessStates) -> Value {
    let mut members = Object::new();
    members.put(
        "InternetGatewayBlockMode",
        value.internet_gateway_block_mode.as_ref(),
        write::enumeration,
    );
    members.end()
}

pub(super) fn write_private_dns_name_options_on_launch(
    value: &types::PrivateDnsNameOptionsOnLaunch,
) -> Value {
    let mut members = Object::new();
    members.put(
        "EnableResourceNameDnsAAAARecord",
        value.enable_resource_name_dns_aaaa_record.as_ref(),
        write::flag,
    );
    members.put(
        "EnableResourceNameDnsARecord",
        value.enable_resource_name_dns_a_record.as_ref(),
        write::flag,
    );
    members.put(
        "HostnameType",
        value.hostname_type.as_ref(),
        write::enumeration,
    );
    members.end()
}

pub(super) fn write_subnet(value: &types::Subnet) -> Value {
    let mut members = Object::new();
    members.put(
        "AssignIpv6AddressOnCreation",
        value.assign_ipv6_address_on_creation.as_ref(),
        write::flag,
    );
    members.put(
        "AvailabilityZone",
        value.availability_zone.as_ref(),
        write::text,
    );
    members.put(
        "AvailabilityZoneId",
        value.availability_zone_id.as_ref(),
        write::text,
    );
    members.put(
        "AvailableIpAddressCount",
        value.available_ip_address_count.as_ref(),
        write::whole,
    );
    members.put(
        "BlockPublicAccessStates",
        value.block_public_access_states.as_ref(),
        write_block_public_access_states,
    );
    members.put("CidrBlock", value.cidr_block.as_ref(), write::text);
    members.put(
        "CustomerOwnedIpv4Pool",
        value.customer_owned_ipv4_pool.as_ref(),
        write::text,
    );
    members.put("DefaultForAz", value.default_for_az.as_ref(), write::flag);
    members.put("EnableDns64", value.enable_dns64.as_ref(), write::flag);
    members.put(
        "EnableLniAtDeviceIndex",
        value.enable_lni_at_device_index.as_ref(),
        write::whole,
    );
    members.list(
        "Ipv6CidrBlockAssociationSet",
        value.ipv6_cidr_block_association_set.as_ref(),
        write_subnet_ipv6_cidr_block_association,
    );
    members.put("Ipv6Native", value.ipv6_native.as_ref(), write::flag);
    members.put(
        "MapCustomerOwnedIpOnLaunch",
        value.map_customer_owned_ip_on_launch.as_ref(),
        write::flag,
    );
    members.put(
        "MapPublicIpOnLaunch",
        value.map_public_ip_on_launch.as_ref(),
        write::flag,
    );
    members.put("OutpostArn", value.outpost_arn.as_ref(), write::text);
    members.put("OwnerId", value.owner_id.as_ref(), write::text);
    members.put(
        "PrivateDnsNameOptionsOnLaunch",
        value.private_dns_name_options_on_launch.as_ref(),
        write_private_dns_name_options_on_launch,
    );
    members.put("State", value.state.as_ref(), write::enumeration);
    members.put("SubnetArn", value.subnet_arn.as_ref(), write::text);
    members.put("SubnetId", value.subnet_id.as_ref(), write::text);
    members.list("Tags", value.tags.as_ref(), write_tag);
    members.put("Type", value.r#type.as_ref(), write::text);
    members.put("VpcId", value.vpc_id.as_ref(), write::text);
    members.end()
}

pub(super) fn write_subnet_cidr_block_state(value: &types::SubnetCidrBlockState) -> Value {
    let mut members = Object::new();
    members.put("State", value.state.as_ref(), write::enumeration);
    members.put("StatusMessage", value.status_message.as_ref(), write::text);
    members.end()
}

pub(super) fn write_subnet_ipv6_cidr_block_association(
    value: &types::SubnetIpv6CidrBlockAssociation,
) -> Value {
    let mut members = Object::new();
    members.put("AssociationId", value.association_id.as_ref(), write::text);
    members.put("IpSource", value.ip_source.as_ref(), write::enumeration);
    members.put(
        "Ipv6AddressAttribute",
        value.ipv6_address_attribute.as_ref(),
        write::enumeration,
    );
    members.put("Ipv6CidrBlock", value.ipv6_cidr_block.as_ref(), write::text);
    members.put(
        "Ipv6CidrBlockState",
        value.ipv6_cidr_block_state.as_ref(),
        write_subnet_cidr_block_state,
    );
    members.end()
}
