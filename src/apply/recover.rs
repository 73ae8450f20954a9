//! Settles the intents that an earlier run left open in the journal.
//!
//! In: open intents, the cloud, and the configured addresses. Out: records of instances that were
//! found; closed intents. Must not: leave an intent open if the cloud's answer settles it.
//!
//! For an intent to create, recovery looks for the instance by its tags. If it runs, it is recorded,
//! and the next plan deletes it if it is no longer wanted. If it doesn't exist after the visibility
//! window, it was never created. If it is still wanted, recovery then sends the identical request
//! with the same token. That is safe even if the listing was stale. It also does so for an instance
//! that is still starting: its creation may yet fail, and the cloud tells only who asks for it.

use std::collections::HashMap;

use nstance_state::{
    ApplyId, ApplyStatus, HistoryIds, HistoryItem, Intent, NewApply, Operation, Outcome as Ending,
    Record, Snapshot, StateError, Store, Write,
};

use super::driver::find;
use super::journal::{self, Settlement, StoreOperation};
use super::nonce;
use super::requests::{self, CreateIntent};
use crate::address::Address;
use crate::clock::Clock;
use crate::fault_injection::InjectedFault;
use crate::provider::retry::RetryingReads;
use crate::provider::{
    Cloud, CloudError, CloudErrorKind, DeleteRequest, LifecycleState, Observation, Owner,
};
use crate::refresh::may_be_unseen_until;

/// A settled intent, for messages and the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// `tenant/group/slot`
    pub address: String,
    /// The intended operation.
    pub operation: Operation,
    /// The result, in words.
    pub result: String,
}

/// Why recovery failed.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The store failed.
    #[error("the state can't be read or written: {0}")]
    Store(#[from] StateError),
    /// The cloud failed, so the result of the intent is unknown.
    #[error("the cloud can't be asked about {address}, which an earlier run left open: {error}")]
    Cloud {
        /// The address of the intent.
        address: String,
        /// The cloud's error.
        error: CloudError,
    },
    /// The journal has an entry that this version can't read.
    #[error("the journal's entry for {address} can't be read: {why}")]
    Unreadable {
        /// The address of the intent.
        address: String,
        /// The error.
        why: String,
    },
}

/// Settles every open intent, with its own entry in the history. `wanted` returns whether an address
/// is still configured.
///
/// Fails as [`recover`] does; the entry then records the failure.
pub fn recover_with_entry(
    store: &mut dyn Store,
    cloud: &dyn Cloud,
    clock: &dyn Clock,
    owner: &Owner,
    entry: NewApply,
    wanted: &dyn Fn(&Address) -> bool,
) -> Result<Vec<Settled>, RecoverError> {
    let started = store.commit(clock.now().into(), vec![Write::StartApply(entry)])?;
    let apply = started.apply;
    let settled = recover(
        store,
        cloud,
        clock,
        owner,
        apply,
        wanted,
        InjectedFault::None,
    );
    let (status, count) = match &settled {
        Ok(settled) => (ApplyStatus::Succeeded, settled.len()),
        Err(_) => (ApplyStatus::Failed, 0),
    };
    let finish = Write::FinishApply {
        id: apply,
        status,
        summary_json: format!("{{\"settle\":{count}}}"),
    };
    store.commit(clock.now().into(), vec![finish])?;
    settled
}

/// Settles every open intent. `wanted` returns whether an address is still configured.
///
/// Fails if the store or the cloud fails, or if an intent can't be read.
pub fn recover(
    store: &mut dyn Store,
    cloud: &dyn Cloud,
    clock: &dyn Clock,
    owner: &Owner,
    apply: Option<ApplyId>,
    wanted: &dyn Fn(&Address) -> bool,
    injected_fault: InjectedFault,
) -> Result<Vec<Settled>, RecoverError> {
    let snapshot = store.snapshot()?;
    if snapshot.intents.is_empty() || injected_fault == InjectedFault::NoRecovery {
        return Ok(Vec::new());
    }
    // Fences off a process that opened the state earlier and lost its lock.
    store.lead()?;
    let cloud = &RetryingReads::new(cloud, clock);
    let listed = list_created(&snapshot.intents, cloud, clock, owner, injected_fault)?;
    let mut settled = Vec::new();
    for intent in &snapshot.intents {
        let unreadable = |why: String| RecoverError::Unreadable {
            address: intent.address.clone(),
            why,
        };
        let address: Address = intent
            .address
            .parse()
            .map_err(|error| unreadable(format!("{error}")))?;
        let (settlement, ending, result) = match intent.operation {
            Operation::Create => {
                let request: CreateIntent = serde_json::from_slice(&intent.request)
                    .map_err(|error| unreadable(error.to_string()))?;
                let open = OpenCreate {
                    intent,
                    address: &address,
                    request: &request,
                };
                open.settle(&snapshot, cloud, clock, owner, &listed, wanted(&address))?
            }
            // The next plan compares with the actual instance and repeats the update if necessary.
            Operation::Update => (
                Settlement::default(),
                Ending::Abandoned,
                "will be compared anew".to_owned(),
            ),
            // These are repeated where they are still needed.
            Operation::Register | Operation::Deregister | Operation::Drain => (
                Settlement::default(),
                Ending::Abandoned,
                "will be done again".to_owned(),
            ),
            Operation::Delete => settle_delete(intent, &snapshot, cloud, clock)?,
        };
        let settlement = Settlement {
            closes: Some((intent.id, ending)),
            history: Some(entry(intent, &snapshot, &settlement, &result)),
            ..settlement
        };
        let wave = vec![StoreOperation::Settle(Box::new(settlement))];
        journal::commit(store, clock.now(), apply, wave, Vec::new(), injected_fault)?;
        settled.push(Settled {
            address: intent.address.clone(),
            operation: intent.operation,
            result,
        });
    }
    Ok(settled)
}

/// The history item of a settled intent.
fn entry(
    intent: &Intent,
    snapshot: &Snapshot,
    settlement: &Settlement,
    result: &str,
) -> HistoryItem {
    let ids = |record: &Record| HistoryIds {
        instance_id: Some(record.instance_id.clone()),
        provider_id: Some(record.provider_id.clone()),
    };
    let before = snapshot.live(&intent.group, intent.slot);
    let stays = |record: &&Record| !settlement.removes.contains(&record.instance_id);
    HistoryItem {
        address: intent.address.clone(),
        action: format!("settle {}", intent.operation.as_str()),
        before: before.map(ids).unwrap_or_default(),
        after: settlement
            .puts
            .first()
            .or(before.filter(stays))
            .map(ids)
            .unwrap_or_default(),
        result: result.to_owned(),
        detail_json: "{}".to_owned(),
        at: nstance_state::Timestamp(0),
    }
}

/// The live instances with the instance ids of open intents to create.
///
/// A listing may lack a new instance until the visibility window has passed. Only the process that
/// crashed knew when it sent the request, so the window starts now.
///
/// Fails if the cloud fails.
fn list_created(
    intents: &[Intent],
    cloud: &dyn Cloud,
    clock: &dyn Clock,
    owner: &Owner,
    injected_fault: InjectedFault,
) -> Result<HashMap<String, Observation>, RecoverError> {
    let mut creates = intents
        .iter()
        .filter(|intent| intent.operation == Operation::Create);
    let Some(first) = creates.clone().next() else {
        return Ok(HashMap::new());
    };
    let listed = list_by_instance_id(cloud, owner, &first.address)?;
    let window = cloud.visibility_window();
    if window.is_zero()
        || injected_fault == InjectedFault::NoWindow
        || creates.all(|intent| listed.contains_key(&intent.instance_id))
    {
        return Ok(listed);
    }
    clock.sleep(window);
    list_by_instance_id(cloud, owner, &first.address)
}

fn list_by_instance_id(
    cloud: &dyn Cloud,
    owner: &Owner,
    address: &str,
) -> Result<HashMap<String, Observation>, RecoverError> {
    let mut found = HashMap::new();
    let mut page: Option<String> = None;
    loop {
        let listed = cloud
            .list(owner, page.as_deref())
            .map_err(|error| RecoverError::Cloud {
                address: address.to_owned(),
                error,
            })?;
        for observation in listed.instances {
            if let Some(id) = observation.instance_id.clone()
                && observation.state.is_live()
            {
                found.insert(id, observation);
            }
        }
        page = listed.next;
        if page.is_none() {
            return Ok(found);
        }
    }
}

/// An open intent to create an instance.
struct OpenCreate<'a> {
    intent: &'a Intent,
    address: &'a Address,
    request: &'a CreateIntent,
}

/// The result to store, how the intent ended, and a message.
type Resolution = (Settlement, Ending, String);

impl OpenCreate<'_> {
    fn settle(
        &self,
        snapshot: &Snapshot,
        cloud: &dyn Cloud,
        clock: &dyn Clock,
        owner: &Owner,
        listed: &HashMap<String, Observation>,
        wanted: bool,
    ) -> Result<Resolution, RecoverError> {
        let seen = listed.get(&self.intent.instance_id);
        if let Some(observation) = seen
            && !(wanted && observation.state == LifecycleState::Pending)
        {
            return Ok(self.found(snapshot, observation, clock));
        }
        if !wanted {
            let result = "was never made, and isn't wanted any more".to_owned();
            return Ok((Settlement::default(), Ending::Abandoned, result));
        }
        if seen.is_none() && !nonce::is_of_use(self.request.nonce_expires_at, clock.now()) {
            let result = "was never made, and its nonce has expired".to_owned();
            return Ok((Settlement::default(), Ending::Abandoned, result));
        }
        match cloud.create(&self.request.request) {
            Ok(observation) => {
                let result = format!("was made as {} and recorded", observation.provider_id);
                Ok((
                    self.adopt(snapshot, &observation, clock),
                    Ending::Done,
                    result,
                ))
            }
            Err(error) if error.kind == CloudErrorKind::TokenMismatch => {
                // The first listing may have been too early.
                let found = find(cloud, owner, &self.intent.instance_id)
                    .map_err(|error| self.unasked(error))?;
                Ok(match found {
                    Some(observation) => self.found(snapshot, &observation, clock),
                    None => (
                        Settlement::default(),
                        Ending::Abandoned,
                        "was made and is gone again".to_owned(),
                    ),
                })
            }
            // Still unknown, so the intent stays open.
            Err(error)
                if error.kind.is_retryable() || error.kind == CloudErrorKind::Unavailable =>
            {
                Err(self.unasked(error))
            }
            Err(error) => {
                let again = match seen {
                    Some(seen) => cloud
                        .describe(std::slice::from_ref(&seen.provider_id))
                        .map_err(|error| self.unasked(error))?,
                    None => Vec::new(),
                };
                Ok(match again.iter().find(|found| found.state.is_live()) {
                    Some(observation) => self.found(snapshot, observation, clock),
                    None => (
                        Settlement::default(),
                        Ending::Failed {
                            message: error.to_string(),
                        },
                        format!("was never made; trying again failed: {error}"),
                    ),
                })
            }
        }
    }

    /// The instance exists.
    fn found(
        &self,
        snapshot: &Snapshot,
        observation: &Observation,
        clock: &dyn Clock,
    ) -> Resolution {
        let result = format!("was found as {} and recorded", observation.provider_id);
        (
            self.adopt(snapshot, observation, clock),
            Ending::Adopted,
            result,
        )
    }

    fn unasked(&self, error: CloudError) -> RecoverError {
        RecoverError::Cloud {
            address: self.intent.address.clone(),
            error,
        }
    }

    fn adopt(
        &self,
        snapshot: &Snapshot,
        observation: &Observation,
        clock: &dyn Clock,
    ) -> Settlement {
        let deferred = self.request.deferred.as_deref();
        // A file that fails to render has no content; the next plan shows it and repairs it.
        let side = requests::complete(self.address, &self.request.side, deferred, observation)
            .unwrap_or_else(|_| self.request.side.clone());
        let recorded = |id: &Option<String>| {
            let id = id.as_deref()?;
            snapshot
                .records
                .iter()
                .find(|record| record.instance_id == id)
        };
        let mut settlement = Settlement {
            specs: vec![(side.digest, side.spec.to_bytes())],
            deposes: recorded(&self.request.deposes)
                .cloned()
                .into_iter()
                .collect(),
            removes: self.request.forgets.clone().into_iter().collect(),
            puts: vec![requests::record(
                self.address,
                &side,
                Some((observation, &self.request.request.tags)),
                clock.now(),
            )],
            ..Settlement::default()
        };
        // An instance that took the slot meanwhile becomes deposed.
        if let Some(holder) = snapshot.live(self.address.group.as_str(), self.address.slot) {
            let known = |record: &Record| record.instance_id == holder.instance_id;
            if holder.instance_id != self.intent.instance_id
                && !settlement.deposes.iter().any(known)
                && !settlement.removes.contains(&holder.instance_id)
            {
                settlement.deposes.push(holder.clone());
            }
        }
        settlement
    }
}

fn settle_delete(
    intent: &Intent,
    snapshot: &Snapshot,
    cloud: &dyn Cloud,
    clock: &dyn Clock,
) -> Result<Resolution, RecoverError> {
    let request: DeleteRequest =
        serde_json::from_slice(&intent.request).map_err(|error| RecoverError::Unreadable {
            address: intent.address.clone(),
            why: error.to_string(),
        })?;
    // A new instance may not be listed yet; treating it as deleted would lose it.
    let record = snapshot
        .records
        .iter()
        .find(|record| record.instance_id == intent.instance_id);
    if let Some(record) = record {
        let seen_from = may_be_unseen_until(record, cloud.visibility_window());
        clock.sleep(seen_from.since(clock.now()));
    }
    let described = cloud
        .describe(std::slice::from_ref(&request.provider_id))
        .map_err(|error| RecoverError::Cloud {
            address: intent.address.clone(),
            error,
        })?;
    Ok(
        if described
            .iter()
            .any(|observation| observation.state.is_live())
        {
            let result = "is still there; the plan decides anew".to_owned();
            (Settlement::default(), Ending::Abandoned, result)
        } else {
            let settlement = Settlement {
                removes: vec![intent.instance_id.clone()],
                ..Settlement::default()
            };
            (settlement, Ending::Done, "is deleted".to_owned())
        },
    )
}
