//! A subnet for each new instance.
//!
//! In: pools, what the cloud says of their subnets, what this plan has placed so far. Out: a
//! subnet, or why there is none. May not: move an instance that exists.

use std::collections::HashMap;
use std::sync::Arc;

use crate::config::model::Config;
use crate::config::source::{Span, Spanned};
use crate::diagnostic::Diagnostic;
use crate::provider::rules::Rules;
use crate::provider::{Cloud, CloudError, SubnetInfo};

/// Places instances in subnets while a plan is made.
pub struct Placer<'a> {
    config: &'a Config,
    rules: Rules,
    /// `None` where the cloud wasn't asked: then nothing is known to be full.
    known: Option<HashMap<String, Room>>,
}

/// Where a new instance goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The first subnet of the pool that lies in the zone and has room.
    pub subnet: Arc<str>,
    /// The further ones, in order of preference; their room is taken only when they are.
    pub alternatives: Vec<Arc<str>>,
}

struct Room {
    zone: Option<String>,
    /// `None`: the cloud doesn't tell.
    free: Option<u32>,
}

impl<'a> Placer<'a> {
    /// A placer over the subnets of the pools named.
    pub fn new(
        config: &'a Config,
        rules: Rules,
        cloud: Option<&dyn Cloud>,
        pools: &[Arc<str>],
    ) -> Result<Self, CloudError> {
        let ids: Vec<String> = pools
            .iter()
            .filter_map(|pool| config.shard.subnet_pools.get(pool))
            .flat_map(|pool| pool.value.iter().map(|id| id.value.to_string()))
            .collect();
        let known = match cloud {
            Some(cloud) if !ids.is_empty() => Some(
                cloud
                    .subnets(&ids)?
                    .into_iter()
                    .map(
                        |SubnetInfo {
                             id,
                             zone,
                             available,
                         }| {
                            (
                                id,
                                Room {
                                    zone,
                                    free: available,
                                },
                            )
                        },
                    )
                    .collect(),
            ),
            _ => None,
        };
        Ok(Self {
            config,
            rules,
            known,
        })
    }

    /// Takes the first subnet of a pool, in order of preference, that lies in the zone and has
    /// room.
    pub fn place(
        &mut self,
        pool: &Spanned<Arc<str>>,
        zone: &str,
    ) -> Result<Placement, Box<Diagnostic>> {
        let Some(subnets) = self.config.shard.subnet_pools.get(&pool.value) else {
            // Checked when the configuration was read, except for pools that appear at run time.
            return Err(
                Diagnostic::error(format!("subnet pool `{}` has no subnets", pool.value))
                    .at(pool.span, "named here")
                    .into(),
            );
        };
        let Some(known) = &mut self.known else {
            // Which zones they lie in isn't known, so there are no alternatives.
            return subnets
                .value
                .first()
                .map(|id| Placement {
                    subnet: Arc::clone(&id.value),
                    alternatives: Vec::new(),
                })
                .ok_or_else(|| {
                    Diagnostic::error(format!("subnet pool `{}` is empty", pool.value)).into()
                });
        };
        let reserve = self.rules.reserved_addresses();
        let mut reasons = Vec::new();
        let mut placed: Option<Placement> = None;
        for id in &subnets.value {
            let Some(room) = known.get_mut(&*id.value) else {
                reasons.push((id.span, format!("`{}` doesn't exist", id.value)));
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
        if let Some(placed) = placed {
            return Ok(placed);
        }
        Err(no_room(pool, zone, reserve, &reasons).into())
    }
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
