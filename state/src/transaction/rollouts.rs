//! Writes the rollout, the requests to the process that runs it, and what the last successful
//! rollout of a group left.
//!
//! In: a rollout's plan and its progress. Out: ids. Must not: change a record or the serial, or
//! raise the fencing token: a request comes from a process without the lock.

use super::Transaction;
use crate::codec::Effort;
use crate::error::{Result, StateError};
use crate::model::{
    NewRequest, NewRollout, RolloutGroup, RolloutId, RolloutRequestId, RolloutSlot, RolloutStatus,
};
use crate::row_crypto::Place;
use crate::sql::params;

impl Transaction<'_> {
    /// Starts a rollout with its plan. Removes all earlier rollouts and all requests.
    ///
    /// Fails if the state can't be written.
    pub fn start_rollout(&mut self, rollout: &NewRollout) -> Result<RolloutId> {
        self.remove_rollouts()?;
        let id = RolloutId(self.next_id("rollouts")?);
        self.execute(
            "INSERT INTO rollouts (id, plan_digest, status, started_at, changed_at)
             VALUES (?1, ?2, ?3, ?4, ?4)",
            params![
                id.0,
                rollout.plan_digest,
                rollout.status.as_str(),
                self.now.0,
            ],
        )?;
        self.set_rollout_plan(id, &rollout.plan)?;
        Ok(id)
    }

    /// Sets the status of a rollout. [`RolloutStatus::Done`] and [`RolloutStatus::Superseded`]
    /// remove its plan.
    ///
    /// Fails with [`StateError::NotOpen`] if the rollout is gone.
    pub fn set_rollout_status(&mut self, id: RolloutId, status: RolloutStatus) -> Result<()> {
        let changed = self.execute(
            "UPDATE rollouts SET status = ?2, changed_at = ?3 WHERE id = ?1",
            params![id.0, status.as_str(), self.now.0],
        )?;
        if changed == 0 {
            return Err(gone(id));
        }
        if status.drops_plan() {
            self.execute(
                "UPDATE rollouts SET planned_at = NULL, size = NULL, plan = NULL WHERE id = ?1",
                params![id.0],
            )?;
        }
        Ok(())
    }

    /// Replaces the plan of a rollout; its digest stays.
    ///
    /// Fails with [`StateError::NotOpen`] if the rollout is gone.
    pub fn set_rollout_plan(&mut self, id: RolloutId, plan: &[u8]) -> Result<()> {
        let now = self.now;
        let place = self.row(
            "SELECT plan_digest FROM rollouts WHERE id = ?1",
            params![id.0],
            |row| {
                let digest: Option<String> = row.get(0)?;
                Ok(Place::rollout_plan(id, digest.as_deref(), now))
            },
        )?;
        let place = place.ok_or_else(|| gone(id))?;
        self.execute(
            "UPDATE rollouts SET planned_at = ?2, size = ?3, plan = ?4 WHERE id = ?1",
            params![
                id.0,
                now.0,
                plan.len(),
                self.crypto.pack(&place, plan, Effort::Normal)?,
            ],
        )?;
        Ok(())
    }

    /// Stores the progress of a rollout in a group, replacing an earlier one.
    ///
    /// Fails with [`StateError::NotOpen`] if the rollout is gone.
    pub fn put_rollout_group(&mut self, id: RolloutId, group: RolloutGroup) -> Result<()> {
        self.need_rollout(id)?;
        let group = RolloutGroup {
            since: self.now,
            ..group
        };
        let place = Place::rollout_group(id, &group);
        self.execute(
            "INSERT INTO rollout_groups (rollout_id, group_name, stage, since, detail)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (rollout_id, group_name) DO UPDATE SET stage = excluded.stage,
                 since = excluded.since, detail = excluded.detail",
            params![
                id.0,
                group.group,
                group.stage,
                group.since.0,
                self.crypto.seal(&place, group.detail.into())?,
            ],
        )?;
        Ok(())
    }

    /// Stores the progress of a rollout with an instance, replacing an earlier one.
    ///
    /// Fails with [`StateError::NotOpen`] if the rollout is gone.
    pub fn put_rollout_slot(&mut self, id: RolloutId, slot: RolloutSlot) -> Result<()> {
        self.need_rollout(id)?;
        let slot = RolloutSlot {
            since: self.now,
            ..slot
        };
        let place = Place::rollout_slot(id, &slot);
        self.execute(
            "INSERT INTO rollout_slots
                 (rollout_id, address, instance_id, stage, since, detail)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (rollout_id, address, instance_id) DO UPDATE SET stage = excluded.stage,
                 since = excluded.since, detail = excluded.detail",
            params![
                id.0,
                slot.address,
                slot.instance_id,
                slot.stage,
                slot.since.0,
                self.crypto.seal(&place, slot.detail.into())?,
            ],
        )?;
        Ok(())
    }

    /// Adds a request to the process that runs the rollout. Works without the lock, and doesn't
    /// fence that process.
    ///
    /// Fails if the state can't be written.
    pub fn add_request(&mut self, request: &NewRequest) -> Result<RolloutRequestId> {
        let id = RolloutRequestId(self.next_id("rollout_requests")?);
        self.execute(
            "INSERT INTO rollout_requests (id, group_name, kind, who, at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![id.0, request.group, request.kind, request.who, self.now.0],
        )?;
        Ok(id)
    }

    /// Removes a request; returns whether there was one.
    ///
    /// Fails if the state can't be written.
    pub fn remove_request(&mut self, id: RolloutRequestId) -> Result<bool> {
        let removed = self.execute("DELETE FROM rollout_requests WHERE id = ?1", params![id.0])?;
        Ok(removed > 0)
    }

    /// Stores what the last successful rollout of a group left, replacing an earlier one. The body
    /// is compressed and encrypted.
    ///
    /// Fails if the state can't be written.
    pub fn put_last_good(&mut self, group: &str, body: &[u8]) -> Result<()> {
        let place = Place::last_good(group, self.now);
        self.execute(
            "INSERT INTO last_good (group_name, size, body, at)
             VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (group_name) DO UPDATE SET size = excluded.size, body = excluded.body,
                 at = excluded.at",
            params![
                group,
                body.len(),
                self.crypto.pack(&place, body, Effort::Normal)?,
                self.now.0,
            ],
        )?;
        Ok(())
    }

    /// Removes what [`Transaction::put_last_good`] stored; returns whether there was something.
    ///
    /// Fails if the state can't be written.
    pub fn remove_last_good(&mut self, group: &str) -> Result<bool> {
        let removed = self.execute(
            "DELETE FROM last_good WHERE group_name = ?1",
            params![group],
        )?;
        Ok(removed > 0)
    }

    /// Removes all rollouts and all requests.
    pub(super) fn remove_rollouts(&self) -> Result<()> {
        self.execute("DELETE FROM rollouts", &[])?;
        self.execute("DELETE FROM rollout_requests", &[])?;
        Ok(())
    }

    fn need_rollout(&self, id: RolloutId) -> Result<()> {
        self.row(
            "SELECT 1 FROM rollouts WHERE id = ?1",
            params![id.0],
            |_| Ok(()),
        )?
        .ok_or_else(|| gone(id))
    }
}

fn gone(id: RolloutId) -> StateError {
    StateError::NotOpen {
        what: "rollout",
        id: id.0,
    }
}
