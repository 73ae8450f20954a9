//! The clouds, each in two halves: its rules and its client.
//!
//! In: requests that say everything (a client decides nothing). Out: [`Observation`]s and
//! [`CloudError`]s. Must not: read the configuration or the state.
//!
//! The rules ([`rules::Rules`]) are pure and always compiled: what may be written in args, what
//! changes in place, which tags mark an instance as ours. The client ([`Cloud`]) talks to one
//! cloud; `sim` is always there, the others are cargo features.

pub mod aws;
pub mod gcp;
mod options;
pub mod retry;
pub mod rules;
mod shape;
pub mod sim;

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
use crate::config::model::{ImageFilter, ImageOrder, ImageSort};

/// What a cloud can be asked. Calls block; the caller brings the threads and the retries.
pub trait Cloud: Send + Sync {
    /// The name shown as `provider_name`: `aws`, `gcp`, `sim`.
    fn name(&self) -> &'static str;

    /// One page of the instances that carry `owner`'s tags, terminated ones left out.
    fn list(&self, owner: &Owner, page: Option<&str>) -> Result<Page, CloudError>;

    /// The existing instances of these ids, in any order, of any owner.
    fn describe(&self, provider_ids: &[String]) -> Result<Vec<Observation>, CloudError>;

    /// Every image a query matches (all pages), in no particular order.
    fn find_images(&self, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError>;

    /// The subnets of these ids that exist.
    fn subnets(&self, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError>;

    /// Creates an instance, registered with its load balancers. The same token and request again
    /// give the same instance; the same token with another request is
    /// [`CloudErrorKind::TokenMismatch`].
    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError>;

    /// Changes in place what `request.changed` names; doing it again does no harm.
    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError>;

    /// Deregisters and deletes an instance; one that is gone already is a success.
    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError>;

    /// What is known of these instance types; those that don't exist are left out. `None`: this
    /// cloud doesn't report it.
    fn instance_types(&self, names: &[String]) -> Result<Option<Vec<InstanceType>>, CloudError> {
        let _ = names;
        Ok(None)
    }

    /// The name of an existing instance type that may have been meant by one that doesn't exist.
    fn near_instance_type(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Limits that creating `wanted` would come to or go beyond, a sentence each. What the cloud
    /// doesn't tell, or not to us, is no limit here.
    fn limits_ahead(&self, wanted: &[WantedCapacity]) -> Vec<String> {
        let _ = wanted;
        Vec::new()
    }

    /// Whether it asks for user data instance by instance: then it pays to pass in what is known.
    fn asks_for_userdata(&self) -> bool {
        false
    }

    /// Tells what earlier runs found, so that it isn't asked for again.
    fn recall_userdata(&self, known: Vec<LaunchedUserdata>) {
        let _ = known;
    }

    /// The launch of each instance whose user data was asked for, or recalled and still holds.
    fn userdata_launches(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// The caller's identity, and its needed permissions. `None`: this cloud has neither.
    fn check_access(&self, sample: &AccessSample) -> Option<Result<Access, CloudError>> {
        let _ = sample;
        None
    }

    /// How long a new instance may be missing from listings.
    fn visibility_window(&self) -> Duration;

    /// How many calls may be under way at once, unless `--parallelism` says otherwise.
    fn parallelism(&self) -> usize {
        10
    }
}

/// Whose instances: the tags `managed` + cluster + shard.
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
    /// How many there will be more of it, while the plan is carried out.
    pub count: usize,
    /// Whether they may be taken back at any time (spot).
    pub interruptible: bool,
}

/// Something that exists, for permissions that depend on what is asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessSample {
    /// An instance of ours.
    pub instance: Option<String>,
    /// An image.
    pub image: Option<String>,
    /// A subnet.
    pub subnet: Option<String>,
}

/// Who asks, and what they may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Who, in the cloud's words, with the account and region.
    pub who: String,
    /// Each permission that is needed.
    pub permissions: Vec<Permission>,
}

/// One permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    /// Its name in policies, such as `ec2:RunInstances`.
    pub name: String,
    /// What it is needed for.
    pub needed_for: &'static str,
    /// Whether everything works without it, if less well.
    pub optional: bool,
    /// Whether it is there.
    pub verdict: Verdict,
}

/// Whether a permission is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Allowed,
    /// It isn't.
    Missing,
    /// Another answer of the cloud, reported verbatim.
    Unknown(String),
}

/// A part of a listing.
#[derive(Debug, Default)]
pub struct Page {
    /// The instances.
    pub instances: Vec<Observation>,
    /// Asks for the next page; `None` on the last.
    pub next: Option<String>,
}

/// What an instance's life is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LifecycleState {
    /// Being made.
    Pending,
    /// Up.
    Running,
    /// On its way to stopped.
    Stopping,
    /// Down, can be started again.
    Stopped,
    /// On its way out.
    ShuttingDown,
    /// Gone.
    Terminated,
}

impl LifecycleState {
    /// Whether it is there, or can be again.
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

/// What a cloud says of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The cloud's id.
    pub provider_id: String,
    /// From its tags: our instance id, if it has one.
    pub instance_id: Option<String>,
    /// From its tags: `tenant/group`, if it has both.
    pub group: Option<String>,
    /// From its tags: the slot.
    pub slot: Option<u32>,
    /// What its life is at.
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
    /// Where it is on its way out or gone: why, as far as the cloud says.
    pub ended_because: Option<String>,
    /// A digest of `attributes`: equal digests mean that nothing changed.
    pub digest: [u8; 32],
    /// [`Attributes`] as JSON text; parsed only where the digest is news.
    pub attributes: Box<str>,
}

impl Observation {
    /// The attributes, parsed.
    pub fn attributes(&self) -> Result<Attributes, serde_json::Error> {
        serde_json::from_str(&self.attributes)
    }
}

/// What a cloud reports of an instance's make, in the words of a spec. Only what the cloud
/// reports is there: an absent key of `args` isn't compared. To be compared with a spec as
/// [`Attributes::normalized`] by its args.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attributes {
    /// The instance type.
    pub instance_type: String,
    /// Args by the API's names.
    pub args: serde_json::Map<String, Value>,
    /// Tags (AWS) or labels (GCP), ours among them.
    pub tags: BTreeMap<String, String>,
    /// The userdata as decoded text (base64 where it isn't UTF-8), where the cloud reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub userdata: Option<String>,
    /// Target groups, instance groups or names of load balancers it is registered with, sorted;
    /// `None` where the cloud wasn't asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancers: Option<Vec<String>>,
    /// Those that were looked at, where that isn't all there are: nothing is known of others. No
    /// part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Vec<String>>,
    /// Whose form `args` have, where they hold more than was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<ArgsForm>,
}

/// The form of reported args that hold more than was asked for: what the cloud chose itself, and
/// lists in an order of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArgsForm {
    /// What EC2's `DescribeInstances` says, in the members of `RunInstances`.
    Ec2,
}

impl Attributes {
    /// What it is registered with, given what it is recorded to be: what wasn't looked at is taken
    /// to be as recorded. `None`: the cloud wasn't asked.
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

    /// The args as they compare with those that were asked for: what nobody asked for isn't
    /// there, and what is the same in another order or form is as it was asked for.
    pub fn normalized(
        &self,
        asked: &serde_json::Map<String, Value>,
    ) -> Cow<'_, serde_json::Map<String, Value>> {
        match self.form {
            None => Cow::Borrowed(&self.args),
            Some(ArgsForm::Ec2) => Cow::Owned(aws::normalize::normalized(asked, &self.args)),
        }
    }
}

/// A look-up of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageQuery {
    /// As configured.
    pub filters: Vec<ImageFilter>,
    /// As configured.
    pub owners: Vec<String>,
    /// GCP: the image family.
    pub family: Option<String>,
    /// GCP: the project.
    pub project: Option<String>,
    /// AWS: the name of a public parameter that holds the image's id.
    pub ssm: Option<String>,
    /// AWS: whether deprecated images count.
    pub include_deprecated: bool,
    /// What the answer will be sorted by; a client may leave sorting to the caller.
    pub sort: ImageSort,
    /// Its direction.
    pub order: ImageOrder,
}

/// An image that a query matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageMatch {
    /// The cloud's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// RFC 3339, as the cloud writes it; sorts as text.
    pub created: String,
}

/// A subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetInfo {
    /// The cloud's id.
    pub id: String,
    /// The zone it lies in; `None` where subnets span zones (GCP).
    pub zone: Option<String>,
    /// How many addresses are free; `None` where the cloud doesn't report it.
    pub available: Option<u32>,
}

/// The user data of an instance, which stays as it is until the instance is launched anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchedUserdata {
    /// The instance.
    pub provider_id: String,
    /// Which launch, in the cloud's words.
    pub launch: String,
    /// As [`Attributes::userdata`].
    pub text: String,
}

/// Everything a new instance is made of. This is what the journal keeps, byte for byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateRequest {
    /// Makes the call idempotent.
    pub token: String,
    /// Our id.
    pub instance_id: String,
    /// The instance's name, fit for the cloud.
    pub name: String,
    /// `amd64` or `arm64`.
    pub arch: String,
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
    /// The subnet, if the group has a pool.
    pub subnet: Option<String>,
    /// The rendered args, managed members left out.
    pub args: serde_json::Map<String, Value>,
    /// The bytes to send as userdata, in base64.
    pub userdata: Option<String>,
    /// All tags, ours among them.
    pub tags: BTreeMap<String, String>,
    /// What to register it with.
    pub load_balancers: Vec<String>,
}

/// A change in place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateRequest {
    /// Makes the journal's entry unique; clouds that take a token get it.
    pub token: String,
    /// The instance.
    pub provider_id: String,
    /// Paths that change: `instance_type`, `args.NAME…`, `tags`, `userdata`, `load_balancers`; and
    /// `state`: it is stopped and should run.
    pub changed: Vec<String>,
    /// Whether the instance has to be stopped for it, and is started again.
    pub restart: bool,
    /// The wanted instance type.
    pub instance_type: String,
    /// The wanted args, all of them.
    pub args: serde_json::Map<String, Value>,
    /// The wanted userdata, in base64.
    pub userdata: Option<String>,
    /// The wanted tags, all of them.
    pub tags: BTreeMap<String, String>,
    /// What it should be registered with, all of it.
    pub load_balancers: Vec<String>,
    /// What it is registered with and should leave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<String>,
}

/// A deletion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteRequest {
    /// Makes the journal's entry unique.
    pub token: String,
    /// The instance.
    pub provider_id: String,
    /// How long connections may drain after it left its load balancers, in milliseconds.
    pub drain_timeout_ms: u64,
    /// What it is registered with, as far as is recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancers: Vec<String>,
    /// Whether its successor needs what it holds, such as its address: then it is waited for until
    /// it is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_gone: bool,
}

/// What a failed call means for what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CloudErrorKind {
    /// Too many calls; nothing happened. Retried.
    Throttled,
    /// A fault before any effect. Retried.
    Transient,
    /// The answer was lost: it may have happened. Retried with the same token.
    Ambiguous,
    /// No capacity for this type in this place; nothing happened.
    Capacity,
    /// A quota is used up; nothing happened.
    Quota,
    /// It isn't there.
    NotFound,
    /// The request is wrong and will stay wrong.
    Invalid,
    /// Not allowed: credentials, permissions, protection.
    Denied,
    /// The token was used with another request, or its instance is already terminated.
    TokenMismatch,
    /// The cloud can't be reached or asked at all.
    Unavailable,
}

impl CloudErrorKind {
    /// Whether the same call may succeed a little later.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Throttled | Self::Transient | Self::Ambiguous)
    }
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{}", self.summary(), hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct CloudError {
    /// What it means.
    pub kind: CloudErrorKind,
    /// The cloud's own code, such as `InsufficientInstanceCapacity`.
    pub code: String,
    /// The cloud's own words.
    pub message: String,
    /// What the cloud's support wants to know.
    pub request_id: Option<Box<str>>,
    /// What to do about it: a phrase without a full stop.
    pub hint: Option<Box<str>>,
}

impl CloudError {
    /// An error of a kind, with the cloud's code and words.
    pub fn new(kind: CloudErrorKind, code: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: code.to_owned(),
            message: message.into(),
            request_id: None,
            hint: None,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Box<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What happened, without what to do about it: for where hints have a place of their own.
    pub fn summary(&self) -> String {
        let Self { message, code, .. } = self;
        match &self.request_id {
            Some(id) => format!("{message} ({code}, request {id})"),
            None => format!("{message} ({code})"),
        }
    }
}

/// The most that gzipped userdata may unpack to.
const UNPACKED_LIMIT: u64 = 64 << 20;

/// User data as a cloud gives it back: unpacked where it is gzipped, in base64 where it isn't UTF-8.
fn readable_userdata(bytes: Vec<u8>) -> String {
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let mut reader = flate2::read::MultiGzDecoder::new(&bytes[..]).take(UNPACKED_LIMIT);
        match reader.read_to_end(&mut unpacked) {
            Ok(_) => unpacked,
            // A cloud takes bytes as they come; the instance would find out.
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
