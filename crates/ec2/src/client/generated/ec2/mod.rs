//! The operations of aws-sdk-ec2.
//!
//! Made by `cargo xtask gen-ec2-args` from ec2/2016-11-15 of botocore==1.43.127, for aws-sdk-ec2 1.274.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

pub(in crate::client) mod associate_iam_instance_profile;
pub(in crate::client) mod create_tags;
pub(in crate::client) mod delete_tags;
pub(in crate::client) mod describe_account_attributes;
pub(in crate::client) mod describe_iam_instance_profile_associations;
pub(in crate::client) mod describe_images;
pub(in crate::client) mod describe_instance_attribute;
pub(in crate::client) mod describe_instance_credit_specifications;
pub(in crate::client) mod describe_instance_types;
pub(in crate::client) mod describe_instances;
pub(in crate::client) mod describe_security_groups;
pub(in crate::client) mod describe_subnets;
pub(in crate::client) mod describe_volumes;
pub(in crate::client) mod disassociate_iam_instance_profile;
pub(in crate::client) mod modify_instance_attribute;
pub(in crate::client) mod modify_instance_capacity_reservation_attributes;
pub(in crate::client) mod modify_instance_credit_specification;
pub(in crate::client) mod modify_instance_maintenance_options;
pub(in crate::client) mod modify_instance_metadata_options;
pub(in crate::client) mod modify_network_interface_attribute;
pub(in crate::client) mod modify_private_dns_name_options;
pub(in crate::client) mod monitor_instances;
pub(in crate::client) mod replace_iam_instance_profile_association;
pub(in crate::client) mod run_instances;
mod shared;
pub(in crate::client) mod start_instances;
pub(in crate::client) mod stop_instances;
pub(in crate::client) mod terminate_instances;
pub(in crate::client) mod unmonitor_instances;
