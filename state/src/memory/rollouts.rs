//! The rollout of a state in memory.
//!
//! In: the writes of a batch. Out: what the reads of [`crate::Store`] return. Must not: change a
//! record or the serial.

use std::collections::BTreeMap;

use crate::error::{Result, StateError};
use crate::model::{
    NewRequest, NewRollout, Rollout, RolloutGroup, RolloutId, RolloutRequest, RolloutRequestId,
    RolloutSlot, RolloutStatus, Timestamp,
};

/// The latest rollout, the requests to it, and what the last successful rollout of each group left.
#[derive(Clone, Debug, Default)]
pub(super) struct Rollouts {
    latest: Option<Kept>,
    newest: i64,
    pub(super) requests: Vec<RolloutRequest>,
    newest_request: i64,
    pub(super) last_good: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Kept {
    /// Without groups and slots.
    rollout: Rollout,
    plan: Option<Vec<u8>>,
    groups: BTreeMap<String, RolloutGroup>,
    /// By address and instance id.
    slots: BTreeMap<(String, String), RolloutSlot>,
}

impl Rollouts {
    pub(super) fn rollout(&self) -> Option<Rollout> {
        let kept = self.latest.as_ref()?;
        Some(Rollout {
            groups: kept.groups.values().cloned().collect(),
            slots: kept.slots.values().cloned().collect(),
            ..kept.rollout.clone()
        })
    }

    pub(super) fn plan(&self, id: RolloutId) -> Option<Vec<u8>> {
        let kept = self.latest.as_ref()?;
        kept.plan.clone().filter(|_| kept.rollout.id == id)
    }

    pub(super) fn start(&mut self, now: Timestamp, new: NewRollout) -> RolloutId {
        self.newest += 1;
        let id = RolloutId(self.newest);
        self.requests.clear();
        self.latest = Some(Kept {
            rollout: Rollout {
                id,
                plan_digest: new.plan_digest,
                status: new.status,
                started_at: now,
                changed_at: now,
                groups: Vec::new(),
                slots: Vec::new(),
            },
            plan: Some(new.plan),
            groups: BTreeMap::new(),
            slots: BTreeMap::new(),
        });
        id
    }

    pub(super) fn set_status(
        &mut self,
        now: Timestamp,
        id: RolloutId,
        status: RolloutStatus,
    ) -> Result<()> {
        let kept = self.kept(id)?;
        kept.rollout.status = status;
        kept.rollout.changed_at = now;
        if status.drops_plan() {
            kept.plan = None;
        }
        Ok(())
    }

    pub(super) fn set_plan(&mut self, id: RolloutId, plan: Vec<u8>) -> Result<()> {
        self.kept(id)?.plan = Some(plan);
        Ok(())
    }

    pub(super) fn put_group(
        &mut self,
        now: Timestamp,
        id: RolloutId,
        group: RolloutGroup,
    ) -> Result<()> {
        let group = RolloutGroup {
            since: now,
            ..group
        };
        self.kept(id)?.groups.insert(group.group.clone(), group);
        Ok(())
    }

    pub(super) fn put_slot(
        &mut self,
        now: Timestamp,
        id: RolloutId,
        slot: RolloutSlot,
    ) -> Result<()> {
        let slot = RolloutSlot { since: now, ..slot };
        let key = (slot.address.clone(), slot.instance_id.clone());
        self.kept(id)?.slots.insert(key, slot);
        Ok(())
    }

    pub(super) fn add_request(&mut self, now: Timestamp, new: NewRequest) {
        self.newest_request += 1;
        self.requests.push(RolloutRequest {
            id: RolloutRequestId(self.newest_request),
            group: new.group,
            kind: new.kind,
            who: new.who,
            at: now,
        });
    }

    pub(super) fn remove_request(&mut self, id: RolloutRequestId) {
        self.requests.retain(|request| request.id != id);
    }

    /// Removes everything; ids aren't used again.
    pub(super) fn clear(&mut self) {
        self.latest = None;
        self.requests.clear();
        self.last_good.clear();
    }

    fn kept(&mut self, id: RolloutId) -> Result<&mut Kept> {
        self.latest
            .as_mut()
            .filter(|kept| kept.rollout.id == id)
            .ok_or(StateError::NotOpen {
                what: "rollout",
                id: id.0,
            })
    }
}
