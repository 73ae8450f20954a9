//! The operations of aws-sdk-sts.
//!
//! Made by `cargo xtask gen-ec2-args` from sts/2011-06-15 of botocore==1.43.127, for aws-sdk-sts 1.124.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

pub(in crate::client) mod get_caller_identity;
