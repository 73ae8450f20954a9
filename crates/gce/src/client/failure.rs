//! What the SDK's errors mean.
//!
//! In: an error of the SDK or of its HTTP client. Out: an [`ApiError`] of the right kind. Must not:
//! call a request unsent unless it surely was.

use std::error::Error;

use google_cloud_gax::error::binding::BindingError;
use google_cloud_gax::error::rpc::{Code, Status, StatusDetails};
use google_cloud_gax::error::{CredentialsError, Error as SdkError};

use super::input::{camel_case, invalid};
use crate::{ApiError, ApiErrorKind};

/// How much of an answer that isn't the API's is shown.
const EXCERPT: usize = 200;

/// Sorts an error.
pub(super) fn failure(error: &SdkError) -> ApiError {
    if let Some(status) = error.http_status_code() {
        let payload = error.http_payload().map(AsRef::as_ref).unwrap_or_default();
        return refused(status, error.status(), payload);
    }
    if let Some(credentials) = find::<CredentialsError>(error) {
        return credentials_failure(credentials);
    }
    if find::<BindingError>(error).is_some() || error.is_serialization() {
        return invalid(chain(error));
    }
    if error.is_deserialization() {
        return lost(ApiError::UNREADABLE_ANSWER, chain(error));
    }
    transport_failure(error)
}

/// An answer that is an error. `described` is its body, if that is an error of the API.
pub(super) fn refused(status: u16, described: Option<&Status>, body: &[u8]) -> ApiError {
    let message = match described {
        Some(described) if !described.message.is_empty() => described.message.clone(),
        _ => excerpt(&String::from_utf8_lossy(body)),
    };
    ApiError {
        code: described
            .and_then(reason)
            .unwrap_or_else(|| format!("Http{status}")),
        message,
        status: Some(status),
        kind: ApiErrorKind::Refused,
    }
}

/// The reason that an error states, else the name of its status.
///
/// Reasons come in two spellings: `quotaExceeded` in `errors`, and `QUOTA_EXCEEDED` in `details`,
/// for which the SDK drops `errors`. Here both are the first.
fn reason(status: &Status) -> Option<String> {
    let stated = status.details.iter().find_map(|detail| match detail {
        StatusDetails::ErrorInfo(info) if !info.reason.is_empty() => Some(&info.reason),
        _ => None,
    });
    match stated {
        Some(reason) if reason.contains(char::is_lowercase) => Some(reason.clone()),
        Some(reason) => Some(camel_case(&reason.to_ascii_lowercase())),
        None if status.code == Code::Unknown => None,
        None => Some(status.code.name().to_owned()),
    }
}

/// A request that no whole answer came to.
pub(super) fn transport_failure(error: &(dyn Error + 'static)) -> ApiError {
    let http = find::<reqwest::Error>(error);
    if http.is_some_and(reqwest::Error::is_connect) {
        return unconnected(error);
    }
    if http.is_some_and(reqwest::Error::is_timeout) {
        return lost(ApiError::TIMEOUT, "no answer came in time".to_owned());
    }
    let message = format!("the connection ended before the answer: {}", root(error));
    lost(ApiError::CONNECTION_LOST, message)
}

/// No connection, so the request surely wasn't sent.
pub(super) fn unconnected(error: &(dyn Error + 'static)) -> ApiError {
    let message = format!("no connection came about: {}", root(error));
    ApiError::new(ApiErrorKind::Unsent, ApiError::NO_CONNECTION, message)
}

/// No token, so the request wasn't sent.
pub(super) fn credentials_failure(error: &(dyn Error + 'static)) -> ApiError {
    ApiError::new(
        ApiErrorKind::Unsent,
        ApiError::CREDENTIALS_NOT_FOUND,
        chain(error),
    )
}

fn lost(code: &str, message: String) -> ApiError {
    ApiError::new(ApiErrorKind::Lost, code, message)
}

fn excerpt(body: &str) -> String {
    let body = body.trim();
    if body.is_empty() {
        return "the answer was empty".to_owned();
    }
    match body.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &body[..end]),
        None => body.to_owned(),
    }
}

/// The first error of a type among an error and its causes.
fn find<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The first cause: those above it repeat the address, or state that a request failed.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// An error and its causes, each stated once, in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let lines: Vec<String> = error
            .to_string()
            .lines()
            .map(str::trim)
            .map(str::to_owned)
            .collect();
        let said = lines.join(" ");
        if !text.contains(&said) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&said);
        }
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_answers_are_cut_between_characters() {
        assert_eq!(excerpt("  \n"), "the answer was empty");
        assert_eq!(excerpt(&"ä".repeat(300)), format!("{}…", "ä".repeat(200)));
    }
}
