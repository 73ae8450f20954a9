//! `nstance apply` and `nstance destroy`: apply a plan.

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;

use super::apply_shard::{LockedShard, ReadyShard};
use super::approval::{Approval, refuse};
use super::console;
use super::exit::{self, worst};
use super::failure::{Failure, Failures};
use super::fleet::Fleet;
use super::outcome::{self, ShardOutcome};
use super::plan_args::{PlanArgs, Replacements};
use super::plan_files::{self, SavedPlan};
use super::progress::Board;
use super::reports::{Found, Reports};
use super::selection::{AddressArgs, AllowedGroups, Selection};
use super::session;
use super::signals::Graceful;
use super::{Ending, Globals, Wait, page, signals, unplaced};
use crate::address::{InShard, Selector};
use crate::check::Purpose;
use crate::diagnostic::Diagnostic;
use crate::plan::change::{Mode, Summary};
use crate::report::review::Subject;
use crate::report::text::ShardEnd;
use crate::report::{events, text};

/// Options of `apply`.
#[derive(Debug, Args)]
pub struct Apply {
    /// Saved plans, one per shard; without any, apply plans and prompts
    #[arg(value_name = "PLANFILE", conflicts_with_all = ["target", "exclude", "replace", "destroy", "refresh_only", "refresh_images"])]
    plans: Vec<PathBuf>,
    #[command(flatten)]
    approval: Approval,
    #[command(flatten)]
    replacements: Replacements,
    #[command(flatten)]
    order: Order,
    /// End with code 3 when a rollout has waited this long without progress
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = super::duration)]
    max_wait: Wait,
    /// Write an HTML page of the plan, and keep it up to date
    ///
    /// {cluster} and {shard} in the name are replaced.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Apply a configuration again that was rolled back
    #[arg(long)]
    retry: bool,
    #[command(flatten)]
    pub(super) reports: Reports,
    #[command(flatten)]
    shape: PlanArgs,
}

/// Options of `destroy`.
#[derive(Debug, Args)]
pub struct Destroy {
    /// Destroy only this group or slot (may repeat)
    #[arg(long, value_name = "ADDR")]
    target: Vec<InShard<Selector>>,
    /// Leave out this group or slot (may repeat)
    #[arg(long, value_name = "ADDR")]
    exclude: Vec<InShard<Selector>>,
    #[command(flatten)]
    approval: Approval,
    #[command(flatten)]
    order: Order,
    #[command(flatten)]
    pub(super) reports: Reports,
}

/// How several shards follow each other.
#[derive(Debug, Clone, Copy, Args)]
struct Order {
    /// Apply this many shards at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    shards_parallel: u16,
}

/// The options of an apply.
struct Request<'a> {
    operation: &'static str,
    plans: &'a [PathBuf],
    shape: &'a PlanArgs,
    approval: &'a Approval,
    allow_replace: &'a [InShard<AllowedGroups>],
    order: Order,
    max_wait: Duration,
    retries: bool,
    reports: &'a Reports,
    html: Option<&'a Path>,
}

/// Runs `apply`.
pub fn run(globals: &Globals, command: &Apply) -> Ending {
    let request = Request {
        operation: "apply",
        plans: &command.plans,
        shape: &command.shape,
        approval: &command.approval,
        allow_replace: &command.replacements.allow_replace,
        order: command.order,
        max_wait: command.max_wait.0,
        retries: command.retry,
        reports: &command.reports,
        html: command.html.as_deref(),
    };
    signals::plan_to_apply();
    let purpose = if command.plans.is_empty() {
        Purpose::Plan
    } else {
        Purpose::Identity
    };
    apply(globals, purpose, &request)
}

/// Applies the plan of one group without a prompt.
pub(super) fn group(globals: &Globals, group: &Selector) -> Ending {
    let target = InShard {
        shard: None,
        address: group.clone(),
    };
    let allowed = InShard {
        shard: None,
        address: AllowedGroups::Group(group.group().clone()),
    };
    let request = Request {
        operation: "run-errand",
        plans: &[],
        shape: &PlanArgs::of(&[target], &[], Mode::Normal),
        approval: &Approval {
            auto_approve: true,
            allow_delete: vec![allowed],
            continue_on_error: false,
        },
        allow_replace: &[],
        order: Order { shards_parallel: 1 },
        max_wait: Duration::MAX,
        retries: false,
        reports: &Reports::default(),
        html: None,
    };
    apply(globals, Purpose::Plan, &request)
}

/// Runs `destroy`.
pub fn destroy(globals: &Globals, command: &Destroy) -> Ending {
    let request = Request {
        operation: "destroy",
        plans: &[],
        shape: &PlanArgs::of(&command.target, &command.exclude, Mode::Destroy),
        approval: &command.approval,
        allow_replace: &[],
        order: command.order,
        max_wait: Duration::MAX,
        retries: false,
        reports: &command.reports,
        html: None,
    };
    signals::plan_to_apply();
    apply(globals, Purpose::Plan, &request)
}

/// Applies all shards, and reports the result.
fn apply(globals: &Globals, purpose: Purpose, request: &Request<'_>) -> Ending {
    let reports = request.reports;
    if !reports.prints_text() && !globals.json {
        console::keep_output_for_a_report();
    }
    reports.around(Subject::Apply, || {
        let mut fleet = Fleet::load(globals, purpose)?;
        let (code, ends) = apply_all(&mut fleet, request)?;
        let mut found: Vec<Found> = ends.into_iter().map(ShardOutcome::found).collect();
        // Nothing was begun.
        found.resize_with(fleet.shards.len(), Found::default);
        Ok(reports.publish(&fleet, Subject::Apply, found, None, code))
    })
}

/// Locks, plans and asks for approval in all shards before it changes one of them. Returns the exit
/// code, and the outcomes if any shard got as far.
fn apply_all(
    fleet: &mut Fleet<'_>,
    request: &Request<'_>,
) -> Result<(u8, Vec<ShardOutcome>), Failures> {
    let stopped = |code| Ok((code, Vec::new()));
    let approval = request.approval;
    if !approval.auto_approve && request.plans.is_empty() && !std::io::stdin().is_terminal() {
        return Err(Failure::new(
            Diagnostic::error("cannot ask for approval: standard input is not a terminal")
                .hint("To apply without a prompt, pass --auto-approve")
                .hint("Or save a plan, look at it, and apply that: nstance plan --out FILE"),
        )
        .into());
    }
    let saved = match request.plans {
        [] => None,
        files => Some(plan_files::read(fleet, files)?),
    };
    let chosen = fleet.select(AddressArgs {
        allow_delete: &approval.allow_delete,
        allow_replace: request.allow_replace,
        ..request.shape.asked()
    })?;
    let (globals, several) = (fleet.globals, fleet.is_several());
    if globals.json && several {
        print_version(fleet);
    }
    let pages = page::paths(fleet, request.html)?;
    let html = pages.iter().flatten().map(PathBuf::as_path);
    let plans = request.plans.iter().map(PathBuf::as_path);
    request.reports.check_files(fleet, plans, html)?;
    let Some(mut begun) = begin(fleet, request, saved, &chosen) else {
        if several {
            give_up(fleet, 1);
        }
        return stopped(exit::ERROR);
    };
    write_pages(fleet, &mut begun, pages);
    let failed = begun.iter().filter(|work| work.is_none()).count();
    if several && request.plans.is_empty() {
        tell_total(fleet, &begun);
    }
    let hopeless = failed == begun.len();
    if failed > 0 && (hopeless || !approval.continue_on_error) {
        if several && !hopeless {
            give_up(fleet, failed);
        }
        return stopped(exit::ERROR);
    }
    let refused = refusals(&begun, approval, &chosen);
    if refused > 0 {
        if several && refused < begun.len() {
            give_up(fleet, refused);
        }
        return stopped(exit::ERROR);
    }
    let works = begun.iter().flatten();
    let changing: Vec<_> = works
        .filter(|work| work.plan.summary.is_applyable())
        .collect();
    let asks = !changing.is_empty() && !approval.auto_approve && request.plans.is_empty();
    if asks && !ask(fleet, &changing).map_err(unplaced)? {
        console::print("\nApply cancelled.\n");
        return stopped(exit::ERROR);
    }
    let mode = begun
        .iter()
        .flatten()
        .next()
        .map_or(Mode::Normal, |work| work.plan.mode);
    let ends = finish(fleet, request, begun);
    if several {
        outcome::conclude_all(fleet, mode, &ends);
    }
    Ok((worst(ends.iter().map(|ended| ended.code)), ends))
}

/// Locks all shards, then settles and plans each. Reports a failed shard and omits it. Returns
/// `None` if a lock fails without `--continue-on-error`.
fn begin<'s, 'g>(
    fleet: &'s Fleet<'g>,
    request: &Request<'_>,
    saved: Option<Vec<SavedPlan>>,
    chosen: &[Selection],
) -> Option<Vec<Option<ReadyShard<'s, 'g>>>> {
    // A fixed order, so that two runs can't deadlock.
    let mut order: Vec<usize> = (0..fleet.shards.len()).collect();
    order.sort_by_key(|index| {
        let identity = fleet.shards[*index].identity();
        (identity.cluster, identity.shard)
    });
    let mut locked = BTreeMap::new();
    let mut begun: Vec<Option<ReadyShard<'s, 'g>>> = fleet.shards.iter().map(|_| None).collect();
    for index in order {
        let session = &fleet.shards[index];
        match LockedShard::lock(session, request.operation, saved.is_none()) {
            Ok(lock) => {
                locked.insert(index, lock);
            }
            Err(failure) => {
                fleet.shards[index].fail(&failure);
                if !request.approval.continue_on_error {
                    return None;
                }
            }
        }
    }
    let mut saved: Vec<Option<SavedPlan>> = match saved {
        Some(saved) => saved.into_iter().map(Some).collect(),
        None => fleet.shards.iter().map(|_| None).collect(),
    };
    let mut first = true;
    for (index, locked) in locked {
        let session = &fleet.shards[index];
        let work = match saved[index].take() {
            Some(saved) => locked.follow(saved, &chosen[index], request.retries),
            None => locked
                .plan(request.shape, &chosen[index], request.retries)
                .map(|(mut work, findings)| {
                    match (fleet.is_several(), fleet.globals.json) {
                        (true, false) => fleet.head(session, std::mem::take(&mut first)),
                        (false, true) => print_version(fleet),
                        _ => {}
                    }
                    work.show(&findings);
                    work.findings = findings;
                    work
                }),
        };
        match work {
            Ok(work) => begun[index] = Some(work),
            Err(failure) => session.fail(&failure),
        }
    }
    Some(begun)
}

/// Writes the page of each plan. Reports a page that can't be written and omits its shard.
fn write_pages(
    fleet: &Fleet<'_>,
    begun: &mut [Option<ReadyShard<'_, '_>>],
    pages: Vec<Option<PathBuf>>,
) {
    let mut written = Vec::new();
    for (place, path) in begun.iter_mut().zip(pages) {
        let (Some(work), Some(path)) = (place.as_mut(), path) else {
            continue;
        };
        match work.write_page(path.clone()) {
            Ok(()) => written.push(path),
            Err(failure) => {
                work.session.fail(&failure);
                *place = None;
            }
        }
    }
    let written: Vec<&Path> = written.iter().map(|path| &**path).collect();
    page::tell(fleet.globals, &written);
}

fn print_version(fleet: &Fleet<'_>) {
    let now = session::clock(fleet.globals).now();
    console::print_json_line(&events::version(now));
}

/// Prints the total of all shards' plans.
fn tell_total(fleet: &Fleet<'_>, begun: &[Option<ReadyShard<'_, '_>>]) {
    let summaries = begun.iter().map(|work| Some(work.as_ref()?.plan.summary));
    let summaries: Vec<Option<Summary>> = summaries.collect();
    if fleet.globals.json {
        let mut total = Summary::default();
        for summary in summaries.iter().flatten() {
            total.add(summary);
        }
        let now = session::clock(fleet.globals).now();
        console::print_json_line(&events::plan_summary(now, &total));
    } else {
        let total = text::plan_total(&summaries, fleet.globals.style());
        console::print(&format!("\n{total}\n"));
    }
}

/// Reports every plan that requires an option which wasn't given; returns their number.
fn refusals(
    begun: &[Option<ReadyShard<'_, '_>>],
    approval: &Approval,
    chosen: &[Selection],
) -> usize {
    let mut refused = 0;
    for (work, chosen) in begun.iter().zip(chosen) {
        let Some(work) = work else { continue };
        if let Err(failure) = refuse(work.session, &work.plan, approval, chosen) {
            work.session.fail(&failure);
            refused += 1;
        }
    }
    refused
}

/// Reports that valid shards aren't changed either.
fn give_up(fleet: &Fleet<'_>, failed: usize) {
    let all = fleet.shards.len();
    let finding = Diagnostic::error(format!(
        "nothing is applied in any of the {all} shards, because of {failed} of them"
    ))
    .hint("Fix that, or name the configurations of the other shards only");
    fleet.fail(&finding.into());
}

/// Applies the plans with changes, and ends the other shards.
fn finish(
    fleet: &Fleet<'_>,
    request: &Request<'_>,
    begun: Vec<Option<ReadyShard<'_, '_>>>,
) -> Vec<ShardOutcome> {
    let signals = signals::graceful();
    let mut ends = vec![ShardOutcome::failed(); begun.len()];
    let mut works = Vec::new();
    let mut places = Vec::new();
    for (index, work) in begun.into_iter().enumerate() {
        let Some(work) = work else { continue };
        if work.plan.summary.is_applyable() {
            works.push(work);
            places.push(index);
            continue;
        }
        let (session, mode) = (work.session, work.plan.mode);
        match work.leave() {
            Ok(ended) => {
                ends[index] = ended;
                if !fleet.is_several() {
                    outcome::nothing_to_do(session, mode);
                }
            }
            Err(failure) => session.fail(&failure),
        }
    }
    let changes = works.iter().map(|work| work.plan.changes.len()).sum();
    let board = Board::new(fleet.globals, changes);
    let pace = Pace {
        max_wait: request.max_wait,
        at_once: request.order.shards_parallel.into(),
        continue_on_error: request.approval.continue_on_error,
    };
    let rolled = roll_out(works, request.operation, pace, &board, &signals);
    for (index, ended) in places.into_iter().zip(rolled) {
        ends[index] = ended;
    }
    ends
}

/// Asks once for approval of all shards' plans.
///
/// Fails if standard input isn't a terminal.
fn ask(fleet: &Fleet<'_>, changing: &[&ReadyShard<'_, '_>]) -> Result<bool, Failure> {
    let mode = changing.first().map_or(Mode::Normal, |work| work.plan.mode);
    let shards = if fleet.is_several() {
        format!(" in {} of {} shards", changing.len(), fleet.shards.len())
    } else {
        String::new()
    };
    let question = match mode {
        Mode::Destroy => {
            let mut question =
                format!("\nDo you really want to destroy all of these instances{shards}?\n");
            let protected = changing.iter().flat_map(|work| {
                let groups = work.plan.deletions.protected.iter();
                groups.map(|group| work.session.name(group))
            });
            let protected: Vec<String> = protected.collect();
            if !protected.is_empty() {
                question.push_str(&format!(
                    "  Protected groups lose instances: {}\n",
                    protected.join(", ")
                ));
            }
            question
        }
        Mode::Normal => format!("\nDo you want to perform these actions{shards}?\n"),
        Mode::RefreshOnly => format!("\nDo you want to record these findings{shards}?\n"),
    };
    approved(&question)
}

/// Asks for approval. Only `yes` approves, as in Terraform.
///
/// Fails if standard input isn't a terminal.
pub fn approved(question: &str) -> Result<bool, Failure> {
    // Standard output may be a file.
    console::error(&format!(
        "{question}  Only 'yes' will be accepted to approve.\n\n  Enter a value: "
    ));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

/// How shards are applied.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// How long a rollout may wait without progress.
    max_wait: Duration,
    /// The number of shards applied in parallel.
    at_once: usize,
    /// Whether to start further shards after one failed.
    continue_on_error: bool,
}

/// Applies shards in the given order. Starts no further shard after a failure, unless
/// `continue_on_error` is set, and none after a signal.
fn roll_out(
    works: Vec<ReadyShard<'_, '_>>,
    operation: &str,
    pace: Pace,
    board: &Board,
    signals: &Graceful,
) -> Vec<ShardOutcome> {
    let ends = Mutex::new(vec![None; works.len()]);
    let threads = pace.at_once.min(works.len());
    let queue = Mutex::new(works.into_iter().enumerate());
    let failed = AtomicBool::new(false);
    let work = || {
        loop {
            let halted = failed.load(Ordering::SeqCst) && !pace.continue_on_error;
            if halted || signals.code().is_some() {
                return;
            }
            // A panic ends the whole run, so a poisoned queue is still consistent.
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((index, work)) = next else { return };
            let ended = work.apply(operation, pace.max_wait, board, signals);
            if ended.end == ShardEnd::Failed {
                failed.store(true, Ordering::SeqCst);
            }
            ends.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(ended);
        }
    };
    if threads <= 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let ends = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
    let not_tried = ShardOutcome::not_tried(signals.code());
    ends.into_iter()
        .map(|ended| ended.unwrap_or_else(|| not_tried.clone()))
        .collect()
}
