//! The one call to Resource Manager, version 3: which permissions the caller has.
//!
//! In: a project and permissions. Out: those of them that the caller has. Must not: try twice. It is
//! made without an SDK, since Resource Manager's is far larger than one call.

use google_cloud_auth::credentials::CacheableResource;
use google_cloud_gax::error::rpc::Status;
use http::Extensions;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Settings;
use super::failure::{credentials_failure, refused, transport_failure, unconnected};
use super::input::invalid;
use crate::{ApiError, ApiErrorKind};

const ENDPOINT: &str = "https://cloudresourcemanager.googleapis.com";

/// The resource of the request.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct TestIamPermissions {
    #[serde(default)]
    permissions: Vec<String>,
}

pub(super) fn client(settings: &Settings) -> Result<reqwest::Client, ApiError> {
    reqwest::Client::builder()
        .connect_timeout(settings.connect_timeout)
        .timeout(settings.connect_timeout + settings.request_timeout)
        .user_agent(&settings.app_name)
        .build()
        .map_err(|error| unconnected(&error))
}

pub(super) async fn test_iam_permissions(
    client: &reqwest::Client,
    settings: &Settings,
    resource: &str,
    body: &TestIamPermissions,
) -> Result<Value, ApiError> {
    let project = resource.strip_prefix("projects/").unwrap_or_default();
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-.:_".contains(letter);
    if project.is_empty() || !project.chars().all(allowed) {
        return Err(invalid(
            "`resource`: expected a project such as `projects/my-project`".to_owned(),
        ));
    }
    let endpoint = settings.endpoint.as_deref().unwrap_or(ENDPOINT);
    let url = format!(
        "{}/v3/{resource}:testIamPermissions",
        endpoint.trim_end_matches('/')
    );
    let headers = match settings.credentials.headers(Extensions::new()).await {
        Ok(CacheableResource::New { data, .. }) => data,
        // Only an answer to a question with an entity tag.
        Ok(CacheableResource::NotModified) => http::HeaderMap::new(),
        Err(error) => return Err(credentials_failure(&error)),
    };
    let response = client.post(url).headers(headers).json(body).send().await;
    let response = response.map_err(|error| transport_failure(&error))?;
    let status = response.status();
    let body = response.bytes().await;
    let body = body.map_err(|error| transport_failure(&error))?;
    if !status.is_success() {
        let described = Status::try_from(&body).ok();
        return Err(refused(status.as_u16(), described.as_ref(), &body));
    }
    serde_json::from_slice(&body).map_err(|error| {
        let message = error.to_string();
        let mut error = ApiError::new(ApiErrorKind::Lost, ApiError::UNREADABLE_ANSWER, message);
        error.status = Some(status.as_u16());
        error
    })
}
