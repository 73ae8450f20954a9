//! `nstance doctor`: problems, their meaning and their repair.

use std::path::{Path, PathBuf};

use clap::Args;
use nstance_state::{Backend, StateError, backups};

use super::failure::Failure;
use super::fleet::{Fleet, Form, Reply};
use super::plan::try_make;
use super::plan_args::PlanArgs;
use super::selection::Selection;
use super::session::Session;
use super::{Ending, Globals, exit, plan_files};
use crate::address::{InShard, Selector};
use crate::check::Purpose;
use crate::diagnostic::Diagnostics;
use crate::doctor::Examination;
use crate::doctor::access;
use crate::doctor::cloud::{self, Compared};
use crate::doctor::local::{self, FileFacts, Local, State};
use crate::pipeline::PlanError;
use crate::plan::change::Mode;
use crate::plan::file;
use crate::provider::{AccessSample, Cloud};
use crate::report;

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Save the plan of the repair, for `apply`
    ///
    /// {cluster} and {shard} in the name are replaced.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Repair only this group or slot (may repeat)
    #[arg(long, value_name = "ADDR")]
    target: Vec<InShard<Selector>>,
    /// Propose no repair of this group or slot; may repeat
    #[arg(long, value_name = "ADDR")]
    exclude: Vec<InShard<Selector>>,
}

/// Runs `doctor`.
pub fn run(globals: &Globals, command: &Doctor) -> Ending {
    let mut fleet = Fleet::load(globals, Purpose::Plan)?;
    let shape = PlanArgs::of(&command.target, &command.exclude, Mode::Normal);
    let chosen = fleet.select(shape.asked())?;
    let files = match &command.out {
        Some(path) => plan_files::paths(&fleet, path)?
            .into_iter()
            .map(Some)
            .collect(),
        None => vec![None; fleet.shards.len()],
    };
    let form = Form::Headed.documents_or(globals.json);
    Ok(fleet.each(form, |index, session| {
        doctor(session, &shape, &chosen[index], files[index].as_deref())
    }))
}

fn doctor(
    session: &Session<'_>,
    shape: &PlanArgs,
    chosen: &Selection,
    out: Option<&Path>,
) -> Result<Reply, Failure> {
    let local = gather(session)?;
    let mut examination = local::examine(&local, session.clock.now());
    let mut findings = session.loaded.findings.clone();
    if !matches!(local.state, State::Unusable { .. }) {
        let is_busy = local.holder.is_some();
        let cloud = session.cloud();
        if let Ok(cloud) = &cloud
            && let Some(access) = cloud.check_access(&sample(session)?)
        {
            examination.add(access::examine(&access));
        }
        let (compared, found) = compare(session, cloud, shape, chosen, is_busy)?;
        examination.add(compared);
        findings.extend(found);
    }
    let mut note = String::new();
    if let Some(plan) = &examination.repair {
        let given = super::plan::given(session.globals);
        note = match out {
            Some(path) => {
                let key = match session.open_to_read()? {
                    Some(store) => session.keys.of_plan(store.meta()?.key.as_ref())?,
                    None => session.keys.of_plan(None)?,
                };
                file::write(path, plan, key.as_ref())
                    .map_err(|error| Failure::unsaved_plan(path, &error))?;
                let path = path.display();
                format!(
                    "\nSaved the repair to: {path}\nTo carry it out: nstance{given} apply {path}\n"
                )
            }
            None => format!(
                "\nTo carry it out: nstance{given} doctor --out FILE, then nstance{given} apply FILE\n"
            ),
        };
    }
    let code = if examination.is_healthy() {
        exit::SUCCESS
    } else {
        exit::CHANGES
    };
    let mut reply = if session.globals.json {
        let findings = session.findings_json(&findings);
        Reply::document(report::doctor::json(&examination, findings))
    } else {
        Reply::text(report::doctor::text(&examination, session.style())).telling(findings)
    };
    if !session.globals.json && !session.globals.quiet {
        reply.note = note;
    }
    Ok(reply.ending(code))
}

/// Collects facts about the local machine.
///
/// Fails if the path of the state is invalid.
fn gather(session: &Session<'_>) -> Result<Local, Failure> {
    let backend = session.backend()?;
    let mut files = Vec::new();
    let mut backups = Vec::new();
    let has_backups = backend.file().is_some();
    if let Some(file) = backend.file() {
        files.push((file.to_owned(), true));
        backups = backups::in_folder(&backups::folder_of(file)).unwrap_or_default();
    }
    files.push((session.home().join("key"), false));
    files.extend(backups.iter().map(|backup| (backup.clone(), false)));
    Ok(Local {
        state: look(session, backend),
        holder: session.holder(),
        remains: backend.remains().unwrap_or_default(),
        files: files
            .iter()
            .filter_map(|(path, is_written)| facts(path, *is_written))
            .collect(),
        has_backups,
        backups: backups
            .iter()
            .map(|backup| backup.display().to_string())
            .collect(),
        path: backend.place().display().to_string(),
    })
}

fn facts(path: &Path, is_written: bool) -> Option<FileFacts> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    #[cfg(not(unix))]
    let mode = 0 * metadata.len() as u32;
    Some(FileFacts {
        path: path.display().to_string(),
        mode,
        is_written,
    })
}

/// Opens the state, if possible. Failing to open it is a finding, not an error.
fn look(session: &Session<'_>, backend: &dyn Backend) -> State {
    let open = || -> Result<State, StateError> {
        let store = backend.open_to_read(Some(&session.identity()))?;
        let problems = store.check()?;
        let latest = store.history(1)?.into_iter().next().map(Box::new);
        let meta = store.meta()?;
        // Report damage even if nothing more can be read.
        let (records, intents) = match store.snapshot() {
            Ok(snapshot) => (snapshot.records.len(), snapshot.intents),
            Err(error) if problems.is_empty() => return Err(error),
            Err(_) => (0, Vec::new()),
        };
        Ok(State::Open {
            serial: meta.serial,
            records,
            problems,
            intents,
            latest,
        })
    };
    match open() {
        Ok(state) => state,
        Err(StateError::NotFound { .. }) => State::Missing,
        Err(error) => {
            let is_lost = matches!(
                error,
                StateError::Corrupt { .. } | StateError::NotAState { .. }
            );
            let hint = error.hint().filter(|_| !is_lost);
            State::Unusable {
                why: error.to_string(),
                hints: hint.into_iter().collect(),
                is_lost,
            }
        }
    }
}

/// A sample instance to check permissions with, since they may depend on it.
///
/// Fails if the state can't be opened.
fn sample(session: &Session<'_>) -> Result<AccessSample, Failure> {
    let pools = &session.config().shard.subnet_pools;
    let subnet = pools.iter().find_map(|(_, pool)| pool.value.first());
    let mut sample = AccessSample {
        subnet: subnet.map(|subnet| subnet.value.to_string()),
        ..AccessSample::default()
    };
    if let Some(store) = session.open_to_read()? {
        // Errors of the state were reported already.
        let instance = store.snapshot().ok().and_then(|snapshot| {
            let record = snapshot.records.into_iter().next()?;
            Some(record.provider_id)
        });
        sample.instance = instance;
        let images = store.images().unwrap_or_default();
        sample.image = images.into_iter().next().map(|image| image.image_id);
    }
    Ok(sample)
}

/// Compares the record with the cloud, if that can be queried.
///
/// Fails if the configuration or the selection is invalid, or if the state can't be opened.
fn compare(
    session: &Session<'_>,
    cloud: Result<Box<dyn Cloud>, Failure>,
    shape: &PlanArgs,
    chosen: &Selection,
    is_busy: bool,
) -> Result<(Examination, Diagnostics), Failure> {
    let options = shape.options(session, chosen, false)?;
    // Compare everything; the selection only limits the repairs.
    let everything =
        PlanArgs::of(&[], &[], Mode::Normal).options(session, &Selection::default(), false)?;
    let cloud = match cloud {
        Ok(cloud) => cloud,
        Err(failure) => {
            let examination = cloud::unasked(failure.findings);
            return Ok((examination, Diagnostics::default()));
        }
    };
    let mut store = session.open_to_read()?;
    let made = match try_make(
        session,
        store.as_deref_mut(),
        Some(&*cloud),
        false,
        &everything,
    ) {
        Err(error @ PlanError::Cloud { .. }) => {
            let examination = cloud::unasked(Failure::from(error).findings);
            return Ok((examination, Diagnostics::default()));
        }
        // Errors of the state were reported already.
        Err(PlanError::State(_)) => return Ok((cloud::skipped(), Diagnostics::default())),
        made => made?,
    };
    let Some(observed) = &made.observed else {
        return Ok((Examination::default(), made.findings));
    };
    let examination = cloud::examine(&Compared {
        plan: &made.plan,
        snapshot: made.snapshot.as_ref(),
        observed,
        options: &options,
        is_busy,
    });
    // Warnings belong to `plan`; errors matter here, since they prevent repairs.
    let errors = made.findings.into_iter();
    let errors = errors.filter(|finding| finding.severity == crate::diagnostic::Severity::Error);
    let mut findings = Diagnostics::default();
    findings.extend(errors);
    Ok((examination, findings))
}
