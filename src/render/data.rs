//! The data that templates can read.
//!
//! In: facts of the cluster, the group and the instance. Out: the template engine's values, built
//! once a group; an instance only adds its own. Must not: depend on where facts come from.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use nstance_gotemplate::{Map, Struct, StructType, Value};
use serde::{Deserialize, Serialize};

use super::dns::DnsNames;
use super::links::{LinkSet, Unknown, links_value};
use crate::merge::zones::Seat;

/// The fields of the root, in declaration order.
pub const ROOT_FIELDS: [&str; 11] = [
    "Vars", "Var", "Image", "Instance", "Server", "Provider", "Cluster", "Group", "Template",
    "Nonce", "Link",
];

const INSTANCE: [&str; 19] = [
    "ID",
    "Kind",
    "Arch",
    "Type",
    "Index",
    "IndexInZone",
    "Number",
    "NumberInZone",
    "ShortID",
    "Zone",
    "Tag",
    "Name",
    "Hostname",
    "FQDN",
    "IP4",
    "IP6",
    "Labels",
    "Address",
    "Bootstrap",
];
const SERVER: [&str; 4] = ["Shard", "RegistrationAddr", "AgentAddr", "OperatorAddr"];
const PROVIDER: [&str; 3] = ["Kind", "Region", "Zone"];
const CLUSTER: [&str; 4] = ["ID", "Slug", "FQDN", "CACert"];
const GROUP: [&str; 5] = ["ID", "Name", "Tenant", "Size", "Labels"];
const TEMPLATE: [&str; 1] = ["Name"];

/// The fields below a field of the root: empty for maps with arbitrary keys, `None` for an unknown
/// field.
pub fn fields_of(root: &str) -> Option<&'static [&'static str]> {
    Some(match root {
        "Vars" | "Var" | "Image" | "Nonce" | "Link" => &[],
        "Instance" => &INSTANCE,
        "Server" => &SERVER,
        "Provider" => &PROVIDER,
        "Cluster" => &CLUSTER,
        "Group" => &GROUP,
        "Template" => &TEMPLATE,
        _ => return None,
    })
}

/// Whether the value at this path differs between instances of a group.
pub fn is_per_instance(path: &str) -> bool {
    if path == ".Nonce" {
        return true;
    }
    match path.strip_prefix(".Instance") {
        Some(".Kind" | ".Arch" | ".Type") => false,
        Some(rest) => rest.is_empty() || rest.starts_with('.'),
        // The whole root.
        None => path.is_empty() || path == ".",
    }
}

/// Facts that all groups share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardFacts {
    /// `cluster.id`
    pub cluster_id: Arc<str>,
    /// `cluster.slug`
    pub cluster_slug: Arc<str>,
    /// `cluster.fqdn`
    pub cluster_fqdn: Arc<str>,
    /// `cluster.ca_cert`, or a text in its place.
    pub ca_cert: Arc<str>,
    /// `shard.id`
    pub shard: Arc<str>,
    /// `shard.advertise.registration_addr`
    pub registration_addr: Arc<str>,
    /// `shard.advertise.agent_addr`
    pub agent_addr: Arc<str>,
    /// `shard.advertise.operator_addr`
    pub operator_addr: Arc<str>,
    /// `shard.infra.provider`
    pub provider: Arc<str>,
    /// `shard.infra.region`
    pub region: Arc<str>,
    /// `shard.infra.zone`
    pub zone: Arc<str>,
    /// `dns.namespace`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_namespace: Option<Arc<str>>,
    /// `dns.domain`, or `cluster.fqdn`; may be empty.
    #[serde(default)]
    pub dns_domain: Arc<str>,
}

/// Facts that all instances of a group share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupFacts {
    /// Facts that all groups share.
    #[serde(flatten)]
    pub of_shard: Arc<ShardFacts>,
    /// The group's id.
    #[serde(default)]
    pub id: Arc<str>,
    /// The tenant.
    pub tenant: Arc<str>,
    /// The group's name, without the tenant.
    pub group: Arc<str>,
    /// The desired number of instances.
    pub size: u32,
    /// Its labels.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// The labels of its instances, unless each has its own.
    #[serde(default)]
    pub instance_labels: BTreeMap<Arc<str>, Arc<str>>,
    /// The template's name; may be empty.
    pub template: Arc<str>,
    /// The merged vars, an object.
    pub vars: serde_json::Value,
    /// Image ids by name; `None` for an image that wasn't resolved.
    pub images: BTreeMap<Arc<str>, Option<Arc<str>>>,
    /// Whether it lists zones.
    #[serde(default)]
    pub lists_zones: bool,
}

/// Facts of one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceFacts {
    /// The instance id.
    pub id: Arc<str>,
    /// The kind.
    pub kind: Arc<str>,
    /// The architecture.
    pub arch: Arc<str>,
    /// The instance type.
    pub instance_type: Arc<str>,
    /// The slot.
    pub slot: u32,
    /// The index, if it isn't the slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The slot's number and tag in the zone.
    #[serde(default)]
    pub seat: Seat,
    /// The zone.
    pub zone: Arc<str>,
    /// The slot's short id; empty if no template reads it.
    pub short_id: Arc<str>,
    /// The IPv4 address, once it is known.
    pub ip4: Option<Arc<str>>,
    /// The IPv6 address, once it is known.
    pub ip6: Option<Arc<str>>,
    /// The nonce of a trial; otherwise its placeholder.
    #[serde(skip)]
    pub trial_nonce: Option<&'static str>,
}

/// The limit of a nonce, in bytes; limits of userdata count as many.
pub const LARGEST_NONCE: usize = 1_024;

/// What a nonce's placeholder begins with.
pub const NONCE_PREFIX: &str = "nonce-of-";

/// What stands for the nonce of an instance until it is created.
pub fn nonce_placeholder(instance_id: &str) -> String {
    format!("{NONCE_PREFIX}{instance_id}")
}

impl InstanceFacts {
    /// `.Instance.Index`
    pub(super) fn index(&self) -> u32 {
        self.index.unwrap_or(self.slot)
    }

    /// `.Nonce`
    fn nonce(&self) -> String {
        let placeholder = || nonce_placeholder(&self.id);
        self.trial_nonce.map_or_else(placeholder, str::to_owned)
    }
}

struct Types {
    root: Arc<StructType>,
    instance: Arc<StructType>,
    server: Arc<StructType>,
    provider: Arc<StructType>,
    cluster: Arc<StructType>,
    group: Arc<StructType>,
    template: Arc<StructType>,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| Types {
    root: StructType::new("TemplateData", ROOT_FIELDS),
    instance: StructType::new("Instance", INSTANCE),
    server: StructType::new("Server", SERVER),
    provider: StructType::new("Provider", PROVIDER),
    cluster: StructType::new("Cluster", CLUSTER),
    group: StructType::new("Group", GROUP),
    template: StructType::new("Template", TEMPLATE),
});

/// Template values that all groups share.
#[derive(Debug)]
pub struct ShardData {
    /// The facts that the values are built from.
    pub facts: Arc<ShardFacts>,
    server: Value,
    provider: Value,
    cluster: Value,
}

impl ShardData {
    /// Builds the values once.
    pub fn new(facts: Arc<ShardFacts>) -> Self {
        let fields = |texts: &[&Arc<str>]| texts.iter().map(|text| Value::from(&***text)).collect();
        Self {
            server: structure(
                &TYPES.server,
                fields(&[
                    &facts.shard,
                    &facts.registration_addr,
                    &facts.agent_addr,
                    &facts.operator_addr,
                ]),
            ),
            provider: structure(
                &TYPES.provider,
                fields(&[&facts.provider, &facts.region, &facts.zone]),
            ),
            cluster: structure(
                &TYPES.cluster,
                fields(&[
                    &facts.cluster_id,
                    &facts.cluster_slug,
                    &facts.cluster_fqdn,
                    &facts.ca_cert,
                ]),
            ),
            facts,
        }
    }
}

/// Template values of a group, without those of an instance.
#[derive(Clone)]
pub struct GroupData {
    vars: Value,
    images: Value,
    server: Value,
    provider: Value,
    cluster: Value,
    group: Value,
    template: Value,
    labels: Value,
    links: Value,
    names: DnsNames,
    name_prefix: String,
    domain: Arc<str>,
}

impl GroupData {
    /// Builds the values once.
    pub fn new(facts: &GroupFacts, shard: &ShardData) -> Self {
        let text = |text: &Arc<str>| Value::from(&**text);
        Self {
            vars: match to_value(&facts.vars) {
                Value::Map(map) => Value::Map(map.lenient()),
                _ => Value::Map(Map::new(Vec::new()).lenient()),
            },
            images: images_value(&facts.images),
            server: shard.server.clone(),
            provider: shard.provider.clone(),
            cluster: shard.cluster.clone(),
            group: structure(
                &TYPES.group,
                vec![
                    text(&facts.id),
                    text(&facts.group),
                    text(&facts.tenant),
                    Value::Int(i64::from(facts.size)),
                    labels_value(&facts.labels),
                ],
            ),
            template: structure(&TYPES.template, vec![text(&facts.template)]),
            labels: labels_value(&facts.instance_labels),
            links: Value::Map(Map::new(Vec::new())),
            names: DnsNames::of(facts),
            name_prefix: [&*shard.facts.cluster_id, "-", &*facts.group, "-"].concat(),
            domain: Arc::clone(&shard.facts.cluster_fqdn),
        }
    }

    /// The same values, with these links.
    #[must_use]
    pub fn with_links(&self, links: &LinkSet, unknown: Unknown) -> Self {
        Self {
            links: links_value(links, unknown),
            ..self.clone()
        }
    }

    /// The root value for one instance. `images` replaces the group's images, for an instance that
    /// keeps those it was created with, and `labels` the labels that all its instances have.
    pub fn root(
        &self,
        instance: &InstanceFacts,
        images: Option<Value>,
        labels: Option<Value>,
    ) -> Value {
        let text = |text: &str| Value::from(text);
        let known = |text: Option<&Arc<str>>, path: &str| match text {
            Some(text) => Value::from(&**text),
            None => Value::unknown(path),
        };
        let fqdn = if self.domain.is_empty() {
            String::from(&*instance.id)
        } else {
            [&*instance.id, ".", &*self.domain].concat()
        };
        let fields = vec![
            text(&instance.id),
            text(&instance.kind),
            text(&instance.arch),
            text(&instance.instance_type),
            Value::Int(i64::from(instance.index())),
            Value::Int(i64::from(instance.seat.number) - 1),
            Value::Int(i64::from(instance.index()) + 1),
            Value::Int(i64::from(instance.seat.number)),
            text(&instance.short_id),
            text(&instance.zone),
            text(&instance.seat.tag),
            Value::from([&*self.name_prefix, &*instance.id].concat()),
            text(&instance.id),
            Value::from(fqdn),
            known(instance.ip4.as_ref(), ".Instance.IP4"),
            known(instance.ip6.as_ref(), ".Instance.IP6"),
            labels.unwrap_or_else(|| self.labels.clone()),
            Value::from(self.names.instance(instance.index())),
            Value::Bool(instance.index() == 0),
        ];
        structure(
            &TYPES.root,
            vec![
                self.vars.clone(),
                self.vars.clone(),
                images.unwrap_or_else(|| self.images.clone()),
                structure(&TYPES.instance, fields),
                self.server.clone(),
                self.provider.clone(),
                self.cluster.clone(),
                self.group.clone(),
                self.template.clone(),
                Value::from(instance.nonce()),
                self.links.clone(),
            ],
        )
    }
}

/// The value of `.Group.Labels` or `.Instance.Labels`.
pub fn labels_value(labels: &BTreeMap<Arc<str>, Arc<str>>) -> Value {
    let labels = labels.iter();
    let labels: Map = labels
        .map(|(name, value)| (String::from(&**name), Value::from(&**value)))
        .collect();
    Value::Map(labels.string_typed())
}

/// The value of `.Image`. An image that wasn't resolved is unknown, so that only templates that
/// read it fail.
pub fn images_value(images: &BTreeMap<Arc<str>, Option<Arc<str>>>) -> Value {
    let map: Map = images
        .iter()
        .map(|(name, id)| {
            let value = match id {
                Some(id) => Value::from(&**id),
                None => Value::unknown(format!(".Image.{name}")),
            };
            (String::from(&**name), value)
        })
        .collect();
    Value::Map(map.string_typed())
}

pub(super) fn structure(of: &Arc<StructType>, fields: Vec<Value>) -> Value {
    Value::Struct(Struct::new(Arc::clone(of), fields))
}

/// Converts JSON to a template value; whole numbers become integers.
pub fn to_value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::MAX)),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => {
            Value::from(items.iter().map(to_value).collect::<Vec<_>>())
        }
        serde_json::Value::Object(entries) => Value::Map(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), to_value(value)))
                .collect::<Map>(),
        ),
    }
}
