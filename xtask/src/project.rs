//! A project of Compute Engine on a server of ours: what chores that need it run against.
//!
//! In: what is declared. Out: a configuration, and what the server itself has. Must not: ask nstance.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use nstance_gce_server::{Chance, Document, Habits, PROJECT, Server};
use serde_json::{Value, json};

use crate::discovery;
use crate::fuzz::random::Random;
use crate::kill::{Instances, Place};
use crate::{Failure, kill};

const REGION: &str = "europe-west1";

/// A project with a subnet and two images.
pub(crate) struct Project {
    server: Server,
}

impl Project {
    /// A new project.
    pub(crate) fn new() -> Result<Self, Failure> {
        let document = Document::read(&discovery::ensure()?)?;
        let server = Server::start(&std::sync::Arc::new(document))?;
        server.add_subnetwork(PROJECT, REGION, "nodes", "default", "10.132.0.0/20");
        for image in ["one", "two"] {
            server.add_image(PROJECT, image, "", None);
        }
        Ok(Self { server })
    }
}

impl Place for Project {
    fn equip(&self, _command: &mut Command) {}

    fn disturb(&self, chance: &mut Random) {
        let mut below = |bound: usize| chance.below(bound);
        self.server.set_habits(Habits {
            hidden: below(2) as u32,
            operation: 1 + below(3) as u32,
            ..Habits::default()
        });
        self.server.set_chance(Some(Chance {
            seed: below(usize::MAX) as u64,
            throttled: [0, 50][below(2)],
            failed: [0, 20][below(2)],
            failed_after: [0, 20][below(2)],
            lost_requests: [0, 20][below(2)],
            lost_answers: [0, 50][below(2)],
            ended: [0, 20][below(2)],
        }));
    }

    fn calm(&self) {
        self.server.set_habits(Habits::default());
        self.server.set_chance(None);
    }

    fn configuration(&self, sizes: &BTreeMap<&'static str, u32>, chance: &mut Random) -> String {
        let mut groups = serde_json::Map::new();
        for (name, size) in sizes {
            let instance_type = ["e2-small", "e2-medium"][chance.below(2)];
            let image = ["one", "two"][chance.below(2)];
            let colour = ["red", "blue"][chance.below(2)];
            let args = json!({
                "SourceImage": format!("projects/{PROJECT}/global/images/{image}"),
                "Labels": {"colour": colour},
            });
            let group = json!({
                "kind": "web", "arch": "amd64", "instance_type": instance_type,
                "subnet_pool": "all", "size": size, "args": args,
                "userdata": "#!/bin/sh\nhostname {{ .Instance.Hostname }}\n",
            });
            groups.insert((*name).to_owned(), group);
        }
        let rate = json!({"burst": 10_000, "per_second": 10_000});
        let options = json!({
            "project_id": PROJECT,
            "endpoint": self.server.url(),
            "anonymous": true,
            "visibility_window": "300ms",
            "poll_interval": "5ms",
            "read_rate": rate,
            "write_rate": rate,
        });
        let zone = format!("{REGION}-b");
        let infra = json!({"provider": "gcp", "region": REGION, "zone": zone, "options": options});
        json!({
            "cluster": {"id": "kill"},
            "shard": {"id": "one", "infra": infra, "subnet_pools": {"all": ["nodes"]}},
            "groups": {"default": groups},
        })
        .to_string()
    }

    fn live(&self) -> Result<Instances, Failure> {
        let violations = self.server.violations();
        if !violations.is_empty() {
            return Err(Failure::say(format!("not as Google's: {violations:#?}")));
        }
        Ok(self.server.instances().iter().map(triple).collect())
    }

    fn longest(&self) -> Duration {
        Duration::from_millis(1_500)
    }
}

fn triple(resource: &Value) -> [String; 3] {
    let label = |key: &str| resource["labels"][key].as_str().unwrap_or("-").to_owned();
    let name = |key: &str| kill::last(resource[key].as_str().unwrap_or("-"));
    [
        format!(
            "{}/{}/{}",
            label("nstance-tenant"),
            label("nstance-group"),
            label("nstance-slot")
        ),
        label("nstance-instance-id"),
        format!("{}/{}", name("zone"), name("name")),
    ]
}
