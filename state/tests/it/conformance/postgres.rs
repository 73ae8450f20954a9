//! The suite on a real server, one database for each test.
//!
//! `NSTANCE_TEST_POSTGRES` names a server whose user may create databases:
//! `postgresql:///postgres?host=FOLDER`. `cargo xtask test --all` starts one.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use std::sync::atomic::AtomicBool;
use std::thread;

use nstance_state::{Backend, Identity, Key, Keys, NewKey, PostgresServer, StateError, Timestamp};

use super::{Bunch, Subject, created, everything, locked, opened, put, seen, spec};
use crate::common::{identity, record};
use crate::lock::info;

/// The server of the tests.
pub(crate) fn server() -> Option<String> {
    let server = std::env::var("NSTANCE_TEST_POSTGRES").ok();
    if server.is_none() {
        assert!(
            std::env::var("CI").is_err(),
            "NSTANCE_TEST_POSTGRES names no server: cargo xtask test --all starts one"
        );
    }
    server
}

/// Runs statements on a database.
pub(crate) fn psql(url: &str, statements: &str) -> String {
    let ran = Command::new("psql")
        .args([url, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
        .args(["--set=ON_ERROR_STOP=1", "--command", statements])
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// The URL of a new database.
pub(crate) fn database(server: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::SeqCst);
    let name = format!("t{}_{count}", std::process::id());
    psql(server, &format!("CREATE DATABASE {name}"));
    server.replacen("/postgres?", &format!("/{name}?"), 1)
}

/// A database with the tables, and one state or none.
pub(super) struct Server {
    url: String,
    backend: PostgresServer,
    key: Option<Key>,
    keys: Arc<Bunch>,
}

impl Server {
    pub(super) fn new(key: Option<Key>) -> Option<Self> {
        let url = database(&server()?);
        let keys = Arc::new(Bunch(Mutex::new(key.iter().cloned().collect())));
        let new = Self::at(url, key, keys);
        new.backend.prepare().unwrap();
        Some(new)
    }

    fn at(url: String, key: Option<Key>, keys: Arc<Bunch>) -> Self {
        let none = |_: &str| None;
        let opener = Some(Arc::clone(&keys) as Arc<dyn Keys>);
        let backend = PostgresServer::new(&url, "prod", "us-west-2a", &none, opener).unwrap();
        Self {
            url,
            backend,
            key,
            keys,
        }
    }
}

impl Subject for Server {
    fn backend(&self) -> &dyn Backend {
        &self.backend
    }

    fn key(&self) -> Option<NewKey> {
        self.key.clone().map(Into::into)
    }

    fn learn(&self, key: &Key) {
        self.keys.0.lock().unwrap().push(key.clone());
    }

    fn another(&self) -> Box<dyn Subject> {
        let url = database(&server().unwrap());
        let other = Self::at(url, self.key.clone(), Arc::clone(&self.keys));
        other.backend.prepare().unwrap();
        Box::new(other)
    }

    // What another process sees is what the server has.
    fn crashed(&self) -> Box<dyn Subject> {
        let (key, keys) = (self.key.clone(), Arc::clone(&self.keys));
        Box::new(Self::at(self.url.clone(), key, keys))
    }

    fn lose_lock(&self) {
        psql(
            &self.url,
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        );
    }
}

#[test]
fn tables_are_made_and_upgraded_only_when_asked() {
    let Some(server) = server() else { return };
    let url = database(&server);
    let subject = Server::at(url.clone(), None, Arc::default());
    let backend = subject.backend();
    let look = || backend.open_to_read(None).map(drop).unwrap_err();
    let lock = || backend.lock(info("a"), std::time::Duration::ZERO, &mut |_| {});
    assert!(matches!(look(), StateError::NoTables { .. }));
    assert!(matches!(lock().err(), Some(StateError::NoTables { .. })));
    let prepared = backend.prepare().unwrap().unwrap();
    assert_eq!((prepared.before, prepared.now), (0, 1));
    assert!(matches!(look(), StateError::NotFound { .. }));
    let again = backend.prepare().unwrap().unwrap();
    assert_eq!((again.before, again.now), (1, 1));
    psql(&url, "UPDATE nstance.schema SET version = 0");
    assert!(matches!(look(), StateError::Outdated { found: 0, .. }));
    psql(&url, "UPDATE nstance.schema SET version = 99");
    assert!(matches!(look(), StateError::Newer { found: 99, .. }));
    let refused = backend.prepare().unwrap_err();
    assert!(matches!(refused, StateError::Newer { .. }), "{refused}");
}

#[test]
fn shards_side_by_side_see_only_their_own() {
    let Some(subject) = Server::new(None) else {
        return;
    };
    let none = |_: &str| None;
    thread::scope(|scope| {
        for number in 0..20 {
            let url = &subject.url;
            scope.spawn(move || {
                let shard = format!("s{number}");
                let identity = Identity {
                    shard: shard.clone(),
                    ..identity()
                };
                let backend = PostgresServer::new(url, "prod", &shard, &none, None).unwrap();
                let lock = backend.lock(info("a"), std::time::Duration::ZERO, &mut |_| {});
                let _lock = lock.unwrap();
                let mut store = backend
                    .create(&identity, "lineage", Timestamp(1), None)
                    .unwrap();
                for slot in 0..=number {
                    let batch = vec![spec(1), put(record("default/web", slot))];
                    store.commit(Timestamp(2), batch).unwrap();
                }
                let snapshot = store.snapshot().unwrap();
                assert_eq!(snapshot.records.len(), number as usize + 1);
                assert_eq!(snapshot.meta.serial, u64::from(number) + 1);
                assert_eq!(store.check().unwrap(), []);
            });
        }
    });
    let count = psql(&subject.url, "SELECT count(*) FROM nstance.instances");
    assert_eq!(count, "210");
}

#[test]
fn a_commit_whose_connection_is_cut_took_place_or_not() {
    let Some(subject) = Server::new(None) else {
        return;
    };
    drop(created(&subject));
    let held = locked(&subject, info("first")).unwrap();
    let mut store = opened(&subject);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                subject.lose_lock();
            }
        });
        let mut kept = 0;
        for slot in 0..60 {
            let batch = vec![spec(1), put(record("default/web", slot))];
            let done = store.commit(Timestamp(2), batch);
            let reader = Server::at(subject.url.clone(), None, Arc::default());
            let live = opened(&reader).snapshot().unwrap();
            let is_there = live.live("default/web", slot).is_some();
            assert_eq!(done.is_ok(), is_there, "{slot}: {done:?}");
            kept += usize::from(is_there);
        }
        over.store(true, Ordering::SeqCst);
        assert!(kept > 0);
    });
    // It ends with the latest session.
    drop(held);
    assert_eq!(subject.backend().holder().unwrap(), None);
}

#[test]
fn a_copy_in_a_file_has_everything_and_comes_back() {
    for key in [None, Some(Key::generate().unwrap())] {
        let Some(subject) = Server::new(key) else {
            return;
        };
        let mut store = created(&subject);
        store.commit(Timestamp(2), everything()).unwrap();
        let before = seen(&*store);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("copy.db");
        store.backup(&file).unwrap();
        let refused = store.backup(&file).unwrap_err();
        assert!(matches!(refused, StateError::Exists { .. }), "{refused}");
        let keys = Arc::clone(&subject.keys) as Arc<dyn Keys>;
        let copy = nstance_state::SqliteFile::new(file.clone(), Some(keys));
        assert_eq!(
            seen(&*copy.open_to_read(Some(&identity())).unwrap()),
            before
        );
        let refused = subject.backend().receive(&file).unwrap_err();
        assert!(matches!(refused, StateError::Exists { .. }), "{refused}");
        let other = subject.another();
        other.backend().receive(&file).unwrap();
        let mut back = opened(&*other);
        assert_eq!(seen(&*back), before);
        // Numbers go on where they were.
        let again = back.commit(Timestamp(3), vec![super::started()]).unwrap();
        assert_eq!(again.apply.map(|id| id.0), Some(2));
        assert_eq!(back.check().unwrap(), []);
        // A state that was moved away is only read, and is replaced when it comes back.
        let to = "sqlite:elsewhere.db".to_owned();
        let moved = nstance_state::Write::MarkMoved { to };
        store.commit(Timestamp(4), vec![moved]).unwrap();
        let refused = store.commit(Timestamp(5), vec![spec(5)]).unwrap_err();
        assert!(matches!(refused, StateError::Moved { .. }), "{refused}");
        assert_eq!(seen(&*store), before);
        subject.backend().receive(&file).unwrap();
        opened(&subject)
            .commit(Timestamp(6), vec![spec(5)])
            .unwrap();
    }
}
