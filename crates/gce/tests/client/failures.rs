//! Each way of having no answer, and what the error says about it.

use std::net::TcpListener;
use std::time::Duration;

use nstance_gce::{ApiError, ApiErrorKind, Operation};
use serde_json::{Value, json};

use crate::child::Job;
use crate::server::{Answer, Server};

/// One call through the SDK, and the one without it.
const BOTH: [Operation; 2] = [
    Operation::InstancesInsert,
    Operation::ProjectsTestIamPermissions,
];

fn input(operation: Operation) -> Value {
    match operation {
        Operation::ProjectsTestIamPermissions => json!({"resource": "projects/p"}),
        _ => json!({"project": "p", "zone": "z", "body": {"name": "i"}}),
    }
}

fn only(job: &Job<'_>) -> Result<Value, ApiError> {
    let home = tempfile::tempdir().unwrap();
    let mut answers = job.run(home.path());
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// The error of a call that the server answers like this.
fn error_of(answer: impl Fn() -> Answer + Send + Sync + 'static, operation: Operation) -> ApiError {
    // Only who waits in vain waits that long; on a busy machine, an answer takes a while.
    let milliseconds = match answer() {
        Answer::Silence => 3_000,
        _ => 60_000,
    };
    let server = Server::start(move |_| answer());
    let mut job = Job::call(&server.url, operation, input(operation));
    job.request_timeout = Duration::from_millis(milliseconds);
    let error = only(&job).unwrap_err();
    assert_eq!(server.requests().len(), 1, "nothing is tried twice");
    error
}

#[test]
fn a_refusal_has_reason_message_and_status() {
    let info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "RATE_LIMIT_EXCEEDED", "domain": "googleapis.com",
    });
    for (status, more, code) in [
        (
            404,
            json!({"errors": [{"reason": "notFound", "domain": "global"}]}),
            "notFound",
        ),
        (
            409,
            json!({"errors": [{"reason": "alreadyExists"}]}),
            "alreadyExists",
        ),
        (
            412,
            json!({"errors": [{"reason": "conditionNotMet"}]}),
            "conditionNotMet",
        ),
        (
            403,
            json!({
                "errors": [{"reason": "rateLimitExceeded"}],
                "status": "PERMISSION_DENIED", "details": [info],
            }),
            "rateLimitExceeded",
        ),
        (503, json!({"status": "UNAVAILABLE"}), "UNAVAILABLE"),
        (404, json!({}), "Http404"),
    ] {
        for operation in BOTH {
            let mut described = json!({"code": status, "message": "No."});
            let more = more.as_object().unwrap().clone();
            described.as_object_mut().unwrap().extend(more);
            let body = json!({"error": described}).to_string();
            let error = error_of(
                move || Answer::Full(status, vec![], body.clone()),
                operation,
            );
            assert_eq!(
                error,
                ApiError {
                    code: code.to_owned(),
                    message: "No.".to_owned(),
                    status: Some(status),
                    kind: ApiErrorKind::Refused,
                }
            );
        }
    }
}

#[test]
fn a_page_of_a_proxy_is_a_refusal_without_a_reason() {
    for (status, body, message) in [
        (403, "<html>Forbidden</html>", "<html>Forbidden</html>"),
        (502, "", "the answer was empty"),
    ] {
        for operation in BOTH {
            let answer = move || Answer::Full(status, Vec::new(), body.to_owned());
            let error = error_of(answer, operation);
            assert_eq!(error.kind, ApiErrorKind::Refused, "{error}");
            assert_eq!(error.code, format!("Http{status}"));
            assert_eq!(error.message, message);
            assert_eq!(error.status, Some(status));
        }
    }
}

#[test]
fn an_answer_that_does_not_come_whole_is_lost() {
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
            "half",
            || Answer::Raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned()),
            ApiError::CONNECTION_LOST,
        ),
        (
            "no JSON",
            || Answer::json("<html>It works!</html>"),
            ApiError::UNREADABLE_ANSWER,
        ),
        ("empty", || Answer::json(""), ApiError::UNREADABLE_ANSWER),
    ] {
        for operation in BOTH {
            let error = error_of(answer, operation);
            assert_eq!(error.kind, ApiErrorKind::Lost, "{name}: {error}");
            assert_eq!(error.code, code, "{name}: {error}");
            assert!(error.is_open(), "{name}");
        }
    }
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
        for operation in BOTH {
            let error = only(&Job::call(&url, operation, input(operation))).unwrap_err();
            assert_eq!(error.kind, ApiErrorKind::Unsent, "{url}: {error}");
            assert_eq!(error.code, ApiError::NO_CONNECTION, "{url}: {error}");
        }
    }
}

#[test]
fn an_input_that_does_not_fit_is_not_sent() {
    let server = Server::start(|_| Answer::json("{}"));
    let insert = |more: Value| {
        let mut input = json!({"project": "p", "zone": "z"});
        let more = more.as_object().unwrap().clone();
        input.as_object_mut().unwrap().extend(more);
        (Operation::InstancesInsert, input)
    };
    for ((operation, input), message) in [
        (
            insert(json!({"body": {"disks": [{"initializeParams": {"sizeGb": 1}}]}})),
            "`body.disks[0].initializeParams.sizeGb`: the API has no such member",
        ),
        (
            insert(json!({"body": {"tags": ["web"]}})),
            "`body.tags`: expected struct Tags, found a list",
        ),
        (
            insert(json!({"request_id": "1"})),
            "instances.insert has no parameter `request_id`",
        ),
        (
            insert(json!({"requestId": 1})),
            "`requestId`: expected a string, found a number",
        ),
        (
            (
                Operation::InstancesGet,
                json!({"project": "p", "zone": "z"}),
            ),
            "`instance` is missing",
        ),
        (
            (
                Operation::ProjectsTestIamPermissions,
                json!({"resource": "projects/p", "body": {"permission": []}}),
            ),
            "`body.permission`: the API has no such member",
        ),
        (
            (
                Operation::ProjectsTestIamPermissions,
                json!({"resource": "p"}),
            ),
            "`resource`: expected a project such as `projects/my-project`",
        ),
    ] {
        let error = only(&Job::call(&server.url, operation, input)).unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::Input, "{error}");
        assert_eq!(error.message, message);
    }
    // A name that would change the path.
    let input = json!({"project": "p", "zone": "z", "instance": "i/stop"});
    let error = only(&Job::call(&server.url, Operation::InstancesGet, input)).unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Input, "{error}");
    assert_eq!(server.requests().len(), 0);
}
