//! The client that talks to Google Cloud.
//!
//! In: options, operations with their input. Out: answers. Must not: try twice, or know what the
//! answers are for.

mod calls;
mod failure;
mod input;
mod resource_manager;
mod runtime;

use std::time::Duration;

use google_cloud_auth::build_errors::Error as BuildError;
use google_cloud_auth::credentials::{Builder, Credentials, anonymous, impersonated};
use http::{Extensions, HeaderValue};
use serde_json::Value;

use self::calls::Clients;
use self::failure::credentials_failure;
use self::input::invalid;
use self::runtime::Runtime;
use crate::{Api, ApiError, ApiErrorKind, Operation};

/// Which endpoint to call, as whom, and how long to wait.
///
/// Credentials are application default credentials, as every tool of Google's finds them: the file
/// that `GOOGLE_APPLICATION_CREDENTIALS` names, that of `gcloud auth application-default login`, or
/// the metadata server. A file may hold a service account's key, a user's login, workload identity
/// federation (as GitHub Actions have it), or the impersonation of a service account.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The URL of all services, in place of Google's own.
    pub endpoint: Option<String>,
    /// Send no credentials, and look for none.
    pub anonymous: bool,
    /// The email of a service account to act as, by means of the credentials that were found.
    pub impersonate: Option<String>,
    /// How long connecting may take.
    ///
    /// The SDK has one limit for connecting and for the answer, which is the sum of both. So a
    /// connection that hangs that long is reported as a call without an answer.
    pub connect_timeout: Duration,
    /// How long an answer may take once a request is sent; also, how long a token may take.
    pub request_timeout: Duration,
    /// The program's name in Google's logs (`User-Agent`).
    pub app_name: String,
}

impl Default for ClientOptions {
    /// Google's endpoints, with application default credentials.
    fn default() -> Self {
        Self {
            endpoint: None,
            anonymous: false,
            impersonate: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_mins(1),
            app_name: env!("CARGO_PKG_NAME").to_owned(),
        }
    }
}

/// What all calls have in common.
struct Settings {
    endpoint: Option<String>,
    credentials: Credentials,
    connect_timeout: Duration,
    request_timeout: Duration,
    app_name: String,
}

/// An [`Api`] that is Google Cloud. It may be used from many threads at once.
pub struct Client {
    // Before the runtime, which their connections live on.
    clients: Clients,
    runtime: Runtime,
}

impl Client {
    /// Reads the credentials' file, if there is one, and begins to fetch a token.
    ///
    /// If the process has no default for TLS (rustls) yet, it becomes ring.
    pub fn connect(options: &ClientOptions) -> Result<Self, ApiError> {
        if let Some(url) = &options.endpoint {
            check_url(url)?;
        }
        if HeaderValue::from_str(&options.app_name).is_err() {
            return Err(invalid(format!(
                "the name `{}` doesn't fit into a header",
                options.app_name.escape_debug()
            )));
        }
        // An error means that there is a default already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Runtime::start()
            .map_err(|error| invalid(format!("cannot start the client's thread: {error}")))?;
        let credentials = runtime
            .block_on(async { credentials(options) })
            .map_err(|error| credentials_failure(&error))?;
        Ok(Self {
            clients: Clients::new(Settings {
                endpoint: options.endpoint.clone(),
                credentials,
                connect_timeout: options.connect_timeout,
                request_timeout: options.request_timeout,
                app_name: options.app_name.clone(),
            }),
            runtime,
        })
    }

    /// Waits for a token. The calls themselves set no limit for that.
    async fn authenticate(&self) -> Result<(), ApiError> {
        let settings = &self.clients.settings;
        let headers = settings.credentials.headers(Extensions::new());
        match tokio::time::timeout(settings.request_timeout, headers).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(credentials_failure(&error)),
            Err(_) => Err(ApiError::new(
                ApiErrorKind::Unsent,
                ApiError::CREDENTIALS_NOT_FOUND,
                "no token came in time",
            )),
        }
    }
}

impl Api for Client {
    fn call(&self, operation: Operation, input: &Value) -> Result<Value, ApiError> {
        self.runtime.block_on(async {
            self.authenticate().await?;
            // Boxed: it holds the requests of all operations.
            Box::pin(self.clients.call(operation, input)).await
        })
    }
}

fn credentials(options: &ClientOptions) -> Result<Credentials, BuildError> {
    if options.anonymous {
        return Ok(anonymous::Builder::new().build());
    }
    let found = Builder::default().build()?;
    match &options.impersonate {
        Some(account) => impersonated::Builder::from_source_credentials(found)
            .with_target_principal(account)
            .build(),
        None => Ok(found),
    }
}

/// The SDK would report such an address with the first call only.
fn check_url(url: &str) -> Result<(), ApiError> {
    let parsed = reqwest::Url::parse(url).ok();
    if parsed.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()) {
        return Ok(());
    }
    Err(invalid(
        "the endpoint isn't a URL such as `https://compute.googleapis.com`".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_cannot_work_are_refused() {
        for (endpoint, app_name) in [
            ("compute.example.com", "a"),
            ("ftp://example.com", "a"),
            ("https://", "a"),
            ("http://127.0.0.1:1", "a\nb"),
        ] {
            let options = ClientOptions {
                endpoint: Some(endpoint.to_owned()),
                app_name: app_name.to_owned(),
                anonymous: true,
                ..ClientOptions::default()
            };
            let error = Client::connect(&options).err().unwrap();
            assert_eq!(error.kind, ApiErrorKind::Input, "{endpoint} {app_name}");
        }
    }
}
