//! `DeleteTags`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::delete_tags::{DeleteTagsInput, builders::DeleteTagsInputBuilder};
use serde_json::Value;

use super::shared::read_tag;
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

fn read_input(value: &Value) -> Result<DeleteTagsInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DeleteTagsInput::builder()
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_resources(members.list("Resources", read::text)?)
        .set_tags(members.list("Tags", read_tag)?);
    members.end("DeleteTags")?;
    Ok(builder)
}
