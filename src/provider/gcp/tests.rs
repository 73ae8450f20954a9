//! The cloud over an API in memory: what it asks, and what it makes of the answers.
//!
//! In: answers by operation, in order. Out: observations, errors, calls. Must not: know how Compute
//! Engine behaves beyond these answers; the tests against a server do.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nstance_gce::{Api, ApiError, ApiErrorKind, Operation};
use serde_json::{Value, json};

use super::{GcpCloud, GcpOptions};
use crate::clock::{Clock, Timestamp};
use crate::provider::{
    Cloud, CloudErrorKind, CreateRequest, DeleteRequest, ImageQuery, LifecycleState, Owner,
    TargetState, UpdateRequest, WantedCapacity,
};

/// Time that only sleeping moves.
struct Sleeper(Mutex<i64>);

impl Clock for Sleeper {
    fn now(&self) -> Timestamp {
        Timestamp(*self.0.lock().unwrap())
    }

    fn sleep(&self, time: Duration) {
        *self.0.lock().unwrap() += time.as_millis() as i64;
    }
}

#[derive(Default)]
struct Script {
    answers: Mutex<HashMap<Operation, VecDeque<Result<Value, ApiError>>>>,
    calls: Mutex<Vec<(Operation, Value)>>,
}

impl Script {
    /// The next answer of an operation; the last one is given again and again.
    fn answer(
        self: &Arc<Self>,
        operation: Operation,
        answer: Result<Value, ApiError>,
    ) -> &Arc<Self> {
        let mut answers = self.answers.lock().unwrap();
        answers.entry(operation).or_default().push_back(answer);
        drop(answers);
        self
    }

    fn calls(&self) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        calls
            .iter()
            .map(|(operation, _)| operation.to_string())
            .collect()
    }

    fn input(&self, operation: Operation) -> Value {
        let calls = self.calls.lock().unwrap();
        let found = calls.iter().rev().find(|(made, _)| *made == operation);
        found.unwrap().1.clone()
    }
}

impl Api for Script {
    fn call(&self, operation: Operation, input: &Value) -> Result<Value, ApiError> {
        self.calls.lock().unwrap().push((operation, input.clone()));
        let mut answers = self.answers.lock().unwrap();
        let Some(of_operation) = answers.get_mut(&operation) else {
            panic!("{operation} isn't expected: {input}");
        };
        if of_operation.len() > 1 {
            of_operation.pop_front().unwrap()
        } else {
            of_operation[0].clone()
        }
    }
}

fn refused(code: &str, status: u16) -> Result<Value, ApiError> {
    let mut error = ApiError::new(ApiErrorKind::Refused, code, "said so");
    error.status = Some(status);
    Err(error)
}

type Answer = Result<Value, ApiError>;

#[expect(clippy::unnecessary_wraps, reason = "it is one of several answers")]
fn pending() -> Answer {
    Ok(
        json!({"name": "op-1", "zone": "https://www.googleapis.com/compute/v1/projects/p/zones/r-a", "status": "RUNNING"}),
    )
}

#[expect(clippy::unnecessary_wraps, reason = "it is one of several answers")]
fn done() -> Answer {
    Ok(json!({"name": "op-1", "zone": "r-a", "status": "DONE"}))
}

#[expect(clippy::unnecessary_wraps, reason = "it is one of several answers")]
fn failed(code: &str, status: u16) -> Answer {
    Ok(
        json!({"name": "op-1", "zone": "r-a", "status": "DONE", "httpErrorStatusCode": status,
        "error": {"errors": [{"code": code, "message": "it failed"}]}}),
    )
}

fn labels() -> BTreeMap<String, String> {
    let pairs = [
        ("nstance-managed", "true"),
        ("nstance-instance-id", "web06"),
        ("nstance-cluster-id", "c"),
        ("nstance-shard", "s"),
        ("nstance-tenant", "default"),
        ("nstance-group", "web"),
        ("nstance-slot", "0"),
    ];
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn instance(status: &str) -> Value {
    json!({
        "name": "web06", "status": status,
        "zone": "https://www.googleapis.com/compute/v1/projects/p/zones/r-a",
        "machineType": "https://www.googleapis.com/compute/v1/projects/p/zones/r-a/machineTypes/e2-small",
        "creationTimestamp": "2026-11-24T01:02:03.000-08:00",
        "labels": labels(), "labelFingerprint": "l1",
        "metadata": {"items": [{"key": "user-data", "value": "#cloud-config\n{}\n"}]},
        "networkInterfaces": [{"networkIP": "10.0.0.2", "subnetwork": "https://www.googleapis.com/compute/v1/projects/p/regions/r/subnetworks/s"}],
    })
}

fn cloud(script: &Arc<Script>, groups: &[&str]) -> GcpCloud {
    GcpCloud::new(
        Arc::clone(script) as Arc<dyn Api>,
        GcpOptions::default(),
        "p",
        "r",
        super::Named {
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            subnets: vec!["s".to_owned()],
        },
        Arc::new(Sleeper(Mutex::new(1_000_000))),
    )
}

fn create() -> CreateRequest {
    CreateRequest {
        token: "t1".into(),
        instance_id: "web06".into(),
        name: "web06".into(),
        arch: "amd64".into(),
        instance_type: "e2-small".into(),
        zone: "r-a".into(),
        subnet: Some("s".into()),
        args: serde_json::Map::new(),
        userdata: None,
        tags: labels(),
    }
}

fn change(changed: &str) -> UpdateRequest {
    UpdateRequest {
        token: "t2".into(),
        provider_id: "r-a/web06".into(),
        changed: vec![changed.to_owned()],
        restart: changed == "instance_type",
        instance_type: "e2-medium".into(),
        args: serde_json::Map::new(),
        userdata: None,
        tags: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        load_balancers: Vec::new(),
        leaves: Vec::new(),
    }
}

#[test]
fn a_creation_is_followed_to_its_end() {
    let script = Arc::new(Script::default());
    script
        .answer(Operation::InstancesInsert, pending())
        .answer(Operation::ZoneOperationsGet, pending())
        .answer(Operation::ZoneOperationsGet, refused("backendError", 503))
        .answer(Operation::ZoneOperationsGet, done())
        .answer(Operation::InstancesGet, Ok(instance("RUNNING")));
    let made = cloud(&script, &[]).create(&create()).unwrap();
    assert_eq!(made.provider_id, "r-a/web06");
    assert_eq!(made.instance_id.as_deref(), Some("web06"));
    assert_eq!(made.group.as_deref(), Some("default/web"));
    assert_eq!((made.state, made.slot), (LifecycleState::Running, Some(0)));
    assert_eq!(made.ip4.as_deref(), Some("10.0.0.2"));
    assert_eq!(made.subnet.as_deref(), Some("s"));
    assert_eq!(
        made.created_at,
        Timestamp::parse("2026-11-24T09:02:03Z").unwrap()
    );
    let attributes = made.attributes().unwrap();
    assert_eq!(attributes.instance_type, "e2-small");
    assert_eq!(attributes.userdata.as_deref(), Some("#cloud-config\n{}\n"));
    let input = script.input(Operation::InstancesInsert);
    assert_eq!(input["project"], "p");
    assert_eq!(
        input["body"]["machineType"],
        "zones/r-a/machineTypes/e2-small"
    );
    assert!(uuid::Uuid::parse_str(input["requestId"].as_str().unwrap()).is_ok());
}

#[test]
fn an_operation_that_ends_with_an_error_is_one() {
    for (end, kind) in [
        (failed("QUOTA_EXCEEDED", 403), CloudErrorKind::Quota),
        (
            failed("ZONE_RESOURCE_POOL_EXHAUSTED", 503),
            CloudErrorKind::ZoneCapacity,
        ),
        (failed("INTERNAL_ERROR", 500), CloudErrorKind::Transient),
    ] {
        let script = Arc::new(Script::default());
        script
            .answer(Operation::InstancesInsert, pending())
            .answer(Operation::ZoneOperationsGet, end)
            .answer(Operation::InstancesGet, refused("notFound", 404));
        let error = cloud(&script, &[]).create(&create()).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
    }
}

#[test]
fn an_operation_without_an_end_is_waited_for_so_long() {
    let script = Arc::new(Script::default());
    script
        .answer(Operation::InstancesInsert, pending())
        .answer(Operation::ZoneOperationsGet, pending());
    let error = cloud(&script, &[]).create(&create()).unwrap_err();
    assert_eq!(
        (error.kind, &*error.code),
        (CloudErrorKind::Ambiguous, "WaitTimeout")
    );
}

#[test]
fn a_name_that_is_taken_is_adopted_if_it_is_ours() {
    for (theirs, ours) in [(false, true), (true, false)] {
        let script = Arc::new(Script::default());
        let mut there = instance("RUNNING");
        if theirs {
            there["labels"]["nstance-shard"] = "another".into();
        }
        script
            .answer(Operation::InstancesInsert, refused("alreadyExists", 409))
            .answer(Operation::InstancesGet, Ok(there));
        let made = cloud(&script, &[]).create(&create());
        assert_eq!(made.is_ok(), ours);
        if let Err(error) = made {
            assert_eq!(error.kind, CloudErrorKind::Invalid, "{error}");
        }
    }
}

#[test]
fn a_zone_of_the_region_that_cannot_be_reached_fails_the_listing() {
    let owner = Owner {
        cluster: "c".into(),
        shard: "s".into(),
    };
    let scope = |zone: &str| {
        json!({"items": {
            "zones/r-a": {"instances": [instance("RUNNING")]},
            zone: {"warning": {"code": "UNREACHABLE"}},
            "zones/r-c": {"warning": {"code": "NO_RESULTS_ON_PAGE"}},
        }, "nextPageToken": "more"})
    };
    let script = Arc::new(Script::default());
    script.answer(
        Operation::InstancesAggregatedList,
        Ok(scope("zones/other-b")),
    );
    let page = cloud(&script, &[]).list(&owner, None).unwrap();
    assert_eq!(page.instances.len(), 1);
    assert_eq!(page.next.as_deref(), Some("more"));
    let filter = script.input(Operation::InstancesAggregatedList)["filter"].clone();
    let expected =
        "labels.nstance-managed=true AND labels.nstance-cluster-id=c AND labels.nstance-shard=s";
    assert_eq!(filter, expected);

    let script = Arc::new(Script::default());
    script.answer(Operation::InstancesAggregatedList, Ok(scope("zones/r-b")));
    let error = cloud(&script, &[]).list(&owner, None).unwrap_err();
    assert_eq!(
        (error.kind, &*error.code),
        (CloudErrorKind::Transient, "UNREACHABLE")
    );
    let script = Arc::new(Script::default());
    let listed = json!({"items": {}, "unreachables": ["projects/p/zones/r-b"]});
    script.answer(Operation::InstancesAggregatedList, Ok(listed));
    assert!(cloud(&script, &[]).list(&owner, None).is_err());
}

#[test]
fn an_old_fingerprint_is_read_again() {
    let script = Arc::new(Script::default());
    let mut changed = instance("RUNNING");
    changed["labelFingerprint"] = "l2".into();
    let mut after = changed.clone();
    after["labels"] = json!({"a": "b"});
    script
        .answer(Operation::InstancesGet, Ok(instance("RUNNING")))
        .answer(Operation::InstancesGet, Ok(changed))
        .answer(Operation::InstancesGet, Ok(after))
        .answer(
            Operation::InstancesSetLabels,
            refused("conditionNotMet", 412),
        )
        .answer(Operation::InstancesSetLabels, done());
    let updated = cloud(&script, &[]).update(&change("tags.a")).unwrap();
    assert_eq!(updated.attributes().unwrap().tags["a"], "b");
    let sent = script.input(Operation::InstancesSetLabels);
    assert_eq!(
        sent["body"],
        json!({"labels": {"a": "b"}, "labelFingerprint": "l2"})
    );
}

#[test]
fn a_type_is_changed_while_stopped() {
    let script = Arc::new(Script::default());
    let mut after = instance("RUNNING");
    after["machineType"] = "zones/r-a/machineTypes/e2-medium".into();
    script
        .answer(Operation::InstancesGet, Ok(instance("RUNNING")))
        .answer(Operation::InstancesGet, Ok(after))
        .answer(Operation::InstancesStop, done())
        .answer(Operation::InstancesSetMachineType, done())
        .answer(Operation::InstancesStart, done());
    let cloud = cloud(&script, &[]);
    cloud.update(&change("instance_type")).unwrap();
    let calls = [
        "instances.get",
        "instances.stop",
        "instances.setMachineType",
        "instances.start",
        "instances.get",
    ];
    assert_eq!(script.calls(), calls);
    // What is done already isn't done again.
    cloud.update(&change("instance_type")).unwrap();
    assert_eq!(
        script.calls()[calls.len()..],
        ["instances.get", "instances.get"]
    );
}

#[test]
fn what_is_gone_is_deleted() {
    let script = Arc::new(Script::default());
    script.answer(Operation::InstancesDelete, refused("notFound", 404));
    let request = DeleteRequest {
        token: "t".into(),
        provider_id: "r-a/web06".into(),
        drain_timeout_ms: 0,
        load_balancers: Vec::new(),
        until_gone: false,
    };
    cloud(&script, &[]).delete(&request).unwrap();
}

#[test]
fn health_is_that_of_the_backend_services() {
    let group = "https://www.googleapis.com/compute/v1/projects/p/zones/r-a/instanceGroups/lb";
    let path = |name: &str| {
        format!("https://www.googleapis.com/compute/v1/projects/p/zones/r-a/instances/{name}")
    };
    let script = Arc::new(Script::default());
    script
        .answer(Operation::InstanceGroupsListInstances, Ok(json!({"items": [
            {"instance": path("a"), "status": "RUNNING"}, {"instance": path("b")}, {"instance": path("c")},
        ]})))
        .answer(Operation::BackendServicesList, Ok(json!({"items": [
            {"name": "web", "backends": [{"group": group}]}, {"name": "other", "backends": []},
        ]})))
        .answer(Operation::RegionBackendServicesList, Ok(json!({})))
        .answer(Operation::BackendServicesGetHealth, Ok(json!({"healthStatus": [
            {"instance": path("a"), "healthState": "HEALTHY"},
            {"instance": path("b"), "healthState": "UNHEALTHY"},
        ]})));
    let ids = ["r-a/a", "r-a/b", "r-a/c", "r-a/d"].map(str::to_owned);
    let health = cloud(&script, &[])
        .target_health(&ids, &["lb".to_owned()])
        .unwrap();
    let states: Vec<_> = health.iter().map(|health| health.state).collect();
    let expected = [
        TargetState::Healthy,
        TargetState::Unhealthy,
        TargetState::Initial,
        TargetState::Absent,
    ];
    assert_eq!(states, expected);
    assert_eq!(
        health[1].reason.as_deref(),
        Some("the health check of `web` fails")
    );
}

#[test]
fn images_are_found_by_family_or_by_filters() {
    let image = |name: &str, state: Value| {
        json!({"name": name, "selfLink": format!("https://www.googleapis.com/compute/v1/projects/d/global/images/{name}"),
            "creationTimestamp": "2026-11-01T00:00:00.000-07:00", "status": "READY", "family": "debian-13", "deprecated": state})
    };
    let script = Arc::new(Script::default());
    script
        .answer(Operation::ImagesGetFromFamily, Ok(image("debian-13-v3", Value::Null)))
        .answer(Operation::ImagesList, Ok(json!({"items": [
            image("debian-13-v1", json!({"state": "DEPRECATED"})), image("debian-13-v2", Value::Null), image("other", Value::Null),
        ]})));
    let cloud = cloud(&script, &[]);
    let mut query = ImageQuery {
        filters: Vec::new(),
        owners: Vec::new(),
        family: Some("debian-13".into()),
        project: Some("d".into()),
        ssm: None,
        include_deprecated: false,
        sort: crate::config::model::ImageSort::Name,
        order: crate::config::model::ImageOrder::Ascending,
    };
    let ids = |query: &ImageQuery| -> Vec<String> {
        cloud
            .find_images(query)
            .unwrap()
            .into_iter()
            .map(|image| image.id)
            .collect()
    };
    assert_eq!(ids(&query), ["projects/d/global/images/debian-13-v3"]);
    query.filters.push(crate::config::model::ImageFilter {
        name: "name".into(),
        values: vec!["debian-*".into()],
    });
    assert_eq!(ids(&query), ["projects/d/global/images/debian-13-v2"]);
}

#[test]
fn free_addresses_are_those_that_no_instance_has() {
    let script = Arc::new(Script::default());
    script
        .answer(
            Operation::SubnetworksGet,
            Ok(json!({"name": "s", "ipCidrRange": "10.0.0.0/24"})),
        )
        .answer(Operation::SubnetworksGet, refused("notFound", 404))
        .answer(
            Operation::InstancesAggregatedList,
            Ok(json!({"items": {"zones/r-a": {"instances": [instance("RUNNING")]}}})),
        );
    let cloud = cloud(&script, &[]);
    let found = cloud
        .subnets(&["s".to_owned(), "missing".to_owned()])
        .unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|subnet| (&*subnet.id, subnet.available))
        .collect();
    assert_eq!(found, [("s", Some(256 - 4 - 1))]);
    let error = cloud.subnets(&["other/s".to_owned()]).unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::Invalid);
}

#[test]
fn quotas_are_compared_with_the_plan() {
    let script = Arc::new(Script::default());
    script.answer(Operation::RegionsGet, Ok(json!({"quotas": [
        {"metric": "CPUS", "limit": 24.0, "usage": 20.0}, {"metric": "INSTANCES", "limit": 100.0, "usage": 1.0},
    ]})));
    let wanted = [WantedCapacity {
        instance_type: "e2-standard-4".into(),
        count: 2,
        interruptible: false,
    }];
    let told = cloud(&script, &[]).limits_ahead(&wanted);
    assert_eq!(
        told,
        ["the quota CPUS of r is 24: 20 are used, and the plan needs 8 more"]
    );
}

#[test]
fn after_a_failed_operation_a_request_is_a_new_one() {
    let script = Arc::new(Script::default());
    script
        .answer(Operation::InstancesInsert, pending())
        .answer(Operation::ZoneOperationsGet, failed("INTERNAL_ERROR", 500))
        .answer(Operation::ZoneOperationsGet, done())
        .answer(Operation::InstancesGet, Ok(instance("RUNNING")));
    let cloud = cloud(&script, &[]);
    let id = || script.input(Operation::InstancesInsert)["requestId"].clone();
    cloud.create(&create()).unwrap_err();
    let first = id();
    cloud.create(&create()).unwrap();
    assert_ne!(id(), first);
}

#[test]
fn a_failure_of_an_earlier_run_is_passed_over() {
    let script = Arc::new(Script::default());
    script
        .answer(Operation::InstancesDelete, failed("INTERNAL_ERROR", 500))
        .answer(Operation::InstancesDelete, pending())
        .answer(Operation::ZoneOperationsGet, done());
    let request = DeleteRequest {
        token: "t".into(),
        provider_id: "r-a/web06".into(),
        drain_timeout_ms: 0,
        load_balancers: Vec::new(),
        until_gone: false,
    };
    cloud(&script, &[]).delete(&request).unwrap();
    assert_eq!(script.calls().len(), 3);
}
