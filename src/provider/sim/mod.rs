//! The embedded cloud: a small cloud in a database file.
//!
//! In: calls of [`Cloud`]; the options; a clock. Out: the answers of a cloud. Must not: decide
//! what a cloud wouldn't, or read the configuration or the state.
//!
//! Its instances survive the process: the next `plan`, `nstance sim …` ([`admin`]) and other
//! processes see them. It can simulate AWS or GCP (`--sim`) with their ids, error codes, limits
//! and images.
//!
//! # Options
//!
//! `shard.infra.options`; durations in Go's syntax (`300ms`, `1m30s`). By default there are no
//! delays, no faults and no limits. Calls are counted in the database, across processes; until it
//! exists, each process counts separately.
//!
//! | option | means |
//! | --- | --- |
//! | `path` | the path of the database; default `.nstance/sim.db` |
//! | `seed` | seeds all random faults; the same seed and calls give the same faults |
//! | `latency` | how long a call takes; half of it before the effect, half after |
//! | `boot_time` | how long `pending` → `running` takes, and likewise stopping and shutting down |
//! | `wait_timeout` | how long apply waits for an instance to run; `10m` |
//! | `stale_listing` | how long a new instance is missing from `list` and `describe` |
//! | `error_rate` | 0–1: the share of calls that fail without effect (transient) |
//! | `lost_answer_rate` | 0–1: the share of calls with an effect that take it but time out |
//! | `unhealthy` | `{image id or name: share}`: the share, 0–1, of its instances that never become healthy |
//! | `healthy_after` | how long an instance runs before it is healthy; default 0 |
//! | `throttle` | calls per second, with bursts of one second's worth; others are throttled |
//! | `capacity` | `{instance type: n}`: more than n of that type fail with no capacity |
//! | `quota` | how many instances there can be at all |
//! | `subnets` | `{id: {zone, size}}`; without a zone it spans zones; size 251 |
//! | `images` | `[{id, name, created, owner, arch, tags}]` beside the [`catalogue()`] |
//! | `fail` | `[{operation, after, count, error}]`: of `operation` (`create`, `update`, `delete`, `register`, `deregister`, `list`, `describe`, `images`, `subnets`, `target-health`) the calls after the first `after` (0), `count` (1) of them, fail with `error` (`throttled`, `transient`, `ambiguous`, `capacity`, `quota`, `not-found`, `invalid`, `denied`, `token-mismatch`, `unavailable`); `ambiguous` has its effect |
//! | `strict_images` | instances need an image that exists and fits their architecture |
//! | `strict_subnets` | subnets that `subnets` doesn't list don't exist; else any id is a subnet that spans zones and has 251 addresses (GCP: 65,532) |

pub mod admin;
mod catalogue;
mod faults;
mod health;
pub mod images;
mod instances;
mod network;
pub mod options;
mod record;
mod requests;
pub mod rules;
mod store;
mod timeline;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::clock::{Clock, Timestamp};
use crate::config::model::{Check, ProviderKind};
use crate::diagnostic::counted;

use super::{
    Cloud, CloudError, CloudErrorKind, CreateRequest, DEFAULT_WAIT_TIMEOUT, DeleteRequest,
    ImageMatch, ImageQuery, Observation, Owner, Page, SubnetInfo, TargetHealth, TargetsRequest,
    UpdateRequest,
};
use faults::Verdict;
use options::Operation;
use store::Store;

pub use catalogue::catalogue;
pub use images::SimImage;
pub use options::{DEFAULT_PATH, SimOptions};

/// An error of the embedded cloud.
#[derive(Debug, Error)]
pub enum SimError {
    /// The folder of the database can't be made.
    #[error("can't make the folder of the simulated cloud: {source}: {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The database can't be opened.
    #[error("can't open the simulated cloud: {source}: {}", path.display())]
    Open {
        /// The database.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// The database was written by a newer version.
    #[error(
        "the simulated cloud has format {found}, this version knows up to {known}: {}",
        path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The database can't be written to.
    #[error("the simulated cloud can't be written to: {}", path.display())]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// The database failed.
    #[error("the simulated cloud's database failed: {0}")]
    Database(#[from] rusqlite::Error),
    /// What the database holds can't be read.
    #[error("the simulated cloud's database holds something else than expected: {0}")]
    Content(#[from] serde_json::Error),
    /// The request was refused, as a cloud refuses.
    #[error(transparent)]
    Refused(#[from] CloudError),
    /// There is no such instance.
    #[error("no instance \"{id}\"")]
    NotFound {
        /// What was asked for.
        id: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// More than one instance is meant.
    #[error("\"{prefix}\" could be {}", matches.join(", "))]
    Unclear {
        /// What was asked for.
        prefix: String,
        /// Some of what it could be.
        matches: Vec<String>,
    },
    /// The instance is terminated.
    #[error("the instance is terminated already: {id}")]
    Terminated {
        /// Its provider id.
        id: String,
    },
    /// Deleting everything wasn't confirmed.
    #[error("a reset deletes every instance and published image ({})", counted(*instances, "live instance"))]
    Unconfirmed {
        /// How many live instances there are.
        instances: usize,
    },
    /// Something given on the command line can't be read.
    #[error("{0}")]
    Argument(String),
    /// The answer couldn't be written.
    #[error("can't write the answer: {0}")]
    Output(#[from] std::io::Error),
}

impl SimError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound {
                nearest: Some(nearest),
                ..
            } => Some(format!("there is \"{nearest}\"")),
            Self::NotFound { nearest: None, .. } => {
                Some("`nstance sim list` shows what there is".to_owned())
            }
            Self::Unclear { .. } => Some("give more of the id".to_owned()),
            Self::Unconfirmed { .. } => Some("say `--yes` if that is meant".to_owned()),
            _ => None,
        }
    }
}

impl From<SimError> for CloudError {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Refused(error) => error,
            other => Self::new(
                CloudErrorKind::Unavailable,
                "SimulatedCloud",
                other.to_string(),
            ),
        }
    }
}

/// The settings that answers depend on.
struct World {
    options: SimOptions,
    provider: ProviderKind,
}

impl World {
    /// The latest creation time, in milliseconds, of instances that listings include.
    fn seen_if_created_by(&self, now: Timestamp) -> i64 {
        // Without staleness list everything, even instances created by a clock that was ahead.
        if self.options.stale_listing.is_zero() {
            return i64::MAX;
        }
        let stale = i64::try_from(self.options.stale_listing.as_millis()).unwrap_or(i64::MAX);
        now.0.saturating_sub(stale)
    }
}

/// The embedded cloud. Threads and processes may call it concurrently; each effect is one
/// transaction.
pub struct SimCloud {
    world: World,
    clock: Arc<dyn Clock>,
    store: Mutex<Store>,
}

impl SimCloud {
    /// Opens the cloud at `path`; the file is created with the first instance. `stands_in_for` is
    /// the configured provider.
    ///
    /// Fails if the file can't be opened.
    pub fn open(
        path: &Path,
        options: &SimOptions,
        stands_in_for: ProviderKind,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SimError> {
        Ok(Self {
            world: World {
                options: options.clone(),
                provider: match stands_in_for {
                    ProviderKind::Aws | ProviderKind::Gcp => stands_in_for,
                    ProviderKind::Sim | ProviderKind::Proxmox | ProviderKind::Yandex => {
                        ProviderKind::Sim
                    }
                },
            },
            clock,
            store: Mutex::new(Store::open(path)?),
        })
    }

    /// One call: waits, injects faults, runs `work`, waits.
    fn call<T>(
        &self,
        operation: Operation,
        subject: &str,
        work: impl FnOnce(&mut Store, Timestamp) -> Result<T, SimError>,
    ) -> Result<T, CloudError> {
        let one_way = self.world.options.latency / 2;
        self.wait(one_way);
        let outcome = self.take_place(operation, subject, work);
        self.wait(one_way);
        outcome.map_err(CloudError::from)
    }

    fn take_place<T>(
        &self,
        operation: Operation,
        subject: &str,
        work: impl FnOnce(&mut Store, Timestamp) -> Result<T, SimError>,
    ) -> Result<T, SimError> {
        // A panic elsewhere rolled back its transaction, so a poisoned store is still consistent.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        match faults::judge(&mut store, &self.world, now, operation, subject)? {
            Verdict::Refuse(error) => Err(error.into()),
            Verdict::Proceed => work(&mut store, now),
            Verdict::LoseAnswer => {
                // The caller never learns the result.
                let _ = work(&mut store, now);
                Err(faults::error(self.world.provider, CloudErrorKind::Ambiguous).into())
            }
        }
    }

    fn wait(&self, duration: Duration) {
        if !duration.is_zero() {
            self.clock.sleep(duration);
        }
    }
}

impl Cloud for SimCloud {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn list(&self, owner: &Owner, page: Option<&str>) -> Result<Page, CloudError> {
        self.call(Operation::List, page.unwrap_or_default(), |store, now| {
            instances::list(store.reader()?, &self.world, now, owner, page)
        })
    }

    fn describe(&self, provider_ids: &[String]) -> Result<Vec<Observation>, CloudError> {
        let subject = provider_ids.first().map_or("", String::as_str);
        self.call(Operation::Describe, subject, |store, now| {
            instances::describe(store.reader()?, &self.world, now, provider_ids)
        })
    }

    fn find_images(&self, query: &ImageQuery) -> Result<Vec<ImageMatch>, CloudError> {
        let subject = format!("{:?} {:?}", query.filters, query.family);
        self.call(Operation::Images, &subject, |store, _| {
            images::search(store.reader()?, &self.world, query)
        })
    }

    fn subnets(&self, ids: &[String]) -> Result<Vec<SubnetInfo>, CloudError> {
        let subject = ids.first().map_or("", String::as_str);
        self.call(Operation::Subnets, subject, |store, _| {
            network::describe(store.reader()?, &self.world, ids)
        })
    }

    fn create(&self, request: &CreateRequest) -> Result<Observation, CloudError> {
        self.call(Operation::Create, &request.token, |store, now| {
            let transaction = store.write()?;
            let made = instances::create(&transaction, &self.world, now, request)?;
            transaction.commit()?;
            Ok(made)
        })
    }

    fn update(&self, request: &UpdateRequest) -> Result<Observation, CloudError> {
        self.call(Operation::Update, &request.provider_id, |store, now| {
            let transaction = store.write()?;
            let changed = instances::update(&transaction, &self.world, now, request)?;
            transaction.commit()?;
            Ok(changed)
        })
    }

    fn register(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        self.call(Operation::Register, &request.provider_id, |store, now| {
            let transaction = store.write()?;
            instances::register(&transaction, &self.world, now, request)?;
            transaction.commit()?;
            Ok(())
        })
    }

    fn deregister(&self, request: &TargetsRequest) -> Result<(), CloudError> {
        self.call(Operation::Deregister, &request.provider_id, |store, now| {
            let transaction = store.write()?;
            instances::deregister(&transaction, now, request)?;
            transaction.commit()?;
            Ok(())
        })
    }

    fn target_health(
        &self,
        provider_ids: &[String],
        load_balancers: &[String],
    ) -> Result<Vec<TargetHealth>, CloudError> {
        let subject = provider_ids.first().map_or("", String::as_str);
        self.call(Operation::TargetHealth, subject, |store, now| {
            health::of_targets(
                store.reader()?,
                &self.world,
                now,
                provider_ids,
                load_balancers,
            )
        })
    }

    fn probe(&self, provider_id: &str, check: &Check) -> Option<Result<(), String>> {
        // A command runs here, not in the instance.
        if matches!(check, Check::Command { .. }) {
            return None;
        }
        // No call of the API: a health check goes to the instance itself.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let checked = store
            .reader()
            .and_then(|connection| health::probe(connection, &self.world, now, provider_id, check));
        Some(checked.unwrap_or_else(|error| Err(error.to_string())))
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), CloudError> {
        self.call(Operation::Delete, &request.provider_id, |store, now| {
            let transaction = store.write()?;
            instances::delete(&transaction, &self.world, now, request)?;
            transaction.commit()?;
            Ok(())
        })
    }

    fn wait_timeout(&self) -> Duration {
        let given = self.world.options.wait_timeout;
        given.unwrap_or(DEFAULT_WAIT_TIMEOUT)
    }

    fn visibility_window(&self) -> Duration {
        self.world.options.stale_listing
    }
}

/// SHA-256 of the pieces, each with its length before it, so that no two lists are the same text;
/// of a single piece as it is.
fn hash(pieces: &[&[u8]]) -> [u8; 32] {
    if let [single] = pieces {
        return Sha256::digest(single).into();
    }
    let mut hasher = Sha256::new();
    for piece in pieces {
        hasher.update((piece.len() as u64).to_be_bytes());
        hasher.update(piece);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests;
