//! The operations of aws-sdk-ssm.
//!
//! Made by `cargo xtask gen-ec2-args` from ssm/2014-11-06 of botocore==1.43.127, for aws-sdk-ssm 1.133.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

pub(in crate::client) mod get_parameter;
