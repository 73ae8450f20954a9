//! Store operations of the engine.
//!
//! In: operations of one wave. Out: one transaction for all of them. Must not: call the cloud.

use std::borrow::Cow;

use nstance_state::{
    ApplyId, HistoryItem, Intent, IntentId, Outcome, Record, RolloutGroup, RolloutId, RolloutSlot,
    SpecDigest, StateError, Store, Write,
};

use super::protocol::Note;

use crate::clock::Timestamp;
use crate::fault_injection::InjectedFault;
use crate::redact;

/// One store operation; those of a wave are committed together.
#[derive(Debug, Clone)]
pub enum StoreOperation {
    /// Stores an intent. The call is sent only after this is committed.
    Intend {
        /// The intent.
        intent: Box<Intent>,
        /// The spec that it refers to.
        spec: Option<(SpecDigest, Vec<u8>)>,
    },
    /// Stores a result.
    Settle(Box<Settlement>),
}

/// The result of a call, or a change of the record only.
#[derive(Debug, Clone, Default)]
pub struct Settlement {
    /// The intent to close, with its outcome.
    pub closes: Option<(IntentId, Outcome)>,
    /// Specs that the records refer to.
    pub specs: Vec<(SpecDigest, Vec<u8>)>,
    /// Records of instances that become deposed, because another gets their slot.
    pub deposes: Vec<Record>,
    /// Records to remove, by instance id.
    pub removes: Vec<String>,
    /// Records to insert or update.
    pub puts: Vec<Record>,
    /// The entry for the history.
    pub history: Option<HistoryItem>,
}

/// Masks secrets in a cloud's message, which may quote the request.
fn without_secrets(text: String) -> String {
    match redact::text(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(covered) => covered,
    }
}

/// Commits a wave and notes durably; a crash before it returns leaves none of it. Returns the ids of intents
/// in order, and `None` for results.
///
/// Fails if the store fails.
pub fn commit(
    store: &mut dyn Store,
    now: Timestamp,
    apply: Option<ApplyId>,
    wave: Vec<StoreOperation>,
    notes: Vec<Write>,
    injected_fault: InjectedFault,
) -> Result<Vec<Option<IntentId>>, StateError> {
    let intends = |operation: &StoreOperation| matches!(operation, StoreOperation::Intend { .. });
    if injected_fault == InjectedFault::NoSync {
        store.wait_for_disk(!wave.iter().any(intends))?;
    }
    let opens: Vec<bool> = wave.iter().map(intends).collect();
    let mut batch = Vec::with_capacity(2 * wave.len());
    for operation in wave {
        match operation {
            StoreOperation::Intend { .. } if injected_fault == InjectedFault::NoIntent => {}
            StoreOperation::Settle(_) if injected_fault == InjectedFault::NoSettlement => {}
            StoreOperation::Intend { mut intent, spec } => {
                batch.extend(spec.map(put_spec));
                intent.apply_id = apply;
                batch.push(Write::OpenIntent(intent));
            }
            StoreOperation::Settle(mut settlement) => {
                if injected_fault == InjectedFault::NoIntent {
                    settlement.closes = None;
                }
                settle(*settlement, apply, &mut batch);
            }
        }
    }
    batch.extend(notes);
    let mut ids = store.commit(now.into(), batch)?.intents.into_iter();
    // What wasn't entered has no number; the engine needs one.
    let none = (injected_fault == InjectedFault::NoIntent).then_some(IntentId(0));
    let id_of = |opens: bool| opens.then(|| ids.next().or(none)).flatten();
    Ok(opens.into_iter().map(id_of).collect())
}

/// The writes of notes in a rollout's record.
pub fn notes(id: RolloutId, notes: Vec<Note>) -> Vec<Write> {
    let since = nstance_state::Timestamp(0);
    let write = |note| match note {
        Note::Slot {
            address,
            instance_id,
            stage,
            detail,
        } => Write::PutRolloutSlot {
            id: Some(id),
            slot: RolloutSlot {
                address: address.to_string(),
                instance_id,
                stage: stage.to_owned(),
                since,
                detail: without_secrets(detail),
            },
        },
        Note::Group {
            group,
            stage,
            promoted,
            detail,
        } => Write::PutRolloutGroup {
            id: Some(id),
            group: RolloutGroup {
                group,
                stage: stage.to_text(promoted),
                since,
                detail: without_secrets(detail),
            },
        },
    };
    notes.into_iter().map(write).collect()
}

fn put_spec((digest, bytes): (SpecDigest, Vec<u8>)) -> Write {
    Write::PutSpec { digest, bytes }
}

fn settle(settlement: Settlement, apply: Option<ApplyId>, batch: &mut Vec<Write>) {
    let Settlement {
        closes,
        specs,
        deposes,
        removes,
        puts,
        history,
    } = settlement;
    batch.extend(specs.into_iter().map(put_spec));
    // Free the slot before another instance gets it.
    batch.extend(deposes.into_iter().map(|record| {
        let deposed = true;
        Write::PutRecord(Box::new(Record { deposed, ..record }))
    }));
    let removes = removes.into_iter();
    batch.extend(removes.map(|instance_id| Write::RemoveRecord { instance_id }));
    let puts = puts.into_iter();
    batch.extend(puts.map(|record| Write::PutRecord(Box::new(record))));
    if let (Some(_), Some(mut item)) = (apply, history) {
        item.result = without_secrets(item.result);
        let item = Box::new(item);
        batch.push(Write::HistoryItem { id: apply, item });
    }
    batch.extend(closes.map(|(id, mut outcome)| {
        if let Outcome::Failed { message } = &mut outcome {
            *message = without_secrets(std::mem::take(message));
        }
        Write::CloseIntent { id, outcome }
    }));
}
