//! `nstance apply` and `nstance destroy`: a plan, carried out.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::Args;
use nstance_state::{ApplyStatus, NewApply, Store};

use super::conclusion::conclude;
use super::consent::{Consent, refuse, refuse_stale};
use super::failure::Failure;
use super::plan::{self, Shape};
use super::progress::ApplyProgress;
use super::session::{self, Session};
use super::{Ending, Globals, exit, placed, signals};
use crate::address::Address;
use crate::apply::driver::{World, drive};
use crate::apply::engine::Limits;
use crate::apply::export::Exporter;
use crate::apply::recover::recover;
use crate::config::check::Purpose;
use crate::diagnostic::Diagnostic;
use crate::pipeline::Caches;
use crate::plan::change::{Mode, Plan};
use crate::plan::file;
use crate::provider::{Cloud, Owner};
use crate::report::events::{self, Done, Events};
use crate::report::{diagnostic, text};

/// Options of `apply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// A saved plan; without one a plan is made, shown, and asked about
    #[arg(value_name = "PLANFILE", conflicts_with_all = ["target", "exclude", "replace", "destroy", "refresh_only", "refresh_images"])]
    plan: Option<PathBuf>,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    shape: Shape,
}

/// Options of `destroy`.
#[derive(Debug, Args)]
pub struct Destroy {
    /// Only this group or slot; may repeat
    #[arg(long, value_name = "ADDR")]
    target: Vec<crate::address::Selector>,
    /// Not this group or slot; may repeat
    #[arg(long, value_name = "ADDR")]
    exclude: Vec<crate::address::Selector>,
    #[command(flatten)]
    consent: Consent,
}

/// Runs `apply`.
pub fn run(globals: &Globals, command: &Apply) -> Ending {
    let session = Session::load(globals, Purpose::Plan)?;
    let result = apply(
        &session,
        command.plan.as_deref(),
        &command.shape,
        &command.consent,
        "apply",
    );
    placed(session, result)
}

/// Runs `destroy`.
pub fn destroy(globals: &Globals, command: &Destroy) -> Ending {
    let session = Session::load(globals, Purpose::Plan)?;
    let shape = Shape {
        target: command.target.clone(),
        exclude: command.exclude.clone(),
        replace: Vec::new(),
        destroy: true,
        refresh_only: false,
        refresh: true,
        refresh_images: false,
    };
    let result = apply(&session, None, &shape, &command.consent, "destroy");
    placed(session, result)
}

fn apply(
    session: &Session<'_>,
    plan_file: Option<&Path>,
    shape: &Shape,
    consent: &Consent,
    operation: &str,
) -> Result<u8, Failure> {
    if !consent.auto_approve && plan_file.is_none() && !std::io::stdin().is_terminal() {
        return Err(Failure::new(
            Diagnostic::error(
                "nobody can be asked whether to apply this: standard input is no terminal",
            )
            .hint("Say so on the command line: --auto-approve")
            .hint("Or save a plan, look at it, and apply that: nstance plan --out FILE"),
        ));
    }
    let read = plan_file
        .map(|path| file::read(path).map_err(|error| Failure::plan_file(path, &error)))
        .transpose()?;
    if let Some((plan, _)) = &read {
        same_identity(session, plan)?;
    }
    let cloud = session.cloud()?;
    let lock = session.lock(operation)?;
    let mut store = session.open_to_write()?;
    settle(session, store.as_mut(), &*cloud)?;
    let (plan, digest, caches) = match read {
        Some((plan, digest)) => {
            let snapshot = store.as_ref().map(Store::snapshot).transpose()?;
            refuse_stale(&plan, snapshot.as_ref())?;
            (plan, Some(digest), Caches::default())
        }
        None => {
            let (plan, caches) = make_plan(session, store.as_mut(), &*cloud, shape)?;
            (plan, None, caches)
        }
    };
    refuse(&plan, consent)?;
    if !plan.summary.has_changes() {
        if let Some(store) = &mut store {
            caches.save(store, session.clock.now())?;
        }
        return Ok(nothing_to_do(session, &plan));
    }
    if !consent.auto_approve && plan_file.is_none() && !ask(&plan)? {
        session::print("\nApply cancelled.\n");
        return Ok(exit::ERROR);
    }
    let mut store = match store {
        Some(store) => store,
        None => Store::create(
            &session.state_path()?,
            &plan.identity(),
            &plan.lineage,
            session.clock.now().into(),
        )?,
    };
    caches.save(&mut store, session.clock.now())?;
    let outcome = carry_out(session, &plan, digest, &mut store, &*cloud, operation);
    lock.release();
    outcome
}

fn same_identity(session: &Session<'_>, plan: &Plan) -> Result<(), Failure> {
    let (ours, its) = (session.identity(), plan.identity());
    if ours == its {
        return Ok(());
    }
    Err(Failure::new(
        Diagnostic::error(format!(
            "the plan is for {its}, this configuration is {ours}"
        ))
        .hint("Apply it with the configuration and the options that it was made with"),
    ))
}

fn make_plan(
    session: &Session<'_>,
    store: Option<&mut Store>,
    cloud: &dyn Cloud,
    shape: &Shape,
) -> Result<(Plan, Caches), Failure> {
    let options = shape.options(session, false)?;
    let cloud = shape.refresh.then_some(cloud);
    let made = plan::make(session, store, cloud, shape.refresh_images, &options)?;
    let findings = plan::all_findings(session, made.findings);
    if session.globals.json {
        let now = session.clock.now();
        session::print(&format!("{}\n", events::version(now)));
        for event in diagnostic::to_json(&findings, &session.loaded.sources)
            .as_array()
            .into_iter()
            .flatten()
        {
            session::print(&format!("{}\n", events::diagnostic(now, event.clone())));
        }
        let events = Events::of(&made.plan);
        let drifts = made
            .plan
            .drift
            .iter()
            .filter_map(|drift| events.resource_drift(now, drift));
        let changes = made
            .plan
            .changes
            .iter()
            .filter_map(|change| events.planned_change(now, change));
        for event in drifts.chain(changes) {
            session::print(&format!("{event}\n"));
        }
        session::print(&format!(
            "{}\n",
            events::plan_summary(now, &made.plan.summary)
        ));
    } else {
        session::print(&text::plan(&made.plan, session.style()));
        session.tell(&findings);
    }
    Ok((made.plan, made.caches))
}

/// Settles what an earlier run left open, before anything else is looked at.
fn settle(
    session: &Session<'_>,
    store: Option<&mut Store>,
    cloud: &dyn Cloud,
) -> Result<(), Failure> {
    let Some(store) = store else { return Ok(()) };
    let config = session.config();
    let wanted = |address: &Address| {
        config.group(&address.group).is_some_and(|group| {
            let size = group.common.size.as_ref().or_else(|| {
                let template = group.template.as_ref()?;
                config
                    .templates
                    .get(&template.value)?
                    .value
                    .common
                    .size
                    .as_ref()
            });
            address.slot < size.map_or(1, |size| size.value)
        })
    };
    let identity = session.identity();
    let owner = Owner {
        cluster: identity.cluster,
        shard: identity.shard,
    };
    let settled = recover(store, cloud, &*session.clock, &owner, None, &wanted)?;
    for one in settled {
        if !session.globals.quiet {
            session::error(&format!(
                "{}: settled an interrupted {}: it {}\n",
                one.address,
                one.operation.as_str(),
                one.result
            ));
        }
    }
    Ok(())
}

fn nothing_to_do(session: &Session<'_>, plan: &Plan) -> u8 {
    if session.globals.json {
        let now = session.clock.now();
        session::print(&format!(
            "{}\n",
            events::apply_summary(now, plan.mode, Done::default())
        ));
    } else {
        let text = match plan.mode {
            Mode::Destroy => "Destroy complete! Resources: 0 destroyed.".to_owned(),
            Mode::Normal | Mode::RefreshOnly => events::done_text(Done::default()),
        };
        session::print(&format!("\n{text}\n"));
    }
    if plan.errored() {
        exit::ERROR
    } else {
        exit::SUCCESS
    }
}

/// Only the whole word counts, as people know it.
fn ask(plan: &Plan) -> Result<bool, Failure> {
    let question = match plan.mode {
        Mode::Destroy => {
            let mut question =
                "\nDo you really want to destroy all of these instances?\n".to_owned();
            if !plan.deletions.protected.is_empty() {
                question.push_str(&format!(
                    "  Protected groups lose instances: {}\n",
                    plan.deletions.protected.join(", ")
                ));
            }
            question
        }
        Mode::Normal => "\nDo you want to perform these actions?\n".to_owned(),
        Mode::RefreshOnly => "\nDo you want to record these findings?\n".to_owned(),
    };
    session::print(&format!(
        "{question}  Only 'yes' will be accepted to approve.\n\n  Enter a value: "
    ));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

fn carry_out(
    session: &Session<'_>,
    plan: &Plan,
    digest: Option<String>,
    store: &mut Store,
    cloud: &dyn Cloud,
    operation: &str,
) -> Result<u8, Failure> {
    let who = session::who();
    let now = session.clock.now();
    let apply = store.transaction(now.into(), |transaction| {
        transaction.start_apply(NewApply {
            who: who.user,
            host: who.host,
            pid: std::process::id(),
            operation: operation.to_owned(),
            plan_digest: digest,
        })
    })?;
    let limits = Limits {
        parallelism: session
            .globals
            .parallelism
            .map_or(cloud.parallelism(), usize::from),
        create_interval: session.config().shard.create_rate_limit,
        ..Limits::default()
    };
    let signals = signals::graceful();
    let exporter = Exporter::new(&session.exports());
    let mut progress = ApplyProgress::new(session.globals, plan, &*session.clock);
    let driven = drive(
        plan,
        limits,
        // Spreads the retries of processes that started together.
        now.0 as u64 ^ u64::from(std::process::id()) << 32,
        &mut World {
            store,
            cloud,
            clock: &*session.clock,
            exporter: &exporter,
            signals: signals.count(),
            apply: Some(apply),
        },
        &mut |step| progress.tell(step),
    );
    progress.finish();
    let outcome = match driven {
        Ok(outcome) => outcome,
        Err(error) => {
            let mut failure = Failure::from(error);
            failure.code = signals.code().unwrap_or(exit::ERROR);
            return Err(failure);
        }
    };
    let status = match (outcome.is_complete(), outcome.stopped) {
        (true, _) => ApplyStatus::Succeeded,
        (false, true) => ApplyStatus::Interrupted,
        (false, false) => ApplyStatus::Failed,
    };
    let summary = serde_json::to_string(&outcome.done).expect("its keys are strings");
    store.transaction(session.clock.now().into(), |transaction| {
        transaction.finish_apply(apply, status, &summary)?;
        transaction.collect_garbage()
    })?;
    Ok(conclude(session, plan, &outcome, signals.code()))
}
