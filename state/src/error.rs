//! The error type of this crate.
//!
//! In: errors of `SQLite` and of files. Out: [`StateError`], whose messages are lower-case
//! fragments that fit after "failed to …: ", and whose [`StateError::hint`] is a fix. Must not:
//! print, or mention database internals, except in [`StateError::Sqlite`].

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

use crate::model::{Identity, LockInfo, SpecDigest};
use crate::paths::backups_of;
use crate::seal::{KeyId, RandomError};
use crate::sql;

/// The result of state operations.
pub type Result<T, E = StateError> = std::result::Result<T, E>;

/// Why a state operation failed.
#[derive(Debug, Error)]
pub enum StateError {
    /// There is no file at the path.
    #[error("there is no state at {}", path.display())]
    NotFound {
        /// The path of the state.
        path: PathBuf,
    },

    /// A file or a state that must be new exists.
    #[error("{} exists already", path.display())]
    Exists {
        /// What exists, unchanged.
        path: PathBuf,
    },

    /// The file is not a state: not `SQLite`, another program's, empty, or not a regular file.
    #[error("{why}, so it is not a state: {}", path.display())]
    NotAState {
        /// The file, unchanged.
        path: PathBuf,
        /// What it is, such as "the file is empty".
        why: String,
    },

    /// The file is a state, but damaged.
    #[error("the state is damaged ({detail}): {}", path.display())]
    Corrupt {
        /// The damaged file.
        path: PathBuf,
        /// The damage.
        detail: String,
    },

    /// A newer version of this crate wrote the file.
    #[error(
        "the state has schema version {found}, and this version knows up to {supported}: {}",
        path.display()
    )]
    Newer {
        /// The file, unchanged.
        path: PathBuf,
        /// The schema version of the file.
        found: u32,
        /// The newest schema version that this version supports.
        supported: u32,
    },

    /// The state belongs to another cluster, shard or provider.
    #[error("the state belongs to {found}, not to {expected}: {}", path.display())]
    Foreign {
        /// The file, unchanged.
        path: PathBuf,
        /// The expected identity.
        expected: Box<Identity>,
        /// The state's identity.
        found: Box<Identity>,
    },

    /// The state is encrypted and the key is missing.
    #[error("the state is sealed with the key {needed}, and {reason}: {}", path.display())]
    NoKey {
        /// The state, unchanged.
        path: PathBuf,
        /// The required key.
        needed: KeyId,
        /// Why the key is missing.
        reason: KeyError,
    },

    /// Another writer started since: this one's lock was lost or broken.
    #[error("another process has taken over as the writer of the state: {}", path.display())]
    Fenced {
        /// The state; the transaction was rolled back.
        path: PathBuf,
    },

    /// The system supplies no random bytes, so nothing can be encrypted.
    #[error("nothing can be sealed: {0}")]
    Random(RandomError),

    /// A living process holds the lock.
    #[error("the state is locked by {holder}")]
    Locked {
        /// The holder.
        holder: Box<LockInfo>,
    },

    /// The file system doesn't support locks.
    #[error("the file system refuses to lock a file ({source}): {}", path.display())]
    NoLocks {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },

    /// There is no lock to break.
    #[error("the state is not locked: {}", path.display())]
    NotLocked {
        /// The state.
        path: PathBuf,
    },

    /// The lock to break has another id.
    #[error("the lock's id is not \"{asked}\": the state was locked by {holder}")]
    WrongLock {
        /// The given id.
        asked: String,
        /// The actual lock.
        holder: Box<LockInfo>,
    },

    /// The state, its folder or its file system is read-only.
    #[error("the state folder is not writable: {}", path.display())]
    ReadOnly {
        /// The state.
        path: PathBuf,
    },

    /// The disk is full; the transaction was rolled back.
    #[error("the disk is full, so nothing was written to {}", path.display())]
    Full {
        /// The state.
        path: PathBuf,
    },

    /// Another process wrote for longer than the busy timeout.
    #[error("another process is writing to the state: {}", path.display())]
    Busy {
        /// The state.
        path: PathBuf,
    },

    /// The state was changed while it was read, so the result is invalid. Only occurs in read-only
    /// folders, where read locks are impossible.
    #[error("the state was changed while it was being read: {}", path.display())]
    Changed {
        /// The state.
        path: PathBuf,
    },

    /// The slot already has a live record.
    #[error("{address} is occupied by {instance_id}")]
    Occupied {
        /// The address of the slot, `tenant/group/slot`.
        address: String,
        /// The instance in the slot.
        instance_id: String,
    },

    /// Another record already has this provider id.
    #[error("{provider_id} is recorded already, as {address}")]
    Claimed {
        /// The provider id.
        provider_id: String,
        /// The slot of the other record.
        address: String,
    },

    /// An intent for the address is still open.
    #[error("an operation on {address} has not been settled yet")]
    Unsettled {
        /// The address of the slot, `tenant/group/slot`.
        address: String,
    },

    /// No live record has the address.
    #[error("nothing is recorded as {address}")]
    NoRecord {
        /// The address of the slot, `tenant/group/slot`.
        address: String,
    },

    /// A record or intent refers to a missing spec.
    #[error("the spec {digest} is not in the state")]
    MissingSpec {
        /// The spec's digest.
        digest: SpecDigest,
    },

    /// No open intent, running apply or stored rollout has this id.
    #[error("there is no open {what} {id} in the state")]
    NotOpen {
        /// "intent", "apply" or "rollout".
        what: &'static str,
        /// The id.
        id: i64,
    },

    /// A file could not be read or written.
    #[error("can't access {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },

    /// A URL of a state is invalid, or names files that can't be read.
    #[error("the URL of the state can't be used: {why}")]
    InvalidUrl {
        /// What is wrong, without a password.
        why: String,
    },

    /// The server can't be reached, or doesn't let this user in.
    #[error("the server of the state can't be used ({why}): {}", path.display())]
    Unreachable {
        /// The state.
        path: PathBuf,
        /// What happened.
        why: String,
    },

    /// The connection to the server was lost. What was being committed may be lost, too.
    #[error("the server of the state was lost ({why}): {}", path.display())]
    Lost {
        /// The state.
        path: PathBuf,
        /// What happened.
        why: String,
    },

    /// The server refused a statement.
    #[error("the server of the state refused ({why}): {}", path.display())]
    Server {
        /// The state.
        path: PathBuf,
        /// What it said, with its code.
        why: String,
    },

    /// The database has no tables for states.
    #[error("the database has no tables for states: {}", path.display())]
    NoTables {
        /// The state.
        path: PathBuf,
    },

    /// The tables are older than this version's.
    #[error(
        "the tables of the state have version {found}, and this version needs {supported}: {}",
        path.display()
    )]
    Outdated {
        /// The state.
        path: PathBuf,
        /// Their version.
        found: u32,
        /// The version that is needed.
        supported: u32,
    },

    /// A pooler lends out sessions for one transaction each, so that no lock would hold.
    #[error("a pooler gives each transaction another session, so that no lock holds: {}", path.display())]
    Pooled {
        /// The state.
        path: PathBuf,
    },

    /// The state was moved, and is only read here.
    #[error("the state was moved to {to}, and can't be changed here: {}", path.display())]
    Moved {
        /// The state.
        path: PathBuf,
        /// Where it is now.
        to: String,
    },

    /// The database failed for another reason.
    #[error("the database refused ({source}): {}", path.display())]
    Sqlite {
        /// The state.
        path: PathBuf,
        /// The error of `SQLite`.
        source: rusqlite::Error,
    },
}

/// Why a key is missing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct KeyError {
    /// The reason, as a lower-case fragment.
    pub why: String,
    /// How to fix it, as a sentence without a full stop.
    pub hint: Option<String>,
}

impl StateError {
    /// How to fix it, as a sentence without a full stop; `None` if there is no general advice.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotFound { .. } => "Check the path, or apply once to create the state".to_owned(),
            Self::Exists { .. } => "Choose another path, or move the file away".to_owned(),
            Self::NotAState { .. } => "Check the path: the file was left as it is".to_owned(),
            Self::Corrupt { path, .. } => format!(
                "Keep a copy of the file, then restore a backup: look for {:?} beside it",
                file_name(&backups_of(path))
            ),
            Self::Newer { .. } => {
                "Use the version that wrote it, or a later one; a backup of the older schema may lie \
                 beside the file"
                    .to_owned()
            }
            Self::Foreign { .. } => {
                "Use the state of this cluster, shard and provider, or give each its own path"
                    .to_owned()
            }
            Self::Locked { holder } if !holder.is_signed() => {
                "Wait until it has ended; the lock ends with it".to_owned()
            }
            Self::NoKey { reason, .. } => return reason.hint.clone(),
            Self::Fenced { .. } => {
                "Wait for the other to end, then run again: it continues".to_owned()
            }
            Self::Locked { holder } => format!(
                "Wait until process {} on {} has ended, or stop it; the lock ends with it",
                holder.pid, holder.host
            ),
            Self::WrongLock { holder, .. } => format!("The right id is {}", holder.id),
            Self::ReadOnly { .. } => {
                "Check the permissions of the file and of its folder: both must be writable"
                    .to_owned()
            }
            Self::Full { .. } => "Free some space and run again: it continues".to_owned(),
            Self::Busy { .. } | Self::Changed { .. } => "Run again in a moment".to_owned(),
            Self::Occupied { .. } => "Move or remove that record first".to_owned(),
            Self::Claimed { address, .. } => {
                format!("Move the record of {address}, or remove it first")
            }
            Self::Unsettled { .. } => "Run apply first: it settles what is open".to_owned(),
            Self::NoLocks { .. } => {
                "Keep the state where files can be locked, such as a local disk: --state sqlite:PATH"
                    .to_owned()
            }
            Self::Io { .. } => "Check that this user may read it, and its folder".to_owned(),
            Self::InvalidUrl { .. } => {
                "Write it as postgresql://USER@HOST/DATABASE; the password belongs in PGPASSWORD or ~/.pgpass"
                    .to_owned()
            }
            Self::Unreachable { .. } => {
                "Check the URL, PGPASSWORD or ~/.pgpass, and that the server takes connections from \
                 here; `?sslmode=disable` is for a server without TLS"
                    .to_owned()
            }
            Self::Lost { .. } => "Run again once the server is back: it continues".to_owned(),
            Self::Server { .. } => {
                "See the server's log, and whether this user has the rights that docs/state.md lists"
                    .to_owned()
            }
            Self::NoTables { .. } => {
                "Make them once, as a user who may: nstance state migrate".to_owned()
            }
            Self::Outdated { .. } => {
                "Upgrade them once everybody has this version: nstance state migrate".to_owned()
            }
            Self::Pooled { .. } => {
                "Connect to the server itself, or to the pooler in session mode".to_owned()
            }
            Self::Moved { to, .. } => format!("Use the state there: --state {to}"),
            Self::NotLocked { .. }
            | Self::NoRecord { .. }
            | Self::MissingSpec { .. }
            | Self::NotOpen { .. }
            | Self::Random(_)
            | Self::Sqlite { .. } => return None,
        };
        Some(hint)
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound {
                path: path.to_owned(),
            },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full {
                path: path.to_owned(),
            },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Self::ReadOnly {
                path: path.to_owned(),
            },
            _ => Self::Io {
                path: path.to_owned(),
                source,
            },
        }
    }

    /// Converts an error of a statement for the state at `path`.
    pub(crate) fn sql(path: &Path, source: sql::Error) -> Self {
        match source {
            sql::Error::Sqlite(source) => Self::sqlite(path, source),
            #[cfg(feature = "postgres")]
            sql::Error::Postgres(source) => Self::server(path, &source),
            source @ (sql::Error::Content { .. } | sql::Error::NoRow) => Self::Corrupt {
                path: path.to_owned(),
                detail: source.to_string(),
            },
        }
    }

    /// Converts an error of `PostgreSQL` for the state at `path`.
    #[cfg(feature = "postgres")]
    fn server(path: &Path, source: &postgres::Error) -> Self {
        let (path, why) = (path.to_owned(), crate::postgres::reason(source));
        let code = source.code().map_or("", |code| code.code());
        match code {
            // A connection that ended, and a server that is shutting down or starting.
            "" => Self::Lost { path, why },
            code if code.starts_with("08") || code.starts_with("57P0") => Self::Lost { path, why },
            "53100" => Self::Full { path },
            "55P03" => Self::Busy { path },
            "42P01" | "3F000" => Self::NoTables { path },
            // Another session has the statements that were prepared in this one.
            "26000" | "42P05" => Self::Pooled { path },
            _ => Self::Server { path, why },
        }
    }

    /// Converts an error of `SQLite` for the state at `path`.
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match &source {
            rusqlite::Error::SqliteFailure(error, _) => match error.code {
                ErrorCode::DiskFull => Self::Full { path },
                ErrorCode::ReadOnly => Self::ReadOnly { path },
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { path },
                ErrorCode::DatabaseCorrupt => Self::Corrupt {
                    path,
                    detail: source.to_string(),
                },
                ErrorCode::NotADatabase => Self::NotAState {
                    path,
                    why: "the file is no database".to_owned(),
                },
                ErrorCode::CannotOpen | ErrorCode::SystemIoFailure => Self::Io {
                    path,
                    source: io::Error::other(source),
                },
                _ => Self::Sqlite { path, source },
            },
            // A stored value has an unexpected type or format.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::InvalidColumnType(..) => Self::Corrupt {
                path,
                detail: source.to_string(),
            },
            _ => Self::Sqlite { path, source },
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
