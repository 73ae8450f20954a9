//! What the SDKs' errors mean.
//!
//! In: an error of an SDK. Out: an [`ApiError`] of the right kind. May not: call a request unsent
//! unless it surely was.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{ConnectorError, ProvideErrorMetadata, SdkError};
use aws_sdk_ec2::operation::RequestId;

use crate::{ApiError, ApiErrorKind};

/// How much of an answer that nobody understands is shown.
const EXCERPT: usize = 200;

/// Sorts an error.
pub(super) fn failure<E>(error: SdkError<E, HttpResponse>) -> ApiError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    match error {
        SdkError::ServiceError(context) => {
            let metadata = context.err().meta();
            let answer = Answer {
                code: metadata.code(),
                message: metadata.message(),
                request_id: metadata.request_id(),
            };
            refused(&answer, context.raw(), context.err())
        }
        SdkError::ResponseError(context) => {
            let raw = context.raw();
            let (status, request_id) = (raw.status().as_u16(), raw.request_id().map(str::to_owned));
            let source = SdkError::<E, HttpResponse>::ResponseError(context).into_source();
            let mut error = match source {
                Ok(source) if broke_off(&*source) => lost(ApiError::CONNECTION_LOST, &*source),
                Ok(source) => lost(ApiError::UNREADABLE_ANSWER, &*source),
                Err(error) => lost(ApiError::UNREADABLE_ANSWER, &error),
            };
            error.status = Some(status);
            error.request_id = request_id;
            error
        }
        SdkError::TimeoutError(_) => timeout(),
        SdkError::ConstructionFailure(_) => {
            let message = chain(&error);
            ApiError::new(ApiErrorKind::Input, ApiError::INVALID_INPUT, message)
        }
        SdkError::DispatchFailure(ref context) => {
            let connector = context.as_connector_error();
            undelivered(&error, connector.is_some_and(ConnectorError::is_timeout))
        }
        _ => lost(ApiError::CONNECTION_LOST, &error),
    }
}

/// What an SDK read from an error.
struct Answer<'a> {
    code: Option<&'a str>,
    message: Option<&'a str>,
    request_id: Option<&'a str>,
}

fn refused(answer: &Answer<'_>, raw: &HttpResponse, error: &dyn Error) -> ApiError {
    let status = raw.status().as_u16();
    let body = raw.body().bytes().unwrap_or_default();
    let body = String::from_utf8_lossy(body);
    let request_id = answer
        .request_id
        .or_else(|| raw.request_id())
        .or_else(|| element(&body, "RequestID"))
        .or_else(|| element(&body, "RequestId"))
        .map(str::to_owned);
    if raw.status().is_success() && answer.code.is_none() {
        // An error made of an answer that was to be a success: what it says can't be read.
        let mut lost = lost(ApiError::UNREADABLE_ANSWER, error);
        lost.status = Some(status);
        lost.request_id = request_id;
        return lost;
    }
    ApiError {
        // A proxy's page has no code.
        code: answer
            .code
            .map_or_else(|| format!("Http{status}"), str::to_owned),
        message: answer.message.map_or_else(|| excerpt(&body), str::to_owned),
        request_id,
        status: Some(status),
        kind: ApiErrorKind::Refused,
    }
}

/// The text of the first element of a name, without reading the document: some services say there
/// what others say in a header.
fn element<'b>(body: &'b str, name: &str) -> Option<&'b str> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once("</")?;
    Some(text.trim()).filter(|text| !text.is_empty())
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

/// A request that no answer came to.
fn undelivered(error: &(dyn Error + 'static), timed_out: bool) -> ApiError {
    let unsent = |code, message| ApiError::new(ApiErrorKind::Unsent, code, message);
    if let Some(credentials) = find::<CredentialsError>(error) {
        return unsent(ApiError::CREDENTIALS_NOT_FOUND, chain(credentials));
    }
    let connection = find::<hyper_util::client::legacy::Error>(error);
    if connection.is_some_and(hyper_util::client::legacy::Error::is_connect) {
        return unsent(ApiError::NO_CONNECTION, chain(error));
    }
    if timed_out {
        return timeout();
    }
    lost(ApiError::CONNECTION_LOST, error)
}

fn timeout() -> ApiError {
    ApiError::new(
        ApiErrorKind::Lost,
        ApiError::TIMEOUT,
        "no answer came in time",
    )
}

fn lost(code: &str, error: &dyn Error) -> ApiError {
    ApiError::new(ApiErrorKind::Lost, code, chain(error))
}

/// Whether an answer ended before it was whole.
fn broke_off(error: &(dyn Error + 'static)) -> bool {
    find::<std::io::Error>(error).is_some() || chain(error).contains("body")
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

/// An error and its causes, each said once, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = one_line(error);
    let mut source = error.source();
    while let Some(error) = source {
        let said = one_line(error);
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = error.source();
    }
    text
}

/// The lines of a list, such as the places where credentials were looked for, become items.
fn one_line(error: &dyn Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join("; ").replace(":; ", ": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_one_line() {
        let error = std::io::Error::other("nothing found. Attempted:\n  Here: no\n  There: no");
        assert_eq!(
            chain(&error),
            "nothing found. Attempted: Here: no; There: no"
        );
    }

    #[test]
    fn an_element_is_found_in_what_is_no_document() {
        for (body, found) in [
            (
                "<Response><RequestID>1-2</RequestID></Response>",
                Some("1-2"),
            ),
            ("<RequestID></RequestID>", None),
            ("<RequestID>1-2", None),
            ("", None),
        ] {
            assert_eq!(element(body, "RequestID"), found, "{body}");
        }
    }

    #[test]
    fn long_answers_are_cut_between_characters() {
        assert_eq!(excerpt("  \n"), "the answer was empty");
        assert_eq!(excerpt(" short "), "short");
        assert_eq!(excerpt(&"ä".repeat(300)), format!("{}…", "ä".repeat(200)));
    }
}
