//! Creates, updates, deletes and lists instances.
//!
//! In: requests of the [`crate::provider::Cloud`] trait. Out: rows and [`Observation`]s. Must not:
//! inject faults (`faults` does) or wait.

use rusqlite::{Connection, OptionalExtension, Transaction};
use serde_json::Value;

use crate::clock::Timestamp;
use crate::config::model::ProviderKind;
use crate::provider::{
    Attributes, CloudError, CloudErrorKind, CreateRequest, DeleteRequest, LifecycleState,
    Observation, Owner, Page, TargetsRequest, UpdateRequest,
};

use super::record::{OBSERVED, Stored, observation};
use super::requests::{
    check_image, decode_userdata, fixed_address, invalid, provider_id, sorted, wants_ip6,
};
use super::timeline::{self, Timeline};
use super::{SimError, World, faults, hash, network};

/// The number of instances per page.
pub(super) const PAGE_SIZE: usize = 1_000;

/// One page of an owner's instances.
///
/// Fails if the page token is invalid, or the database fails.
pub(super) fn list(
    connection: &Connection,
    world: &World,
    now: Timestamp,
    owner: &Owner,
    page: Option<&str>,
) -> Result<Page, SimError> {
    let after: i64 = match page {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| {
            invalid(
                "InvalidNextToken",
                format!("The token '{cursor}' is invalid"),
            )
        })?,
    };
    let mut statement = connection.prepare_cached(&format!(
        "{OBSERVED} AND i.cluster = ?1 AND i.shard = ?2 AND i.id > ?3
         AND i.created_at <= ?4 AND (i.gone_at IS NULL OR i.gone_at > ?5)
         ORDER BY i.id LIMIT ?6"
    ))?;
    let mut rows = statement.query((
        &owner.cluster,
        &owner.shard,
        after,
        world.seen_if_created_by(now),
        now.0,
        PAGE_SIZE as i64 + 1,
    ))?;
    let mut found = Page {
        instances: Vec::with_capacity(PAGE_SIZE),
        next: None,
    };
    let mut last: i64 = after;
    while let Some(row) = rows.next()? {
        if found.instances.len() == PAGE_SIZE {
            found.next = Some(last.to_string());
            break;
        }
        last = row.get(18)?;
        found.instances.push(observation(row, now)?);
    }
    Ok(found)
}

/// The existing and visible instances of `ids`.
///
/// Fails if the database does.
pub(super) fn describe(
    connection: &Connection,
    world: &World,
    now: Timestamp,
    ids: &[String],
) -> Result<Vec<Observation>, SimError> {
    let mut statement = connection.prepare_cached(&format!(
        "{OBSERVED} AND i.provider_id = ?1
         AND i.created_at <= ?2 AND (i.gone_at IS NULL OR i.gone_at > ?3)
         ORDER BY i.id DESC LIMIT 1"
    ))?;
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let mut rows = statement.query((id, world.seen_if_created_by(now), now.0))?;
        if let Some(row) = rows.next()? {
            found.push(observation(row, now)?);
        }
    }
    Ok(found)
}

/// The observation of one row.
///
/// Fails if the database does.
pub(super) fn observe(
    connection: &Connection,
    instance: i64,
    now: Timestamp,
) -> Result<Observation, SimError> {
    let mut statement = connection.prepare_cached(&format!("{OBSERVED} AND i.id = ?1"))?;
    let mut rows = statement.query([instance])?;
    match rows.next()? {
        Some(row) => observation(row, now),
        None => Err(rusqlite::Error::QueryReturnedNoRows.into()),
    }
}

/// Creates an instance, or returns the one that this token created.
///
/// Fails if the request is invalid, or on missing capacity.
pub(super) fn create(
    transaction: &Transaction<'_>,
    world: &World,
    now: Timestamp,
    request: &CreateRequest,
) -> Result<Observation, SimError> {
    if request.token.is_empty() || request.token.len() > 64 || !request.token.is_ascii() {
        return Err(invalid(
            "InvalidParameterValue",
            "A token has 1 to 64 ASCII characters".to_owned(),
        ));
    }
    let fingerprint = hash(&[&serde_json::to_vec(request)?]);
    let used: Option<([u8; 32], i64, bool)> = transaction
        .prepare_cached(
            "SELECT t.request, t.instance, i.deleted_at IS NOT NULL
             FROM token t JOIN instance i ON i.id = t.instance WHERE t.token = ?1",
        )?
        .query_row([&request.token], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    match used {
        Some((_, _, true)) => {
            let mut error = faults::error(world.provider, CloudErrorKind::TokenMismatch);
            error.message = format!(
                "The token '{}' was used for an instance that is already terminated",
                request.token
            );
            return Err(error.into());
        }
        Some((same, instance, false)) if same == fingerprint => {
            return observe(transaction, instance, now);
        }
        Some(_) => {
            return Err(faults::error(world.provider, CloudErrorKind::TokenMismatch).into());
        }
        None => {}
    }

    check_image(transaction, world, request)?;
    let userdata = decode_userdata(world.provider, request.userdata.as_deref())?;
    let provider_id = provider_id(transaction, world, request)?;
    check_room(transaction, world, &request.instance_type, true)?;
    let ip4 = network::take(
        transaction,
        world,
        request.subnet.as_deref(),
        &request.zone,
        &request.token,
        fixed_address(&request.args)?,
    )?;
    let ip6 = wants_ip6(&request.args).then(|| network::ip6_of(ip4).to_string());

    let attributes = Attributes {
        instance_type: request.instance_type.clone(),
        args: request.args.clone(),
        tags: request.tags.clone(),
        userdata,
        load_balancers: Some(Vec::new()),
        watched: None,
        form: None,
    };
    let stored = Stored::keep(transaction, world.provider, &attributes)?;
    let [state, next_at, next_state, ..] =
        Timeline::booting(now, world.options.boot_time).columns();
    transaction
        .prepare_cached(
            "INSERT INTO instance (provider, provider_id, cluster, shard, instance_id,
                 group_name, slot, instance_type, zone, subnet, ip4, ip6, created_at, state,
                 next_at, next_state, digest, make, userdata, tags)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 ?18, ?19, ?20)",
        )?
        .execute(rusqlite::params![
            world.provider.as_str(),
            provider_id,
            stored.identity.cluster,
            stored.identity.shard,
            stored.identity.instance_id,
            stored.identity.group,
            stored.identity.slot,
            request.instance_type,
            request.zone,
            request.subnet,
            ip4.to_string(),
            ip6,
            now.0,
            state,
            next_at,
            next_state,
            stored.digest,
            stored.make,
            stored.userdata,
            stored.tags,
        ])?;
    let instance = transaction.last_insert_rowid();
    transaction
        .prepare_cached("INSERT INTO token (token, request, instance) VALUES (?1, ?2, ?3)")?
        .execute((&request.token, fingerprint, instance))?;
    tally(transaction, &request.instance_type, 1)?;
    observe(transaction, instance, now)
}

/// An instance that isn't deleted, to be changed.
pub(super) struct Live {
    pub row: i64,
    pub provider: ProviderKind,
    pub subnet: Option<String>,
    pub ip4: String,
    pub timeline: Timeline,
    pub attributes: Attributes,
}

impl Live {
    /// Finds an instance; `None` if it doesn't exist or was deleted.
    ///
    /// Fails if the database does.
    pub(super) fn find(
        transaction: &Transaction<'_>,
        provider_id: &str,
        now: Timestamp,
    ) -> Result<Option<Self>, SimError> {
        let mut statement = transaction.prepare_cached(&format!(
            "SELECT id, provider, subnet, ip4, {} FROM instance
             WHERE provider_id = ?1 AND deleted_at IS NULL",
            timeline::COLUMNS
        ))?;
        let mut rows = statement.query([provider_id])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let id = row.get(0)?;
        let provider: String = row.get(1)?;
        Ok(Some(Self {
            row: id,
            provider: match provider.as_str() {
                "aws" => ProviderKind::Aws,
                "gcp" => ProviderKind::Gcp,
                _ => ProviderKind::Sim,
            },
            subnet: row.get(2)?,
            ip4: row.get(3)?,
            timeline: Timeline::read(row, 4)?,
            attributes: observe(transaction, id, now)?.attributes()?,
        }))
    }

    /// Stores `self.attributes`; `before` is the previous instance type.
    ///
    /// Fails if the database does.
    pub(super) fn write_attributes(
        &self,
        transaction: &Transaction<'_>,
        before: &str,
    ) -> Result<(), SimError> {
        let stored = Stored::keep(transaction, self.provider, &self.attributes)?;
        let instance_type = &self.attributes.instance_type;
        stored.write(transaction, self.row, instance_type)?;
        if instance_type != before {
            tally(transaction, before, -1)?;
            tally(transaction, instance_type, 1)?;
        }
        Ok(())
    }

    /// Stores the load balancers that it is registered with, if they differ.
    ///
    /// Fails if the database does.
    fn set_load_balancers(
        mut self,
        transaction: &Transaction<'_>,
        wanted: Vec<String>,
    ) -> Result<(), SimError> {
        if self.attributes.load_balancers.as_ref() == Some(&wanted) {
            return Ok(());
        }
        self.attributes.load_balancers = Some(wanted);
        let instance_type = self.attributes.instance_type.clone();
        self.write_attributes(transaction, &instance_type)
    }

    /// Stores the states of the instance.
    ///
    /// Fails if the database does.
    pub(super) fn write_timeline(
        &self,
        transaction: &Transaction<'_>,
        timeline: Timeline,
    ) -> Result<(), SimError> {
        let [state, next_at, next_state, then_at, then_state] = timeline.columns();
        transaction
            .prepare_cached(
                "UPDATE instance SET state = ?2, next_at = ?3, next_state = ?4, then_at = ?5,
                 then_state = ?6 WHERE id = ?1",
            )?
            .execute((self.row, state, next_at, next_state, then_at, then_state))?;
        Ok(())
    }

    /// Deregisters it and releases its address; it is terminated at `gone_at`.
    ///
    /// Fails if the database does.
    pub(super) fn end(
        mut self,
        transaction: &Transaction<'_>,
        now: Timestamp,
        gone_at: Timestamp,
    ) -> Result<(), SimError> {
        self.attributes.load_balancers = Some(Vec::new());
        let instance_type = self.attributes.instance_type.clone();
        self.write_attributes(transaction, &instance_type)?;
        self.write_timeline(transaction, Timeline::ending(now, gone_at.since(now)))?;
        transaction
            .prepare_cached("UPDATE instance SET deleted_at = ?2, gone_at = ?3 WHERE id = ?1")?
            .execute((self.row, now.0, gone_at.0))?;
        network::release(transaction, self.subnet.as_deref(), &self.ip4)?;
        tally(transaction, &instance_type, -1)
    }
}

/// Updates what `request.changed` names.
///
/// Fails if it can't change in place.
pub(super) fn update(
    transaction: &Transaction<'_>,
    world: &World,
    now: Timestamp,
    request: &UpdateRequest,
) -> Result<Observation, SimError> {
    let Some(mut live) = Live::find(transaction, &request.provider_id, now)? else {
        return Err(missing(world, &request.provider_id));
    };
    let before = live.attributes.clone();
    for path in &request.changed {
        change(world, &mut live.attributes, request, path)?;
    }
    let stopped = live.timeline.at(now) == LifecycleState::Stopped;
    let starts = stopped && request.changed.iter().any(|path| path == "state");
    if live.attributes == before && !starts {
        return observe(transaction, live.row, now);
    }
    if !request.restart && !stopped && needs_stop(world.provider, &before, &live.attributes) {
        return Err(invalid(
            "IncorrectInstanceState",
            format!("The instance '{}' is not stopped", request.provider_id),
        ));
    }
    if live.attributes.instance_type != before.instance_type {
        check_room(transaction, world, &live.attributes.instance_type, false)?;
    }
    live.write_attributes(transaction, &before.instance_type)?;
    if request.restart || starts {
        let takes = world.options.boot_time;
        let timeline = if stopped {
            Timeline::booting(now, takes)
        } else {
            Timeline::restarting(now, takes)
        };
        live.write_timeline(transaction, timeline)?;
    }
    observe(transaction, live.row, now)
}

/// The error that an instance doesn't exist.
fn missing(world: &World, provider_id: &str) -> SimError {
    let mut error = faults::error(world.provider, CloudErrorKind::NotFound);
    error.message = format!("The instance '{provider_id}' does not exist");
    error.into()
}

/// Registers an instance with load balancers.
///
/// Fails if it doesn't exist.
pub(super) fn register(
    transaction: &Transaction<'_>,
    world: &World,
    now: Timestamp,
    request: &TargetsRequest,
) -> Result<(), SimError> {
    let Some(live) = Live::find(transaction, &request.provider_id, now)? else {
        return Err(missing(world, &request.provider_id));
    };
    let mut wanted = live.attributes.load_balancers.clone().unwrap_or_default();
    wanted.extend_from_slice(&request.load_balancers);
    live.set_load_balancers(transaction, sorted(&wanted))
}

/// Deregisters an instance from load balancers; succeeds if it doesn't exist.
///
/// Fails if the database does.
pub(super) fn deregister(
    transaction: &Transaction<'_>,
    now: Timestamp,
    request: &TargetsRequest,
) -> Result<(), SimError> {
    let Some(live) = Live::find(transaction, &request.provider_id, now)? else {
        return Ok(());
    };
    let mut wanted = live.attributes.load_balancers.clone().unwrap_or_default();
    wanted.retain(|name| !request.load_balancers.contains(name));
    live.set_load_balancers(transaction, wanted)
}

/// Sets one path of the attributes to the requested value.
fn change(
    world: &World,
    attributes: &mut Attributes,
    request: &UpdateRequest,
    path: &str,
) -> Result<(), SimError> {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    match head {
        // Starts a stopped instance.
        "state" => {}
        "instance_type" => attributes.instance_type.clone_from(&request.instance_type),
        "tags" => attributes.tags.clone_from(&request.tags),
        "userdata" => {
            attributes.userdata = decode_userdata(world.provider, request.userdata.as_deref())?;
        }
        "load_balancers" => attributes.load_balancers = Some(sorted(&request.load_balancers)),
        "args" if rest.is_empty() => attributes.args.clone_from(&request.args),
        "args" => {
            let member = rest.split(['.', '[']).next().unwrap_or(rest);
            if fixed_args(world.provider).contains(&member) {
                return Err(invalid(
                    "InvalidParameterCombination",
                    format!("'{member}' can't be changed while the instance exists"),
                ));
            }
            match request.args.get(member) {
                Some(value) => {
                    attributes.args.insert(member.to_owned(), value.clone());
                }
                None => {
                    attributes.args.shift_remove(member);
                }
            }
        }
        _ => {
            return Err(invalid(
                "InvalidParameterValue",
                format!("'{path}' is nothing that an instance has"),
            ));
        }
    }
    Ok(())
}

/// Common args that the simulated provider can't change in an existing instance.
fn fixed_args(provider: ProviderKind) -> &'static [&'static str] {
    match provider {
        ProviderKind::Aws => &["ImageId", "KeyName", "SubnetId"],
        ProviderKind::Gcp => &["SourceImage"],
        ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => {
            &["ImageId", "SourceImage"]
        }
    }
}

/// Whether the simulated provider requires the instance to be stopped for this change.
fn needs_stop(provider: ProviderKind, before: &Attributes, after: &Attributes) -> bool {
    before.instance_type != after.instance_type
        || (provider == ProviderKind::Aws && before.userdata != after.userdata)
}

/// Deletes an instance; succeeds if it doesn't exist.
///
/// Fails if the instance is protected, or the database fails.
pub(super) fn delete(
    transaction: &Transaction<'_>,
    world: &World,
    now: Timestamp,
    request: &DeleteRequest,
) -> Result<(), SimError> {
    let Some(live) = Live::find(transaction, &request.provider_id, now)? else {
        return Ok(());
    };
    let args = &live.attributes.args;
    for protection in ["DisableApiTermination", "deletionProtection"] {
        if args.get(protection) == Some(&Value::Bool(true)) {
            return Err(CloudError::new(
                CloudErrorKind::Denied,
                "OperationNotPermitted",
                format!(
                    "The instance '{}' may not be terminated: modify its '{protection}' \
                     attribute and try again",
                    request.provider_id
                ),
            )
            .into());
        }
    }
    live.end(transaction, now, now.after(world.options.boot_time))
}

/// Updates the counts of instances, in total and by type, so that limits don't count rows.
///
/// Fails if the database does.
pub(super) fn tally(
    transaction: &Transaction<'_>,
    instance_type: &str,
    by: i64,
) -> Result<(), SimError> {
    transaction
        .prepare_cached(
            "INSERT INTO tally (instance_type, live) VALUES (?1, ?2)
             ON CONFLICT DO UPDATE SET live = live + ?2",
        )?
        .execute((instance_type, by))?;
    Ok(())
}

/// Fails if the quota or the capacity is exceeded.
fn check_room(
    transaction: &Transaction<'_>,
    world: &World,
    instance_type: &str,
    is_new: bool,
) -> Result<(), SimError> {
    if let Some(quota) = world.options.quota.filter(|_| is_new) {
        let live: i64 =
            transaction.query_row("SELECT coalesce(sum(live), 0) FROM tally", [], |row| {
                row.get(0)
            })?;
        if live >= i64::from(quota) {
            return Err(faults::error(world.provider, CloudErrorKind::Quota).into());
        }
    }
    if let Some(capacity) = world.options.capacity.get(instance_type) {
        let live: Option<i64> = transaction
            .prepare_cached("SELECT live FROM tally WHERE instance_type = ?1")?
            .query_row([instance_type], |row| row.get(0))
            .optional()?;
        if live.unwrap_or(0) >= i64::from(*capacity) {
            return Err(faults::error(world.provider, CloudErrorKind::Capacity).into());
        }
    }
    Ok(())
}
