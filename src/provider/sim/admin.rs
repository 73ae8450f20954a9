//! Manual changes in the embedded cloud, outside of planner and record: `nstance sim …`.
//!
//! In: ids as users type them. Out: rows to show. Must not: apply fault options or deletion
//! protection.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Row;
use serde::Serialize;

use crate::clock::{Clock, Timestamp};
use crate::diagnostic::nearest;
use crate::provider::{Attributes, LifecycleState};

use super::SimError;
use super::health;
use super::images::{self, SimImage};
use super::instances::{self, Live};
use super::store::Store;
use super::timeline::{self, Timeline};

/// The maximum number of matching instances that an ambiguous id's error names.
const MATCHES_SHOWN: usize = 5;

/// Administrative access to the embedded cloud. Its methods fail with [`SimError`] if the database
/// does.
pub struct Admin {
    store: Store,
    clock: Arc<dyn Clock>,
}

/// One instance, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstanceRow {
    /// The provider id.
    pub provider_id: String,
    /// The instance id, from its tags.
    pub instance_id: Option<String>,
    /// `tenant/group/slot`, from its tags.
    pub address: Option<String>,
    /// The cluster, if its tags say that it is managed.
    pub cluster: Option<String>,
    /// The shard, if its tags say that it is managed.
    pub shard: Option<String>,
    /// Its state.
    pub state: LifecycleState,
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
    /// The subnet.
    pub subnet: Option<String>,
    /// Its private IPv4 address.
    pub ip4: String,
    /// Its IPv6 address.
    pub ip6: Option<String>,
    /// When it was created.
    #[serde(serialize_with = "as_text")]
    pub created_at: Timestamp,
    #[serde(skip)]
    row: i64,
    #[serde(skip)]
    deleted: bool,
}

/// One instance with all details.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InstanceDetail {
    /// Its short form.
    #[serde(flatten)]
    pub row: InstanceRow,
    /// Whether [`Admin::fail`] marked it.
    pub unhealthy: bool,
    /// Its observed attributes.
    pub attributes: Attributes,
}

/// An image to publish. Missing fields come from the catalogue's image with the same name but
/// another date, or are generated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewImage {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: Option<String>,
    /// When it was created; by default now.
    pub created: Option<Timestamp>,
    /// Its owner.
    pub owner: Option<String>,
    /// `amd64` or `arm64`.
    pub arch: Option<String>,
    /// Its tags.
    pub tags: Vec<(String, String)>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn as_text<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

impl Admin {
    /// Opens the embedded cloud at `path`; it is empty if the file doesn't exist.
    ///
    /// Fails if the file can't be opened.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, SimError> {
        Ok(Self {
            store: Store::open(path)?,
            clock,
        })
    }

    /// The instances by creation time; with `all`, terminated ones too.
    ///
    /// Fails if the database does.
    pub fn list(&mut self, all: bool) -> Result<Vec<InstanceRow>, SimError> {
        let now = self.clock.now();
        let connection = self.store.reader()?;
        let mut statement = connection.prepare_cached(&format!(
            "SELECT id, provider_id, instance_id, group_name, slot, cluster, shard,
                    instance_type, zone, subnet, ip4, ip6, created_at, deleted_at IS NOT NULL, {}
             FROM instance ORDER BY id",
            timeline::COLUMNS
        ))?;
        let mut rows = statement.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let row = instance_row(row, now)?;
            if all || row.state != LifecycleState::Terminated {
                found.push(row);
            }
        }
        Ok(found)
    }

    /// One instance with all details.
    ///
    /// Fails if `id` matches no instance, or several.
    pub fn show(&mut self, id: &str) -> Result<InstanceDetail, SimError> {
        let row = self.find(id)?;
        let now = self.clock.now();
        let connection = self.store.reader()?;
        let seen = instances::observe(connection, row.row, now)?;
        Ok(InstanceDetail {
            unhealthy: health::is_failed(connection, row.row)?,
            attributes: seen.attributes()?,
            row,
        })
    }

    /// Stops an instance immediately.
    ///
    /// Fails if `id` matches no instance, or several.
    pub fn stop(&mut self, id: &str) -> Result<InstanceRow, SimError> {
        self.set_state(id, LifecycleState::Stopped)
    }

    /// Starts an instance immediately.
    ///
    /// Fails if `id` matches no instance, or several.
    pub fn start(&mut self, id: &str) -> Result<InstanceRow, SimError> {
        self.set_state(id, LifecycleState::Running)
    }

    /// Makes an instance unhealthy until [`Admin::recover`].
    ///
    /// Fails if `id` matches no instance, or several.
    pub fn fail(&mut self, id: &str) -> Result<InstanceRow, SimError> {
        self.change(id, |transaction, live, _| {
            health::set_failed(transaction, live.row, true)
        })
    }

    /// Ends the effect of [`Admin::fail`].
    ///
    /// Fails if `id` matches no instance, or several.
    pub fn recover(&mut self, id: &str) -> Result<InstanceRow, SimError> {
        self.change(id, |transaction, live, _| {
            health::set_failed(transaction, live.row, false)
        })
    }

    fn set_state(&mut self, id: &str, state: LifecycleState) -> Result<InstanceRow, SimError> {
        self.change(id, |transaction, live, _| {
            live.write_timeline(transaction, Timeline::steady(state))
        })
    }

    /// Terminates an instance immediately, even a protected one.
    ///
    /// Fails if `id` matches no instance, or several.
    pub fn delete(&mut self, id: &str) -> Result<InstanceRow, SimError> {
        self.change(id, |transaction, live, now| live.end(transaction, now, now))
    }

    /// Sets or removes a tag or label.
    ///
    /// Fails if `id` matches no instance, or several.
    pub fn set_tag(
        &mut self,
        id: &str,
        key: &str,
        value: Option<&str>,
    ) -> Result<InstanceRow, SimError> {
        self.change(id, |transaction, mut live, _| {
            let tags = &mut live.attributes.tags;
            match value {
                Some(value) => tags.insert(key.to_owned(), value.to_owned()),
                None => tags.remove(key),
            };
            let instance_type = live.attributes.instance_type.clone();
            live.write_attributes(transaction, &instance_type)
        })
    }

    /// Changes an instance's type, running or not.
    ///
    /// Fails if `id` matches no instance, or several.
    pub fn set_type(&mut self, id: &str, instance_type: &str) -> Result<InstanceRow, SimError> {
        self.change(id, |transaction, mut live, _| {
            let before =
                std::mem::replace(&mut live.attributes.instance_type, instance_type.to_owned());
            live.write_attributes(transaction, &before)
        })
    }

    /// Publishes an image; replaces one with the same id.
    ///
    /// Fails if the database does.
    pub fn publish_image(&mut self, image: NewImage) -> Result<SimImage, SimError> {
        let now = self.clock.now();
        let image = SimImage {
            id: image.id.unwrap_or_default(),
            name: image.name,
            created: image.created.map(images::creation_date).unwrap_or_default(),
            owner: image.owner.unwrap_or_default(),
            arch: image.arch.unwrap_or_default(),
            tags: image.tags.into_iter().collect(),
            ..SimImage::default()
        }
        .published(now);
        let text = serde_json::to_string(&image)?;
        let transaction = self.store.write()?;
        transaction.execute(
            "INSERT OR REPLACE INTO image (id, image) VALUES (?1, ?2)",
            (&image.id, text),
        )?;
        transaction.commit()?;
        Ok(image)
    }

    /// The published images, then those of the catalogue.
    ///
    /// Fails if the database does.
    pub fn images(&mut self) -> Result<Vec<SimImage>, SimError> {
        let mut images = images::published(self.store.reader()?)?;
        images.extend(super::catalogue());
        Ok(images)
    }

    /// Deletes everything: instances, published images, counters. Returns the number of live
    /// instances.
    ///
    /// Fails if the database does.
    pub fn reset(&mut self) -> Result<usize, SimError> {
        let live = self.list(false)?.len();
        if !self.store.exists()? {
            return Ok(live);
        }
        let transaction = self.store.write()?;
        // Keep the file, since other processes may have it open.
        transaction.execute_batch(
            "DELETE FROM token; DELETE FROM instance; DELETE FROM part; DELETE FROM tally;
             DELETE FROM address; DELETE FROM subnet; DELETE FROM image; DELETE FROM counter;
             DELETE FROM failed;",
        )?;
        transaction.commit()?;
        Ok(live)
    }

    /// Runs `work` on the instance for `id`, and returns the changed instance.
    fn change(
        &mut self,
        id: &str,
        work: impl FnOnce(&rusqlite::Transaction<'_>, Live, Timestamp) -> Result<(), SimError>,
    ) -> Result<InstanceRow, SimError> {
        let found = self.find(id)?;
        let now = self.clock.now();
        let transaction = self.store.write()?;
        let Some(live) = Live::find(&transaction, &found.provider_id, now)? else {
            return Err(SimError::Terminated {
                id: found.provider_id,
            });
        };
        work(&transaction, live, now)?;
        transaction.commit()?;
        let rows = self.list(true)?;
        rows.into_iter()
            .find(|row| row.row == found.row)
            .ok_or(SimError::NotFound {
                id: found.provider_id,
                nearest: None,
            })
    }

    /// The instance for `id`: a provider id, an instance id, an address, or a prefix of an id.
    /// Prefers live instances.
    fn find(&mut self, id: &str) -> Result<InstanceRow, SimError> {
        let mut rows = self.list(true)?;
        let names = |row: &InstanceRow, test: &dyn Fn(&str) -> bool| {
            test(&row.provider_id) || row.instance_id.as_deref().is_some_and(test)
        };
        let exact = |row: &InstanceRow| {
            names(row, &|name| name == id) || row.address.as_deref() == Some(id)
        };
        let begins = |row: &InstanceRow| !id.is_empty() && names(row, &|name| name.starts_with(id));
        for (deleted, test) in [
            (false, &exact as &dyn Fn(&InstanceRow) -> bool),
            (false, &begins),
            (true, &exact),
            (true, &begins),
        ] {
            let mut places = (0..rows.len())
                .filter(|place| rows[*place].deleted == deleted && test(&rows[*place]));
            let Some(first) = places.next() else {
                continue;
            };
            let others: Vec<usize> = places.take(MATCHES_SHOWN - 1).collect();
            if others.is_empty() {
                return Ok(rows.swap_remove(first));
            }
            return Err(SimError::Unclear {
                prefix: id.to_owned(),
                matches: std::iter::once(first)
                    .chain(others)
                    .map(|place| rows[place].provider_id.clone())
                    .collect(),
            });
        }
        let known = rows.iter().filter(|row| !row.deleted).flat_map(|row| {
            [
                Some(row.provider_id.as_str()),
                row.instance_id.as_deref(),
                row.address.as_deref(),
            ]
        });
        Err(SimError::NotFound {
            id: id.to_owned(),
            nearest: nearest(id, known.flatten()).map(str::to_owned),
        })
    }
}

fn instance_row(row: &Row<'_>, now: Timestamp) -> Result<InstanceRow, SimError> {
    let group: Option<String> = row.get(3)?;
    let slot: Option<u32> = row.get(4)?;
    Ok(InstanceRow {
        row: row.get(0)?,
        provider_id: row.get(1)?,
        instance_id: row.get(2)?,
        address: group
            .zip(slot)
            .map(|(group, slot)| format!("{group}/{slot}")),
        cluster: row.get(5)?,
        shard: row.get(6)?,
        instance_type: row.get(7)?,
        zone: row.get(8)?,
        subnet: row.get(9)?,
        ip4: row.get(10)?,
        ip6: row.get(11)?,
        created_at: Timestamp(row.get(12)?),
        deleted: row.get(13)?,
        state: Timeline::read(row, 14)?.at(now),
    })
}

impl InstanceRow {
    /// Its age.
    pub fn age(&self, now: Timestamp) -> Duration {
        now.since(self.created_at)
    }
}
