//! Changes of the record by hand, each one entry of the history.
//!
//! In: what to do to records, and what they are before and after. Out: all of it done in one
//! transaction, after a backup, with an entry that `state undo` can take back. Must not: touch the
//! cloud.

use nstance_state::{
    ApplyStatus, HistoryIds, HistoryItem, NewApply, Record, SqliteStore, StateError, Transaction,
};
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::session::{self, Session};
use crate::diagnostic::Diagnostic;

/// How many automatic backups of a state are kept.
pub const BACKUPS_KEPT: usize = 10;

/// How many changes by hand can be undone: as long are the specs of their records kept.
pub const UNDOABLE: usize = 20;

/// A record before and after; on one side it may not be there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    /// As it was.
    pub before: Option<Record>,
    /// As it is then. Its version is the store's affair.
    pub after: Option<Record>,
}

impl Step {
    /// The same the other way round.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            before: self.after,
            after: self.before,
        }
    }

    /// The history's word for it.
    fn action(&self) -> &'static str {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before.address() != after.address() => "mv",
            (Some(_), Some(_)) => "change",
            (None, _) => "record",
            (_, None) => "forget",
        }
    }

    fn item(&self) -> HistoryItem {
        let ids = |record: &Option<Record>| {
            record
                .as_ref()
                .map_or_else(HistoryIds::default, |record| HistoryIds {
                    instance_id: Some(record.instance_id.clone()),
                    provider_id: Some(record.provider_id.clone()),
                })
        };
        let address = self.before.as_ref().or(self.after.as_ref());
        HistoryItem {
            address: address.map(Record::address).unwrap_or_default(),
            action: self.action().to_owned(),
            before: ids(&self.before),
            after: ids(&self.after),
            result: "done".to_owned(),
            detail_json: serde_json::to_string(self).expect("a record's keys are strings"),
            at: nstance_state::Timestamp(0),
        }
    }
}

/// Whether an entry of the history is a change of the record by hand, which can be undone.
pub fn is_state_edit(operation: &str) -> bool {
    let words = ["state mv", "state rm", "state push", "import"];
    words.contains(&operation) || operation.starts_with("state undo ")
}

/// An entry of the history that begins.
pub fn entry(operation: &str, plan_digest: Option<String>) -> NewApply {
    let who = session::who();
    NewApply {
        who: who.user,
        host: who.host,
        pid: std::process::id(),
        operation: operation.to_owned(),
        plan_digest,
    }
}

/// Keeps a copy of the state as it is, before records change. That it can't be made is an error:
/// where a copy has no place, an apply mostly hasn't either, and it is better to stop before.
pub fn back_up(session: &Session<'_>, store: &SqliteStore) -> Result<(), Failure> {
    // One that never had a record has nothing to lose.
    if store.meta()?.serial == 0 {
        return Ok(());
    }
    let folder = SqliteStore::backups_of(&session.state_path()?);
    store
        .back_up_into(&folder, BACKUPS_KEPT)
        .map(|_| ())
        .map_err(|error| {
            let mut finding =
                Diagnostic::error("no backup of the state can be made, so nothing was changed")
                    .detail(format!("{error}\nbackups are kept in {}", folder.display()));
            finding.hints.extend(match error {
                StateError::NotFound { .. } | StateError::Io { .. } => {
                    Some("See what is in the way there".to_owned())
                }
                other => other.hint(),
            });
            Failure::new(finding)
        })
}

/// Does `change`, which is to bring about `steps`, under an entry `operation`.
pub fn operate(
    session: &Session<'_>,
    store: &mut SqliteStore,
    operation: &str,
    steps: &[Step],
    change: impl FnOnce(&mut Transaction<'_>) -> Result<(), StateError>,
) -> Result<(), Failure> {
    back_up(session, store)?;
    store.transaction(session.clock.now().into(), |transaction| {
        let apply = transaction.start_apply(entry(operation, None))?;
        change(transaction)?;
        for step in steps {
            transaction.record_history_item(apply, &step.item())?;
        }
        let before = steps.iter().filter_map(|step| step.before.as_ref());
        transaction.keep_specs(apply, before.map(|record| record.spec), UNDOABLE)?;
        transaction.finish_apply(apply, ApplyStatus::Succeeded, &summary(steps))?;
        transaction.collect_garbage()
    })?;
    Ok(())
}

/// How many of each, as JSON.
fn summary(steps: &[Step]) -> String {
    let mut counts = serde_json::Map::new();
    for step in steps {
        let count = counts.entry(step.action()).or_insert_with(|| 0.into());
        *count = (count.as_u64().unwrap_or_default() + 1).into();
    }
    serde_json::Value::Object(counts).to_string()
}
