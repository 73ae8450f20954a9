//! What the tests share: a state in a folder of its own, and values to put in it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nstance_state::{
    Identity, Intent, IntentId, Operation, Record, Result, SpecDigest, SqliteStore, Timestamp,
    Transaction,
};
use tempfile::TempDir;

/// A state in a temporary folder, which goes when this is dropped.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Place {
    /// A folder with no state in it yet.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prod.db");
        Self { folder, path }
    }

    /// A folder with a new state in it.
    pub(crate) fn new() -> (Self, SqliteStore) {
        let place = Self::empty();
        let store = SqliteStore::create(&place.path, &identity(), "lineage", Timestamp(1)).unwrap();
        (place, store)
    }

    /// The names of the files in the folder, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Every file of the folder with its content.
pub(crate) fn content(place: &Place) -> BTreeMap<String, Vec<u8>> {
    place
        .names()
        .into_iter()
        .map(|name| {
            let bytes = std::fs::read(place.folder.path().join(&name)).unwrap();
            (name, bytes)
        })
        .collect()
}

pub(crate) fn identity() -> Identity {
    Identity {
        cluster: "prod".into(),
        shard: "us-west-2a".into(),
        provider: "aws".into(),
    }
}

pub(crate) fn digest(seed: u64) -> SpecDigest {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&seed.to_le_bytes());
    SpecDigest(digest)
}

/// A record of its own in every respect, with the spec that [`put`] gives it.
pub(crate) fn record(group: &str, slot: u32) -> Record {
    Record {
        group: Arc::from(group),
        slot,
        deposed: false,
        instance_id: format!("knd-{group}-{slot}"),
        provider_id: format!("i-{group}-{slot}"),
        generation: 1,
        kind: "knd".into(),
        spec: digest(1),
        observed: None,
        zone: "us-west-2a".into(),
        subnet: Some("subnet-1".into()),
        ip4: Some(format!("10.0.0.{}", slot % 256)),
        ip6: None,
        created_at: Timestamp(5),
        updated_at: Timestamp(0),
        attributes: "{}".into(),
        version: 0,
    }
}

/// Puts records, their spec before them.
pub(crate) fn put(store: &mut SqliteStore, records: &[Record]) -> Result<()> {
    store.transaction(Timestamp(10), |transaction| put_in(transaction, records))
}

pub(crate) fn put_in(transaction: &mut Transaction<'_>, records: &[Record]) -> Result<()> {
    transaction.put_spec(digest(1), b"{\"spec\": 1}")?;
    records
        .iter()
        .try_for_each(|record| transaction.put_record(record.clone()))
}

/// An intent to create what [`record`] records.
pub(crate) fn creation(group: &str, slot: u32) -> Intent {
    Intent {
        address: format!("{group}/{slot}"),
        group: Arc::from(group),
        slot,
        operation: Operation::Create,
        instance_id: format!("knd-{group}-{slot}"),
        provider_id: None,
        generation: 1,
        attempt: 1,
        token: format!("token-{group}-{slot}-1-1"),
        spec: None,
        request: format!("{{\"ClientToken\": \"{slot}\"}}").into_bytes(),
        id: IntentId::default(),
        apply_id: None,
        opened_at: Timestamp(0),
    }
}
