//! Why a call has no answer.
//!
//! In: what the service or the client said. Out: [`ApiError`]. May not: decide what to do about it.

/// What became of a call that has no answer; it decides whether the call may have had an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiErrorKind {
    /// The service answered, with an error. Except for errors of the server (a status of 500 and
    /// above), nothing was done.
    Refused,
    /// The service was never reached, so nothing was done: no connection, no credentials.
    Unsent,
    /// The request was sent, and no answer came that could be read: it may have had its effect.
    Lost,
    /// The input doesn't fit the operation; nothing was sent.
    Input,
}

/// A call that has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}{}", request_id.as_deref().map(|id| format!(" (request id {id})")).unwrap_or_default())]
pub struct ApiError {
    /// The service's code, such as `InsufficientInstanceCapacity`, or one of the constants here.
    pub code: String,
    /// What the service or the client says of it.
    pub message: String,
    /// What AWS wants to know when it is asked about the call.
    pub request_id: Option<String>,
    /// The status of the HTTP answer, if there was one.
    pub status: Option<u16>,
    /// What became of the call.
    pub kind: ApiErrorKind,
}

impl ApiError {
    /// Nobody knows who is asking: no credentials were found, or they couldn't be had.
    pub const CREDENTIALS_NOT_FOUND: &str = "CredentialsNotFound";
    /// No connection to the service came about.
    pub const NO_CONNECTION: &str = "NoConnection";
    /// No answer came in time.
    pub const TIMEOUT: &str = "Timeout";
    /// The connection ended before the answer did.
    pub const CONNECTION_LOST: &str = "ConnectionLost";
    /// An answer came that isn't one of the API's.
    pub const UNREADABLE_ANSWER: &str = "UnreadableAnswer";
    /// The input doesn't fit the operation.
    pub const INVALID_INPUT: &str = "InvalidInput";

    /// An error that isn't the service's: it has no request id and no status.
    pub fn new(kind: ApiErrorKind, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            request_id: None,
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
    fn what_may_have_happened_is_open() {
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

    #[test]
    fn the_request_id_is_shown_if_there_is_one() {
        let mut error = ApiError::new(ApiErrorKind::Refused, "Code", "no such thing");
        assert_eq!(error.to_string(), "Code: no such thing");
        error.request_id = Some("1-2".to_owned());
        assert_eq!(error.to_string(), "Code: no such thing (request id 1-2)");
    }
}
