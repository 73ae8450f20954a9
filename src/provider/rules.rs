//! Selects a provider's rules, and what they share.
//!
//! In: args as written, paths of a spec. Out: findings, effects, tags. Must not: call a cloud.

use std::collections::BTreeMap;

use crate::config::model::ProviderKind;
use crate::config::node::{Entry, Node, NodeValue};
use crate::diagnostic::{Diagnostic, Diagnostics};

use super::{aws, gcp, proxmox, sim, yandex};

/// What a change of an existing instance's attribute requires.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// An update while it runs.
    InPlace,
    /// An update while it is stopped; it is started again.
    Restart,
    /// A new instance.
    Replace,
}

/// A place that args name for an instance or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedPlace<'a> {
    /// In this zone.
    Zone(&'a str),
    /// In this subnet.
    Subnet(&'a str),
}

/// The identity of an instance, which its managed tags hold.
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
    /// The template; may be empty.
    pub template: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The slot.
    pub slot: u32,
    /// The instance id.
    pub instance_id: &'a str,
    /// The first 32 hex digits of the spec's digest.
    pub spec: &'a str,
}

/// The short names of the managed tags.
pub const FACTS: [&str; 10] = [
    "managed",
    "instance-id",
    "cluster-id",
    "shard",
    "tenant",
    "group",
    "template",
    "instance-kind",
    "slot",
    "spec",
];

impl Ownership<'_> {
    /// The values of the managed tags, by short name.
    pub fn facts(&self) -> impl Iterator<Item = (&'static str, String)> {
        let values = [
            "true".to_owned(),
            self.instance_id.to_owned(),
            self.cluster.to_owned(),
            self.shard.to_owned(),
            self.tenant.to_owned(),
            self.group.to_owned(),
            self.template.to_owned(),
            self.kind.to_owned(),
            self.slot.to_string(),
            self.spec.to_owned(),
        ];
        FACTS.into_iter().zip(values)
    }

    /// The display name.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.cluster, self.group, self.instance_id)
    }
}

/// The effect of a change, given the args that change in place and those that require a stop.
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
        // Some clouds can change userdata, but cloud-init has already run.
        _ => Effect::Replace,
    }
}

/// The error that nstance manages a member, with what to use instead.
pub(super) fn managed_member(entry: &Entry, name: &str, instead: &str) -> Diagnostic {
    Diagnostic::error(format!("`{name}` can't be set in args"))
        .at(entry.key_span, "nstance sets it")
        .hint(instead)
}

/// A member of merged layers, lowest first: the highest layer that has it wins, and null removes
/// it.
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
    /// The rules of `kind`. Providers without a client use the embedded cloud's, which are the most
    /// permissive.
    pub fn of(kind: ProviderKind) -> Self {
        Self { kind }
    }

    /// The provider of these rules.
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

    /// Reports invalid args of one layer: managed or unknown members, wrong shapes. Strings may
    /// still be templates.
    pub fn check_args(self, args: &Node, findings: &mut Diagnostics) {
        match self.kind {
            ProviderKind::Aws => aws::rules::check_args(args, findings),
            ProviderKind::Gcp => gcp::check_args(args, findings),
            ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => {
                sim::rules::check_args(args, findings);
            }
        }
    }

    /// Gives members within args the names that the API knows.
    pub fn settle_args(self, args: &mut Node, findings: &mut Diagnostics) {
        if self.kind == ProviderKind::Aws {
            aws::rules::settle_args(args, findings);
        }
    }

    /// What merged args lack, in words; `layers` are the args of one group, lowest first.
    pub fn lacking_args(self, layers: &[&Node]) -> Vec<&'static str> {
        match self.kind {
            ProviderKind::Proxmox => proxmox::lacking(layers),
            ProviderKind::Aws | ProviderKind::Gcp | ProviderKind::Sim | ProviderKind::Yandex => {
                Vec::new()
            }
        }
    }

    /// Reports errors that only merged layers can have: members that exclude each other. `layers`
    /// are the args of one group, lowest first.
    pub fn check_merged_args(self, layers: &[&Node], findings: &mut Diagnostics) {
        match self.kind {
            ProviderKind::Aws => aws::rules::check_merged_args(layers, findings),
            ProviderKind::Gcp => gcp::check_merged_args(layers, findings),
            ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => {}
        }
    }

    /// What a change of the attribute at `path` requires (`instance_type`, `tags.X`,
    /// `args.SecurityGroupIds`, `userdata`, …).
    pub fn effect(self, path: &str) -> Effect {
        match self.kind {
            ProviderKind::Aws => aws::rules::effect(path),
            ProviderKind::Gcp => gcp::effect(path),
            ProviderKind::Yandex => yandex::effect(path),
            ProviderKind::Sim | ProviderKind::Proxmox => sim::rules::effect(path),
        }
    }

    /// Paths that require a new instance by default, but can be changed by a stop and start if
    /// `lifecycle.restart_on` names them.
    pub fn restartable(self) -> &'static [&'static str] {
        match self.kind {
            ProviderKind::Gcp => &[],
            ProviderKind::Aws
            | ProviderKind::Sim
            | ProviderKind::Proxmox
            | ProviderKind::Yandex => &["userdata"],
        }
    }

    /// The zones and subnets that rendered args name, besides those that nstance chooses, each with
    /// its path.
    pub fn places_named(
        self,
        args: &serde_json::Map<String, serde_json::Value>,
    ) -> Vec<(String, NamedPlace<'_>)> {
        match self.kind {
            ProviderKind::Aws => aws::rules::places_named(args),
            _ => Vec::new(),
        }
    }

    /// The arg that protects an instance from deletion, if these args set it.
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

    /// Whether disks stay when an instance with these args is deleted.
    pub fn leaves_disks(self, args: &serde_json::Map<String, serde_json::Value>) -> bool {
        self.kind == ProviderKind::Gcp && gcp::leaves_disks(args)
    }

    /// The size limit of userdata before encoding, in bytes.
    pub fn userdata_limit(self) -> Option<usize> {
        match self.kind {
            ProviderKind::Aws => Some(16_384),
            ProviderKind::Gcp => Some(262_144),
            ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => None,
        }
    }

    /// A subnet with at most this many free addresses counts as full.
    pub fn reserved_addresses(self) -> u32 {
        match self.kind {
            ProviderKind::Aws => 10,
            _ => 0,
        }
    }

    /// The managed tags or labels of an instance, including its `Name`.
    pub fn managed_tags(self, who: &Ownership<'_>) -> BTreeMap<String, String> {
        match self.kind {
            ProviderKind::Gcp => gcp::managed_labels(who),
            _ => aws::rules::managed_tags(who),
        }
    }

    /// Whether a tag is managed (`Name` isn't).
    pub fn is_managed_tag(self, key: &str) -> bool {
        match self.kind {
            ProviderKind::Gcp => key.starts_with("nstance-"),
            _ => aws::rules::is_managed_tag(key),
        }
    }

    /// The tag with an instance's display name. It is set by default, and the user may set it.
    pub fn name_tag(self) -> &'static str {
        match self.kind {
            ProviderKind::Gcp => "name",
            _ => "Name",
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

    /// A key or value that the provider accepts: GCP labels are lower case with hyphens.
    pub fn sanitise_tag(self, text: &str) -> String {
        match self.kind {
            ProviderKind::Gcp => gcp::sanitise_label(text),
            _ => text.to_owned(),
        }
    }

    /// The tag key for a fact of [`Ownership`], by its short name (`instance-id`, `slot`, …).
    pub fn tag_key(self, short: &str) -> String {
        match self.kind {
            ProviderKind::Gcp => format!("nstance-{short}"),
            _ => format!("nstance:{short}"),
        }
    }
}
