//! The way home: once nothing goes wrong any more, a few applies bring about what is declared.

use std::time::Duration;

use nstance::apply::engine::Request;
use nstance::fault_injection::InjectedFault;
use nstance::plan::change::Mode;

use crate::fleet::Fleet;
use crate::run::{Course, End, apply, plan_of};
use crate::world::{Broken, World};

/// The most applies that it may take to arrive, once nothing goes wrong any more.
pub(crate) const APPLIES: usize = 3;

/// Applies until nothing is left to do, then looks whether everything is as declared.
pub(crate) fn arrive(
    world: &mut World,
    fleet: &Fleet,
    mode: Mode,
    seed: u64,
    injected_fault: InjectedFault,
) -> Result<(), Broken> {
    let declared = if mode == Mode::Destroy {
        &Fleet::nothing()
    } else {
        fleet
    };
    let mut said = Vec::new();
    // Where the state was lost while a listing was late, slots may be filled more than once: each
    // that is too many is adopted first and deleted by the next apply.
    let mut applies = APPLIES + 2 * world.lost.len();
    if fleet.groups.iter().any(|group| group.policy.is_some()) {
        // One that ends what was going back, one that a paused rollout waits in.
        applies += 2;
    }
    for round in 0..=applies {
        let course = Course {
            seed: seed.wrapping_add(round as u64),
            mode,
            allow_delete: true,
            injected_fault,
            releases: true,
            retries: true,
            asks: if round == 0 {
                Vec::new()
            } else {
                vec![(0, Request::Promote)]
            },
            ..Course::default()
        };
        let ran = apply(world, fleet, &course)?;
        world.check()?;
        match ran.end {
            End::Empty => {
                world.pass(Duration::from_mins(1));
                // What was made a moment ago, and isn't shown yet, may have to be registered.
                let is_late = declared.groups.iter().any(|group| group.balanced)
                    && !world.weather.stale_listing.is_zero();
                if round < applies && is_late {
                    let plan = plan_of(world, fleet, mode)?;
                    if plan.summary.has_changes() {
                        continue;
                    }
                }
                world.check_arrived(declared)?;
                let plan = plan_of(world, fleet, mode)?;
                if plan.summary.has_changes() {
                    return Err(format!("the plan is empty no more: {:#?}", plan.changes));
                }
                let drift = plan
                    .drift
                    .iter()
                    .find(|drift| !world.lost.contains(&drift.provider_id));
                return drift.map_or(Ok(()), |drift| Err(format!("it drifts: {drift:?}")));
            }
            end => {
                if matches!(&end, End::Applied(outcome) if !outcome.is_complete()) {
                    world.delete_duplicates()?;
                }
                said.push(format!("{end:?}"));
            }
        }
        // An instance that is restarted is on its way down for a while, which counts as drift.
        world.pass(Duration::from_secs(3));
    }
    Err(format!("not there after {applies} applies: {said:#?}"))
}

/// The same of nstance as it should be.
#[cfg(test)]
pub(crate) fn arrive_unharmed(
    world: &mut World,
    fleet: &Fleet,
    mode: Mode,
    seed: u64,
) -> Result<(), Broken> {
    arrive(world, fleet, mode, seed, InjectedFault::None)
}
