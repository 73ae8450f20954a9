//! A state as one portable text.
//!
//! In: [`Contents`], all that another store needs to be the same state. Out: a JSON document, and
//! the contents again. What may hold secrets is sealed in it, whatever the store does: specs, the
//! requests of open intents, and digests, which a guess could be compared with. Equal contents
//! make equal documents. It may not touch files or the database.

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

/// All that another store needs to be the same state. History and caches are no part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Whom the state belongs to.
    pub identity: Identity,
    /// Which state.
    pub lineage: String,
    /// Which version of it.
    pub serial: u64,
    /// When the state was created.
    pub created_at: Timestamp,
    /// All records, in a snapshot's order.
    pub records: Vec<Record>,
    /// The generations that no record of the slot has (any more), by group and slot.
    pub generations: BTreeMap<(Arc<str>, u32), u64>,
    /// The specs that records and intents refer to.
    pub specs: BTreeMap<SpecDigest, Arc<[u8]>>,
    /// What was intended and not settled, oldest first.
    pub intents: Vec<Intent>,
}

/// A record that two states have differently: as one has it, and as the other does.
pub type Difference<'c> = (Option<&'c Record>, Option<&'c Record>);

impl Contents {
    /// All of a state, as it was at one moment, wherever it is kept.
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
            // A spec that is gone meanwhile was dropped with the last row that named it.
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

    /// Whether it says the same as another: what only one store gives its rows is left out.
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

    /// The records that differ from another state's in more than when they changed, each with the
    /// other's; by our id of the instance.
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

    /// Everything that is wrong with the contents themselves, a lower-case fragment each.
    /// `is_spec` says whether bytes are what their digest says.
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
    /// Whether it says the same as another, whenever each of them came to say it.
    pub fn is_like(&self, other: &Self) -> bool {
        let mut like = other.clone();
        like.version = self.version;
        like.updated_at = self.updated_at;
        *self == like
    }
}

/// Why a text is no document of a state, or can't be opened.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// Not JSON, cut short, or with other keys.
    #[error("it isn't a state's document: {0}")]
    NotADocument(String),
    /// Another version wrote it.
    #[error("it has the format {0:?}, and this version reads {DOCUMENT_VERSION:?}")]
    Format(String),
    /// What is sealed in it doesn't open.
    #[error("{what} can't be opened: {error}")]
    Sealed {
        /// What, such as "the spec of default/web/0".
        what: String,
        /// Why.
        error: OpenError,
    },
    /// Something in it isn't what it should be.
    #[error("{what} can't be read: {why}")]
    Wrong {
        /// What.
        what: String,
        /// Why.
        why: String,
    },
}

/// A document, as it was read: what is sealed is still sealed.
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
    /// Which state.
    pub lineage: String,
    /// Which version of it.
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

/// A text's only interesting key, whatever else is in it.
#[derive(Deserialize)]
struct Version {
    format_version: String,
}

impl Document {
    /// Makes the document of a state.
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

    /// Reads a document's text.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let wrong = |error: serde_json::Error| DocumentError::NotADocument(error.to_string());
        let version: Version = serde_json::from_str(text).map_err(wrong)?;
        if version.format_version != DOCUMENT_VERSION {
            return Err(DocumentError::Format(version.format_version));
        }
        serde_json::from_str(text).map_err(wrong)
    }

    /// The document's text, a line feed at its end.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a document's keys are strings");
        text.push('\n');
        text
    }

    /// Whom it belongs to.
    pub fn identity(&self) -> Identity {
        Identity {
            cluster: self.cluster.clone(),
            shard: self.shard.clone(),
            provider: self.provider.clone(),
        }
    }

    /// The key that opens it.
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

    /// Opens what is sealed. Whether the contents are sound is another question.
    pub fn open(self, key: &Key) -> Result<Contents, DocumentError> {
        let identity = self.identity();
        let seals = Seals {
            key,
            lineage: &self.lineage,
        };
        // One name for all of a group's rows.
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

/// Which key opens it, and how a passphrase makes the key.
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

/// What seals the parts of one document, and opens them.
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
        // Sealing needs the key: a body that doesn't unpack was damaged before it was sealed.
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

    /// The same record with its digests masked.
    fn record(&self, record: &Record) -> Record {
        with_digests(record.clone(), |digest| self.key.mask(digest))
    }

    /// The record whose digests were masked.
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
