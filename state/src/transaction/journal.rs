//! The journal and the history: intents, and applies.
//!
//! In: intents before a cloud call, and their outcome after it. Out: their ids. Must not: change a
//! record or the serial.

use super::Transaction;
use crate::codec::Effort;
use crate::error::{Result, StateError};
use crate::model::{
    ApplyId, ApplyStatus, HistoryItem, Intent, IntentId, NewApply, Operation, Outcome,
};
use crate::row_crypto::Place;
use crate::sql::params;

#[expect(
    clippy::needless_pass_by_value,
    reason = "a store in memory keeps what it is given"
)]
impl Transaction<'_> {
    /// Opens the intents of all calls of a wave; they must be committed before the first call. Uses
    /// up the generation of create intents.
    ///
    /// Fails with [`StateError::Unsettled`] if an open create intent has the same token, and with
    /// [`StateError::MissingSpec`].
    pub fn open_intents(&mut self, intents: &[Intent]) -> Result<Vec<IntentId>> {
        intents
            .iter()
            .map(|intent| self.open_intent(intent))
            .collect()
    }

    /// Opens one intent.
    ///
    /// Fails like [`Transaction::open_intents`].
    pub(super) fn open_intent(&mut self, intent: &Intent) -> Result<IntentId> {
        let spec = intent.spec.map(|digest| self.spec(digest)).transpose()?;
        if intent.operation == Operation::Create {
            let open = "SELECT 1 FROM journal
                        WHERE token = ?1 AND closed_at IS NULL AND operation = 'create'";
            let is_open = self.row(open, params![intent.token], |_| Ok(()))?;
            if is_open.is_some() {
                return Err(StateError::Unsettled {
                    address: intent.address.clone(),
                });
            }
        }
        let id = IntentId(self.next_id("journal")?);
        let place = Place::request(id, intent);
        self.execute(
            "INSERT INTO journal (id, apply_id, address, group_name, slot, operation, instance_id,
                 provider_id, generation, attempt, token, spec_id, size, request, opened_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            params![
                id.0,
                intent.apply_id.map(|id| id.0),
                intent.address,
                intent.group,
                intent.slot,
                intent.operation.as_str(),
                intent.instance_id,
                intent.provider_id,
                intent.generation,
                intent.attempt,
                intent.token,
                spec,
                intent.request.len(),
                self.crypto.pack(&place, &intent.request, Effort::Low)?,
                self.now.0,
            ],
        )?;
        // For updates and deletes, the record already has the generation.
        if intent.operation == Operation::Create {
            let group = self.group(&intent.group)?;
            self.raise_generation(group, intent.slot, intent.generation)?;
        }
        Ok(id)
    }

    /// Closes an intent and removes its request. The same transaction must record the result.
    ///
    /// Fails with [`StateError::NotOpen`] if it isn't open.
    pub fn close_intent(&mut self, id: IntentId, outcome: Outcome) -> Result<()> {
        // The cloud's message may quote the request.
        let (message, sealed) = match outcome.message() {
            Some(message) if self.crypto.is_sealed() => {
                let place = Place::message(id, self.now);
                (None, Some(self.crypto.seal(&place, message.into())?))
            }
            message => (message, None),
        };
        let closed = self.execute(
            "UPDATE journal SET closed_at = ?2, outcome = ?3, message = ?4, sealed_message = ?5,
                 request = NULL, size = NULL, spec_id = NULL
             WHERE id = ?1 AND closed_at IS NULL",
            params![id.0, self.now.0, outcome.as_str(), message, sealed],
        )?;
        if closed == 0 {
            return Err(StateError::NotOpen {
                what: "intent",
                id: id.0,
            });
        }
        Ok(())
    }

    /// Adds the start of an apply to the history, and raises the fencing token
    /// ([`crate::SqliteStore::lead`]). Call it with the lock held: an apply that the history shows
    /// as running is dead, and becomes interrupted.
    ///
    /// Fails if the state can't be written.
    pub fn start_apply(&mut self, apply: NewApply) -> Result<ApplyId> {
        self.lead()?;
        self.execute(
            "UPDATE applies SET status = ?1 WHERE status = ?2",
            params![
                ApplyStatus::Interrupted.as_str(),
                ApplyStatus::Running.as_str(),
            ],
        )?;
        let id = ApplyId(self.next_id("applies")?);
        self.execute(
            "INSERT INTO applies (id, started_at, who, host, pid, operation, serial_before, status,
                 summary, plan_digest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, '{}', ?9)",
            params![
                id.0,
                self.now.0,
                apply.who,
                apply.host,
                apply.pid,
                apply.operation,
                self.serial,
                ApplyStatus::Running.as_str(),
                apply.plan_digest,
            ],
        )?;
        Ok(id)
    }

    /// Adds the end of an apply to the history. Its serial doesn't include later changes in the
    /// same transaction.
    ///
    /// Fails with [`StateError::NotOpen`] if the apply isn't running.
    pub fn finish_apply(
        &mut self,
        id: ApplyId,
        status: ApplyStatus,
        summary_json: &str,
    ) -> Result<()> {
        let finished = self.execute(
            "UPDATE applies SET finished_at = ?2, status = ?3, summary = ?4, serial_after = ?5
             WHERE id = ?1 AND status = ?6",
            params![
                id.0,
                self.now.0,
                status.as_str(),
                summary_json,
                self.serial(),
                ApplyStatus::Running.as_str(),
            ],
        )?;
        if finished == 0 {
            return Err(StateError::NotOpen {
                what: "apply",
                id: id.0,
            });
        }
        Ok(())
    }

    /// Adds the change of one address to the history.
    ///
    /// Fails if the state can't be written.
    pub fn record_history_item(&mut self, id: ApplyId, item: &HistoryItem) -> Result<()> {
        let (mut result, mut detail) = (item.result.as_str(), item.detail_json.as_str());
        let sealed = if self.crypto.is_sealed() && !item.is_harmless() {
            (result, detail) = ("", "");
            let place = Place::history(id, item, self.now);
            Some(self.crypto.seal(&place, item.to_sealed_bytes())?)
        } else {
            None
        };
        self.execute(
            "INSERT INTO history (apply_id, address, action, before_instance_id,
                 before_provider_id, after_instance_id, after_provider_id, result, detail, at,
                 sealed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                id.0,
                item.address,
                item.action,
                item.before.instance_id,
                item.before.provider_id,
                item.after.instance_id,
                item.after.provider_id,
                result,
                detail,
                self.now.0,
                sealed,
            ],
        )?;
        Ok(())
    }
}
