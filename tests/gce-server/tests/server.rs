//! The server over HTTP, checked against Google's own document.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use nstance_gce_server::{
    Document, Fault, Habits, OPERATION_ERRORS, OperationError, Outcome, REFUSALS, Refusal, Rule,
    Server,
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
