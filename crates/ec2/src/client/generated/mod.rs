//! Every operation, as a call of an SDK or of `json`.
//!
//! Made by `cargo xtask gen-ec2-args`.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

mod ec2;
mod elastic_load_balancing;
mod sts;

use serde_json::Value;

use super::{Clients, json};
use crate::{ApiError, Operation};

/// Makes one call.
pub(super) async fn call(
    clients: &Clients,
    operation: Operation,
    input: &Value,
) -> Result<Value, ApiError> {
    // The futures are large, so each has its own allocation.
    match operation {
        Operation::AssociateIamInstanceProfile => {
            Box::pin(ec2::associate_iam_instance_profile::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::CreateTags => Box::pin(ec2::create_tags::call(&clients.ec2, input)).await,
        Operation::DeleteTags => Box::pin(ec2::delete_tags::call(&clients.ec2, input)).await,
        Operation::DescribeAccountAttributes => {
            Box::pin(ec2::describe_account_attributes::call(&clients.ec2, input)).await
        }
        Operation::DescribeIamInstanceProfileAssociations => {
            Box::pin(ec2::describe_iam_instance_profile_associations::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::DescribeImages => {
            Box::pin(ec2::describe_images::call(&clients.ec2, input)).await
        }
        Operation::DescribeInstanceAttribute => {
            Box::pin(ec2::describe_instance_attribute::call(&clients.ec2, input)).await
        }
        Operation::DescribeInstanceCreditSpecifications => {
            Box::pin(ec2::describe_instance_credit_specifications::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::DescribeInstanceTypes => {
            Box::pin(ec2::describe_instance_types::call(&clients.ec2, input)).await
        }
        Operation::DescribeInstances => {
            Box::pin(ec2::describe_instances::call(&clients.ec2, input)).await
        }
        Operation::DescribeSecurityGroups => {
            Box::pin(ec2::describe_security_groups::call(&clients.ec2, input)).await
        }
        Operation::DescribeSubnets => {
            Box::pin(ec2::describe_subnets::call(&clients.ec2, input)).await
        }
        Operation::DescribeVolumes => {
            Box::pin(ec2::describe_volumes::call(&clients.ec2, input)).await
        }
        Operation::DisassociateIamInstanceProfile => {
            Box::pin(ec2::disassociate_iam_instance_profile::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::ModifyInstanceAttribute => {
            Box::pin(ec2::modify_instance_attribute::call(&clients.ec2, input)).await
        }
        Operation::ModifyInstanceCapacityReservationAttributes => {
            Box::pin(ec2::modify_instance_capacity_reservation_attributes::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::ModifyInstanceCreditSpecification => {
            Box::pin(ec2::modify_instance_credit_specification::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::ModifyInstanceMaintenanceOptions => {
            Box::pin(ec2::modify_instance_maintenance_options::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::ModifyInstanceMetadataOptions => {
            Box::pin(ec2::modify_instance_metadata_options::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::ModifyNetworkInterfaceAttribute => {
            Box::pin(ec2::modify_network_interface_attribute::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::ModifyPrivateDnsNameOptions => {
            Box::pin(ec2::modify_private_dns_name_options::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::MonitorInstances => {
            Box::pin(ec2::monitor_instances::call(&clients.ec2, input)).await
        }
        Operation::ReplaceIamInstanceProfileAssociation => {
            Box::pin(ec2::replace_iam_instance_profile_association::call(
                &clients.ec2,
                input,
            ))
            .await
        }
        Operation::RunInstances => Box::pin(ec2::run_instances::call(&clients.ec2, input)).await,
        Operation::StartInstances => {
            Box::pin(ec2::start_instances::call(&clients.ec2, input)).await
        }
        Operation::StopInstances => Box::pin(ec2::stop_instances::call(&clients.ec2, input)).await,
        Operation::TerminateInstances => {
            Box::pin(ec2::terminate_instances::call(&clients.ec2, input)).await
        }
        Operation::UnmonitorInstances => {
            Box::pin(ec2::unmonitor_instances::call(&clients.ec2, input)).await
        }
        Operation::DeregisterTargets => {
            Box::pin(elastic_load_balancing::deregister_targets::call(
                &clients.elastic_load_balancing,
                input,
            ))
            .await
        }
        Operation::DescribeTargetGroups => {
            Box::pin(elastic_load_balancing::describe_target_groups::call(
                &clients.elastic_load_balancing,
                input,
            ))
            .await
        }
        Operation::DescribeTargetHealth => {
            Box::pin(elastic_load_balancing::describe_target_health::call(
                &clients.elastic_load_balancing,
                input,
            ))
            .await
        }
        Operation::RegisterTargets => {
            Box::pin(elastic_load_balancing::register_targets::call(
                &clients.elastic_load_balancing,
                input,
            ))
            .await
        }
        Operation::GetServiceQuota => {
            Box::pin(json::call(&clients.service_quotas, operation, input)).await
        }
        Operation::GetParameter => Box::pin(json::call(&clients.ssm, operation, input)).await,
        Operation::GetCallerIdentity => {
            Box::pin(sts::get_caller_identity::call(&clients.sts, input)).await
        }
    }
}
