//! A project of its own for each test.
//!
//! In: configurations and command lines, and what others do in the project. Out: what a command left,
//! as a text that is the same on each run. Must not: ask nstance what there is in the cloud.

use std::process::Command;

use nstance_gce_server::{Document, PROJECT, Server};
use serde_json::Value;

use crate::clouds::{Account, Seen};
use crate::harness::{Ended, Harness};

/// Two groups, with everything that the tests change about them.
pub(crate) const FLEET: &str = include_str!("../data/gcp_fleet.jsonc");

pub(crate) struct Gcp {
    pub(crate) harness: Harness,
    pub(crate) server: Server,
}

impl Gcp {
    /// A project with the subnet `nodes` and two images of a family. None where there is no
    /// description of the API.
    #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
    pub(crate) fn with(config: &str) -> Option<Self> {
        let Some(document) = Document::for_tests() else {
            eprintln!("left out: `cargo xtask test --features gcp` gets Google's description");
            return None;
        };
        let server = Server::start(&document).unwrap();
        server.add_subnetwork(PROJECT, "europe-west1", "nodes", "default", "10.132.0.0/20");
        server.add_image("debian-cloud", "debian-13-v1", "debian-13", None);
        let harness = Harness::empty();
        let config = config
            .replace("PROJECT", PROJECT)
            .replace("http://127.0.0.1:1", &server.url());
        harness.configure(&config);
        Some(Self { harness, server })
    }

    /// The fleet, applied.
    pub(crate) fn applied(config: &str) -> Option<Self> {
        let gcp = Self::with(config)?;
        crate::clouds::ok(&gcp, "apply --auto-approve");
        Some(gcp)
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        self.harness.command(words)
    }

    /// What a command left, as it is on each run.
    pub(crate) fn told(&self, words: &str) -> String {
        self.shown(&self.run(words).to_string())
    }

    /// A text as it is on each run.
    pub(crate) fn shown(&self, text: &str) -> String {
        let lines = text.split_inclusive('\n');
        let text: String = lines
            .filter(|line| !line.contains(": trying again in ") && !line.contains(": Still "))
            .collect();
        let text = text.replace(&self.server.url(), "http://127.0.0.1:1");
        crate::clouds::put(&text, " complete after ", "0s", |c| {
            c.is_ascii_digit() || "ms.".contains(c)
        })
    }

    /// The resource of an address.
    #[track_caller]
    pub(crate) fn resource(&self, address: &str) -> Value {
        let seen = crate::clouds::at(self, address);
        self.server.instance(name(&seen.id))
    }
}

/// Every request was one that Google would take, every answer one that it could give.
impl Drop for Gcp {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.server.violations(), Vec::<String>::new());
        }
    }
}

/// The name in a provider id.
pub(crate) fn name(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

impl Account for Gcp {
    fn harness(&self) -> &Harness {
        &self.harness
    }

    fn run(&self, words: &str) -> Ended {
        self.harness.end(words, self.command(words))
    }

    fn live(&self) -> Vec<Seen> {
        let mut live: Vec<Seen> = self
            .server
            .instances()
            .iter()
            .map(|resource| {
                let label = |key: &str| resource["labels"][key].as_str().unwrap_or("-").to_owned();
                let text = |key: &str| name(resource[key].as_str().unwrap_or("-"));
                Seen {
                    address: format!(
                        "{}/{}/{}",
                        label("nstance-tenant"),
                        label("nstance-group"),
                        label("nstance-slot")
                    ),
                    instance_id: label("nstance-instance-id"),
                    id: format!("{}/{}", text("zone"), text("name")),
                    team: label("team"),
                }
            })
            .collect();
        live.sort();
        live
    }

    fn set_team(&self, id: &str, value: &str) {
        self.server.edit(name(id), |resource| {
            resource["labels"]["team"] = value.into();
        });
    }

    fn delete(&self, id: &str) {
        self.server.delete(name(id));
    }

    fn stop(&self, id: &str) {
        self.server.stop(name(id));
    }
}
