//! `ModifyPrivateDnsNameOptions`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::modify_private_dns_name_options::{
    ModifyPrivateDnsNameOptionsInput, ModifyPrivateDnsNameOptionsOutput,
    builders::ModifyPrivateDnsNameOptionsInputBuilder,
};
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

fn read_input(value: &Value) -> Result<ModifyPrivateDnsNameOptionsInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = ModifyPrivateDnsNameOptionsInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_enable_resource_name_dns_aaaa_record(
            members.get("EnableResourceNameDnsAAAARecord", read::flag)?,
        )
        .set_enable_resource_name_dns_a_record(
            members.get("EnableResourceNameDnsARecord", read::flag)?,
        )
        .set_instance_id(members.get("InstanceId", read::text)?)
        .set_private_dns_hostname_type(members.get("PrivateDnsHostnameType", read::enumeration)?);
    members.end("ModifyPrivateDnsNameOptions")?;
    Ok(builder)
}

fn write_output(value: &ModifyPrivateDnsNameOptionsOutput) -> Value {
    let mut members = Object::new();
    members.put("Return", value.r#return.as_ref(), write::flag);
    members.end()
}
