//! A state as one portable text.
//!
//! In: [`Contents`], everything that another store needs to be the same state. Out: a JSON
//! document, and the contents again. Specs, the requests of open intents, and digests may reveal
//! secrets, so they are always encrypted. Equal contents make equal documents. Must not: touch
//! files or the database.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::codec::{self, Effort};
use crate::error::Result;
use crate::model::{
    Identity, Intent, IntentId, Meta, Operation, Record, SpecDigest, Timestamp, address,
};
use crate::seal::{Context, Derivation, Key, KeyNeed, OpenError};
use crate::store::Store;

/// The version of the format.
pub const DOCUMENT_VERSION: &str = "1.0";

/// Everything that another store needs to be the same state, without history and caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The state's identity.
    pub identity: Identity,
    /// The state's lineage.
    pub lineage: String,
    /// The state's serial.
    pub serial: u64,
    /// When the state was created.
    pub created_at: Timestamp,
    /// All records, in a snapshot's order.
    pub records: Vec<Record>,
    /// The generations without a record, by group and slot.
    pub generations: BTreeMap<(Arc<str>, u32), u64>,
    /// The specs that records and intents refer to.
    pub specs: BTreeMap<SpecDigest, Arc<[u8]>>,
    /// The open intents, oldest first.
    pub intents: Vec<Intent>,
}

/// A record that differs between two states: in the one, and in the other.
pub type Difference<'c> = (Option<&'c Record>, Option<&'c Record>);

impl Contents {
    /// Reads all contents of a state at one moment.
    ///
    /// Fails if the state can't be read.
    pub fn of(store: &dyn Store) -> Result<Self> {
        const LOOKS: u32 = 5;
        let mut looks = 0;
        loop {
            looks += 1;
            let snapshot = store.snapshot()?;
            let records = snapshot.records.iter().map(|record| record.spec);
            let intents = snapshot.intents.iter().filter_map(|intent| intent.spec);
            let digests: BTreeSet<SpecDigest> = records.chain(intents).collect();
            let digests: Vec<SpecDigest> = digests.into_iter().collect();
            let specs = store.specs(&digests)?;
            // A missing spec was removed together with the last row that referred to it.
            if specs.len() < digests.len() && looks < LOOKS {
                continue;
            }
            let generations = snapshot
                .past_generations()
                .map(|(group, slot, generation)| ((Arc::clone(group), slot), generation))
                .collect();
            let Meta {
                identity,
                lineage,
                serial,
                created_at,
                ..
            } = snapshot.meta;
            return Ok(Self {
                identity,
                lineage,
                serial,
                created_at,
                records: snapshot.records,
                generations,
                specs: specs.into_iter().collect(),
                intents: snapshot.intents,
            });
        }
    }

    /// Whether two contents are equal, ignoring values that the store sets.
    pub fn says(&self, other: &Self) -> bool {
        let intents = |contents: &Self| -> Vec<Intent> {
            let plain = |intent: &Intent| Intent {
                id: IntentId(0),
                apply_id: None,
                ..intent.clone()
            };
            contents.intents.iter().map(plain).collect()
        };
        let plain = |contents: &Self| Self {
            intents: Vec::new(),
            ..contents.clone()
        };
        intents(self) == intents(other) && plain(self) == plain(other)
    }

    /// The records that differ from another state's, apart from their timestamps; ordered by
    /// instance id.
    pub fn differences<'c>(&'c self, other: &'c Self) -> Vec<Difference<'c>> {
        let by_id = |contents: &'c Self| -> BTreeMap<&'c str, &'c Record> {
            let records = contents.records.iter();
            records
                .map(|record| (&*record.instance_id, record))
                .collect()
        };
        let (own, others) = (by_id(self), by_id(other));
        let ids: BTreeSet<&str> = own.keys().chain(others.keys()).copied().collect();
        ids.into_iter()
            .map(|id| (own.get(id).copied(), others.get(id).copied()))
            .filter(|(own, other)| match (own, other) {
                (Some(own), Some(other)) => !own.is_like(other),
                _ => true,
            })
            .collect()
    }

    /// All inconsistencies in the contents, as lower-case fragments. `is_spec` checks whether bytes
    /// match their digest.
    pub fn problems(&self, is_spec: &dyn Fn(SpecDigest, &[u8]) -> bool) -> Vec<String> {
        let mut problems = Vec::new();
        let (mut instances, mut providers, mut slots) =
            (HashSet::new(), HashSet::new(), HashSet::new());
        for record in &self.records {
            let (at, id) = (record.address(), &record.instance_id);
            if id.is_empty() || record.provider_id.is_empty() {
                problems.push(format!("a record of {at} has no id"));
            }
            if !instances.insert(id) {
                problems.push(format!("{id} is there twice"));
            }
            if !providers.insert(&record.provider_id) {
                problems.push(format!("{} is there twice", record.provider_id));
            }
            if !record.deposed && !slots.insert((&record.group, record.slot)) {
                problems.push(format!("{at} has two instances"));
            }
            if record.version > self.serial {
                problems.push(format!(
                    "the record of {id} has version {}, and the state has serial {}",
                    record.version, self.serial
                ));
            }
            if serde_json::from_str::<serde_json::Map<_, _>>(&record.attributes).is_err() {
                problems.push(format!("the attributes of {id} aren't a JSON object"));
            }
        }
        let named = self
            .records
            .iter()
            .map(|record| (record.spec, record.address()));
        let intended = self.intents.iter();
        let intended = intended.filter_map(|intent| Some((intent.spec?, intent.address.clone())));
        for (spec, of) in named.chain(intended) {
            if !self.specs.contains_key(&spec) {
                problems.push(format!("the spec of {of} isn't there"));
            }
        }
        for (digest, bytes) in &self.specs {
            if !is_spec(*digest, bytes) {
                let of = self.records.iter().find(|record| record.spec == *digest);
                let of = of.map_or_else(|| "something".to_owned(), Record::address);
                problems.push(format!("the spec of {of} isn't what its digest says"));
            }
        }
        let mut tokens = HashSet::new();
        for intent in &self.intents {
            let recorded = instances.contains(&intent.instance_id);
            let what = format!("the {} of {}", intent.operation.as_str(), intent.address);
            if address(&intent.group, intent.slot) != intent.address {
                problems.push(format!("{what} is about another slot"));
            }
            let creates = intent.operation == Operation::Create;
            if creates && !tokens.insert(&intent.token) {
                problems.push(format!("{what} is open twice"));
            }
            if creates && recorded {
                problems.push(format!("{what} is open, and its instance is recorded"));
            }
        }
        problems
    }
}

impl Record {
    /// Whether two records are equal, ignoring version and timestamps.
    pub fn is_like(&self, other: &Self) -> bool {
        let mut like = other.clone();
        like.version = self.version;
        like.updated_at = self.updated_at;
        *self == like
    }
}

/// Why a document can't be read.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// Not JSON, truncated, or with unexpected keys.
    #[error("it isn't a state's document: {0}")]
    NotADocument(String),
    /// Written by another version.
    #[error("it has the format {0:?}, and this version reads {DOCUMENT_VERSION:?}")]
    Format(String),
    /// An encrypted part can't be decrypted.
    #[error("{what} can't be opened: {error}")]
    Sealed {
        /// The part, such as "the spec of default/web/0".
        what: String,
        /// The error.
        error: OpenError,
    },
    /// A value is invalid.
    #[error("{what} can't be read: {why}")]
    Wrong {
        /// The value.
        what: String,
        /// The error.
        why: String,
    },
}

/// A parsed document; its parts are still encrypted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    format_version: String,
    /// The cluster.
    pub cluster: String,
    /// The shard.
    pub shard: String,
    /// The provider.
    pub provider: String,
    /// The state's lineage.
    pub lineage: String,
    /// The state's serial.
    pub serial: u64,
    /// When the state was created.
    pub created_at: Timestamp,
    key: KeyRow,
    groups: BTreeSet<Arc<str>>,
    instances: Vec<Record>,
    generations: Vec<GenerationRow>,
    specs: BTreeMap<String, String>,
    intents: Vec<IntentRow>,
}

/// Only the version of a document, whatever its other keys.
#[derive(Deserialize)]
struct Version {
    format_version: String,
}

impl Document {
    /// Builds the document of a state.
    pub fn new(contents: &Contents, key: &Key, derivation: Option<&Derivation>) -> Self {
        let seals = Seals {
            key,
            lineage: &contents.lineage,
        };
        let groups = contents.records.iter().map(|record| &record.group);
        let emptied = contents.generations.keys().map(|(group, _)| group);
        let specs = contents.specs.iter();
        Self {
            format_version: DOCUMENT_VERSION.to_owned(),
            cluster: contents.identity.cluster.clone(),
            shard: contents.identity.shard.clone(),
            provider: contents.identity.provider.clone(),
            lineage: contents.lineage.clone(),
            serial: contents.serial,
            created_at: contents.created_at,
            key: KeyRow {
                id: key.id().to_string(),
                derivation: derivation.map(ToString::to_string),
            },
            groups: groups.chain(emptied).cloned().collect(),
            instances: contents
                .records
                .iter()
                .map(|record| seals.record(record))
                .collect(),
            generations: contents
                .generations
                .iter()
                .map(|((group, slot), generation)| GenerationRow {
                    group: Arc::clone(group),
                    slot: *slot,
                    generation: *generation,
                })
                .collect(),
            specs: specs
                .map(|(digest, body)| seals.spec(*digest, body))
                .collect(),
            intents: contents
                .intents
                .iter()
                .map(|intent| seals.intent(intent))
                .collect(),
        }
    }

    /// Parses a document.
    ///
    /// Fails if it is invalid or of another version.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let wrong = |error: serde_json::Error| DocumentError::NotADocument(error.to_string());
        let version: Version = serde_json::from_str(text).map_err(wrong)?;
        if version.format_version != DOCUMENT_VERSION {
            return Err(DocumentError::Format(version.format_version));
        }
        serde_json::from_str(text).map_err(wrong)
    }

    /// The document as text, with a final line feed.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a document's keys are strings");
        text.push('\n');
        text
    }

    /// The state's identity.
    pub fn identity(&self) -> Identity {
        Identity {
            cluster: self.cluster.clone(),
            shard: self.shard.clone(),
            provider: self.provider.clone(),
        }
    }

    /// The required key.
    ///
    /// Fails if the document's key id is invalid.
    pub fn key(&self) -> Result<KeyNeed, DocumentError> {
        let wrong = |why: String| DocumentError::Wrong {
            what: "`key`".to_owned(),
            why,
        };
        let id = self
            .key
            .id
            .parse()
            .map_err(|error| wrong(format!("{error}")))?;
        let derivation = self.key.derivation.as_deref().map(str::parse).transpose();
        let derivation = derivation.map_err(|error| wrong(format!("{error}")))?;
        Ok(KeyNeed { id, derivation })
    }

    /// Decrypts a document. Doesn't check the contents for consistency.
    ///
    /// Fails if the key is wrong or a part is damaged.
    pub fn open(self, key: &Key) -> Result<Contents, DocumentError> {
        let identity = self.identity();
        let seals = Seals {
            key,
            lineage: &self.lineage,
        };
        // Rows of a group share one allocation of its name.
        let known = |group: &Arc<str>, what: &dyn Fn() -> String| {
            self.groups
                .get(group)
                .cloned()
                .ok_or_else(|| DocumentError::Wrong {
                    what: what(),
                    why: format!("`groups` doesn't have {group:?}"),
                })
        };
        let mut records = Vec::with_capacity(self.instances.len());
        for row in self.instances {
            let what = || format!("the record of {}", row.instance_id);
            let group = known(&row.group, &what)?;
            records.push(seals.open_record(Record { group, ..row }));
        }
        records.sort_by(|a, b| {
            let key = |record: &Record| (record.slot, record.deposed, record.generation);
            (&a.group, key(a), &a.instance_id).cmp(&(&b.group, key(b), &b.instance_id))
        });
        let mut generations = BTreeMap::new();
        for row in self.generations {
            let what = || format!("the generation of {}", address(&row.group, row.slot));
            let key = (known(&row.group, &what)?, row.slot);
            if generations.insert(key, row.generation).is_some() {
                return Err(DocumentError::Wrong {
                    what: what(),
                    why: "it is there twice".to_owned(),
                });
            }
        }
        let specs = self.specs.iter();
        let specs = specs.map(|(name, sealed)| seals.open_spec(name, sealed, &records));
        let specs = specs.collect::<Result<_, _>>()?;
        let intents = self.intents.into_iter();
        let intents = intents.map(|row| seals.open_intent(row));
        let intents = intents.collect::<Result<_, _>>()?;
        Ok(Contents {
            identity,
            serial: self.serial,
            created_at: self.created_at,
            records,
            generations,
            specs,
            intents,
            lineage: self.lineage,
        })
    }
}

/// The key's id, and how to derive it from a passphrase.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRow {
    id: String,
    derivation: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GenerationRow {
    group: Arc<str>,
    slot: u32,
    generation: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IntentRow {
    group: Arc<str>,
    slot: u32,
    operation: String,
    instance_id: String,
    provider_id: Option<String>,
    generation: u64,
    attempt: u32,
    token: String,
    spec: Option<String>,
    request: String,
    opened_at: Timestamp,
}

/// Encrypts and decrypts the parts of one document.
struct Seals<'a> {
    key: &'a Key,
    lineage: &'a str,
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
        // Decryption authenticates the bytes, so content that can't be decompressed was already
        // damaged before.
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
        SpecDigest(self.key.mask(digest.0)).to_string()
    }

    fn open_digest(&self, text: &str, of: &str) -> Result<SpecDigest, DocumentError> {
        match text.parse() {
            Ok(SpecDigest(masked)) => Ok(SpecDigest(self.key.unmask(masked))),
            Err(error) => Err(DocumentError::Wrong {
                what: format!("a digest of {of}"),
                why: format!("{error}"),
            }),
        }
    }

    fn spec(&self, digest: SpecDigest, body: &[u8]) -> (String, String) {
        let sealed = self.seal("document spec", &[&digest.0], 0, body);
        (self.digest(digest), sealed)
    }

    fn open_spec(
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

    /// The record with masked digests.
    fn record(&self, record: &Record) -> Record {
        with_digests(record.clone(), |digest| self.key.mask(digest))
    }

    /// The record with unmasked digests.
    fn open_record(&self, record: Record) -> Record {
        with_digests(record, |digest| self.key.unmask(digest))
    }

    fn intent(&self, intent: &Intent) -> IntentRow {
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

    fn open_intent(&self, row: IntentRow) -> Result<Intent, DocumentError> {
        let address = address(&row.group, row.slot);
        let operation = match &*row.operation {
            "create" => Operation::Create,
            "update" => Operation::Update,
            "delete" => Operation::Delete,
            "register" => Operation::Register,
            "deregister" => Operation::Deregister,
            "drain" => Operation::Drain,
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

fn with_digests(record: Record, turn: impl Fn([u8; 32]) -> [u8; 32]) -> Record {
    let turned = |SpecDigest(digest)| SpecDigest(turn(digest));
    Record {
        spec: turned(record.spec),
        observed: record.observed.map(turned),
        ..record
    }
}
