//! `nstance jobs services`: the DNS name of each index of a manifest's groups, and the recorded
//! instances behind it.
//!
//! In: a session: its manifest, and the state if it exists. Out: text or JSON. Must not: ask a cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use clap::{Args, ValueEnum};
use nstance_bosh::instances::Profile;
use nstance_bosh::services::{Group, Layout, Service, services};
use serde_json::{Value, json};

use super::failure::{Failure, Failures};
use super::fleet::{Fleet, Form, Reply};
use super::jobs_dns::addresses_of;
use super::session::Session;
use super::{Ending, Globals, unplaced};
use crate::check::Purpose;
use crate::config::load::Manifest;
use crate::diagnostic::Diagnostic;
use crate::dialect::bosh::id_of;
use crate::plan::change::RecordAttributes;

/// Options of `jobs services`.
#[derive(Debug, Args)]
pub struct Services {
    /// The order of indices: of instances, or of Quarks's table
    #[arg(
        long,
        value_enum,
        value_name = "formula|table",
        default_value = "formula",
        hide_possible_values = true
    )]
    layout: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    Formula,
    Table,
}

/// Shows the services of all shards.
pub(super) fn run(globals: &Globals, command: &Services) -> Ending {
    let fleet = Fleet::load(globals, Purpose::Render)?;
    for session in &fleet.shards {
        manifest(session)?;
    }
    let form = Form::Plain.documents_or(globals.json);
    Ok(fleet.each(form, |_, session| {
        let layout = match command.layout {
            Order::Formula => Layout::Formula,
            Order::Table => Layout::Table,
        };
        let shown = of_session(session, layout)?;
        Ok(match form {
            Form::Documents => Reply::document(as_json(&shown)),
            _ => Reply::text(as_text(&shown)),
        })
    }))
}

/// The manifest of a session.
///
/// Fails if it has none, or one without services.
fn manifest<'s>(session: &'s Session<'_>) -> Result<&'s Manifest, Failures> {
    let Some(manifest) = &session.loaded.manifest else {
        let finding = Diagnostic::error("the configuration has no BOSH manifest");
        return Err(unplaced(finding.hint("Name one: -c MANIFEST, or `source`")));
    };
    if manifest.naming.profile == Profile::Bosh {
        let finding = Diagnostic::error("only the profile `quarks` has services");
        return Err(unplaced(
            finding.hint("`nstance jobs dns` shows the names of instances"),
        ));
    }
    Ok(manifest)
}

/// A service, and the recorded instances that it selects.
struct Shown {
    group: String,
    index: usize,
    service: Service,
    selected: Vec<Selected>,
}

struct Selected {
    name: String,
    version: u64,
    addresses: Vec<IpAddr>,
}

/// The services of a session's manifest.
///
/// Fails if the state can't be read.
fn of_session(session: &Session<'_>, layout: Layout) -> Result<Vec<Shown>, Failure> {
    let Some(manifest) = &session.loaded.manifest else {
        return Ok(Vec::new());
    };
    let store = session.open_to_read()?;
    let snapshot = store.map(|store| store.snapshot()).transpose()?;
    // By group, index and version.
    let mut recorded = BTreeMap::new();
    for record in snapshot.iter().flat_map(|snapshot| &snapshot.records) {
        let attributes = RecordAttributes::parse(&record.attributes);
        let index = attributes.index.unwrap_or(record.slot);
        if let Some(version) = attributes.manifest_version {
            let key = (record.group.to_string(), index, version);
            recorded.insert(key, addresses_of(record));
        }
    }
    let mut shown = Vec::new();
    for own in &manifest.groups {
        let Some(id) = id_of(&own.name).map(|id| format!("default/{id}")) else {
            continue;
        };
        let of_group = recorded.keys().filter(|(group, ..)| *group == id);
        let versions: BTreeSet<u64> = of_group.map(|(.., version)| *version).collect();
        let versions: Vec<u64> = versions.into_iter().collect();
        let group = Group {
            naming: &manifest.naming,
            instance_group: &own.name,
            replicas: own.replicas,
            az_count: own.zones,
            versions: &versions,
            layout,
        };
        for (index, mut service) in services(&group).into_iter().enumerate() {
            let instance = service.zone * own.replicas + service.ordinal;
            let selects = std::mem::take(&mut service.selects).into_iter();
            let selected = selects.zip(&versions).filter_map(|(name, version)| {
                let addresses = recorded.get(&(id.clone(), instance, *version))?;
                Some(Selected {
                    name,
                    version: *version,
                    addresses: addresses.clone(),
                })
            });
            shown.push(Shown {
                group: own.name.clone(),
                index,
                selected: selected.collect(),
                service,
            });
        }
    }
    Ok(shown)
}

fn as_text(shown: &[Shown]) -> String {
    let widths = shown.iter().map(|shown| shown.service.dns.len());
    let width = widths.max().unwrap_or(0);
    let lines = shown.iter().map(|shown| {
        let names = shown.selected.iter().map(|selected| &*selected.name);
        let names: Vec<&str> = names.collect();
        let names = match &names[..] {
            [] => "(no instance)".to_owned(),
            names => names.join(", "),
        };
        format!("{:<width$}  {names}\n", shown.service.dns)
    });
    lines.collect()
}

fn as_json(shown: &[Shown]) -> Value {
    let services = shown.iter().map(|shown| {
        let selected = shown.selected.iter();
        let selected = selected.map(|selected| {
            json!({
                "name": selected.name,
                "version": selected.version,
                "addresses": selected.addresses,
            })
        });
        json!({
            "group": shown.group,
            "index": shown.index,
            "name": shown.service.name,
            "dns": shown.service.dns,
            "selects": selected.collect::<Vec<_>>(),
        })
    });
    json!({"format_version": "1.0", "services": services.collect::<Vec<_>>()})
}
