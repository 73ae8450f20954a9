//! `DisassociateIamInstanceProfile`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::disassociate_iam_instance_profile::{
    DisassociateIamInstanceProfileInput, DisassociateIamInstanceProfileOutput,
    builders::DisassociateIamInstanceProfileInputBuilder,
};
use serde_json::Value;

use super::shared::write_iam_instance_profile_association;
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

fn read_input(value: &Value) -> Result<DisassociateIamInstanceProfileInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = DisassociateIamInstanceProfileInput::builder()
        .set_association_id(members.get("AssociationId", read::text)?);
    members.end("DisassociateIamInstanceProfile")?;
    Ok(builder)
}

fn write_output(value: &DisassociateIamInstanceProfileOutput) -> Value {
    let mut members = Object::new();
    members.put(
        "IamInstanceProfileAssociation",
        value.iam_instance_profile_association.as_ref(),
        write_iam_instance_profile_association,
    );
    members.end()
}
