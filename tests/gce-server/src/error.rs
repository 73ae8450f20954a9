//! Errors, as Compute Engine puts them.
//!
//! In: an error's reason. Out: the answer that carries it, or an operation's error. Must not:
//! decide when.

use serde_json::{Value, json};

use crate::http::Reply;

/// A call that is answered with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP's.
    pub status: u16,
    /// As in `notFound`.
    pub reason: String,
    pub message: String,
}

/// An error that ends an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationError {
    /// As in `QUOTA_EXCEEDED`.
    pub code: String,
    pub message: String,
    /// HTTP's status that the operation carries.
    pub status: u16,
}

/// Reason, status and message of errors that a call can be answered with whatever it asks for.
pub const REFUSALS: &[(&str, u16, &str)] = &[
    (
        "rateLimitExceeded",
        403,
        "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service \
         'compute.googleapis.com' for consumer 'project_number:123456789012'.",
    ),
    (
        "tooManyRequests",
        429,
        "Resource has been exhausted (e.g. check quota).",
    ),
    (
        "quotaExceeded",
        403,
        "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1.",
    ),
    (
        "backendError",
        503,
        "Service is currently unavailable. Please try again shortly.",
    ),
    ("internalError", 500, "Internal error encountered."),
    (
        "authError",
        401,
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login \
         cookie or other valid authentication credential.",
    ),
    (
        "forbidden",
        403,
        "Required 'compute.instances.create' permission for \
         'projects/test-project/zones/us-central1-a/instances/example'",
    ),
    (
        "accessNotConfigured",
        403,
        "Compute Engine API has not been used in project test-project before or it is disabled.",
    ),
];

/// Code, status and message of errors that end an operation.
pub const OPERATION_ERRORS: &[(&str, u16, &str)] = &[
    (
        "QUOTA_EXCEEDED",
        403,
        "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1.",
    ),
    (
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        503,
        "The zone 'projects/test-project/zones/us-central1-a' does not have enough resources \
         available to fulfill the request.  Try a different zone, or try again later.",
    ),
    (
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        503,
        "The zone 'projects/test-project/zones/us-central1-a' does not have enough resources \
         available to fulfill the request.  '(resource type:compute)'.",
    ),
    (
        "IP_SPACE_EXHAUSTED",
        400,
        "IP space of \
         'projects/test-project/regions/us-central1/subnetworks/default-0000000000000000' is \
         exhausted.",
    ),
    (
        "RESOURCE_NOT_FOUND",
        404,
        "The resource 'projects/test-project/zones/us-central1-a/disks/missing' was not found",
    ),
    (
        "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
        400,
        "The resource 'projects/test-project/zones/us-central1-a/disks/data' is already being \
         used by another resource.",
    ),
    (
        "CONDITION_NOT_MET",
        412,
        "Constraint constraints/compute.vmExternalIpAccess violated for project test-project.",
    ),
    (
        "INTERNAL_ERROR",
        500,
        "Internal error. Please try again or contact Google Support. (Code: \
         '5F1B2C3D4E5F6.A7B8C9D.E0F1A2B3')",
    ),
];

impl Refusal {
    /// An error with a message of its own.
    pub fn new(status: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// An error of [`REFUSALS`].
    ///
    /// # Panics
    /// Where the table doesn't have the reason.
    pub fn named(reason: &str) -> Self {
        let found = REFUSALS.iter().find(|(name, ..)| *name == reason);
        let (_, status, message) = found.expect("the table has the reason");
        Self::new(*status, reason, *message)
    }

    /// The same error with another status: `rateLimitExceeded` is a 403 or a 429.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// A resource isn't there; its name begins with `projects/`.
    pub(crate) fn not_found(resource: &str) -> Self {
        Self::new(
            404,
            "notFound",
            format!("The resource '{resource}' was not found"),
        )
    }

    /// A resource is there already.
    pub(crate) fn already_exists(resource: &str) -> Self {
        Self::new(
            409,
            "alreadyExists",
            format!("The resource '{resource}' already exists"),
        )
    }

    /// A resource's state doesn't allow the call.
    pub(crate) fn not_ready(resource: &str) -> Self {
        Self::new(
            400,
            "resourceNotReady",
            format!("The resource '{resource}' is not ready"),
        )
    }

    /// A field or parameter has an invalid value; why, as a sentence.
    pub(crate) fn invalid(field: &str, value: &str, why: &str) -> Self {
        let message = format!("Invalid value for field '{field}': '{value}'. {why}");
        Self::new(400, "invalid", message)
    }

    /// A fingerprint is stale.
    pub(crate) fn stale(message: &str) -> Self {
        Self::new(412, "conditionNotMet", message)
    }

    /// The answer.
    pub(crate) fn reply(&self) -> Reply {
        let (message, reason) = (&self.message, &self.reason);
        let reason = match reason.as_str() {
            "tooManyRequests" => "rateLimitExceeded",
            reason => reason,
        };
        // The quotas of calls, and authentication, are checked before Compute Engine gets a call:
        // such errors have a status by name. Compute Engine's own have none.
        let mut error = json!({"code": self.status, "message": message});
        let (domain, status) = match (reason, self.status) {
            ("rateLimitExceeded", 403) | ("accessNotConfigured", _) => {
                ("usageLimits", Some("PERMISSION_DENIED"))
            }
            ("rateLimitExceeded", _) => ("usageLimits", Some("RESOURCE_EXHAUSTED")),
            ("quotaExceeded", _) => ("usageLimits", None),
            ("authError", _) => ("global", Some("UNAUTHENTICATED")),
            ("badRequest", _) => ("global", Some("INVALID_ARGUMENT")),
            _ => ("global", None),
        };
        let mut item = json!({"message": message, "domain": domain, "reason": reason});
        if reason == "conditionNotMet" {
            item["location"] = json!("If-Match");
            item["locationType"] = json!("header");
        }
        error["errors"] = json!([item]);
        if let Some(status) = status {
            error["status"] = json!(status);
        }
        if reason == "rateLimitExceeded" {
            error["details"] = json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "RATE_LIMIT_EXCEEDED",
                "domain": "googleapis.com",
                "metadata": {"service": "compute.googleapis.com"},
            }]);
        }
        Reply {
            status: self.status,
            body: json!({"error": error}).to_string().into_bytes(),
        }
    }
}

impl OperationError {
    /// An error with a message of its own.
    pub fn new(code: &str, status: u16, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            status,
        }
    }

    /// An error of [`OPERATION_ERRORS`].
    ///
    /// # Panics
    /// Where the table doesn't have the code.
    pub fn named(code: &str) -> Self {
        let found = OPERATION_ERRORS.iter().find(|(name, ..)| *name == code);
        let (_, status, message) = found.expect("the table has the code");
        Self::new(code, *status, *message)
    }

    /// Puts it into an operation.
    pub(crate) fn put(&self, operation: &mut Value) {
        operation["error"] = json!({
            "errors": [{"code": self.code, "message": self.message}],
        });
        operation["httpErrorStatusCode"] = json!(self.status);
        operation["httpErrorMessage"] = json!(match self.status {
            400 => "BAD REQUEST",
            403 => "FORBIDDEN",
            404 => "NOT FOUND",
            409 => "CONFLICT",
            412 => "PRECONDITION FAILED",
            503 => "SERVICE UNAVAILABLE",
            _ => "INTERNAL SERVER ERROR",
        });
    }
}
