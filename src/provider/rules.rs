//! What each provider's rules have in common, and the way to them.
//!
//! In: args as written, paths of a spec. Out: findings, effects, tags. Must not: ask a cloud.

use std::collections::BTreeMap;

use crate::config::model::ProviderKind;
use crate::config::node::{Entry, Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics};

use super::{aws, gcp, sim};

/// What it takes to change an attribute of an instance that exists.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Changed while it runs.
    InPlace,
    /// Changed while it is stopped; it is started again.
    Restart,
    /// Only a new instance can have it.
    Replace,
}

/// Where an instance or a part of it should be, as args say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedPlace<'a> {
    /// In this zone.
    Zone(&'a str),
    /// In this subnet.
    Subnet(&'a str),
}

/// Who an instance is; what its managed tags say.
#[derive(Debug, Clone, Copy)]
pub struct Ownership<'a> {
    /// `cluster.id`
    pub cluster: &'a str,
    /// `shard.id`
    pub shard: &'a str,
    /// The tenant.
    pub tenant: &'a str,
    /// The group, without its tenant.
    pub group: &'a str,
    /// The template, or empty.
    pub template: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The slot.
    pub slot: u32,
    /// Our id.
    pub instance_id: &'a str,
    /// The first 32 hex digits of the spec's digest.
    pub spec: &'a str,
}

impl Ownership<'_> {
    /// What the managed tags say, by their short names.
    pub fn facts(&self) -> [(&'static str, String); 10] {
        [
            ("managed", "true".to_owned()),
            ("instance-id", self.instance_id.to_owned()),
            ("cluster-id", self.cluster.to_owned()),
            ("shard", self.shard.to_owned()),
            ("tenant", self.tenant.to_owned()),
            ("group", self.group.to_owned()),
            ("template", self.template.to_owned()),
            ("instance-kind", self.kind.to_owned()),
            ("slot", self.slot.to_string()),
            ("spec", self.spec.to_owned()),
        ]
    }

    /// The name people see.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.cluster, self.group, self.instance_id)
    }
}

/// What a change takes on a cloud of instances with args, given the args that change while an
/// instance runs and those that change while it is stopped.
pub fn effect_of(path: &str, in_place: &[&str], restart: &[&str]) -> Effect {
    let (root, rest) = path.split_once('.').unwrap_or((path, ""));
    match root {
        "tags" | "labels" | "load_balancers" | "files" | "vars" => Effect::InPlace,
        "instance_type" => Effect::Restart,
        "args" => {
            let member = rest.split(['.', '[']).next().unwrap_or(rest);
            if in_place.contains(&member) {
                Effect::InPlace
            } else if restart.contains(&member) {
                Effect::Restart
            } else {
                Effect::Replace
            }
        }
        // Userdata could be changed in some places, but cloud-init has run by then.
        _ => Effect::Replace,
    }
}

/// The finding for a member that args can't set, and what to do instead.
pub(super) fn managed_member(entry: &Entry, name: &str, instead: &str) -> Diagnostic {
    Diagnostic::error(format!("`{name}` can't be set in args"))
        .at(entry.key_span, "nstance sets it")
        .hint(instead)
}

/// A member of merged layers, the lowest first: the highest layer that has it decides, and null takes
/// it away.
pub(super) fn effective<'n>(layers: &[&'n Node], name: &str) -> Option<&'n Entry> {
    let has_name = |entry: &&Entry| &*entry.key == name;
    let mut layers = layers.iter().rev();
    layers
        .find_map(|layer| layer.entries().iter().find(has_name))
        .filter(|entry| entry.value.value != NodeValue::Null)
}

/// The rules of one provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    kind: ProviderKind,
}

impl Rules {
    /// The rules of `kind`. Providers that are known by name only get the embedded cloud's, which
    /// forbid least.
    pub fn of(kind: ProviderKind) -> Self {
        Self { kind }
    }

    /// Whose rules they are.
    pub fn kind(self) -> ProviderKind {
        self.kind
    }

    /// `aws_instance`, `google_compute_instance`, `sim_instance`.
    pub fn resource_type(self) -> &'static str {
        match self.kind {
            ProviderKind::Aws => "aws_instance",
            ProviderKind::Gcp => "google_compute_instance",
            ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => "sim_instance",
        }
    }

    /// Finds what may not be written in one layer's args: forbidden members, unknown ones, wrong
    /// shapes. Strings may still be templates.
    pub fn check_args(self, args: &Node, findings: &mut Diagnostics) {
        match self.kind {
            ProviderKind::Aws => aws::rules::check_args(args, findings),
            ProviderKind::Gcp => gcp::check_args(args, findings),
            ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => {
                sim::rules::check_args(args, findings);
            }
        }
    }

    /// Finds what only shows once layers are merged: members that exclude each other. `layers` are
    /// the args of one group, lowest first.
    pub fn check_merged_args(self, layers: &[&Node], findings: &mut Diagnostics) {
        match self.kind {
            ProviderKind::Aws => aws::rules::check_merged_args(layers, findings),
            ProviderKind::Gcp => gcp::check_merged_args(layers, findings),
            ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => {}
        }
    }

    /// What it takes to change the attribute at `path` (`instance_type`, `tags.X`,
    /// `args.SecurityGroupIds`, `userdata`, …).
    pub fn effect(self, path: &str) -> Effect {
        match self.kind {
            ProviderKind::Aws => aws::rules::effect(path),
            ProviderKind::Gcp => gcp::effect(path),
            ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => {
                sim::rules::effect(path)
            }
        }
    }

    /// Paths that only a new instance can have otherwise, unless a group would rather have its
    /// instances stopped, changed and started (`lifecycle.restart_on`).
    pub fn restartable(self) -> &'static [&'static str] {
        match self.kind {
            ProviderKind::Gcp => &[],
            ProviderKind::Aws
            | ProviderKind::Sim
            | ProviderKind::Proxmox
            | ProviderKind::Yandex => &["userdata"],
        }
    }

    /// The zones and subnets that rendered args name beside those that we choose, each with its
    /// path.
    pub fn places_named(
        self,
        args: &serde_json::Map<String, serde_json::Value>,
    ) -> Vec<(String, NamedPlace<'_>)> {
        match self.kind {
            ProviderKind::Aws => aws::rules::places_named(args),
            _ => Vec::new(),
        }
    }

    /// The arg that protects an instance against deletion, where these args set it.
    pub fn protection(
        self,
        args: &serde_json::Map<String, serde_json::Value>,
    ) -> Option<&'static str> {
        let name = match self.kind {
            ProviderKind::Aws => aws::rules::PROTECTION,
            ProviderKind::Gcp => "deletionProtection",
            ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => return None,
        };
        (args.get(name) == Some(&serde_json::Value::Bool(true))).then_some(name)
    }

    /// The most bytes userdata may have, before any encoding.
    pub fn userdata_limit(self) -> Option<usize> {
        match self.kind {
            ProviderKind::Aws => Some(16_384),
            ProviderKind::Gcp => Some(262_144),
            ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => None,
        }
    }

    /// A subnet is full when it has no more free addresses than this.
    pub fn reserved_addresses(self) -> u32 {
        match self.kind {
            ProviderKind::Aws => 10,
            _ => 0,
        }
    }

    /// The tags or labels that mark an instance as ours, its `Name` among them.
    pub fn managed_tags(self, who: &Ownership<'_>) -> BTreeMap<String, String> {
        match self.kind {
            ProviderKind::Gcp => gcp::managed_labels(who),
            _ => aws::rules::managed_tags(who),
        }
    }

    /// Whether a tag is one that only we may set (`Name` isn't).
    pub fn is_managed_tag(self, key: &str) -> bool {
        match self.kind {
            ProviderKind::Gcp => key.starts_with("nstance-"),
            _ => key.starts_with("nstance:"),
        }
    }

    /// The user's tags in rendered args: `TagSpecifications` of instances, or `Labels`.
    pub fn user_tags(
        self,
        args: &serde_json::Map<String, serde_json::Value>,
    ) -> BTreeMap<String, String> {
        match self.kind {
            ProviderKind::Gcp => gcp::user_labels(args),
            _ => aws::rules::user_tags(args),
        }
    }

    /// A key or value as the provider can hold it: GCP labels are lower case with hyphens.
    pub fn sanitise_tag(self, text: &str) -> String {
        match self.kind {
            ProviderKind::Gcp => gcp::sanitise_label(text),
            _ => text.to_owned(),
        }
    }

    /// The tag that holds a fact of [`Ownership`], by its short name (`instance-id`, `slot`, …).
    pub fn tag_key(self, short: &str) -> String {
        match self.kind {
            ProviderKind::Gcp => format!("nstance-{short}"),
            _ => format!("nstance:{short}"),
        }
    }
}
