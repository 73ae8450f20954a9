//! The `update` block: how instances of a group are replaced.
//!
//! In: nothing (data only). Out: [`Update`], as written in one layer or merged from several. Must
//! not: know the group's size; `plan::rollout` makes numbers of it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::source::Spanned;

/// `update` of one layer; unset keys are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Update {
    /// `max_unavailable`: how many instances may be missing from the size.
    pub max_unavailable: Option<Spanned<Amount>>,
    /// `max_surge`: how many instances there may be beyond the size.
    pub max_surge: Option<Spanned<Amount>>,
    /// `order`
    pub order: Option<Spanned<UpdateOrder>>,
    /// `max_creating`: how many instances are created at once; 0 means any number.
    pub max_creating: Option<u32>,
    /// `max_deleting`: how many instances are deleted at once; 0 means any number.
    pub max_deleting: Option<u32>,
    /// `canaries`: how many instances change first.
    pub canaries: Option<Amount>,
    /// `canary_pause`: what happens after the canaries.
    pub canary_pause: Option<Spanned<CanaryPause>>,
    /// `health`
    pub health: Option<Health>,
    /// `drain.command`: a program and its arguments.
    pub drain: Option<Arc<[Arc<str>]>>,
    /// `on_failure`
    pub on_failure: Option<OnFailure>,
    /// `max_failures`: how many instances may fail before `on_failure` applies.
    pub max_failures: Option<u32>,
    /// `zone_order`
    pub zone_order: Option<ZoneOrder>,
    /// `opportunistic`: only what is replaced anyway gets the new configuration.
    pub opportunistic: Option<bool>,
    /// `minimal_action`: the least that is done to an instance whose spec changed.
    pub minimal_action: Option<MinimalAction>,
}

/// The least that is done to an instance whose spec changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinimalAction {
    /// `update`: what the change needs.
    Update,
    /// `restart`
    Restart,
    /// `replace`
    Replace,
}

impl Update {
    /// This layer over a lower one, key by key; `health` and `drain` count as one key each.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        Self {
            max_unavailable: self.max_unavailable.or(lower.max_unavailable),
            max_surge: self.max_surge.or(lower.max_surge),
            order: self.order.or(lower.order),
            max_creating: self.max_creating.or(lower.max_creating),
            max_deleting: self.max_deleting.or(lower.max_deleting),
            canaries: self.canaries.or(lower.canaries),
            canary_pause: self.canary_pause.or(lower.canary_pause),
            health: self.health.clone().or_else(|| lower.health.clone()),
            drain: self.drain.clone().or_else(|| lower.drain.clone()),
            on_failure: self.on_failure.or(lower.on_failure),
            max_failures: self.max_failures.or(lower.max_failures),
            zone_order: self.zone_order.or(lower.zone_order),
            opportunistic: self.opportunistic.or(lower.opportunistic),
            minimal_action: self.minimal_action.or(lower.minimal_action),
        }
    }
}

/// A number of instances, or a percentage of the group's new size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// `3`
    Count(u32),
    /// `"25%"`
    Percent(u32),
}

impl Amount {
    /// The number of instances, rounded down.
    pub fn rounded_down(self, size: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => (u64::from(size) * u64::from(percent) / 100) as u32,
        }
    }

    /// The number of instances, rounded up.
    pub fn rounded_up(self, size: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => (u64::from(size) * u64::from(percent)).div_ceil(100) as u32,
        }
    }
}

/// `order`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateOrder {
    /// `create_first`: the successor is available before its predecessor is deleted.
    CreateFirst,
    /// `delete_first`: the predecessor is deleted, then its successor is created.
    DeleteFirst,
}

/// `canary_pause`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CanaryPause {
    /// A duration.
    For(Duration),
    /// `manual`: until `nstance rollout promote`.
    Manual,
}

/// `health`: when an instance counts as available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// `check`, with its `port`, `path`, `status` or `command`.
    pub check: Check,
    /// `min_healthy_time`, default 0: how long the check must succeed.
    pub min_healthy_time: Duration,
    /// `interval`, default 5 s: the time between two checks.
    pub interval: Duration,
    /// `timeout`, default 5 s: how long one check may take.
    pub timeout: Duration,
    /// `retries`, default 2: failed checks in a row that don't restart `min_healthy_time`.
    pub retries: u32,
    /// `deadline`; `None` means the cloud's `wait_timeout`: how long a new instance may take to
    /// become available.
    pub deadline: Option<Duration>,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            check: Check::Running,
            min_healthy_time: Duration::ZERO,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(5),
            retries: 2,
            deadline: None,
        }
    }
}

/// `health.check`. Every check needs a running instance first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// `running`
    Running,
    /// `tcp`: a connection to this port succeeds.
    Tcp {
        /// `port`
        port: u16,
    },
    /// `http` or `https`: a GET request returns the status. Certificates aren't verified, since the
    /// request goes to an address.
    Http {
        /// Whether it is `https`.
        tls: bool,
        /// `port`, default 80 or 443.
        port: u16,
        /// `path`, default `/`.
        path: Arc<str>,
        /// `status`, default 200.
        status: u16,
    },
    /// `command`: a program and its arguments; exit code 0 means healthy.
    Command {
        /// The program and its arguments.
        words: Arc<[Arc<str>]>,
    },
}

impl Check {
    /// Its name in `check`; for a GET request also the scheme of the URL.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Tcp { .. } => "tcp",
            Self::Http { tls: false, .. } => "http",
            Self::Http { tls: true, .. } => "https",
            Self::Command { .. } => "command",
        }
    }
}

/// `on_failure`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// `stop`: the group's other instances stay as they are.
    #[default]
    Stop,
    /// `rollback`: the group goes back to its last good configuration.
    Rollback,
    /// `continue`: the other instances change, as far as the limits allow.
    Continue,
}

/// `zone_order`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneOrder {
    /// `interleaved`: by slot, so that zones take turns.
    #[default]
    Interleaved,
    /// `one_at_a_time`: a zone begins when the one before it is done.
    OneAtATime,
}
