//! `ModifyInstanceMetadataOptions`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::modify_instance_metadata_options::{
    ModifyInstanceMetadataOptionsInput, ModifyInstanceMetadataOptionsOutput,
    builders::ModifyInstanceMetadataOptionsInputBuilder,
};
use serde_json::Value;

use super::shared::write_instance_metadata_options_response;
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

fn read_input(value: &Value) -> Result<ModifyInstanceMetadataOptionsInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = ModifyInstanceMetadataOptionsInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_http_endpoint(members.get("HttpEndpoint", read::enumeration)?)
        .set_http_protocol_ipv6(members.get("HttpProtocolIpv6", read::enumeration)?)
        .set_http_put_response_hop_limit(members.get("HttpPutResponseHopLimit", read::whole)?)
        .set_http_tokens(members.get("HttpTokens", read::enumeration)?)
        .set_instance_id(members.get("InstanceId", read::text)?)
        .set_instance_metadata_tags(members.get("InstanceMetadataTags", read::enumeration)?);
    members.end("ModifyInstanceMetadataOptions")?;
    Ok(builder)
}

fn write_output(value: &ModifyInstanceMetadataOptionsOutput) -> Value {
    let mut members = Object::new();
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.put(
        "InstanceMetadataOptions",
        value.instance_metadata_options.as_ref(),
        write_instance_metadata_options_response,
    );
    members.end()
}
