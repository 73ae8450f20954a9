//! The simulated cloud through the trait, on a clock that stands still unless told to go.

mod admin;
mod faults;
mod health;
mod images;
mod instances;
mod listing;
mod options;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::clock::FixedClock;
use crate::config::node::{Entry, Node, NodeValue};
use crate::config::source::{SourceId, Span};
use crate::diagnostic::Diagnostics;
use crate::provider::LifecycleState;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

/// A folder for a cloud and a clock.
struct Lab {
    folder: tempfile::TempDir,
    clock: Arc<FixedClock>,
}

impl Lab {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            clock: Arc::new(FixedClock::new(NOW)),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(".nstance/sim.db")
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "reads better where it is called"
    )]
    fn cloud(&self, provider: ProviderKind, options: Value) -> SimCloud {
        let options = read_options(&options).unwrap();
        SimCloud::open(&self.path(), &options, provider, self.clock.clone()).unwrap()
    }

    fn aws(&self, options: Value) -> SimCloud {
        self.cloud(ProviderKind::Aws, options)
    }

    fn admin(&self) -> super::admin::Admin {
        super::admin::Admin::open(&self.path(), self.clock.clone()).unwrap()
    }

    fn pass(&self, milliseconds: u64) {
        self.clock.sleep(Duration::from_millis(milliseconds));
    }
}

/// Options as a configuration would hold them.
fn read_options(json: &Value) -> Result<SimOptions, Diagnostics> {
    let mut findings = Diagnostics::default();
    let options = SimOptions::from_node(Some(&node(json)), &mut findings);
    if findings.is_empty() {
        Ok(options)
    } else {
        Err(findings)
    }
}

fn node(json: &Value) -> Node {
    let span = Span::new(SourceId(0), 0, 0);
    let value = match json {
        Value::Null => NodeValue::Null,
        Value::Bool(value) => NodeValue::Bool(*value),
        Value::Number(value) => NodeValue::Number(value.clone()),
        Value::String(value) => NodeValue::String(value.as_str().into()),
        Value::Array(items) => NodeValue::Array(items.iter().map(node).collect()),
        Value::Object(entries) => NodeValue::Object(
            entries
                .iter()
                .map(|(key, value)| Entry {
                    key: key.as_str().into(),
                    key_span: span,
                    value: node(value),
                })
                .collect(),
        ),
    };
    Node::new(span, value)
}

fn owner() -> Owner {
    Owner {
        cluster: "prod".to_owned(),
        shard: "us-west-2a".to_owned(),
    }
}

/// A request for slot `slot` of `default/web`, as AWS tags it.
fn request(slot: u32) -> CreateRequest {
    let tags = [
        ("nstance:managed", "true".to_owned()),
        ("nstance:cluster-id", "prod".to_owned()),
        ("nstance:shard", "us-west-2a".to_owned()),
        ("nstance:tenant", "default".to_owned()),
        ("nstance:group", "web".to_owned()),
        ("nstance:slot", slot.to_string()),
        ("nstance:instance-id", format!("web{slot:026}")),
        ("Name", format!("prod-web-{slot}")),
    ];
    CreateRequest {
        token: format!("token-{slot}"),
        instance_id: format!("web{slot:026}"),
        name: format!("prod-web-{slot}"),
        arch: "amd64".to_owned(),
        instance_type: "t3.small".to_owned(),
        zone: "us-west-2a".to_owned(),
        subnet: Some("subnet-a".to_owned()),
        args: args(&json!({"ImageId": "ami-1", "SecurityGroupIds": ["sg-1"]})),
        userdata: None,
        tags: tags
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    }
}

fn args(json: &Value) -> serde_json::Map<String, Value> {
    json.as_object().unwrap().clone()
}

/// An update that wants what `observed` is, for a test to change.
fn update_of(observed: &Observation, changed: &[&str]) -> UpdateRequest {
    let attributes = observed.attributes().unwrap();
    UpdateRequest {
        token: "update".to_owned(),
        provider_id: observed.provider_id.clone(),
        changed: changed.iter().map(|path| (*path).to_owned()).collect(),
        restart: false,
        instance_type: attributes.instance_type,
        args: attributes.args,
        userdata: None,
        tags: attributes.tags,
        load_balancers: attributes.load_balancers.unwrap_or_default(),
        leaves: Vec::new(),
    }
}

fn delete_of(observed: &Observation) -> DeleteRequest {
    DeleteRequest {
        token: "delete".to_owned(),
        provider_id: observed.provider_id.clone(),
        drain_timeout_ms: 0,
        load_balancers: Vec::new(),
        until_gone: false,
    }
}

/// Every instance of [`owner`], page by page.
fn listed(cloud: &SimCloud) -> Vec<Observation> {
    let mut found = Vec::new();
    let mut page = None;
    loop {
        let next = cloud.list(&owner(), page.as_deref()).unwrap();
        found.extend(next.instances);
        page = next.next;
        if page.is_none() {
            return found;
        }
    }
}

/// The kind and code of a refusal.
fn refusal<T: std::fmt::Debug>(outcome: Result<T, CloudError>) -> (CloudErrorKind, String) {
    let error = outcome.unwrap_err();
    (error.kind, error.code)
}

fn refused(kind: CloudErrorKind, code: &str) -> (CloudErrorKind, String) {
    (kind, code.to_owned())
}

/// The state that `describe` reports.
fn state(cloud: &SimCloud, id: &str) -> Option<LifecycleState> {
    cloud
        .describe(&[id.to_owned()])
        .unwrap()
        .first()
        .map(|seen| seen.state)
}
