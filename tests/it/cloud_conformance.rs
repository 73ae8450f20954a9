//! What every [`Cloud`] keeps to, whichever it is.
//!
//! In: a cloud, and a request that it takes. Out: nothing; a panic where it breaks the trait's word.
//! Must not: know which cloud it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use nstance::clock::{Clock, FixedClock, Timestamp};
use nstance::config::model::ProviderKind;
use nstance::provider::rules::{Ownership, Rules};
use nstance::provider::sim::{SimCloud, SimOptions};
use nstance::provider::{
    Cloud, CloudErrorKind, CreateRequest, DeleteRequest, LifecycleState, Observation, Owner,
    UpdateRequest,
};
use serde_json::{Map, Value};

/// A cloud, and what a request needs there.
struct Subject {
    cloud: Box<dyn Cloud>,
    rules: Rules,
    zone: &'static str,
    subnet: Option<String>,
    instance_type: &'static str,
    args: Map<String, Value>,
}

impl Subject {
    fn owner(shard: &str) -> Owner {
        Owner {
            cluster: "c".into(),
            shard: shard.into(),
        }
    }

    /// The tags of a slot's instance in a shard.
    fn tags(&self, shard: &str, slot: u32, id: &str) -> BTreeMap<String, String> {
        let mut tags = self.rules.managed_tags(&Ownership {
            cluster: "c",
            shard,
            tenant: "default",
            group: "web",
            template: "",
            kind: "web",
            slot,
            instance_id: id,
            spec: "",
        });
        tags.retain(|_, value| !value.is_empty());
        tags
    }

    fn request(&self, shard: &str, slot: u32) -> CreateRequest {
        let id = format!("web06h2xsng01w499rwwa5h0{slot:05}");
        CreateRequest {
            token: format!("{shard}-{slot}"),
            name: id.clone(),
            arch: "amd64".into(),
            instance_type: self.instance_type.into(),
            zone: self.zone.into(),
            subnet: self.subnet.clone(),
            args: self.args.clone(),
            userdata: None,
            tags: self.tags(shard, slot, &id),
            instance_id: id,
        }
    }

    /// All instances of a shard, page by page.
    fn all(&self, shard: &str) -> Vec<Observation> {
        let mut found = Vec::new();
        let mut page: Option<String> = None;
        loop {
            let next = self
                .cloud
                .list(&Self::owner(shard), page.as_deref())
                .unwrap();
            found.extend(next.instances.into_iter().filter(|one| one.state.is_live()));
            match next.next {
                Some(next) => page = Some(next),
                None => return found,
            }
        }
    }

    fn delete(&self, id: &str) {
        let request = DeleteRequest {
            token: format!("delete-{id}"),
            provider_id: id.into(),
            drain_timeout_ms: 0,
            load_balancers: Vec::new(),
            until_gone: true,
        };
        self.cloud.delete(&request).unwrap();
    }
}

/// The trait's word, method by method.
fn conforms(subject: &Subject) {
    let cloud = &*subject.cloud;
    assert!(subject.all("s").is_empty());

    // The same token makes one instance, however often it is sent.
    let request = subject.request("s", 0);
    let made = cloud.create(&request).unwrap();
    let again = cloud.create(&request).unwrap();
    assert_eq!(made.provider_id, again.provider_id);
    assert_eq!(made.instance_id.as_deref(), Some(&*request.instance_id));
    assert_eq!(made.group.as_deref(), Some("default/web"));
    assert_eq!(made.slot, Some(0));
    assert_eq!(made.zone, subject.zone);
    assert_eq!(made.subnet, subject.subnet);

    // A listing has the shard's instances, and no others.
    let second = cloud.create(&subject.request("s", 1)).unwrap();
    let other = cloud.create(&subject.request("another", 2)).unwrap();
    let ids = |found: Vec<Observation>| {
        let mut ids: Vec<String> = found.into_iter().map(|one| one.provider_id).collect();
        ids.sort();
        ids
    };
    let mut both = vec![made.provider_id.clone(), second.provider_id.clone()];
    both.sort();
    assert_eq!(ids(subject.all("s")), both);
    let others = std::slice::from_ref(&other.provider_id);
    assert_eq!(ids(subject.all("another")), others);

    // What is asked for by id is there whoever owns it; unknown ids are left out.
    let asked = [
        made.provider_id.clone(),
        other.provider_id.clone(),
        "r-z/unknown".to_owned(),
    ];
    let found = cloud.describe(&asked[..2]).unwrap();
    assert_eq!(ids(found).len(), 2);

    // It runs, with the attributes that were asked for.
    let running = cloud.describe(&asked[..1]).unwrap().remove(0);
    assert_eq!(running.state, LifecycleState::Running);
    let attributes = running.attributes().unwrap();
    assert_eq!(attributes.instance_type, subject.instance_type);
    assert_eq!(attributes.normalized(&subject.args).get("nothing"), None);
    assert!(running.ip4.is_some());

    // An update changes what it names, and can be repeated.
    let mut tags = request.tags.clone();
    tags.insert("team".into(), "core".into());
    let update = UpdateRequest {
        token: "update".into(),
        provider_id: made.provider_id.clone(),
        changed: vec!["tags.team".into()],
        restart: false,
        instance_type: subject.instance_type.into(),
        args: subject.args.clone(),
        userdata: None,
        tags: tags.clone(),
        load_balancers: Vec::new(),
        leaves: Vec::new(),
    };
    for _ in 0..2 {
        let updated = cloud.update(&update).unwrap();
        assert_eq!(updated.attributes().unwrap().tags["team"], "core");
        assert_eq!(updated.provider_id, made.provider_id);
    }
    let digest = |id: &str| cloud.describe(&[id.to_owned()]).unwrap().remove(0).digest;
    assert_eq!(digest(&made.provider_id), digest(&made.provider_id));
    assert_ne!(digest(&made.provider_id), running.digest);

    // What is deleted is gone; deleting it again changes nothing.
    subject.delete(&made.provider_id);
    subject.delete(&made.provider_id);
    assert_eq!(ids(subject.all("s")), [second.provider_id]);
    let error = cloud.update(&update).unwrap_err();
    assert_eq!(error.kind, CloudErrorKind::NotFound, "{error}");
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(FixedClock::new(
        Timestamp::parse("2026-12-01T00:00:00Z").unwrap(),
    ))
}

#[test]
fn the_embedded_cloud_conforms() {
    for (kind, instance_type) in [
        (ProviderKind::Sim, "small"),
        (ProviderKind::Aws, "m7i.large"),
        (ProviderKind::Gcp, "e2-small"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = SimOptions::default();
        let path = folder.path().join("sim.db");
        conforms(&Subject {
            cloud: Box::new(SimCloud::open(&path, &options, kind, clock()).unwrap()),
            rules: Rules::of(kind),
            zone: "r-a",
            subnet: None,
            instance_type,
            args: Map::new(),
        });
    }
}

#[cfg(feature = "gcp")]
#[test]
fn compute_engine_conforms() {
    use nstance::provider::gcp::{GcpCloud, GcpOptions, Named};
    use nstance_gce_server::{Document, PROJECT, Server};

    let Some(document) = Document::for_tests() else {
        return;
    };
    let server = Server::start(&document).unwrap();
    server.add_subnetwork(PROJECT, "europe-west1", "nodes", "default", "10.132.0.0/20");
    server.add_image(PROJECT, "one", "", None);
    let client = nstance_gce::Client::connect(&nstance_gce::ClientOptions {
        endpoint: Some(server.url()),
        anonymous: true,
        ..nstance_gce::ClientOptions::default()
    });
    let named = Named {
        groups: Vec::new(),
        subnets: vec!["nodes".to_owned()],
    };
    let client = Arc::new(client.unwrap());
    let options = GcpOptions::default();
    let image = format!("projects/{PROJECT}/global/images/one");
    let args = serde_json::json!({"SourceImage": image});
    conforms(&Subject {
        cloud: Box::new(GcpCloud::new(
            client,
            options,
            PROJECT,
            "europe-west1",
            named,
            clock(),
        )),
        rules: Rules::of(ProviderKind::Gcp),
        zone: "europe-west1-b",
        subnet: Some("nodes".to_owned()),
        instance_type: "e2-small",
        args: args.as_object().unwrap().clone(),
    });
    assert_eq!(server.violations(), Vec::<String>::new());
}
