//! Checks that a saved plan is still current before it is applied.
//!
//! In: a plan, the current state, the cloud. Out: a line for each difference since planning. Must
//! not: change the plan; a stale one is refused.

use nstance_state::Snapshot;

use crate::clock::Clock;
use crate::fault_injection::InjectedFault;
use crate::plan::change::{Action, Plan};
use crate::plan::file;
use crate::provider::retry::RetryingReads;
use crate::provider::{Cloud, CloudError, Owner};
use crate::refresh::refresh;

/// The differences since planning; empty means the plan may be applied.
///
/// Row versions show them if there is a state. A plan without a state also asks the cloud, since a
/// state may have been created and lost meanwhile.
///
/// Fails if the cloud fails.
pub fn moved_on(
    plan: &Plan,
    snapshot: Option<&Snapshot>,
    cloud: &dyn Cloud,
    clock: &dyn Clock,
    injected_fault: InjectedFault,
) -> Result<Vec<String>, CloudError> {
    if injected_fault == InjectedFault::NoStaleCheck {
        return Ok(Vec::new());
    }
    let moved = file::stale(plan, snapshot);
    if snapshot.is_some() || !moved.is_empty() {
        return Ok(moved);
    }
    let owner = Owner {
        cluster: plan.cluster.clone(),
        shard: plan.shard.clone(),
    };
    let cloud = RetryingReads::new(cloud, clock);
    let observed = refresh(&cloud, &owner, None, clock.now(), |_| {})?;
    let creates = plan.changes.iter().filter(|c| c.action == Action::Create);
    let filled = creates.filter_map(|change| {
        let address = &change.address;
        let instance = observed.unrecorded.iter().find(|instance| {
            instance.group.as_deref() == Some(address.group.as_str())
                && instance.slot == Some(address.slot)
        })?;
        let id = &instance.provider_id;
        Some(format!("{address}: {id} is there now, and isn't recorded"))
    });
    Ok(filled.collect())
}
