//! Chooses a subnet for each new instance.
//!
//! In: pools, the groups that use them, the cloud's subnets, and the placements of this plan so
//! far. Out: a subnet, or a finding. Must not: move an existing instance, or query the cloud if
//! there is nothing to place.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::address::GroupName;
use crate::config::model::Config;
use crate::config::source::{Span, Spanned};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::merge::group::MergedGroup;
use crate::provider::rules::{NamedPlace, Rules};
use crate::provider::{Cloud, CloudError};

/// The maximum number of groups named in a warning about an unusable subnet.
const USERS_SHOWN: usize = 3;

/// Places instances in subnets while a plan is made.
pub struct Placer<'a> {
    config: &'a Config,
    rules: Rules,
    /// `None` if no cloud calls are allowed; then no subnet counts as full.
    cloud: Option<&'a dyn Cloud>,
    users: HashMap<Arc<str>, Vec<User>>,
    /// The subnets queried so far; `None` for one that doesn't exist.
    known: HashMap<Arc<str>, Option<Room>>,
    /// Findings about a pool's subnets, by pool, so that each pool is checked once.
    judged: HashMap<Arc<str>, Vec<Diagnostic>>,
    failed: Option<CloudError>,
}

/// The subnet of a new instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The first subnet of the pool in the zone with free addresses.
    pub subnet: Arc<str>,
    /// The further candidates, in order of preference; apply tries them if the first is full.
    pub alternatives: Vec<Arc<str>>,
}

/// A group that uses a pool.
struct User {
    name: GroupName,
    /// Where the group names the pool.
    at: Span,
    zones: Vec<Arc<str>>,
}

struct Room {
    zone: Option<String>,
    /// `None` if the cloud doesn't report it.
    free: Option<u32>,
}

impl<'a> Placer<'a> {
    /// A placer for these groups, which must be all groups that use the pools.
    pub fn new<'g>(
        config: &'a Config,
        rules: Rules,
        cloud: Option<&'a dyn Cloud>,
        groups: impl IntoIterator<Item = &'g MergedGroup<'g>>,
    ) -> Self {
        let mut users: HashMap<_, Vec<User>> = HashMap::new();
        for group in groups {
            let of_slots = group.overrides.values();
            let of_slots = of_slots.filter_map(|slot| slot.subnet_pool.as_ref());
            let mut seen = BTreeSet::new();
            for pool in group.subnet_pool.iter().chain(of_slots) {
                if seen.insert(&pool.value) {
                    users
                        .entry(Arc::clone(&pool.value))
                        .or_default()
                        .push(User {
                            name: group.name.clone(),
                            at: pool.span,
                            zones: group.zone_names(),
                        });
                }
            }
        }
        Self {
            config,
            rules,
            cloud,
            users,
            known: HashMap::new(),
            judged: HashMap::new(),
            failed: None,
        }
    }

    /// The cloud's error, if a query failed; then nothing was placed and there is no plan.
    pub fn into_failure(self) -> Option<CloudError> {
        self.failed
    }

    /// Takes the first subnet of a pool in the zone with free addresses, in order of preference.
    ///
    /// Fails with `None` and a finding if there is none.
    pub fn place(
        &mut self,
        group: &GroupName,
        pool: &Spanned<Arc<str>>,
        zone: &str,
        findings: &mut Diagnostics,
    ) -> Option<Placement> {
        let Some(subnets) = self.config.shard.subnet_pools.get(&pool.value) else {
            // Already checked, except for pools that are added at run time.
            findings.push(
                Diagnostic::error(format!("subnet pool `{}` has no subnets", pool.value))
                    .at(pool.span, "named here")
                    .about(group),
            );
            return None;
        };
        if self.cloud.is_none() {
            // The subnets' zones are unknown, so there are no alternatives.
            let first = subnets.value.first().map(|id| Placement {
                subnet: Arc::clone(&id.value),
                alternatives: Vec::new(),
            });
            if first.is_none() {
                findings.push(
                    Diagnostic::error(format!("subnet pool `{}` is empty", pool.value))
                        .about(group),
                );
            }
            return first;
        }
        let pools = &self.config.shard.subnet_pools;
        self.look_up(
            pools
                .values()
                .flat_map(|pool| &pool.value)
                .map(|id| &id.value),
        )?;
        if !self.judged.contains_key(&pool.value) {
            let wrong = self.judge(&pool.value, &subnets.value);
            self.judged.insert(Arc::clone(&pool.value), wrong);
        }
        let wrong = &self.judged[&pool.value];
        if !wrong.is_empty() {
            findings.extend(wrong.iter().cloned());
            return None;
        }
        let reserve = self.rules.reserved_addresses();
        let mut reasons = Vec::new();
        let mut placed: Option<Placement> = None;
        for id in &subnets.value {
            let Some(Some(room)) = self.known.get_mut(&id.value) else {
                continue;
            };
            if let Some(lies_in) = room.zone.as_deref().filter(|lies_in| *lies_in != zone) {
                reasons.push((id.span, format!("`{}` lies in zone {lies_in}", id.value)));
                continue;
            }
            if let Some(free) = room.free.filter(|free| *free <= reserve) {
                reasons.push((id.span, format!("`{}` has {free} free addresses", id.value)));
                continue;
            }
            let subnet = Arc::clone(&id.value);
            match &mut placed {
                Some(placed) => placed.alternatives.push(subnet),
                None => {
                    room.free = room.free.map(|free| free - 1);
                    placed = Some(Placement {
                        subnet,
                        alternatives: Vec::new(),
                    });
                }
            }
        }
        if placed.is_none() {
            findings.push(no_room(pool, zone, reserve, &reasons).about(group));
        }
        placed
    }

    /// Whether the rendered args refer only to the instance's zone: the subnets of further network
    /// interfaces, and the zone itself. Adds findings for those that don't.
    pub fn fits(
        &mut self,
        group: &MergedGroup<'_>,
        slot: u32,
        args: &serde_json::Map<String, serde_json::Value>,
        zone: &str,
        findings: &mut Diagnostics,
    ) -> bool {
        let mut fits = true;
        for (path, named) in self.rules.places_named(args) {
            let (what, lies_in) = match named {
                NamedPlace::Zone(named) => ("zone", Some(Some(named.to_owned()))),
                NamedPlace::Subnet(_) if self.cloud.is_none() => continue,
                NamedPlace::Subnet(id) => {
                    if self.look_up([&id.into()]).is_none() {
                        return false;
                    }
                    let room = self.known.get(id).and_then(Option::as_ref);
                    ("subnet", room.map(|room| room.zone.clone()))
                }
            };
            let finding = match lies_in {
                Some(None) => continue,
                Some(Some(lies_in)) if lies_in == zone => continue,
                Some(Some(lies_in)) => Diagnostic::error(format!(
                    "an instance of {} should be in `{zone}`, and its args name a {what} in `{lies_in}`",
                    group.name
                ))
                .hint(format!(
                    "Name a {what} in `{zone}`, or set `zones` of the group to `{lies_in}`"
                )),
                None => Diagnostic::error(format!("args name a {what} that doesn't exist"))
                    .hint("Correct its id, or the account and region"),
            };
            let finding = match group.place_of(slot, &path) {
                Some(span) => finding.at(span, "named here"),
                None => finding,
            };
            findings.push(finding.about(&group.name));
            fits = false;
        }
        fits
    }

    /// Queries the subnets that aren't known yet. Fails with `None` if the cloud fails.
    fn look_up<'i>(&mut self, ids: impl IntoIterator<Item = &'i Arc<str>>) -> Option<()> {
        let cloud = self.cloud.filter(|_| self.failed.is_none())?;
        let missing: Vec<Arc<str>> = ids
            .into_iter()
            .filter(|id| !self.known.contains_key(*id))
            .cloned()
            .collect();
        if missing.is_empty() {
            return Some(());
        }
        let ids: Vec<String> = missing.iter().map(ToString::to_string).collect();
        match cloud.subnets(&ids) {
            Ok(found) => {
                self.known.extend(missing.into_iter().map(|id| (id, None)));
                self.known.extend(found.into_iter().map(|subnet| {
                    let room = Room {
                        zone: subnet.zone,
                        free: subnet.available,
                    };
                    (subnet.id.into(), Some(room))
                }));
                Some(())
            }
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }

    /// Findings about a pool's subnets: those that don't exist, and those in no zone of the groups
    /// that use the pool.
    fn judge(&self, pool: &str, subnets: &[Spanned<Arc<str>>]) -> Vec<Diagnostic> {
        let users = self.users.get(pool).map_or(&[][..], Vec::as_slice);
        let shard = &self.config.shard;
        // Groups that are added at run time are in the shard's zone.
        let dynamic = shard.dynamic_subnet_pools.iter();
        let dynamic = dynamic.filter(|name| &*name.value == pool);
        let zones: BTreeSet<&str> = users
            .iter()
            .flat_map(|user| &user.zones)
            .chain(dynamic.map(|_| &shard.infra.zone.value))
            .map(|zone| &**zone)
            .collect();
        let judge = |id: &Spanned<Arc<str>>| match self.known.get(&id.value)? {
            None => Some(
                Diagnostic::error(format!(
                    "the subnet `{}` of pool `{pool}` doesn't exist",
                    id.value
                ))
                .at(id.span, "there is no such subnet")
                .hint("Correct its id, or the account and region; or take it out of the pool"),
            ),
            Some(room) => {
                let lies_in = room.zone.as_deref()?;
                (!zones.contains(lies_in)).then(|| outside(pool, id, lies_in, &by_place(users)))
            }
        };
        subnets.iter().filter_map(judge).collect()
    }
}

/// Who names a pool at each place, and the zones of these groups.
fn by_place(users: &[User]) -> Vec<(Span, String)> {
    let mut together: Vec<(&User, Vec<&str>)> = Vec::new();
    for user in users {
        let alike = together
            .iter_mut()
            .find(|(first, _)| first.at == user.at && first.zones == user.zones);
        match alike {
            Some((_, names)) => names.push(user.name.as_str()),
            None => together.push((user, vec![user.name.as_str()])),
        }
    }
    let told = |(user, names): (&User, Vec<&str>)| {
        let names = match &names[..] {
            [first, second, _, ..] => format!("{first}, {second} and {} more", names.len() - 2),
            names => names.join(" and "),
        };
        (
            user.at,
            format!("the pool of {names}, in {}", user.zones.join(", ")),
        )
    };
    together.into_iter().map(told).collect()
}

fn outside(
    pool: &str,
    id: &Spanned<Arc<str>>,
    lies_in: &str,
    users: &[(Span, String)],
) -> Diagnostic {
    let mut finding = Diagnostic::error(format!(
        "the subnet `{}` is outside of the zones of the groups that use pool `{pool}`",
        id.value
    ))
    .at(id.span, format!("it lies in {lies_in}"));
    for (at, told) in users.iter().take(USERS_SHOWN) {
        finding = finding.related(*at, told.clone());
    }
    finding.hint(format!(
        "Take it out of the pool, or add `{lies_in}` to `zones` of a group that uses the pool"
    ))
}

fn no_room(
    pool: &Spanned<Arc<str>>,
    zone: &str,
    reserve: u32,
    reasons: &[(Span, String)],
) -> Diagnostic {
    let mut finding = Diagnostic::error(format!(
        "no subnet of pool `{}` has room in zone `{zone}`",
        pool.value
    ))
    .at(pool.span, "the pool is named here");
    for (span, reason) in reasons {
        finding = finding.related(*span, reason.clone());
    }
    if reserve > 0 {
        finding = finding.detail(format!(
            "a subnet counts as full at {reserve} free addresses"
        ));
    }
    finding.hint("Add a subnet to the pool, or make the group smaller")
}
