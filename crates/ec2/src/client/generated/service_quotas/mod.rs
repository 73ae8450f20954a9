//! The operations of aws-sdk-servicequotas.
//!
//! Made by `cargo xtask gen-ec2-args` from service-quotas/2019-06-24 of botocore==1.43.127, for aws-sdk-servicequotas 1.121.0.
//!
//! In: JSON by the API's names, values of the SDK. Out: the one from the other. May not: be edited.

pub(in crate::client) mod get_service_quota;
