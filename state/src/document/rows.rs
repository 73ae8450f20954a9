//! The rows of a document, and how they are sealed.
//!
//! In: records, specs and intents. Out: rows whose secrets are sealed for their place in this
//! document, and back. It may not judge what it opens.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::DocumentError;
use crate::codec::{self, Effort};
use crate::model::{Intent, IntentId, Operation, Record, SpecDigest, Timestamp, address};
use crate::seal::{Context, Key, OpenError};

/// Which key opens it, and how a passphrase makes the key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyRow {
    pub(super) id: String,
    pub(super) derivation: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordRow {
    pub(super) group: Arc<str>,
    pub(super) slot: u32,
    pub(super) deposed: bool,
    pub(super) instance_id: String,
    pub(super) provider_id: String,
    pub(super) generation: u64,
    pub(super) kind: String,
    pub(super) spec: String,
    pub(super) observed: Option<String>,
    pub(super) zone: String,
    pub(super) subnet: Option<String>,
    pub(super) ip4: Option<String>,
    pub(super) ip6: Option<String>,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) attributes: String,
    pub(super) version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GenerationRow {
    pub(super) group: Arc<str>,
    pub(super) slot: u32,
    pub(super) generation: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IntentRow {
    pub(super) group: Arc<str>,
    pub(super) slot: u32,
    pub(super) operation: String,
    pub(super) instance_id: String,
    pub(super) provider_id: Option<String>,
    pub(super) generation: u64,
    pub(super) attempt: u32,
    pub(super) token: String,
    pub(super) spec: Option<String>,
    pub(super) request: String,
    pub(super) opened_at: Timestamp,
}

/// What seals the parts of one document, and opens them.
pub(super) struct Seals<'a> {
    pub(super) key: &'a Key,
    pub(super) lineage: &'a str,
}

impl Seals<'_> {
    fn seal(&self, table: &str, row: &[&[u8]], version: u64, bytes: &[u8]) -> String {
        let mut packed = (bytes.len() as u64).to_le_bytes().to_vec();
        packed.extend(codec::pack(bytes, Effort::Normal));
        let context = self.context(table, row, version);
        BASE64.encode(self.key.seal_alike(&context, &packed))
    }

    fn open(
        &self,
        table: &str,
        row: &[&[u8]],
        version: u64,
        sealed: &str,
        what: impl FnOnce() -> String,
    ) -> Result<Vec<u8>, DocumentError> {
        let context = self.context(table, row, version);
        let opened = BASE64
            .decode(sealed)
            .map_err(|_| OpenError::NotSealed)
            .and_then(|sealed| self.key.open(&context, &sealed));
        // Whoever sealed it had the key: what doesn't unpack is damage before that.
        let unpacked = opened.and_then(|packed| {
            let (size, packed) = packed.split_first_chunk().ok_or(OpenError::Damaged)?;
            let size = usize::try_from(u64::from_le_bytes(*size));
            let size = size.map_err(|_| OpenError::Damaged)?;
            codec::unpack(packed, size).map_err(|_| OpenError::Damaged)
        });
        unpacked.map_err(|error| DocumentError::Sealed {
            what: what(),
            error,
        })
    }

    fn context<'c>(&'c self, table: &'c str, row: &'c [&'c [u8]], version: u64) -> Context<'c> {
        Context {
            lineage: self.lineage,
            table,
            row,
            version,
        }
    }

    fn digest(&self, digest: SpecDigest) -> String {
        self.key.mask(digest).to_string()
    }

    fn open_digest(&self, text: &str, of: &str) -> Result<SpecDigest, DocumentError> {
        match text.parse() {
            Ok(masked) => Ok(self.key.unmask(masked)),
            Err(error) => Err(DocumentError::Wrong {
                what: format!("a digest of {of}"),
                why: format!("{error}"),
            }),
        }
    }

    pub(super) fn spec(&self, digest: SpecDigest, body: &[u8]) -> (String, String) {
        let sealed = self.seal("document spec", &[&digest.0], 0, body);
        (self.digest(digest), sealed)
    }

    pub(super) fn open_spec(
        &self,
        name: &str,
        sealed: &str,
        records: &[Record],
    ) -> Result<(SpecDigest, Arc<[u8]>), DocumentError> {
        let digest = self.open_digest(name, "a spec")?;
        let what = || {
            let of = records.iter().find(|record| record.spec == digest);
            of.map_or_else(
                || "a spec".to_owned(),
                |record| format!("the spec of {}", record.address()),
            )
        };
        let body = self.open("document spec", &[&digest.0], 0, sealed, what)?;
        Ok((digest, body.into()))
    }

    pub(super) fn record(&self, record: &Record) -> RecordRow {
        RecordRow {
            group: Arc::clone(&record.group),
            slot: record.slot,
            deposed: record.deposed,
            instance_id: record.instance_id.clone(),
            provider_id: record.provider_id.clone(),
            generation: record.generation,
            kind: record.kind.clone(),
            spec: self.digest(record.spec),
            observed: record.observed.map(|digest| self.digest(digest)),
            zone: record.zone.clone(),
            subnet: record.subnet.clone(),
            ip4: record.ip4.clone(),
            ip6: record.ip6.clone(),
            created_at: record.created_at,
            updated_at: record.updated_at,
            attributes: record.attributes.clone(),
            version: record.version,
        }
    }

    pub(super) fn open_record(&self, row: RecordRow) -> Result<Record, DocumentError> {
        let of = &row.instance_id;
        let observed = row.observed.as_deref();
        let observed = observed
            .map(|text| self.open_digest(text, of))
            .transpose()?;
        Ok(Record {
            spec: self.open_digest(&row.spec, of)?,
            observed,
            group: row.group,
            slot: row.slot,
            deposed: row.deposed,
            instance_id: row.instance_id,
            provider_id: row.provider_id,
            generation: row.generation,
            kind: row.kind,
            zone: row.zone,
            subnet: row.subnet,
            ip4: row.ip4,
            ip6: row.ip6,
            created_at: row.created_at,
            updated_at: row.updated_at,
            attributes: row.attributes,
            version: row.version,
        })
    }

    pub(super) fn intent(&self, intent: &Intent) -> IntentRow {
        let row = [
            intent.group.as_bytes(),
            &intent.slot.to_le_bytes(),
            intent.operation.as_str().as_bytes(),
            intent.token.as_bytes(),
        ];
        let request = self.seal(
            "document request",
            &row,
            intent.attempt.into(),
            &intent.request,
        );
        IntentRow {
            group: Arc::clone(&intent.group),
            slot: intent.slot,
            operation: intent.operation.as_str().to_owned(),
            instance_id: intent.instance_id.clone(),
            provider_id: intent.provider_id.clone(),
            generation: intent.generation,
            attempt: intent.attempt,
            token: intent.token.clone(),
            spec: intent.spec.map(|digest| self.digest(digest)),
            request,
            opened_at: intent.opened_at,
        }
    }

    pub(super) fn open_intent(&self, row: IntentRow) -> Result<Intent, DocumentError> {
        let address = address(&row.group, row.slot);
        let operation = match &*row.operation {
            "create" => Operation::Create,
            "update" => Operation::Update,
            "delete" => Operation::Delete,
            other => {
                return Err(DocumentError::Wrong {
                    what: format!("an intent of {address}"),
                    why: format!("{other:?} is no operation"),
                });
            }
        };
        let place = [
            row.group.as_bytes(),
            &row.slot.to_le_bytes(),
            row.operation.as_bytes(),
            row.token.as_bytes(),
        ];
        let what = || format!("the request of {address}");
        let version = row.attempt.into();
        let request = self.open("document request", &place, version, &row.request, what)?;
        let spec = row.spec.as_deref();
        Ok(Intent {
            id: IntentId(0),
            spec: spec
                .map(|text| self.open_digest(text, &address))
                .transpose()?,
            address,
            operation,
            request,
            group: row.group,
            slot: row.slot,
            instance_id: row.instance_id,
            provider_id: row.provider_id,
            generation: row.generation,
            attempt: row.attempt,
            token: row.token,
            apply_id: None,
            opened_at: row.opened_at,
        })
    }
}
