//! `ModifyInstanceMaintenanceOptions`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::modify_instance_maintenance_options::{
    ModifyInstanceMaintenanceOptionsInput, ModifyInstanceMaintenanceOptionsOutput,
    builders::ModifyInstanceMaintenanceOptionsInputBuilder,
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

fn read_input(value: &Value) -> Result<ModifyInstanceMaintenanceOptionsInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = ModifyInstanceMaintenanceOptionsInput::builder()
        .set_auto_recovery(members.get("AutoRecovery", read::enumeration)?)
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_instance_id(members.get("InstanceId", read::text)?)
        .set_reboot_migration(members.get("RebootMigration", read::enumeration)?);
    members.end("ModifyInstanceMaintenanceOptions")?;
    Ok(builder)
}

fn write_output(value: &ModifyInstanceMaintenanceOptionsOutput) -> Value {
    let mut members = Object::new();
    members.put(
        "AutoRecovery",
        value.auto_recovery.as_ref(),
        write::enumeration,
    );
    members.put("InstanceId", value.instance_id.as_ref(), write::text);
    members.put(
        "RebootMigration",
        value.reboot_migration.as_ref(),
        write::enumeration,
    );
    members.end()
}
