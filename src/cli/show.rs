//! `nstance show`: a saved plan, or the record.

use std::path::Path;

use clap::Args;
use nstance_state::{Record, Store};
use serde_json::{Value, json};

use super::console;
use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::keys::Keyrings;
use super::selection::AddressArgs;
use super::session::Session;
use super::{Ending, Globals, exit, unplaced};
use crate::address::{Address, GroupName, InShard, Selector};
use crate::check::Purpose;
use crate::diagnostic::Diagnostic;
use crate::plan::change::{InstanceView, Plan};
use crate::plan::file;
use crate::report::{json as report, table, text};
use crate::spec::SpecBody;

/// Options of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// A saved plan, or a group or slot; without it, everything recorded
    #[arg(value_name = "PLANFILE|ADDR")]
    what: Option<String>,
}

/// Runs `show`.
pub fn run(globals: &Globals, command: &Show) -> Ending {
    if let Some(what) = &command.what
        && (Path::new(what).is_file() || what.parse::<InShard<Selector>>().is_err())
    {
        return saved_plan(globals, Path::new(what)).map_err(unplaced);
    }
    let mut fleet = Fleet::load(globals, Purpose::Identity)?;
    let selector = command.what.as_deref().map(str::parse::<InShard<Selector>>);
    let selector = selector
        .transpose()
        .map_err(|error| unplaced(Failure::say(error.to_string())))?;
    fleet.select(AddressArgs {
        targets: selector.as_slice(),
        ..AddressArgs::default()
    })?;
    let selector = selector.map(|asked| asked.address);
    let form = Form::Headed.documents_or(globals.json);
    Ok(fleet.each(form, |_, session| recorded(session, selector.as_ref())))
}

fn saved_plan(globals: &Globals, path: &Path) -> Result<u8, Failure> {
    let (plan, _) = file::read(path, &Keyrings::of(globals))
        .map_err(|error| Failure::plan_file(path, &error))?;
    if globals.json {
        console::print_json(&report::plan(&plan, json!([])));
    } else {
        console::print(&text::plan(&plan, globals.style()));
    }
    Ok(exit::SUCCESS)
}

fn recorded(session: &Session<'_>, selector: Option<&Selector>) -> Result<Reply, Failure> {
    let store = session.need_state()?;
    let snapshot = store.snapshot()?;
    let chosen: Vec<&Record> = snapshot
        .records
        .iter()
        .filter(|record| selector.is_none_or(|selector| selector.matches(&address(record))))
        .collect();
    if let (Some(selector), true) = (selector, chosen.is_empty()) {
        let known: Vec<String> = snapshot
            .records
            .iter()
            .flat_map(|record| [record.group.to_string(), record.address()])
            .collect();
        let name = selector.to_string();
        let finding = Diagnostic::error(format!("nothing is recorded for `{selector}`"));
        let near = crate::diagnostic::nearest(&name, known.iter().map(String::as_str));
        return Err(Failure::new(match near {
            Some(near) => finding.hint(format!("there is `{}`", session.name(near))),
            None => finding.hint("What is recorded: nstance state list"),
        }));
    }
    if session.globals.json {
        let instances = chosen
            .iter()
            .map(|record| view(session, &*store, record))
            .collect::<Result<Vec<_>, _>>()?;
        return Ok(Reply::document(json!({
            "format_version": "1.0",
            "cluster": snapshot.meta.identity.cluster,
            "shard": snapshot.meta.identity.shard,
            "lineage": snapshot.meta.lineage,
            "serial": snapshot.meta.serial,
            "instances": instances,
        })));
    }
    if matches!(selector, Some(Selector::Slot(_))) {
        let mut text = String::new();
        for record in chosen {
            let instance = view(session, &*store, record)?;
            text.push_str(&text::instance(&instance, session.style()));
        }
        return Ok(Reply::text(text));
    }
    let rows: Vec<[String; 6]> = chosen
        .iter()
        .map(|record| {
            [
                session.name(record.address()) + if record.deposed { " (deposed)" } else { "" },
                record.instance_id.clone(),
                record.provider_id.clone(),
                record.zone.clone(),
                record.ip4.clone().unwrap_or_else(|| "-".into()),
                crate::clock::Timestamp::from(record.created_at).to_string(),
            ]
        })
        .collect();
    let header = [
        "ADDRESS",
        "INSTANCE",
        "PROVIDER ID",
        "ZONE",
        "IP4",
        "CREATED",
    ];
    Ok(Reply::text(table(&header, &rows)))
}

/// A record's address.
pub fn address(record: &Record) -> Address {
    Address::new(
        GroupName::from(std::sync::Arc::clone(&record.group)),
        record.slot,
    )
}

/// A record as JSON, with its address and its network addresses.
///
/// Fails if its spec can't be read.
pub fn view(session: &Session<'_>, store: &dyn Store, record: &Record) -> Result<Value, Failure> {
    let side = side(store, record)?;
    let identity = session.identity();
    let address = address(record);
    let tags = crate::plan::change::all_tags(
        session.rules(),
        &identity.cluster,
        &identity.shard,
        &address,
        &side,
    );
    let mut view = Plan::view_with_tags(&side.covered(), &tags);
    if let Value::Object(view) = &mut view {
        if !side.marks.is_empty() && session.globals.json {
            view.insert("sensitive_values".into(), side.marks.to_json());
        }
        view.insert("address".into(), address.to_string().into());
        view.insert("ip4".into(), json!(record.ip4));
        view.insert("ip6".into(), json!(record.ip6));
        view.insert("generation".into(), record.generation.into());
        view.insert("deposed".into(), record.deposed.into());
        let created = crate::clock::Timestamp::from(record.created_at).to_string();
        view.insert("created_at".into(), created.into());
    }
    Ok(view)
}

/// A record with its spec.
///
/// Fails if the spec can't be read.
pub fn side(store: &dyn Store, record: &Record) -> Result<InstanceView, Failure> {
    let bytes = store.specs(&[record.spec])?.remove(&record.spec);
    let body: SpecBody = bytes
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .ok_or_else(|| {
            Failure::say(format!(
                "the recorded spec of {} can't be read",
                record.address()
            ))
        })?;
    Ok(InstanceView::of_record(record, body.into(), record.spec))
}
