//! Reads the history of a state.
//!
//! In: an open state. Out: its applies and their changes. Must not: write; transactions add
//! entries.

use crate::error::Result;
use crate::model::{Apply, ApplyId, ApplyStatus, HistoryIds, HistoryItem, LockInfo, Timestamp};
use crate::row_crypto::{Place, RowCrypto};
use crate::sql::{self, Row, Sql, params, unreadable};
use crate::sql_store::{Engine, SqlStore};

impl<E: Engine> SqlStore<E> {
    /// The latest `limit` applies, latest first. An unfinished one is running if its process holds
    /// the lock, otherwise interrupted.
    ///
    /// Fails if the state can't be read.
    pub fn history(&self, limit: usize) -> Result<Vec<Apply>> {
        let latest = "SELECT id, started_at, finished_at, who, host, pid, operation,
                serial_before, serial_after, status, summary, plan_digest
             FROM applies ORDER BY id DESC LIMIT ?1";
        let mut applies: Vec<Apply> = self.read(|sql| sql.rows(latest, params![limit], apply))?;
        mark_interrupted(&mut applies, || self.engine.holder())?;
        Ok(applies)
    }

    /// The changes of an apply, in the order they were added.
    ///
    /// Fails if the state can't be read, or if an entry is encrypted and the key is missing.
    pub fn history_items(&self, id: ApplyId) -> Result<Vec<HistoryItem>> {
        let of = format!("{ENTRIES} WHERE apply_id = ?1 ORDER BY id");
        let read = |sql: &dyn Sql, crypto: &RowCrypto| {
            sql.rows(&of, params![id.0], |row| Ok(entry(row, crypto)?.1))
        };
        let sealed = "SELECT 1 FROM history WHERE apply_id = ?1 AND sealed IS NOT NULL";
        let is_sealed = |sql: &dyn Sql| Ok(sql.row(sealed, params![id.0], |_| Ok(()))?.is_some());
        // Successful results aren't encrypted, so usually no key is required.
        if self.read(is_sealed)? {
            self.read_opened(read)
        } else {
            self.read(|sql| read(sql, &RowCrypto::clear()))
        }
    }
}

/// All columns of `history`, for [`entry`].
pub(crate) const ENTRIES: &str = "SELECT id, apply_id, address, action, before_instance_id,
        before_provider_id, after_instance_id, after_provider_id, result, detail, at, sealed
    FROM history";

/// Reads an entry of [`ENTRIES`].
///
/// Fails if it is invalid or can't be decrypted.
pub(crate) fn entry(row: &Row<'_>, crypto: &RowCrypto) -> sql::Result<(ApplyId, HistoryItem)> {
    let ids = |instance, provider| {
        Ok::<_, sql::Error>(HistoryIds {
            instance_id: row.get(instance)?,
            provider_id: row.get(provider)?,
        })
    };
    let apply = ApplyId(row.get(1)?);
    let mut item = HistoryItem {
        address: row.get(2)?,
        action: row.get(3)?,
        before: ids(4, 5)?,
        after: ids(6, 7)?,
        result: row.get(8)?,
        detail_json: row.get(9)?,
        at: Timestamp(row.get(10)?),
    };
    if let Some(sealed) = row.get::<Option<Vec<u8>>>(11)? {
        let said = crypto
            .open(&Place::history(apply, &item, item.at), &sealed)
            .map_err(|error| unreadable(11, error))?;
        (item.result, item.detail_json) =
            serde_json::from_slice(&said).map_err(|error| unreadable(11, error))?;
    }
    Ok((apply, item))
}

/// Marks running applies as interrupted, except that of the lock's holder.
///
/// Fails if the lock can't be read.
pub(crate) fn mark_interrupted(
    applies: &mut [Apply],
    holder: impl FnOnce() -> Result<Option<LockInfo>>,
) -> Result<()> {
    let unfinished = |apply: &Apply| apply.status == ApplyStatus::Running;
    if !applies.iter().any(unfinished) {
        return Ok(());
    }
    let holder = holder()?;
    for apply in applies.iter_mut().filter(|apply| unfinished(apply)) {
        if !holder.as_ref().is_some_and(|holder| is_of(apply, holder)) {
            apply.status = ApplyStatus::Interrupted;
        }
    }
    Ok(())
}

fn is_of(apply: &Apply, holder: &LockInfo) -> bool {
    apply.pid == holder.pid && apply.host == holder.host
}

fn apply(row: &Row<'_>) -> sql::Result<Apply> {
    let status = match row.text(9)? {
        "running" => ApplyStatus::Running,
        "succeeded" => ApplyStatus::Succeeded,
        "failed" => ApplyStatus::Failed,
        "interrupted" => ApplyStatus::Interrupted,
        other => return Err(unreadable(9, format!("unknown status \"{other}\""))),
    };
    Ok(Apply {
        id: ApplyId(row.get(0)?),
        started_at: Timestamp(row.get(1)?),
        finished_at: row.get::<Option<i64>>(2)?.map(Timestamp),
        who: row.get(3)?,
        host: row.get(4)?,
        pid: row.get(5)?,
        operation: row.get(6)?,
        serial_before: row.get(7)?,
        serial_after: row.get(8)?,
        status,
        summary_json: row.get(10)?,
        plan_digest: row.get(11)?,
    })
}
