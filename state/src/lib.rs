//! The state of a fleet: the instance in each slot, its spec, the operations in progress, and the
//! history.
//!
//! The crate knows neither configurations nor clouds. It stores values, and guarantees:
//!
//! - **Nothing is lost.** What is changed is on disk when [`Store::commit`] returns. An intent that
//!   is committed before a call to a cloud is found again after any crash.
//! - **One writer, any readers.** [`Lock`] makes one process the writer, and ends with it.
//!   Reading takes no lock, and works where nothing can be written.
//! - **Who lost its lock can't write.** Whoever takes the lead shuts out those before it.
//! - **What was rendered is sealed.** It opens with the state's [`Key`], and in its place only.
//! - **What is refused is left alone.** A file of another program, of another owner or of a newer
//!   version keeps every byte.
//!
//! It reads no clock and no environment, and prints nothing.
//!
//! ```
//! use nstance_state::{Backend, Identity, SpecDigest, SqliteFile, Timestamp, Write};
//!
//! let folder = tempfile::tempdir()?;
//! let file = SqliteFile::new(folder.path().join("prod/us-west-2a.db"), None);
//! let identity = Identity {
//!     cluster: "prod".to_owned(),
//!     shard: "us-west-2a".to_owned(),
//!     provider: "aws".to_owned(),
//! };
//! let mut store = file.create(&identity, "6f1c", Timestamp(1_767_225_600_000), None)?;
//! let spec = Write::PutSpec {
//!     digest: SpecDigest([7; 32]),
//!     bytes: b"{}".to_vec(),
//! };
//! store.commit(Timestamp(1_767_225_600_001), vec![spec])?;
//! assert_eq!(&*store.specs(&[SpecDigest([7; 32])])?[&SpecDigest([7; 32])], b"{}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

pub mod backups;
mod check;
mod codec;
#[cfg(feature = "postgres")]
mod copy;
mod document;
mod error;
mod files;
mod history;
mod keys;
mod lock;
mod memory;
mod model;
mod new_file;
mod open;
mod paths;
#[cfg(feature = "postgres")]
mod postgres;
mod rekey;
mod rollout;
mod row_crypto;
mod schema;
mod seal;
mod snapshot;
mod sql;
mod sql_store;
mod sqlite;
mod store;
mod transaction;

pub use check::{Problem, ProblemKind};
pub use document::{Contents, DOCUMENT_VERSION, Difference, Document, DocumentError};
pub use error::{KeyError, Result, StateError};
pub use keys::Keys;
pub use lock::Lock;
pub use memory::{MemoryDisk, MemoryImage, MemoryStore};
pub use model::{
    Apply, ApplyId, ApplyStatus, FetchedRow, HistoryIds, HistoryItem, Identity, ImageRow, Intent,
    IntentId, LockInfo, Meta, NewApply, NewRequest, NewRollout, Operation, Outcome,
    ParseDigestError, Record, Rollout, RolloutGroup, RolloutId, RolloutRequest, RolloutRequestId,
    RolloutSlot, RolloutStatus, SpecDigest, Timestamp, address,
};
#[cfg(feature = "postgres")]
pub use postgres::{Environment, Postgres, PostgresServer, PostgresStore};
pub use seal::{
    Context, Derivation, Key, KeyId, KeyNeed, NewKey, OVERHEAD, OpenError, ParseDerivationError,
    ParseKeyError, ParseKeyIdError, RandomError, key_of,
};
pub use snapshot::Snapshot;
pub use sql_store::SqlStore;
pub use sqlite::{Sqlite, SqliteStore};
pub use store::{Backend, Held, Prepared, SqliteFile, Store, Write, Written};
pub use transaction::Transaction;
