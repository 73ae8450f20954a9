//! `nstance state …`: looking after the record.

use std::path::PathBuf;

use clap::Subcommand;
use nstance_state::{Apply, HistoryIds, Lock, Record, Store};
use serde_json::{Value, json};

use super::exit;
use super::failure::{Failure, Failures};
use super::fleet::{Fleet, Form, Reply};
use super::rekey::{self, Rekey};
use super::selection::Asked;
use super::session::Session;
use super::show::{address, view};
use super::surgery::{Step, operate};
use super::{Ending, Globals, plan_files, transfer, undo};
use crate::address::{Address, InShard, Selector};
use crate::clock::Timestamp;
use crate::config::check::Purpose;
use crate::diagnostic::Diagnostic;
use crate::report::table;

/// Subcommands of `state`.
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// List what is recorded
    List {
        /// Only this group or slot
        #[arg(value_name = "ADDR")]
        address: Option<InShard<Selector>>,
    },
    /// Show all that is recorded of a slot
    Show {
        /// The slot
        #[arg(value_name = "ADDR")]
        address: InShard<Address>,
    },
    /// Record an instance under another address
    Mv {
        /// Where it is recorded
        #[arg(value_name = "FROM")]
        from: InShard<Address>,
        /// Where it will be
        #[arg(value_name = "TO")]
        to: InShard<Address>,
    },
    /// Forget instances; they stay in the cloud
    Rm {
        /// The slots
        #[arg(value_name = "ADDR", required = true)]
        addresses: Vec<InShard<Address>>,
    },
    /// Copy the state to a file
    Backup {
        /// The file; by default beside the state, with the time in its name
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the state as a document that another store can be made of; secrets are sealed in it
    Pull,
    /// Put a pulled document, or a backup, in the state's place
    Push {
        /// The document or backup; `-` for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Even if it is older than the state
        #[arg(long)]
        force: bool,
    },
    /// Show what was applied, when, by whom
    History {
        /// How many entries
        #[arg(long, default_value_t = 20)]
        limit: usize,
        /// Show the changes of this entry
        #[arg(value_name = "ID")]
        id: Option<i64>,
    },
    /// Seal the state with another key
    Rekey(Rekey),
    /// Undo a change of the record by hand: mv, rm, push, import, undo
    Undo {
        /// The entry of the history; by default the latest that can be undone
        #[arg(value_name = "ID")]
        id: Option<i64>,
        /// Don't ask
        #[arg(long)]
        auto_approve: bool,
    },
    /// Clear what a dead process left of the lock
    Unlock {
        /// The lock's id, as messages show it
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Runs `state`.
pub fn run(globals: &Globals, command: &StateCommand) -> Ending {
    let mut fleet = Fleet::load(globals, Purpose::Render)?;
    let listing = Form::Plain.documents_or(globals.json);
    let code = match command {
        StateCommand::List { address } => {
            fleet.choose(Asked {
                targets: address.as_slice(),
                ..Asked::default()
            })?;
            let selector = address.as_ref().map(|asked| &asked.address);
            fleet.each(listing, |_, session| list(session, selector))
        }
        StateCommand::Show { address } => {
            fleet.narrow(address)?;
            fleet.each(listing, |_, session| show(session, &address.address))
        }
        StateCommand::Mv { from, to } => {
            let to = beside(&mut fleet, from, to)?;
            fleet.each(Form::Plain, |_, session| mv(session, &from.address, to))
        }
        StateCommand::Rm { addresses } => {
            let chosen = fleet.choose_slots(addresses)?;
            // All or nothing: what isn't recorded is found before anything is forgotten.
            if fleet.is_several() {
                let code = fleet.each(Form::Plain, |index, session| {
                    let snapshot = session.need_state()?.snapshot()?;
                    for address in &chosen[index] {
                        find(&snapshot, address)?;
                    }
                    Ok(Reply::text(""))
                });
                if code != exit::SUCCESS {
                    return Ok(code);
                }
            }
            fleet.each(Form::Plain, |index, session| rm(session, &chosen[index]))
        }
        StateCommand::Backup { file } => {
            let files = match file {
                Some(file) => Some(plan_files::paths(&fleet, file)?),
                None => None,
            };
            fleet.each(Form::Plain, |index, session| {
                backup(session, files.as_ref().map(|files| &*files[index]))
            })
        }
        StateCommand::Pull => {
            fleet.only("pulling a state")?;
            fleet.each(Form::Plain, |_, session| transfer::pull(session))
        }
        StateCommand::Push { file, force } => {
            fleet.only("pushing a state")?;
            fleet.each(Form::Plain, |_, session| {
                transfer::push(session, file, *force)
            })
        }
        StateCommand::History { limit, id } => {
            if id.is_some() {
                fleet.only("an entry of the history")?;
            }
            let form = Form::Headed.documents_or(globals.json);
            fleet.each(form, |_, session| history(session, *limit, *id))
        }
        StateCommand::Rekey(command) => return rekey::run(&fleet, command),
        StateCommand::Undo { id, auto_approve } => {
            return undo::run(fleet, *id, *auto_approve);
        }
        StateCommand::Unlock { id } => {
            fleet.only("unlocking")?;
            fleet.each(Form::Plain, |_, session| unlock(session, id))
        }
    };
    Ok(code)
}

/// Makes the run one about the shard that an instance is recorded in; its new address is in the
/// same.
fn beside<'a>(
    fleet: &mut Fleet<'_>,
    from: &InShard<Address>,
    to: &'a InShard<Address>,
) -> Result<&'a Address, Failures> {
    fleet.narrow(from)?;
    let identity = fleet.shards[0].identity();
    let same = to
        .shard
        .as_ref()
        .is_none_or(|name| name.matches(&identity.cluster, &identity.shard));
    if same {
        return Ok(&to.address);
    }
    Err(Failure::new(
        Diagnostic::error(format!("`{to}` isn't in the shard of `{from}`"))
            .detail(format!("that is {identity}"))
            .hint("An instance belongs to one shard: `state rm` it there, then import it here"),
    )
    .into())
}

fn list(session: &Session<'_>, selector: Option<&Selector>) -> Result<Reply, Failure> {
    let store = session.need_state()?;
    // A list needs no key, but for the digests of specs.
    let records = if session.globals.json {
        store.snapshot()?.records
    } else {
        store.outline()?
    };
    let chosen: Vec<_> = records
        .iter()
        .filter(|record| selector.is_none_or(|selector| selector.matches(&address(record))))
        .collect();
    if session.globals.json {
        let records: Vec<Value> = chosen
            .iter()
            .map(|record| {
                json!({
                    "address": record.address(),
                    "deposed": record.deposed,
                    "instance_id": record.instance_id,
                    "provider_id": record.provider_id,
                    "generation": record.generation,
                    "zone": record.zone,
                    "subnet": record.subnet,
                    "ip4": record.ip4,
                    "ip6": record.ip6,
                    "spec": record.spec.to_string(),
                    "version": record.version,
                })
            })
            .collect();
        let document = json!({ "format_version": "1.0", "records": records });
        return Ok(Reply::document(document));
    }
    let mut text = String::new();
    for record in chosen {
        let suffix = if record.deposed { " (deposed)" } else { "" };
        text.push_str(&format!("{}{suffix}\n", session.name(record.address())));
    }
    Ok(Reply::text(text))
}

fn find<'s>(
    snapshot: &'s nstance_state::Snapshot,
    address: &Address,
) -> Result<&'s Record, Failure> {
    snapshot
        .live(address.group.as_str(), address.slot)
        .ok_or_else(|| {
            Failure::new(
                Diagnostic::error(format!("nothing is recorded for `{address}`"))
                    .hint("What is recorded: nstance state list"),
            )
        })
}

fn show(session: &Session<'_>, address: &Address) -> Result<Reply, Failure> {
    let store = session.need_state()?;
    let snapshot = store.snapshot()?;
    let record = find(&snapshot, address)?;
    let mut document = view(session, &store, record)?;
    if let Value::Object(document) = &mut document {
        document.insert("spec".into(), record.spec.to_string().into());
        document.insert("version".into(), record.version.into());
    }
    Ok(if session.globals.json {
        Reply::document(document)
    } else {
        Reply::text(crate::report::text::instance(&document, session.style()))
    })
}

fn open_locked(session: &Session<'_>) -> Result<Store, Failure> {
    match session.open_to_write()? {
        Some(store) => Ok(store),
        // The same words as for commands that only read.
        None => session.need_state(),
    }
}

fn mv(session: &Session<'_>, from: &Address, to: &Address) -> Result<Reply, Failure> {
    session.need_state()?;
    let _lock = session.lock("state mv")?;
    let mut store = open_locked(session)?;
    let snapshot = store.snapshot()?;
    find(&snapshot, from)?;
    // A slot's deposed instances move with its live one.
    let moved = snapshot.group(from.group.as_str()).iter();
    let steps: Vec<Step> = moved
        .filter(|record| record.slot == from.slot)
        .map(|record| Step {
            before: Some(record.clone()),
            after: Some(Record {
                group: to.group.shared(),
                slot: to.slot,
                ..record.clone()
            }),
        })
        .collect();
    operate(session, &mut store, "state mv", &steps, |transaction| {
        transaction.move_record(
            (from.group.as_str(), from.slot),
            (to.group.as_str(), to.slot),
        )
    })?;
    if session.globals.quiet {
        return Ok(Reply::text(""));
    }
    let (from, to) = (session.name(from), session.name(to));
    Ok(Reply::text(format!("{from} is recorded as {to} now\n")))
}

fn rm(session: &Session<'_>, addresses: &[Address]) -> Result<Reply, Failure> {
    session.need_state()?;
    let _lock = session.lock("state rm")?;
    let mut store = open_locked(session)?;
    let snapshot = store.snapshot()?;
    let records = addresses
        .iter()
        .map(|address| find(&snapshot, address))
        .collect::<Result<Vec<_>, _>>()?;
    let steps: Vec<Step> = records
        .iter()
        .map(|record| Step {
            before: Some((*record).clone()),
            after: None,
        })
        .collect();
    operate(session, &mut store, "state rm", &steps, |transaction| {
        for record in &records {
            transaction.remove_record(&record.instance_id)?;
        }
        Ok(())
    })?;
    let mut text = String::new();
    for record in records.iter().filter(|_| !session.globals.quiet) {
        text.push_str(&format!(
            "{} is forgotten; {} is still in the cloud\n",
            session.name(record.address()),
            record.provider_id
        ));
    }
    Ok(Reply::text(text))
}

fn backup(session: &Session<'_>, file: Option<&std::path::Path>) -> Result<Reply, Failure> {
    let store = session.need_state()?;
    let path = if let Some(file) = file {
        file.to_owned()
    } else {
        let stamp: String = session
            .clock
            .now()
            .to_string()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        let mut path = session.state_path()?.into_os_string();
        path.push(format!(".backup-{stamp}"));
        path.into()
    };
    store.backup(&path)?;
    Ok(Reply::text(format!("Backed up to {}\n", path.display())))
}

fn history(session: &Session<'_>, limit: usize, id: Option<i64>) -> Result<Reply, Failure> {
    let store = session.need_state()?;
    let entries = store.history(if id.is_some() { usize::MAX >> 1 } else { limit })?;
    if let Some(id) = id {
        let Some(entry) = entries.iter().find(|entry| entry.id.0 == id) else {
            return Err(Failure::new(
                Diagnostic::error(format!("the history has no entry {id}"))
                    .hint("What there is: nstance state history"),
            ));
        };
        return entry_of(session, &store, entry);
    }
    if session.globals.json {
        let entries: Vec<Value> = entries.iter().map(entry_json).collect();
        let document = json!({ "format_version": "1.0", "applies": entries });
        return Ok(Reply::document(document));
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
    Ok(Reply::text(table(&header, &rows)))
}

fn entry_of(session: &Session<'_>, store: &Store, entry: &Apply) -> Result<Reply, Failure> {
    let items = store.history_items(entry.id)?;
    if session.globals.json {
        let mut document = entry_json(entry);
        let ids = |ids: &HistoryIds| json!({"instance_id": ids.instance_id, "provider_id": ids.provider_id});
        let items: Vec<Value> = items
            .iter()
            .map(|item| {
                json!({
                    "address": item.address,
                    "action": item.action,
                    "before": ids(&item.before),
                    "after": ids(&item.after),
                    "result": item.result,
                    "at": Timestamp::from(item.at).to_string(),
                })
            })
            .collect();
        if let Value::Object(document) = &mut document {
            document.insert("items".into(), items.into());
        }
        return Ok(Reply::document(document));
    }
    let id = |ids: &HistoryIds| ids.provider_id.clone().unwrap_or_else(|| "-".into());
    let rows: Vec<[String; 5]> = items
        .iter()
        .map(|item| {
            [
                item.address.clone(),
                item.action.clone(),
                id(&item.before),
                id(&item.after),
                item.result.clone(),
            ]
        })
        .collect();
    let header = ["ADDRESS", "ACTION", "BEFORE", "AFTER", "RESULT"];
    Ok(Reply::text(table(&header, &rows)))
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

/// `2 create, 1 delete` of a summary's JSON.
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

fn unlock(session: &Session<'_>, id: &str) -> Result<Reply, Failure> {
    let left = Lock::break_stale(&session.state_path()?, id)?;
    Ok(Reply::text(format!("Cleared what {left} left\n")))
}
