//! How a group's changes follow each other.
//!
//! In: the group's `update` block and its changes. Out: a [`Rollout`], the policy in numbers, which
//! the plan keeps; the [`stages`](Rollout::stages) that apply follows and the [`Wave`]s that reports
//! show. Must not: look at the cloud.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::change::{Action, Change, Mode, Plan, Reason};
use super::drift::STATE;
use crate::address::Address;
use crate::config::model::{CanaryPause, Health, OnFailure, Update, UpdateOrder, ZoneOrder};
use crate::provider::rules::Effect;

/// The policy of a group in numbers, as the plan fixes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// The group's new size.
    pub size: u32,
    /// How many instances may be unavailable, of the new size.
    pub max_unavailable: u32,
    /// How many instances there may be beyond the new size.
    pub max_surge: u32,
    /// How many instances are created at once; 0 means any number.
    pub max_creating: u32,
    /// How many instances are deleted at once; 0 means any number.
    pub max_deleting: u32,
    /// How many instances change first.
    pub canaries: u32,
    /// What happens after them.
    pub canary_pause: Option<CanaryPause>,
    /// When an instance is available.
    pub health: Health,
    /// Whether `health` is configured, so that new instances are waited for.
    pub checks_new: bool,
    /// The command that drains an instance.
    pub drain: Option<Arc<[Arc<str>]>>,
    /// What a failure does.
    pub on_failure: OnFailure,
    /// How many instances may fail first.
    pub max_failures: u32,
    /// The group's zones, in order, if one follows another.
    pub zones: Vec<Arc<str>>,
    /// Why one instance may be unavailable although no limit says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed: Option<Assumed>,
    /// The group's instances that the plan doesn't change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
}

/// Why `max_unavailable` is 1 without a configured limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assumed {
    /// Instances have args that only one instance can have.
    Exclusive,
    /// Instances restart.
    Restart,
}

/// An instance that counts for the limits and isn't changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its address.
    pub address: Address,
    /// Its instance id.
    pub instance_id: Arc<str>,
    /// Its provider id.
    pub provider_id: String,
    /// The load balancers that it is recorded with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancers: Vec<String>,
}

/// Changes that run side by side, as far as the limits allow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stage {
    /// The indices of its changes, in order.
    pub changes: Vec<usize>,
    /// Whether it is the canaries.
    pub is_canary: bool,
    /// The zone, if zones follow each other.
    pub zone: Option<Arc<str>>,
}

/// Changes that begin together if every instance becomes available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wave {
    /// The indices of its changes.
    pub changes: Vec<usize>,
    /// Whether it is of the canaries.
    pub is_canary: bool,
    /// The zone, if zones follow each other; `None` for canaries.
    pub zone: Option<Arc<str>>,
    /// Whether the canaries' pause follows.
    pub then_pause: bool,
}

/// A group's rollout, for reports.
#[derive(Debug)]
pub struct GroupRollout<'p> {
    /// `tenant/group`
    pub name: &'p str,
    /// Its policy.
    pub rollout: &'p Rollout,
    /// All its changes.
    pub changes: &'p [Change],
    /// The waves of those that take turns.
    pub waves: Vec<Wave>,
}

impl GroupRollout<'_> {
    /// Whether its instances are registered with load balancers.
    pub fn has_load_balancers(&self) -> bool {
        let mut after = self
            .changes
            .iter()
            .filter_map(|change| change.after.as_deref());
        after.any(|view| !view.spec.head.load_balancers.is_empty())
    }
}

/// Limits that can't be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Impossible(pub Assumed);

/// The limits of a block for a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// See [`Rollout::max_unavailable`].
    pub max_unavailable: u32,
    /// See [`Rollout::max_surge`].
    pub max_surge: u32,
    /// What comes first.
    pub order: UpdateOrder,
}

impl Bounds {
    /// The limits of a block. Surge is rounded up, unavailable down; if both come to zero, or an
    /// instance is deleted first, unavailable is at least 1. Without both, one instance more is
    /// created at a time.
    pub fn of(update: &Update, size: u32) -> Self {
        let unavailable = update
            .max_unavailable
            .map(|amount| amount.value.rounded_down(size));
        let surge = update.max_surge.map(|amount| amount.value.rounded_up(size));
        let order = update.order.map(|order| order.value);
        let (max_unavailable, max_surge) = match (unavailable, surge, order) {
            (None, None, Some(UpdateOrder::DeleteFirst)) => (1, 0),
            (None, None, _) => (0, 1),
            (Some(unavailable), None, Some(UpdateOrder::CreateFirst)) => (unavailable, 1),
            (Some(0), None, None) if update.has_no_unavailable() => (0, 1),
            (Some(unavailable), None, _) => (unavailable, 0),
            (None, Some(surge), Some(UpdateOrder::DeleteFirst)) => (1, surge),
            (None, Some(surge), _) => (0, surge),
            (Some(unavailable), Some(surge), _) => (unavailable, surge),
        };
        let order = match order {
            Some(UpdateOrder::DeleteFirst) => UpdateOrder::DeleteFirst,
            _ if max_surge == 0 => UpdateOrder::DeleteFirst,
            _ => UpdateOrder::CreateFirst,
        };
        let max_unavailable = match order {
            UpdateOrder::DeleteFirst => max_unavailable.max(1),
            UpdateOrder::CreateFirst => max_unavailable,
        };
        Self {
            max_unavailable,
            max_surge,
            order,
        }
    }
}

impl Update {
    /// Whether the block says that no instance may be unavailable.
    fn has_no_unavailable(&self) -> bool {
        self.max_unavailable
            .is_some_and(|amount| amount.value.rounded_down(100) == 0)
    }
}

impl Rollout {
    /// The policy of a block for a group's changes.
    ///
    /// Fails if an instance must be unavailable and the block forbids it.
    pub fn of<'c>(
        update: &Update,
        size: u32,
        zones: &[Arc<str>],
        changes: &(impl Iterator<Item = &'c Change> + Clone),
    ) -> Result<Self, Impossible> {
        let bounds = Bounds::of(update, size);
        let mut rollout = Self {
            size,
            max_unavailable: bounds.max_unavailable,
            max_surge: bounds.max_surge,
            max_creating: update.max_creating.unwrap_or(0),
            max_deleting: update.max_deleting.unwrap_or(0),
            canaries: update.canaries.map_or(0, |amount| amount.rounded_up(size)),
            canary_pause: update.canary_pause.map(|pause| pause.value),
            health: update.health.clone().unwrap_or_default(),
            checks_new: update.health.is_some(),
            drain: update.drain.clone(),
            on_failure: update.on_failure.unwrap_or_default(),
            max_failures: update.max_failures.unwrap_or(match update.on_failure {
                Some(OnFailure::Continue) => u32::MAX,
                _ => 0,
            }),
            zones: match update.zone_order {
                Some(ZoneOrder::OneAtATime) => zones.to_vec(),
                _ => Vec::new(),
            },
            assumed: None,
            members: Vec::new(),
        };
        if rollout.max_unavailable == 0 && size > 0 {
            let deposed: HashSet<u32> = changes
                .clone()
                .filter(|change| change.deposed.is_some())
                .map(|change| change.address.slot)
                .collect();
            // Where an earlier predecessor still exists, it serves meanwhile.
            let is_down = |change: &&Change| {
                change.action == Action::DeleteThenCreate && !deposed.contains(&change.address.slot)
            };
            rollout.assumed = if changes.clone().any(|change| is_down(&change)) {
                Some(Assumed::Exclusive)
            } else {
                changes
                    .clone()
                    .any(restarts_running)
                    .then_some(Assumed::Restart)
            };
            if let Some(assumed) = rollout.assumed {
                if update.has_no_unavailable() {
                    return Err(Impossible(assumed));
                }
                rollout.max_unavailable = 1;
            }
        }
        Ok(rollout)
    }

    /// The standard policy: one more at a time, none less, running, stop at the first failure.
    pub fn standard(size: u32) -> Self {
        let none = std::iter::empty::<&Change>();
        let standard = Self::of(&Update::default(), size, &[], &none);
        standard.expect("the standard policy has no limits to contradict")
    }

    /// The stages of a group's changes, by their indices: those that wait for nothing come in none.
    pub fn stages<'c>(
        &self,
        changes: impl Iterator<Item = (usize, &'c Change)> + Clone,
    ) -> Vec<Stage> {
        let protects = changes.clone().any(|(_, change)| takes_down(change));
        let has_turn = |change: &Change| {
            change.action.is_replace()
                || restarts(change)
                || (change.action == Action::Create && self.canaries > 0 && protects)
        };
        let mut turns: Vec<(usize, &Change)> =
            changes.filter(|(_, change)| has_turn(change)).collect();
        let place = |change: &Change| {
            let zone = change.after.as_deref().map(|after| &after.zone);
            let zone = zone.and_then(|zone| self.zones.iter().position(|known| known == zone));
            // What replaces an instance comes before what is added.
            (zone, change.action == Action::Create, change.address.slot)
        };
        turns.sort_by_key(|(_, change)| place(change));
        let mut stages: Vec<Stage> = Vec::new();
        let canaries = if protects { self.canaries as usize } else { 0 };
        for (turn, (index, change)) in turns.into_iter().enumerate() {
            let is_canary = turn < canaries;
            let zone = if self.zones.is_empty() {
                None
            } else {
                change.after.as_deref().map(|after| Arc::clone(&after.zone))
            };
            match stages.last_mut() {
                Some(last) if last.is_canary == is_canary && (is_canary || last.zone == zone) => {
                    last.changes.push(index);
                }
                _ => stages.push(Stage {
                    changes: vec![index],
                    is_canary,
                    zone,
                }),
            }
        }
        stages
    }

    /// The waves of the stages: how many changes begin together if all goes well.
    pub fn waves(&self, changes: &[Change], stages: &[Stage]) -> Vec<Wave> {
        let mut waves = Vec::new();
        for (position, stage) in stages.iter().enumerate() {
            let mut rest = stage.changes.as_slice();
            while !rest.is_empty() {
                let count = self.side_by_side(changes, rest);
                let (wave, later) = rest.split_at(count);
                waves.push(Wave {
                    changes: wave.to_vec(),
                    is_canary: stage.is_canary,
                    zone: stage.zone.clone().filter(|_| !stage.is_canary),
                    then_pause: stage.is_canary
                        && later.is_empty()
                        && self.canary_pause.is_some()
                        && position + 1 < stages.len(),
                });
                rest = later;
            }
        }
        waves
    }

    /// How many of the next changes fit into the limits together; at least one.
    fn side_by_side(&self, changes: &[Change], next: &[usize]) -> usize {
        let (mut more, mut less, mut creating) = (0, 0, 0);
        let fits = |index: &&usize| {
            match changes[**index].action {
                Action::CreateThenDelete => more += 1,
                Action::DeleteThenCreate | Action::Update => less += 1,
                _ => {}
            }
            creating += 1;
            more <= self.max_surge
                && less <= self.max_unavailable
                && creating <= limit(self.max_creating)
        };
        next.iter().take_while(fits).count().max(1)
    }

    /// How long the waves take at least: what instances must be healthy for, and the pause.
    pub fn least_duration(&self, waves: &[Wave]) -> Duration {
        let healthy = self.health.min_healthy_time * waves.len() as u32;
        let pause = match self.canary_pause {
            Some(CanaryPause::For(pause)) if waves.iter().any(|wave| wave.then_pause) => pause,
            _ => Duration::ZERO,
        };
        healthy + pause
    }

    /// Whether it is the standard policy and nothing about it is worth showing.
    pub fn is_standard(&self) -> bool {
        let standard = Self {
            members: self.members.clone(),
            ..Self::standard(self.size)
        };
        *self == standard
    }

    /// How many instances must stay available.
    pub fn floor(&self) -> usize {
        self.size.saturating_sub(self.max_unavailable) as usize
    }
}

impl Plan {
    /// The rollouts of the groups whose changes count for limits or whose new instances are checked,
    /// in the order of apply.
    pub fn rollouts(&self) -> Vec<GroupRollout<'_>> {
        if self.mode != Mode::Normal {
            return Vec::new();
        }
        let mut places = HashMap::new();
        let mut start = 0;
        for own in self
            .changes
            .chunk_by(|a, b| a.address.group == b.address.group)
        {
            places.insert(own[0].address.group.as_str(), (start, own));
            start += own.len();
        }
        let found = self.groups.iter().filter_map(|group| {
            let rollout = group.rollout.as_ref()?;
            let (start, changes) = *places.get(group.name.as_str())?;
            let is_new = |change: &Change| change.action == Action::Create && rollout.checks_new;
            if !changes
                .iter()
                .any(|change| is_limited(change) || is_new(change))
            {
                return None;
            }
            let stages = rollout.stages((start..).zip(changes));
            Some(GroupRollout {
                name: &group.name,
                rollout,
                changes,
                waves: rollout.waves(&self.changes, &stages),
            })
        });
        found.collect()
    }
}

/// A limit; 0 means any number.
pub fn limit(limit: u32) -> u32 {
    if limit == 0 { u32::MAX } else { limit }
}

/// Whether an update restarts the instance, or starts it.
pub fn restarts(change: &Change) -> bool {
    change.action == Action::Update
        && change
            .attributes
            .iter()
            .any(|attribute| attribute.effect == Effect::Restart || attribute.path == STATE)
}

/// Whether an update restarts an instance that runs.
fn restarts_running(change: &Change) -> bool {
    restarts(change)
        && !change
            .attributes
            .iter()
            .any(|attribute| attribute.path == STATE)
}

/// Whether a change takes an instance of the wanted size out of service, or replaces it.
fn takes_down(change: &Change) -> bool {
    change.action.is_replace() || restarts(change)
}

/// Whether a change counts for the limits, so that its group needs a [`Rollout`]'s members.
pub fn is_limited(change: &Change) -> bool {
    takes_down(change) || change.action == Action::Delete
}

/// Whether going back from a change may need a new instance.
pub fn rolls_back(change: &Change) -> bool {
    let deletes = change.action == Action::Delete && change.deposed.is_none();
    let replaces_missing = change.action == Action::Create && change.before.is_some();
    change.action.is_replace() || deletes || replaces_missing
}

/// Whether `opportunistic` leaves a change to later: nothing but the configuration asks for it.
pub fn is_optional(change: &Change) -> bool {
    takes_down(change) && are_configured(&change.reasons)
}

/// Whether all reasons come from the configuration.
pub fn are_configured(reasons: &[Reason]) -> bool {
    reasons.iter().all(|reason| {
        matches!(
            reason,
            Reason::NewerImage { .. }
                | Reason::CannotUpdate
                | Reason::Changed
                | Reason::LinkChanged { .. }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::Amount;
    use crate::config::source::{SourceId, Span, Spanned};

    #[test]
    fn limits_are_rounded_so_that_an_instance_can_change() {
        use UpdateOrder::{CreateFirst, DeleteFirst};
        let cases = [
            // (order, max_surge, max_unavailable, size) and what follows
            ((None, None, None, 5), (0, 1, CreateFirst)),
            ((None, Some(0), Some(10), 5), (1, 0, DeleteFirst)),
            ((None, Some(10), Some(10), 5), (0, 1, CreateFirst)),
            ((Some(DeleteFirst), None, None, 5), (1, 0, DeleteFirst)),
            (
                (Some(DeleteFirst), Some(10), Some(10), 5),
                (1, 1, DeleteFirst),
            ),
            (
                (Some(DeleteFirst), Some(10), Some(50), 5),
                (2, 1, DeleteFirst),
            ),
        ];
        let at = Span::new(SourceId(0), 0, 0);
        for ((order, surge, unavailable, size), (less, more, first)) in cases {
            let spanned = |percent| Spanned::new(Amount::Percent(percent), at);
            let update = Update {
                order: order.map(|order| Spanned::new(order, at)),
                max_surge: surge.map(spanned),
                max_unavailable: unavailable.map(spanned),
                ..Update::default()
            };
            let bounds = Bounds {
                max_unavailable: less,
                max_surge: more,
                order: first,
            };
            assert_eq!(Bounds::of(&update, size), bounds, "{update:?}");
        }
    }
}
