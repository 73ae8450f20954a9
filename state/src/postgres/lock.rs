//! The lock that makes one session the writer of a state.
//!
//! In: a session, and who asks. Out: a lock that ends with the session. It is an advisory lock of
//! the server; the table `locks` says who holds it, and means nothing without the lock. Must not:
//! touch the state.

use sha2::{Digest, Sha256};

use super::session::Session;
use crate::model::{LockInfo, Timestamp};
use crate::sql::{self, Sql, params};

/// The number of the lock of a state.
pub(super) fn key(cluster: &str, shard: &str) -> i64 {
    let mut hasher = Sha256::new();
    for part in ["nstance", cluster, shard] {
        hasher.update(part.as_bytes());
        hasher.update(b"\0");
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize()[..8]);
    i64::from_be_bytes(first)
}

/// Takes the lock, unless another session holds it; returns whether it did.
///
/// Fails with the server's error.
pub(super) fn try_take(session: &Session, key: i64) -> sql::Result<bool> {
    // The server, too, notices in a minute that the holder's machine is gone.
    session.batch(
        "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; \
         SET tcp_keepalives_count = 3",
    )?;
    let session: &dyn Sql = session;
    session.one("SELECT pg_try_advisory_lock(?1)", params![key], |row| {
        row.get(0)
    })
}

/// Says who holds the lock.
///
/// Fails with the server's error.
pub(super) fn sign(session: &Session, key: i64, info: &LockInfo) -> sql::Result<()> {
    session.execute("DELETE FROM nstance.locks WHERE key = ?1", params![key])?;
    session
        .execute(
            "INSERT INTO nstance.locks (key, info) VALUES (?1, ?2)",
            params![key, text(info)],
        )
        .map(drop)
}

/// Removes what [`sign`] wrote, unless another holder has signed since.
///
/// Fails with the server's error.
pub(super) fn unsign(session: &Session, key: i64, info: &LockInfo) -> sql::Result<()> {
    session
        .execute(
            "DELETE FROM nstance.locks WHERE key = ?1 AND info = ?2",
            params![key, text(info)],
        )
        .map(drop)
}

fn text(info: &LockInfo) -> String {
    serde_json::to_string(info).expect("plain strings and numbers are JSON")
}

/// Whether a session holds the lock, and who the latest holder was.
///
/// Fails with the server's error.
pub(super) fn look(session: &Session, key: i64) -> sql::Result<(bool, Option<LockInfo>)> {
    let session: &dyn Sql = session;
    // The server shows the number of a lock in two halves.
    let held = "SELECT EXISTS (SELECT 1 FROM pg_locks
            WHERE locktype = 'advisory' AND granted AND objsubid = 1
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND classid::bigint = ?1 AND objid::bigint = ?2)";
    let (high, low) = ((key as u64) >> 32, (key as u64) & 0xffff_ffff);
    let is_held = session.one(held, params![high, low], |row| row.get(0))?;
    let of = "SELECT info FROM nstance.locks WHERE key = ?1";
    let info = session.row(of, params![key], |row| row.get::<String>(0))?;
    let info = info.and_then(|text| serde_json::from_str(&text).ok());
    Ok((is_held, info))
}

/// The holder that hasn't said who it is.
pub(super) fn unsigned() -> LockInfo {
    LockInfo {
        id: "unknown".to_owned(),
        holder: "unknown".to_owned(),
        host: "unknown".to_owned(),
        pid: 0,
        operation: "unknown".to_owned(),
        since: Timestamp(0),
    }
}
