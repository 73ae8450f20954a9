//! What the engine asks of the store.
//!
//! In: operations of one wave. Out: one transaction for all of them. May not: touch the cloud.

use nstance_state::{
    ApplyId, HistoryItem, IntentId, NewIntent, Outcome, Record, SpecDigest, StateError, Store,
};

use crate::clock::Timestamp;
use crate::sabotage::Sabotage;

/// One operation on the store; those of a wave are committed together.
#[derive(Debug, Clone)]
pub enum StoreOperation {
    /// What is about to be tried. Once committed it survives anything, and only then is it tried.
    Intend {
        /// The intent.
        intent: Box<NewIntent>,
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

/// Commits a wave. When this returns, all of it is on disk; a crash before leaves none of it.
/// Answers the ids of the intents, in order; `None` for settlements.
pub fn commit(
    store: &mut Store,
    now: Timestamp,
    apply: Option<ApplyId>,
    wave: Vec<StoreOperation>,
    sabotage: Sabotage,
) -> Result<Vec<Option<IntentId>>, StateError> {
    if sabotage == Sabotage::NoSync {
        let intends =
            |operation: &StoreOperation| matches!(operation, StoreOperation::Intend { .. });
        store.wait_for_disk(!wave.iter().any(intends))?;
    }
    store.transaction(now.into(), |transaction| {
        let mut ids = Vec::with_capacity(wave.len());
        for operation in wave {
            match operation {
                StoreOperation::Intend { .. } if sabotage == Sabotage::NoIntent => {
                    ids.push(Some(IntentId(0)));
                }
                StoreOperation::Settle(_) if sabotage == Sabotage::NoSettlement => ids.push(None),
                StoreOperation::Intend { mut intent, spec } => {
                    if let Some((digest, bytes)) = spec {
                        transaction.put_spec(digest, &bytes)?;
                    }
                    intent.apply_id = apply;
                    let opened = transaction.open_intents(std::slice::from_ref(&*intent))?;
                    ids.push(opened.first().copied());
                }
                StoreOperation::Settle(settlement) => {
                    let Settlement {
                        closes,
                        specs,
                        deposes,
                        removes,
                        puts,
                        history,
                    } = *settlement;
                    for (digest, bytes) in specs {
                        transaction.put_spec(digest, &bytes)?;
                    }
                    for record in deposes {
                        transaction.put_record(Record {
                            deposed: true,
                            ..record
                        })?;
                    }
                    for id in &removes {
                        transaction.remove_record(id)?;
                    }
                    for record in puts {
                        transaction.put_record(record)?;
                    }
                    if let (Some(apply), Some(item)) = (apply, history) {
                        transaction.record_history_item(apply, &item)?;
                    }
                    let closes = closes.filter(|_| sabotage != Sabotage::NoIntent);
                    if let Some((id, outcome)) = closes {
                        transaction.close_intent(id, outcome)?;
                    }
                    ids.push(None);
                }
            }
        }
        Ok(ids)
    })
}
