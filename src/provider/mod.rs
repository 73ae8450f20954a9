//! The clouds; each has rules and a client.
//!
//! In: complete requests (a client decides nothing). Out: [`Observation`]s and [`CloudError`]s.
//! Must not: read the configuration or the state.
//!
//! The rules ([`rules::Rules`]) are pure and always compiled: valid args, changes in place, managed
//! tags. The client ([`Cloud`]) calls one cloud; `sim` is always built in, the others are cargo
//! features.

pub mod aws;
pub mod gcp;
pub mod limits;
pub mod logged;
mod options;
pub mod proxmox;
pub mod retry;
pub mod rules;
mod shape;
pub mod sim;
pub mod yandex;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::clock::Timestamp;
use crate::config::model::{Check, ImageFilter, ImageOrder, ImageSort};

/// The API of a cloud. Calls block; the caller provides threads and retries. A method that returns
/// a `Result` fails with the cloud's error.
pub trait Cloud: Send + Sync {
    /// The name shown as `provider_name`: `aws`, `gcp`, `sim`.
    fn name(&self) -> &'static str;

    /// One page of the instances with `owner`'s tags, without terminated ones.
    fn list(&self, owner: &Owner, page: Option<&str>) -> Result<Page, CloudError>;

    /// The existing instances of these ids, in any order, regardless of their owner.
    fn describe(&self, provider_ids: &[String]) -> Result<Vec<Observation>, CloudError>;

    /// All images that match a query (all pages), in any order.
    fn find_images(&self, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError>;

    /// The existing subnets of these ids.
    fn subnets(&self, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError>;

    /// Creates an instance. The same token and request return the same instance; the same token
    /// with another request fails with [`CloudErrorKind::TokenMismatch`].
    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError>;

    /// Updates what `request.changed` names, in place. Idempotent.
    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError>;

    /// Registers a running instance with load balancers. Idempotent.
    fn register(&self, request: &TargetsRequest) -> Result<(), CloudError>;

    /// Deregisters an instance, without waiting for its connections to end. Idempotent; succeeds if
    /// it isn't registered, or doesn't exist any more.
    fn deregister(&self, request: &TargetsRequest) -> Result<(), CloudError>;

    /// The state of each of these instances with each of these load balancers, in any order.
    fn target_health(
        &self,
        provider_ids: &[String],
        load_balancers: &[String],
    ) -> Result<Vec<TargetHealth>, CloudError>;

    /// The result of a health check of a running instance; `None` if the cloud's instances are
    /// reached over the network, so that the caller must check them itself.
    fn probe(&self, provider_id: &str, check: &Check) -> Option<Result<(), String>> {
        let _ = (provider_id, check);
        None
    }

    /// Deregisters and deletes an instance; succeeds if it doesn't exist any more.
    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError>;

    /// The existing ones of these instance types; `None` if the cloud has no such API.
    fn instance_types(&self, names: &[String]) -> Result<Option<Vec<InstanceType>>, CloudError> {
        let _ = names;
        Ok(None)
    }

    /// The existing instance type with the most similar name.
    fn near_instance_type(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Messages about limits that creating `wanted` would reach or exceed. Limits that can't be
    /// queried are ignored.
    fn limits_ahead(&self, wanted: &[WantedCapacity]) -> Vec<String> {
        let _ = wanted;
        Vec::new()
    }

    /// Whether userdata is queried per instance, so that [`recall_userdata`](Self::recall_userdata)
    /// saves calls.
    fn asks_for_userdata(&self) -> bool {
        false
    }

    /// Passes results of earlier runs, to avoid queries.
    fn recall_userdata(&self, known: Vec<LaunchedUserdata>) {
        let _ = known;
    }

    /// The launch of each instance whose userdata was queried, or recalled and is still valid.
    fn userdata_launches(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// The identity and permissions of the credentials; `None` if the cloud has no such API.
    fn check_access(&self, sample: &AccessSample) -> Option<Result<Access, CloudError>> {
        let _ = sample;
        None
    }

    /// How long a listing may lack a new instance.
    fn visibility_window(&self) -> Duration;

    /// How long an instance may take to run.
    fn wait_timeout(&self) -> Duration {
        DEFAULT_WAIT_TIMEOUT
    }

    /// The default number of parallel calls.
    fn parallelism(&self) -> usize {
        10
    }
}

/// How long an instance may take to run, unless an option says otherwise.
pub const DEFAULT_WAIT_TIMEOUT: Duration = Duration::from_mins(10);

/// The owner of instances: the tags `managed` + cluster + shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// `cluster.id`
    pub cluster: String,
    /// `shard.id`
    pub shard: String,
}

/// An instance type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceType {
    /// Its name.
    pub name: String,
    /// The architectures it runs: `amd64`, `arm64`.
    pub architectures: Vec<String>,
    /// Its virtual processors.
    pub vcpus: u32,
}

/// Instances of one type that a plan creates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedCapacity {
    /// The instance type.
    pub instance_type: String,
    /// The number of additional instances while the plan is applied.
    pub count: usize,
    /// Whether they can be interrupted (spot).
    pub interruptible: bool,
}

/// Existing objects, for permissions that depend on one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessSample {
    /// An instance of this shard.
    pub instance: Option<String>,
    /// An image.
    pub image: Option<String>,
    /// A subnet.
    pub subnet: Option<String>,
}

/// The identity and permissions of credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The identity as the cloud reports it, with account and region.
    pub who: String,
    /// Each required permission.
    pub permissions: Vec<Permission>,
    /// The page of the documentation that lists them.
    pub policy_page: &'static str,
}

/// One permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// Its name in policies, such as `ec2:RunInstances`.
    pub name: String,
    /// The operation that requires it.
    pub needed_for: &'static str,
    /// Whether nstance works without it, with restrictions.
    pub optional: bool,
    /// Whether it is granted.
    pub verdict: Verdict,
}

/// Whether a permission is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Granted.
    Allowed,
    /// Not granted.
    Missing,
    /// The cloud returned another error.
    Unknown(String),
}

/// A page of a listing.
#[derive(Debug, Default)]
pub struct Page {
    /// The instances.
    pub instances: Vec<Observation>,
    /// The token of the next page; `None` on the last.
    pub next: Option<String>,
}

/// The state of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LifecycleState {
    /// Starting.
    Pending,
    /// Running.
    Running,
    /// Stopping.
    Stopping,
    /// Stopped; can be started again.
    Stopped,
    /// Terminating.
    ShuttingDown,
    /// Terminated.
    Terminated,
}

impl LifecycleState {
    /// Whether it exists, running or not.
    pub fn is_live(self) -> bool {
        !matches!(self, Self::ShuttingDown | Self::Terminated)
    }

    /// The name in messages and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
        }
    }
}

/// What a cloud reports of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The provider id.
    pub provider_id: String,
    /// The instance id, from its tags.
    pub instance_id: Option<String>,
    /// `tenant/group`, from its tags; `None` unless both are set.
    pub group: Option<String>,
    /// The slot, from its tags.
    pub slot: Option<u32>,
    /// Its state.
    pub state: LifecycleState,
    /// Its zone.
    pub zone: String,
    /// Its (first) subnet.
    pub subnet: Option<String>,
    /// Its private IPv4 address.
    pub ip4: Option<String>,
    /// Its IPv6 address.
    pub ip6: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Why it ended or is ending, if the cloud reports it.
    pub ended_because: Option<String>,
    /// A digest of `attributes`, to detect changes.
    pub digest: [u8; 32],
    /// [`Attributes`] as JSON; only parsed if the digest differs.
    pub attributes: Box<str>,
}

impl Observation {
    /// Parses the attributes.
    ///
    /// Fails if they are invalid JSON.
    pub fn attributes(&self) -> Result<Attributes, serde_json::Error> {
        serde_json::from_str(&self.attributes)
    }
}

/// The observed attributes of an instance, in the form of a spec. Has only what the cloud reports:
/// a key that `args` lacks isn't compared. Compare [`Attributes::normalized`] with a spec's args.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attributes {
    /// The instance type.
    pub instance_type: String,
    /// Args by the API's names.
    pub args: serde_json::Map<String, Value>,
    /// Tags (AWS) or labels (GCP), including managed ones.
    pub tags: BTreeMap<String, String>,
    /// The decoded userdata (base64 if it isn't UTF-8), if the cloud reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub userdata: Option<String>,
    /// The target groups, instance groups or load balancers that it is registered with, sorted;
    /// `None` if they weren't queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancers: Option<Vec<String>>,
    /// The target groups that were queried, if not all were; others are unknown. Not part of the
    /// digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Vec<String>>,
    /// The form of `args`, if they include values that weren't requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<ArgsForm>,
}

/// The form of observed args that include the cloud's own choices, and lists in its own order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArgsForm {
    /// `DescribeInstances` of EC2, converted to members of `RunInstances`.
    Ec2,
    /// The members of an Instance of Compute Engine.
    Gcp,
}

impl Attributes {
    /// Its registrations; those that weren't queried are assumed to be as recorded. `None` if
    /// nothing was queried.
    pub fn registered(&self, recorded: &[String]) -> Option<Vec<String>> {
        let mut registered = self.load_balancers.clone()?;
        if let Some(watched) = &self.watched {
            let unseen = recorded.iter().filter(|name| !watched.contains(name));
            registered.extend(unseen.cloned());
            registered.sort();
            registered.dedup();
        }
        Some(registered)
    }

    /// The args normalized for the comparison with the requested ones: without values that weren't
    /// requested, and with equal values in the requested form.
    pub fn normalized(
        &self,
        asked: &serde_json::Map<String, Value>,
    ) -> Cow<'_, serde_json::Map<String, Value>> {
        match self.form {
            None => Cow::Borrowed(&self.args),
            Some(ArgsForm::Ec2) => Cow::Owned(aws::normalize::normalized(asked, &self.args)),
            Some(ArgsForm::Gcp) => Cow::Owned(gcp::normalize::normalized(asked, &self.args)),
        }
    }
}

/// A look-up of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageQuery {
    /// The configured filters.
    pub filters: Vec<ImageFilter>,
    /// The configured owners.
    pub owners: Vec<String>,
    /// GCP: the image family.
    pub family: Option<String>,
    /// GCP: the project.
    pub project: Option<String>,
    /// AWS: the name of a public parameter that contains the image id.
    pub ssm: Option<String>,
    /// AWS: whether deprecated images match.
    pub include_deprecated: bool,
    /// The sort key; a client may leave sorting to the caller.
    pub sort: ImageSort,
    /// The sort order.
    pub order: ImageOrder,
}

/// An image that a query matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageMatch {
    /// The image id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When it was created: RFC 3339, as the cloud writes it; sorts as text.
    pub created: String,
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetInfo {
    /// The subnet id.
    pub id: String,
    /// Its zone; `None` if subnets span zones (GCP).
    pub zone: Option<String>,
    /// The number of free addresses; `None` if the cloud doesn't report it.
    pub available: Option<u32>,
}

/// The userdata of an instance, valid until its next launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchedUserdata {
    /// The provider id.
    pub provider_id: String,
    /// The launch, as the cloud identifies it.
    pub launch: String,
    /// As [`Attributes::userdata`].
    pub text: String,
}

/// A request to create an instance. The journal stores exactly this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateRequest {
    /// The idempotency token.
    pub token: String,
    /// The instance id.
    pub instance_id: String,
    /// The instance's name, valid in the cloud.
    pub name: String,
    /// `amd64` or `arm64`.
    pub arch: String,
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
    /// The subnet, if the group has a pool.
    pub subnet: Option<String>,
    /// The rendered args, without managed members.
    pub args: serde_json::Map<String, Value>,
    /// The bytes to send as userdata, in base64.
    pub userdata: Option<String>,
    /// All tags, including managed ones.
    pub tags: BTreeMap<String, String>,
}

/// A request to update an instance in place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateRequest {
    /// A unique token, passed to clouds that accept one.
    pub token: String,
    /// The provider id.
    pub provider_id: String,
    /// The paths that change: `instance_type`, `args.NAME…`, `tags`, `userdata`, `load_balancers`;
    /// and `state` to start a stopped instance.
    pub changed: Vec<String>,
    /// Whether the instance must be stopped and started again.
    pub restart: bool,
    /// The wanted instance type.
    pub instance_type: String,
    /// All wanted args.
    pub args: serde_json::Map<String, Value>,
    /// The wanted userdata, in base64.
    pub userdata: Option<String>,
    /// All wanted tags.
    pub tags: BTreeMap<String, String>,
    /// All wanted load balancers.
    pub load_balancers: Vec<String>,
    /// The load balancers to deregister it from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<String>,
}

/// A request to register an instance with load balancers, or to deregister it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetsRequest {
    /// The provider id.
    pub provider_id: String,
    /// The load balancers, as the cloud names them.
    pub load_balancers: Vec<String>,
}

/// The state of an instance with one of its load balancers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetHealth {
    /// The provider id.
    pub provider_id: String,
    /// The load balancer, as requested.
    pub load_balancer: String,
    /// Its state.
    pub state: TargetState,
    /// The cloud's reason, if it gives one.
    pub reason: Option<String>,
}

/// The state of an instance with a load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetState {
    /// Receives requests.
    Healthy,
    /// Fails the load balancer's checks.
    Unhealthy,
    /// Registered; the first checks aren't done.
    Initial,
    /// Deregistered; its connections are ending.
    Draining,
    /// The load balancer has no listener, so it checks nothing.
    Unused,
    /// Not registered.
    Absent,
}

/// A request to delete an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteRequest {
    /// A unique token.
    pub token: String,
    /// The provider id.
    pub provider_id: String,
    /// How long connections may drain after deregistering, in milliseconds.
    pub drain_timeout_ms: u64,
    /// The recorded load balancers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancers: Vec<String>,
    /// Whether to wait until it is terminated, since its successor needs a resource of it, such as
    /// its address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_gone: bool,
}

/// The kind of a failed call, which determines what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloudErrorKind {
    /// Too many calls; no effect. Retried.
    Throttled,
    /// An error before any effect. Retried.
    Transient,
    /// The answer was lost, so it may have had its effect. Retried with the same token.
    Ambiguous,
    /// No capacity for this type in this place; no effect. Another subnet may have some.
    Capacity,
    /// No capacity for this type in this zone, whatever the subnet; no effect.
    ZoneCapacity,
    /// A quota is exceeded; no effect.
    Quota,
    /// The object doesn't exist.
    NotFound,
    /// The request is invalid; a retry won't help.
    Invalid,
    /// Not allowed: credentials, permissions, protection.
    Denied,
    /// The token was used with another request, or its instance was terminated.
    TokenMismatch,
    /// The cloud can't be reached.
    Unavailable,
}

impl CloudErrorKind {
    /// Whether a retry may succeed.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Throttled | Self::Transient | Self::Ambiguous)
    }
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{}", self.summary(), hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct CloudError {
    /// Its kind.
    pub kind: CloudErrorKind,
    /// The cloud's code, such as `InsufficientInstanceCapacity`.
    pub code: String,
    /// The cloud's message.
    pub message: String,
    /// The request id, for the cloud's support.
    pub request_id: Option<Box<str>>,
    /// A hint: a phrase without a full stop.
    pub hint: Option<Box<str>>,
}

impl CloudError {
    /// An error with the cloud's code and message.
    pub fn new(kind: CloudErrorKind, code: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: code.to_owned(),
            message: message.into(),
            request_id: None,
            hint: None,
        }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Box<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The message without the hint, for output that shows hints separately.
    pub fn summary(&self) -> String {
        let Self { message, code, .. } = self;
        match &self.request_id {
            Some(id) => format!("{message} ({code}, request {id})"),
            None => format!("{message} ({code})"),
        }
    }
}

/// The limit of unpacked userdata, in bytes.
const UNPACKED_LIMIT: u64 = 64 << 20;

/// Userdata as a cloud returns it: decompressed if it is gzipped, in base64 if it isn't UTF-8.
fn readable_userdata(bytes: Vec<u8>) -> String {
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let mut reader = flate2::read::MultiGzDecoder::new(&bytes[..]).take(UNPACKED_LIMIT);
        match reader.read_to_end(&mut unpacked) {
            Ok(_) => unpacked,
            // Keep damaged gzip as it is: clouds accept any bytes.
            Err(_) => bytes,
        }
    } else {
        bytes
    };
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => BASE64.encode(error.as_bytes()),
    }
}
