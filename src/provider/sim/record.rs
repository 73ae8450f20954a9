//! How an instance is stored, and read back fast.
//!
//! In: [`Attributes`]. Out: rows, [`Observation`]s. Must not: validate requests.
//!
//! Everything but tags is shared text (`part`, stored once by digest): 100,000 instances of one
//! group are 100,000 rows of tags. The identity in the tags has its own columns, as does the digest
//! of the attributes, so that a listing copies text and parses nothing.

use rusqlite::{OptionalExtension, Row, Transaction};
use serde_json::Value;

use crate::clock::Timestamp;
use crate::config::model::ProviderKind;
use crate::provider::rules::Rules;
use crate::provider::{Attributes, Observation};

use super::timeline::Timeline;
use super::{SimError, hash};

/// The columns for [`observation`]; `i` is the instance, `m` its other attributes, `u` its
/// userdata.
pub(super) const OBSERVED: &str = "
SELECT i.provider_id, i.instance_id, i.group_name, i.slot, i.zone, i.subnet, i.ip4, i.ip6,
       i.created_at, i.state, i.next_at, i.next_state, i.then_at, i.then_state, i.digest,
       m.text, i.tags, u.text, i.id
FROM instance i CROSS JOIN part m LEFT JOIN part u ON u.id = i.userdata
WHERE m.id = i.make ";

/// The observation of a row of [`OBSERVED`].
///
/// Fails if the row is invalid.
pub(super) fn observation(row: &Row<'_>, now: Timestamp) -> Result<Observation, SimError> {
    let attributes = assemble(text(row, 15)?, text(row, 16)?, optional_text(row, 17)?);
    Ok(Observation {
        provider_id: row.get(0)?,
        instance_id: row.get(1)?,
        group: row.get(2)?,
        slot: row.get(3)?,
        state: Timeline::read(row, 9)?.at(now),
        zone: row.get(4)?,
        subnet: row.get(5)?,
        ip4: row.get(6)?,
        ip6: row.get(7)?,
        created_at: Timestamp(row.get(8)?),
        ended_because: None,
        digest: row.get(14)?,
        attributes,
    })
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, SimError> {
    optional_text(row, column).map(Option::unwrap_or_default)
}

fn optional_text<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>, SimError> {
    row.get_ref(column)?
        .as_str_or_null()
        .map_err(|error| SimError::Database(error.into()))
}

/// Builds the JSON of [`Attributes`] from its parts.
fn assemble(make: &str, tags: &str, userdata: Option<&str>) -> Box<str> {
    let userdata_length = userdata.map_or(0, str::len);
    let mut json = String::with_capacity(make.len() + tags.len() + userdata_length + 24);
    json.push('{');
    json.push_str(make);
    json.push_str(",\"tags\":");
    json.push_str(tags);
    if let Some(userdata) = userdata {
        json.push_str(",\"userdata\":");
        json.push_str(userdata);
    }
    json.push('}');
    json.into_boxed_str()
}

/// The identity in an instance's tags.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    /// The cluster, if it is managed and has both this and the shard.
    pub cluster: Option<String>,
    /// The shard, if it is managed and has both this and the cluster.
    pub shard: Option<String>,
    /// The instance id.
    pub instance_id: Option<String>,
    /// `tenant/group`; `None` unless both are set.
    pub group: Option<String>,
    /// The slot.
    pub slot: Option<u32>,
}

impl Identity {
    fn of(provider: ProviderKind, attributes: &Attributes) -> Self {
        let rules = Rules::of(provider);
        let tag = |short: &str| attributes.tags.get(&rules.tag_key(short)).cloned();
        let managed = tag("managed").as_deref() == Some("true");
        let (cluster, shard) = match (tag("cluster-id"), tag("shard")) {
            (Some(cluster), Some(shard)) if managed => (Some(cluster), Some(shard)),
            _ => (None, None),
        };
        Self {
            cluster,
            shard,
            instance_id: tag("instance-id"),
            group: tag("tenant")
                .zip(tag("group"))
                .map(|(tenant, group)| format!("{tenant}/{group}")),
            slot: tag("slot").and_then(|slot| slot.parse().ok()),
        }
    }
}

/// Attributes as stored.
pub(super) struct Stored {
    pub identity: Identity,
    pub digest: [u8; 32],
    pub make: i64,
    pub userdata: Option<i64>,
    pub tags: String,
}

impl Stored {
    /// Stores the parts of `attributes` that are new.
    ///
    /// Fails if the database does.
    pub(super) fn keep(
        transaction: &Transaction<'_>,
        provider: ProviderKind,
        attributes: &Attributes,
    ) -> Result<Self, SimError> {
        let make = format!(
            "\"instance_type\":{},\"args\":{},\"load_balancers\":{}",
            Value::from(attributes.instance_type.as_str()),
            serde_json::to_string(&attributes.args)?,
            serde_json::to_string(attributes.load_balancers.as_deref().unwrap_or_default())?,
        );
        let tags = serde_json::to_string(&attributes.tags)?;
        let userdata = attributes
            .userdata
            .as_deref()
            .map(serde_json::to_string)
            .transpose()?;
        let whole = assemble(&make, &tags, userdata.as_deref());
        Ok(Self {
            identity: Identity::of(provider, attributes),
            digest: hash(&[whole.as_bytes()]),
            make: part(transaction, &make)?,
            userdata: userdata
                .map(|userdata| part(transaction, &userdata))
                .transpose()?,
            tags,
        })
    }

    /// Sets an instance's attributes.
    ///
    /// Fails if the database does.
    pub(super) fn write(
        &self,
        transaction: &Transaction<'_>,
        instance: i64,
        instance_type: &str,
    ) -> Result<(), SimError> {
        let identity = &self.identity;
        transaction
            .prepare_cached(
                "UPDATE instance SET cluster = ?2, shard = ?3, instance_id = ?4, group_name = ?5,
                 slot = ?6, instance_type = ?7, digest = ?8, make = ?9, userdata = ?10,
                 tags = ?11 WHERE id = ?1",
            )?
            .execute((
                instance,
                &identity.cluster,
                &identity.shard,
                &identity.instance_id,
                &identity.group,
                identity.slot,
                instance_type,
                self.digest,
                self.make,
                self.userdata,
                &self.tags,
            ))?;
        Ok(())
    }
}

/// The id of a shared text; adds it if it is new.
fn part(transaction: &Transaction<'_>, text: &str) -> Result<i64, SimError> {
    let digest = hash(&[text.as_bytes()]);
    let known = transaction
        .prepare_cached("SELECT id FROM part WHERE digest = ?1")?
        .query_row([digest], |row| row.get(0))
        .optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    transaction
        .prepare_cached("INSERT INTO part (digest, text) VALUES (?1, ?2)")?
        .execute((digest, text))?;
    Ok(transaction.last_insert_rowid())
}
