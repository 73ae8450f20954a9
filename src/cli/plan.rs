//! `nstance plan`: what apply would do.

use std::path::PathBuf;

use clap::Args;
use nstance_state::Store;

use super::failure::Failure;
use super::progress::Listing;
use super::session::{self, Session};
use super::{Ending, Globals, exit, placed};
use crate::address::Selector;
use crate::config::check::Purpose;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::pipeline::{self, Caches, Made, Request};
use crate::plan::build::Options;
use crate::plan::change::{Mode, Plan};
use crate::plan::file;
use crate::provider::Cloud;
use crate::report::{diagnostic, json, text};

/// Options of `plan`.
#[derive(Debug, Args)]
pub struct PlanCommand {
    /// Save the plan, for `apply` and `show`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// End with 2 if there are changes
    #[arg(long)]
    detailed_exitcode: bool,
    #[command(flatten)]
    pub(super) shape: Shape,
}

/// What plan and apply can be asked for.
#[derive(Debug, Clone, Args)]
pub struct Shape {
    /// Plan only this group or slot; may repeat
    #[arg(long, value_name = "ADDR")]
    pub target: Vec<Selector>,
    /// Leave out this group or slot; may repeat
    #[arg(long, value_name = "ADDR")]
    pub exclude: Vec<Selector>,
    /// Replace this group or slot; may repeat
    #[arg(long, value_name = "ADDR")]
    pub replace: Vec<Selector>,
    /// Plan to delete everything
    #[arg(long, conflicts_with_all = ["refresh_only", "replace"])]
    pub destroy: bool,
    /// Plan only to record what the cloud reports
    #[arg(long, conflicts_with = "replace")]
    pub refresh_only: bool,
    /// Whether to ask the cloud what there is
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set, require_equals = true)]
    pub refresh: bool,
    /// Look images up even where a young answer is kept
    #[arg(long)]
    pub refresh_images: bool,
}

impl Shape {
    /// As the planner takes it.
    pub fn options(&self, session: &Session<'_>, keep_unchanged: bool) -> Result<Options, Failure> {
        if self.refresh_only && !self.refresh {
            return Err(Failure::say(
                "`--refresh-only` has nothing to do with `--refresh=false`",
            ));
        }
        if self.refresh_images && !self.refresh {
            return Err(Failure::say(
                "`--refresh-images` asks the cloud, which `--refresh=false` forbids",
            ));
        }
        let config = session.config();
        let mut targets = self.target.clone();
        // What a target depends on comes with it, and what that depends on.
        let mut next = 0;
        while let Some(group) = targets.get(next).map(|target| target.group().clone()) {
            next += 1;
            let Some(group) = config.group(&group) else {
                continue;
            };
            for name in &group.depends_on {
                let full = if name.value.contains('/') {
                    name.value.to_string()
                } else {
                    format!("{}/{}", group.name.tenant(), name.value)
                };
                if let Ok(needed) = full.parse::<Selector>()
                    && !targets.contains(&needed)
                {
                    targets.push(needed);
                }
            }
        }
        Ok(Options {
            mode: match (self.destroy, self.refresh_only) {
                (true, _) => Mode::Destroy,
                (_, true) => Mode::RefreshOnly,
                _ => Mode::Normal,
            },
            targets,
            excludes: self.exclude.clone(),
            replace: self.replace.clone(),
            keep_unchanged,
            strict: config.strict || session.globals.strict,
        })
    }
}

/// Runs `plan`.
pub fn run(globals: &Globals, command: &PlanCommand) -> Ending {
    let session = Session::load(globals, Purpose::Plan)?;
    let result = plan_and_show(&session, command);
    placed(session, result)
}

fn plan_and_show(session: &Session<'_>, command: &PlanCommand) -> Result<u8, Failure> {
    let json = session.globals.json;
    let options = command.shape.options(session, json)?;
    let mut store = session.open_to_read()?;
    let cloud = if command.shape.refresh {
        Some(session.cloud()?)
    } else {
        None
    };
    let made = make(
        session,
        store.as_mut(),
        cloud.as_deref(),
        command.shape.refresh_images,
        &options,
    )?;
    drop(store);
    let Made {
        plan,
        mut findings,
        caches,
    } = made;
    keep(session, caches);
    findings.extend(unmatched(&plan, &options, session));
    let findings = all_findings(session, findings);
    let mut saved = None;
    if let Some(path) = &command.out {
        // A plan that leaves something out is still worth looking at, and apply refuses it.
        file::write(path, &plan).map_err(|error| Failure::unsaved_plan(path, &error))?;
        saved = Some(session::shown(path));
    }
    show(session, &plan, &findings);
    if let Some(path) = saved
        && !json
        && !session.globals.quiet
    {
        session::error(&format!(
            "\nSaved the plan to: {path}\nTo carry it out: nstance{} apply {path}\n",
            given(session.globals)
        ));
    }
    Ok(if plan.errored() || findings.has_errors() {
        exit::ERROR
    } else if command.detailed_exitcode && plan.summary.has_changes() {
        exit::CHANGES
    } else {
        exit::SUCCESS
    })
}

/// The global options that say which configuration, state and cloud, as they were given.
fn given(globals: &Globals) -> String {
    let mut text = String::new();
    if let Some(config) = &globals.config {
        text.push_str(&format!(" -c {}", config.display()));
    }
    if let Some(state) = &globals.state {
        text.push_str(&format!(" --state {state}"));
    }
    if globals.sim {
        text.push_str(" --sim");
    }
    text
}

/// Selectors that name nothing are worth a word: they are mostly slips.
fn unmatched(plan: &Plan, options: &Options, session: &Session<'_>) -> Vec<Diagnostic> {
    options
        .targets
        .iter()
        .chain(&options.excludes)
        .chain(&options.replace)
        .filter(|selector| {
            let group = selector.group();
            session.config().group(group).is_none()
                && !plan
                    .changes
                    .iter()
                    .any(|change| change.address.group == *group)
        })
        .map(|selector| {
            let known: Vec<String> = session
                .config()
                .groups
                .iter()
                .map(|group| group.name.to_string())
                .collect();
            let name = selector.group().to_string();
            let near = crate::diagnostic::nearest(&name, known.iter().map(String::as_str));
            let finding = Diagnostic::warning(format!("`{selector}` names nothing"));
            match near {
                Some(near) => finding.hint(format!("there is a group `{near}`")),
                None => finding.hint("Groups are listed by: nstance graph"),
            }
        })
        .collect()
}

/// Makes a plan, with a word on standard error while instances are listed.
pub fn make(
    session: &Session<'_>,
    store: Option<&mut Store>,
    cloud: Option<&dyn Cloud>,
    refresh_images: bool,
    options: &Options,
) -> Result<Made, Failure> {
    let identity = session.identity();
    let listing = Listing::new(session.globals, cloud.map(Cloud::name));
    let made = pipeline::plan(Request {
        config: session.config(),
        sources: &session.loaded.sources,
        directory: &session.loaded.directory,
        store,
        cloud,
        observe: true,
        network: true,
        provider_name: session.provider_name(),
        identity: &identity,
        rules: session.rules(),
        clock: &*session.clock,
        refresh_images,
        options,
        progress: &mut |count| listing.set(count),
    });
    listing.finish();
    Ok(made?)
}

/// The findings of reading, then those of planning.
pub fn all_findings(session: &Session<'_>, findings: Diagnostics) -> Diagnostics {
    let mut all = session.loaded.findings.clone();
    all.extend(findings);
    all
}

/// Shows a plan: text or JSON on standard output, findings on standard error (or in the JSON).
pub fn show(session: &Session<'_>, plan: &Plan, findings: &Diagnostics) {
    if session.globals.json {
        let findings = diagnostic::to_json(findings, &session.loaded.sources);
        session::print_json(&json::plan(plan, findings));
        return;
    }
    session::print(&text::plan(plan, session.style()));
    session.tell(findings);
}

/// Keeps answers in a state that exists and can be written; a plan needs neither.
fn keep(session: &Session<'_>, caches: Caches) {
    if caches.is_empty() {
        return;
    }
    if let Ok(Some(mut store)) = session.open_to_write() {
        let _ = store.set_busy_timeout(std::time::Duration::from_millis(200));
        let _ = caches.save(&mut store, session.clock.now());
    }
}
