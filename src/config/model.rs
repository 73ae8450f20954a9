//! The typed configuration, the same for all languages.
//!
//! In: nothing (data only; `decode` fills it, `check` validates it). Out: [`Config`], which every
//! later stage reads.
//!
//! The fields are those of Nstance's server configuration and nstance's additions ("ours");
//! `docs/configuration.md` describes them. Defaults are applied here, so that later stages don't
//! need to know them. Args, vars and file templates stay [`Node`]s.

mod update;
mod userdata;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::node::{Node, Sensitivity};
use super::source::{Span, Spanned};
use crate::address::{GroupName, Selector};
use crate::clock::Timestamp;

pub use update::{
    Amount, CanaryPause, Check, Health, MinimalAction, OnFailure, Update, UpdateOrder, ZoneOrder,
};
pub use userdata::{
    Compress, Encoding, Includes, Joining, TextSource, Userdata, UserdataPart, UserdataSource,
};

/// The name of a template's own text among those that it can call.
pub const MAIN_TEMPLATE: &str = "template";

/// A map in the order written, each entry with its key's place.
pub type Named<T> = indexmap::IndexMap<Arc<str>, Spanned<T>>;

/// One configuration: one shard of a cluster.
#[derive(Debug, Clone)]
pub struct Config {
    /// `cluster`
    pub cluster: Cluster,
    /// `shard`
    pub shard: Shard,
    /// `state`: the URL of the state, without a password.
    pub state: Option<Spanned<Arc<str>>>,
    /// `load_balancers`
    pub load_balancers: Named<LoadBalancer>,
    /// `images`
    pub images: Named<Image>,
    /// `certificates`; the server makes them.
    pub certificates: Named<Certificate>,
    /// `server.files`: the server's own, only checked.
    pub server_files: Named<File>,
    /// `nat`: tenant → its group of NAT instances.
    pub nat: Named<Nat>,
    /// The groups that `nat` names, whose instances are the server's.
    pub server_groups: BTreeSet<GroupName>,
    /// `nonce_command`: makes an instance's `.Nonce`.
    pub nonce_command: Vec<Arc<str>>,
    /// `dns`: what DNS names end in.
    pub dns: Dns,
    /// Top-level `vars`, overridden by `--var`.
    pub vars: Option<Node>,
    /// `defaults`
    pub defaults: Defaults,
    /// `templates`
    pub templates: Named<Template>,
    /// `functions`: the functions that templates can call.
    pub functions: Functions,
    /// `templates_lib`: named snippets that every template can call.
    pub templates_lib: Named<TextSource>,
    /// `groups`, nested or flat, in the order written.
    pub groups: Vec<Group>,
    /// `destroy_budget`
    pub destroy_budget: DestroyBudget,
    /// `accept`: drift that is known.
    pub accept: Vec<Acceptance>,
    /// `strict`: warnings, and unset vars, are errors.
    pub strict: bool,
}

/// `dns`: what the names of instances end in.
#[derive(Debug, Clone, Default)]
pub struct Dns {
    /// `namespace`, by default `TENANT.SHARD`.
    pub namespace: Option<Arc<str>>,
    /// `domain`, by default `cluster.fqdn`, or `internal`.
    pub domain: Option<Arc<str>>,
}

/// `functions`: the functions that templates can call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Functions {
    /// `go`: Go's own, and `default`.
    #[default]
    Go,
    /// `sprig`: also Sprig's and Helm's.
    Sprig,
}

impl Functions {
    /// Whether it is the default.
    pub fn is_go(&self) -> bool {
        *self == Self::Go
    }
}

impl Config {
    /// The group of that name.
    pub fn group(&self, name: &GroupName) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == *name)
    }
}

/// `cluster`
#[derive(Debug, Clone)]
pub struct Cluster {
    /// `id`
    pub id: Spanned<Arc<str>>,
    /// `slug`, by default the id.
    pub slug: Arc<str>,
    /// `fqdn`, by default empty.
    pub fqdn: Arc<str>,
    /// `ca_cert`: the text, or `file:PATH`.
    pub ca_cert: Option<Spanned<Arc<str>>>,
    /// `storage`, for what it has of the cluster.
    pub storage: Option<Storage>,
}

/// `cluster.storage`: where the server keeps what belongs to the cluster.
#[derive(Debug, Clone)]
pub struct Storage {
    /// `provider`: `s3`, `gcs` or `file`.
    pub provider: Arc<str>,
    /// `bucket`; a folder with `file`.
    pub bucket: Arc<str>,
    /// `prefix`, default `cluster/`.
    pub prefix: Arc<str>,
}

/// One of `certificates`.
#[derive(Debug, Clone, Default)]
pub struct Certificate {
    /// `cn`, `dns`, `ip`, `uri`: Go templates.
    pub names: Vec<Node>,
}

/// One of `nat`.
#[derive(Debug, Clone)]
pub struct Nat {
    /// `group`, of the same tenant.
    pub group: Spanned<Arc<str>>,
    /// `instance_type_ladder`
    pub instance_types: Vec<Spanned<Arc<str>>>,
}

/// `shard`
#[derive(Debug, Clone)]
pub struct Shard {
    /// `id`
    pub id: Spanned<Arc<str>>,
    /// `infra`
    pub infra: Infra,
    /// `subnet_pools`: pool → subnet ids, in order of preference.
    pub subnet_pools: Named<Vec<Spanned<Arc<str>>>>,
    /// `dynamic_subnet_pools`: names of pools.
    pub dynamic_subnet_pools: Vec<Spanned<Arc<str>>>,
    /// `advertise`
    pub advertise: Advertise,
    /// `request_timeout`, default 30 s: the timeout of one API call.
    pub request_timeout: Duration,
    /// `create_rate_limit`, default none: the minimum interval between two creates.
    pub create_rate_limit: Duration,
    /// `default_drain_timeout`, default 5 min.
    pub default_drain_timeout: Duration,
    /// `image_refresh_interval`, default 6 h.
    pub image_refresh_interval: Duration,
    /// `expiry`
    pub expiry: Expiry,
    /// `garbage_collection.registration_timeout`, default 5 min: how long a nonce is of use.
    pub registration_timeout: Duration,
}

impl Shard {
    /// Whether an instance in `subnet` is in a pool. Returns true for a pool that isn't in
    /// `subnet_pools`, since its subnets are unknown.
    pub fn pool_has(&self, pool: &str, subnet: Option<&str>) -> bool {
        self.subnet_pools
            .get(pool)
            .is_none_or(|subnets| subnets.value.iter().any(|id| Some(&*id.value) == subnet))
    }
}

/// `shard.infra`
#[derive(Debug, Clone)]
pub struct Infra {
    /// `provider`
    pub provider: Spanned<ProviderKind>,
    /// `provider` as written, such as `mock`: `.Provider.Kind`.
    pub provider_name: Arc<str>,
    /// `region`
    pub region: Spanned<Arc<str>>,
    /// `zone`
    pub zone: Spanned<Arc<str>>,
    /// `options`, an object if set; its keys depend on the provider.
    pub options: Option<Node>,
}

/// The known providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProviderKind {
    /// `aws`: EC2.
    Aws,
    /// `google` (once `gcp`): Compute Engine.
    Gcp,
    /// `sim` (also `mock`, `tmux`): the embedded cloud.
    Sim,
    /// `proxmox`: accepted, but there is no client for it.
    Proxmox,
    /// `yandex`: accepted, but there is no client for it.
    Yandex,
}

impl ProviderKind {
    /// The name in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Gcp => "gcp",
            Self::Sim => "sim",
            Self::Proxmox => "proxmox",
            Self::Yandex => "yandex",
        }
    }
}

/// `shard.advertise`; unset fields are empty.
#[derive(Debug, Clone, Default)]
pub struct Advertise {
    /// `health_addr`
    pub health_addr: Arc<str>,
    /// `election_addr`
    pub election_addr: Arc<str>,
    /// `registration_addr`
    pub registration_addr: Arc<str>,
    /// `operator_addr`
    pub operator_addr: Arc<str>,
    /// `agent_addr`
    pub agent_addr: Arc<str>,
}

/// `shard.expiry`: the ages from which instances are replaced.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expiry {
    /// `eligible_age`: a group's oldest such instance is replaced if no other of the group is.
    pub eligible_age: Option<Duration>,
    /// `forced_age`: instances older than this are replaced.
    pub forced_age: Option<Duration>,
    /// `ondemand_age`: for the server's on-demand instances; plans ignore it.
    pub ondemand_age: Option<Duration>,
}

/// One of `load_balancers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBalancer {
    /// `provider`; `None` for `tunnel`, which the server fills.
    pub provider: Option<ProviderKind>,
    /// What an instance is registered with: ARNs of target groups, each with `:PORT` where a port is
    /// configured; names of instance groups, `networkEndpointGroups/NAME`, or the load balancer.
    pub targets: Vec<Arc<str>>,
}

/// One of `images`.
#[derive(Debug, Clone)]
pub struct Image {
    /// `provider`
    pub provider: Spanned<ProviderKind>,
    /// `filters`, passed to the provider unchanged.
    pub filters: Vec<ImageFilter>,
    /// `owners`
    pub owners: Vec<Arc<str>>,
    /// `family` (GCP, ours)
    pub family: Option<Arc<str>>,
    /// `project` (GCP, ours)
    pub project: Option<Arc<str>>,
    /// `ssm` (AWS, ours): a public parameter that holds the image's id.
    pub ssm: Option<Arc<str>>,
    /// `include_deprecated` (AWS, ours)
    pub include_deprecated: bool,
    /// `sort`, default creation-date.
    pub sort: ImageSort,
    /// `order`, default desc.
    pub order: ImageOrder,
    /// `fallback`
    pub fallback: Option<Arc<str>>,
    /// `on_newer`, default replace.
    pub on_newer: OnNewer,
}

/// One filter of an image look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFilter {
    /// `name`
    pub name: Arc<str>,
    /// `values`: one of them must match.
    pub values: Vec<Arc<str>>,
}

/// What images are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSort {
    /// `creation-date`
    CreationDate,
    /// `name`
    Name,
}

/// The order of sorted images; the first is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageOrder {
    /// `asc`
    Ascending,
    /// `desc`
    Descending,
}

/// The effect of a newer image on existing instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnNewer {
    /// `replace`: they are replaced.
    Replace,
    /// `new_only`: they keep their image.
    NewOnly,
}

/// `defaults`
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// `args`, an object.
    pub args: Option<Node>,
    /// `vars`, an object.
    pub vars: Option<Node>,
    /// `userdata`
    pub userdata: Option<Userdata>,
    /// `update`
    pub update: Update,
}

/// A label's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// What it is.
    pub text: Arc<str>,
    /// Whether it is sensitive.
    pub is_sensitive: bool,
    /// Where it is written.
    pub span: Span,
}

/// Fields that templates and groups share.
#[derive(Debug, Clone, Default)]
pub struct Common {
    /// `kind`: three lower-case letters.
    pub kind: Option<Spanned<Arc<str>>>,
    /// `arch`
    pub arch: Option<Spanned<Arch>>,
    /// `instance_type`
    pub instance_type: Option<Spanned<Arc<str>>>,
    /// `subnet_pool`
    pub subnet_pool: Option<Spanned<Arc<str>>>,
    /// `args`, an object.
    pub args: Option<Node>,
    /// `vars`, an object.
    pub vars: Option<Node>,
    /// `files`
    pub files: Named<File>,
    /// `userdata`
    pub userdata: Option<Userdata>,
    /// `lifecycle`
    pub lifecycle: Lifecycle,
    /// `labels`
    pub labels: Named<Label>,
    /// `protect`: deletions require `--allow-delete`, replacements `--allow-replace`.
    pub protect: Option<Spanned<bool>>,
    /// `update`
    pub update: Update,
    /// `provides`: what other groups can read of this one.
    pub provides: Named<Provided>,
    /// `consumes`: what this group's texts read of others, as `.Link.NAME`.
    pub consumes: Named<Consumed>,
}

/// One of `provides`.
#[derive(Debug, Clone)]
pub struct Provided {
    /// `type`, by default the name.
    pub link_type: Arc<str>,
    /// `properties`, an object; its strings are templates.
    pub properties: Option<Node>,
}

/// One of `consumes`.
#[derive(Debug, Clone)]
pub struct Consumed {
    /// `type`, by default the name.
    pub link_type: Arc<str>,
    /// `from`: the providing group, `group` of the same tenant or `tenant/group`.
    pub from: Option<Spanned<Arc<str>>>,
    /// `link`: the name that the provider gave it.
    pub link: Option<Spanned<Arc<str>>>,
    /// `optional`: whether the provider may be missing.
    pub optional: bool,
}

/// `amd64` or `arm64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// `amd64`
    Amd64,
    /// `arm64`
    Arm64,
}

impl Arch {
    /// The name in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

/// One of `templates`.
#[derive(Debug, Clone, Default)]
pub struct Template {
    /// The shared fields.
    pub common: Common,
    /// `moved_from`
    pub moved_from: Option<Spanned<GroupName>>,
}

/// One of `groups`.
#[derive(Debug, Clone)]
pub struct Group {
    /// `tenant/group`
    pub name: GroupName,
    /// Where the group's key was written.
    pub span: Span,
    /// `template`
    pub template: Option<Spanned<Arc<str>>>,
    /// The shared fields.
    pub common: Common,
    /// `size`, or `replicas` for each zone; without them, there are no instances.
    pub size: Option<Spanned<u32>>,
    /// `replicas`: how many instances each zone has.
    pub replicas: Option<u32>,
    /// `drain_timeout`
    pub drain_timeout: Option<Spanned<Duration>>,
    /// `load_balancers`: names.
    pub load_balancers: Vec<Spanned<Arc<str>>>,
    /// `depends_on` (ours): groups that are applied before this one; `group` of the same tenant or
    /// `tenant/group`.
    pub depends_on: Vec<Spanned<Arc<str>>>,
    /// `zones`, in the order listed; if empty, all instances are in `shard.infra.zone`.
    pub zones: Vec<GroupZone>,
    /// `rebalance`: whether slots move when zones or tags change, so that zones stay even.
    pub rebalance: bool,
    /// `texts`: what the group's own strings are.
    pub texts: Texts,
    /// `group_labels`: `.Group.Labels`, by default `labels`.
    pub group_labels: Option<Named<Label>>,
    /// `overrides`: settings by slot (ours: a layer above the group).
    pub overrides: indexmap::IndexMap<u32, Spanned<SlotOverride>>,
    /// `moved_from`: the group's former name.
    pub moved_from: Option<Spanned<GroupName>>,
}

impl Group {
    /// A group with nothing but a template.
    pub fn of_template(template: &Arc<str>, span: Span) -> Self {
        Self {
            name: GroupName::new("template", template),
            span,
            template: Some(Spanned::new(Arc::clone(template), span)),
            common: Common::default(),
            size: None,
            replicas: None,
            drain_timeout: None,
            load_balancers: Vec::new(),
            depends_on: Vec::new(),
            zones: Vec::new(),
            rebalance: false,
            texts: Texts::default(),
            group_labels: None,
            overrides: indexmap::IndexMap::new(),
            moved_from: None,
        }
    }
}

/// One of a group's `zones`.
#[derive(Debug, Clone)]
pub struct GroupZone {
    /// `zone`
    pub name: Spanned<Arc<str>>,
    /// `tags`, in the order in which slots take them.
    pub tags: Vec<Spanned<Arc<str>>>,
}

/// `texts`: what the strings of a group's args, labels and userdata are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Texts {
    /// `templates`: Go templates.
    #[default]
    Templates,
    /// `placeholders`: texts with names in braces, as in instance groups of Yandex Cloud.
    Placeholders,
}

/// One of a group's `overrides`.
#[derive(Debug, Clone, Default)]
pub struct SlotOverride {
    /// `instance_type`
    pub instance_type: Option<Spanned<Arc<str>>>,
    /// `subnet_pool`
    pub subnet_pool: Option<Spanned<Arc<str>>>,
    /// `args`, an object.
    pub args: Option<Node>,
    /// `vars`, an object.
    pub vars: Option<Node>,
}

/// `lifecycle`
#[derive(Debug, Clone, Default)]
pub struct Lifecycle {
    /// `prevent_destroy`
    pub prevent_destroy: Option<Spanned<bool>>,
    /// `ignore_changes`: paths of an instance, or `size`.
    pub ignore_changes: Vec<Spanned<Arc<str>>>,
    /// `replace_on`: paths that force a new instance.
    pub replace_on: Vec<Spanned<Arc<str>>>,
    /// `restart_on`: paths that are changed by a stop and start instead of a replacement.
    pub restart_on: Vec<Spanned<Arc<str>>>,
}

/// One of `files`.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Its kind and the kind's fields.
    pub content: FileContent,
    /// `deliver`
    pub deliver: Deliver,
    /// The sensitive parts of a text, or of the other fields; nodes have their own.
    pub sensitivity: Sensitivity,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum FileContent {
    /// `env`: names (shell identifiers) and string values, in the order written.
    Env(Node),
    /// `json`: an object.
    Json(Node),
    /// `string`
    String(Spanned<Arc<str>>),
    /// `erb`
    Erb(ErbContent),
    /// `secret`: its source, a Go template.
    Secret(Spanned<Arc<str>>),
    /// `storage`: its source, a Go template.
    Storage(Spanned<Arc<str>>),
    /// `certificate`
    Certificate {
        /// `template`: a name in `certificates`.
        template: Spanned<Arc<str>>,
        /// `key`: `{source, name}`, or a text in its old form.
        key: Option<Node>,
    },
}

impl FileContent {
    /// The name in configurations.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Env(_) => "env",
            Self::Json(_) => "json",
            Self::String(_) => "string",
            Self::Erb(_) => "erb",
            Self::Secret(_) => "secret",
            Self::Storage(_) => "storage",
            Self::Certificate { .. } => "certificate",
        }
    }
}

/// The content of a file of kind `erb`.
#[derive(Debug, Clone, PartialEq)]
pub struct ErbContent {
    /// `template`: ERB, evaluated by Ruby.
    pub template: Spanned<Arc<str>>,
    /// `properties`: an object whose strings are Go templates; the group's vars if absent.
    pub properties: Option<Node>,
    /// `context`: an object that is merged over the context, as it is.
    pub context: Option<Node>,
    /// `instances`: a list of objects; that at the instance's index is merged over the context.
    pub instances: Option<Node>,
}

/// How a file is delivered to its instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Deliver {
    /// `export`: written to `.nstance/CLUSTER/SHARD/files/ADDRESS/` on apply.
    #[default]
    Export,
    /// `userdata`: a cloud-config `write_files` entry.
    Userdata {
        /// `path`, default `/opt/nstance-agent/NAME`.
        path: Arc<str>,
        /// `permissions`
        permissions: Option<Arc<str>>,
        /// `owner`
        owner: Option<Arc<str>>,
        /// Whether it is `auto`: exported if the userdata is too large for the cloud.
        or_export: bool,
    },
}

/// One of `accept`: drift that is known. It changes the verdict of `drift`, never a plan.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// `address`
    pub address: Selector,
    /// `path`: the attribute and all below it; `None` accepts any drift of the address.
    pub path: Option<Arc<str>>,
    /// `reason`
    pub reason: Arc<str>,
    /// `until`
    pub until: Option<Deadline>,
    /// Its place.
    pub span: Span,
}

/// Until when something holds.
#[derive(Debug, Clone)]
pub struct Deadline {
    /// As written: a day, or a time.
    pub text: Arc<str>,
    /// The first time at which it no longer holds.
    pub end: Timestamp,
}

/// `destroy_budget`: a plan whose deletions exceed both limits requires `--allow-delete`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DestroyBudget {
    /// `count`
    pub count: u32,
    /// `percent` of the recorded instances.
    pub percent: u32,
}

impl Default for DestroyBudget {
    fn default() -> Self {
        Self {
            count: 10,
            percent: 10,
        }
    }
}
