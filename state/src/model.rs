//! The values that a state stores.
//!
//! In: nothing. Out: plain owned data. Must not: depend on the database.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::seal::KeyNeed;

/// The owner of a state; fixed when the state is created.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The cluster.
    pub cluster: String,
    /// The shard of the cluster.
    pub shard: String,
    /// The provider of every instance in the state, such as `aws`.
    pub provider: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cluster,
            shard,
            provider,
        } = self;
        write!(
            formatter,
            "cluster \"{cluster}\", shard \"{shard}\", provider \"{provider}\""
        )
    }
}

/// A time in milliseconds since 1970-01-01T00:00:00Z. Always from the caller; this crate reads no
/// clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// The properties of a state as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Its identity.
    pub identity: Identity,
    /// Its lineage, set at creation and equal in all copies.
    pub lineage: String,
    /// Its serial, which grows by one with each transaction that changes a record.
    pub serial: u64,
    /// When the state was created.
    pub created_at: Timestamp,
    /// The schema version of the opened state; for an older state opened for reading, that of the
    /// migrated copy.
    pub schema_version: u32,
    /// The key that it is encrypted with; `None` if it isn't.
    pub key: Option<KeyNeed>,
    /// Where the state is now, if it was moved: it is only read here.
    pub moved_to: Option<String>,
}

/// The digest that identifies a spec. The caller decides how it is computed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecDigest(pub [u8; 32]);

impl fmt::Display for SpecDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for SpecDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SpecDigest({self})")
    }
}

/// The error that a text isn't a [`SpecDigest`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is no digest: 64 hexadecimal digits are")]
pub struct ParseDigestError(String);

impl FromStr for SpecDigest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseDigestError(text.to_owned());
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(wrong());
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(wrong);
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Ok(Self(digest))
    }
}

impl Serialize for SpecDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SpecDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The recorded instance in a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `tenant/group`. Records of one snapshot share it.
    pub group: Arc<str>,
    /// The slot in the group. At most one record of a slot is not deposed.
    pub slot: u32,
    /// Whether it is an old instance whose successor was created, still to be deleted.
    pub deposed: bool,
    /// The instance id, the key of the record.
    pub instance_id: String,
    /// The provider id; unique.
    pub provider_id: String,
    /// The generation of the slot, which grows with each new instance.
    pub generation: u64,
    /// The kind, the first letters of the instance id.
    pub kind: String,
    /// The digest of its spec, which must be stored.
    pub spec: SpecDigest,
    /// The digest of the observation when the record was last in sync with it. Only a digest; no
    /// content is stored for it.
    pub observed: Option<SpecDigest>,
    /// Its zone.
    pub zone: String,
    /// Its subnet.
    pub subnet: Option<String>,
    /// Its IPv4 address.
    pub ip4: Option<String>,
    /// Its IPv6 address.
    pub ip6: Option<String>,
    /// When the instance was created, set by the caller.
    pub created_at: Timestamp,
    /// When the record last changed, set by the store.
    pub updated_at: Timestamp,
    /// A small JSON text of the caller; `{}` if empty. It is never encrypted, so it must not
    /// contain rendered values.
    pub attributes: String,
    /// The serial of the record's last change, set by the store.
    pub version: u64,
}

impl Record {
    /// `tenant/group/slot`.
    pub fn address(&self) -> String {
        address(&self.group, self.slot)
    }
}

/// The address `tenant/group/slot`.
pub fn address(group: &str, slot: u32) -> String {
    format!("{group}/{slot}")
}

/// The operation of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Create the instance.
    Create,
    /// Update it in place.
    Update,
    /// Delete it.
    Delete,
    /// Register it with load balancers.
    Register,
    /// Deregister it.
    Deregister,
    /// Run the command that drains it.
    Drain,
}

impl Operation {
    /// The name in the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Register => "register",
            Self::Deregister => "deregister",
            Self::Drain => "drain",
        }
    }
}

/// The id of an intent within a state; never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(pub i64);

/// A cloud call that is about to be made. It must be durable before the call; while it is open, the
/// call may or may not have taken effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Its id, set by the store.
    pub id: IntentId,
    /// `tenant/group/slot`, for messages.
    pub address: String,
    /// `tenant/group`.
    pub group: Arc<str>,
    /// The slot of the group.
    pub slot: u32,
    /// The operation.
    pub operation: Operation,
    /// The instance id.
    pub instance_id: String,
    /// The provider id, once known.
    pub provider_id: Option<String>,
    /// The generation of the instance.
    pub generation: u64,
    /// The attempt at this generation.
    pub attempt: u32,
    /// The idempotency token; unique among open create intents.
    pub token: String,
    /// The spec of the instance, for its record if it is found after a crash. It must be stored,
    /// and is kept while the intent is open.
    pub spec: Option<SpecDigest>,
    /// The exact request. Stored compressed and encrypted, and removed when the intent is closed.
    pub request: Vec<u8>,
    /// Its apply.
    pub apply_id: Option<ApplyId>,
    /// When it was opened, set by the store.
    pub opened_at: Timestamp,
}

/// The outcome of an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It took effect, and the result is recorded.
    Done,
    /// It was rejected, without effect.
    Failed {
        /// The cloud's message.
        message: String,
    },
    /// Its effect was found later, and is recorded.
    Adopted,
    /// It had no effect, or the effect is gone.
    Abandoned,
}

impl Outcome {
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed { .. } => "failed",
            Self::Adopted => "adopted",
            Self::Abandoned => "abandoned",
        }
    }

    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Failed { message } => Some(message),
            Self::Done | Self::Adopted | Self::Abandoned => None,
        }
    }
}

/// The cached result of an image look-up; not part of the serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRow {
    /// The name in the configuration, the key.
    pub name: String,
    /// The digest of the query, so that the cached answer isn't used for another query.
    pub query_digest: String,
    /// The image id.
    pub image_id: String,
    /// The source of the answer, such as `lookup`.
    pub source: String,
    /// When it was resolved.
    pub resolved_at: Timestamp,
    /// Details of the image, as JSON.
    pub detail_json: String,
}

/// The cached body of a URL; not part of the serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedRow {
    /// The URL, the key.
    pub url: String,
    /// The digest of the body, in the caller's form.
    pub digest: String,
    /// The body. Stored compressed and encrypted.
    pub body: Vec<u8>,
    /// When it was fetched.
    pub fetched_at: Timestamp,
}

/// The holder of the lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockInfo {
    /// The unique id of the lock, chosen by the caller.
    pub id: String,
    /// The user.
    pub holder: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// The command, such as `apply`.
    pub operation: String,
    /// When it was acquired.
    pub since: Timestamp,
}

impl fmt::Display for LockInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            id,
            holder,
            host,
            pid,
            operation,
            ..
        } = self;
        if !self.is_signed() {
            return formatter.write_str("a process that hasn't said who it is");
        }
        write!(
            formatter,
            "{holder}@{host}, process {pid}, for \"{operation}\" (id {id})"
        )
    }
}

impl LockInfo {
    /// Whether it names a holder; a new lock may not have its text yet.
    pub fn is_signed(&self) -> bool {
        self.pid != 0
    }
}

/// The id of an apply within a state; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplyId(pub i64);

/// The status of an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApplyStatus {
    /// Its process is alive and holds the lock.
    Running,
    /// All changes were done.
    Succeeded,
    /// Some changes were not done.
    Failed,
    /// It was interrupted, or its process died.
    Interrupted,
}

impl ApplyStatus {
    /// The name in the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A new apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApply {
    /// The user.
    pub who: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// The command, such as `apply`, `import`, `state mv`.
    pub operation: String,
    /// The digest of its plan.
    pub plan_digest: Option<String>,
}

/// An apply, or another command that changed the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apply {
    /// Its id.
    pub id: ApplyId,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended; `None` if it was interrupted.
    pub finished_at: Option<Timestamp>,
    /// The user.
    pub who: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// The command.
    pub operation: String,
    /// The serial before it.
    pub serial_before: u64,
    /// The serial after it; `None` if it was interrupted.
    pub serial_after: Option<u64>,
    /// Its status; never running if its process died.
    pub status: ApplyStatus,
    /// A summary as JSON; `{}` until it ends.
    pub summary_json: String,
    /// The digest of its plan.
    pub plan_digest: Option<String>,
}

/// The ids of an instance at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryIds {
    /// The instance id.
    pub instance_id: Option<String>,
    /// The provider id.
    pub provider_id: Option<String>,
}

/// The change of one address by an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryItem {
    /// `tenant/group/slot`.
    pub address: String,
    /// The action, such as `create`, `replace`, `forget`.
    pub action: String,
    /// The instance before.
    pub before: HistoryIds,
    /// The instance after.
    pub after: HistoryIds,
    /// The result, such as `done`, or the error.
    pub result: String,
    /// A small JSON text of the caller; `{}` if empty.
    pub detail_json: String,
    /// When it was recorded, set by the store.
    pub at: Timestamp,
}

impl HistoryItem {
    /// Whether it can't quote a secret: a result like "done" is nstance's own, while others may be
    /// a cloud's message, which may quote the request.
    pub(crate) fn is_harmless(&self) -> bool {
        self.detail_json == "{}" && self.result.chars().all(char::is_alphabetic)
    }

    /// The result and the detail, for encryption.
    pub(crate) fn to_sealed_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&(&self.result, &self.detail_json)).expect("texts are JSON")
    }
}

/// The id of a rollout within a state; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RolloutId(pub i64);

/// The status of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RolloutStatus {
    /// It makes changes, or was interrupted and can continue.
    Running,
    /// It waits for a request, a time or an instance.
    Waiting,
    /// It stopped after a failure.
    Failed,
    /// It undoes its changes.
    RollingBack,
    /// Its changes are undone.
    RolledBack,
    /// All changes were done.
    Done,
    /// Another plan took its place.
    Superseded,
}

impl RolloutStatus {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::Waiting,
        Self::Failed,
        Self::RollingBack,
        Self::RolledBack,
        Self::Done,
        Self::Superseded,
    ];

    /// The name in the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
            Self::RollingBack => "rolling_back",
            Self::RolledBack => "rolled_back",
            Self::Done => "done",
            Self::Superseded => "superseded",
        }
    }

    /// The status with this name in the state.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether nothing needs the plan any more.
    pub(crate) fn drops_plan(self) -> bool {
        match self {
            Self::Done | Self::Superseded => true,
            Self::Running | Self::Waiting | Self::Failed | Self::RollingBack | Self::RolledBack => {
                false
            }
        }
    }
}

/// A new rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRollout {
    /// The digest of its plan.
    pub plan_digest: Option<String>,
    /// Its plan. Stored compressed and encrypted.
    pub plan: Vec<u8>,
    /// Its status.
    pub status: RolloutStatus,
}

/// A rollout: a plan that is applied in steps. Not part of the serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// Its id.
    pub id: RolloutId,
    /// The digest of its plan.
    pub plan_digest: Option<String>,
    /// Its status.
    pub status: RolloutStatus,
    /// When it started.
    pub started_at: Timestamp,
    /// When its status was last set.
    pub changed_at: Timestamp,
    /// Its groups, by name.
    pub groups: Vec<RolloutGroup>,
    /// Its slots, by address and instance id, as texts.
    pub slots: Vec<RolloutSlot>,
}

/// The progress of a rollout in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutGroup {
    /// `tenant/group`, the key within the rollout.
    pub group: String,
    /// The stage, in the caller's form. It is never encrypted.
    pub stage: String,
    /// When it was stored, set by the store.
    pub since: Timestamp,
    /// What the caller adds. Stored encrypted, since it may quote a cloud's message.
    pub detail: String,
}

/// The progress of a rollout with an instance. A slot has one for each of its instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutSlot {
    /// `tenant/group/slot`, the key within the rollout together with the instance id.
    pub address: String,
    /// The instance id.
    pub instance_id: String,
    /// The stage, in the caller's form. It is never encrypted.
    pub stage: String,
    /// When it was stored, set by the store.
    pub since: Timestamp,
    /// What the caller adds. Stored encrypted, since it may quote a cloud's message.
    pub detail: String,
}

/// The id of a request within a state; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RolloutRequestId(pub i64);

/// A new request to the process that runs the rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRequest {
    /// The group that it is about; `None` for all.
    pub group: Option<String>,
    /// What is asked for, such as `promote`, `pause`, `abort`.
    pub kind: String,
    /// The user who asks.
    pub who: String,
}

/// A request to the process that runs the rollout. Never encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutRequest {
    /// Its id.
    pub id: RolloutRequestId,
    /// The group that it is about; `None` for all.
    pub group: Option<String>,
    /// What is asked for.
    pub kind: String,
    /// The user who asks.
    pub who: String,
    /// When it was added, set by the store.
    pub at: Timestamp,
}
