//! Encrypts and decrypts rows.
//!
//! In: a row's content, and its [`Place`]. Out: the stored bytes; without a key, the content
//! itself. Must not: depend on the tables, except for what identifies their rows.
//!
//! The context that binds each encrypted part to its row and version:
//!
//! | part | row | version |
//! | --- | --- | --- |
//! | spec | its digest | none: other content is another row |
//! | request | the intent's id, address, instance, token, spec | the attempt |
//! | message | the intent's id | when it was closed |
//! | history | the apply and the entry's clear columns | when it was added |
//! | fetched | the keyed name of its URL | when it was fetched |
//! | observation cache | none: there is one | when it was stored |
//! | rollout plan | the rollout's id and plan digest | when it was stored |
//! | rollout group | the rollout's id, the group and its stage | when it was stored |
//! | rollout slot | the rollout's id, the address, the instance and its stage | when it was stored |
//! | last good | its group | when it was stored |
//!
//! So no part decrypts in another row, in another state, or in a row with other clear columns.
//! Ids of intents, applies and rollouts are never reused.

use std::borrow::Cow;
use std::io;

use crate::codec::{self, Effort};
use crate::error::StateError;
use crate::model::{
    ApplyId, HistoryItem, Intent, IntentId, RolloutGroup, RolloutId, RolloutSlot, SpecDigest,
    Timestamp,
};
use crate::seal::{Context, Key, OpenError};

/// Encrypts and decrypts the rows of one state.
#[derive(Clone, Debug)]
pub(crate) struct RowCrypto(Option<Sealed>);

#[derive(Clone, Debug)]
struct Sealed {
    key: Key,
    lineage: String,
}

/// The context of encrypted content.
pub(crate) struct Place {
    table: &'static str,
    row: Vec<Vec<u8>>,
    version: u64,
}

impl Place {
    pub(crate) fn spec(digest: SpecDigest) -> Self {
        Self {
            table: "spec",
            row: vec![digest.0.to_vec()],
            version: 0,
        }
    }

    pub(crate) fn fetched(name: &str, at: Timestamp) -> Self {
        Self {
            table: "fetched",
            row: vec![name.as_bytes().to_vec()],
            version: at.0 as u64,
        }
    }

    pub(crate) fn observation_cache(at: Timestamp) -> Self {
        Self {
            table: "observation cache",
            row: Vec::new(),
            version: at.0 as u64,
        }
    }

    pub(crate) fn rollout_plan(id: RolloutId, plan_digest: Option<&str>, at: Timestamp) -> Self {
        Self {
            table: "rollout plan",
            row: vec![
                id.0.to_le_bytes().to_vec(),
                plan_digest.unwrap_or_default().as_bytes().to_vec(),
            ],
            version: at.0 as u64,
        }
    }

    pub(crate) fn rollout_group(id: RolloutId, group: &RolloutGroup) -> Self {
        Self {
            table: "rollout group",
            row: vec![
                id.0.to_le_bytes().to_vec(),
                group.group.as_bytes().to_vec(),
                group.stage.as_bytes().to_vec(),
            ],
            version: group.since.0 as u64,
        }
    }

    pub(crate) fn rollout_slot(id: RolloutId, slot: &RolloutSlot) -> Self {
        Self {
            table: "rollout slot",
            row: vec![
                id.0.to_le_bytes().to_vec(),
                slot.address.as_bytes().to_vec(),
                slot.instance_id.as_bytes().to_vec(),
                slot.stage.as_bytes().to_vec(),
            ],
            version: slot.since.0 as u64,
        }
    }

    pub(crate) fn last_good(group: &str, at: Timestamp) -> Self {
        Self {
            table: "last good",
            row: vec![group.as_bytes().to_vec()],
            version: at.0 as u64,
        }
    }

    pub(crate) fn request(id: IntentId, intent: &Intent) -> Self {
        let text = |text: &str| text.as_bytes().to_vec();
        Self {
            table: "request",
            row: vec![
                id.0.to_le_bytes().to_vec(),
                text(&intent.address),
                text(&intent.group),
                intent.slot.to_le_bytes().to_vec(),
                text(intent.operation.as_str()),
                text(&intent.instance_id),
                text(intent.provider_id.as_deref().unwrap_or_default()),
                intent.generation.to_le_bytes().to_vec(),
                text(&intent.token),
                intent.spec.map_or_else(Vec::new, |spec| spec.0.to_vec()),
            ],
            version: intent.attempt.into(),
        }
    }

    pub(crate) fn message(id: IntentId, closed_at: Timestamp) -> Self {
        Self {
            table: "message",
            row: vec![id.0.to_le_bytes().to_vec()],
            version: closed_at.0 as u64,
        }
    }

    pub(crate) fn history(id: ApplyId, item: &HistoryItem, at: Timestamp) -> Self {
        let ids = [
            &item.before.instance_id,
            &item.before.provider_id,
            &item.after.instance_id,
            &item.after.provider_id,
        ];
        let mut row = vec![
            id.0.to_le_bytes().to_vec(),
            item.address.as_bytes().to_vec(),
            item.action.as_bytes().to_vec(),
        ];
        row.extend(ids.map(|id| id.as_deref().unwrap_or_default().as_bytes().to_vec()));
        Self {
            table: "history",
            row,
            version: at.0 as u64,
        }
    }
}

impl RowCrypto {
    /// For an unencrypted state.
    pub(crate) fn clear() -> Self {
        Self(None)
    }

    pub(crate) fn new(key: Key, lineage: String) -> Self {
        Self(Some(Sealed { key, lineage }))
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.0.is_some()
    }

    /// Compresses, then encrypts.
    ///
    /// Fails if the system supplies no random bytes.
    pub(crate) fn pack(
        &self,
        place: &Place,
        bytes: &[u8],
        effort: Effort,
    ) -> Result<Vec<u8>, StateError> {
        self.seal(place, codec::pack(bytes, effort))
    }

    /// Decrypts, then decompresses.
    ///
    /// Fails if the bytes are damaged or belong elsewhere.
    pub(crate) fn unpack(&self, place: &Place, stored: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let packed = self.open(place, stored).map_err(io::Error::other)?;
        codec::unpack(&packed, size)
    }

    /// Encrypts bytes.
    ///
    /// Fails if the system supplies no random bytes.
    pub(crate) fn seal(&self, place: &Place, bytes: Vec<u8>) -> Result<Vec<u8>, StateError> {
        match &self.0 {
            None => Ok(bytes),
            Some(sealed) => sealed
                .within(place, |context| sealed.key.seal(context, &bytes))
                .map_err(StateError::Random),
        }
    }

    /// Decrypts bytes.
    ///
    /// Fails if they are damaged or belong elsewhere.
    pub(crate) fn open<'s>(
        &self,
        place: &Place,
        stored: &'s [u8],
    ) -> Result<Cow<'s, [u8]>, OpenError> {
        match &self.0 {
            None => Ok(Cow::Borrowed(stored)),
            Some(sealed) => sealed
                .within(place, |context| sealed.key.open(context, stored))
                .map(Cow::Owned),
        }
    }

    /// The stored form of a digest.
    pub(crate) fn mask(&self, digest: SpecDigest) -> SpecDigest {
        match &self.0 {
            None => digest,
            Some(sealed) => SpecDigest(sealed.key.mask(digest.0)),
        }
    }

    /// The digest for its stored form.
    pub(crate) fn unmask(&self, stored: SpecDigest) -> SpecDigest {
        match &self.0 {
            None => stored,
            Some(sealed) => SpecDigest(sealed.key.unmask(stored.0)),
        }
    }

    /// The stored form of a URL, which may contain a password or a signature.
    pub(crate) fn name(&self, url: &str) -> String {
        match &self.0 {
            None => url.to_owned(),
            Some(sealed) => sealed.key.name("url", url),
        }
    }
}

impl Sealed {
    fn within<R>(&self, place: &Place, act: impl FnOnce(&Context<'_>) -> R) -> R {
        let row: Vec<&[u8]> = place.row.iter().map(Vec::as_slice).collect();
        act(&Context {
            lineage: &self.lineage,
            table: place.table,
            row: &row,
            version: place.version,
        })
    }
}
