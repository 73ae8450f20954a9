//! Where credentials come from, against Google's token services on loopback.

use std::fs;
use std::path::Path;

use nstance_gce::{ApiError, ApiErrorKind, Operation};
use serde_json::{Value, json};

use crate::child::Job;
use crate::server::{Answer, Request, Server};

/// A Compute Engine and all services that give tokens.
fn google() -> Server {
    Server::start(|request| match request.line.as_str() {
        // Google's and GitHub's, for logins and workload identity federation.
        "POST /token" | "POST /sts" => Answer::json(json!({
            "access_token": "federated", "token_type": "Bearer", "expires_in": 3600,
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        })),
        "POST /refused" => Answer::Full(
            400,
            vec![],
            json!({"error": "invalid_grant", "error_description": "Expired."}).to_string(),
        ),
        "GET /oidc" => Answer::json(json!({"value": "subject-of-github"})),
        "POST /impersonate:generateAccessToken" => Answer::json(json!({
            "accessToken": "impersonated", "expireTime": "2100-01-01T00:00:00Z",
        })),
        "GET /computeMetadata/v1/instance/service-accounts/default/token" => Answer::json(
            json!({"access_token": "metadata", "token_type": "Bearer", "expires_in": 3600}),
        ),
        "GET /computeMetadata/v1/universe/universe-domain" => {
            Answer::Full(200, vec![], "googleapis.com".to_owned())
        }
        _ => Answer::json("{}"),
    })
}

/// Runs a call with a credentials' file, and another of the other kind.
fn run(server: &Server, home: &Path, file: Option<&Value>) -> Vec<Result<Value, ApiError>> {
    let input = json!({"project": "p", "region": "r"});
    let mut job = Job::call(&server.url, Operation::RegionsGet, input);
    let test = Operation::ProjectsTestIamPermissions.name().to_owned();
    job.calls.push((test, json!({"resource": "projects/p"})));
    job.anonymous = false;
    if let Some(file) = file {
        let path = home.join("credentials.json");
        fs::write(&path, file.to_string()).unwrap();
        let path = path.to_str().unwrap().to_owned();
        job.environment
            .push(("GOOGLE_APPLICATION_CREDENTIALS", path));
    }
    job.run(home)
}

/// What the calls were sent with; the other requests are for tokens.
fn bearers(server: &Server) -> (Vec<String>, Vec<Request>) {
    let is_call = |request: &Request| {
        request.line.starts_with("GET /compute/v1/") || request.line.starts_with("POST /v3/")
    };
    let (calls, tokens): (Vec<_>, Vec<_>) = server.requests().into_iter().partition(is_call);
    let bearer = |request: &Request| {
        let header = request.header("authorization");
        header
            .strip_prefix("Bearer ")
            .unwrap_or_default()
            .to_owned()
    };
    (calls.iter().map(bearer).collect(), tokens)
}

fn lines(requests: &[Request]) -> Vec<&str> {
    requests
        .iter()
        .map(|request| request.line.as_str())
        .collect()
}

#[test]
fn a_login_is_exchanged_for_a_token_once() {
    let (server, home) = (google(), tempfile::tempdir().unwrap());
    let file = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": format!("{}/token", server.url),
    });
    assert_eq!(
        run(&server, home.path(), Some(&file)),
        [Ok(json!({})), Ok(json!({}))]
    );
    let (bearers, tokens) = bearers(&server);
    assert_eq!(bearers, ["federated", "federated"]);
    assert_eq!(lines(&tokens), ["POST /token"]);
    assert!(
        tokens[0].body.contains("refresh_token"),
        "{}",
        tokens[0].body
    );
}

#[test]
fn a_key_signs_its_own_token() {
    let (server, home) = (google(), tempfile::tempdir().unwrap());
    let file = json!({
        "type": "service_account", "project_id": "p", "private_key_id": "1",
        "client_email": "a@p.iam.gserviceaccount.com",
        // Made for this test; it opens nothing.
        "private_key": include_str!("service-account-key.pem"),
        "token_uri": format!("{}/token", server.url),
    });
    assert_eq!(
        run(&server, home.path(), Some(&file)),
        [Ok(json!({})), Ok(json!({}))]
    );
    let (bearers, tokens) = bearers(&server);
    assert!(tokens.is_empty(), "{tokens:?}");
    for bearer in bearers {
        assert_eq!(bearer.split('.').count(), 3, "not a JWT: {bearer}");
    }
}

#[test]
fn a_workload_identity_is_exchanged_for_a_token() {
    for impersonated in [false, true] {
        for source in ["file", "url"] {
            let (server, home) = (google(), tempfile::tempdir().unwrap());
            let subject = home.path().join("subject");
            fs::write(&subject, "subject-of-file").unwrap();
            let source_of = match source {
                "file" => json!({"file": subject}),
                // As google-github-actions/auth writes it.
                _ => json!({
                    "url": format!("{}/oidc", server.url),
                    "headers": {"Authorization": "Bearer of-github"},
                    "format": {"type": "json", "subject_token_field_name": "value"},
                }),
            };
            let mut file = json!({
                "type": "external_account",
                "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/w/providers/x",
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "token_url": format!("{}/sts", server.url),
                "credential_source": source_of,
            });
            if impersonated {
                let url = format!("{}/impersonate:generateAccessToken", server.url);
                file["service_account_impersonation_url"] = json!(url);
            }
            let answers = run(&server, home.path(), Some(&file));
            assert_eq!(
                answers,
                [Ok(json!({})), Ok(json!({}))],
                "{source} {impersonated}"
            );
            let (bearers, tokens) = bearers(&server);
            let wanted = if impersonated {
                "impersonated"
            } else {
                "federated"
            };
            assert_eq!(bearers, [wanted, wanted]);
            let exchange = tokens
                .iter()
                .find(|request| request.line == "POST /sts")
                .unwrap();
            let subject = (
                "subject_token".to_owned(),
                format!(
                    "subject-of-{}",
                    if source == "url" { "github" } else { "file" }
                ),
            );
            assert!(exchange.form().contains(&subject), "{exchange:?}");
            if let Some(asked) = tokens.iter().find(|request| request.line == "GET /oidc") {
                assert_eq!(asked.header("authorization"), "Bearer of-github");
            }
            assert_eq!(
                tokens.len(),
                1 + usize::from(source == "url") + usize::from(impersonated)
            );
        }
    }
}

#[test]
fn without_a_file_the_metadata_server_gives_tokens() {
    let (server, home) = (google(), tempfile::tempdir().unwrap());
    let input = json!({"project": "p", "region": "r"});
    let mut job = Job::call(&server.url, Operation::RegionsGet, input);
    job.anonymous = false;
    let host = server.url.trim_start_matches("http://").to_owned();
    job.environment.push(("GCE_METADATA_HOST", host));
    assert_eq!(job.run(home.path()), [Ok(json!({}))]);
    assert_eq!(bearers(&server).0, ["metadata"]);
}

#[test]
fn an_account_to_impersonate_is_asked_for_at_google() {
    let (server, home) = (google(), tempfile::tempdir().unwrap());
    let file = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": format!("{}/token", server.url),
    });
    let path = home.path().join("credentials.json");
    fs::write(&path, file.to_string()).unwrap();
    // The address is Google's own in any case. A proxy that refuses shows that it was asked for.
    let proxy = Server::start(|_| Answer::Nothing);
    let input = json!({"project": "p", "region": "r"});
    let mut job = Job::call(&server.url, Operation::RegionsGet, input);
    job.anonymous = false;
    job.impersonate = Some("b@p.iam.gserviceaccount.com");
    job.request_timeout = std::time::Duration::from_secs(2);
    job.environment = vec![
        (
            "GOOGLE_APPLICATION_CREDENTIALS",
            path.to_str().unwrap().to_owned(),
        ),
        ("HTTPS_PROXY", proxy.url.clone()),
    ];
    let error = job.run(home.path()).remove(0).unwrap_err();
    assert_eq!(error.kind, ApiErrorKind::Unsent, "{error}");
    assert_eq!(error.code, ApiError::CREDENTIALS_NOT_FOUND, "{error}");
    assert_eq!(bearers(&server).0, [""; 0]);
    let asked = proxy.requests();
    assert!(
        asked
            .iter()
            .all(|request| request.line == "CONNECT iamcredentials.googleapis.com:443")
    );
    assert!(!asked.is_empty());
}

#[test]
fn without_credentials_nothing_is_sent() {
    let refused = |server: &Server| {
        json!({
            "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
            "token_uri": format!("{}/refused", server.url),
        })
    };
    let key = json!({
        "type": "service_account", "project_id": "p", "private_key_id": "1",
        "client_email": "a", "private_key": "none",
    });
    for (name, said) in [
        ("none", ""),
        ("refused", "invalid_grant"),
        ("key", "private key"),
        ("type", "type"),
    ] {
        let (server, home) = (google(), tempfile::tempdir().unwrap());
        let file = match name {
            "none" => None,
            "refused" => Some(refused(&server)),
            "key" => Some(key.clone()),
            _ => Some(json!({})),
        };
        for answer in run(&server, home.path(), file.as_ref()) {
            let error = answer.unwrap_err();
            assert_eq!(error.kind, ApiErrorKind::Unsent, "{name}: {error}");
            assert_eq!(
                error.code,
                ApiError::CREDENTIALS_NOT_FOUND,
                "{name}: {error}"
            );
            assert!(error.message.contains(said), "{name}: {error}");
        }
        assert_eq!(bearers(&server).0, [""; 0], "{name}");
    }
}
