//! Replaces the whole content of a state.
//!
//! In: consistent [`Contents`]. Out: a state with these contents. Must not: lower a generation, so
//! that no token is ever reused.

use std::collections::HashSet;

use super::Transaction;
use crate::document::Contents;
use crate::error::{Result, StateError};
use crate::model::{Intent, Record, address};
use crate::sql::params;

impl Transaction<'_> {
    /// Fills a new state with `contents`, including the versions of its rows, so that references
    /// such as saved plans stay valid.
    ///
    /// Fails like [`Transaction::put_record`], and with [`StateError::Occupied`] if the state has
    /// records.
    pub fn restore(&mut self, contents: &Contents) -> Result<()> {
        let occupant = self.row(
            "SELECT name, slot, instance_id FROM instances JOIN groups ON groups.id = group_id",
            &[],
            |row| Ok((address(row.text(0)?, row.get(1)?), row.get(2)?)),
        )?;
        if let Some((address, instance_id)) = occupant {
            return Err(StateError::Occupied {
                address,
                instance_id,
            });
        }
        self.fill(contents, &contents.records)?;
        for record in &contents.records {
            self.execute(
                "UPDATE instances SET version = ?2, updated_at = ?3 WHERE instance_id = ?1",
                params![record.instance_id, record.version, record.updated_at.0],
            )?;
        }
        self.open_as_they_were(&contents.intents)?;
        self.execute(
            "UPDATE meta SET serial = ?1, created_at = ?2 WHERE id = 1",
            params![contents.serial, contents.created_at.0],
        )?;
        self.serial = contents.serial;
        self.changed = false;
        Ok(())
    }

    /// Replaces the contents `now` of a state by `contents`. Rows that differ get the next version,
    /// and the serial becomes greater than both. Removes the rollout, its requests and all that
    /// [`Transaction::put_last_good`] stored, since they are about the former records.
    ///
    /// Fails like [`Transaction::put_record`], and with [`StateError::Unsettled`] if an intent is
    /// open that isn't in `contents`.
    pub fn replace(&mut self, now: &Contents, contents: &Contents) -> Result<()> {
        let same = |a: &Intent, b: &Intent| {
            (&a.token, a.operation, &a.instance_id) == (&b.token, b.operation, &b.instance_id)
        };
        let open = now.intents.iter();
        let lost = open.filter(|own| !contents.intents.iter().any(|other| same(own, other)));
        if let Some(lost) = lost.clone().next() {
            return Err(StateError::Unsettled {
                address: lost.address.clone(),
            });
        }
        // Remove all differing records before adding any, since slots may be swapped.
        let differing = now.differences(contents);
        for (own, _) in &differing {
            if let Some(own) = own {
                self.remove_record(&own.instance_id)?;
            }
        }
        let coming: Vec<Record> = differing
            .iter()
            .filter_map(|(_, other)| (*other).cloned())
            .collect();
        self.serial = self.serial.max(contents.serial);
        self.fill(contents, &coming)?;
        let new: Vec<Intent> = contents
            .intents
            .iter()
            .filter(|other| !now.intents.iter().any(|own| same(own, other)))
            .cloned()
            .collect();
        self.open_as_they_were(&new)?;
        self.remove_rollouts()?;
        self.execute("DELETE FROM last_good", &[])?;
        self.changed = true;
        Ok(())
    }

    fn fill(&mut self, contents: &Contents, records: &[Record]) -> Result<()> {
        let needed: HashSet<_> = records
            .iter()
            .map(|record| record.spec)
            .chain(contents.intents.iter().filter_map(|intent| intent.spec))
            .collect();
        for (digest, body) in &contents.specs {
            if needed.contains(digest) {
                self.put_spec(*digest, body)?;
            }
        }
        for record in records {
            self.put_record(record.clone())?;
        }
        for ((group, slot), generation) in &contents.generations {
            let group = self.group(group)?;
            self.raise_generation(group, *slot, *generation)?;
        }
        Ok(())
    }

    fn open_as_they_were(&mut self, intents: &[Intent]) -> Result<()> {
        for intent in intents {
            let new = Intent {
                apply_id: None,
                ..intent.clone()
            };
            let id = self.open_intent(&new)?;
            self.execute(
                "UPDATE journal SET opened_at = ?2 WHERE id = ?1",
                params![id.0, intent.opened_at.0],
            )?;
        }
        Ok(())
    }
}
