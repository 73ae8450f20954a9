//! The suite on a real server, one database for each test.
//!
//! `NSTANCE_TEST_POSTGRES` names a server whose user may create databases:
//! `postgresql:///postgres?host=FOLDER`. `cargo xtask test --all` starts one.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use nstance_state::{Backend, Key, Keys, NewKey, PostgresServer};

use super::{Bunch, Subject};

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
