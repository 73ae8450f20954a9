//! The `PostgreSQL` engine: the states of many clusters and shards on one server.
//!
//! In: a URL, a cluster and a shard. Out: an open state, its lock, and the tables. Must not: make or
//! upgrade tables unless asked to; show a password.
//!
//! Whoever holds the lock commits on the session that holds it, so what ends the lock ends the
//! writing. A commit locks the row of its state first, and compares the fencing token. If its answer
//! is lost, the row says whether it took place.

mod lock;
mod session;
mod settings;
mod verify;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::check::Check;
use crate::error::{Result, StateError};
use crate::files;
use crate::keys::Keys;
use crate::model::{Identity, LockInfo, Timestamp};
use crate::seal::{NewKey, RandomError};
use crate::sql::{self, Sql, params};
use crate::sql_store::{self, Engine, SqlStore};
use crate::sqlite::{self, SqliteStore};
use crate::store::{Backend, Held, Prepared, Store};
use session::{SCHEMA, Session};
use settings::Settings;
pub(crate) use settings::reason;

pub use settings::Environment;

/// The migrations of the tables, oldest first: each to the next version, which it stores. A released
/// one never changes.
const MIGRATIONS: [&str; SCHEMA as usize] = [include_str!("schema_v1.sql")];

/// How often a lock is asked for.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long a lost session is replaced for, so that a server may start again meanwhile.
const REVIVAL: Duration = Duration::from_secs(15);

/// An open state on a server.
pub type PostgresStore = SqlStore<Postgres>;

/// The place of one state on a server.
pub struct PostgresServer {
    shared: Arc<Shared>,
    keys: Option<Arc<dyn Keys>>,
}

struct Shared {
    settings: Settings,
    cluster: String,
    shard: String,
    /// The state, for messages.
    place: PathBuf,
    lock: i64,
    /// The lock that this process holds.
    writer: Mutex<Option<Writer>>,
}

/// The session that holds a lock, and who holds it.
#[derive(Clone)]
struct Writer {
    session: Arc<Mutex<Session>>,
    info: LockInfo,
}

impl PostgresServer {
    /// The place of a state, whose encrypted content is opened with `keys`. Nothing is asked yet.
    ///
    /// Fails with [`StateError::InvalidUrl`].
    pub fn new(
        url: &str,
        cluster: &str,
        shard: &str,
        environment: Environment<'_>,
        keys: Option<Arc<dyn Keys>>,
    ) -> Result<Self> {
        let settings = Settings::read(url, environment)?;
        let place = format!("{}, state {cluster}/{shard}", settings.shown);
        let shared = Arc::new(Shared {
            settings,
            cluster: cluster.to_owned(),
            shard: shard.to_owned(),
            place: PathBuf::from(place),
            lock: lock::key(cluster, shard),
            writer: Mutex::default(),
        });
        Ok(Self { shared, keys })
    }

    fn with_keys(&self, store: PostgresStore) -> Box<dyn Store> {
        Box::new(match &self.keys {
            None => store,
            Some(keys) => store.with_keys(Arc::clone(keys)),
        })
    }

    fn engine(&self, expected: Option<&Identity>, writes: bool) -> Result<Postgres> {
        let shared = Arc::clone(&self.shared);
        let session = shared.session()?;
        let found = (&*held(&session) as &dyn Sql)
            .row(
                "SELECT state, provider FROM nstance.states WHERE cluster = ?1 AND shard = ?2",
                params![shared.cluster, shared.shard],
                |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?)),
            )
            .map_err(|error| shared.failed(error))?;
        let path = shared.place.clone();
        let Some((state, provider)) = found else {
            return Err(StateError::NotFound { path });
        };
        let found = Identity {
            cluster: shared.cluster.clone(),
            shard: shared.shard.clone(),
            provider,
        };
        if let Some(expected) = expected.filter(|expected| **expected != found) {
            return Err(StateError::Foreign {
                path,
                expected: Box::new(expected.clone()),
                found: Box::new(found),
            });
        }
        Ok(Postgres {
            shared,
            session,
            state,
            writes,
        })
    }
}

impl Backend for PostgresServer {
    fn place(&self) -> PathBuf {
        self.shared.place.clone()
    }

    fn url(&self) -> String {
        self.shared.settings.shown.clone()
    }

    fn prepare(&self) -> Result<Option<Prepared>> {
        let shared = &self.shared;
        let session = shared.connect()?;
        let run = || -> sql::Result<u32> {
            session.batch("BEGIN; SELECT pg_advisory_xact_lock(hashtext('nstance.schema'))")?;
            let before = version(&session)?.unwrap_or(0);
            for migration in MIGRATIONS.iter().skip(before as usize) {
                session.batch(migration)?;
            }
            session.batch("COMMIT")?;
            Ok(before)
        };
        let before = run().map_err(|error| {
            session.roll_back();
            shared.failed(error)
        })?;
        if before > SCHEMA {
            return Err(StateError::Newer {
                path: shared.place.clone(),
                found: before,
                supported: SCHEMA,
            });
        }
        Ok(Some(Prepared {
            before,
            now: SCHEMA,
        }))
    }

    fn create(
        &self,
        identity: &Identity,
        lineage: &str,
        now: Timestamp,
        key: Option<&NewKey>,
    ) -> Result<Box<dyn Store>> {
        let key_id = key.map(|key| key.key.id().0);
        let derivation = key.and_then(|key| key.derivation.as_ref().map(ToString::to_string));
        self.shared.create(identity, lineage, |sql| {
            sql.execute(
                "UPDATE meta SET created_at = ?1, key_id = ?2, derivation = ?3",
                params![now.0, key_id, derivation],
            )
            .map(drop)
        })?;
        self.open_to_write(Some(identity))
    }

    fn open_to_write(&self, expected: Option<&Identity>) -> Result<Box<dyn Store>> {
        let store = SqlStore::of_writer(self.engine(expected, true)?)?;
        Ok(self.with_keys(store))
    }

    fn open_to_read(&self, expected: Option<&Identity>) -> Result<Box<dyn Store>> {
        let store = SqlStore::of_reader(self.engine(expected, false)?);
        Ok(self.with_keys(store))
    }

    fn receive(&self, copy: &Path) -> Result<()> {
        let source = SqliteStore::open_read_only(copy, None)?;
        let meta = source.meta()?;
        let mut result = Ok(());
        source.engine.read(&mut |from| {
            result = self.shared.create(&meta.identity, &meta.lineage, |to| {
                crate::copy::copy(from, to)
            });
            Ok(())
        })?;
        result
    }

    fn lock(
        &self,
        info: LockInfo,
        timeout: Duration,
        on_wait: &mut dyn FnMut(&LockInfo),
    ) -> Result<Box<dyn Held>> {
        let shared = &self.shared;
        let session = shared.connect()?;
        shared.refuse_pooler(&session)?;
        let failed = |error| shared.failed(error);
        let started = Instant::now();
        let mut reported = None;
        while !lock::try_take(&session, shared.lock).map_err(failed)? {
            let (_, holder) = lock::look(&session, shared.lock).map_err(failed)?;
            if started.elapsed() >= timeout {
                let holder = Box::new(holder.unwrap_or_else(lock::unsigned));
                return Err(StateError::Locked { holder });
            }
            if holder.is_some() && holder != reported {
                reported = holder;
                reported.iter().for_each(&mut *on_wait);
            }
            thread::sleep(INTERVAL.min(timeout));
        }
        lock::sign(&session, shared.lock, &info).map_err(failed)?;
        let session = Arc::new(Mutex::new(session));
        *shared.writer() = Some(Writer {
            session: Arc::clone(&session),
            info: info.clone(),
        });
        Ok(Box::new(PostgresLock {
            shared: Arc::clone(shared),
            session,
            info,
        }))
    }

    fn holder(&self) -> Result<Option<LockInfo>> {
        self.shared.holder()
    }

    fn remains(&self) -> Result<Option<LockInfo>> {
        let (is_held, info) = self.shared.look()?;
        Ok(info.filter(|_| !is_held))
    }

    fn break_stale(&self, id: &str) -> Result<LockInfo> {
        let shared = &self.shared;
        let (is_held, info) = shared.look()?;
        match info {
            info if is_held => Err(StateError::Locked {
                holder: Box::new(info.unwrap_or_else(lock::unsigned)),
            }),
            None => Err(StateError::NotLocked {
                path: shared.place.clone(),
            }),
            Some(holder) if holder.id != id => Err(StateError::WrongLock {
                asked: id.to_owned(),
                holder: Box::new(holder),
            }),
            Some(holder) => {
                let session = shared.session()?;
                let removed = lock::unsign(&held(&session), shared.lock, &holder);
                removed.map_err(|error| shared.failed(error))?;
                Ok(holder)
            }
        }
    }
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PostgresServer({})", self.shared.place.display())
    }
}

/// A session whose panic, if there was one, left no transaction that anybody goes on with.
fn held(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The version of the tables; `None` if there are none.
fn version(session: &Session) -> sql::Result<Option<u32>> {
    let session: &dyn Sql = session;
    let there = "SELECT to_regclass('nstance.schema') IS NOT NULL";
    if !session.one(there, &[], |row| row.get::<bool>(0))? {
        return Ok(None);
    }
    session.row("SELECT version FROM nstance.schema", &[], |row| row.get(0))
}

impl Shared {
    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of the lock, if this process holds it; else a new one.
    ///
    /// Fails if the server can't be reached, or if its tables are of another version.
    fn session(&self) -> Result<Arc<Mutex<Session>>> {
        if let Some(writer) = &*self.writer() {
            return Ok(Arc::clone(&writer.session));
        }
        let session = self.connect()?;
        self.vet(&session)?;
        Ok(Arc::new(Mutex::new(session)))
    }

    /// A new session.
    ///
    /// Fails if the server can't be reached.
    fn connect(&self) -> Result<Session> {
        let client = self.settings.connect();
        let unreachable = |why| StateError::Unreachable {
            path: self.place.clone(),
            why,
        };
        client.map(Session::new).map_err(unreachable)
    }

    /// Fails if the tables are missing, or of another version.
    fn vet(&self, session: &Session) -> Result<()> {
        let found = version(session).map_err(|error| self.failed(error))?;
        let path = self.place.clone();
        match found {
            None => Err(StateError::NoTables { path }),
            Some(found) if found > SCHEMA => Err(StateError::Newer {
                path,
                found,
                supported: SCHEMA,
            }),
            Some(found) if found < SCHEMA => Err(StateError::Outdated {
                path,
                found,
                supported: SCHEMA,
            }),
            Some(_) => Ok(()),
        }
    }

    /// Fails if a pooler gives this session's connection to others between transactions: then no
    /// lock would hold.
    fn refuse_pooler(&self, session: &Session) -> Result<()> {
        self.vet(session)?;
        let other = self.connect()?;
        let who = |session: &Session| -> sql::Result<i64> {
            let session: &dyn Sql = session;
            session.one("SELECT pg_backend_pid()", &[], |row| row.get(0))
        };
        let look = || -> sql::Result<bool> {
            let before = who(session)?;
            other.batch("BEGIN")?;
            let others = who(&other)?;
            let now = who(session)?;
            other.batch("ROLLBACK")?;
            Ok(before != now || before == others)
        };
        if look().map_err(|error| self.failed(error))? {
            return Err(StateError::Pooled {
                path: self.place.clone(),
            });
        }
        Ok(())
    }

    /// Creates the state with its content, at once. Replaces a state that was moved away.
    ///
    /// Fails if it exists, or if the server or `fill` refuses.
    fn create(
        &self,
        identity: &Identity,
        lineage: &str,
        fill: impl FnOnce(&dyn Sql) -> sql::Result<()>,
    ) -> Result<()> {
        let session = self.session()?;
        let session = held(&session);
        let run = || -> sql::Result<bool> {
            session.begin("READ WRITE", 0)?;
            session.execute(
                "DELETE FROM nstance.states
                 WHERE cluster = ?1 AND shard = ?2 AND moved_to IS NOT NULL",
                params![self.cluster, self.shard],
            )?;
            let made = (&*session as &dyn Sql).row(
                "INSERT INTO nstance.states (cluster, shard, provider, lineage, serial, created_at)
                 VALUES (?1, ?2, ?3, ?4, 0, 0) ON CONFLICT DO NOTHING RETURNING state",
                params![self.cluster, self.shard, identity.provider, lineage],
                |row| row.get::<i64>(0),
            )?;
            let Some(state) = made else {
                return Ok(false);
            };
            session.batch(&format!("SET LOCAL nstance.state = '{state}'"))?;
            fill(&*session)?;
            session.store_ids()?;
            session.batch("COMMIT")?;
            Ok(true)
        };
        let created = run();
        if !matches!(created, Ok(true)) {
            session.roll_back();
        }
        match created {
            Ok(true) => Ok(()),
            Ok(false) => Err(StateError::Exists {
                path: self.place.clone(),
            }),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Whether a session holds the lock, and who the latest holder was.
    ///
    /// Fails if the server can't be asked.
    fn look(&self) -> Result<(bool, Option<LockInfo>)> {
        let session = self.session()?;
        let looked = lock::look(&held(&session), self.lock);
        looked.map_err(|error| self.failed(error))
    }

    fn holder(&self) -> Result<Option<LockInfo>> {
        let (is_held, info) = self.look()?;
        Ok(is_held.then(|| info.unwrap_or_else(lock::unsigned)))
    }

    fn failed(&self, error: sql::Error) -> StateError {
        StateError::sql(&self.place, error)
    }
}

/// A held lock of a state. It ends when it is dropped, and with its session.
struct PostgresLock {
    shared: Arc<Shared>,
    session: Arc<Mutex<Session>>,
    info: LockInfo,
}

impl Held for PostgresLock {
    fn info(&self) -> &LockInfo {
        &self.info
    }
}

impl Drop for PostgresLock {
    fn drop(&mut self) {
        let mut writer = self.shared.writer();
        writer.take_if(|writer| Arc::ptr_eq(&writer.session, &self.session));
        drop(writer);
        let session = held(&self.session);
        // If this fails, the session is over, and the lock with it.
        let _ = lock::unsign(&session, self.shared.lock, &self.info);
        let _ = session.batch("SELECT pg_advisory_unlock_all()");
    }
}

/// An open state on a server.
pub struct Postgres {
    shared: Arc<Shared>,
    session: Arc<Mutex<Session>>,
    state: i64,
    writes: bool,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Postgres({})", self.shared.place.display())
    }
}

impl Postgres {
    /// Begins to write: locks the row of the state first, so that commits follow each other.
    ///
    /// Fails if the server refuses.
    fn begin(&self, session: &Session) -> sql::Result<()> {
        session.begin("ISOLATION LEVEL READ COMMITTED READ WRITE", self.state)?;
        session.batch("SELECT 1 FROM meta FOR UPDATE")
    }

    /// Who holds the lock with this session, if it does.
    fn writer(&self) -> Option<LockInfo> {
        let writer = self.shared.writer();
        let own = |writer: &&Writer| Arc::ptr_eq(&writer.session, &self.session);
        writer
            .as_ref()
            .filter(own)
            .map(|writer| writer.info.clone())
    }

    /// Replaces a session that was lost, with its lock if it had that. Returns the latest commit
    /// under a lock.
    ///
    /// Fails with [`StateError::Lost`] if the server stays away, and with [`StateError::Fenced`] if
    /// another has the lock.
    fn revive(&self, session: &mut Session, why: &StateError) -> Result<Option<String>> {
        let shared = &self.shared;
        let own = self.writer();
        let started = Instant::now();
        let revived = loop {
            if let Ok(session) = shared.connect() {
                let Some(own) = &own else { break session };
                if lock::try_take(&session, shared.lock).unwrap_or(false) {
                    break session;
                }
                // The server may take the lost session for alive; another holder has signed.
                let looked = lock::look(&session, shared.lock);
                if let Ok((true, Some(holder))) = looked
                    && holder != *own
                {
                    return Err(StateError::Fenced {
                        path: shared.place.clone(),
                    });
                }
            }
            if started.elapsed() >= REVIVAL {
                let why = match why {
                    StateError::Lost { why, .. } => why.clone(),
                    why => why.to_string(),
                };
                return Err(StateError::Lost {
                    path: shared.place.clone(),
                    why,
                });
            }
            thread::sleep(INTERVAL);
        };
        let of = "SELECT commit_id FROM nstance.states WHERE state = ?1";
        let latest = (&revived as &dyn Sql)
            .one(of, params![self.state], |row| row.get(0))
            .map_err(|error| shared.failed(error))?;
        *session = revived;
        Ok(latest)
    }
}

impl Engine for Postgres {
    fn place(&self) -> &Path {
        &self.shared.place
    }

    fn holder(&self) -> Result<Option<LockInfo>> {
        self.shared.holder()
    }

    fn read(&self, read: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()> {
        let session = held(&self.session);
        let failed = |error| self.shared.failed(error);
        session
            .begin("ISOLATION LEVEL REPEATABLE READ READ ONLY", self.state)
            .map_err(failed)?;
        let done = read(&*session);
        session.roll_back();
        done
    }

    fn write(&mut self, change: &mut dyn FnMut(&dyn Sql) -> Result<()>) -> Result<()> {
        if !self.writes {
            return Err(StateError::ReadOnly {
                path: self.shared.place.clone(),
            });
        }
        let shared_session = Arc::clone(&self.session);
        let mut session = held(&shared_session);
        if let Err(error) = self.begin(&session) {
            let error = self.shared.failed(error);
            session.roll_back();
            if !session.is_over() {
                return Err(error);
            }
            // Nothing of this commit was sent yet, so it can be sent on another session. Whoever
            // took the lock meanwhile has raised the fencing token.
            self.revive(&mut session, &error)?;
            self.begin(&session)
                .map_err(|error| self.shared.failed(error))?;
        }
        if let Err(error) = change(&*session) {
            session.roll_back();
            return Err(error);
        }
        let id = commit_id()?;
        let commit = || -> sql::Result<()> {
            session.store_ids()?;
            if self.writer().is_some() {
                session.execute("UPDATE meta SET commit_id = ?1", params![id])?;
            }
            session.batch("COMMIT")
        };
        if let Err(error) = commit() {
            let error = self.shared.failed(error);
            session.roll_back();
            if !session.is_over() {
                return Err(error);
            }
            // The answer is lost; the row knows whether the commit took place.
            if self.revive(&mut session, &error)? != Some(id) {
                return Err(error);
            }
        }
        Ok(())
    }

    fn damage(&self) -> &'static [Check] {
        &[]
    }

    fn backup(&self, to: &Path) -> Result<()> {
        let mut result = Ok(());
        self.read(&mut |from| {
            let meta = sql_store::meta(from).map_err(|error| self.shared.failed(error))?;
            files::create_parents(to)?;
            result = sqlite::copy_to_file(from, to, &meta.identity, &meta.lineage);
            Ok(())
        })?;
        result
    }

    fn set_busy_timeout(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }
}

/// A name for a commit.
///
/// Fails if the system supplies no random bytes.
fn commit_id() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StateError::Random(RandomError::from(error)))?;
    Ok(u128::from_le_bytes(bytes).to_string())
}
