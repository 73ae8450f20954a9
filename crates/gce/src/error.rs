//! Why a call has no answer.
//!
//! In: what the service or the client reported. Out: [`ApiError`]. Must not: decide what to do
//! about it.

/// What became of a call that has no answer; it decides whether the call may have had an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiErrorKind {
    /// The service answered with an error. Unless the server failed (a status of 500 and above),
    /// nothing was done.
    Refused,
    /// The service was never reached, so nothing was done: no connection, no credentials.
    Unsent,
    /// The request was sent, and no readable answer came: it may have had its effect.
    Lost,
    /// The input doesn't fit the operation; nothing was sent.
    Input,
}

/// A call that has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// The service's reason, such as `notFound` or `quotaExceeded`; without one, the name of the
    /// status, such as `UNAVAILABLE` or `Http502`; or one of the constants here.
    pub code: String,
    /// The service's or the client's message.
    pub message: String,
    /// The status of the HTTP answer, if there was one.
    pub status: Option<u16>,
    /// What became of the call.
    pub kind: ApiErrorKind,
}

impl ApiError {
    /// No credentials were found, or they couldn't be exchanged for a token.
    pub const CREDENTIALS_NOT_FOUND: &str = "CredentialsNotFound";
    /// Connecting to the service failed.
    pub const NO_CONNECTION: &str = "NoConnection";
    /// No answer came in time.
    pub const TIMEOUT: &str = "Timeout";
    /// The connection ended before the answer did.
    pub const CONNECTION_LOST: &str = "ConnectionLost";
    /// The answer isn't one of the API's.
    pub const UNREADABLE_ANSWER: &str = "UnreadableAnswer";
    /// The input doesn't fit the operation.
    pub const INVALID_INPUT: &str = "InvalidInput";

    /// An error that isn't the service's: it has no status.
    pub fn new(kind: ApiErrorKind, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            status: None,
            kind,
        }
    }

    /// Whether the call may have had its effect all the same.
    pub fn is_open(&self) -> bool {
        match self.kind {
            ApiErrorKind::Lost => true,
            ApiErrorKind::Refused => self.status.is_some_and(|status| status >= 500),
            ApiErrorKind::Unsent | ApiErrorKind::Input => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_may_have_had_an_effect_are_open() {
        for (kind, status, open) in [
            (ApiErrorKind::Refused, Some(400), false),
            (ApiErrorKind::Refused, Some(503), true),
            (ApiErrorKind::Refused, None, false),
            (ApiErrorKind::Unsent, None, false),
            (ApiErrorKind::Lost, None, true),
            (ApiErrorKind::Input, None, false),
        ] {
            let mut error = ApiError::new(kind, "Code", "message");
            error.status = status;
            assert_eq!(error.is_open(), open, "{kind:?} {status:?}");
        }
    }
}
