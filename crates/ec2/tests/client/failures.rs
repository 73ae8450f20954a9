//! Each way of having no answer, and what the error says of it.

use std::net::TcpListener;
use std::time::Duration;

use nstance_ec2::{ApiError, ApiErrorKind, Operation};
use serde_json::{Value, json};

use crate::child::Job;
use crate::server::{Answer, Server};

/// The error of a call that the server answers like this.
fn error_of(answer: impl Fn() -> Answer + Send + Sync + 'static, operation: Operation) -> ApiError {
    let server = Server::start(move |_| answer());
    let mut job = Job::call(&server.url, operation, json!({}));
    job.request_timeout = Duration::from_millis(400);
    let error = only(&job).unwrap_err();
    assert_eq!(server.requests().len(), 1, "nothing is tried twice");
    error
}

fn only(job: &Job<'_>) -> Result<Value, ApiError> {
    let home = tempfile::tempdir().unwrap();
    let mut answers = job.run(home.path());
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

fn refusal(status: u16, code: &str) -> Answer {
    Answer::Full(
        status,
        Vec::new(),
        format!(
            "<?xml version=\"1.0\"?><Response><Errors><Error><Code>{code}</Code>\
             <Message>No &lt;thing&gt;.</Message></Error></Errors>\
             <RequestID>1-2-3</RequestID></Response>"
        ),
    )
}

#[test]
fn a_refusal_has_code_message_request_id_and_status() {
    for (status, code) in [
        (400, "InvalidAMIID.NotFound"),
        (500, "InsufficientInstanceCapacity"),
        (503, "RequestLimitExceeded"),
        (400, "NeverHeardOf"),
    ] {
        let error = error_of(move || refusal(status, code), Operation::RunInstances);
        assert_eq!(
            error,
            ApiError {
                code: code.to_owned(),
                message: "No <thing>.".to_owned(),
                request_id: Some("1-2-3".to_owned()),
                status: Some(status),
                kind: ApiErrorKind::Refused,
            }
        );
    }
}

#[test]
fn other_protocols_refuse_as_well() {
    let query = || {
        Answer::Full(
            400,
            vec![("x-amzn-requestid", "4-5".to_owned())],
            "<ErrorResponse><Error><Type>Sender</Type><Code>TargetGroupNotFound</Code>\
             <Message>None.</Message></Error></ErrorResponse>"
                .to_owned(),
        )
    };
    let document = || {
        Answer::Full(
            400,
            vec![("x-amzn-requestid", "4-5".to_owned())],
            r#"{"__type": "com.amazonaws.ssm#ParameterNotFound", "message": "None."}"#.to_owned(),
        )
    };
    for (operation, error, code) in [
        (
            Operation::DescribeTargetHealth,
            error_of(query, Operation::DescribeTargetHealth),
            "TargetGroupNotFound",
        ),
        (
            Operation::GetParameter,
            error_of(document, Operation::GetParameter),
            "ParameterNotFound",
        ),
    ] {
        assert_eq!(error.kind, ApiErrorKind::Refused, "{operation}");
        assert_eq!(error.code, code);
        assert_eq!(error.message, "None.");
        assert_eq!(error.request_id.as_deref(), Some("4-5"));
        assert_eq!(error.status, Some(400));
    }
}

#[test]
fn a_page_of_a_proxy_is_a_refusal_without_a_code() {
    for (status, body, message) in [
        (403, "<html>Forbidden</html>", "<html>Forbidden</html>"),
        (502, "", "the answer was empty"),
    ] {
        let answer = move || Answer::Full(status, Vec::new(), body.to_owned());
        let error = error_of(answer, Operation::DescribeInstances);
        assert_eq!(error.kind, ApiErrorKind::Refused, "{error}");
        assert_eq!(error.code, format!("Http{status}"));
        assert_eq!(error.message, message);
        assert_eq!(error.status, Some(status));
    }
}

#[test]
fn an_answer_that_does_not_come_whole_is_lost() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n<RunInstancesResponse>";
    for (name, answer, code) in [
        (
            "closed",
            (|| Answer::Nothing) as fn() -> Answer,
            ApiError::CONNECTION_LOST,
        ),
        ("silent", || Answer::Silence, ApiError::TIMEOUT),
        (
            "no HTTP",
            || Answer::Raw("220 mail.example.com ESMTP\r\n".to_owned()),
            ApiError::CONNECTION_LOST,
        ),
        (
            "no XML",
            || Answer::xml("<html><body>It works!<br></html>"),
            ApiError::UNREADABLE_ANSWER,
        ),
        ("empty", || Answer::xml(""), ApiError::UNREADABLE_ANSWER),
    ] {
        let error = error_of(answer, Operation::RunInstances);
        assert_eq!(error.kind, ApiErrorKind::Lost, "{name}: {error}");
        assert_eq!(error.code, code, "{name}: {error}");
        assert!(error.is_open(), "{name}");
    }
    let error = error_of(
        move || Answer::Raw(half.to_owned()),
        Operation::RunInstances,
    );
    assert_eq!(error.kind, ApiErrorKind::Lost, "{error}");
    assert_eq!(error.code, ApiError::CONNECTION_LOST, "{error}");
}

#[test]
fn a_connection_that_never_was_leaves_the_request_unsent() {
    // A port that was free a moment ago.
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    for url in [
        format!("http://127.0.0.1:{port}"),
        "http://no-such-host.invalid".to_owned(),
        format!("https://127.0.0.1:{port}"),
    ] {
        let job = Job::call(&url, Operation::RunInstances, json!({}));
        let error = only(&job).unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::Unsent, "{url}: {error}");
        assert_eq!(error.code, ApiError::NO_CONNECTION, "{url}: {error}");
    }
}

#[test]
fn a_server_without_tls_gets_no_request() {
    let server = Server::start(|_| Answer::xml(""));
    let url = server.url.replace("http:", "https:");
    let error = only(&Job::call(&url, Operation::RunInstances, json!({}))).unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Unsent, "{error}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn an_input_that_does_not_fit_is_not_sent() {
    let server = Server::start(|_| Answer::xml(""));
    let input = json!({"NetworkInterfaces": [{"Groups": "sg-1"}]});
    let error = only(&Job::call(&server.url, Operation::RunInstances, input)).unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Input);
    assert_eq!(
        error.message,
        "`NetworkInterfaces[0].Groups`: expected a list, found a string"
    );
    assert_eq!(server.requests().len(), 0);
}
