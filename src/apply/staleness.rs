//! Saved plans, looked at once more before they are carried out.
//!
//! In: a plan, the state as it is now, the cloud. Out: what moved on since the plan was made, a
//! line each. Must not: change the plan; one that moved on is refused.

use nstance_state::Snapshot;

use crate::clock::Clock;
use crate::fault_injection::InjectedFault;
use crate::plan::change::{Action, Plan};
use crate::plan::file;
use crate::provider::retry::RetryingReads;
use crate::provider::{Cloud, CloudError, Owner};
use crate::refresh::refresh;

/// What has changed since a plan was made; empty if the plan may run.
///
/// Rows say it where there is a state. Where there is none, as when the plan was made, there may
/// have been one in between, and lost: then the cloud says what came of it.
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
