//! Structures of more than one operation, from JSON and to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from elbv2/2015-12-01 of botocore==1.43.127, for aws-sdk-elasticloadbalancingv2 1.134.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_elasticloadbalancingv2::types;
use serde_json::Value;

use crate::client::read::{self, Members, Misfit};

pub(super) fn read_target_description(value: &Value) -> Result<types::TargetDescription, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::TargetDescription::builder()
        .set_availability_zone(members.get("AvailabilityZone", read::text)?)
        .set_id(members.get("Id", read::text)?)
        .set_port(members.get("Port", read::whole)?)
        .set_quic_server_id(members.get("QuicServerId", read::text)?)
        .build();
    members.end("TargetDescription")?;
    Ok(structure)
}
