//! Reads the rollout of a state, the requests to it, and what the last successful rollout of each
//! group left.
//!
//! In: an open state. Out: values of the model. Must not: write; transactions do.

use std::collections::HashMap;

use crate::error::Result;
use crate::model::{
    Rollout, RolloutGroup, RolloutId, RolloutRequest, RolloutRequestId, RolloutSlot, RolloutStatus,
    Timestamp,
};
use crate::row_crypto::{Place, RowCrypto};
use crate::sql::{self, Row, params, unreadable};
use crate::sql_store::{Engine, SqlStore};

impl<E: Engine> SqlStore<E> {
    /// The latest rollout, whatever its status.
    ///
    /// Fails if the state can't be read, or if the key is missing.
    pub fn rollout(&self) -> Result<Option<Rollout>> {
        self.read_opened(|sql, crypto| {
            let latest = format!("{ROLLOUTS} ORDER BY id DESC LIMIT 1");
            let Some(mut rollout) = sql.row(&latest, &[], rollout)? else {
                return Ok(None);
            };
            let of = params![rollout.id.0];
            let groups = format!("{GROUPS} WHERE rollout_id = ?1 ORDER BY group_name");
            rollout.groups = sql.rows(&groups, of, |row| Ok(group(row, crypto)?.1))?;
            let slots = format!("{SLOTS} WHERE rollout_id = ?1 ORDER BY address, instance_id");
            rollout.slots = sql.rows(&slots, of, |row| Ok(slot(row, crypto)?.1))?;
            Ok(Some(rollout))
        })
    }

    /// The plan of a rollout; `None` if the rollout is gone or doesn't need its plan any more.
    ///
    /// Fails if the state can't be read, or if the key is missing.
    pub fn rollout_plan(&self, id: RolloutId) -> Result<Option<Vec<u8>>> {
        self.read_opened(|sql, crypto| {
            let of = format!("{PLANS} AND id = ?1");
            let found = sql.row(&of, params![id.0], |row| plan(row, crypto))?;
            Ok(found.map(|(_, plan)| plan))
        })
    }

    /// The requests to the process that runs the rollout, oldest first. Needs no key.
    ///
    /// Fails if the state can't be read.
    pub fn rollout_requests(&self) -> Result<Vec<RolloutRequest>> {
        let all = "SELECT id, group_name, kind, who, at FROM rollout_requests ORDER BY id";
        self.read(|sql| {
            sql.rows(all, &[], |row| {
                Ok(RolloutRequest {
                    id: RolloutRequestId(row.get(0)?),
                    group: row.get(1)?,
                    kind: row.get(2)?,
                    who: row.get(3)?,
                    at: Timestamp(row.get(4)?),
                })
            })
        })
    }

    /// What [`crate::Transaction::put_last_good`] stored for these groups; missing ones are
    /// omitted.
    ///
    /// Fails if the state can't be read, or if the key is missing.
    pub fn last_good(&self, groups: &[&str]) -> Result<HashMap<String, Vec<u8>>> {
        let of = format!("{LAST_GOOD} WHERE group_name = ?1");
        self.read_opened(|sql, crypto| {
            let mut found = HashMap::new();
            for group in groups {
                let one = sql.row(&of, params![group], |row| last_good(row, crypto))?;
                found.extend(one.map(|(group, _, body)| (group, body)));
            }
            Ok(found)
        })
    }
}

/// The columns of `rollouts` for [`rollout`].
pub(crate) const ROLLOUTS: &str =
    "SELECT id, plan_digest, status, started_at, changed_at FROM rollouts";

/// Reads a row of [`ROLLOUTS`], without groups and slots.
///
/// Fails if it is invalid.
pub(crate) fn rollout(row: &Row<'_>) -> sql::Result<Rollout> {
    let status = row.text(2)?;
    let status = RolloutStatus::parse(status)
        .ok_or_else(|| unreadable(2, format!("unknown status \"{status}\"")))?;
    Ok(Rollout {
        id: RolloutId(row.get(0)?),
        plan_digest: row.get(1)?,
        status,
        started_at: Timestamp(row.get(3)?),
        changed_at: Timestamp(row.get(4)?),
        groups: Vec::new(),
        slots: Vec::new(),
    })
}

/// The columns of `rollouts` for [`plan`], of rows that have one.
pub(crate) const PLANS: &str = "SELECT id, plan_digest, planned_at, size, plan
    FROM rollouts WHERE plan IS NOT NULL";

/// Reads a plan of [`PLANS`], with its context.
///
/// Fails if it can't be decrypted.
pub(crate) fn plan(row: &Row<'_>, crypto: &RowCrypto) -> sql::Result<(Place, Vec<u8>)> {
    let digest: Option<String> = row.get(1)?;
    let place = Place::rollout_plan(
        RolloutId(row.get(0)?),
        digest.as_deref(),
        Timestamp(row.get(2)?),
    );
    let plan = crypto
        .unpack(&place, row.blob(4)?, row.get(3)?)
        .map_err(|error| unreadable(4, error))?;
    Ok((place, plan))
}

/// All columns of `rollout_groups`, for [`group`].
pub(crate) const GROUPS: &str =
    "SELECT rollout_id, group_name, stage, since, detail FROM rollout_groups";

/// Reads a row of [`GROUPS`], with its rollout.
///
/// Fails if it can't be decrypted.
pub(crate) fn group(row: &Row<'_>, crypto: &RowCrypto) -> sql::Result<(RolloutId, RolloutGroup)> {
    let id = RolloutId(row.get(0)?);
    let mut group = RolloutGroup {
        group: row.get(1)?,
        stage: row.get(2)?,
        since: Timestamp(row.get(3)?),
        detail: String::new(),
    };
    group.detail = detail(row, 4, &Place::rollout_group(id, &group), crypto)?;
    Ok((id, group))
}

/// All columns of `rollout_slots`, for [`slot`].
pub(crate) const SLOTS: &str =
    "SELECT rollout_id, address, instance_id, stage, since, detail FROM rollout_slots";

/// Reads a row of [`SLOTS`], with its rollout.
///
/// Fails if it can't be decrypted.
pub(crate) fn slot(row: &Row<'_>, crypto: &RowCrypto) -> sql::Result<(RolloutId, RolloutSlot)> {
    let id = RolloutId(row.get(0)?);
    let mut slot = RolloutSlot {
        address: row.get(1)?,
        instance_id: row.get(2)?,
        stage: row.get(3)?,
        since: Timestamp(row.get(4)?),
        detail: String::new(),
    };
    slot.detail = detail(row, 5, &Place::rollout_slot(id, &slot), crypto)?;
    Ok((id, slot))
}

fn detail(row: &Row<'_>, column: usize, place: &Place, crypto: &RowCrypto) -> sql::Result<String> {
    let bytes = crypto
        .open(place, row.blob(column)?)
        .map_err(|error| unreadable(column, error))?;
    String::from_utf8(bytes.into_owned()).map_err(|error| unreadable(column, error))
}

/// All columns of `last_good`, for [`last_good`].
pub(crate) const LAST_GOOD: &str = "SELECT group_name, size, body, at FROM last_good";

/// Reads a row of [`LAST_GOOD`]: its group, its context and its body.
///
/// Fails if it can't be decrypted.
pub(crate) fn last_good(
    row: &Row<'_>,
    crypto: &RowCrypto,
) -> sql::Result<(String, Place, Vec<u8>)> {
    let group: String = row.get(0)?;
    let place = Place::last_good(&group, Timestamp(row.get(3)?));
    let body = crypto
        .unpack(&place, row.blob(2)?, row.get(1)?)
        .map_err(|error| unreadable(2, error))?;
    Ok((group, place, body))
}
