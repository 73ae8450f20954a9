//! What can't be brought about from outside: a full disk, reading without a lock.

use super::*;
use crate::model::SpecDigest;

fn create(folder: &Path) -> SqliteStore {
    let identity = Identity {
        cluster: "prod".into(),
        shard: "a".into(),
        provider: "aws".into(),
    };
    SqliteStore::create(&folder.join("prod.db"), &identity, "lineage", Timestamp(1)).unwrap()
}

fn put(store: &mut SqliteStore, seed: u8, length: usize) -> Result<()> {
    // Bytes that can't be compressed to nothing.
    let mut value = u32::from(seed);
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (value >> 24) as u8
    })
    .take(length)
    .collect();
    store.transaction(Timestamp(2), |transaction| {
        transaction.put_spec(SpecDigest([seed; 32]), &bytes)
    })
}

#[test]
fn a_full_disk_keeps_nothing_of_the_transaction_and_spoils_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = create(folder.path());
    put(&mut store, 1, 1000).unwrap();
    // As full as a disk can be made without filling one.
    let limit = |store: &SqliteStore, pages: u32| {
        store
            .engine
            .opened
            .connection
            .pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, u32>(0))
            .unwrap()
    };
    limit(&store, 40);
    assert!(matches!(
        put(&mut store, 2, 1_000_000),
        Err(StateError::Full { .. })
    ));
    let digests = || [1, 2, 3].into_iter().map(|seed| SpecDigest([seed; 32]));
    assert_eq!(store.specs(digests()).unwrap().len(), 1);
    assert_eq!(store.check().unwrap(), []);
    put(&mut store, 3, 10_000).unwrap();
    assert_eq!(store.specs(digests()).unwrap().len(), 2);
    limit(&store, 10_000);
    put(&mut store, 2, 1_000_000).unwrap();
    let specs = store.specs(digests()).unwrap();
    assert_eq!(specs[&SpecDigest([2; 32])].len(), 1_000_000);
}

#[test]
fn what_was_read_without_a_lock_counts_only_if_nobody_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prod.db");
    let unlocked = |before| {
        let opened = Opened {
            connection: open::unlocked(&path).unwrap(),
            access: Access::Unlocked(before),
        };
        SqliteStore::of_reader(Sqlite {
            opened,
            path: path.clone(),
        })
    };
    drop(create(folder.path()));
    let reader = unlocked(Fingerprint::of(&path).unwrap());
    assert_eq!(reader.meta().unwrap().serial, 0);
    assert_eq!(reader.snapshot().unwrap().records, []);

    let mut writer = SqliteStore::open(&path, None).unwrap();
    put(&mut writer, 1, 10).unwrap();
    assert!(matches!(reader.meta(), Err(StateError::Changed { .. })));
    drop(writer);
    assert!(matches!(reader.snapshot(), Err(StateError::Changed { .. })));
    assert!(matches!(
        reader.backup(&folder.path().join("copy.db")),
        Err(StateError::Changed { .. })
    ));
    drop(reader);
    let reader = unlocked(Fingerprint::of(&path).unwrap());
    assert_eq!(
        reader
            .specs([SpecDigest([1; 32])].into_iter())
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn every_commit_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let store = create(folder.path());
    let pragma = |name| {
        store
            .engine
            .opened
            .connection
            .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(pragma("synchronous"), 2);
    assert_eq!(pragma("foreign_keys"), 1);
}
