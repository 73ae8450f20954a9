//! Changes the key of a state.
//!
//! In: a transaction, and the new key. Out: all content, encrypted with the new key. A crash leaves
//! the state with the old key or the new one, never a mixture. Unused parts of the file may still
//! hold the old content until it is scrubbed.

use crate::codec::Effort;
use crate::error::Result;
use crate::history::{ENTRIES, entry};
use crate::keys;
use crate::model::{FetchedRow, IntentId, SpecDigest, Timestamp};
use crate::rollout::{self, GROUPS, LAST_GOOD, PLANS, SLOTS};
use crate::row_crypto::{Place, RowCrypto};
use crate::seal::NewKey;
use crate::snapshot;
use crate::sql::{Row, params, unreadable};
use crate::sql_store::{FETCHED, OBSERVATION_CACHE, SPECS, fetched, observation_cache, spec};
use crate::transaction::Transaction;

impl Transaction<'_> {
    /// Encrypts everything with another key. If the state has a key, it must be available. Changes
    /// no record and no serial.
    ///
    /// Call [`crate::SqlStore::scrub`] after the commit.
    ///
    /// Fails if the current key is missing or the state can't be written.
    pub fn rekey(&mut self, new: &NewKey) -> Result<()> {
        let (_, lineage) = keys::need(self.sql).map_err(|error| self.wrap(error))?;
        let old = std::mem::replace(&mut self.crypto, RowCrypto::new(new.key.clone(), lineage));
        self.specs.clear();
        self.reseal_specs(&old)?;
        self.reseal_observations(&old)?;
        self.reseal_requests(&old)?;
        self.reseal_messages(&old)?;
        self.reseal_history(&old)?;
        self.reseal_fetched(&old)?;
        self.reseal_observation_cache(&old)?;
        self.reseal_rollouts(&old)?;
        self.reseal_last_good(&old)?;
        let derivation = new.derivation.as_ref().map(ToString::to_string);
        self.execute(
            "UPDATE meta SET key_id = ?1, derivation = ?2, unscrubbed = 1 WHERE id = 1",
            params![new.key.id().0, derivation],
        )?;
        self.rekeyed = Some(new.key.clone());
        Ok(())
    }

    // Row by row: this limits memory, and reads no row after it was written.
    fn reseal_specs(&self, old: &RowCrypto) -> Result<()> {
        for id in self.ids("SELECT id FROM specs")? {
            let sql = format!("{SPECS} WHERE id = ?1");
            let row = self.row(&sql, params![id], |row| spec(row, old))?;
            let Some((digest, body)) = row else { continue };
            self.execute(
                "UPDATE specs SET digest = ?2, body = ?3 WHERE id = ?1",
                params![
                    id,
                    self.crypto.mask(digest),
                    self.crypto
                        .pack(&Place::spec(digest), &body, Effort::Normal)?,
                ],
            )?;
        }
        Ok(())
    }

    fn reseal_observations(&self, old: &RowCrypto) -> Result<()> {
        let observed = "SELECT instance_id, observed FROM instances WHERE observed IS NOT NULL";
        for (id, digest) in self.all(observed, |row| {
            Ok((row.get::<String>(0)?, SpecDigest(row.get(1)?)))
        })? {
            self.execute(
                "UPDATE instances SET observed = ?2 WHERE instance_id = ?1",
                params![id, self.crypto.mask(old.unmask(digest))],
            )?;
        }
        Ok(())
    }

    fn reseal_requests(&self, old: &RowCrypto) -> Result<()> {
        // The specs' digests are already masked with the new key. Requests are encrypted for the
        // unmasked digests, so unmask them with the new key.
        let intents =
            snapshot::intents_of(self.sql, old, &self.crypto).map_err(|error| self.wrap(error))?;
        for intent in intents {
            let place = Place::request(intent.id, &intent);
            self.execute(
                "UPDATE journal SET request = ?2 WHERE id = ?1",
                params![
                    intent.id.0,
                    self.crypto.pack(&place, &intent.request, Effort::Low)?
                ],
            )?;
        }
        Ok(())
    }

    fn reseal_messages(&self, old: &RowCrypto) -> Result<()> {
        let told = "SELECT id FROM journal
                    WHERE message IS NOT NULL OR sealed_message IS NOT NULL";
        for id in self.ids(told)? {
            let row = self.row(
                "SELECT closed_at, message, sealed_message FROM journal WHERE id = ?1",
                params![id],
                |row| {
                    let place = Place::message(IntentId(id), Timestamp(row.get(0)?));
                    let clear: Option<String> = row.get(1)?;
                    let sealed: Option<Vec<u8>> = row.get(2)?;
                    let message = match (clear, sealed) {
                        (Some(message), _) => message.into_bytes(),
                        (None, sealed) => old
                            .open(&place, &sealed.unwrap_or_default())
                            .map_err(|error| unreadable(2, error))?
                            .into_owned(),
                    };
                    Ok((place, message))
                },
            )?;
            let Some((place, message)) = row else {
                continue;
            };
            self.execute(
                "UPDATE journal SET message = NULL, sealed_message = ?2 WHERE id = ?1",
                params![id, self.crypto.seal(&place, message)?],
            )?;
        }
        Ok(())
    }

    fn reseal_history(&self, old: &RowCrypto) -> Result<()> {
        for id in self.ids("SELECT id FROM history")? {
            let sql = format!("{ENTRIES} WHERE id = ?1");
            let Some((apply, item)) = self.row(&sql, params![id], |row| entry(row, old))? else {
                continue;
            };
            if item.is_harmless() {
                continue;
            }
            let place = Place::history(apply, &item, item.at);
            self.execute(
                "UPDATE history SET result = '', detail = '', sealed = ?2 WHERE id = ?1",
                params![id, self.crypto.seal(&place, item.to_sealed_bytes())?],
            )?;
        }
        Ok(())
    }

    fn reseal_fetched(&mut self, old: &RowCrypto) -> Result<()> {
        let rows: Vec<FetchedRow> = self.all(FETCHED, |row| fetched(row, old))?;
        self.execute("DELETE FROM fetched", &[])?;
        rows.into_iter().try_for_each(|row| self.put_fetched(row))
    }

    fn reseal_observation_cache(&mut self, old: &RowCrypto) -> Result<()> {
        let cache = self.row(OBSERVATION_CACHE, &[], |row| observation_cache(row, old))?;
        cache.map_or(Ok(()), |bytes| self.put_observation_cache(&bytes))
    }

    fn reseal_rollouts(&self, old: &RowCrypto) -> Result<()> {
        for id in self.ids("SELECT id FROM rollouts WHERE plan IS NOT NULL")? {
            let sql = format!("{PLANS} AND id = ?1");
            if let Some((place, plan)) =
                self.row(&sql, params![id], |row| rollout::plan(row, old))?
            {
                self.execute(
                    "UPDATE rollouts SET plan = ?2 WHERE id = ?1",
                    params![id, self.crypto.pack(&place, &plan, Effort::Normal)?],
                )?;
            }
        }
        for (of, group) in self.all(GROUPS, |row| rollout::group(row, old))? {
            let place = Place::rollout_group(of, &group);
            self.execute(
                "UPDATE rollout_groups SET detail = ?3 WHERE rollout_id = ?1 AND group_name = ?2",
                params![
                    of.0,
                    group.group,
                    self.crypto.seal(&place, group.detail.into())?
                ],
            )?;
        }
        for (of, slot) in self.all(SLOTS, |row| rollout::slot(row, old))? {
            let place = Place::rollout_slot(of, &slot);
            self.execute(
                "UPDATE rollout_slots SET detail = ?4
                 WHERE rollout_id = ?1 AND address = ?2 AND instance_id = ?3",
                params![
                    of.0,
                    slot.address,
                    slot.instance_id,
                    self.crypto.seal(&place, slot.detail.into())?
                ],
            )?;
        }
        Ok(())
    }

    fn reseal_last_good(&self, old: &RowCrypto) -> Result<()> {
        let groups: Vec<String> = self.all("SELECT group_name FROM last_good", |row| row.get(0))?;
        for group in groups {
            let sql = format!("{LAST_GOOD} WHERE group_name = ?1");
            let row = self.row(&sql, params![group], |row| rollout::last_good(row, old))?;
            let Some((_, place, body)) = row else {
                continue;
            };
            self.execute(
                "UPDATE last_good SET body = ?2 WHERE group_name = ?1",
                params![group, self.crypto.pack(&place, &body, Effort::Normal)?],
            )?;
        }
        Ok(())
    }

    fn ids(&self, sql: &str) -> Result<Vec<i64>> {
        self.all(sql, |row| row.get(0))
    }

    fn all<T>(
        &self,
        sql: &str,
        read: impl FnMut(&Row<'_>) -> crate::sql::Result<T>,
    ) -> Result<Vec<T>> {
        self.sql
            .rows(sql, &[], read)
            .map_err(|error| self.wrap(error))
    }
}
