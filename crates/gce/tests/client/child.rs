//! The client in a process of its own, whose environment holds nothing but what a test gives it.
//!
//! Credentials come from the environment, and a test can't change that of its own process.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nstance_gce::{Api, ApiError, ApiErrorKind, Client, ClientOptions, Operation};
use serde_json::{Value, json};

/// The beginning of the line that holds the answers.
const MARK: &str = "answers: ";

/// A client's options and calls.
pub(crate) struct Job<'j> {
    pub(crate) url: Option<&'j str>,
    pub(crate) anonymous: bool,
    pub(crate) impersonate: Option<&'j str>,
    pub(crate) request_timeout: Duration,
    pub(crate) environment: Vec<(&'j str, String)>,
    pub(crate) calls: Vec<(String, Value)>,
}

impl<'j> Job<'j> {
    /// A call without credentials.
    pub(crate) fn call(url: &'j str, operation: Operation, input: Value) -> Self {
        Self {
            url: Some(url),
            anonymous: true,
            impersonate: None,
            request_timeout: Duration::from_secs(20),
            environment: Vec::new(),
            calls: vec![(operation.name().to_owned(), input)],
        }
    }

    /// Runs all calls, one after another, with one client.
    pub(crate) fn run(&self, home: &Path) -> Vec<Result<Value, ApiError>> {
        let text = json!({
            "url": self.url,
            "anonymous": self.anonymous,
            "impersonate": self.impersonate,
            "milliseconds": u64::try_from(self.request_timeout.as_millis()).unwrap(),
            "calls": self.calls,
        });
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::work", "--ignored", "--nocapture"])
            .env_clear()
            .env("HOME", home)
            // Instead of the metadata server of the machine that the tests run on.
            .env("GCE_METADATA_HOST", "127.0.0.1:1")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(text.to_string().as_bytes()).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let answers = said
            .split_once(MARK)
            .and_then(|(_, rest)| rest.lines().next())
            .unwrap_or_else(|| panic!("the child failed: {said}"));
        let answers: Vec<Value> = serde_json::from_str(answers).unwrap();
        answers.into_iter().map(from_json).collect()
    }
}

/// The work of the process that [`Job::run`] starts.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn work() {
    let job: Value = serde_json::from_reader(std::io::stdin().lock()).unwrap();
    let text = |name: &str| job[name].as_str().map(str::to_owned);
    let options = ClientOptions {
        endpoint: text("url"),
        anonymous: job["anonymous"].as_bool().unwrap(),
        impersonate: text("impersonate"),
        connect_timeout: Duration::ZERO,
        request_timeout: Duration::from_millis(job["milliseconds"].as_u64().unwrap()),
        app_name: "nstance-test".to_owned(),
    };
    let client = Client::connect(&options);
    let answers: Vec<Value> = job["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            let operation = Operation::from_name(call[0].as_str().unwrap()).unwrap();
            match &client {
                Ok(client) => to_json(client.call(operation, &call[1])),
                Err(error) => to_json(Err(error.clone())),
            }
        })
        .collect();
    println!("{MARK}{}", Value::Array(answers));
}

fn to_json(answer: Result<Value, ApiError>) -> Value {
    match answer {
        Ok(output) => json!({ "output": output }),
        Err(error) => json!({
            "code": error.code,
            "message": error.message,
            "status": error.status,
            "kind": format!("{:?}", error.kind),
        }),
    }
}

fn from_json(mut value: Value) -> Result<Value, ApiError> {
    if let Some(output) = value.get_mut("output") {
        return Ok(output.take());
    }
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let kinds = [
        ApiErrorKind::Refused,
        ApiErrorKind::Unsent,
        ApiErrorKind::Lost,
        ApiErrorKind::Input,
    ];
    let kind = text("kind").unwrap();
    Err(ApiError {
        code: text("code").unwrap(),
        message: text("message").unwrap(),
        status: value["status"]
            .as_u64()
            .map(|status| u16::try_from(status).unwrap()),
        kind: kinds
            .into_iter()
            .find(|known| format!("{known:?}") == kind)
            .unwrap(),
    })
}
