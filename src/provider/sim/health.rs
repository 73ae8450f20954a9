//! Whether instances are healthy.
//!
//! In: instances, the options, and the instances that `nstance sim fail` marked. Out: results of
//! health checks. Must not: change an instance.
//!
//! Health is a function of the instance, the seed and the time, computed when it is read.

use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::clock::Timestamp;
use crate::config::model::Check;
use crate::provider::{Attributes, LifecycleState, Observation, TargetHealth, TargetState};

use super::record::{OBSERVED, observation};
use super::timeline::Timeline;
use super::{SimError, World, faults, images, requests};

/// The health of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    /// Running and healthy.
    Healthy,
    /// Running, and healthy later.
    Starting,
    /// Running, and never healthy.
    Unhealthy,
    /// In another state than running.
    Down(LifecycleState),
}

/// The health of each of these instances with each of these load balancers.
///
/// Fails if the database does.
pub(super) fn of_targets(
    connection: &Connection,
    world: &World,
    now: Timestamp,
    provider_ids: &[String],
    load_balancers: &[String],
) -> Result<Vec<TargetHealth>, SimError> {
    let mut found = Vec::with_capacity(provider_ids.len() * load_balancers.len());
    for provider_id in provider_ids {
        let instance = Instance::find(connection, provider_id, now)?;
        let health = match &instance {
            Some(instance) => Some(instance.health(connection, world, now)?),
            None => None,
        };
        let registered = instance.and_then(|instance| instance.attributes.load_balancers);
        let registered = registered.unwrap_or_default();
        for load_balancer in load_balancers {
            let health = health.filter(|_| registered.contains(load_balancer));
            let (state, reason) = match health {
                None => (TargetState::Absent, None),
                Some(Health::Healthy) => (TargetState::Healthy, None),
                Some(Health::Starting | Health::Down(LifecycleState::Pending)) => (
                    TargetState::Initial,
                    Some("Initial health checks in progress".to_owned()),
                ),
                Some(Health::Unhealthy) => (
                    TargetState::Unhealthy,
                    Some("Health checks failed".to_owned()),
                ),
                Some(Health::Down(state)) => (
                    TargetState::Unhealthy,
                    Some(format!("Target is {}", state.as_str())),
                ),
            };
            found.push(TargetHealth {
                provider_id: provider_id.clone(),
                load_balancer: load_balancer.clone(),
                state,
                reason,
            });
        }
    }
    Ok(found)
}

/// The result of a health check.
///
/// Fails if the database does.
pub(super) fn probe(
    connection: &Connection,
    world: &World,
    now: Timestamp,
    provider_id: &str,
    check: &Check,
) -> Result<Result<(), String>, SimError> {
    let Some(instance) = Instance::find(connection, provider_id, now)? else {
        return Ok(Err("the instance doesn't exist".to_owned()));
    };
    let health = instance.health(connection, world, now)?;
    Ok(match (health, check) {
        (Health::Healthy, _) | (Health::Starting | Health::Unhealthy, Check::Running) => Ok(()),
        (Health::Down(state), _) => Err(format!("the instance is {}", state.as_str())),
        (Health::Starting | Health::Unhealthy, Check::Tcp { port }) => {
            Err(format!("port {port}: connection refused"))
        }
        (Health::Starting | Health::Unhealthy, Check::Http { path, status, .. }) => {
            let got = if *status == 503 { 500 } else { 503 };
            Err(format!("GET {path}: status {got}, expected {status}"))
        }
        (Health::Starting | Health::Unhealthy, Check::Command { .. }) => {
            Err("the instance is unhealthy".to_owned())
        }
    })
}

/// Whether `nstance sim fail` marked an instance.
///
/// Fails if the database does.
pub(super) fn is_failed(connection: &Connection, row: i64) -> Result<bool, SimError> {
    Ok(connection
        .prepare_cached("SELECT 1 FROM failed WHERE instance = ?1")?
        .query_row([row], |_| Ok(()))
        .optional()?
        .is_some())
}

/// Marks an instance as unhealthy, or removes the mark.
///
/// Fails if the database does.
pub(super) fn set_failed(
    transaction: &Transaction<'_>,
    row: i64,
    failed: bool,
) -> Result<(), SimError> {
    let change = if failed {
        "INSERT OR IGNORE INTO failed (instance) VALUES (?1)"
    } else {
        "DELETE FROM failed WHERE instance = ?1"
    };
    transaction.execute(change, [row])?;
    Ok(())
}

/// An instance that isn't deleted.
struct Instance {
    row: i64,
    timeline: Timeline,
    seen: Observation,
    attributes: Attributes,
}

impl Instance {
    /// Finds an instance; `None` if it doesn't exist or was deleted.
    ///
    /// Fails if the database does.
    fn find(
        connection: &Connection,
        provider_id: &str,
        now: Timestamp,
    ) -> Result<Option<Self>, SimError> {
        let mut statement = connection.prepare_cached(&format!(
            "{OBSERVED} AND i.provider_id = ?1 AND i.deleted_at IS NULL"
        ))?;
        let mut rows = statement.query([provider_id])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        let seen = observation(row, now)?;
        Ok(Some(Self {
            row: row.get(18)?,
            timeline: Timeline::read(row, 9)?,
            attributes: seen.attributes()?,
            seen,
        }))
    }

    fn health(
        &self,
        connection: &Connection,
        world: &World,
        now: Timestamp,
    ) -> Result<Health, SimError> {
        if self.seen.state != LifecycleState::Running {
            return Ok(Health::Down(self.seen.state));
        }
        if is_failed(connection, self.row)? || self.never_healthy(connection, world)? {
            return Ok(Health::Unhealthy);
        }
        // Started by hand: the time isn't stored.
        let since = self.timeline.running_since(now);
        let since = since.unwrap_or(self.seen.created_at);
        if now < since.after(world.options.healthy_after) {
            return Ok(Health::Starting);
        }
        Ok(Health::Healthy)
    }

    /// Whether it belongs to the share of its image's instances that never become healthy.
    fn never_healthy(&self, connection: &Connection, world: &World) -> Result<bool, SimError> {
        let shares = &world.options.unhealthy;
        let id = requests::image(&self.attributes.args).filter(|_| !shares.is_empty());
        let Some(id) = id else {
            return Ok(false);
        };
        let share = match shares.get(id) {
            Some(share) => Some(share),
            None => images::find(connection, world, id)?.and_then(|image| shares.get(&image.name)),
        };
        // On Google Cloud successors may have the same provider id.
        let name = self.seen.instance_id.as_deref();
        let name = name.unwrap_or(&self.seen.provider_id);
        let seed = world.options.seed.to_be_bytes();
        let of = [b"unhealthy".as_slice(), &seed, name.as_bytes()];
        Ok(share.is_some_and(|share| faults::chance(&of, *share)))
    }
}
