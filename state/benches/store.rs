//! What a plan and an apply wait for: the snapshot, and the journal.
#![expect(clippy::unwrap_used, reason = "a bench that can't go on may panic")]

use std::path::Path;
use std::sync::Arc;

use divan::{Bencher, black_box};
use nstance_state::{
    Identity, Intent, IntentId, Key, Operation, Outcome, Record, SpecDigest, SqliteStore, Timestamp,
};
use tempfile::TempDir;

fn main() {
    divan::main();
}

const GROUPS: u32 = 100;
const WAVE: u32 = 64;

fn digest(seed: u32) -> SpecDigest {
    let mut digest = [7; 32];
    digest[..4].copy_from_slice(&seed.to_le_bytes());
    SpecDigest(digest)
}

fn record(index: u32, spec: SpecDigest) -> Record {
    Record {
        group: Arc::from(format!("default/group-{:03}", index % GROUPS)),
        slot: index / GROUPS,
        deposed: false,
        instance_id: format!("knd{index:026}"),
        provider_id: format!("i-0{index:016x}"),
        generation: 1,
        kind: "knd".into(),
        spec,
        observed: Some(spec),
        zone: "us-west-2a".into(),
        subnet: Some("subnet-0123456789abcdef0".into()),
        ip4: Some(format!(
            "10.{}.{}.{}",
            index >> 16,
            index >> 8 & 255,
            index & 255
        )),
        ip6: None,
        created_at: Timestamp(1),
        updated_at: Timestamp(1),
        attributes: "{}".into(),
        version: 0,
    }
}

/// How a state lies on the disk.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Clear,
    Sealed,
}
use Kept::{Clear, Sealed};

fn key() -> Key {
    format!("nstance-key-1-{}", "5e".repeat(32))
        .parse()
        .unwrap()
}

fn create(folder: &Path, kept: Kept) -> SqliteStore {
    let identity = Identity {
        cluster: "prod".into(),
        shard: "us-west-2a".into(),
        provider: "aws".into(),
    };
    let path = folder.join("prod.db");
    match kept {
        Clear => SqliteStore::create(&path, &identity, "lineage", Timestamp(1)).unwrap(),
        Sealed => {
            let key = key().into();
            SqliteStore::create_sealed(&path, &identity, "lineage", Timestamp(1), &key).unwrap()
        }
    }
}

/// A state of `count` records, the groups interleaved as an apply interleaves them; with a spec
/// for each group, or one for each record.
fn filled(count: u32, own_specs: bool, kept: Kept) -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = create(folder.path(), kept);
    store
        .transaction(Timestamp(2), |transaction| {
            (0..count).try_for_each(|index| {
                let spec = digest(if own_specs { index } else { index % GROUPS });
                transaction.put_spec(spec, b"{\"instance_type\": \"t3.medium\"}")?;
                transaction.put_record(record(index, spec))
            })
        })
        .unwrap();
    (folder, store)
}

#[divan::bench(args = [1_000, 10_000, 100_000], sample_count = 20)]
fn snapshot(bencher: Bencher<'_, '_>, count: u32) {
    let (_folder, store) = filled(count, false, Sealed);
    bencher.bench_local(|| black_box(store.snapshot().unwrap()));
}

#[divan::bench(args = [Clear, Sealed], sample_count = 20)]
fn snapshot_of_100_000_with_a_spec_each(bencher: Bencher<'_, '_>, kept: Kept) {
    let (_folder, store) = filled(100_000, true, kept);
    bencher.bench_local(|| black_box(store.snapshot().unwrap()));
}

#[divan::bench(args = [Clear, Sealed], sample_count = 20)]
fn open_to_read_and_snapshot_of_100_000(bencher: Bencher<'_, '_>, kept: Kept) {
    let (folder, store) = filled(100_000, false, kept);
    drop(store);
    let path = folder.path().join("prod.db");
    bencher.bench_local(|| {
        black_box(
            SqliteStore::open_read_only(&path, None)
                .unwrap()
                .with_keys(Arc::new(key()))
                .snapshot()
                .unwrap(),
        )
    });
}

#[divan::bench(args = [1_000, 100_000], sample_count = 20)]
fn open_to_write(bencher: Bencher<'_, '_>, count: u32) {
    let (folder, store) = filled(count, false, Sealed);
    drop(store);
    let path = folder.path().join("prod.db");
    bencher.bench_local(|| black_box(SqliteStore::open(&path, None).unwrap()));
}

/// A thousand instances as an apply makes them: a wave of intents in one transaction, then their
/// records and ends in another. In a state that has 100,000 records already.
#[divan::bench(args = [Clear, Sealed], sample_count = 10)]
fn journal_of_a_thousand_in_waves(bencher: Bencher<'_, '_>, kept: Kept) {
    let (_folder, mut store) = filled(100_000, false, kept);
    let request = request();
    let mut next = 100_000;
    bencher.bench_local(|| {
        let end = next + 1_000;
        while next < end {
            let wave: Vec<u32> = (next..end.min(next + WAVE)).collect();
            next += wave.len() as u32;
            let intents: Vec<Intent> = wave
                .iter()
                .map(|index| creation(*index, &request))
                .collect();
            let ids = store
                .transaction(Timestamp(3), |transaction| {
                    transaction.put_spec(digest(0), b"{}")?;
                    transaction.open_intents(&intents)
                })
                .unwrap();
            store
                .transaction(Timestamp(4), |transaction| {
                    wave.iter().zip(&ids).try_for_each(|(index, id)| {
                        transaction.put_record(record(*index, digest(0)))?;
                        transaction.close_intent(*id, Outcome::Done)
                    })
                })
                .unwrap();
        }
    });
}

/// The same with a transaction for each end, which is what it costs when answers come one by one.
#[divan::bench(sample_count = 5)]
fn journal_of_a_thousand_ended_one_by_one(bencher: Bencher<'_, '_>) {
    let (_folder, mut store) = filled(0, false, Sealed);
    let request = request();
    let mut next = 0;
    bencher.bench_local(|| {
        let end = next + 1_000;
        while next < end {
            let wave: Vec<u32> = (next..end.min(next + WAVE)).collect();
            next += wave.len() as u32;
            let intents: Vec<Intent> = wave
                .iter()
                .map(|index| creation(*index, &request))
                .collect();
            let ids = store
                .transaction(Timestamp(3), |transaction| {
                    transaction.put_spec(digest(0), b"{}")?;
                    transaction.open_intents(&intents)
                })
                .unwrap();
            for (index, id) in wave.iter().zip(&ids) {
                store
                    .transaction(Timestamp(4), |transaction| {
                        transaction.put_record(record(*index, digest(0)))?;
                        transaction.close_intent(*id, Outcome::Done)
                    })
                    .unwrap();
            }
        }
    });
}

/// All that is sealed, sealed anew.
#[divan::bench(sample_count = 3)]
fn rekey_100_000_with_a_spec_each(bencher: Bencher<'_, '_>) {
    let (_folder, mut store) = filled(100_000, true, Sealed);
    bencher.bench_local(|| {
        let new = Key::generate().unwrap().into();
        store
            .transaction(Timestamp(3), |transaction| transaction.rekey(&new))
            .unwrap();
        store.scrub().unwrap()
    });
}

/// 16 KiB that compress as scripts do.
fn request() -> Vec<u8> {
    let lines = (0..).flat_map(|line: u32| {
        format!("echo {:08x}\n", line.wrapping_mul(0x9e37_79b9)).into_bytes()
    });
    lines.take(16 * 1024).collect()
}

fn creation(index: u32, request: &[u8]) -> Intent {
    let record = record(index, digest(0));
    Intent {
        address: record.address(),
        group: record.group,
        slot: record.slot,
        operation: Operation::Create,
        instance_id: record.instance_id,
        provider_id: None,
        generation: 1,
        attempt: 1,
        token: format!("{index:064}"),
        spec: Some(digest(0)),
        request: request.to_vec(),
        id: IntentId::default(),
        apply_id: None,
        opened_at: Timestamp(0),
    }
}

/// The copy that is made before records change; on disk when it returns.
#[divan::bench(args = [1_000, 10_000, 100_000], sample_count = 10)]
fn back_up(bencher: Bencher<'_, '_>, count: u32) {
    let (folder, store) = filled(count, true, Sealed);
    let backups = folder.path().join("prod.backups");
    bencher.bench_local(|| {
        // A copy of the same serial is made once.
        let _ = std::fs::remove_dir_all(&backups);
        nstance_state::backups::add(&store, &backups, 10).unwrap()
    });
}
