//! What can be had again: resolved images, fetched bodies; and what isn't needed any more.
//!
//! In: rows of caches. Out: nothing but how much was dropped. Changes no record and no serial.

use rusqlite::params;

use super::Transaction;
use crate::codec::{self, Effort};
use crate::error::Result;
use crate::model::{ApplyId, ApplyStatus, FetchedRow, ImageRow, SpecDigest};
use crate::row_crypto::Place;

#[expect(
    clippy::needless_pass_by_value,
    reason = "a store in memory keeps what it is given"
)]
impl Transaction<'_> {
    /// Stores what an image resolved to, in place of what was there.
    pub fn put_image(&mut self, image: ImageRow) -> Result<()> {
        self.execute(
            "INSERT OR REPLACE INTO images
                 (name, query_digest, image_id, source, resolved_at, detail)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
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

    /// Stores what a URL answered, in place of what was there.
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
            "INSERT OR REPLACE INTO fetched (url, digest, size, body, fetched_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
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

    /// Stores the cache of compared observations, in place of what was there. Sealed at rest:
    /// digests in it could be compared with guesses.
    pub fn put_observation_cache(&mut self, bytes: &[u8]) -> Result<()> {
        if self.crypto.is_sealed() {
            // Where a sealed state of schema 2 kept it; migrating can't find that row.
            let former = self.crypto.name("nstance:familiar");
            self.execute("DELETE FROM fetched WHERE url = ?1", [former])?;
        }
        let place = Place::observation_cache(self.now);
        self.execute(
            "INSERT OR REPLACE INTO observation_cache (id, size, body, updated_at)
             VALUES (1, ?1, ?2, ?3)",
            params![
                bytes.len(),
                self.crypto.pack(&place, bytes, Effort::Normal)?,
                self.now.0,
            ],
        )?;
        Ok(())
    }

    /// Keeps specs that an entry of the history may need again, though no record refers to them
    /// any more; and lets go what was kept for all but the latest `entries` that kept something.
    ///
    /// Errors: [`crate::StateError::MissingSpec`].
    pub fn keep_specs(
        &mut self,
        id: ApplyId,
        digests: impl IntoIterator<Item = SpecDigest>,
        entries: usize,
    ) -> Result<()> {
        for digest in digests {
            let spec = self.spec(digest)?;
            self.execute(
                "INSERT OR IGNORE INTO kept (apply_id, spec_id) VALUES (?1, ?2)",
                [id.0, spec],
            )?;
        }
        self.execute(
            "DELETE FROM kept WHERE apply_id NOT IN
                 (SELECT DISTINCT apply_id FROM kept ORDER BY apply_id DESC LIMIT ?1)",
            [i64::try_from(entries).unwrap_or(i64::MAX)],
        )?;
        Ok(())
    }

    /// Drops the specs that no record, no open intent and no kept entry refers to, and the closed intents of
    /// applies that have ended. Answers how many specs were dropped.
    pub fn collect_garbage(&mut self) -> Result<usize> {
        self.execute(
            "DELETE FROM journal WHERE closed_at IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM applies WHERE id = apply_id AND status = ?1)",
            [ApplyStatus::Running.as_str()],
        )?;
        self.specs.clear();
        self.execute(
            "DELETE FROM specs WHERE
                 NOT EXISTS (SELECT 1 FROM instances WHERE spec_id = specs.id)
                 AND NOT EXISTS (SELECT 1 FROM journal WHERE spec_id = specs.id)
                 AND NOT EXISTS (SELECT 1 FROM kept WHERE spec_id = specs.id)",
            (),
        )
    }
}
