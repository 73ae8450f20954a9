//! The server over HTTP, checked against Google's own document.
//!
//! In: calls, as Google's client makes them. Out: Compute Engine's behaviour. Each test ends at once
//! where `NSTANCE_TEST_DISCOVERY` isn't set.
#![expect(clippy::unwrap_used, reason = "tests may panic: that is how they fail")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use nstance_gce_server::{
    Chance, Document, Fault, Habits, OPERATION_ERRORS, OperationError, Outcome, REFUSALS, Refusal,
    Rule, Server,
};

const ZONE: &str = "zones/us-central1-a";

/// A server, and calls of it.
struct Gce {
    server: Server,
}

impl Gce {
    fn start() -> Option<Self> {
        let Some(document) = Document::for_tests() else {
            eprintln!("skipped: NSTANCE_TEST_DISCOVERY isn't set");
            return None;
        };
        let server = Server::start(&document).unwrap();
        Some(Self { server })
    }

    /// A server whose operations are done at once.
    fn quick() -> Option<Self> {
        let gce = Self::start()?;
        gce.server.set_habits(Habits {
            operation: 0,
            ..Habits::default()
        });
        Some(gce)
    }

    /// A raw call: the status and the body, or none where the connection was closed.
    fn raw(&self, verb: &str, target: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let body = body.map_or_else(String::new, Value::to_string);
        let address = self.server.url();
        let address = address.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "{verb} {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some((status, serde_json::from_str(body).unwrap()))
    }

    /// A call of Compute Engine in the project.
    fn call(&self, verb: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let target = format!("/compute/v1/projects/test-project/{path}");
        self.raw(verb, &target, body)
            .expect("the connection stays open")
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.call("GET", path, None);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.call("POST", path, Some(body));
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// A call that is refused: status, reason and message.
    #[track_caller]
    fn refused(&self, verb: &str, path: &str, body: Option<&Value>) -> (u16, String, String) {
        let (status, answer) = self.call(verb, path, body);
        assert_ne!(status, 200, "{answer}");
        let error = &answer["error"];
        assert_eq!(error["code"], status);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        assert_eq!(error["message"], error["errors"][0]["message"]);
        (
            status,
            text(&error["errors"][0]["reason"]),
            text(&error["message"]),
        )
    }

    #[track_caller]
    fn insert(&self, name: &str) -> Value {
        self.post(&format!("{ZONE}/instances"), &instance(name))
    }

    /// Looks at an operation until it is done.
    fn wait(&self, operation: &Value) -> Value {
        let path = format!("{ZONE}/operations/{}", operation["name"].as_str().unwrap());
        let mut looks = (0..100).map(|_| self.get(&path));
        looks
            .find(|operation| operation["status"] == "DONE")
            .unwrap()
    }

    #[track_caller]
    fn status(&self, name: &str) -> String {
        self.server.instance(name)["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    #[track_caller]
    fn clean(&self) {
        assert_eq!(self.server.violations(), Vec::<String>::new());
    }
}

fn instance(name: &str) -> Value {
    json!({
        "name": name,
        "machineType": format!("{ZONE}/machineTypes/e2-medium"),
        "disks": [{
            "boot": true,
            "autoDelete": true,
            "initializeParams": {
                "sourceImage": "projects/debian-cloud/global/images/family/debian-12",
                "diskSizeGb": "20",
                "diskType": format!("{ZONE}/diskTypes/pd-balanced"),
            },
        }],
        "networkInterfaces": [{"subnetwork": "regions/us-central1/subnetworks/default"}],
        "labels": {"env": "test"},
        "metadata": {"items": [{"key": "user-data", "value": "#cloud-config\n"}]},
        "tags": {"items": ["web"]},
        "serviceAccounts": [{"email": "default", "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}],
    })
}

#[test]
fn an_instance_lives_and_dies_by_looks() {
    let Some(gce) = Gce::start() else { return };
    let inserted = gce.insert("a");
    assert_eq!(inserted["status"], "PENDING");
    assert_eq!(inserted["operationType"], "insert");
    let path = format!("{ZONE}/operations/{}", inserted["name"].as_str().unwrap());
    assert_eq!(gce.status("a"), "PROVISIONING");
    assert_eq!(gce.get(&path)["status"], "RUNNING");
    assert_eq!(gce.status("a"), "STAGING");
    let done = gce.get(&path);
    assert_eq!(
        (&done["status"], &done["progress"]),
        (&json!("DONE"), &json!(100))
    );
    assert_eq!(done["targetId"], gce.server.instance("a")["id"]);
    let found = gce.get(&format!("{ZONE}/instances/a"));
    assert_eq!(found["status"], "RUNNING");
    assert_eq!(found["networkInterfaces"][0]["networkIP"], "10.130.0.2");
    assert_eq!(found["disks"][0]["diskSizeGb"], "20");
    assert!(found["disks"][0].get("initializeParams").is_none());
    let by_id = gce.get(&format!(
        "{ZONE}/instances/{}",
        found["id"].as_str().unwrap()
    ));
    assert_eq!(by_id, found);
    gce.call("POST", &format!("{ZONE}/instances/a/stop"), None);
    // Looks at the instance count, too.
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(gce.get(&format!("{ZONE}/instances/a"))["status"].clone());
    }
    assert_eq!(statuses, ["STOPPING", "STOPPING", "TERMINATED"]);
    let (_, started) = gce.call("POST", &format!("{ZONE}/instances/a/start"), None);
    assert_eq!(gce.status("a"), "PROVISIONING");
    gce.wait(&started);
    assert_eq!(gce.status("a"), "RUNNING");
    let (_, deleted) = gce.call("DELETE", &format!("{ZONE}/instances/a"), None);
    assert_eq!(gce.status("a"), "STOPPING");
    assert_eq!(gce.wait(&deleted).get("error"), None);
    let (status, reason, message) = gce.refused("GET", &format!("{ZONE}/instances/a"), None);
    assert_eq!((status, &*reason), (404, "notFound"));
    assert_eq!(
        message,
        "The resource 'projects/test-project/zones/us-central1-a/instances/a' was not found"
    );
    assert!(gce.server.disks().is_empty());
    gce.clean();
}

#[test]
fn lists_have_scopes_pages_and_filters() {
    let Some(gce) = Gce::quick() else { return };
    for name in ["a", "b", "c"] {
        gce.insert(name);
    }
    gce.server.set_labels("b", &[("env", "prod")]);
    let names = |answer: &Value| -> Vec<String> {
        let items = answer["items"].as_array().into_iter().flatten();
        items
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let list = |query: &str| gce.get(&format!("{ZONE}/instances?{query}"));
    assert_eq!(names(&list("")), ["a", "b", "c"]);
    assert_eq!(names(&list("filter=labels.env%3Dprod")), ["b"]);
    assert_eq!(names(&list("filter=name+eq+%5Bab%5D")), ["a", "b"]);
    assert_eq!(
        names(&list("orderBy=creationTimestamp+desc")),
        ["c", "b", "a"]
    );
    assert_eq!(list("filter=labels.env%3Ddev").get("items"), None);
    let first = list("maxResults=2");
    assert_eq!(names(&first), ["a", "b"]);
    let token = first["nextPageToken"].as_str().unwrap();
    let second = list(&format!("maxResults=2&pageToken={token}"));
    assert_eq!(names(&second), ["c"]);
    assert_eq!(second.get("nextPageToken"), None);
    for query in [
        format!("pageToken={token}&filter=name%3Da"),
        "pageToken=x".to_owned(),
        "filter=nobody%3Da".to_owned(),
        "filter=name".to_owned(),
        "maxResults=501".to_owned(),
        "orderBy=zone".to_owned(),
    ] {
        let (status, reason, _) = gce.refused("GET", &format!("{ZONE}/instances?{query}"), None);
        assert_eq!((status, &*reason), (400, "invalid"), "{query}");
    }
    gce.server.expire_page_tokens();
    let query = format!("maxResults=2&pageToken={token}");
    assert_eq!(
        gce.refused("GET", &format!("{ZONE}/instances?{query}"), None)
            .0,
        400
    );
    let all = gce.get("aggregated/instances?maxResults=2");
    let scopes = all["items"].as_object().unwrap();
    assert_eq!(
        scopes["zones/us-central1-a"]["instances"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let warning = &scopes["zones/us-east1-b"]["warning"];
    assert_eq!(warning["code"], "NO_RESULTS_ON_PAGE");
    assert_eq!(warning["data"][0]["value"], "zones/us-east1-b");
    let token = all["nextPageToken"].as_str().unwrap();
    let rest = gce.get(&format!(
        "aggregated/instances?maxResults=2&pageToken={token}"
    ));
    assert_eq!(
        rest["items"]["zones/us-central1-a"]["instances"][0]["name"],
        "c"
    );
    gce.server.set_reachable("us-east1-b", false);
    let partial = gce.get("aggregated/instances");
    assert_eq!(
        partial["items"]["zones/us-east1-b"]["warning"]["code"],
        "UNREACHABLE"
    );
    assert_eq!(
        partial["unreachables"],
        json!(["projects/test-project/zones/us-east1-b"])
    );
    gce.server.set_habits(Habits {
        partial_success: false,
        ..Habits::default()
    });
    assert_eq!(
        gce.refused("GET", "aggregated/instances", None).1,
        "backendError"
    );
    gce.clean();
}

#[test]
fn lists_lag_behind() {
    let Some(gce) = Gce::quick() else { return };
    gce.server.set_habits(Habits {
        operation: 0,
        hidden: 2,
        lingering: 1,
        ..Habits::default()
    });
    gce.insert("a");
    let path = format!("{ZONE}/instances");
    let has = || gce.get(&path).get("items").is_some();
    assert_eq!(gce.get(&format!("{path}/a"))["name"], "a");
    assert_eq!([has(), has(), has(), has()], [false, false, true, true]);
    gce.call("DELETE", &format!("{path}/a"), None);
    assert_eq!(gce.refused("GET", &format!("{path}/a"), None).0, 404);
    assert_eq!([has(), has()], [true, false]);
    gce.clean();
}

#[test]
fn a_request_id_takes_effect_once() {
    let Some(gce) = Gce::start() else { return };
    let id = "0192d3f4-1111-7222-8333-444455556666";
    let path = format!("{ZONE}/instances?requestId={id}");
    let first = gce.post(&path, &instance("a"));
    let again = gce.post(&path, &instance("a"));
    assert_eq!(first["name"], again["name"]);
    gce.wait(&first);
    assert_eq!(gce.post(&path, &instance("a"))["status"], "DONE");
    assert_eq!(gce.server.instances().len(), 1);
    let (status, reason, _) = gce.refused("POST", &path, Some(&instance("b")));
    assert_eq!((status, &*reason), (400, "invalid"));
    for id in ["nonsense", "00000000-0000-0000-0000-000000000000"] {
        let path = format!("{ZONE}/instances?requestId={id}");
        let (status, reason, _) = gce.refused("POST", &path, Some(&instance("b")));
        assert_eq!((status, &*reason), (400, "invalid"), "{id}");
    }
    // A failure is repeated, too, and only with the same id.
    let error = OperationError::named("ZONE_RESOURCE_POOL_EXHAUSTED");
    gce.server
        .add(Rule::next("instances.insert", Fault::EndOperation(error)));
    let path = format!("{ZONE}/instances?requestId=0192d3f4-1111-7222-8333-444455556667");
    let failed = gce.wait(&gce.post(&path, &instance("b")));
    assert_eq!(
        failed["error"]["errors"][0]["code"],
        "ZONE_RESOURCE_POOL_EXHAUSTED"
    );
    assert_eq!(failed["httpErrorStatusCode"], 503);
    assert_eq!(gce.post(&path, &instance("b")), failed);
    assert_eq!(gce.server.instances().len(), 1);
    assert_eq!(gce.server.disks().len(), 1);
    gce.wait(&gce.insert("b"));
    assert_eq!(gce.server.instances().len(), 2);
    gce.clean();
}

#[test]
fn an_instance_must_be_valid() {
    let Some(gce) = Gce::quick() else { return };
    gce.insert("there");
    let path = format!("{ZONE}/instances");
    let many: serde_json::Map<String, Value> = (0..65)
        .map(|number| (format!("k{number}"), json!("v")))
        .collect();
    let long = "v".repeat(262_145);
    let items = |items: Value| json!({"items": items});
    let metadata = "/metadata";
    let cases = [
        (
            "/name",
            json!("there"),
            409,
            "alreadyExists",
            "already exists",
        ),
        (
            "/name",
            json!("There"),
            400,
            "invalid",
            "Must be a match of regex",
        ),
        ("/name", json!(1), 400, "badRequest", "resource.name"),
        ("/name", Value::Null, 400, "badRequest", "resource.name"),
        (
            "/machineType",
            json!("e2-medium"),
            400,
            "invalid",
            "malformed",
        ),
        ("/machineType", json!(""), 400, "required", "machineType"),
        (
            "/machineType",
            json!("zones/us-central1-a/machineTypes/e2-standerd-4"),
            400,
            "invalid",
            "Machine type with name 'e2-standerd-4' does not exist",
        ),
        (
            "/machineType",
            json!("zones/us-central1-b/machineTypes/e2-medium"),
            400,
            "invalid",
            "must be in zone 'us-central1-a'",
        ),
        (
            "/disks/0/initializeParams/sourceImage",
            json!("projects/debian-cloud/global/images/family/debian-99"),
            400,
            "invalid",
            "The referenced image resource cannot be found.",
        ),
        (
            "/disks/0/initializeParams/diskSizeGb",
            json!("5"),
            400,
            "invalid",
            "cannot be smaller than the image size (10 GB)",
        ),
        (
            "/disks/0/initializeParams/diskSizeGb",
            json!(20),
            400,
            "badRequest",
            "int64",
        ),
        (
            "/disks/0/initializeParams/diskName",
            json!("there"),
            409,
            "alreadyExists",
            "disks/there",
        ),
        (
            "/disks/0/boot",
            json!(false),
            400,
            "invalid",
            "Boot disk must be the first",
        ),
        (
            "/disks",
            json!([]),
            400,
            "invalid",
            "Boot disk must be the first",
        ),
        (
            "/networkInterfaces",
            json!([]),
            400,
            "invalid",
            "At least one network interface",
        ),
        (
            "/networkInterfaces/0/subnetwork",
            json!("regions/us-central1/subnetworks/none"),
            400,
            "invalid",
            "The referenced subnetwork resource cannot be found.",
        ),
        (
            "/networkInterfaces/0/subnetwork",
            json!("regions/us-east1/subnetworks/default"),
            400,
            "invalid",
            "region must be 'us-central1'",
        ),
        (
            "/labels",
            json!({"Env": "x"}),
            400,
            "invalid",
            "Label key 'Env' violates",
        ),
        (
            "/labels",
            json!({"1env": "x"}),
            400,
            "invalid",
            "Label key '1env' violates",
        ),
        (
            "/labels",
            json!({"env": "X"}),
            400,
            "invalid",
            "Label value 'X' violates",
        ),
        (
            "/labels",
            json!({"env": "a.b"}),
            400,
            "invalid",
            "Label value 'a.b' violates",
        ),
        (
            "/labels",
            json!({"env": "x".repeat(64)}),
            400,
            "invalid",
            "violates",
        ),
        ("/labels", json!(many), 400, "invalid", "at most 64 labels"),
        (
            metadata,
            items(json!([{"key": "a", "value": long}])),
            413,
            "fieldSizeTooLarge",
            "262145",
        ),
        (
            metadata,
            items(json!([{"key": "a", "value": "1"}, {"key": "a", "value": "2"}])),
            400,
            "invalid",
            "Duplicate metadata key 'a'",
        ),
        (
            metadata,
            items(json!([{"key": "a b", "value": "1"}])),
            400,
            "invalid",
            "regex",
        ),
        (
            metadata,
            items(json!([{"key": "a"}])),
            400,
            "required",
            "items[0].value",
        ),
        ("/tags/items", json!(["Web"]), 400, "invalid", "regex"),
        (
            "/serviceAccounts",
            json!([{}, {}]),
            400,
            "invalid",
            "At most one",
        ),
        (
            "/scheduling",
            json!({"provisioningModel": "SPOT", "automaticRestart": true}),
            400,
            "invalid",
            "preemptible be false when AutomaticRestart is true",
        ),
        (
            "/scheduling",
            json!({"provisioningModel": "SPOT", "onHostMaintenance": "MIGRATE"}),
            400,
            "invalid",
            "onHostMaintenance",
        ),
        (
            "/scheduling",
            json!({"instanceTerminationAction": "DELETE"}),
            400,
            "invalid",
            "STANDARD",
        ),
        (
            "/scheduling",
            json!({"onHostMaintenance": "SAIL"}),
            400,
            "badRequest",
            "SAIL",
        ),
        (
            "/zonne",
            json!("a"),
            400,
            "badRequest",
            "Unknown name \"zonne\" at 'resource'",
        ),
    ];
    for (pointer, value, status, reason, message) in cases {
        let mut body = instance("new");
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[member] = value;
        let refused = gce.refused("POST", &path, Some(&body));
        assert_eq!(
            (refused.0, &*refused.1),
            (status, reason),
            "{pointer}: {}",
            refused.2
        );
        assert!(refused.2.contains(message), "{pointer}: {}", refused.2);
    }
    let mut body = instance("new");
    body.as_object_mut().unwrap().shift_remove("name");
    assert_eq!(gce.refused("POST", &path, Some(&body)).1, "required");
    let refused = gce.refused(
        "POST",
        "zones/us-central1-x/instances",
        Some(&instance("new")),
    );
    assert_eq!((refused.0, &*refused.1), (400, "invalid"));
    let refused = gce.refused(
        "POST",
        &format!("{path}?dryRun=true"),
        Some(&instance("new")),
    );
    assert_eq!((refused.0, &*refused.1), (400, "badRequest"));
    assert_eq!(gce.refused("GET", "zones", None).0, 501);
    assert_eq!(gce.refused("GET", "nothing", None).0, 404);
    assert_eq!(gce.server.instances().len(), 1);
    assert_eq!(gce.server.disks().len(), 1);
    let violations = gce.server.violations();
    assert!(!violations.is_empty());
    let answers = violations.iter().filter(|one| one.starts_with("answer"));
    assert_eq!(answers.count(), 0);
}

#[test]
fn fingerprints_guard_changes() {
    let Some(gce) = Gce::start() else { return };
    gce.wait(&gce.insert("a"));
    let path = format!("{ZONE}/instances/a");
    for (method, pointer, body, value) in [
        (
            "setLabels",
            "/labelFingerprint",
            json!({"labels": {"a": "b"}}),
            "/labels/a",
        ),
        (
            "setMetadata",
            "/metadata/fingerprint",
            json!({"items": [{"key": "k", "value": "b"}]}),
            "/metadata/items/0/value",
        ),
        (
            "setTags",
            "/tags/fingerprint",
            json!({"items": ["b"]}),
            "/tags/items/0",
        ),
    ] {
        let member = pointer.rsplit('/').next().unwrap();
        let path = format!("{path}/{method}");
        let (status, reason, _) = gce.refused("POST", &path, Some(&body));
        assert_eq!((status, &*reason), (412, "conditionNotMet"), "{method}");
        let before = gce.server.instance("a");
        let mut body = body;
        // Google's servers take the other alphabet, too.
        let fingerprint = before.pointer(pointer).unwrap().as_str().unwrap();
        body[member] = json!(fingerprint.replace('-', "+").replace('_', "/"));
        // Two changes at once: the second finds out at its end.
        let first = gce.post(&path, &body);
        let second = gce.post(&path, &body);
        assert_ne!(gce.server.instance("a").pointer(value), Some(&json!("b")));
        assert_eq!(gce.wait(&first).get("error"), None);
        let failed = gce.wait(&second);
        assert_eq!(
            failed["error"]["errors"][0]["code"], "CONDITION_NOT_MET",
            "{method}"
        );
        assert_eq!(failed["httpErrorStatusCode"], 412);
        let after = gce.server.instance("a");
        assert_eq!(after.pointer(value), Some(&json!("b")), "{method}");
        assert_ne!(after.pointer(pointer), before.pointer(pointer), "{method}");
        assert_ne!(after["fingerprint"], before["fingerprint"], "{method}");
        assert_eq!(gce.refused("POST", &path, Some(&body)).0, 412);
    }
    let before = gce.server.instance("a");
    gce.server.set_labels("a", &[]);
    let after = gce.server.instance("a");
    assert_ne!(after["labelFingerprint"], before["labelFingerprint"]);
    assert_eq!(after.get("labels"), None);
    gce.clean();
}

#[test]
fn some_changes_need_a_stopped_instance() {
    let Some(gce) = Gce::quick() else { return };
    gce.insert("a");
    let path = format!("{ZONE}/instances/a");
    let machine = format!("{ZONE}/machineTypes/n2-standard-4");
    let changes = [
        (
            "POST",
            "setMachineType",
            json!({"machineType": machine}),
            "/machineType",
            json!(format!(
                "https://www.googleapis.com/compute/v1/projects/test-project/{machine}"
            )),
        ),
        (
            "POST",
            "setMinCpuPlatform",
            json!({"minCpuPlatform": "Intel Ice Lake"}),
            "/minCpuPlatform",
            json!("Intel Ice Lake"),
        ),
        (
            "POST",
            "setServiceAccount",
            json!({"email": "a@example.com", "scopes": ["s"]}),
            "/serviceAccounts",
            json!([{"email": "a@example.com", "scopes": ["s"]}]),
        ),
        (
            "PATCH",
            "updateShieldedInstanceConfig",
            json!({"enableSecureBoot": true}),
            "/shieldedInstanceConfig",
            json!({"enableSecureBoot": true, "enableVtpm": true, "enableIntegrityMonitoring": true}),
        ),
        (
            "POST",
            "setScheduling",
            json!({"provisioningModel": "SPOT", "preemptible": true, "automaticRestart": false,
                   "onHostMaintenance": "TERMINATE", "instanceTerminationAction": "STOP"}),
            "/scheduling/provisioningModel",
            json!("SPOT"),
        ),
    ];
    for (verb, method, body, ..) in &changes {
        let (status, reason, message) = gce.refused(verb, &format!("{path}/{method}"), Some(body));
        assert_eq!((status, &*reason), (400, "badRequest"), "{method}");
        assert!(
            message.starts_with("The instance must be stopped before"),
            "{message}"
        );
    }
    let restart = json!({"automaticRestart": false});
    gce.post(&format!("{path}/setScheduling"), &restart);
    assert_eq!(
        gce.server.instance("a")["scheduling"]["automaticRestart"],
        false
    );
    gce.call("POST", &format!("{path}/stop"), None);
    assert_eq!(gce.status("a"), "TERMINATED");
    // Stopping what is stopped is no error.
    assert_eq!(gce.call("POST", &format!("{path}/stop"), None).0, 200);
    for (verb, method, body, pointer, expected) in &changes {
        let (status, answer) = gce.call(verb, &format!("{path}/{method}"), Some(body));
        assert_eq!(status, 200, "{answer}");
        let after = gce.server.instance("a");
        assert_eq!(after.pointer(pointer), Some(expected), "{method}");
    }
    gce.call("POST", &format!("{path}/start"), None);
    assert_eq!(gce.status("a"), "RUNNING");
    gce.clean();
}

#[test]
fn protection_and_states_refuse() {
    let Some(gce) = Gce::quick() else { return };
    gce.insert("a");
    let path = format!("{ZONE}/instances/a");
    gce.call("POST", &format!("{path}/setDeletionProtection"), None);
    let (status, reason, message) = gce.refused("DELETE", &path, None);
    assert_eq!((status, &*reason), (400, "invalidResourceUsage"));
    assert!(message.contains("protected against deletion"), "{message}");
    gce.call(
        "POST",
        &format!("{path}/setDeletionProtection?deletionProtection=false"),
        None,
    );
    gce.server.suspend("a");
    for method in ["start", "stop"] {
        let refused = gce.refused("POST", &format!("{path}/{method}"), None);
        assert_eq!(
            (refused.0, &*refused.1),
            (400, "resourceNotReady"),
            "{method}"
        );
    }
    gce.server.set_status("a", "REPAIRING");
    assert_eq!(gce.get(&path)["status"], "REPAIRING");
    gce.server.set_habits(Habits::default());
    gce.call("DELETE", &path, None);
    assert_eq!(gce.refused("DELETE", &path, None).1, "resourceNotReady");
    // What is deleted while it is being made ends its making.
    let inserted = gce.insert("b");
    let (_, deleted) = gce.call("DELETE", &format!("{ZONE}/instances/b"), None);
    assert_eq!(gce.wait(&inserted)["httpErrorStatusCode"], 409);
    assert_eq!(gce.wait(&deleted).get("error"), None);
    assert_eq!(
        gce.refused("GET", &format!("{ZONE}/instances/b"), None).0,
        404
    );
    gce.clean();
}

#[test]
fn spot_instances_are_preempted() {
    let Some(gce) = Gce::start() else { return };
    let spot = |name: &str, action: &str| {
        let mut body = instance(name);
        body["scheduling"] =
            json!({"provisioningModel": "SPOT", "instanceTerminationAction": action});
        gce.wait(&gce.post(&format!("{ZONE}/instances"), &body));
        gce.server.preempt(name);
        assert_eq!(gce.status(name), "STOPPING");
        let look = || gce.call("GET", &format!("{ZONE}/instances/{name}"), None);
        for _ in 0..2 {
            assert_eq!(look().1["status"], "STOPPING");
        }
        let (status, last) = look();
        (status, last["status"].clone())
    };
    assert_eq!(spot("a", "STOP"), (200, json!("TERMINATED")));
    assert_eq!(spot("b", "DELETE").0, 404);
    let operations = gce.server.operations();
    let kinds = operations.iter().map(|one| one["operationType"].clone());
    assert_eq!(
        kinds
            .filter(|kind| kind == "compute.instances.preempted")
            .count(),
        2
    );
    gce.clean();
}

#[test]
fn disks_outlive_instances_that_keep_them() {
    let Some(gce) = Gce::quick() else { return };
    let mut body = instance("a");
    body["disks"][0]["autoDelete"] = json!(false);
    body["disks"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "SCRATCH", "interface": "NVME"}));
    gce.post(&format!("{ZONE}/instances"), &body);
    let disk = gce.get(&format!("{ZONE}/disks/a"));
    assert_eq!(disk["users"].as_array().unwrap().len(), 1);
    assert_eq!(disk["sizeGb"], "20");
    gce.call("DELETE", &format!("{ZONE}/instances/a"), None);
    let disks = gce.server.disks();
    assert_eq!(disks.len(), 1);
    assert_eq!(disks[0]["users"], json!([]));
    assert_eq!(
        gce.refused("POST", &format!("{ZONE}/instances"), Some(&body))
            .1,
        "alreadyExists"
    );
    let mut body = instance("b");
    body["disks"][0] = json!({"boot": true, "source": format!("{ZONE}/disks/a")});
    // A refused call attaches nothing.
    let mut refused = body.clone();
    refused["networkInterfaces"] = json!([]);
    gce.refused("POST", &format!("{ZONE}/instances"), Some(&refused));
    refused = body.clone();
    let other = json!({"source": format!("{ZONE}/disks/none")});
    refused["disks"].as_array_mut().unwrap().push(other);
    gce.refused("POST", &format!("{ZONE}/instances"), Some(&refused));
    gce.post(&format!("{ZONE}/instances"), &body);
    let mut body = instance("c");
    body["disks"][0] = json!({"boot": true, "source": format!("{ZONE}/disks/a")});
    let refused = gce.refused("POST", &format!("{ZONE}/instances"), Some(&body));
    assert_eq!(refused.1, "resourceInUseByAnotherResource");
    gce.clean();
}

#[test]
fn addresses_and_quotas_run_out() {
    let Some(gce) = Gce::start() else { return };
    let path = format!("{ZONE}/instances");
    // Eight addresses, of which Google keeps four.
    gce.server
        .add_subnetwork("host", "us-central1", "small", "shared", "10.9.0.0/29");
    let subnetwork = "projects/host/regions/us-central1/subnetworks/small";
    let small = |name: &str, address: Option<&str>| {
        let mut body = instance(name);
        body["networkInterfaces"][0] = json!({"subnetwork": subnetwork});
        if let Some(address) = address {
            body["networkInterfaces"][0]["networkIP"] = json!(address);
        }
        body
    };
    let seen = |view: &str| {
        let target = format!("/compute/v1/{subnetwork}{view}");
        gce.raw("GET", &target, None).unwrap().1
    };
    assert_eq!(seen("").get("utilizationDetails"), None);
    for name in ["a", "b", "c", "d"] {
        gce.wait(&gce.post(&path, &small(name, None)));
    }
    let addresses = ["a", "b", "c", "d"].map(|name| {
        let address = gce.server.instance(name)["networkInterfaces"][0]["networkIP"].clone();
        address.as_str().unwrap().to_owned()
    });
    assert_eq!(addresses, ["10.9.0.2", "10.9.0.3", "10.9.0.4", "10.9.0.5"]);
    let details = &seen("?views=WITH_UTILIZATION")["utilizationDetails"]["ipv4Utilizations"][0];
    assert_eq!(
        *details,
        json!({"totalAllocatedIp": "8", "totalFreeIp": "0"})
    );
    let failed = gce.wait(&gce.post(&path, &small("e", None)));
    assert_eq!(failed["error"]["errors"][0]["code"], "IP_SPACE_EXHAUSTED");
    let refused = gce.refused("POST", &path, Some(&small("e", Some("10.9.0.5"))));
    assert_eq!(refused.1, "resourceInUseByAnotherResource");
    let refused = gce.refused("POST", &path, Some(&small("e", Some("10.8.0.5"))));
    assert_eq!(refused.1, "invalid");

    gce.server.set_quota("us-central1", "CPUS", 10.0);
    gce.server.set_quota("us-central1", "N2_CPUS", 4.0);
    gce.wait(&gce.insert("f"));
    let failed = gce.wait(&gce.insert("g"));
    assert_eq!(failed["error"]["errors"][0]["code"], "QUOTA_EXCEEDED");
    assert_eq!(failed["httpErrorStatusCode"], 403);
    let quotas = gce.get("regions/us-central1")["quotas"].clone();
    assert_eq!(
        quotas,
        json!([
            {"metric": "CPUS", "limit": 10.0, "usage": 10.0},
            {"metric": "N2_CPUS", "limit": 4.0, "usage": 0.0},
        ])
    );
    // Another family has a quota of its own; stopped instances have no CPUs.
    let mut other = instance("h");
    other["machineType"] = json!(format!("{ZONE}/machineTypes/n2-standard-4"));
    assert_eq!(gce.wait(&gce.post(&path, &other)).get("error"), None);
    gce.server.stop("f");
    assert_eq!(gce.wait(&gce.insert("i")).get("error"), None);
    let (_, started) = gce.call("POST", &format!("{path}/f/start"), None);
    assert_eq!(
        gce.wait(&started)["error"]["errors"][0]["code"],
        "QUOTA_EXCEEDED"
    );
    assert_eq!(gce.status("f"), "TERMINATED");
    gce.server.set_habits(Habits {
        quota_refuses: true,
        ..Habits::default()
    });
    let refused = gce.refused("POST", &path, Some(&instance("j")));
    assert_eq!((refused.0, &*refused.1), (403, "quotaExceeded"));
    gce.clean();
}

#[test]
fn images_have_families() {
    let Some(gce) = Gce::start() else { return };
    gce.server.add_image("mine", "app-1", "app", None);
    gce.server.add_image("mine", "app-2", "app", None);
    gce.server
        .add_image("mine", "app-3", "app", Some("OBSOLETE"));
    gce.server.add_image("mine", "tool", "", None);
    let call = |path: &str| {
        let target = format!("/compute/v1/projects/mine/global/images{path}");
        gce.raw("GET", &target, None).unwrap()
    };
    assert_eq!(call("/family/app").1["name"], "app-2");
    assert_eq!(call("/family/none").0, 404);
    assert_eq!(call("/app-3").1["deprecated"]["state"], "OBSOLETE");
    assert_eq!(call("/app-4").0, 404);
    let (_, list) = call("?filter=family%3Dapp&orderBy=creationTimestamp+desc&maxResults=1");
    assert_eq!(list["items"][0]["name"], "app-3");
    let (_, list) = call("?filter=(family%3Dapp)+AND+NOT+deprecated.state:*");
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    gce.clean();
}

#[test]
fn groups_have_members_and_health() {
    let Some(gce) = Gce::quick() else { return };
    gce.server.set_habits(Habits {
        operation: 0,
        unhealthy: 1,
        ..Habits::default()
    });
    for name in ["a", "b"] {
        gce.insert(name);
    }
    let group = gce.server.add_instance_group("us-central1-a", "ig");
    let endpoints = gce
        .server
        .add_endpoint_group("us-central1-a", "neg", "GCE_VM_IP_PORT", 8080);
    let service = gce
        .server
        .add_backend_service(None, "web", 80, &[&group, &endpoints]);
    gce.server
        .add_backend_service(Some("us-central1"), "api", 443, &[&group]);
    let reference =
        |name: &str| json!({"instances": [{"instance": format!("{ZONE}/instances/{name}")}]});
    let path = format!("{ZONE}/instanceGroups/ig");
    gce.post(&format!("{path}/addInstances"), &reference("a"));
    let refused = gce.refused(
        "POST",
        &format!("{path}/addInstances"),
        Some(&reference("a")),
    );
    assert_eq!((refused.0, &*refused.1), (400, "memberAlreadyExists"));
    let refused = gce.refused(
        "POST",
        &format!("{path}/addInstances"),
        Some(&reference("c")),
    );
    assert_eq!(refused.1, "notFound");
    let refused = gce.refused(
        "POST",
        &format!("{path}/removeInstances"),
        Some(&reference("b")),
    );
    assert_eq!(refused.0, 400);
    let all = json!({"instanceState": "ALL"});
    let list = gce.post(&format!("{path}/listInstances"), &all);
    assert_eq!(list["items"][0]["status"], "RUNNING");

    let path = format!("{ZONE}/networkEndpointGroups/neg");
    let link = format!("{ZONE}/instances/b");
    let endpoint = |port: u16| json!({"networkEndpoints": [{"instance": link, "port": port}]});
    gce.post(&format!("{path}/attachNetworkEndpoints"), &endpoint(9000));
    let by_default = json!({"networkEndpoints": [{"instance": "b"}]});
    gce.post(&format!("{path}/attachNetworkEndpoints"), &by_default);
    let list = gce.post(
        &format!("{path}/listNetworkEndpoints"),
        &json!({"healthStatus": "SHOW"}),
    );
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    assert_eq!(items[0]["networkEndpoint"]["port"], 8080);
    assert_eq!(
        items[0]["healths"][0]["backendService"]["backendService"],
        *service
    );
    let wrong = json!({"networkEndpoints": [{"instance": link, "ipAddress": "10.0.0.1"}]});
    let refused = gce.refused(
        "POST",
        &format!("{path}/attachNetworkEndpoints"),
        Some(&wrong),
    );
    assert_eq!(refused.1, "invalid");
    gce.post(&format!("{path}/detachNetworkEndpoints"), &endpoint(9000));
    let refused = gce.refused(
        "POST",
        &format!("{path}/detachNetworkEndpoints"),
        Some(&endpoint(1)),
    );
    assert_eq!(refused.1, "invalid");

    let services = gce.get("global/backendServices");
    assert_eq!(services["items"][0]["backends"][0]["group"], *group);
    let services = gce.get("regions/us-central1/backendServices");
    assert_eq!(services["items"][0]["name"], "api");
    let health = |path: &str, group: &str| {
        gce.post(&format!("{path}/getHealth"), &json!({"group": group}))["healthStatus"].clone()
    };
    let global = "global/backendServices/web";
    let regional = "regions/us-central1/backendServices/api";
    assert_eq!(health(global, &group)[0]["healthState"], "UNHEALTHY");
    let found = health(regional, &group)[0].clone();
    assert_eq!(found["healthState"], "HEALTHY");
    assert_eq!(
        (&found["port"], &found["ipAddress"]),
        (&json!(443), &json!("10.130.0.2"))
    );
    gce.server.set_health("b", Some("UNHEALTHY"));
    for _ in 0..3 {
        let states = health(global, &endpoints);
        assert_eq!(states.as_array().unwrap().len(), 1);
        assert_eq!(states[0]["healthState"], "UNHEALTHY");
    }
    gce.server.set_health("b", None);
    assert_eq!(health(global, &endpoints)[0]["healthState"], "HEALTHY");
    let refused = gce.refused(
        "POST",
        &format!("{regional}/getHealth"),
        Some(&json!({"group": endpoints})),
    );
    assert_eq!(refused.1, "invalid");

    assert_eq!(gce.server.members("us-central1-a", "ig"), ["a"]);
    for name in ["a", "b"] {
        gce.call("DELETE", &format!("{ZONE}/instances/{name}"), None);
    }
    assert!(gce.server.members("us-central1-a", "ig").is_empty());
    assert!(gce.server.members("us-central1-a", "neg").is_empty());
    assert_eq!(health(global, &group), Value::Null);
    gce.clean();
}

#[test]
fn rules_choose_calls() {
    let Some(gce) = Gce::quick() else { return };
    let path = format!("{ZONE}/instances");
    let target = format!("/compute/v1/projects/test-project/{path}");
    let throttled = Refusal::named("rateLimitExceeded").status(429);
    let rule = Rule::next("instances.insert", Fault::Refuse(throttled));
    gce.server.add(rule.with("name", "b").after(1).times(2));
    for (name, expected) in [
        ("a", 200),
        ("b", 200),
        ("b", 429),
        ("b", 429),
        ("c", 200),
        ("b", 409),
    ] {
        let (status, answer) = gce.call("POST", &path, Some(&instance(name)));
        assert_eq!(status, expected, "{answer}");
        if status == 429 {
            assert_eq!(answer["error"]["errors"][0]["reason"], "rateLimitExceeded");
            assert_eq!(answer["error"]["status"], "RESOURCE_EXHAUSTED");
        }
    }
    gce.server.take_calls();
    for (name, fault, effect) in [
        ("d", Fault::LoseRequest, false),
        ("e", Fault::LoseAnswer, true),
        (
            "f",
            Fault::RefuseAfter(Refusal::named("backendError")),
            true,
        ),
        ("g", Fault::Delay(Duration::from_millis(1)), true),
        ("h", Fault::DelayAnswer(Duration::from_millis(1)), true),
        (
            "i",
            Fault::EndOperation(OperationError::named("QUOTA_EXCEEDED")),
            false,
        ),
    ] {
        let lost = matches!(fault, Fault::LoseRequest | Fault::LoseAnswer);
        gce.server.add(Rule::next("instances.insert", fault));
        let answer = gce.raw("POST", &target, Some(&instance(name)));
        assert_eq!(answer.is_none(), lost, "{name}");
        let there = gce.server.instances().iter().any(|one| one["name"] == name);
        assert_eq!(there, effect, "{name}");
    }
    assert_eq!(gce.server.count("instances.insert"), 6);
    let outcomes: Vec<Outcome> = gce
        .server
        .take_calls()
        .into_iter()
        .map(|call| call.outcome)
        .collect();
    assert_eq!(
        outcomes,
        [
            Outcome::Lost { effect: false },
            Outcome::Lost { effect: true },
            Outcome::Refused("backendError".to_owned()),
            Outcome::Answered,
            Outcome::Answered,
            Outcome::Answered,
        ]
    );
    gce.server.add(Rule::every(
        "instances.get",
        Fault::Refuse(Refusal::named("authError")),
    ));
    for _ in 0..2 {
        let (status, answer) = gce.call("GET", &format!("{path}/a"), None);
        assert_eq!(
            (status, &answer["error"]["status"]),
            (401, &json!("UNAUTHENTICATED"))
        );
    }
    gce.server.clear();
    gce.get(&format!("{path}/a"));
    // Every error of the tables has the form of an answer.
    for (reason, status, _) in REFUSALS {
        gce.server.clear();
        gce.server.add(Rule::next(
            "instances.get",
            Fault::Refuse(Refusal::named(reason)),
        ));
        assert_eq!(gce.refused("GET", &format!("{path}/a"), None).0, *status);
    }
    for (code, ..) in OPERATION_ERRORS {
        gce.server.clear();
        let error = OperationError::named(code);
        gce.server
            .add(Rule::next("instances.delete", Fault::EndOperation(error)));
        let (_, operation) = gce.call("DELETE", &format!("{path}/a"), None);
        assert_eq!(operation["error"]["errors"][0]["code"], *code);
        assert_eq!(gce.status("a"), "RUNNING");
    }
    gce.clean();
}

#[test]
fn permissions_can_be_denied() {
    let Some(gce) = Gce::start() else { return };
    let asked = json!({"permissions": ["compute.instances.create", "compute.instances.list"]});
    for version in ["v1", "v3"] {
        let target = format!("/{version}/projects/test-project:testIamPermissions");
        let test = || gce.raw("POST", &target, Some(&asked)).unwrap();
        assert_eq!(test(), (200, asked.clone()));
        gce.server.deny("compute.instances.create");
        assert_eq!(test().1, json!({"permissions": ["compute.instances.list"]}));
        gce.server.deny("compute.instances.list");
        assert_eq!(test().1, json!({}));
        gce.server.grant_all();
    }
    assert_eq!(gce.server.count("projects.testIamPermissions"), 6);
    gce.clean();
}

#[test]
fn requests_of_googles_client_are_valid() {
    let Some(gce) = Gce::quick() else { return };
    let suffix = "%24alt=json&%24apiVersion=2026-09-01";
    gce.post(&format!("{ZONE}/instances?{suffix}"), &instance("a"));
    assert_eq!(
        gce.get(&format!("{ZONE}/instances/a?{suffix}"))["name"],
        "a"
    );
    // Calls without a body may have an empty one.
    let stop = format!("{ZONE}/instances/a/stop?{suffix}");
    assert_eq!(gce.call("POST", &stop, Some(&json!({}))).0, 200);
    let calls = gce.server.take_calls();
    assert_eq!(calls[0].method, "instances.insert");
    assert_eq!(calls[0].get("zone"), Some("us-central1-a"));
    assert_eq!(calls[0].body["name"], "a");
    assert!(!calls[0].authorized);
    gce.clean();
}

#[test]
fn looks_at_members_count() {
    let Some(gce) = Gce::start() else { return };
    gce.server.insert("us-central1-a", &instance("a"));
    assert_eq!(gce.status("a"), "RUNNING");
    assert!(gce.server.take_calls().is_empty());
    gce.server.add_instance_group("us-central1-a", "ig");
    let path = format!("{ZONE}/instanceGroups/ig");
    let added = json!({"instances": [{"instance": format!("{ZONE}/instances/a")}]});
    gce.server
        .add(Rule::next("instanceGroups.addInstances", Fault::LoseAnswer));
    let target = format!("/compute/v1/projects/test-project/{path}/addInstances");
    assert_eq!(gce.raw("POST", &target, Some(&added)), None);
    let look = || {
        gce.post(&format!("{path}/listInstances"), &json!({}))
            .get("items")
            .is_some()
    };
    assert_eq!([look(), look(), look()], [false, false, true]);
    gce.clean();
}

#[test]
fn chance_chooses_calls() {
    let Some(gce) = Gce::quick() else { return };
    gce.server.set_chance(Some(Chance {
        seed: 1,
        throttled: 500,
        ..Chance::default()
    }));
    let path = format!("{ZONE}/instances");
    let statuses = (0..20).map(|_| gce.call("GET", &path, None).0);
    let (answered, refused): (Vec<u16>, Vec<u16>) = statuses.partition(|status| *status == 200);
    assert!(
        answered.len() > 3 && refused.len() > 3,
        "{answered:?} {refused:?}"
    );
    gce.server.set_chance(None);
    assert_eq!(gce.call("GET", &path, None).0, 200);
}

#[test]
fn an_invalid_answer_is_a_violation() {
    let Some(gce) = Gce::quick() else { return };
    gce.insert("a");
    gce.server
        .edit("a", |resource| resource["wings"] = json!(2));
    let refused = gce.refused("GET", &format!("{ZONE}/instances/a"), None);
    assert_eq!((refused.0, &*refused.1), (500, "violation"));
    assert_eq!(
        gce.server.violations(),
        ["answer of instances.get: answer.wings is unknown"]
    );
}

#[test]
fn the_program_ends_with_its_standard_input() {
    let Some(_) = Gce::start() else { return };
    let mut program = Command::new(env!("CARGO_BIN_EXE_nstance-gce-server"))
        .arg("0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = program.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap();
    assert!(TcpStream::connect(address).is_ok(), "{line}");
    drop(program.stdin.take());
    assert!(program.wait().unwrap().success());
}

#[test]
fn operations_affect_their_own_instance() {
    let Some(gce) = Gce::start() else { return };
    let path = format!("{ZONE}/instances");
    // A failed insert leaves no disk, not even one that would have stayed.
    let error = || Fault::EndOperation(OperationError::named("INTERNAL_ERROR"));
    gce.server.add(Rule::next("instances.insert", error()));
    let mut body = instance("a");
    body["disks"][0]["autoDelete"] = json!(false);
    gce.wait(&gce.post(&path, &body));
    assert!(gce.server.disks().is_empty());
    // An operation on an instance that is gone doesn't affect the next of its name.
    gce.server.insert("us-central1-a", &instance("a"));
    let (_, deleted) = gce.call("DELETE", &format!("{path}/a"), None);
    gce.server.delete("a");
    gce.server.insert("us-central1-a", &instance("a"));
    let failed = gce.wait(&deleted);
    assert_eq!(failed["error"]["errors"][0]["code"], "RESOURCE_NOT_FOUND");
    assert_eq!(gce.status("a"), "RUNNING");
    // A failed change leaves the status as it is.
    let inserted = gce.insert("b");
    gce.server
        .add(Rule::next("instances.setDeletionProtection", error()));
    let protect = format!("{path}/b/setDeletionProtection");
    let protected = gce.call("POST", &protect, None).1;
    gce.wait(&inserted);
    gce.wait(&protected);
    assert_eq!(gce.status("b"), "RUNNING");
    assert_eq!(gce.server.instance("b")["deletionProtection"], false);
    gce.clean();
}
