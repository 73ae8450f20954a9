//! Edits of the state, each with an entry in the history.
//!
//! In: changes of records. Out: one transaction, after a backup, with an entry that `state undo`
//! can undo. Must not: call the cloud.

use nstance_state::{
    ApplyStatus, HistoryIds, HistoryItem, NewApply, Record, StateError, Store, Write, backups,
};
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::session::{self, Session};
use crate::diagnostic::Diagnostic;

/// The number of automatic backups kept per state.
pub const BACKUPS_KEPT: usize = 10;

/// The number of edits that can be undone, since the specs of their records are kept.
pub const UNDOABLE: usize = 20;

/// A record before and after; `None` if it doesn't exist on that side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    /// The record before.
    pub before: Option<Record>,
    /// The record after. The store sets its version.
    pub after: Option<Record>,
}

impl Step {
    /// The reverse change.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            before: self.after,
            after: self.before,
        }
    }

    /// The action's name in the history.
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

/// Whether an entry of the history is an edit, which can be undone.
pub fn is_state_edit(operation: &str) -> bool {
    let words = ["state mv", "state rm", "state push", "import"];
    words.contains(&operation) || operation.starts_with("state undo ")
}

/// A new entry of the history.
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

/// Backs up a state in a file before an edit.
///
/// Fails if the backup can't be written, since the edit would probably fail too.
pub fn back_up(session: &Session<'_>, store: &dyn Store) -> Result<(), Failure> {
    let Some(file) = session.backend()?.file() else {
        return Ok(());
    };
    // A state that never had a record has nothing to back up.
    if store.meta()?.serial == 0 {
        return Ok(());
    }
    let folder = backups::folder_of(file);
    backups::add(store, &folder, BACKUPS_KEPT)
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

/// Commits `change`, which must apply `steps`, with an entry for `operation`.
///
/// Fails if the backup or the commit fails.
pub fn operate(
    session: &Session<'_>,
    store: &mut dyn Store,
    operation: &str,
    steps: &[Step],
    change: Vec<Write>,
) -> Result<(), Failure> {
    back_up(session, store)?;
    let mut batch = vec![Write::StartApply(entry(operation, None))];
    batch.extend(change);
    batch.extend(steps.iter().map(|step| Write::HistoryItem {
        id: None,
        item: Box::new(step.item()),
    }));
    let before = steps.iter().filter_map(|step| step.before.as_ref());
    batch.extend([
        Write::KeepSpecs {
            id: None,
            digests: before.map(|record| record.spec).collect(),
            entries: UNDOABLE,
        },
        Write::FinishApply {
            id: None,
            status: ApplyStatus::Succeeded,
            summary_json: summary(steps),
        },
        Write::CollectGarbage,
    ]);
    store.commit(session.clock.now().into(), batch)?;
    Ok(())
}

/// The number of steps by action, as JSON.
fn summary(steps: &[Step]) -> String {
    let mut counts = serde_json::Map::new();
    for step in steps {
        let count = counts.entry(step.action()).or_insert_with(|| 0.into());
        *count = (count.as_u64().unwrap_or_default() + 1).into();
    }
    serde_json::Value::Object(counts).to_string()
}
