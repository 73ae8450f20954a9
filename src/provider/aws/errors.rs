//! Converts AWS errors.
//!
//! In: an operation and its [`ApiError`]. Out: a [`CloudError`] with its kind and a hint. Must not:
//! decide what happens next.
//!
//! The codes are those of "Error codes for the Amazon EC2 API" and of the common errors of the
//! other services.

use nstance_ec2::{ApiError, ApiErrorKind, Operation};

use crate::provider::{CloudError, CloudErrorKind};

/// Converts the error of a call.
pub(super) fn told(operation: Operation, error: ApiError) -> CloudError {
    let kind = kind(operation, &error);
    let (message, encoded) = split_encoded(&error.message);
    let hint = hint(operation, &error, kind, encoded);
    CloudError {
        kind,
        message: if message.is_empty() {
            format!("{operation} was refused")
        } else {
            message.to_owned()
        },
        code: error.code,
        request_id: error.request_id.map(String::into_boxed_str),
        hint: hint.map(String::into_boxed_str),
    }
}

/// The kind of an error.
fn kind(operation: Operation, error: &ApiError) -> CloudErrorKind {
    match error.kind {
        ApiErrorKind::Input => return CloudErrorKind::Invalid,
        ApiErrorKind::Unsent if error.code == ApiError::CREDENTIALS_NOT_FOUND => {
            return CloudErrorKind::Unavailable;
        }
        ApiErrorKind::Unsent => return CloudErrorKind::Transient,
        ApiErrorKind::Lost => return CloudErrorKind::Ambiguous,
        ApiErrorKind::Refused => {}
    }
    // The code is more specific than the status: missing capacity has status 500.
    if let Some(kind) = kind_of_code(&error.code) {
        return kind;
    }
    match error.status {
        Some(429) => CloudErrorKind::Throttled,
        Some(500..) if operation.is_read() => CloudErrorKind::Transient,
        // A server error may come after the effect.
        Some(500..) => CloudErrorKind::Ambiguous,
        Some(401 | 403) => CloudErrorKind::Denied,
        _ => CloudErrorKind::Invalid,
    }
}

fn kind_of_code(code: &str) -> Option<CloudErrorKind> {
    Some(match code {
        "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "RequestLimitExceeded"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "EC2ThrottledException"
        | "TooManyRequestsException"
        | "BandwidthLimitExceeded"
        | "SlowDown"
        | "PriorRequestNotComplete" => CloudErrorKind::Throttled,
        // Another call is in progress, or an address or interface isn't released yet.
        "ConcurrentTagAccess"
        | "ConcurrentCreatePlacementGroup"
        | "InvalidIPAddress.InUse"
        | "InvalidNetworkInterface.InUse" => CloudErrorKind::Transient,
        "InsufficientInstanceCapacity"
        | "InsufficientHostCapacity"
        | "InsufficientCapacity"
        | "InsufficientCapacityOnHost"
        | "InsufficientReservedInstanceCapacity"
        | "InsufficientFreeAddressesInSubnet"
        | "InsufficientAddressCapacity"
        | "ReservationCapacityExceeded"
        | "UnfulfillableCapacity" => CloudErrorKind::Capacity,
        "MaxSpotInstanceCountExceeded"
        | "ResourceLimitExceeded"
        | "TooManyTargets"
        | "TooManyRegistrationsForTargetId"
        | "ServiceQuotaExceededException" => CloudErrorKind::Quota,
        "InvalidInstanceID.NotFound" => CloudErrorKind::NotFound,
        "UnauthorizedOperation"
        | "AccessDenied"
        | "AccessDeniedException"
        | "AuthFailure"
        | "Blocked"
        | "OperationNotPermitted"
        | "OptInRequired"
        | "PendingVerification"
        | "InvalidClientTokenId"
        | "UnrecognizedClientException"
        | "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "InvalidSignatureException"
        | "IncompleteSignature"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "RequestExpired" => CloudErrorKind::Denied,
        "IdempotentParameterMismatch"
        | "IdempotentParameterMismatchException"
        | "IdempotentInstanceTerminated" => CloudErrorKind::TokenMismatch,
        code if code.ends_with("LimitExceeded") => CloudErrorKind::Quota,
        _ => return None,
    })
}

/// Separates an encoded reason from the message; it is long and unreadable.
fn split_encoded(message: &str) -> (&str, Option<&str>) {
    const BEFORE: &str = "Encoded authorization failure message:";
    match message.split_once(BEFORE) {
        Some((message, encoded)) => (message.trim_end(), Some(encoded.trim())),
        None => (message, None),
    }
}

/// The missing permission in a message, such as `iam:PassRole`.
pub(super) fn missing_action(message: &str) -> Option<&str> {
    let after = message.split_once("to perform: ")?.1;
    let action = after
        .split(|character: char| character.is_whitespace())
        .next()?
        .trim_end_matches(['.', ',']);
    action.contains(':').then_some(action)
}

/// The name of the permission for an operation.
pub(super) fn action(operation: Operation) -> String {
    format!("{}:{operation}", operation.service().prefix())
}

/// The hint for an error, if there is one.
fn hint(
    operation: Operation,
    error: &ApiError,
    kind: CloudErrorKind,
    encoded: Option<&str>,
) -> Option<String> {
    let says = |text: &str| error.message.contains(text);
    Some(match &*error.code {
        ApiError::CREDENTIALS_NOT_FOUND => {
            "log in (`aws sso login`), set AWS_PROFILE, or set `profile` or `role_arn` in `shard.infra.options`; `nstance doctor` says who asks".into()
        }
        ApiError::NO_CONNECTION => {
            "look at the network, at `shard.infra.region`, and at `endpoint_url` if it is set".into()
        }
        "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" => {
            let action = missing_action(&error.message)
                .map_or_else(|| action(operation), str::to_owned);
            let mut hint = format!("allow `{action}` in the policy of who asks");
            if let Some(encoded) = encoded {
                hint.push_str(&format!(
                    "; the reason: aws sts decode-authorization-message --encoded-message {encoded}"
                ));
            }
            hint
        }
        "AuthFailure" | "InvalidClientTokenId" | "UnrecognizedClientException"
        | "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidSignatureException"
        | "IncompleteSignature" | "MissingAuthenticationToken" => {
            "the credentials aren't accepted: look at the profile, and whether the region is enabled for the account".into()
        }
        "ExpiredToken" | "ExpiredTokenException" => {
            "the credentials have run out: log in again, then run the command again".into()
        }
        "RequestExpired" => "the clock of this machine is wrong: set it".into(),
        "OptInRequired" => {
            "accept the terms of the image's product, or enable the service, in the account's console".into()
        }
        "PendingVerification" => "AWS is still verifying the account: wait for its e-mail".into(),
        "Blocked" => "AWS has blocked the account: ask its support".into(),
        "OperationNotPermitted" if says("disableApiStop") || says("DisableApiStop") => {
            "set `DisableApiStop` to false in args and apply that first".into()
        }
        "OperationNotPermitted" => {
            "set `DisableApiTermination` to false in args and apply that first".into()
        }
        "InvalidAMIID.NotFound" | "InvalidAMIID.Unavailable" | "InvalidAMIID.Malformed" => {
            "look the image up again: `nstance images --refresh-images`; images belong to one region, and private ones must be shared with the account".into()
        }
        "InvalidSubnetID.NotFound" | "InvalidSubnetId.NotFound" | "InvalidSubnetID.Malformed" => {
            "correct `shard.subnet_pools`: the subnet must be of this account and region".into()
        }
        "InvalidKeyPair.NotFound" => {
            "correct `KeyName`: key pairs belong to one account and region".into()
        }
        "InvalidGroup.NotFound" | "InvalidSecurityGroupID.NotFound" | "InvalidGroupId.Malformed" => {
            "correct the security groups: they must be of the subnet's network".into()
        }
        "InvalidBlockDeviceMapping" | "InvalidSnapshot.NotFound" => {
            "correct `BlockDeviceMappings`: a volume can't be smaller than its snapshot".into()
        }
        "InvalidLaunchTemplateId.NotFound" | "InvalidLaunchTemplateName.NotFoundException"
        | "InvalidLaunchTemplateId.VersionNotFound" => {
            "correct `LaunchTemplate`: it must be of this account and region".into()
        }
        "InvalidInstanceType" => "correct `instance_type`".into(),
        "InvalidUserData.Malformed" => "look at it: `nstance render`".into(),
        "InvalidIPAddress.InUse" => {
            "another instance or interface has the address that args ask for".into()
        }
        "VcpuLimitExceeded" => {
            "ask for more: Service Quotas, EC2, \"Running On-Demand … instances\"; or make the group smaller".into()
        }
        "MaxSpotInstanceCountExceeded" => {
            "ask for more: Service Quotas, EC2, \"All … Spot Instance Requests\"".into()
        }
        "InstanceLimitExceeded" | "VolumeLimitExceeded" | "NetworkInterfaceLimitExceeded"
        | "TooManyTargets" => "ask for more in Service Quotas, or make the group smaller".into(),
        "InsufficientInstanceCapacity" | "InsufficientHostCapacity"
        | "InsufficientReservedInstanceCapacity" | "UnfulfillableCapacity"
        | "InsufficientCapacity" | "InsufficientCapacityOnHost" => {
            "try again later, or use another instance type or zone".into()
        }
        "SpotMaxPriceTooLow" => "raise `MaxPrice` in `InstanceMarketOptions`, or leave it out".into(),
        "ReservationCapacityExceeded" => {
            "the capacity reservation is used up: enlarge it, or make the group smaller".into()
        }
        "InsufficientFreeAddressesInSubnet" => "add a subnet to the pool".into(),
        "Unsupported" if says("Availability Zone") => {
            "use another zone or instance type: AWS doesn't have this type in this zone".into()
        }
        "Unsupported" | "UnsupportedOperation" | "InvalidParameterCombination" => {
            "args and instance type don't fit together: the message says which".into()
        }
        "MissingParameter" => "add what is missing to args".into(),
        "InvalidParameterValue" | "InvalidParameter" | "ValidationError"
            if says("iamInstanceProfile") =>
        {
            "correct `IamInstanceProfile`: a profile that was made a moment ago takes a minute to be known".into()
        }
        "InvalidParameterValue" | "InvalidParameter" | "ValidationError" => {
            "correct the value in args".into()
        }
        "IncorrectInstanceState" | "IncorrectState" => {
            "the instance is on its way between two states: run apply again".into()
        }
        "TargetGroupNotFound" => {
            "correct `target_group_arns` of the load balancer: the group must be of this account and region".into()
        }
        "InvalidTarget" => {
            "the target group must be of the instance's network, and take targets of its kind".into()
        }
        "ParameterNotFound" => {
            "correct `ssm` of the image; the names: aws ssm get-parameters-by-path --path /aws/service --recursive".into()
        }
        _ if kind == CloudErrorKind::Quota => "ask for more in Service Quotas".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str, message: &str, status: u16) -> ApiError {
        ApiError {
            code: code.into(),
            message: message.into(),
            request_id: Some("1-2-3".into()),
            status: Some(status),
            kind: ApiErrorKind::Refused,
        }
    }

    #[test]
    fn kinds_follow_from_codes_then_from_the_status() {
        use CloudErrorKind as Kind;
        use Operation::{DescribeInstances as Read, RunInstances as Run};
        for (operation, code, status, expected) in [
            (Run, "InsufficientInstanceCapacity", 500, Kind::Capacity),
            (Run, "RequestLimitExceeded", 503, Kind::Throttled),
            (Run, "InternalError", 500, Kind::Ambiguous),
            (Read, "InternalError", 500, Kind::Transient),
            (Read, "Unavailable", 503, Kind::Transient),
            (Run, "VcpuLimitExceeded", 400, Kind::Quota),
            (Run, "NetworkInterfaceLimitExceeded", 400, Kind::Quota),
            (Run, "IdempotentParameterMismatch", 400, Kind::TokenMismatch),
            (
                Run,
                "IdempotentInstanceTerminated",
                400,
                Kind::TokenMismatch,
            ),
            (Run, "InvalidAMIID.NotFound", 400, Kind::Invalid),
            (Run, "InvalidInstanceID.NotFound", 400, Kind::NotFound),
            (Run, "UnauthorizedOperation", 403, Kind::Denied),
            (Run, "SomethingNew", 403, Kind::Denied),
            (Run, "SomethingNew", 400, Kind::Invalid),
            (Run, "SomethingNew", 429, Kind::Throttled),
        ] {
            assert_eq!(
                told(operation, refused(code, "m", status)).kind,
                expected,
                "{operation} {code} {status}"
            );
        }
        for (kind, code, expected) in [
            (ApiErrorKind::Lost, ApiError::TIMEOUT, Kind::Ambiguous),
            (
                ApiErrorKind::Unsent,
                ApiError::NO_CONNECTION,
                Kind::Transient,
            ),
            (
                ApiErrorKind::Unsent,
                ApiError::CREDENTIALS_NOT_FOUND,
                Kind::Unavailable,
            ),
            (ApiErrorKind::Input, ApiError::INVALID_INPUT, Kind::Invalid),
        ] {
            let error = told(Run, ApiError::new(kind, code, "m"));
            assert_eq!(error.kind, expected, "{code}");
        }
    }

    #[test]
    fn a_missing_permission_is_named() {
        let error = told(
            Operation::RunInstances,
            refused(
                "UnauthorizedOperation",
                "You are not authorized to perform this operation. User: arn:aws:iam::1:user/a is not authorized to perform: iam:PassRole on resource: arn:x. Encoded authorization failure message: AbC-9",
                403,
            ),
        );
        assert_eq!(
            error.to_string(),
            "You are not authorized to perform this operation. User: arn:aws:iam::1:user/a is not \
             authorized to perform: iam:PassRole on resource: arn:x. (UnauthorizedOperation, \
             request 1-2-3); allow `iam:PassRole` in the policy of who asks; the reason: aws sts \
             decode-authorization-message --encoded-message AbC-9"
        );
        let error = told(
            Operation::CreateTags,
            refused("UnauthorizedOperation", "You are not authorized", 403),
        );
        assert_eq!(
            error.hint.as_deref(),
            Some("allow `ec2:CreateTags` in the policy of who asks")
        );
    }

    /// Common codes; each must have a hint.
    #[test]
    fn what_people_meet_comes_with_something_to_do() {
        for code in [
            "InvalidAMIID.NotFound",
            "InvalidSubnetID.NotFound",
            "InvalidKeyPair.NotFound",
            "VcpuLimitExceeded",
            "InsufficientInstanceCapacity",
            "InsufficientFreeAddressesInSubnet",
            "OptInRequired",
            "AuthFailure",
            "ExpiredToken",
            "RequestExpired",
            "UnsupportedOperation",
            "Unsupported",
            "InvalidParameterCombination",
            "MissingParameter",
            "OperationNotPermitted",
            "TargetGroupNotFound",
            "ParameterNotFound",
            "SomeNewLimitExceeded",
        ] {
            let error = told(Operation::RunInstances, refused(code, "m", 400));
            let hint = error.hint.unwrap_or_else(|| panic!("{code} has no hint"));
            assert!(!hint.ends_with('.') && !hint.is_empty(), "{code}: {hint}");
        }
    }
}
