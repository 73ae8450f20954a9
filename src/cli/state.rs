//! `nstance state …`: inspect and modify the state.

use std::path::PathBuf;

use clap::Subcommand;
use nstance_state::{Record, Snapshot, Store, Write};
use serde_json::{Value, json};

use super::exit;
use super::failure::{Failure, Failures};
use super::fleet::{Fleet, Form, Reply};
use super::history::{self, History};
use super::migrate::{self, Migrate};
use super::rekey::{self, Rekey};
use super::selection::AddressArgs;
use super::session::Session;
use super::show::{address, view};
use super::state_edit::{Step, operate};
use super::{Ending, Globals, plan_files, transfer, undo};
use crate::address::{Address, InShard, Selector};
use crate::check::Purpose;
use crate::diagnostic::Diagnostic;

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
        /// The slot, or a group for all of its slots
        #[arg(value_name = "ADDR")]
        address: InShard<Selector>,
    },
    /// Record an instance, or a group, under another address
    Mv {
        /// Where it is recorded: a slot or a group
        #[arg(value_name = "FROM")]
        from: InShard<Selector>,
        /// Where it will be: a slot or a group, like FROM
        #[arg(value_name = "TO")]
        to: InShard<Selector>,
    },
    /// Forget instances; they stay in the cloud
    Rm {
        /// Slots, and groups for all of their slots
        #[arg(value_name = "ADDR", required = true)]
        addresses: Vec<InShard<Selector>>,
    },
    /// Copy the state to a file
    Backup {
        /// The file; by default beside the state, with the time in its name
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the state as a document for `state push`
    ///
    /// Secrets are sealed in it.
    Pull,
    /// Replace the state with a pulled document or a backup
    Push {
        /// The document or backup; `-` for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Even if it is older than the state
        #[arg(long)]
        force: bool,
    },
    /// Show what was applied, when, by whom
    History(History),
    /// Seal the state with another key
    Rekey(Rekey),
    /// Make or upgrade the tables of a server, or move the state
    Migrate(Migrate),
    /// Undo a change of the record by hand: mv, rm, push, import, undo
    Undo {
        /// The entry of the history; by default the latest that can be undone
        #[arg(value_name = "ID")]
        id: Option<i64>,
        /// Don't ask
        #[arg(long)]
        auto_approve: bool,
    },
    /// Remove a stale lock
    Unlock {
        /// The lock's id, as messages show it
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Runs `state`.
pub fn run(globals: &Globals, command: &StateCommand) -> Ending {
    let mut fleet = Fleet::load(globals, Purpose::Identity)?;
    let listing = Form::Plain.documents_or(globals.json);
    let code = match command {
        StateCommand::List { address } => {
            fleet.select(AddressArgs {
                targets: address.as_slice(),
                ..AddressArgs::default()
            })?;
            let selector = address.as_ref().map(|asked| &asked.address);
            fleet.each(listing, |_, session| list(session, selector))
        }
        StateCommand::Show { address } => {
            fleet.narrow(address, address.address.group())?;
            fleet.each(listing, |_, session| show(session, &address.address))
        }
        StateCommand::Mv { from, to } => {
            let to = beside(&mut fleet, from, to)?;
            fleet.each(Form::Plain, |_, session| mv(session, &from.address, to))
        }
        StateCommand::Rm { addresses } => {
            let chosen = fleet.select(AddressArgs {
                targets: addresses,
                ..AddressArgs::default()
            })?;
            let chosen: Vec<_> = chosen.into_iter().map(|chosen| chosen.targets).collect();
            // All or nothing: check that all are recorded before removing one.
            if fleet.is_several() {
                let code = fleet.each(Form::Plain, |index, session| {
                    let snapshot = session.need_state()?.snapshot()?;
                    for selector in &chosen[index] {
                        find(&snapshot, selector)?;
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
        StateCommand::History(command) => {
            if command.id.is_some() {
                fleet.only("an entry of the history")?;
            }
            let form = Form::Headed.documents_or(globals.json);
            fleet.each(form, |_, session| history::history(session, command))
        }
        StateCommand::Rekey(command) => return rekey::run(&fleet, command),
        StateCommand::Undo { id, auto_approve } => {
            return undo::run(&fleet, *id, *auto_approve);
        }
        StateCommand::Migrate(command) => {
            if command.to.is_some() {
                fleet.only("moving a state")?;
            }
            fleet.each(Form::Plain, |_, session| migrate::run(session, command))
        }
        StateCommand::Unlock { id } => {
            fleet.only("unlocking")?;
            fleet.each(Form::Plain, |_, session| unlock(session, id))
        }
    };
    Ok(code)
}

/// Reduces the run to the shard where an instance is recorded; its new address must be in the same.
fn beside<'a>(
    fleet: &mut Fleet<'_>,
    from: &InShard<Selector>,
    to: &'a InShard<Selector>,
) -> Result<&'a Selector, Failures> {
    fleet.narrow(from, from.address.group())?;
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
    // A list needs no key, except for the digests of specs.
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

/// The live records of a slot or group.
///
/// Fails if there is none.
fn find<'s>(snapshot: &'s Snapshot, selector: &Selector) -> Result<Vec<&'s Record>, Failure> {
    let records = snapshot.group(selector.group().as_str()).iter();
    let found: Vec<_> = records
        .filter(|record| !record.deposed && selector.matches(&address(record)))
        .collect();
    if found.is_empty() {
        return Err(Failure::new(
            Diagnostic::error(format!("nothing is recorded for `{selector}`"))
                .hint("What is recorded: nstance state list"),
        ));
    }
    Ok(found)
}

fn show(session: &Session<'_>, selector: &Selector) -> Result<Reply, Failure> {
    let store = session.need_state()?;
    let snapshot = store.snapshot()?;
    let mut documents = Vec::new();
    for record in find(&snapshot, selector)? {
        let mut document = view(session, &*store, record)?;
        if let Value::Object(document) = &mut document {
            document.insert("spec".into(), record.spec.to_string().into());
            document.insert("version".into(), record.version.into());
        }
        documents.push(document);
    }
    if session.globals.json {
        return Ok(Reply::document(match selector {
            Selector::Slot(_) => {
                let mut document = documents.swap_remove(0);
                document["format_version"] = "1.0".into();
                document
            }
            Selector::Group(_) => json!({ "format_version": "1.0", "records": documents }),
        }));
    }
    let texts: Vec<String> = documents
        .iter()
        .map(|document| crate::report::text::instance(document, session.style()))
        .collect();
    Ok(Reply::text(texts.join("\n")))
}

fn open_locked(session: &Session<'_>) -> Result<Box<dyn Store>, Failure> {
    match session.open_to_write()? {
        Some(store) => Ok(store),
        // The same error as for commands that only read.
        None => session.need_state(),
    }
}

fn mv(session: &Session<'_>, from: &Selector, to: &Selector) -> Result<Reply, Failure> {
    session.need_state()?;
    let _lock = session.lock("state mv")?;
    let mut store = open_locked(session)?;
    let snapshot = store.snapshot()?;
    let moves: Vec<(Address, Address)> = match (from, to) {
        (Selector::Slot(from), Selector::Slot(to)) => vec![(from.clone(), to.clone())],
        (Selector::Group(_), Selector::Group(to)) => find(&snapshot, from)?
            .into_iter()
            .map(|record| (address(record), Address::new(to.clone(), record.slot)))
            .collect(),
        (Selector::Group(_), Selector::Slot(_)) | (Selector::Slot(_), Selector::Group(_)) => {
            return Err(Failure::new(
                Diagnostic::error(format!("`{from}` and `{to}` are a group and a slot"))
                    .hint("Move a slot to a slot, or a group to a group"),
            ));
        }
    };
    find(&snapshot, from)?;
    if from == to {
        let finding = Diagnostic::error(format!("`{from}` is recorded there already"));
        return Err(Failure::new(
            finding.hint("Name two different places: state mv FROM TO"),
        ));
    }
    // A slot's deposed instances move with its live one.
    let moved = snapshot.group(from.group().as_str()).iter();
    let steps: Vec<Step> = moved
        .filter_map(|record| {
            let (_, to) = moves.iter().find(|(from, _)| *from == address(record))?;
            Some(Step {
                before: Some(record.clone()),
                after: Some(Record {
                    group: to.group.shared(),
                    slot: to.slot,
                    ..record.clone()
                }),
            })
        })
        .collect();
    let moves = moves.into_iter().map(|(from, to)| Write::MoveRecord {
        from: (from.group.shared(), from.slot),
        to: (to.group.shared(), to.slot),
    });
    operate(session, &mut *store, "state mv", &steps, moves.collect())?;
    if session.globals.quiet {
        return Ok(Reply::text(""));
    }
    let (from, to) = (session.name(from), session.name(to));
    Ok(Reply::text(format!("{from} is recorded as {to} now\n")))
}

fn rm(session: &Session<'_>, selectors: &[Selector]) -> Result<Reply, Failure> {
    session.need_state()?;
    let _lock = session.lock("state rm")?;
    let mut store = open_locked(session)?;
    let snapshot = store.snapshot()?;
    let mut records: Vec<&Record> = Vec::new();
    for selector in selectors {
        for record in find(&snapshot, selector)? {
            if !records
                .iter()
                .any(|known| known.instance_id == record.instance_id)
            {
                records.push(record);
            }
        }
    }
    let steps: Vec<Step> = records
        .iter()
        .map(|record| Step {
            before: Some((*record).clone()),
            after: None,
        })
        .collect();
    let removed = records.iter().map(|record| Write::RemoveRecord {
        instance_id: record.instance_id.clone(),
    });
    operate(session, &mut *store, "state rm", &steps, removed.collect())?;
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
        let Some(state) = session.backend()?.file() else {
            let finding =
                Diagnostic::error("the state is not in a file, so the backup needs a name");
            return Err(Failure::new(
                finding.hint("Name its file: nstance state backup FILE"),
            ));
        };
        let stamp: String = session
            .clock
            .now()
            .to_string()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        let mut path = state.as_os_str().to_owned();
        path.push(format!(".backup-{stamp}"));
        path.into()
    };
    store.backup(&path)?;
    Ok(Reply::text(format!("Backed up to {}\n", path.display())))
}

fn unlock(session: &Session<'_>, id: &str) -> Result<Reply, Failure> {
    let left = session.backend()?.break_stale(id)?;
    Ok(Reply::text(format!("Cleared what {left} left\n")))
}
