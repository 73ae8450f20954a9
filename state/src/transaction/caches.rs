//! Writes caches (resolved images, fetched bodies, observations), and removes unused data.
//!
//! In: rows of caches. Out: nothing, or how much was removed. Must not: change a record or the
//! serial.

use super::Transaction;
use crate::codec::{self, Effort};
use crate::error::Result;
use crate::model::{ApplyId, ApplyStatus, FetchedRow, ImageRow, SpecDigest};
use crate::row_crypto::Place;
use crate::sql::params;

#[expect(
    clippy::needless_pass_by_value,
    reason = "a store in memory keeps what it is given"
)]
impl Transaction<'_> {
    /// Stores the result of an image look-up, replacing an earlier one.
    ///
    /// Fails if the state can't be written.
    pub fn put_image(&mut self, image: ImageRow) -> Result<()> {
        self.execute(
            "INSERT INTO images (name, query_digest, image_id, source, resolved_at, detail)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (name) DO UPDATE SET query_digest = excluded.query_digest,
                 image_id = excluded.image_id, source = excluded.source,
                 resolved_at = excluded.resolved_at, detail = excluded.detail",
            params![
                image.name,
                image.query_digest,
                image.image_id,
                image.source,
                image.resolved_at.0,
                image.detail_json,
            ],
        )?;
        Ok(())
    }

    /// Stores the body of a URL, replacing an earlier one.
    ///
    /// Fails if the state can't be written.
    pub fn put_fetched(&mut self, fetched: FetchedRow) -> Result<()> {
        let name = self.crypto.name(&fetched.url);
        let content = if self.crypto.is_sealed() {
            codec::join(&fetched.url, &codec::join(&fetched.digest, &fetched.body))
        } else {
            fetched.body
        };
        let digest = if self.crypto.is_sealed() {
            String::new()
        } else {
            fetched.digest
        };
        let place = Place::fetched(&name, fetched.fetched_at);
        self.execute(
            "INSERT INTO fetched (url, digest, size, body, fetched_at)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (url) DO UPDATE SET digest = excluded.digest, size = excluded.size,
                 body = excluded.body, fetched_at = excluded.fetched_at",
            params![
                name,
                digest,
                content.len(),
                self.crypto.pack(&place, &content, Effort::Normal)?,
                fetched.fetched_at.0,
            ],
        )?;
        Ok(())
    }

    /// Stores the observation cache, replacing an earlier one. It is encrypted, since its digests
    /// could be compared with guesses.
    ///
    /// Fails if the state can't be written.
    pub fn put_observation_cache(&mut self, bytes: &[u8]) -> Result<()> {
        if self.crypto.is_sealed() {
            // An encrypted state of schema 2 stored it in this row, which the migration can't
            // identify.
            let former = self.crypto.name("nstance:familiar");
            self.execute("DELETE FROM fetched WHERE url = ?1", params![former])?;
        }
        let place = Place::observation_cache(self.now);
        self.execute(
            "INSERT INTO observation_cache (id, size, body, updated_at)
             VALUES (1, ?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET size = excluded.size, body = excluded.body,
                 updated_at = excluded.updated_at",
            params![
                bytes.len(),
                self.crypto.pack(&place, bytes, Effort::Normal)?,
                self.now.0,
            ],
        )?;
        Ok(())
    }

    /// Keeps specs that an entry of the history may still need, although no record refers to them.
    /// Releases those of all but the latest `entries` that keep some.
    ///
    /// Fails with [`crate::StateError::MissingSpec`] if one isn't stored.
    pub fn keep_specs(
        &mut self,
        id: ApplyId,
        digests: impl IntoIterator<Item = SpecDigest>,
        entries: usize,
    ) -> Result<()> {
        for digest in digests {
            let spec = self.spec(digest)?;
            self.execute(
                "INSERT INTO kept (apply_id, spec_id) VALUES (?1, ?2)
                 ON CONFLICT (apply_id, spec_id) DO NOTHING",
                params![id.0, spec],
            )?;
        }
        self.execute(
            "DELETE FROM kept WHERE apply_id NOT IN
                 (SELECT DISTINCT apply_id FROM kept ORDER BY apply_id DESC LIMIT ?1)",
            params![entries],
        )?;
        Ok(())
    }

    /// Removes the specs without a record, an open intent or a kept entry, and the closed intents
    /// of finished applies. Returns the number of removed specs.
    ///
    /// Fails if the state can't be written.
    pub fn collect_garbage(&mut self) -> Result<usize> {
        self.execute(
            "DELETE FROM journal WHERE closed_at IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM applies WHERE id = apply_id AND status = ?1)",
            params![ApplyStatus::Running.as_str()],
        )?;
        self.specs.clear();
        self.execute(
            "DELETE FROM specs WHERE
                 NOT EXISTS (SELECT 1 FROM instances WHERE spec_id = specs.id)
                 AND NOT EXISTS (SELECT 1 FROM journal WHERE spec_id = specs.id)
                 AND NOT EXISTS (SELECT 1 FROM kept WHERE spec_id = specs.id)",
            &[],
        )
    }
}
