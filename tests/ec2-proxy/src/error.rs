//! Errors, as the services put them.
//!
//! In: a code. Out: the reply that says it. May not: decide when.

use crate::http::Reply;

/// An error of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub code: String,
    pub message: String,
}

/// Code, status and message of EC2's errors that matter to who makes instances: from the API
/// reference's list of error codes, and as the service words them.
pub const ERRORS: &[(&str, u16, &str)] = &[
    ("RequestLimitExceeded", 503, "Request limit exceeded."),
    (
        "Unavailable",
        503,
        "The service is unavailable. Please try again shortly.",
    ),
    ("InternalError", 500, "An internal error has occurred"),
    (
        "InsufficientInstanceCapacity",
        500,
        "We currently do not have sufficient capacity in the Availability Zone you requested. Our \
         system will be working on provisioning additional capacity.",
    ),
    (
        "InsufficientFreeAddressesInSubnet",
        400,
        "There are not enough free addresses in the subnet to satisfy the requested number of \
         instances.",
    ),
    (
        "InstanceLimitExceeded",
        400,
        "Your quota allows for 0 more running instance(s). You requested at least 1.",
    ),
    (
        "VcpuLimitExceeded",
        400,
        "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the \
         instance bucket that the specified instance type belongs to. Please visit \
         http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
    ),
    (
        "MaxSpotInstanceCountExceeded",
        400,
        "Max spot instance count exceeded",
    ),
    (
        "SpotMaxPriceTooLow",
        400,
        "Your Spot request price of 0.001 is lower than the minimum required Spot request \
         fulfillment price of 0.034.",
    ),
    (
        "UnauthorizedOperation",
        403,
        "You are not authorized to perform this operation. User: \
         arn:aws:iam::123456789012:user/tester is not authorized to perform this action because \
         no identity-based policy allows it. Encoded authorization failure message: 0aBcD-encoded",
    ),
    (
        "AuthFailure",
        401,
        "AWS was not able to validate the provided access credentials",
    ),
    ("RequestExpired", 400, "Request has expired."),
    (
        "OptInRequired",
        403,
        "You are not subscribed to this service. Please go to http://aws.amazon.com to subscribe.",
    ),
    (
        "PendingVerification",
        400,
        "Your request for accessing resources in this region is being validated, and you will not \
         be able to launch additional resources in this region until the validation is complete.",
    ),
    (
        "InvalidAMIID.NotFound",
        400,
        "The image id '[ami-00000000000000000]' does not exist",
    ),
    (
        "InvalidSubnetID.NotFound",
        400,
        "The subnet ID 'subnet-00000000000000000' does not exist",
    ),
    (
        "InvalidGroup.NotFound",
        400,
        "The security group 'sg-00000000000000000' does not exist",
    ),
    (
        "InvalidKeyPair.NotFound",
        400,
        "The key pair 'nobody' does not exist",
    ),
    (
        "InvalidParameterValue",
        400,
        "Value (nobody) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance \
         Profile name",
    ),
    (
        "InvalidParameterCombination",
        400,
        "The parameter CpuOptions cannot be used with this instance type.",
    ),
    (
        "InvalidBlockDeviceMapping",
        400,
        "Volume of size 4GB is smaller than snapshot 'snap-00000000000000000', expect size >= 8GB",
    ),
    (
        "Unsupported",
        400,
        "Your requested instance type (m7g.large) is not supported in your requested Availability \
         Zone (us-east-1e).",
    ),
    (
        "OperationNotPermitted",
        400,
        "The instance 'i-00000000000000000' may not be terminated. Modify its \
         'disableApiTermination' instance attribute and try again.",
    ),
];

impl Refusal {
    /// An error in words of its own.
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.into(),
        }
    }

    /// An error of [`ERRORS`].
    pub fn named(code: &str) -> Self {
        let found = ERRORS.iter().find(|(name, ..)| *name == code);
        let (_, status, message) = found.expect("the table has the code");
        Self::new(*status, code, *message)
    }

    /// The instance isn't there, or not yet.
    pub(crate) fn no_such_instance(id: &str) -> Self {
        Self::new(
            400,
            "InvalidInstanceID.NotFound",
            format!("The instance ID '{id}' does not exist"),
        )
    }

    /// The instance is in a state that doesn't allow it.
    pub(crate) fn wrong_state(message: String) -> Self {
        Self::new(400, "IncorrectInstanceState", message)
    }

    /// As a service answers.
    pub(crate) fn reply(&self, service: &str, request_id: &str) -> Reply {
        let (code, message) = (&self.code, escape(&self.message));
        let body = match service {
            "ec2" => format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}\
                 </Code><Message>{message}</Message></Error></Errors><RequestID>{request_id}\
                 </RequestID></Response>"
            ),
            "ssm" | "servicequotas" => {
                let message = self.message.replace('\\', "\\\\").replace('"', "\\\"");
                return Reply {
                    status: self.status,
                    content_type: "application/x-amz-json-1.1".to_owned(),
                    body: format!(r#"{{"__type":"{code}","message":"{message}"}}"#).into_bytes(),
                };
            }
            _ => format!(
                "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}\
                 </Message></Error><RequestId>{request_id}</RequestId></ErrorResponse>"
            ),
        };
        Reply {
            status: self.status,
            content_type: "text/xml;charset=UTF-8".to_owned(),
            body: body.into_bytes(),
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
