//! Where credentials come from, against a security token service on loopback.

use std::fs;
use std::path::Path;

use nstance_ec2::{ApiError, ApiErrorKind, Operation};
use serde_json::{Value, json};

use crate::child::Job;
use crate::server::{Answer, Request, Server};

/// An EC2 and an SSM that have nothing, and an STS that gives `KEY-OF-ROLE` for `arn:aws:iam::1:role/ROLE`.
fn aws() -> Server {
    Server::start(|request| {
        if request.header("x-amz-target") == "AmazonSSM.GetParameter" {
            return Answer::xml("{}");
        }
        let action = request.parameter("Action").unwrap_or_default();
        if !action.starts_with("AssumeRole") {
            return Answer::xml("<DescribeInstancesResponse></DescribeInstancesResponse>");
        }
        let role = request.parameter("RoleArn").unwrap();
        let (_, role) = role.split_once("role/").unwrap();
        if role == "forbidden" {
            return Answer::Full(
                403,
                Vec::new(),
                "<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not you.</Message></Error>\
                 <RequestId>7-8</RequestId></ErrorResponse>"
                    .to_owned(),
            );
        }
        Answer::xml(format!(
            "<{action}Response><{action}Result><Credentials><AccessKeyId>KEY-OF-{role}</AccessKeyId>\
             <SecretAccessKey>s</SecretAccessKey><SessionToken>token-of-{role}</SessionToken>\
             <Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></{action}Result>\
             </{action}Response>"
        ))
    })
}

/// The key that signed a request.
fn key(request: &Request) -> String {
    let authorization = request.header("authorization");
    let (_, rest) = authorization.split_once("Credential=").unwrap_or_default();
    rest.split('/').next().unwrap_or_default().to_owned()
}

fn job<'j>(url: &'j str, environment: &[(&'j str, &str)]) -> Job<'j> {
    let mut job = Job::call(url, Operation::DescribeInstances, json!({}));
    job.environment = environment
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    job
}

fn run(job: &Job<'_>, home: &Path) -> Result<Value, ApiError> {
    job.run(home).remove(0)
}

/// A home with files of AWS's tools.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".aws");
    fs::create_dir(&folder).unwrap();
    fs::write(
        folder.join("credentials"),
        "[default]\naws_access_key_id = KEY-OF-DEFAULT\naws_secret_access_key = s\n\
         [work]\naws_access_key_id = KEY-OF-WORK\naws_secret_access_key = s\n",
    )
    .unwrap();
    let echo = r#"{"Version": 1, "AccessKeyId": "KEY-OF-PROCESS", "SecretAccessKey": "s"}"#;
    fs::write(folder.join("process.json"), echo).unwrap();
    fs::write(
        folder.join("config"),
        format!(
            "[profile process]\ncredential_process = /bin/cat {}\n\
             [profile role]\nrole_arn = arn:aws:iam::1:role/profile\nsource_profile = work\n",
            folder.join("process.json").display()
        ),
    )
    .unwrap();
    home
}

#[test]
fn the_usual_places_are_looked_at() {
    let keys: &[(&str, &str)] = &[
        ("AWS_ACCESS_KEY_ID", "KEY-OF-ENVIRONMENT"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
    ];
    for (name, environment, profile, role, wanted) in [
        ("environment", keys, None, None, "KEY-OF-ENVIRONMENT"),
        ("default profile", &[], None, None, "KEY-OF-DEFAULT"),
        (
            "AWS_PROFILE",
            &[("AWS_PROFILE", "work")],
            None,
            None,
            "KEY-OF-WORK",
        ),
        ("profile", &[], Some("work"), None, "KEY-OF-WORK"),
        (
            "profile before environment",
            keys,
            Some("work"),
            None,
            "KEY-OF-WORK",
        ),
        ("process", &[], Some("process"), None, "KEY-OF-PROCESS"),
        (
            "role of a profile",
            &[],
            Some("role"),
            None,
            "KEY-OF-profile",
        ),
        (
            "role",
            keys,
            None,
            Some("arn:aws:iam::1:role/option"),
            "KEY-OF-option",
        ),
        (
            "profile and role",
            &[],
            Some("process"),
            Some("arn:aws:iam::1:role/option"),
            "KEY-OF-option",
        ),
    ] {
        let (server, home) = (aws(), home());
        let mut job = job(&server.url, environment);
        // A profile's role isn't a call of ours, so `endpoint_url` isn't for it.
        job.environment
            .push(("AWS_ENDPOINT_URL_STS", server.url.clone()));
        job.profile = profile;
        job.role_arn = role;
        let answer = run(&job, home.path());
        assert_eq!(answer, Ok(json!({})), "{name}");
        let requests = server.requests();
        assert_eq!(key(requests.last().unwrap()), wanted, "{name}");
        if let Some(role) = role {
            assert_eq!(requests.len(), 2, "{name}");
            assert_eq!(requests[0].parameter("RoleArn").as_deref(), Some(role));
            assert_eq!(
                requests[0].parameter("RoleSessionName").as_deref(),
                Some("nstance-ec2")
            );
            assert_eq!(
                requests[1].header("x-amz-security-token"),
                "token-of-option"
            );
        }
    }
}

#[test]
fn a_web_identity_becomes_a_role() {
    let (server, home) = (aws(), tempfile::tempdir().unwrap());
    let token = home.path().join("token");
    fs::write(&token, "from-the-ci").unwrap();
    let mut job = job(
        &server.url,
        &[
            ("AWS_ROLE_ARN", "arn:aws:iam::1:role/ci"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
            ("AWS_ROLE_SESSION_NAME", "run-17"),
        ],
    );
    job.environment
        .push(("AWS_ENDPOINT_URL_STS", server.url.clone()));
    assert_eq!(run(&job, home.path()), Ok(json!({})));
    let requests = server.requests();
    let parameter = |name: &str| requests[0].parameter(name).unwrap();
    assert_eq!(parameter("Action"), "AssumeRoleWithWebIdentity");
    assert_eq!(parameter("WebIdentityToken"), "from-the-ci");
    assert_eq!(parameter("RoleSessionName"), "run-17");
    assert_eq!(key(&requests[1]), "KEY-OF-ci");
}

/// `aws sso login` leaves a token in a file, named by the SHA-1 of the session's name, or of the
/// address where a profile has no session.
#[test]
fn a_session_of_single_sign_on_becomes_credentials() {
    const SESSION: &str = "ee0bfd2552fbd840c02cc48b6e823320543c450f";
    const ADDRESS: &str = "a51746d4aa793ae07b25e90c3a5db96fc7832bd7";
    let account = "sso_account_id = 123456789012\nsso_role_name = planner\n";
    let start = "sso_region = eu-west-1\nsso_start_url = https://corp.awsapps.com/start\n";
    let session =
        format!("[profile work]\nsso_session = corp\n{account}[sso-session corp]\n{start}");
    let address = format!("[profile work]\n{account}{start}");
    for (config, file, expires, valid) in [
        (&session, SESSION, "2100-01-01T00:00:00Z", true),
        (&address, ADDRESS, "2100-01-01T00:00:00Z", true),
        (&session, SESSION, "2020-01-01T00:00:00Z", false),
    ] {
        let portal = Server::start(|request| {
            assert_eq!(request.header("x-amz-sso_bearer_token"), "from-the-login");
            let text = r#"{"roleCredentials": {"accessKeyId": "KEY-OF-SSO", "secretAccessKey": "s",
                "sessionToken": "t", "expiration": 4102444800000}}"#;
            Answer::Full(200, Vec::new(), text.to_owned())
        });
        let (server, home) = (aws(), tempfile::tempdir().unwrap());
        let cache = home.path().join(".aws/sso/cache");
        fs::create_dir_all(&cache).unwrap();
        fs::write(home.path().join(".aws/config"), config).unwrap();
        let token = json!({"accessToken": "from-the-login", "expiresAt": expires});
        fs::write(cache.join(file).with_extension("json"), token.to_string()).unwrap();
        let mut job = job(&server.url, &[]);
        job.profile = Some("work");
        job.environment
            .push(("AWS_ENDPOINT_URL_SSO", portal.url.clone()));
        let answer = run(&job, home.path());
        if !valid {
            let error = answer.unwrap_err();
            assert_eq!(error.code, ApiError::CREDENTIALS_NOT_FOUND, "{error}");
            assert!(error.message.contains("expired"), "{error}");
            assert!(portal.requests().is_empty());
            continue;
        }
        assert_eq!(answer, Ok(json!({})), "{config}");
        let asked = &portal.requests()[0].line;
        for part in [
            "/federation/credentials?",
            "role_name=planner",
            "account_id=123456789012",
        ] {
            assert!(asked.contains(part), "{asked}");
        }
        assert_eq!(key(&server.requests()[0]), "KEY-OF-SSO");
    }
}

#[test]
fn container_credentials_are_fetched() {
    let server = Server::start(|request| {
        if request.line.starts_with("GET /credentials ") {
            assert_eq!(request.header("authorization"), "a-token");
            let text = r#"{"AccessKeyId": "KEY-OF-CONTAINER", "SecretAccessKey": "s",
                "Token": "t", "Expiration": "2100-01-01T00:00:00Z"}"#;
            return Answer::Full(200, Vec::new(), text.to_owned());
        }
        Answer::xml("<DescribeInstancesResponse></DescribeInstancesResponse>")
    });
    let home = tempfile::tempdir().unwrap();
    let address = format!("{}/credentials", server.url);
    let job = job(
        &server.url,
        &[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &address),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "a-token"),
        ],
    );
    assert_eq!(run(&job, home.path()), Ok(json!({})));
    assert_eq!(key(&server.requests()[1]), "KEY-OF-CONTAINER");
}

#[test]
fn instance_credentials_are_fetched() {
    let server = Server::start(|request| {
        let document = r#"{"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "KEY-OF-INSTANCE",
            "SecretAccessKey": "s", "Token": "t", "LastUpdated": "2026-01-01T00:00:00Z",
            "Expiration": "2100-01-01T00:00:00Z", "AccountId": "123456789012"}"#;
        let path = request.line.split(' ').nth(1).unwrap();
        match path.trim_end_matches('/') {
            "/latest/api/token" => Answer::Full(
                200,
                vec![("x-aws-ec2-metadata-token-ttl-seconds", "21600".to_owned())],
                "session".to_owned(),
            ),
            path if path.ends_with("/security-credentials")
                || path.ends_with("/security-credentials-extended") =>
            {
                Answer::Full(200, Vec::new(), "role-of-instance".to_owned())
            }
            path if path.contains("/security-credentials") => {
                Answer::Full(200, Vec::new(), document.to_owned())
            }
            _ => Answer::xml("<DescribeInstancesResponse></DescribeInstancesResponse>"),
        }
    });
    let home = tempfile::tempdir().unwrap();
    let mut job = job(&server.url, &[("AWS_EC2_METADATA_DISABLED", "false")]);
    job.environment
        .push(("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url.clone()));
    assert_eq!(run(&job, home.path()), Ok(json!({})));
    assert_eq!(key(server.requests().last().unwrap()), "KEY-OF-INSTANCE");
}

#[test]
fn who_has_no_credentials_is_told_where_they_were_looked_for() {
    for (profile, role, environment, said) in [
        (None, None, &[] as &[(&str, &str)], "AWS_ACCESS_KEY_ID"),
        (None, None, &[("AWS_PROFILE", "none")], "profile `none`"),
        (Some("none"), None, &[], "profile `none`"),
        (
            Some("work"),
            Some("arn:aws:iam::1:role/forbidden"),
            &[],
            "AccessDenied",
        ),
    ] {
        let server = aws();
        let home = match role {
            Some(_) => home(),
            None => tempfile::tempdir().unwrap(),
        };
        let mut job = job(&server.url, environment);
        job.profile = profile;
        job.role_arn = role;
        let error = run(&job, home.path()).unwrap_err();
        assert_eq!(error.kind, ApiErrorKind::Unsent, "{error}");
        assert_eq!(error.code, ApiError::CREDENTIALS_NOT_FOUND, "{error}");
        assert!(error.message.contains(said), "{}", error.message);
        let sent = |request: &Request| {
            let action = request.parameter("Action").unwrap_or_default();
            action == "DescribeInstances"
        };
        assert!(!server.requests().iter().any(sent), "{error}");
    }
}

#[test]
fn endpoints_of_the_environment_count() {
    let (ours, other) = (aws(), aws());
    let home = home();
    let (ec2, ssm) = (Operation::DescribeInstances, Operation::GetParameter);
    for (operation, url, name, wanted) in [
        (ec2, Some(&*ours.url), "AWS_ENDPOINT_URL", &ours),
        (ec2, None, "AWS_ENDPOINT_URL", &other),
        (ec2, None, "AWS_ENDPOINT_URL_EC2", &other),
        (ssm, Some(&*ours.url), "AWS_ENDPOINT_URL_SSM", &ours),
        (ssm, None, "AWS_ENDPOINT_URL", &other),
        (ssm, None, "AWS_ENDPOINT_URL_SSM", &other),
    ] {
        let mut job = job("", &[]);
        job.calls = vec![(operation.name().to_owned(), json!({}))];
        job.url = url;
        job.environment.push((name, other.url.clone()));
        let before = wanted.requests().len();
        assert_eq!(run(&job, home.path()), Ok(json!({})));
        let requests = wanted.requests();
        assert_eq!(
            requests.len(),
            before + 1,
            "{operation}: {name} beside {url:?}"
        );
        assert!(
            requests[before]
                .header("user-agent")
                .contains("app/nstance-ec2")
        );
    }
}
