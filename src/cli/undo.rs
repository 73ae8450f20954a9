//! `nstance state undo`: undo an edit of the state.
//!
//! In: an entry of the history. Out: its records exactly as before, with higher versions. Must not:
//! call the cloud, undo an apply, or undo an edit if its records have changed since.

use std::collections::{BTreeMap, HashSet};
use std::io::IsTerminal as _;

use nstance_state::{Apply, Held, Record, Snapshot, Store, Write};
use serde_json::{Value, json};

use super::apply::approved;
use super::console;
use super::exit;
use super::failure::Failure;
use super::fleet::Fleet;
use super::session::Session;
use super::state_edit::{Step, UNDOABLE, is_state_edit, operate};
use super::{Ending, unplaced};
use crate::clock::Timestamp;
use crate::diagnostic::Diagnostic;
use crate::report::json::FORMAT_VERSION;

/// The maximum number of records listed one by one.
const SHOWN: usize = 50;

/// The edit of one shard, ready to be undone.
struct Prepared<'s, 'g> {
    session: &'s Session<'g>,
    // Dropped in this order.
    store: Box<dyn Store>,
    _lock: Box<dyn Held>,
    entry: Apply,
    /// The steps to apply.
    steps: Vec<Step>,
}

/// Undoes an entry, or the latest edit that can be undone, in all shards that it changed.
pub fn run(fleet: &Fleet<'_>, id: Option<i64>, auto_approve: bool) -> Ending {
    if !auto_approve && !std::io::stdin().is_terminal() {
        return Err(unplaced(
            Diagnostic::error("cannot ask for approval: standard input is not a terminal")
                .hint("To undo without a prompt, pass --auto-approve"),
        ));
    }
    let mut prepared = Vec::new();
    for (index, id) in chosen(fleet, id)? {
        let session = &fleet.shards[index];
        match prepare(session, id) {
            Ok(ready) => prepared.push(ready),
            Err(failure) => {
                session.fail(&failure);
                return Ok(failure.code);
            }
        }
    }
    let json = fleet.globals.json;
    for (index, one) in prepared.iter().enumerate().filter(|_| !json) {
        console::print(if index == 0 { "" } else { "\n" });
        one.show();
    }
    if !auto_approve && !approved("\nDo you want to undo this?\n").map_err(unplaced)? {
        console::print("\nUndo cancelled.\n");
        return Ok(exit::ERROR);
    }
    let mut documents = Vec::new();
    for one in prepared {
        let session = one.session;
        match one.carry_out() {
            Ok(document) => documents.push(document),
            Err(failure) => {
                session.fail(&failure);
                return Ok(failure.code);
            }
        }
    }
    if json && fleet.is_several() {
        console::print_json(&Value::from(documents));
    } else if json {
        documents.iter().for_each(console::print_json);
    }
    Ok(exit::SUCCESS)
}

/// The entry to undo, by shard.
fn chosen(fleet: &Fleet<'_>, id: Option<i64>) -> Result<Vec<(usize, i64)>, Failure> {
    if let Some(id) = id {
        fleet.only("undoing an entry of the history")?;
        return Ok(vec![(0, id)]);
    }
    let mut latest: Vec<(usize, Apply)> = Vec::new();
    for (index, session) in fleet.shards.iter().enumerate() {
        let Some(store) = session.open_to_read()? else {
            if fleet.is_several() {
                continue;
            }
            // The same error as for other commands that need a state.
            session.need_state()?;
            continue;
        };
        let entries = store.history(usize::MAX >> 1)?;
        let surgery = entries
            .into_iter()
            .find(|entry| is_state_edit(&entry.operation));
        latest.extend(surgery.map(|entry| (index, entry)));
    }
    let newest = latest.iter().max_by_key(|(_, entry)| entry.started_at);
    let Some((_, newest)) = newest.cloned() else {
        return Err(Failure::new(
            Diagnostic::error("there is nothing to undo")
                .detail("what can be undone are changes of the record by hand: state mv, rm, push, undo, and import")
                .hint("What was done: nstance state history"),
        ));
    };
    // A command writes the same process into the entries of all its shards.
    let is_same = |entry: &Apply| {
        let who = |entry: &Apply| (entry.who.clone(), entry.host.clone(), entry.pid);
        let word = |entry: &Apply| {
            entry
                .operation
                .split(' ')
                .take(2)
                .map(str::to_owned)
                .collect()
        };
        let (word_of_it, word_of_newest): (Vec<String>, Vec<String>) = (word(entry), word(&newest));
        who(entry) == who(&newest) && word_of_it == word_of_newest
    };
    latest.retain(|(_, entry)| is_same(entry));
    Ok(latest
        .into_iter()
        .map(|(index, entry)| (index, entry.id.0))
        .collect())
}

/// Locks a shard and computes the steps.
///
/// Fails if the entry can't be undone.
fn prepare<'s, 'g>(session: &'s Session<'g>, id: i64) -> Result<Prepared<'s, 'g>, Failure> {
    let entry = find(&*session.need_state()?, id)?;
    refuse_others(&entry)?;
    let lock = session.lock("state undo")?;
    let Some(store) = session.open_to_write()? else {
        return Err(Failure::say("the state is gone"));
    };
    let items = store.history_items(entry.id)?;
    let done: Result<Vec<Step>, _> = items
        .iter()
        .map(|item| serde_json::from_str(&item.detail_json))
        .collect();
    let done = done.map_err(|_| {
        Failure::new(
            Diagnostic::error(format!("entry {id} doesn't say what the records were before it"))
                .hint("A version that kept no more than ids wrote it; push a backup instead: nstance state push FILE"),
        )
    })?;
    let steps: Vec<Step> = done.into_iter().map(Step::reversed).collect();
    refuse_forgotten(&*store, &entry, &steps)?;
    let snapshot = store.snapshot()?;
    refuse_moved_on(session, &snapshot, &entry, &steps)?;
    Ok(Prepared {
        session,
        store,
        _lock: lock,
        entry,
        steps,
    })
}

/// An entry of the history.
///
/// Fails if there is none with this id.
pub fn find(store: &dyn Store, id: i64) -> Result<Apply, Failure> {
    let entries = store.history(usize::MAX >> 1)?;
    let entry = entries.into_iter().find(|entry| entry.id.0 == id);
    entry.ok_or_else(|| {
        Failure::new(
            Diagnostic::error(format!("the history has no entry {id}"))
                .hint("What there is: nstance state history"),
        )
    })
}

/// Fails if the entry is an apply, whose effects in the cloud can't be undone here.
fn refuse_others(entry: &Apply) -> Result<(), Failure> {
    let Apply { id, operation, .. } = entry;
    if is_state_edit(operation) {
        return Ok(());
    }
    let finding = Diagnostic::error(format!(
        "entry {} is no change by hand, but `{operation}`",
        id.0
    ));
    Err(Failure::new(match operation.as_str() {
        "apply" | "destroy" => finding
            .detail("what it did, it did in the cloud; with another record that would only be forgotten")
            .hint("Give the configuration its former content, and apply that: nstance apply"),
        _ => finding
            .detail("it changed nothing that somebody wanted otherwise")
            .hint("What can be undone: state mv, rm, push, undo, and import"),
    }))
}

/// Fails if the specs of an old entry were already removed.
fn refuse_forgotten(store: &dyn Store, entry: &Apply, steps: &[Step]) -> Result<(), Failure> {
    let wanted: HashSet<_> = steps
        .iter()
        .filter_map(|step| Some(step.after.as_ref()?.spec))
        .collect();
    let wanted: Vec<_> = wanted.into_iter().collect();
    let kept = store.specs(&wanted)?;
    if kept.len() == wanted.len() {
        return Ok(());
    }
    Err(Failure::new(
        Diagnostic::error(format!("entry {} is too old to be undone", entry.id.0))
            .detail(format!(
                "what its instances were made from isn't kept any more: that of the last {UNDOABLE} changes by hand is"
            ))
            .hint("Import its instances anew: nstance import ADDR PROVIDER_ID"),
    ))
}

/// Fails if records of the entry have changed since, and names them.
fn refuse_moved_on(
    session: &Session<'_>,
    snapshot: &Snapshot,
    entry: &Apply,
    steps: &[Step],
) -> Result<(), Failure> {
    let records = snapshot.records.iter();
    let by_id: BTreeMap<&str, &Record> = records
        .clone()
        .map(|record| (record.instance_id.as_str(), record))
        .collect();
    let own: HashSet<&str> = steps
        .iter()
        .filter_map(|step| Some(step.before.as_ref()?.instance_id.as_str()))
        .collect();
    let others: Vec<&Record> = records
        .filter(|record| !own.contains(record.instance_id.as_str()))
        .collect();
    let serial = entry.serial_after.unwrap_or(u64::MAX);
    let mut moved = Vec::new();
    for step in steps {
        if let Some(left) = &step.before {
            let at = session.name(left.address());
            match by_id.get(left.instance_id.as_str()) {
                None => moved.push(format!(
                    "{at}: {} isn't recorded any more",
                    left.provider_id
                )),
                Some(now) if !now.is_like(left) || now.version > serial => {
                    moved.push(format!("{at}: its record changed since"));
                }
                Some(_) => {}
            }
        }
        let Some(wanted) = &step.after else { continue };
        let at = session.name(wanted.address());
        if step.before.is_none()
            && let Some(now) = by_id.get(wanted.instance_id.as_str())
        {
            moved.push(format!(
                "{at}: {} is recorded again, as {}",
                now.provider_id,
                session.name(now.address())
            ));
            continue;
        }
        let holds_slot = |record: &&&Record| {
            !wanted.deposed
                && !record.deposed
                && (&record.group, record.slot) == (&wanted.group, wanted.slot)
        };
        if let Some(other) = others.iter().find(holds_slot) {
            moved.push(format!("{at}: {} has the slot now", other.provider_id));
        } else if let Some(other) = others
            .iter()
            .find(|record| record.provider_id == wanted.provider_id)
        {
            moved.push(format!(
                "{at}: {} is recorded as {} now",
                wanted.provider_id,
                session.name(other.address())
            ));
        }
    }
    let addresses: HashSet<String> = steps
        .iter()
        .flat_map(|step| step.before.iter().chain(&step.after))
        .map(Record::address)
        .collect();
    for intent in &snapshot.intents {
        if addresses.contains(&intent.address) {
            let at = session.name(&intent.address);
            let what = intent.operation.as_str();
            moved.push(format!("{at}: an earlier {what} isn't settled yet"));
        }
    }
    if moved.is_empty() {
        return Ok(());
    }
    let more = moved.len().saturating_sub(10);
    moved.truncate(10);
    if more > 0 {
        moved.push(format!("and {more} more"));
    }
    Err(Failure::new(
        Diagnostic::error(format!(
            "entry {} can't be undone: its records have moved on",
            entry.id.0
        ))
        .detail(moved.join("\n"))
        .hint("Undo what came after it first, or change the record by hand: nstance state mv, rm, import"),
    ))
}

impl Prepared<'_, '_> {
    /// Shows the steps.
    fn show(&self) {
        let entry = &self.entry;
        let mut text = format!(
            "Undo of entry {}, `{}` by {}@{} at {}:\n\n",
            self.session.name(entry.id.0),
            entry.operation,
            entry.who,
            entry.host,
            Timestamp::from(entry.started_at)
        );
        for step in self.steps.iter().take(SHOWN) {
            text.push_str(&format!("  {}\n", self.line(step)));
        }
        let more = self.steps.len().saturating_sub(SHOWN);
        if more > 0 {
            text.push_str(&format!("  and {more} more\n"));
        }
        console::print(&text);
    }

    fn line(&self, step: &Step) -> String {
        let name = |record: &Record| {
            let deposed = if record.deposed { " (deposed)" } else { "" };
            format!("{}{deposed}", self.session.name(record.address()))
        };
        match (&step.before, &step.after) {
            (None, Some(wanted)) => {
                format!(
                    "+ {} is recorded again: {}",
                    name(wanted),
                    wanted.provider_id
                )
            }
            (Some(left), None) => format!(
                ". {} is forgotten: {} stays in the cloud",
                name(left),
                left.provider_id
            ),
            (Some(left), Some(wanted)) if left.address() != wanted.address() => {
                format!("~ {} is recorded as {} again", name(left), name(wanted))
            }
            (Some(_), Some(wanted)) => {
                format!(
                    "~ {} is recorded as it was: {}",
                    name(wanted),
                    wanted.provider_id
                )
            }
            (None, None) => String::new(),
        }
    }

    fn carry_out(mut self) -> Result<Value, Failure> {
        let operation = format!("state undo {}", self.entry.id.0);
        let steps = &self.steps;
        let left = steps.iter().filter_map(|step| step.before.as_ref());
        let left = left.map(|record| Write::RemoveRecord {
            instance_id: record.instance_id.clone(),
        });
        let wanted = steps.iter().filter_map(|step| step.after.as_ref());
        let wanted = wanted.map(|record| Write::PutRecord(Box::new(record.clone())));
        // Remove records first, to free their slots.
        let change = left.chain(wanted).collect();
        operate(self.session, &mut *self.store, &operation, steps, change)?;
        let (globals, identity) = (self.session.globals, self.session.identity());
        if !globals.json && !globals.quiet {
            let entry = self.session.name(self.entry.id.0);
            console::print(&format!("\nEntry {entry} is undone\n"));
        }
        let address = |record: &Option<Record>| record.as_ref().map(Record::address);
        let changes: Vec<Value> = self
            .steps
            .iter()
            .map(|step| json!({"before": address(&step.before), "after": address(&step.after)}))
            .collect();
        Ok(json!({
            "format_version": FORMAT_VERSION,
            "cluster": identity.cluster,
            "shard": identity.shard,
            "undone": self.entry.id.0,
            "changes": changes,
        }))
    }
}
