//! `nstance import`: record an existing instance.

use std::sync::Arc;

use clap::Args;
use nstance_state::{Store, Write};

use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::plan::prepare;
use super::session::Session;
use super::state_edit::{Step, operate};
use super::{Ending, Globals};
use crate::address::{Address, InShard, InstanceId};
use crate::apply::requests;
use crate::check::Purpose;
use crate::diagnostic::Diagnostic;
use crate::merge::zones::Seat;
use crate::pipeline::{self, PlanError, Request};
use crate::plan::change::InstanceView;
use crate::plan::drift::body_from;
use crate::plan::inputs::{Options, new_instance_id};
use crate::provider::Observation;
use crate::sensitivity::Marks;
use crate::spec::SpecBody;

/// What the configuration says of the slot.
struct Wanted {
    spec: SpecBody,
    marks: Arc<Marks>,
    /// Its number and tag, if the instance is in its zone.
    seat: Seat,
    /// Its index, if the group numbers its instances by zone.
    index: Option<u32>,
}

/// Options of `import`.
#[derive(Debug, Args)]
pub struct Import {
    /// The slot it is to fill
    #[arg(value_name = "ADDR")]
    address: InShard<Address>,
    /// The cloud's id of the instance
    #[arg(value_name = "PROVIDER_ID")]
    provider_id: String,
}

/// Runs `import`.
pub fn run(globals: &Globals, command: &Import) -> Ending {
    let mut fleet = Fleet::load(globals, Purpose::Plan)?;
    fleet.narrow(&command.address, &command.address.address.group)?;
    Ok(fleet.each(Form::Plain, |_, session| import(session, command)))
}

fn import(session: &Session<'_>, command: &Import) -> Result<Reply, Failure> {
    let address = &command.address.address;
    let Some(group) = session.config().group(&address.group) else {
        let known: Vec<String> = session
            .config()
            .groups
            .iter()
            .map(|group| group.name.to_string())
            .collect();
        let name = address.group.to_string();
        let finding = Diagnostic::error(format!("group `{name}` is not defined"));
        return Err(Failure::new(
            match crate::diagnostic::nearest(&name, known.iter().map(String::as_str)) {
                Some(near) => finding.hint(format!("there is a group `{}`", session.name(near))),
                None => finding.hint("Configure the group first, then import its instances"),
            },
        ));
    };
    let group_name = group.name.clone();
    let cloud = session.cloud()?;
    let described = cloud
        .describe(std::slice::from_ref(&command.provider_id))
        .map_err(|error| Failure::say(format!("the instance can't be looked at: {error}")))?;
    let Some(observation) = described
        .into_iter()
        .find(|observation| observation.state.is_live())
    else {
        return Err(Failure::new(
            Diagnostic::error(format!(
                "the cloud has no instance `{}`",
                command.provider_id
            ))
            .hint("Check the id and the region"),
        ));
    };
    let _lock = session.lock("import")?;
    let mut store = session.open_to_write()?;
    let wanted = wanted(session, store.as_deref_mut(), address, &observation)?;
    let mut store = if let Some(store) = store {
        store
    } else {
        let identity = session.identity();
        let now = session.clock.now();
        let lineage = InstanceId::generate("", now.0, lineage_bytes(&identity)).to_string();
        session.create_state(&identity, &lineage)?
    };
    debug_assert_eq!(group_name, address.group);
    record(session, &mut *store, address, &observation, wanted)?;
    if session.globals.quiet {
        return Ok(Reply::text(""));
    }
    Ok(Reply::text(format!(
        "{} is recorded as {}\n\nWhat the configuration would change about it: nstance plan\n",
        session.name(address),
        observation.provider_id
    )))
}

fn lineage_bytes(identity: &nstance_state::Identity) -> [u8; 10] {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(format!("{identity} {}", std::process::id()));
    std::array::from_fn(|index| digest[index])
}

/// The spec and seat of the slot, for values that the cloud doesn't report.
///
/// Fails if it can't be rendered.
fn wanted(
    session: &Session<'_>,
    store: Option<&mut (dyn Store + 'static)>,
    address: &Address,
    observation: &Observation,
) -> Result<Wanted, Failure> {
    let identity = session.identity();
    let options = Options {
        targets: vec![crate::address::Selector::Group(address.group.clone())],
        keep_unchanged: true,
        importing: observation
            .instance_id
            .as_deref()
            .map(|id| (address.clone(), id.into())),
        ..Options::default()
    };
    let cloud = session.cloud()?;
    let prepared = prepare(session, store.as_deref()).map_err(PlanError::Findings)?;
    let made = pipeline::plan(Request {
        config: session.config(),
        sources: &session.loaded.sources,
        document: None,
        manifest: None,
        prepared,
        store: store.map(|store| store as &mut dyn Store),
        cloud: Some(&*cloud),
        observe: false,
        running: None,
        provider_name: session.provider_name(),
        identity: &identity,
        rules: session.rules(),
        clock: &*session.clock,
        refresh_images: false,
        options: &options,
        progress: &mut |_| {},
    })?;
    let plan = made.plan;
    let all = || plan.changes.iter().chain(&plan.unchanged);
    let own = all().find(|change| change.address == *address);
    let side = own
        .or_else(|| all().find(|change| change.address.group == address.group))
        .and_then(|change| change.after.as_deref());
    let own = own.and_then(|change| change.after.as_deref());
    let own = own.filter(|side| *side.zone == *observation.zone);
    Ok(Wanted {
        spec: side.map_or_else(|| SpecBody::empty("ins"), |side| (*side.spec).clone()),
        marks: side.map_or_else(Marks::none, |side| Arc::clone(&side.marks)),
        seat: own.map(|side| side.seat.clone()).unwrap_or_default(),
        index: own.and_then(|side| side.index),
    })
}

fn record(
    session: &Session<'_>,
    store: &mut dyn Store,
    address: &Address,
    observation: &Observation,
    wanted: Wanted,
) -> Result<(), Failure> {
    let snapshot = store.snapshot()?;
    let taken = snapshot
        .records
        .iter()
        .find(|record| record.provider_id == observation.provider_id);
    if let Some(taken) = taken {
        let (now, asked) = (session.name(taken.address()), session.name(address));
        let finding = Diagnostic::error(format!(
            "`{}` is recorded already, as {}",
            observation.provider_id,
            taken.address()
        ));
        return Err(Failure::new(if now == asked {
            finding.hint(format!("Show it: nstance state show {now}"))
        } else {
            finding.hint(format!(
                "Record it under another address: nstance state mv {now} {asked}"
            ))
        }));
    }
    if let Some(holder) = snapshot.live(address.group.as_str(), address.slot) {
        return Err(Failure::new(
            Diagnostic::error(format!("{address} is taken by `{}`", holder.provider_id))
                .hint("Name another slot, or forget that one first: nstance state rm"),
        ));
    }
    let attributes = observation
        .attributes()
        .map_err(|error| Failure::say(format!("what the cloud reports can't be read: {error}")))?;
    let mut body = body_from(&attributes, &wanted.spec, session.rules());
    let subnet = observation.subnet.as_deref();
    body.head
        .subnet_pool
        .take_if(|pool| !session.config().shard.pool_has(pool, subnet));
    let digest = body.clone().into_spec().digest();
    let generation = snapshot.generation(address.group.as_str(), address.slot) + 1;
    let now = session.clock.now();
    let lineage = &snapshot.meta.lineage;
    let instance_id = match &observation.instance_id {
        Some(id) => InstanceId::from(id.as_str()),
        None => new_instance_id(&body.head.kind, now, lineage, address, generation),
    };
    let side = InstanceView {
        instance_id: instance_id.as_str().into(),
        provider_id: Some(observation.provider_id.clone()),
        generation,
        zone: observation.zone.as_str().into(),
        seat: wanted.seat,
        index: wanted.index,
        links: std::collections::BTreeMap::new(),
        manifest_version: None,
        subnet: observation.subnet.as_deref().map(Arc::from),
        ip4: observation.ip4.as_deref().map(Arc::from),
        ip6: observation.ip6.as_deref().map(Arc::from),
        created_at: Some(observation.created_at),
        images: std::collections::BTreeMap::new(),
        protected: false,
        marks: Arc::new(wanted.marks.carried_to(&wanted.spec, &body)),
        version: None,
        spec: Arc::new(body),
        digest,
    };
    // Without the observation's digest, so that the next plan compares all attributes.
    let record = requests::record(address, &side, None, now);
    let step = Step {
        before: None,
        after: Some(record.clone()),
    };
    let spec = Write::PutSpec {
        digest: side.digest,
        bytes: side.spec.to_bytes(),
    };
    let change = vec![spec, Write::PutRecord(Box::new(record))];
    operate(session, store, "import", &[step], change)
}
