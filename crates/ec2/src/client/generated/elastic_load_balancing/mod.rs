//! The operations of aws-sdk-elasticloadbalancingv2.
//!
//! Made by `cargo xtask gen-ec2-args` from elbv2/2015-12-01 of botocore==1.43.127, for aws-sdk-elasticloadbalancingv2 1.134.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

pub(in crate::client) mod deregister_targets;
pub(in crate::client) mod describe_target_groups;
pub(in crate::client) mod describe_target_health;
pub(in crate::client) mod register_targets;
mod shared;
