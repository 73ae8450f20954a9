//! `nstance plan`: what apply would do.

use std::path::{Path, PathBuf};

use clap::Args;
use nstance_state::{KeyNeed, LockInfo, Store};

use super::console;
use super::failure::Failure;
use super::fleet::{Fleet, Reply};
use super::plan_args::{PlanArgs, Replacements};
use super::plan_files;
use super::progress::Listing;
use super::reports::{Found, Reports};
use super::rollout;
use super::selection::{AddressArgs, Selection};
use super::session::Session;
use super::{Ending, Globals, exit, output, page};
use crate::apply::rollout_record::OpenRollout;
use crate::check::Purpose;
use crate::credentials::{self, key_of_url};
use crate::diagnostic::{Diagnostics, Severity};
use crate::pipeline::{self, Caches, PlanError, PlanOutput, Prepared, Request};
use crate::plan::change::Plan;
use crate::plan::file;
use crate::plan::inputs::Options;
use crate::provider::Cloud;
use crate::report::review::Subject;
use crate::report::{json, text};
use crate::stage;

/// Options of `plan`.
#[derive(Debug, Args)]
pub struct PlanCommand {
    /// Save the plan, for `apply` and `show`
    ///
    /// {cluster} and {shard} in the name are replaced.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write an HTML page of the plan
    ///
    /// {cluster} and {shard} in the name are replaced.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Exit with code 2 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
    /// Show sensitive values
    #[arg(long)]
    show_sensitive: bool,
    #[command(flatten)]
    pub(super) reports: Reports,
    #[command(flatten)]
    replacements: Replacements,
    #[command(flatten)]
    pub(super) shape: PlanArgs,
}

/// Runs `plan`.
pub fn run(globals: &Globals, command: &PlanCommand) -> Ending {
    let reports = &command.reports;
    reports.around(Subject::Plan, || plan_all(globals, command))
}

fn plan_all(globals: &Globals, command: &PlanCommand) -> Ending {
    let mut fleet = Fleet::load(globals, Purpose::Plan)?;
    let chosen = fleet.select(AddressArgs {
        allow_replace: &command.replacements.allow_replace,
        ..command.shape.asked()
    })?;
    let files = match &command.out {
        Some(path) => plan_files::paths(&fleet, path)?
            .into_iter()
            .map(Some)
            .collect(),
        None => vec![None; fleet.shards.len()],
    };
    let mut all: Vec<Found> = fleet.shards.iter().map(|_| Found::default()).collect();
    let pages = page::paths(&fleet, command.html.as_deref())?;
    let plans = files.iter().flatten().map(PathBuf::as_path);
    let html = pages.iter().flatten().map(PathBuf::as_path);
    command.reports.check_files(&fleet, plans, html)?;
    let mut summaries = vec![None; fleet.shards.len()];
    let prints_text = command.reports.prints_text() && !globals.json;
    let code = fleet.each(command.reports.form(globals), |index, session| {
        let files = [&files[index], &pages[index]].map(Option::as_deref);
        let made = plan(session, command, &chosen[index], files)?;
        summaries[index] = Some(made.found.planned);
        all[index] = made.found;
        Ok(made.reply)
    });
    if fleet.is_several() && prints_text {
        let total = text::plan_total(&summaries, globals.style());
        console::print(&format!("\n{total}\n"));
    }
    let saved = summaries.iter().zip(files.iter().flatten());
    let saved: Vec<String> = saved
        .filter(|(summary, _)| summary.is_some())
        .map(|(_, file)| console::shown(file))
        .collect();
    if !saved.is_empty() && !globals.json && !globals.quiet {
        console::error(&saved_to(globals, &saved));
    }
    let pages = summaries.iter().zip(pages.iter().flatten());
    let pages: Vec<&Path> = pages
        .filter(|(summary, _)| summary.is_some())
        .map(|(_, page)| &**page)
        .collect();
    page::tell(globals, &pages);
    let reports = &command.reports;
    Ok(reports.publish(&fleet, Subject::Plan, all, None, code))
}

/// The message about saved plans, with the command to apply them.
fn saved_to(globals: &Globals, files: &[String]) -> String {
    let (them, it) = match files {
        [_] => ("the plan", "it"),
        _ => ("the plans", "them"),
    };
    let (files, given) = (files.join(" "), given(globals));
    format!("\nSaved {them} to: {files}\nTo carry {it} out: nstance{given} apply {files}\n")
}

/// A shard's plan and its output.
struct Planned {
    reply: Reply,
    found: Found,
}

fn plan(
    session: &Session<'_>,
    command: &PlanCommand,
    chosen: &Selection,
    [file, page]: [Option<&Path>; 2],
) -> Result<Planned, Failure> {
    let json = session.globals.json;
    let ReadOnly {
        mut plan,
        findings,
        key,
    } = read_only(
        session,
        &command.shape,
        chosen,
        Purposes {
            is_saved: file.is_some(),
            is_document: json || command.reports.have_document(),
        },
    )?;
    if let Some(path) = file {
        let key = session.keys.of_plan(key.as_ref())?;
        // An incomplete plan is still worth saving; apply refuses it.
        file::write(path, &plan, key.as_ref())
            .map_err(|error| Failure::unsaved_plan(path, &error))?;
    }
    if let Some(path) = page {
        output::write(path, &page::of(session, &plan, &findings).text(None))?;
    }
    let code = exit_code(&plan, &findings, command.detailed_exitcode);
    let found = Found {
        planned: plan.summary,
        plan: command.reports.collects().then(|| plan.clone()),
        applied: None,
    };
    if command.show_sensitive {
        plan.show_sensitive();
        console::show_sensitive();
    }
    let reply = stage::timed("format plan", || {
        if json {
            session.note(&findings);
            Reply::document(json::plan(&plan, session.findings_json(&findings)))
        } else if command.reports.prints_text() {
            Reply::text(text::plan(&plan, session.style())).telling(findings)
        } else {
            Reply::text("").telling(findings)
        }
    });
    Ok(Planned {
        reply: reply.ending(code),
        found,
    })
}

/// A plan that is only shown or saved.
pub(super) struct ReadOnly {
    /// The plan.
    pub plan: Plan,
    /// The findings of loading and planning.
    pub findings: Diagnostics,
    /// The key of the state, if the plan is to be saved.
    key: Option<KeyNeed>,
}

/// What a plan is made for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Purposes {
    /// Whether it is saved.
    pub is_saved: bool,
    /// Whether it becomes a document, which has unchanged instances, too.
    pub is_document: bool,
}

/// Plans a shard for a command that doesn't apply; keeps what was looked up.
///
/// Fails if planning fails.
pub(super) fn read_only(
    session: &Session<'_>,
    shape: &PlanArgs,
    chosen: &Selection,
    purposes: Purposes,
) -> Result<ReadOnly, Failure> {
    let is_saved = purposes.is_saved;
    let options = shape.options(session, chosen, purposes.is_document)?;
    let mut store = session.open_to_read()?;
    let cloud = if shape.refresh {
        Some(session.cloud()?)
    } else {
        None
    };
    let made = make(
        session,
        store.as_deref_mut(),
        cloud.as_deref(),
        shape.refresh_images,
        &options,
    )?;
    let key = match &store {
        Some(store) if is_saved => store.meta()?.key,
        _ => None,
    };
    let PlanOutput {
        mut plan,
        mut findings,
        caches,
        ..
    } = made;
    if let Some(state) = store.as_deref() {
        if let Some(found) = OpenRollout::of(state)? {
            let continues = found.is_continued_by(&options, shape.refresh_images);
            findings.extend(found.note(session, &plan, continues, is_saved));
        }
        findings.extend(rollout::rolled_back(state, &plan, Severity::Warning)?);
    }
    drop(store);
    keep(session, caches);
    findings.extend(plan.release(|group| chosen.allows_replace(group)));
    let findings = all_findings(session, findings);
    Ok(ReadOnly {
        plan,
        findings,
        key,
    })
}

/// The exit code of a plan that is only shown.
pub(super) fn exit_code(plan: &Plan, findings: &Diagnostics, is_detailed: bool) -> u8 {
    if plan.errored() || findings.has_errors() {
        exit::ERROR
    } else if is_detailed && plan.summary.has_changes() {
        exit::CHANGES
    } else {
        exit::SUCCESS
    }
}

/// The global options that select configuration, state and cloud, as given.
pub fn given(globals: &Globals) -> String {
    let mut text = String::new();
    for config in &globals.config {
        text.push_str(&format!(" -c {}", config.display()));
    }
    if let Some(state) = &globals.state {
        let state = credentials::without_credentials(state);
        text.push_str(&format!(" --state {state}"));
    }
    if globals.sim {
        text.push_str(" --sim");
    }
    text
}

/// Compiles the groups of a shard; bodies of URLs that can't be fetched come from `store`.
pub fn prepare<'s>(
    session: &'s Session<'_>,
    store: Option<&dyn Store>,
) -> Result<Prepared<'s>, Diagnostics> {
    let (config, loaded) = (session.config(), &session.loaded);
    let kept = |url: &str| {
        let fetched = store?.fetched(&key_of_url(url)).ok().flatten();
        fetched.map(|row| row.body)
    };
    let strict = session.globals.strict;
    pipeline::prepare(
        config,
        &loaded.sources,
        &loaded.directory,
        true,
        kept,
        strict,
    )
}

/// Makes a plan; shows progress on standard error while it lists instances.
///
/// Fails if planning fails; errors include the findings of loading.
pub fn make<'s>(
    session: &'s Session<'_>,
    store: Option<&mut (dyn Store + 'static)>,
    cloud: Option<&dyn Cloud>,
    refresh_images: bool,
    options: &Options,
) -> Result<PlanOutput<'s>, Failure> {
    try_make(session, store, cloud, refresh_images, options).map_err(|error| match error {
        PlanError::Findings(findings) => all_findings(session, findings).into(),
        error => error.into(),
    })
}

/// Makes a plan, like [`make`], but fails with the original error.
pub fn try_make<'s>(
    session: &'s Session<'_>,
    store: Option<&mut (dyn Store + 'static)>,
    cloud: Option<&dyn Cloud>,
    refresh_images: bool,
    options: &Options,
) -> Result<PlanOutput<'s>, PlanError> {
    let prepared = prepare(session, store.as_deref()).map_err(PlanError::Findings)?;
    let holder = session.holder();
    make_of(
        session,
        prepared,
        store,
        cloud,
        refresh_images,
        options,
        holder.as_ref(),
    )
}

/// Makes a plan of compiled groups; `running` is the lock's holder, unless this process holds it.
///
/// Fails if the state or the cloud fails.
pub fn make_of<'s>(
    session: &'s Session<'_>,
    prepared: Prepared<'s>,
    store: Option<&mut (dyn Store + 'static)>,
    cloud: Option<&dyn Cloud>,
    refresh_images: bool,
    options: &Options,
    running: Option<&LockInfo>,
) -> Result<PlanOutput<'s>, PlanError> {
    let identity = session.identity();
    let listing = Listing::new(session.globals, cloud.map(Cloud::name));
    let made = pipeline::plan(Request {
        config: session.config(),
        sources: &session.loaded.sources,
        document: session.loaded.document.as_ref(),
        manifest: session
            .loaded
            .manifest
            .as_ref()
            .map(|manifest| &*manifest.text),
        prepared,
        store: store.map(|store| store as &mut dyn Store),
        cloud,
        observe: true,
        running,
        provider_name: session.provider_name(),
        identity: &identity,
        rules: session.rules(),
        clock: &*session.clock,
        refresh_images,
        options,
        progress: &mut |count| listing.set(count),
    });
    listing.finish();
    made
}

/// The findings of loading, then those of planning.
pub fn all_findings(session: &Session<'_>, findings: Diagnostics) -> Diagnostics {
    let mut all = session.loaded.findings.clone();
    all.extend(findings);
    all
}

/// Saves cache entries in an existing, writable state. Ignores errors and doesn't wait for a lock,
/// since the cache is optional.
pub(super) fn keep(session: &Session<'_>, caches: Caches) {
    if caches.is_empty() {
        return;
    }
    // Cache entries may contain secrets, so only an encrypted state keeps them. A plan also doesn't
    // migrate the schema.
    let is_sealed = |store: &dyn Store| store.meta().is_ok_and(|meta| meta.key.is_some());
    let is_ready = session
        .open_to_read()
        .is_ok_and(|store| store.is_some_and(|store| !store.is_outdated() && is_sealed(&*store)));
    if is_ready && let Ok(Some(mut store)) = session.open_as_it_is() {
        let _ = store.set_busy_timeout(std::time::Duration::from_millis(200));
        let _ = caches.save(&mut *store, session.clock.now());
    }
}
