//! How each operation is called.
//!
//! In: an operation and its input. Out: the SDK's answer as JSON. Must not: try twice, or look
//! inside answers.

use google_cloud_auth::credentials::Credentials;
use google_cloud_compute_v1::client::{
    BackendServices, Images, InstanceGroups, Instances, NetworkEndpointGroups,
    RegionBackendServices, Regions, Subnetworks,
};
use google_cloud_compute_v1::model::{
    backend_services, images, instance_groups, instances, network_endpoint_groups,
    region_backend_services, regions, subnetworks, zone_operations,
};
use google_cloud_gax::client_builder::ClientBuilder;
use google_cloud_gax::options::RequestOptionsBuilder;
use google_cloud_gax::retry_policy::NeverRetry;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::failure::{failure, unconnected};
use super::input::Input;
use super::{Settings, resource_manager};
use crate::{ApiError, ApiErrorKind, Operation};

/// A client for each of the API's collections. Each is made by its first call, since each reads the
/// system's certificates.
macro_rules! clients {
    ($($collection:ident: $client:ident),* $(,)?) => {
        pub(super) struct Clients {
            pub(super) settings: Settings,
            resource_manager: OnceCell<reqwest::Client>,
            $($collection: OnceCell<$client>,)*
        }

        impl Clients {
            pub(super) fn new(settings: Settings) -> Self {
                Self {
                    settings,
                    resource_manager: OnceCell::new(),
                    $($collection: OnceCell::new(),)*
                }
            }

            $(
                async fn $collection(&self) -> Result<&$client, ApiError> {
                    let build = async || self.configure($client::builder()).build().await;
                    let client = self.$collection.get_or_try_init(build).await;
                    client.map_err(|error| unconnected(&error))
                }
            )*
        }
    };
}

clients! {
    backend_services: BackendServices,
    images: Images,
    instance_groups: InstanceGroups,
    instances: Instances,
    network_endpoint_groups: NetworkEndpointGroups,
    region_backend_services: RegionBackendServices,
    regions: Regions,
    subnetworks: Subnetworks,
}

impl Clients {
    fn configure<F>(
        &self,
        builder: ClientBuilder<F, Credentials>,
    ) -> ClientBuilder<F, Credentials> {
        let settings = &self.settings;
        let builder = builder
            .with_credentials(settings.credentials.clone())
            .with_retry_policy(NeverRetry)
            // The SDK has one limit for both.
            .with_attempt_timeout(settings.connect_timeout + settings.request_timeout);
        match &settings.endpoint {
            Some(endpoint) => builder.with_endpoint(endpoint),
            None => builder,
        }
    }

    /// Makes one call.
    pub(super) async fn call(
        &self,
        operation: Operation,
        input: &Value,
    ) -> Result<Value, ApiError> {
        let mut input = Input::new(operation, input)?;

        /// Fills a request from the members that its fields are named after, and sends it.
        macro_rules! send {
            ($collection:ident.$method:ident, $request:path { $($field:ident),* }) => {{
                let mut request = <$request>::default();
                $(request.$field = input.take(stringify!($field))?;)*
                input.end()?;
                let call = self.$collection().await?.$method().with_request(request);
                answer(call.with_user_agent(&self.settings.app_name).send().await)
            }};
        }

        match operation {
            Operation::InstancesInsert => send!(
                instances.insert,
                instances::InsertRequest {
                    project,
                    zone,
                    request_id,
                    source_instance_template,
                    source_machine_image,
                    body
                }
            ),
            Operation::InstancesGet => send!(
                instances.get,
                instances::GetRequest {
                    project,
                    zone,
                    instance
                }
            ),
            Operation::InstancesList => send!(
                instances.list,
                instances::ListRequest {
                    project,
                    zone,
                    filter,
                    max_results,
                    order_by,
                    page_token
                }
            ),
            Operation::InstancesAggregatedList => send!(
                instances.aggregated_list,
                instances::AggregatedListRequest {
                    project,
                    filter,
                    include_all_scopes,
                    max_results,
                    order_by,
                    page_token,
                    service_project_number
                }
            ),
            Operation::InstancesDelete => send!(
                instances.delete,
                instances::DeleteRequest {
                    project,
                    zone,
                    instance,
                    no_graceful_shutdown,
                    request_id
                }
            ),
            Operation::InstancesStart => send!(
                instances.start,
                instances::StartRequest {
                    project,
                    zone,
                    instance,
                    request_id
                }
            ),
            Operation::InstancesStop => send!(
                instances.stop,
                instances::StopRequest {
                    project,
                    zone,
                    instance,
                    discard_local_ssd,
                    no_graceful_shutdown,
                    request_id
                }
            ),
            Operation::InstancesSetLabels => send!(
                instances.set_labels,
                instances::SetLabelsRequest {
                    project,
                    zone,
                    instance,
                    request_id,
                    body
                }
            ),
            Operation::InstancesSetMetadata => send!(
                instances.set_metadata,
                instances::SetMetadataRequest {
                    project,
                    zone,
                    instance,
                    request_id,
                    body
                }
            ),
            Operation::InstancesSetTags => send!(
                instances.set_tags,
                instances::SetTagsRequest {
                    project,
                    zone,
                    instance,
                    request_id,
                    body
                }
            ),
            Operation::InstancesSetScheduling => send!(
                instances.set_scheduling,
                instances::SetSchedulingRequest {
                    project,
                    zone,
                    instance,
                    request_id,
                    body
                }
            ),
            Operation::InstancesSetServiceAccount => send!(
                instances.set_service_account,
                instances::SetServiceAccountRequest {
                    project,
                    zone,
                    instance,
                    request_id,
                    body
                }
            ),
            Operation::InstancesSetMachineType => send!(
                instances.set_machine_type,
                instances::SetMachineTypeRequest {
                    project,
                    zone,
                    instance,
                    request_id,
                    body
                }
            ),
            Operation::InstancesSetMinCpuPlatform => send!(
                instances.set_min_cpu_platform,
                instances::SetMinCpuPlatformRequest {
                    project,
                    zone,
                    instance,
                    request_id,
                    body
                }
            ),
            Operation::InstancesSetDeletionProtection => send!(
                instances.set_deletion_protection,
                instances::SetDeletionProtectionRequest {
                    project,
                    zone,
                    resource,
                    deletion_protection,
                    request_id
                }
            ),
            Operation::InstancesUpdateShieldedInstanceConfig => send!(
                instances.update_shielded_instance_config,
                instances::UpdateShieldedInstanceConfigRequest {
                    project,
                    zone,
                    instance,
                    request_id,
                    body
                }
            ),
            Operation::ZoneOperationsGet => send!(
                instances.get_operation,
                zone_operations::GetRequest {
                    project,
                    zone,
                    operation
                }
            ),
            Operation::ImagesGet => send!(images.get, images::GetRequest { project, image }),
            Operation::ImagesGetFromFamily => send!(
                images.get_from_family,
                images::GetFromFamilyRequest { project, family }
            ),
            Operation::ImagesList => send!(
                images.list,
                images::ListRequest {
                    project,
                    filter,
                    max_results,
                    order_by,
                    page_token
                }
            ),
            Operation::SubnetworksGet => send!(
                subnetworks.get,
                subnetworks::GetRequest {
                    project,
                    region,
                    subnetwork,
                    views
                }
            ),
            Operation::RegionsGet => send!(regions.get, regions::GetRequest { project, region }),
            Operation::InstanceGroupsAddInstances => send!(
                instance_groups.add_instances,
                instance_groups::AddInstancesRequest {
                    project,
                    zone,
                    instance_group,
                    request_id,
                    body
                }
            ),
            Operation::InstanceGroupsRemoveInstances => send!(
                instance_groups.remove_instances,
                instance_groups::RemoveInstancesRequest {
                    project,
                    zone,
                    instance_group,
                    request_id,
                    body
                }
            ),
            Operation::InstanceGroupsListInstances => send!(
                instance_groups.list_instances,
                instance_groups::ListInstancesRequest {
                    project,
                    zone,
                    instance_group,
                    filter,
                    max_results,
                    order_by,
                    page_token,
                    body
                }
            ),
            Operation::NetworkEndpointGroupsAttachNetworkEndpoints => send!(
                network_endpoint_groups.attach_network_endpoints,
                network_endpoint_groups::AttachNetworkEndpointsRequest {
                    project,
                    zone,
                    network_endpoint_group,
                    request_id,
                    body
                }
            ),
            Operation::NetworkEndpointGroupsDetachNetworkEndpoints => send!(
                network_endpoint_groups.detach_network_endpoints,
                network_endpoint_groups::DetachNetworkEndpointsRequest {
                    project,
                    zone,
                    network_endpoint_group,
                    request_id,
                    body
                }
            ),
            Operation::NetworkEndpointGroupsListNetworkEndpoints => send!(
                network_endpoint_groups.list_network_endpoints,
                network_endpoint_groups::ListNetworkEndpointsRequest {
                    project,
                    zone,
                    network_endpoint_group,
                    filter,
                    max_results,
                    order_by,
                    page_token,
                    body
                }
            ),
            Operation::BackendServicesList => send!(
                backend_services.list,
                backend_services::ListRequest {
                    project,
                    filter,
                    max_results,
                    order_by,
                    page_token
                }
            ),
            Operation::BackendServicesGetHealth => send!(
                backend_services.get_health,
                backend_services::GetHealthRequest {
                    project,
                    backend_service,
                    body
                }
            ),
            Operation::RegionBackendServicesList => send!(
                region_backend_services.list,
                region_backend_services::ListRequest {
                    project,
                    region,
                    filter,
                    max_results,
                    order_by,
                    page_token
                }
            ),
            Operation::RegionBackendServicesGetHealth => send!(
                region_backend_services.get_health,
                region_backend_services::GetHealthRequest {
                    project,
                    region,
                    backend_service,
                    body
                }
            ),
            Operation::ProjectsTestIamPermissions => {
                let resource: String = input.take("resource")?;
                let body: Option<resource_manager::TestIamPermissions> = input.take("body")?;
                input.end()?;
                let client = self
                    .resource_manager
                    .get_or_try_init(async || resource_manager::client(&self.settings))
                    .await?;
                let body = body.unwrap_or_default();
                resource_manager::test_iam_permissions(client, &self.settings, &resource, &body)
                    .await
            }
        }
    }
}

fn answer<T: Serialize>(result: google_cloud_compute_v1::Result<T>) -> Result<Value, ApiError> {
    let answer = result.map_err(|error| failure(&error))?;
    serde_json::to_value(answer).map_err(|error| {
        let message = error.to_string();
        ApiError::new(ApiErrorKind::Lost, ApiError::UNREADABLE_ANSWER, message)
    })
}
