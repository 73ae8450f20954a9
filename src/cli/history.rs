//! `nstance state history`: past applies and edits of the state.
//!
//! In: the history of a state. Out: a page of its entries, or all changes of one entry. Must not:
//! change anything.

use clap::Args;
use nstance_state::{Apply, HistoryIds, HistoryItem, Store};
use serde_json::{Value, json};

use super::failure::Failure;
use super::fleet::Reply;
use super::session::Session;
use super::state_edit::{Step, is_state_edit};
use super::undo::find;
use crate::clock::Timestamp;
use crate::report::json::FORMAT_VERSION;
use crate::report::table;

/// Options of `state history`.
#[derive(Debug, Args)]
pub struct History {
    /// Show all that this entry changed
    #[arg(value_name = "ID", conflicts_with_all = ["limit", "before"])]
    pub id: Option<i64>,
    /// How many entries, the latest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Only entries before this one
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
}

/// Shows a page, or an entry.
///
/// Fails if the state can't be read or has no such entry.
pub fn history(session: &Session<'_>, command: &History) -> Result<Reply, Failure> {
    let store = session.need_state()?;
    match command.id {
        Some(id) => entry(session, &*store, &find(&*store, id)?),
        None => page(session, &*store, command),
    }
}

fn page(session: &Session<'_>, store: &dyn Store, command: &History) -> Result<Reply, Failure> {
    let mut entries = store.history(usize::MAX >> 1)?;
    entries.retain(|entry| command.before.is_none_or(|before| entry.id.0 < before));
    let more = entries.len().saturating_sub(command.limit);
    entries.truncate(command.limit);
    let next = entries.last().map(|entry| entry.id.0).filter(|_| more > 0);
    if session.globals.json {
        let entries: Vec<Value> = entries.iter().map(entry_json).collect();
        return Ok(Reply::document(json!({
            "format_version": FORMAT_VERSION,
            "applies": entries,
            "more": more,
            "next_before": next,
        })));
    }
    let rows: Vec<[String; 6]> = entries
        .iter()
        .map(|entry| {
            [
                entry.id.0.to_string(),
                Timestamp::from(entry.started_at).to_string(),
                format!("{}@{}", entry.who, entry.host),
                entry.operation.clone(),
                entry.status.as_str().to_owned(),
                summary_text(&entry.summary_json),
            ]
        })
        .collect();
    let header = ["ID", "STARTED", "WHO", "OPERATION", "STATUS", "CHANGES"];
    let mut reply = Reply::text(table(&header, &rows));
    if let Some(next) = next.filter(|_| !session.globals.quiet) {
        reply.note = format!("{more} earlier: nstance state history --before {next}\n");
    }
    Ok(reply)
}

fn entry(session: &Session<'_>, store: &dyn Store, entry: &Apply) -> Result<Reply, Failure> {
    let items = store.history_items(entry.id)?;
    if session.globals.json {
        let mut document = entry_json(entry);
        document["format_version"] = FORMAT_VERSION.into();
        document["items"] = items.iter().map(item_json).collect();
        return Ok(Reply::document(document));
    }
    let mut text = String::new();
    for (name, value) in facts(entry) {
        text.push_str(&format!("{name:<11}{value}\n"));
    }
    if items.is_empty() {
        text.push_str("\nIt changed no record.\n");
        return Ok(Reply::text(text));
    }
    let rows: Vec<[String; 5]> = items
        .iter()
        .map(|item| {
            let [before, after] = sides(item);
            [
                session.name(&item.address),
                item.action.clone(),
                before,
                after,
                item.result.clone(),
            ]
        })
        .collect();
    text.push('\n');
    text.push_str(&table(
        &["ADDRESS", "ACTION", "BEFORE", "AFTER", "RESULT"],
        &rows,
    ));
    Ok(Reply::text(text))
}

/// The fields of an entry.
fn facts(entry: &Apply) -> Vec<(&'static str, String)> {
    let time = |at| Timestamp::from(at).to_string();
    let ended = entry.finished_at.map_or_else(
        || "it didn't end by itself".to_owned(),
        |at| time(at).clone(),
    );
    let serial = match entry.serial_after {
        Some(after) if after == entry.serial_before => format!("{after}, as before"),
        Some(after) => format!("{} to {after}", entry.serial_before),
        None => format!("{} at its beginning", entry.serial_before),
    };
    let mut facts = vec![
        ("entry", entry.id.0.to_string()),
        ("operation", entry.operation.clone()),
        (
            "who",
            format!("{}@{}, process {}", entry.who, entry.host, entry.pid),
        ),
        ("started", time(entry.started_at)),
        ("ended", ended),
        ("status", entry.status.as_str().to_owned()),
        ("serial", serial),
    ];
    if let Some(digest) = &entry.plan_digest {
        facts.push(("plan", digest.clone()));
    }
    facts.push(("changes", summary_text(&entry.summary_json)));
    if is_state_edit(&entry.operation) {
        facts.push(("undo", format!("nstance state undo {}", entry.id.0)));
    }
    facts
}

/// The values before and after: provider ids, or addresses if only these changed.
fn sides(item: &HistoryItem) -> [String; 2] {
    let id = |ids: &HistoryIds| ids.provider_id.clone().unwrap_or_else(|| "-".into());
    let step: Option<Step> = serde_json::from_str(&item.detail_json).ok();
    if let Some(Step {
        before: Some(before),
        after: Some(after),
    }) = &step
        && before.address() != after.address()
    {
        return [id(&item.before), after.address()];
    }
    [id(&item.before), id(&item.after)]
}

fn item_json(item: &HistoryItem) -> Value {
    let ids =
        |ids: &HistoryIds| json!({"instance_id": ids.instance_id, "provider_id": ids.provider_id});
    let step: Option<Step> = serde_json::from_str(&item.detail_json).ok();
    let moved_to = step.and_then(|step| {
        let (before, after) = (step.before?.address(), step.after?.address());
        (before != after).then_some(after)
    });
    json!({
        "address": item.address,
        "moved_to": moved_to,
        "action": item.action,
        "before": ids(&item.before),
        "after": ids(&item.after),
        "result": item.result,
        "at": Timestamp::from(item.at).to_string(),
    })
}

fn entry_json(entry: &Apply) -> Value {
    json!({
        "id": entry.id.0,
        "started_at": Timestamp::from(entry.started_at).to_string(),
        "finished_at": entry.finished_at.map(|at| Timestamp::from(at).to_string()),
        "who": entry.who,
        "host": entry.host,
        "pid": entry.pid,
        "operation": entry.operation,
        "status": entry.status.as_str(),
        "serial_before": entry.serial_before,
        "serial_after": entry.serial_after,
        "summary": serde_json::from_str::<Value>(&entry.summary_json).unwrap_or(Value::Null),
        "plan_digest": entry.plan_digest,
    })
}

/// The text for a summary's JSON, such as `2 create, 1 delete`.
fn summary_text(json: &str) -> String {
    let Ok(Value::Object(summary)) = serde_json::from_str(json) else {
        return String::new();
    };
    let counts: Vec<String> = summary
        .iter()
        .filter(|(_, count)| count.as_u64().is_some_and(|count| count > 0))
        .map(|(action, count)| format!("{count} {}", action.replace('_', "-")))
        .collect();
    if counts.is_empty() {
        "-".to_owned()
    } else {
        counts.join(", ")
    }
}
