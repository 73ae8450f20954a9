//! The client that talks to AWS.
//!
//! In: options, operations with their input. Out: answers. May not: try twice, or know what the
//! answers are for.

mod failure;
mod generated;
mod json;
mod read;
mod runtime;
mod write;

use std::time::Duration;

use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::retry::RetryConfig;
use aws_config::sts::AssumeRoleProvider;
use aws_config::timeout::TimeoutConfig;
use aws_config::{AppName, BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_ec2::config::{RuntimeComponents, SharedHttpClient};
use aws_sdk_ec2::error::BoxError;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::{Builder, Connector, tls};
use serde_json::Value;

use self::runtime::Runtime;
use crate::{Api, ApiError, ApiErrorKind, Operation};

/// Whom to ask, as whom, and how long to wait.
///
/// What isn't said here comes from where every AWS tool takes it: environment, `~/.aws/config`,
/// `~/.aws/credentials`.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The region, such as `eu-central-1`.
    pub region: String,
    /// The profile whose credentials are used. As with other tools, it goes before credentials of
    /// the environment. Without it credentials are looked for in all the usual places.
    pub profile: Option<String>,
    /// A role to assume, with the credentials that were found.
    pub role_arn: Option<String>,
    /// Where all services are, in place of AWS's own addresses.
    pub endpoint_url: Option<String>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long an answer may take once a request is sent.
    pub request_timeout: Duration,
    /// What AWS's logs call the program, in the user agent and as the session of an assumed role:
    /// letters, digits and hyphens.
    pub app_name: String,
}

impl ClientOptions {
    /// A region of AWS, with the credentials of the surroundings.
    pub fn new(region: impl Into<String>) -> Self {
        Self {
            region: region.into(),
            profile: None,
            role_arn: None,
            endpoint_url: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_mins(1),
            app_name: env!("CARGO_PKG_NAME").to_owned(),
        }
    }
}

/// An [`Api`] that is AWS. It may be used from many threads at once.
pub struct Client {
    runtime: Runtime,
    clients: Clients,
    /// Where credentials are looked for, for messages.
    sought: String,
}

/// A client for each service; the generated modules have the same names.
struct Clients {
    ec2: aws_sdk_ec2::Client,
    elastic_load_balancing: aws_sdk_elasticloadbalancingv2::Client,
    service_quotas: json::Client,
    ssm: json::Client,
    sts: aws_sdk_sts::Client,
}

impl Clients {
    async fn new(config: &SdkConfig) -> Result<Self, BoxError> {
        Ok(Self {
            ec2: aws_sdk_ec2::Client::new(config),
            elastic_load_balancing: aws_sdk_elasticloadbalancingv2::Client::new(config),
            service_quotas: json::Client::service_quotas(config).await?,
            ssm: json::Client::ssm(config).await?,
            sts: aws_sdk_sts::Client::new(config),
        })
    }
}

impl Client {
    /// Reads the configuration that every AWS tool has. Nothing is sent: credentials are looked for
    /// by the first call.
    pub fn connect(options: &ClientOptions) -> Result<Self, ApiError> {
        if let Some(url) = &options.endpoint_url {
            check_url(url)?;
        }
        let app_name = AppName::new(options.app_name.clone())
            .map_err(|error| invalid(format!("the name `{}`: {error}", options.app_name)))?;
        let runtime = Runtime::start()
            .map_err(|error| invalid(format!("no thread for the client: {error}")))?;
        let clients = runtime
            .block_on(async { Clients::new(&load(options, app_name).await).await })
            .map_err(|error| invalid(format!("no address for the client: {error}")))?;
        Ok(Self {
            runtime,
            clients,
            sought: sought(options),
        })
    }
}

impl Api for Client {
    fn call(&self, operation: Operation, input: &Value) -> Result<Value, ApiError> {
        let call = generated::call(&self.clients, operation, input);
        self.runtime.block_on(call).map_err(|mut error| {
            if error.code == ApiError::CREDENTIALS_NOT_FOUND {
                error.message = format!("{}; {}", self.sought, error.message);
            }
            error
        })
    }
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ApiErrorKind::Input, ApiError::INVALID_INPUT, message)
}

/// An address that the SDKs couldn't use would be told with the first call only, and badly.
fn check_url(url: &str) -> Result<(), ApiError> {
    let host = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"))
        .map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match host {
        Some(host) if !host.is_empty() && !host.contains(char::is_whitespace) => Ok(()),
        _ => Err(invalid(
            "the endpoint isn't a URL such as `https://ec2.example.com`".to_owned(),
        )),
    }
}

/// What all services' clients have in common.
async fn load(options: &ClientOptions, app_name: AppName) -> SdkConfig {
    let version = BehaviorVersion::v2026_01_12();
    let region = Region::new(options.region.clone());
    let http = http_client();
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.request_timeout)
        // An answer that trickles in has an end, too.
        .operation_timeout(options.connect_timeout + 2 * options.request_timeout)
        .build();
    let mut loader = aws_config::defaults(version)
        .region(region.clone())
        .http_client(http.clone())
        .timeout_config(timeouts)
        .retry_config(RetryConfig::disabled())
        .app_name(app_name)
        .credentials_provider(base_credentials(options, region, http).await);
    if let Some(profile) = &options.profile {
        loader = loader.profile_name(profile);
    }
    if let Some(url) = &options.endpoint_url {
        loader = loader.endpoint_url(url);
    }
    let config = loader.load().await;
    let (Some(role), Some(base)) = (&options.role_arn, config.credentials_provider()) else {
        return config;
    };
    let assumed = AssumeRoleProvider::builder(role)
        .session_name(&options.app_name)
        .configure(&config)
        .build_from_provider(base)
        .await;
    config
        .into_builder()
        .credentials_provider(SharedCredentialsProvider::new(assumed))
        .build()
}

/// Where credentials come from. What they are fetched with may be tried again, since that changes
/// nothing; so the clients' settings don't hold for it.
async fn base_credentials(
    options: &ClientOptions,
    region: Region,
    http: SharedHttpClient,
) -> SharedCredentialsProvider {
    let surroundings = ProviderConfig::default()
        .with_region(Some(region.clone()))
        .with_http_client(http);
    match &options.profile {
        Some(profile) => SharedCredentialsProvider::new(
            ProfileFileCredentialsProvider::builder()
                .configure(&surroundings)
                .profile_name(profile)
                .build(),
        ),
        None => SharedCredentialsProvider::new(
            DefaultCredentialsChain::builder()
                .configure(surroundings)
                .region(region)
                .build()
                .await,
        ),
    }
}

/// TLS by rustls with ring and the system's certificates; proxies as the environment says
/// (`HTTPS_PROXY`, `NO_PROXY`).
fn http_client() -> SharedHttpClient {
    let mut builder = Builder::new();
    // Before the other side closes them: a request that meets the end of its connection is lost.
    builder.set_pool_idle_timeout(Some(Some(Duration::from_secs(15))));
    builder.build_with_connector_fn(|settings, components| {
        let mut connector = Connector::builder().proxy_config(ProxyConfig::from_env());
        connector
            .set_connector_settings(settings.cloned())
            .set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
        connector
            .tls_provider(tls::Provider::Rustls(
                tls::rustls_provider::CryptoMode::Ring,
            ))
            .build()
    })
}

fn sought(options: &ClientOptions) -> String {
    let mut text = match (&options.profile, std::env::var("AWS_PROFILE")) {
        (Some(profile), _) => format!("no credentials from the profile `{profile}` of ~/.aws"),
        (None, Ok(profile)) if !profile.is_empty() => format!(
            "no credentials in the environment or in the profile `{profile}` of ~/.aws, which \
             AWS_PROFILE names"
        ),
        _ => "no credentials in the environment (AWS_ACCESS_KEY_ID) or in ~/.aws (AWS_PROFILE), \
              and none from a web identity, the container or the instance"
            .to_owned(),
    };
    if let Some(role) = &options.role_arn {
        text.push_str(&format!(" that can assume the role `{role}`"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_urls() {
        for (url, fits) in [
            ("http://127.0.0.1:5000", true),
            ("https://ec2.example.com/", true),
            ("ec2.example.com", false),
            ("https://", false),
            ("https://a b", false),
        ] {
            assert_eq!(check_url(url).is_ok(), fits, "{url}");
        }
    }

    #[test]
    fn a_name_that_user_agents_cannot_hold_is_refused() {
        let mut options = ClientOptions::new("eu-central-1");
        options.app_name = "a b".to_owned();
        let error = Client::connect(&options).err().unwrap();
        assert_eq!(error.kind, ApiErrorKind::Input);
    }
}
