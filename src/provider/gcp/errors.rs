//! Converts Compute Engine's errors.
//!
//! In: an operation and its [`ApiError`], or an operation that ended. Out: a [`CloudError`] with its
//! kind and a hint. Must not: decide what happens next.

use nstance_gce::{ApiError, ApiErrorKind, Operation};
use serde_json::Value;

use crate::provider::{CloudError, CloudErrorKind};

use super::observe::{items, text};

/// Converts the error of a call.
pub(super) fn told(operation: Operation, error: &ApiError) -> CloudError {
    let kind = kind(operation, error);
    let message = if error.message.is_empty() {
        format!("{operation} was refused")
    } else {
        error.message.clone()
    };
    let mut told = CloudError::new(kind, &error.code, message);
    told.hint = hint(operation, &error.code, &error.message).map(String::into_boxed_str);
    told
}

/// The error that a finished operation ended with. The first one counts; the others follow from it.
pub(super) fn of_operation(operation: Operation, done: &Value) -> Option<CloudError> {
    let first = items(done.get("error")?, "errors").next()?;
    let code = text(first, "code").unwrap_or("ERROR");
    let message = text(first, "message").unwrap_or_default();
    let status = done.get("httpErrorStatusCode").and_then(Value::as_u64);
    let kind = kind_of_code(code).unwrap_or(match status {
        Some(403) => CloudErrorKind::Denied,
        Some(404) => CloudErrorKind::NotFound,
        Some(500..) | None => CloudErrorKind::Transient,
        Some(_) => CloudErrorKind::Invalid,
    });
    let message = if message.is_empty() {
        format!("{operation} failed")
    } else {
        message.to_owned()
    };
    let mut told = CloudError::new(kind, code, message);
    told.hint = hint(operation, code, &told.message).map(String::into_boxed_str);
    Some(told)
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
    if let Some(kind) = kind_of_code(&error.code) {
        return kind;
    }
    match error.status {
        Some(404) => CloudErrorKind::NotFound,
        Some(409 | 412) => CloudErrorKind::TokenMismatch,
        Some(429) => CloudErrorKind::Throttled,
        Some(500..) if operation.is_read() => CloudErrorKind::Transient,
        // A server error may come after the effect.
        Some(500..) => CloudErrorKind::Ambiguous,
        Some(401 | 403) => CloudErrorKind::Denied,
        _ => CloudErrorKind::Invalid,
    }
}

/// The kind of a reason, as calls and operations give it.
fn kind_of_code(code: &str) -> Option<CloudErrorKind> {
    Some(match code {
        "rateLimitExceeded"
        | "userRateLimitExceeded"
        | "RATE_LIMIT_EXCEEDED"
        | "RESOURCE_OPERATION_RATE_EXCEEDED"
        | "concurrentOperationsQuotaExceeded"
        | "operationsQuotaExceeded" => CloudErrorKind::Throttled,
        "resourceNotReady"
        | "RESOURCE_NOT_READY"
        | "resourceInUse"
        | "fingerprintMismatch"
        | "INTERNAL_ERROR" => CloudErrorKind::Transient,
        "quotaExceeded" | "QUOTA_EXCEEDED" | "limitExceeded" | "LIMIT_EXCEEDED" => {
            CloudErrorKind::Quota
        }
        "notFound" | "RESOURCE_NOT_FOUND" => CloudErrorKind::NotFound,
        "alreadyExists" | "RESOURCE_ALREADY_EXISTS" | "conditionNotMet" | "CONDITION_NOT_MET" => {
            CloudErrorKind::TokenMismatch
        }
        "forbidden"
        | "iamPermissionDenied"
        | "PERMISSION_DENIED"
        | "PERMISSIONS_ERROR"
        | "accessNotConfigured"
        | "serviceDisabled"
        | "authError" => CloudErrorKind::Denied,
        "IP_SPACE_EXHAUSTED" | "IP_SPACE_EXHAUSTED_WITH_DETAILS" => CloudErrorKind::Capacity,
        code if code.contains("RESOURCE_POOL_EXHAUSTED") || code == "STOCKOUT" => {
            CloudErrorKind::ZoneCapacity
        }
        _ => return None,
    })
}

/// Whether an error says that a fingerprint is old: others changed the resource.
pub(super) fn is_stale(error: &CloudError) -> bool {
    matches!(
        &*error.code,
        "conditionNotMet" | "CONDITION_NOT_MET" | "fingerprintMismatch"
    )
}

/// The hint for an error, if there is one.
fn hint(operation: Operation, code: &str, message: &str) -> Option<String> {
    Some(match code {
        ApiError::CREDENTIALS_NOT_FOUND => {
            "log in (`gcloud auth application-default login`), or set GOOGLE_APPLICATION_CREDENTIALS".into()
        }
        ApiError::NO_CONNECTION => {
            "look at the network, and at `endpoint` in `shard.infra.options` if it is set".into()
        }
        "accessNotConfigured" | "serviceDisabled" => {
            let service = match operation {
                Operation::ProjectsTestIamPermissions => "cloudresourcemanager",
                _ => "compute",
            };
            format!("enable the API in the project: gcloud services enable {service}.googleapis.com")
        }
        "forbidden" | "iamPermissionDenied" | "PERMISSION_DENIED" | "PERMISSIONS_ERROR" => {
            let permission = missing_permission(message);
            let permission = permission.or_else(|| operation.permission())?;
            format!("give the account a role with `{permission}`")
        }
        "authError" => "the credentials aren't accepted: log in again".into(),
        "quotaExceeded" | "QUOTA_EXCEEDED" | "limitExceeded" | "LIMIT_EXCEEDED" => {
            "ask for more on the project's page of quotas, or make the group smaller".into()
        }
        "IP_SPACE_EXHAUSTED" | "IP_SPACE_EXHAUSTED_WITH_DETAILS" => {
            "add a subnet to the pool, or enlarge its range".into()
        }
        code if code.contains("RESOURCE_POOL_EXHAUSTED") || code == "STOCKOUT" => {
            "try again later, or use another instance type or zone".into()
        }
        _ => return None,
    })
}

/// The permission that a message names, such as `compute.instances.create`.
fn missing_permission(message: &str) -> Option<&str> {
    let after = message.split_once("Required '")?.1;
    let permission = after.split('\'').next()?;
    permission.contains('.').then_some(permission)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_follow_from_reasons_then_from_the_status() {
        use CloudErrorKind as Kind;
        use Operation::{InstancesGet as Read, InstancesInsert as Insert};
        for (operation, code, status, expected) in [
            (Insert, "rateLimitExceeded", 403, Kind::Throttled),
            (Insert, "quotaExceeded", 403, Kind::Quota),
            (Insert, "forbidden", 403, Kind::Denied),
            (Insert, "alreadyExists", 409, Kind::TokenMismatch),
            (Insert, "invalid", 400, Kind::Invalid),
            (Insert, "backendError", 503, Kind::Ambiguous),
            (Read, "backendError", 503, Kind::Transient),
            (Read, "notFound", 404, Kind::NotFound),
            (Read, "whatever", 429, Kind::Throttled),
        ] {
            let mut error = ApiError::new(ApiErrorKind::Refused, code, "message");
            error.status = Some(status);
            assert_eq!(
                told(operation, &error).kind,
                expected,
                "{operation} {code} {status}"
            );
        }
    }

    #[test]
    fn an_operation_that_is_done_may_have_failed() {
        use CloudErrorKind as Kind;
        use Operation::{InstancesInsert as Insert, InstancesStop as Stop};
        for (operation, code, status, expected) in [
            (Insert, "QUOTA_EXCEEDED", 403, Kind::Quota),
            (
                Insert,
                "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
                503,
                Kind::ZoneCapacity,
            ),
            (Insert, "INTERNAL_ERROR", 500, Kind::Transient),
            (Stop, "INTERNAL_ERROR", 500, Kind::Transient),
            (Insert, "UNSUPPORTED_OPERATION", 400, Kind::Invalid),
        ] {
            let done = json!({"status": "DONE", "httpErrorStatusCode": status, "error": {"errors": [{"code": code, "message": "m"}]}});
            let kind = of_operation(operation, &done).map(|error| error.kind);
            assert_eq!(kind, Some(expected), "{operation} {code}");
        }
        assert_eq!(of_operation(Insert, &json!({"status": "DONE"})), None);
    }

    #[test]
    fn a_missing_permission_is_named() {
        let mut error = ApiError::new(
            ApiErrorKind::Refused,
            "forbidden",
            "Required 'compute.subnetworks.use' permission for 'projects/p/regions/r/subnetworks/s'",
        );
        error.status = Some(403);
        let told = told(Operation::InstancesInsert, &error);
        let expected = "give the account a role with `compute.subnetworks.use`";
        assert_eq!(told.hint.as_deref(), Some(expected));
    }
}
