//! What the engine asks of the store.
//!
//! In: operations of one wave. Out: one transaction for all of them. Must not: touch the cloud.

use std::borrow::Cow;

use nstance_state::{
    ApplyId, HistoryItem, Intent, IntentId, Outcome, Record, SpecDigest, StateError, Store, Write,
};

use crate::clock::Timestamp;
use crate::fault_injection::InjectedFault;
use crate::redact;

/// One operation on the store; those of a wave are committed together.
#[derive(Debug, Clone)]
pub enum StoreOperation {
    /// What is about to be tried. Once committed it survives anything, and only then is it tried.
    Intend {
        /// The intent.
        intent: Box<Intent>,
        /// The spec it names.
        spec: Option<(SpecDigest, Vec<u8>)>,
    },
    /// What came of it.
    Settle(Box<Settlement>),
}

/// What came of a try, or a change of nothing but the record.
#[derive(Debug, Clone, Default)]
pub struct Settlement {
    /// The intent that is closed, and how.
    pub closes: Option<(IntentId, Outcome)>,
    /// Specs that the records name.
    pub specs: Vec<(SpecDigest, Vec<u8>)>,
    /// Records whose instance is deposed: another one gets their slot.
    pub deposes: Vec<Record>,
    /// Records that go, by our id.
    pub removes: Vec<String>,
    /// Records that come, or change.
    pub puts: Vec<Record>,
    /// What the history says of it.
    pub history: Option<HistoryItem>,
}

/// What a cloud says may repeat what it was asked.
fn without_secrets(text: String) -> String {
    match redact::text(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(covered) => covered,
    }
}

/// Commits a wave. When this returns, all of it is on disk; a crash before leaves none of it.
/// Answers the ids of the intents, in order; `None` for settlements.
pub fn commit(
    store: &mut dyn Store,
    now: Timestamp,
    apply: Option<ApplyId>,
    wave: Vec<StoreOperation>,
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
    let mut ids = store.commit(now.into(), batch)?.intents.into_iter();
    // What wasn't entered has no number; the engine needs one.
    let none = (injected_fault == InjectedFault::NoIntent).then_some(IntentId(0));
    let id_of = |opens: bool| opens.then(|| ids.next().or(none)).flatten();
    Ok(opens.into_iter().map(id_of).collect())
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
    // The slot is free before another gets it.
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
