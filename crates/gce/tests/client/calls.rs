//! Every operation: what it sends, and that its answer comes back.

use nstance_gce::Operation;
use serde_json::{Value, json};

use crate::child::Job;
use crate::server::{Answer, Request, Server};

/// A call, and the request that it makes.
struct Case {
    operation: Operation,
    input: Value,
    line: &'static str,
    query: &'static [(&'static str, &'static str)],
}

fn case(
    operation: Operation,
    input: Value,
    line: &'static str,
    query: &'static [(&'static str, &'static str)],
) -> Case {
    Case {
        operation,
        input,
        line,
        query,
    }
}

const ID: &str = "6b1f5e5c-8a4e-4f0e-9d51-0f6f2f6d2c11";
const REQUEST_ID: &[(&str, &str)] = &[("requestId", ID)];
const PAGE: &[(&str, &str)] = &[
    ("filter", "labels.team = \"a\""),
    ("maxResults", "50"),
    ("pageToken", "t/1"),
];

/// An input in the zone `z`, for the instance `i`.
fn instance(more: Value) -> Value {
    with(json!({"project": "p", "zone": "z", "instance": "i"}), more)
}

fn with(mut input: Value, more: Value) -> Value {
    let Value::Object(more) = more else {
        panic!("not an object");
    };
    input.as_object_mut().unwrap().extend(more);
    input
}

fn change(body: &Value) -> Value {
    instance(json!({"requestId": ID, "body": body}))
}

fn page(input: Value) -> Value {
    let page = json!({
        "filter": "labels.team = \"a\"", "maxResults": 50, "pageToken": "t/1", "orderBy": null,
    });
    with(input, page)
}

fn cases() -> Vec<Case> {
    let zone = json!({"project": "p", "zone": "z"});
    let region = json!({"project": "p", "region": "r"});
    let group = json!({"project": "p", "zone": "z", "instanceGroup": "g"});
    let endpoints = json!({"project": "p", "zone": "z", "networkEndpointGroup": "n"});
    let members =
        json!({"requestId": ID, "body": {"instances": [{"instance": "zones/z/instances/i"}]}});
    let attached =
        json!({"requestId": ID, "body": {"networkEndpoints": [{"instance": "i", "port": 80}]}});
    let health = json!({"backendService": "b", "body": {"group": "zones/z/instanceGroups/g"}});
    vec![
        case(
            Operation::InstancesInsert,
            with(
                zone.clone(),
                json!({"requestId": ID, "body": {"name": "i", "labels": {"team": "a"}}}),
            ),
            "POST /compute/v1/projects/p/zones/z/instances",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesGet,
            instance(json!({})),
            "GET /compute/v1/projects/p/zones/z/instances/i",
            &[],
        ),
        case(
            Operation::InstancesList,
            page(zone.clone()),
            "GET /compute/v1/projects/p/zones/z/instances",
            PAGE,
        ),
        case(
            Operation::InstancesAggregatedList,
            page(json!({"project": "p"})),
            "GET /compute/v1/projects/p/aggregated/instances",
            PAGE,
        ),
        case(
            Operation::InstancesDelete,
            instance(json!({"requestId": ID})),
            "DELETE /compute/v1/projects/p/zones/z/instances/i",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesStart,
            instance(json!({"requestId": ID})),
            "POST /compute/v1/projects/p/zones/z/instances/i/start",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesStop,
            instance(json!({"requestId": ID})),
            "POST /compute/v1/projects/p/zones/z/instances/i/stop",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesSetLabels,
            change(&json!({"labelFingerprint": "42WmSpB8rSM=", "labels": {"a": "b"}})),
            "POST /compute/v1/projects/p/zones/z/instances/i/setLabels",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesSetMetadata,
            change(&json!({"fingerprint": "z-1_Dc7bRwM=", "items": [{"key": "k", "value": "v"}]})),
            "POST /compute/v1/projects/p/zones/z/instances/i/setMetadata",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesSetTags,
            change(&json!({"fingerprint": "42WmSpB8rSM=", "items": ["web"]})),
            "POST /compute/v1/projects/p/zones/z/instances/i/setTags",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesSetScheduling,
            change(&json!({"automaticRestart": false, "onHostMaintenance": "TERMINATE"})),
            "POST /compute/v1/projects/p/zones/z/instances/i/setScheduling",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesSetServiceAccount,
            change(&json!({"email": "a@p.iam.gserviceaccount.com", "scopes": ["s"]})),
            "POST /compute/v1/projects/p/zones/z/instances/i/setServiceAccount",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesSetMachineType,
            change(&json!({"machineType": "zones/z/machineTypes/e2-small"})),
            "POST /compute/v1/projects/p/zones/z/instances/i/setMachineType",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesSetMinCpuPlatform,
            change(&json!({"minCpuPlatform": "Intel Ice Lake"})),
            "POST /compute/v1/projects/p/zones/z/instances/i/setMinCpuPlatform",
            REQUEST_ID,
        ),
        case(
            Operation::InstancesSetDeletionProtection,
            with(
                zone.clone(),
                json!({"resource": "i", "deletionProtection": false, "requestId": ID}),
            ),
            "POST /compute/v1/projects/p/zones/z/instances/i/setDeletionProtection",
            &[("deletionProtection", "false"), ("requestId", ID)],
        ),
        case(
            Operation::InstancesUpdateShieldedInstanceConfig,
            change(&json!({"enableSecureBoot": true})),
            "PATCH /compute/v1/projects/p/zones/z/instances/i/updateShieldedInstanceConfig",
            REQUEST_ID,
        ),
        case(
            Operation::ZoneOperationsGet,
            with(zone, json!({"operation": "operation-1"})),
            "GET /compute/v1/projects/p/zones/z/operations/operation-1",
            &[],
        ),
        case(
            Operation::ImagesGet,
            json!({"project": "debian-cloud", "image": "debian-12"}),
            "GET /compute/v1/projects/debian-cloud/global/images/debian-12",
            &[],
        ),
        case(
            Operation::ImagesGetFromFamily,
            json!({"project": "debian-cloud", "family": "debian-12"}),
            "GET /compute/v1/projects/debian-cloud/global/images/family/debian-12",
            &[],
        ),
        case(
            Operation::ImagesList,
            page(json!({"project": "p"})),
            "GET /compute/v1/projects/p/global/images",
            PAGE,
        ),
        case(
            Operation::SubnetworksGet,
            with(
                region.clone(),
                json!({"subnetwork": "s", "views": "WITH_UTILIZATION"}),
            ),
            "GET /compute/v1/projects/p/regions/r/subnetworks/s",
            &[("views", "WITH_UTILIZATION")],
        ),
        case(
            Operation::RegionsGet,
            region.clone(),
            "GET /compute/v1/projects/p/regions/r",
            &[],
        ),
        case(
            Operation::InstanceGroupsAddInstances,
            with(group.clone(), members.clone()),
            "POST /compute/v1/projects/p/zones/z/instanceGroups/g/addInstances",
            REQUEST_ID,
        ),
        case(
            Operation::InstanceGroupsRemoveInstances,
            with(group.clone(), members),
            "POST /compute/v1/projects/p/zones/z/instanceGroups/g/removeInstances",
            REQUEST_ID,
        ),
        case(
            Operation::InstanceGroupsListInstances,
            page(with(group, json!({"body": {"instanceState": "ALL"}}))),
            "POST /compute/v1/projects/p/zones/z/instanceGroups/g/listInstances",
            PAGE,
        ),
        case(
            Operation::NetworkEndpointGroupsAttachNetworkEndpoints,
            with(endpoints.clone(), attached.clone()),
            "POST /compute/v1/projects/p/zones/z/networkEndpointGroups/n/attachNetworkEndpoints",
            REQUEST_ID,
        ),
        case(
            Operation::NetworkEndpointGroupsDetachNetworkEndpoints,
            with(endpoints.clone(), attached),
            "POST /compute/v1/projects/p/zones/z/networkEndpointGroups/n/detachNetworkEndpoints",
            REQUEST_ID,
        ),
        case(
            Operation::NetworkEndpointGroupsListNetworkEndpoints,
            page(with(endpoints, json!({"body": {"healthStatus": "SHOW"}}))),
            "POST /compute/v1/projects/p/zones/z/networkEndpointGroups/n/listNetworkEndpoints",
            PAGE,
        ),
        case(
            Operation::BackendServicesList,
            page(json!({"project": "p"})),
            "GET /compute/v1/projects/p/global/backendServices",
            PAGE,
        ),
        case(
            Operation::BackendServicesGetHealth,
            with(json!({"project": "p"}), health.clone()),
            "POST /compute/v1/projects/p/global/backendServices/b/getHealth",
            &[],
        ),
        case(
            Operation::RegionBackendServicesList,
            page(region.clone()),
            "GET /compute/v1/projects/p/regions/r/backendServices",
            PAGE,
        ),
        case(
            Operation::RegionBackendServicesGetHealth,
            with(region, health),
            "POST /compute/v1/projects/p/regions/r/backendServices/b/getHealth",
            &[],
        ),
        case(
            Operation::ProjectsTestIamPermissions,
            json!({"resource": "projects/p", "body": {"permissions": ["compute.instances.get"]}}),
            "POST /v3/projects/p:testIamPermissions",
            &[],
        ),
    ]
}

/// Answers with members that the SDK knows and some that it doesn't.
fn answer(request: &Request) -> Answer {
    let kind = if request.line.starts_with("GET") {
        json!({"kind": "compute#thing", "id": "12345678901234567890", "newMember": {"a": [1]}})
    } else {
        json!({"kind": "compute#operation", "progress": 0, "newMember": null, "status": "NEWER"})
    };
    Answer::json(kind)
}

#[test]
fn every_operation_sends_its_request_and_gives_the_answer() {
    let cases = cases();
    let tried: Vec<Operation> = cases.iter().map(|case| case.operation).collect();
    assert_eq!(tried, Operation::ALL);
    let server = Server::start(answer);
    let home = tempfile::tempdir().unwrap();
    let mut job = Job::call(&server.url, Operation::RegionsGet, json!({}));
    job.calls = cases
        .iter()
        .map(|case| (case.operation.name().to_owned(), case.input.clone()))
        .collect();
    let answers = job.run(home.path());
    let requests = server.requests();
    assert_eq!(requests.len(), cases.len());
    for ((case, answered), request) in cases.iter().zip(answers).zip(&requests) {
        let operation = case.operation;
        assert_eq!(request.line, case.line, "{operation}");
        let mut query: Vec<(&str, &str)> = request
            .query
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        query.sort_unstable();
        assert_eq!(query, case.query, "{operation}");
        if let Some(body) = case.input.get("body") {
            let sent: Value = serde_json::from_str(&request.body).unwrap();
            assert_eq!(&sent, body, "{operation}");
        } else {
            assert!(["", "{}"].contains(&request.body.as_str()), "{operation}");
        }
        assert_eq!(request.header("authorization"), "", "{operation}");
        assert_eq!(request.header("user-agent"), "nstance-test", "{operation}");
        let Answer::Full(_, _, given) = answer(request) else {
            panic!("no body");
        };
        let given: Value = serde_json::from_str(&given).unwrap();
        assert_eq!(answered, Ok(given), "{operation}");
    }
}

#[test]
fn answers_keep_every_value() {
    let instance = json!({
        "id": "7", "name": "i", "status": "RUNNING", "creationTimestamp": "2026-01-31T09:00:00.000-08:00",
        "canIpForward": false, "labels": {"team": "a"}, "labelFingerprint": "42WmSpB8rSM=",
        "tags": {"fingerprint": "z-1_Dc7bRwM=", "items": ["web"]},
        "metadata": {"fingerprint": "AAAA", "items": [{"key": "k", "value": "ä\n"}], "kind": "compute#metadata"},
        "disks": [{"diskSizeGb": "10", "index": 0, "boot": true, "type": "PERSISTENT"}],
        "networkInterfaces": [{"networkIP": "10.0.0.2", "accessConfigs": [{"natIP": "1.2.3.4"}]}],
        "scheduling": {"preemptible": false, "automaticRestart": true},
    });
    let listed = json!({
        "kind": "compute#instanceAggregatedList",
        "items": {
            "zones/z": {"instances": [instance]},
            "zones/y": {"warning": {"code": "NO_RESULTS_ON_PAGE", "data": [{"key": "scope", "value": "zones/y"}]}},
        },
        "nextPageToken": "t", "unreachables": ["zones/x"],
    });
    let given = listed.clone();
    let server = Server::start(move |_| Answer::json(&given));
    let home = tempfile::tempdir().unwrap();
    let input = json!({"project": "p"});
    let job = Job::call(&server.url, Operation::InstancesAggregatedList, input);
    assert_eq!(job.run(home.path()).remove(0), Ok(listed));
}

#[test]
fn an_operation_that_failed_is_an_answer() {
    let operation = json!({
        "name": "operation-1", "status": "DONE", "httpErrorStatusCode": 403,
        "error": {"errors": [{"code": "QUOTA_EXCEEDED", "message": "Quota 'CPUS' exceeded."}]},
    });
    let given = operation.clone();
    let server = Server::start(move |_| Answer::json(&given));
    let home = tempfile::tempdir().unwrap();
    let input = json!({"project": "p", "zone": "z", "operation": "operation-1"});
    let job = Job::call(&server.url, Operation::ZoneOperationsGet, input);
    assert_eq!(job.run(home.path()).remove(0), Ok(operation));
}
