//! Services that are asked one thing: Systems Manager and Service Quotas.
//!
//! In: JSON by the API's names. Out: the same. Must not: need an SDK of its own, whose build takes
//! a minute of processor time.

use aws_config::SdkConfig;
use aws_runtime::auth::sigv4::{SCHEME_ID, SigV4AuthScheme};
use aws_runtime::auth::{SigV4OperationSigningConfig, SigningOptions};
use aws_runtime::user_agent::{ApiMetadata, UserAgentInterceptor};
use aws_sdk_ec2::config::endpoint::{DefaultResolver, Params, ResolveEndpoint};
use aws_sdk_ec2::config::http::{HttpRequest, HttpResponse};
use aws_sdk_ec2::error::{BoxError, ErrorMetadata};
use aws_sdk_ec2::primitives::DateTime;
use aws_smithy_runtime::client::orchestrator::operation::Operation as Call;
use aws_smithy_runtime_api::client::auth::static_resolver::StaticAuthSchemeOptionResolver;
use aws_smithy_runtime_api::client::auth::{
    AuthSchemeOptionResolverParams, SharedAuthScheme, SharedAuthSchemeOptionResolver,
};
use aws_smithy_runtime_api::client::identity::SharedIdentityResolver;
use aws_smithy_runtime_api::client::orchestrator::OrchestratorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponentsBuilder;
use aws_smithy_runtime_api::client::runtime_plugin::StaticRuntimePlugin;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::Layer;
use aws_types::SigningName;
use aws_types::region::SigningRegion;
use aws_types::service_config::ServiceConfigKey;
use serde_json::Value;

use super::failure::failure;
use super::read::{self, Members, Misfit};
use super::write;
use crate::{ApiError, Operation};

/// A client for one operation of a service that speaks AWS's JSON 1.1.
pub(super) struct Client(Call<Value, Value, ErrorMetadata>);

/// How a service is called.
struct Service {
    /// Its name in hosts and signatures.
    name: &'static str,
    /// What the environment and `~/.aws/config` call it: `AWS_ENDPOINT_URL_SSM`.
    id: &'static str,
    /// What it calls the operation, in a header.
    target: &'static str,
    operation: Operation,
}

impl Client {
    /// `GetParameter` of Systems Manager.
    pub(super) async fn ssm(config: &SdkConfig) -> Result<Self, BoxError> {
        let service = Service {
            name: "ssm",
            id: "SSM",
            target: "AmazonSSM.GetParameter",
            operation: Operation::GetParameter,
        };
        service.client(config).await
    }

    /// `GetServiceQuota` of Service Quotas.
    pub(super) async fn service_quotas(config: &SdkConfig) -> Result<Self, BoxError> {
        let service = Service {
            name: "servicequotas",
            id: "Service Quotas",
            target: "ServiceQuotasV20190624.GetServiceQuota",
            operation: Operation::GetServiceQuota,
        };
        service.client(config).await
    }
}

/// Makes the call.
pub(super) async fn call(
    client: &Client,
    operation: Operation,
    input: &Value,
) -> Result<Value, ApiError> {
    check(operation, input)?;
    let mut output = client.0.invoke(input.clone()).await.map_err(failure)?;
    if let Some(time) = output.pointer_mut("/Parameter/LastModifiedDate") {
        *time = moment(time);
    }
    Ok(output)
}

/// Refuses what isn't of the operation's input.
fn check(operation: Operation, input: &Value) -> Result<(), Misfit> {
    let mut members = Members::of(input)?;
    let (texts, flags): (&[_], &[_]) = match operation {
        Operation::GetParameter => (&["Name"], &["WithDecryption"]),
        _ => (&["ContextId", "QuotaCode", "ServiceCode"], &[]),
    };
    for name in texts {
        members.get(name, read::text)?;
    }
    for name in flags {
        members.get(name, read::flag)?;
    }
    members.end(operation.name())
}

/// Seconds since 1970 as in RFC 3339.
fn moment(seconds: &Value) -> Value {
    seconds.as_f64().map_or(Value::Null, |seconds| {
        write::time(&DateTime::from_secs_f64(seconds))
    })
}

impl Service {
    async fn client(self, config: &SdkConfig) -> Result<Client, BoxError> {
        let endpoint = self.endpoint(config).await?;
        let mut call = Call::builder()
            .service_name(self.id)
            .operation_name(self.operation.name())
            .endpoint_url(&endpoint)
            .no_retry()
            .with_connection_poisoning()
            .interceptor(UserAgentInterceptor::new())
            .runtime_plugin(self.signature(config));
        if let Some(version) = config.behavior_version() {
            call = call.behavior_version(version);
        }
        if let Some(timeouts) = config.timeout_config() {
            call = call.timeout_config(timeouts.clone());
        }
        if let Some(http) = config.http_client() {
            call = call.http_client(http);
        }
        if let Some(sleep) = config.sleep_impl() {
            call = call.sleep_impl(sleep);
        }
        let target = self.target;
        let call = call
            .serializer(move |input: Value| request(target, &input))
            .deserializer(response);
        Ok(Client(call.build()))
    }

    /// Who signs requests, and as whom.
    fn signature(&self, config: &SdkConfig) -> StaticRuntimePlugin {
        let mut layer = Layer::new(self.name);
        layer.store_put(AuthSchemeOptionResolverParams::new(()));
        layer.store_put(SigV4OperationSigningConfig {
            region: config.region().cloned().map(SigningRegion::from),
            region_set: None,
            name: Some(SigningName::from_static(self.name)),
            signing_options: SigningOptions::default(),
        });
        layer.store_put(ApiMetadata::new(self.name, env!("CARGO_PKG_VERSION")));
        layer.store_or_unset(config.app_name().cloned());
        let mut components = RuntimeComponentsBuilder::new(self.name);
        components
            .push_auth_scheme(SharedAuthScheme::new(SigV4AuthScheme::new()))
            .set_auth_scheme_option_resolver(Some(SharedAuthSchemeOptionResolver::new(
                StaticAuthSchemeOptionResolver::new(vec![SCHEME_ID]),
            )));
        if let Some(credentials) = config.credentials_provider() {
            components.set_identity_resolver(SCHEME_ID, SharedIdentityResolver::new(credentials));
        }
        StaticRuntimePlugin::new()
            .with_config(layer.freeze())
            .with_runtime_components(components)
    }

    /// Where the service is: as the options say, else as environment and profile do, else where
    /// AWS has it.
    async fn endpoint(&self, config: &SdkConfig) -> Result<String, BoxError> {
        let mut given = config.endpoint_url().map(str::to_owned);
        if !config.get_origin("endpoint_url").is_client_config() {
            let key = ServiceConfigKey::builder()
                .service_id(self.id)
                .env("AWS_ENDPOINT_URL")
                .profile("endpoint_url")
                .build()?;
            let own = config.service_config();
            given = own.and_then(|own| own.load_config(key)).or(given);
        }
        if let Some(url) = given {
            return Ok(url);
        }
        let params = Params::builder()
            .set_region(config.region().map(ToString::to_string))
            .set_use_fips(config.use_fips())
            .set_use_dual_stack(config.use_dual_stack())
            .build()?;
        let ec2 = DefaultResolver::new().resolve_endpoint(&params).await?;
        Ok(beside_ec2(ec2.url(), self.name))
    }
}

/// The address of another service. The rules of these services are those of EC2, in every partition,
/// with FIPS and with IPv6.
fn beside_ec2(url: &str, service: &str) -> String {
    url.replacen("https://ec2", &format!("https://{service}"), 1)
}

fn request(target: &'static str, input: &Value) -> Result<HttpRequest, BoxError> {
    let mut request = HttpRequest::new(SdkBody::from(input.to_string()));
    request.set_method("POST")?;
    let headers = request.headers_mut();
    headers.insert("content-type", "application/x-amz-json-1.1");
    headers.insert("x-amz-target", target);
    Ok(request)
}

fn response(answer: &HttpResponse) -> Result<Value, OrchestratorError<ErrorMetadata>> {
    let body = answer.body().bytes().unwrap_or_default();
    if !answer.status().is_success() {
        let kind = answer.headers().get("x-amzn-errortype");
        return Err(OrchestratorError::operation(refusal(kind, body)));
    }
    if body.is_empty() {
        return Ok(write::nothing());
    }
    serde_json::from_slice(body).map_err(|error| OrchestratorError::response(error.into()))
}

/// What the service says of an error; nothing if it isn't the service that says it.
fn refusal(kind: Option<&str>, body: &[u8]) -> ErrorMetadata {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let member = |names: [&str; 2]| names.iter().find_map(|name| body[*name].as_str());
    let mut metadata = ErrorMetadata::builder();
    if let Some(kind) = kind.or_else(|| member(["__type", "code"])) {
        metadata = metadata.code(code(kind));
    }
    if let Some(message) = member(["message", "Message"]) {
        metadata = metadata.message(message);
    }
    metadata.build()
}

/// A code without the namespace before it and the address after it.
fn code(kind: &str) -> &str {
    let kind = kind.split(':').next().unwrap_or_default();
    kind.rsplit('#').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_has_the_code_of_header_or_body() {
        for (header, body, code, message) in [
            (
                None,
                r#"{"__type": "com.amazonaws.ssm#ParameterNotFound", "message": "None."}"#,
                Some("ParameterNotFound"),
                Some("None."),
            ),
            (
                Some("NoSuchResourceException:http://internal.amazon.com/coral/x#y"),
                r#"{"Message": "None."}"#,
                Some("NoSuchResourceException"),
                Some("None."),
            ),
            (None, "<html>Forbidden</html>", None, None),
            (None, "[]", None, None),
        ] {
            let refusal = refusal(header, body.as_bytes());
            assert_eq!((refusal.code(), refusal.message()), (code, message));
        }
    }

    #[test]
    fn services_are_beside_ec2() {
        for (ec2, ssm) in [
            (
                "https://ec2.eu-central-1.amazonaws.com",
                "https://ssm.eu-central-1.amazonaws.com",
            ),
            (
                "https://ec2-fips.us-gov-east-1.api.aws",
                "https://ssm-fips.us-gov-east-1.api.aws",
            ),
        ] {
            assert_eq!(beside_ec2(ec2, "ssm"), ssm);
        }
    }

    #[test]
    fn only_what_the_operation_takes_is_sent() {
        for (input, message) in [
            (json!({"Name": "a", "WithDecryption": true}), None),
            (json!({"Name": null}), None),
            (
                json!({"Name": 1}),
                Some("`Name`: expected a string, found `1`"),
            ),
            (
                json!({"Names": "a"}),
                Some("GetParameter has no member `Names`"),
            ),
        ] {
            let found = check(Operation::GetParameter, &input);
            let found = found.map_err(|misfit| ApiError::from(misfit).message);
            assert_eq!(found.err().as_deref(), message, "{input}");
        }
    }

    #[test]
    fn times_are_in_rfc_3339() {
        assert_eq!(
            moment(&json!(1_769_850_000.25)),
            json!("2026-01-31T09:00:00.25Z")
        );
    }
}
