//! `ModifyNetworkInterfaceAttribute`: its input from JSON, its output to JSON.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

use aws_sdk_ec2::Client;
use aws_sdk_ec2::operation::modify_network_interface_attribute::{
    ModifyNetworkInterfaceAttributeInput, builders::ModifyNetworkInterfaceAttributeInputBuilder,
};
use aws_sdk_ec2::types;
use serde_json::Value;

use super::shared::{
    read_attribute_boolean_value, read_attribute_value,
    read_connection_tracking_specification_request,
};
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

fn read_input(value: &Value) -> Result<ModifyNetworkInterfaceAttributeInputBuilder, Misfit> {
    let mut members = Members::of(value)?;
    let builder = ModifyNetworkInterfaceAttributeInput::builder()
        .set_associate_public_ip_address(members.get("AssociatePublicIpAddress", read::flag)?)
        .set_associated_subnet_ids(members.list("AssociatedSubnetIds", read::text)?)
        .set_attachment(members.get("Attachment", read_network_interface_attachment_changes)?)
        .set_connection_tracking_specification(members.get(
            "ConnectionTrackingSpecification",
            read_connection_tracking_specification_request,
        )?)
        .set_description(members.get("Description", read_attribute_value)?)
        .set_dry_run(members.get("DryRun", read::flag)?)
        .set_ena_srd_specification(members.get("EnaSrdSpecification", read_ena_srd_specification)?)
        .set_enable_primary_ipv6(members.get("EnablePrimaryIpv6", read::flag)?)
        .set_groups(members.list("Groups", read::text)?)
        .set_network_interface_id(members.get("NetworkInterfaceId", read::text)?)
        .set_source_dest_check(members.get("SourceDestCheck", read_attribute_boolean_value)?);
    members.end("ModifyNetworkInterfaceAttribute")?;
    Ok(builder)
}

pub(super) fn read_ena_srd_specification(
    value: &Value,
) -> Result<types::EnaSrdSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::EnaSrdSpecification::builder()
        .set_ena_srd_enabled(members.get("EnaSrdEnabled", read::flag)?)
        .set_ena_srd_udp_specification(
            members.get("EnaSrdUdpSpecification", read_ena_srd_udp_specification)?,
        )
        .build();
    members.end("EnaSrdSpecification")?;
    Ok(structure)
}

pub(super) fn read_ena_srd_udp_specification(
    value: &Value,
) -> Result<types::EnaSrdUdpSpecification, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::EnaSrdUdpSpecification::builder()
        .set_ena_srd_udp_enabled(members.get("EnaSrdUdpEnabled", read::flag)?)
        .build();
    members.end("EnaSrdUdpSpecification")?;
    Ok(structure)
}

pub(super) fn read_network_interface_attachment_changes(
    value: &Value,
) -> Result<types::NetworkInterfaceAttachmentChanges, Misfit> {
    let mut members = Members::of(value)?;
    let structure = types::NetworkInterfaceAttachmentChanges::builder()
        .set_attachment_id(members.get("AttachmentId", read::text)?)
        .set_default_ena_queue_count(members.get("DefaultEnaQueueCount", read::flag)?)
        .set_delete_on_termination(members.get("DeleteOnTermination", read::flag)?)
        .set_ena_queue_count(members.get("EnaQueueCount", read::whole)?)
        .build();
    members.end("NetworkInterfaceAttachmentChanges")?;
    Ok(structure)
}
