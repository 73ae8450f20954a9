//! The values that a state holds and hands out.
//!
//! In: nothing. Out: plain data. No value here knows the database.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::seal::KeyNeed;

/// Whom a state belongs to. Fixed when the state is created.
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

/// A moment, in milliseconds since 1970-01-01T00:00:00Z. Always the caller's: nothing here reads
/// a clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// What is true of the state as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Whom the state belongs to.
    pub identity: Identity,
    /// Which state this is: given when it was created, the same in every copy of it.
    pub lineage: String,
    /// Which version of the state: grows by one with each transaction that changed a record.
    pub serial: u64,
    /// When the state was created.
    pub created_at: Timestamp,
    /// The schema version of what was opened; of a migrated copy where an older state was opened
    /// for reading.
    pub schema_version: u32,
    /// The key that opens what is sealed in it; `None` where all lies in clear.
    pub key: Option<KeyNeed>,
}

/// The digest by which a spec is known. The state takes it as it is given: what was hashed, and
/// how, is the caller's affair.
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

/// A text that is no [`SpecDigest`].
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

/// What the state says an instance is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `tenant/group`. Records of one snapshot share it.
    pub group: Arc<str>,
    /// The numbered place in the group. At most one record of a slot is not deposed.
    pub slot: u32,
    /// An old instance of the slot that is still to be deleted, after its successor was created.
    pub deposed: bool,
    /// Our id of the instance. The key of the record.
    pub instance_id: String,
    /// The cloud's id of the instance. No two records share one.
    pub provider_id: String,
    /// Which instance of the slot: grows with each new one.
    pub generation: u64,
    /// The kind of instance, the first letters of its id.
    pub kind: String,
    /// What the instance was made from. The spec must have been put.
    pub spec: SpecDigest,
    /// The digest of what the cloud reported when the record was last in sync with it. A digest
    /// alone: nothing is stored under it.
    pub observed: Option<SpecDigest>,
    /// The zone that it runs in.
    pub zone: String,
    /// The subnet that it is in.
    pub subnet: Option<String>,
    /// Its IPv4 address.
    pub ip4: Option<String>,
    /// Its IPv6 address.
    pub ip6: Option<String>,
    /// When the instance was created. The caller's word.
    pub created_at: Timestamp,
    /// When the record last changed. Set by the store: what is given is ignored.
    pub updated_at: Timestamp,
    /// A small JSON text for what the caller wants to add; `{}` where there is nothing. In clear
    /// on disk, in a sealed state too: no place for anything that was rendered.
    pub attributes: String,
    /// The serial at which the record last changed. Set by the store: what is given is ignored.
    pub version: u64,
}

impl Record {
    /// `tenant/group/slot`.
    pub fn address(&self) -> String {
        address(&self.group, self.slot)
    }
}

/// `tenant/group/slot` of a group and a slot of it.
pub fn address(group: &str, slot: u32) -> String {
    format!("{group}/{slot}")
}

/// What an intent is about to do to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Make it.
    Create,
    /// Change it in place.
    Update,
    /// End it.
    Delete,
}

impl Operation {
    /// The name that it has in the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// Which intent, within one state. Never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(pub i64);

/// What is about to be asked of the cloud: to be opened, and so on disk, before it is asked. While it
/// is open it may or may not have been carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Which intent. Set by the store: what is given is ignored.
    pub id: IntentId,
    /// `tenant/group/slot`, for messages.
    pub address: String,
    /// `tenant/group`.
    pub group: Arc<str>,
    /// The slot of the group.
    pub slot: u32,
    /// What is to be done.
    pub operation: Operation,
    /// Our id of the instance.
    pub instance_id: String,
    /// The cloud's id, where there is one yet.
    pub provider_id: Option<String>,
    /// The generation of the instance.
    pub generation: u64,
    /// Which attempt at this generation.
    pub attempt: u32,
    /// What makes the request idempotent. Of the open intents to create, no two share one.
    pub token: String,
    /// What the instance is to be, for the record that is made of it when it is found after a
    /// crash. Must have been put; it is kept as long as the intent is open.
    pub spec: Option<SpecDigest>,
    /// The exact request, byte for byte. Compressed and sealed at rest, dropped when the intent is
    /// closed.
    pub request: Vec<u8>,
    /// The apply that it is part of.
    pub apply_id: Option<ApplyId>,
    /// When it was opened. Set by the store: what is given is ignored.
    pub opened_at: Timestamp,
}

/// How an intent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out, and what came of it is recorded.
    Done,
    /// It was refused, and nothing came of it.
    Failed {
        /// What the cloud said.
        message: String,
    },
    /// What came of it was found later, and is recorded.
    Adopted,
    /// Nothing came of it, or what came of it is gone again.
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

/// What the name of an image resolved to, and when. A cache: it is no part of the serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRow {
    /// The name in the configuration. The key.
    pub name: String,
    /// A digest of what was asked, so that a changed question isn't answered from the cache.
    pub query_digest: String,
    /// The cloud's id of the image.
    pub image_id: String,
    /// Where the answer came from, such as `lookup`.
    pub source: String,
    /// When it was resolved.
    pub resolved_at: Timestamp,
    /// More about the image, as JSON.
    pub detail_json: String,
}

/// What a URL answered, and when. A cache: it is no part of the serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedRow {
    /// What was fetched. The key.
    pub url: String,
    /// The digest of the body, as the caller writes it.
    pub digest: String,
    /// The body. Compressed and sealed at rest.
    pub body: Vec<u8>,
    /// When it was fetched.
    pub fetched_at: Timestamp,
}

/// Who holds the lock, and what for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockInfo {
    /// Which lock. The caller makes it; unique.
    pub id: String,
    /// The user.
    pub holder: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// The command, such as `apply`.
    pub operation: String,
    /// Since when.
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
    /// Whether the holder said who it is; one that has only just got the lock may not have yet.
    pub fn is_signed(&self) -> bool {
        self.pid != 0
    }
}

/// Which apply, within one state. Never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplyId(pub i64);

/// How far an apply came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApplyStatus {
    /// Its process lives and holds the lock.
    Running,
    /// Everything was done.
    Succeeded,
    /// Something was not done.
    Failed,
    /// It was stopped, or its process died.
    Interrupted,
}

impl ApplyStatus {
    /// The name that it has in the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// An apply that begins.
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
    /// The digest of the plan that it follows.
    pub plan_digest: Option<String>,
}

/// An apply, or another command that changed records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apply {
    /// Which apply.
    pub id: ApplyId,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; `None` where it didn't end by itself.
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
    /// The serial after it; `None` where it didn't end by itself.
    pub serial_after: Option<u64>,
    /// How far it came. One whose process died is interrupted, never running.
    pub status: ApplyStatus,
    /// What was done, as JSON; `{}` until it ended.
    pub summary_json: String,
    /// The digest of the plan that it followed.
    pub plan_digest: Option<String>,
}

/// The two ids of an instance at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryIds {
    /// Our id.
    pub instance_id: Option<String>,
    /// The cloud's id.
    pub provider_id: Option<String>,
}

/// What one apply did to one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryItem {
    /// `tenant/group/slot`.
    pub address: String,
    /// The action, such as `create`, `replace`, `forget`.
    pub action: String,
    /// What was there before.
    pub before: HistoryIds,
    /// What was there after.
    pub after: HistoryIds,
    /// How it went, such as `done`, or what went wrong.
    pub result: String,
    /// A small JSON text for what the caller wants to add; `{}` where there is nothing.
    pub detail_json: String,
    /// When it was recorded. Set by the store: what is given is ignored.
    pub at: Timestamp,
}

impl HistoryItem {
    /// Whether it quotes nothing: a result like "done" is nstance's own, others may be a cloud's,
    /// which may quote what it was asked.
    pub(crate) fn is_harmless(&self) -> bool {
        self.detail_json == "{}" && self.result.chars().all(char::is_alphabetic)
    }

    /// The result and the detail, to be sealed.
    pub(crate) fn to_sealed_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&(&self.result, &self.detail_json)).expect("texts are JSON")
    }
}
