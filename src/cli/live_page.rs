//! Keeps the page of a plan up to date during its apply.
//!
//! In: the engine's progress. Out: the page, replaced as a whole about once a second. Must not:
//! delay or fail the apply: a thread writes, and a page that can't be written is only warned about.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::console;
use super::failure::Failure;
use super::outcome::{self, ShardOutcome};
use super::output;
use super::session::Session;
use crate::apply::driver::Applied;
use crate::apply::engine::{GroupStage, GroupStatus, Progress, Starts, Step, TaskEnd};
use crate::apply::steps::Start;
use crate::config::model::CanaryPause;
use crate::diagnostic::Diagnostic;
use crate::plan::change::Plan;
use crate::report::html::Page;
use crate::report::html::live::{Group, Live, State};
use crate::report::text::ShardEnd;

/// The time between two writings.
const PACE: Duration = Duration::from_secs(1);

/// The page of a plan that is applied.
pub struct LivePage {
    page: Arc<Page>,
    path: PathBuf,
    run: Option<Run>,
}

/// An apply under way.
struct Run {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
    /// The positions of the groups by name.
    groups: HashMap<String, usize>,
    /// The tasks that failed; they end, too.
    failed: HashSet<usize>,
    goes_back: bool,
    has_warned: bool,
}

/// What the engine's thread and the writing one share.
struct Shared {
    news: Mutex<News>,
    changed: Condvar,
}

struct News {
    live: Live,
    is_new: bool,
    is_over: bool,
    failure: Option<Failure>,
}

impl LivePage {
    /// Writes the page of a plan that isn't applied yet.
    ///
    /// Fails if the file can't be written.
    pub fn write(page: Page, path: PathBuf) -> Result<Self, Failure> {
        output::write(&path, &page.text(None))?;
        Ok(Self {
            page: Arc::new(page),
            path,
            run: None,
        })
    }

    /// Begins to show progress; `starts` says what an earlier apply has done.
    pub fn begin(&mut self, session: &Session<'_>, plan: &Plan, starts: &Starts) {
        let mut groups = groups_of(plan);
        let places = places_of(&groups);
        for (change, start) in plan.changes.iter().zip(&starts.tasks) {
            if matches!(start, Start::Done { .. })
                && let Some(place) = places.get(change.address.group.as_str())
            {
                groups[*place].done += 1;
            }
        }
        let shared = Arc::new(Shared {
            news: Mutex::new(News {
                live: Live::new(session.clock.now(), groups),
                is_new: true,
                is_over: false,
                failure: None,
            }),
            changed: Condvar::new(),
        });
        let (own, page, path) = (
            Arc::clone(&shared),
            Arc::clone(&self.page),
            self.path.clone(),
        );
        self.run = Some(Run {
            shared,
            thread: std::thread::spawn(move || own.write_on(&page, &path)),
            groups: places,
            failed: HashSet::new(),
            goes_back: false,
            has_warned: false,
        });
    }

    /// Shows a step of the apply of `of`: the plan, or the way back.
    pub fn tell(&mut self, session: &Session<'_>, (plan, of): (&Plan, &Plan), progress: &Progress) {
        let (Some(run), false) = (&mut self.run, matches!(progress, Progress::Tick)) else {
            return;
        };
        let shared = Arc::clone(&run.shared);
        let mut news = shared.lock();
        if !std::ptr::eq(of, plan) && !run.goes_back {
            run.goes_back = true;
            news.live.state = State::RollingBack;
            news.live.groups = groups_of(of);
            run.groups = places_of(&news.live.groups);
            run.failed.clear();
        }
        news.live.written_at = session.clock.now();
        run.note(of, progress, &mut news.live);
        news.is_new = true;
        let failure = news.failure.take();
        drop(news);
        shared.changed.notify_all();
        if let Some(failure) = failure.filter(|_| !run.has_warned) {
            run.has_warned = true;
            console::aside(|| outcome::tell(session, unwritten(&failure)));
        }
    }

    /// Corrects the counts by the outcome: of the way back, if there was one.
    pub fn count(&mut self, plan: &Plan, applied: &Applied) {
        let Some(run) = &self.run else { return };
        let (plan, outcome) = match &applied.back {
            Some((way, came)) => (way, came),
            None => (plan, &applied.outcome),
        };
        let live = &mut run.shared.lock().live;
        for group in &mut live.groups {
            (group.done, group.failed) = (group.total, 0);
        }
        for (task, end) in &outcome.undone {
            let name = plan.changes[*task].address.group.as_str();
            let Some(group) = run.group(name, live) else {
                continue;
            };
            // Saturates, since a way back that was never shown has other totals.
            group.done = group.done.saturating_sub(1);
            match end {
                TaskEnd::Failed(_) | TaskEnd::Unfinished(_) | TaskEnd::Unsettled(_) => {
                    group.failed += 1;
                }
                TaskEnd::NotTried | TaskEnd::Done => {}
            }
            if group.status.is_empty() {
                "not tried".clone_into(&mut group.status);
            }
        }
    }

    /// Writes the final page.
    pub fn finish(mut self, session: &Session<'_>, ended: &Result<ShardOutcome, Failure>) {
        let Some(run) = self.run.take() else { return };
        let mut news = run.shared.lock();
        news.is_over = true;
        let mut live = news.live.clone();
        drop(news);
        run.shared.changed.notify_all();
        // It only fails if it panicked, which ends the process.
        let _ = run.thread.join();
        live.state = match ended.as_ref().map(|outcome| outcome.end) {
            Ok(ShardEnd::Done | ShardEnd::Unchanged) => State::Done,
            Ok(ShardEnd::Waiting) => State::Waiting,
            Ok(ShardEnd::Failed) | Err(_) => State::Failed,
            Ok(ShardEnd::Interrupted | ShardEnd::NotTried) => State::Interrupted,
        };
        live.written_at = session.clock.now();
        let errors = ended.as_ref().err();
        for finding in errors
            .into_iter()
            .flat_map(|failure| failure.findings.iter())
        {
            live.failures
                .push(("apply".to_owned(), finding.summary.clone()));
        }
        if let Err(failure) = output::write(&self.path, &self.page.text(Some(&live)))
            && !run.has_warned
        {
            console::aside(|| outcome::tell(session, unwritten(&failure)));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, News> {
        // A panic ends the whole run, so the news are still consistent.
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the page whenever there is something new, until it is over.
    fn write_on(&self, page: &Page, path: &std::path::Path) {
        loop {
            let waits = |news: &mut News| !news.is_new && !news.is_over;
            let news = self.changed.wait_while(self.lock(), waits);
            let mut news = news.unwrap_or_else(PoisonError::into_inner);
            if news.is_over {
                return;
            }
            news.is_new = false;
            let live = news.live.clone();
            drop(news);
            let written = output::write(path, &page.text(Some(&live)));
            let mut news = self.lock();
            news.failure = written.err().or(news.failure.take());
            let rest = self
                .changed
                .wait_timeout_while(news, PACE, |news| !news.is_over);
            drop(rest);
        }
    }
}

impl Run {
    fn note(&mut self, plan: &Plan, progress: &Progress, live: &mut Live) {
        let now = live.written_at;
        let task = |task: usize| &plan.changes[task].address;
        match progress {
            Progress::Started { task: id, step } => {
                let address = task(*id);
                if let Some(group) = self.group(address.group.as_str(), live)
                    && group.status.is_empty()
                {
                    "running".clone_into(&mut group.status);
                }
                live.event(now, format!("{address}: {}", step.as_str()));
            }
            Progress::Completed {
                task: id,
                step,
                provider_id,
                elapsed,
            } => {
                let id_text = provider_id.as_deref().map(|id| format!(" [id={id}]"));
                let id_text = id_text.unwrap_or_default();
                let text = format!(
                    "{}: {} done after {}s{id_text}",
                    task(*id),
                    step.as_str(),
                    elapsed.as_secs()
                );
                live.event(now, text);
            }
            // The start of each of these is another event.
            Progress::Entered {
                step: Step::Create | Step::Update | Step::Delete | Step::Record,
                ..
            }
            | Progress::Still { .. }
            | Progress::Tick
            | Progress::Unused { .. } => {}
            Progress::Entered { task: id, step } => {
                live.event(now, format!("{}: {}", task(*id), step.as_str()));
            }
            Progress::Available { task: id } => {
                live.event(now, format!("{}: available", task(*id)));
            }
            Progress::Retrying {
                task: id, error, ..
            } => {
                live.event(now, format!("{}: trying again: {error}", task(*id)));
            }
            Progress::Elsewhere {
                task: id,
                error,
                subnet,
            } => live.event(
                now,
                format!("{}: trying in subnet {subnet}: {error}", task(*id)),
            ),
            Progress::Waits { task: id, why } => {
                live.event(now, format!("{}: waiting: {why}", task(*id)));
            }
            Progress::Failed {
                task: id,
                step,
                error,
            } => {
                self.failed.insert(*id);
                let address = task(*id).to_string();
                live.event(now, format!("{address}: {} failed", step.as_str()));
                live.failures.push((address, error.clone()));
                if let Some(group) = self.group(task(*id).group.as_str(), live) {
                    group.failed += 1;
                }
            }
            Progress::Ended { task: id } => {
                if let Some(group) = self.group(task(*id).group.as_str(), live) {
                    group.done += usize::from(!self.failed.contains(id));
                    if group.done + group.failed >= group.total {
                        let end = if group.failed > 0 { "failed" } else { "done" };
                        end.clone_into(&mut group.status);
                    }
                }
            }
            Progress::Unrecorded {
                task: id,
                provider_id,
            } => {
                let error = format!("made as {provider_id}, and not recorded");
                live.failures.push((task(*id).to_string(), error));
            }
            Progress::ExportFailed { address, error } => {
                let error = format!("its files can't be exported: {error}");
                live.failures.push((address.to_string(), error));
            }
            Progress::Group {
                group,
                stage,
                detail,
            } => {
                let planned = &plan.groups[*group];
                let pause = planned.rollout.as_ref().and_then(|it| it.canary_pause);
                let promote = format!("until `nstance rollout promote {}`", planned.name);
                let detail = match (stage, pause) {
                    (GroupStage::CanaryPause, Some(CanaryPause::For(pause))) => {
                        format!("until {}, or {promote}", now.after(pause))
                    }
                    (GroupStage::CanaryPause, _) => promote,
                    _ => detail.clone(),
                };
                self.stage(&planned.name, *stage, &detail, live);
            }
            // The pause began with all that is to be said of it.
            Progress::Rolls { status, .. } if status.stage == GroupStage::CanaryPause => {}
            Progress::Rolls { group, status } => {
                let wait = status.wait.as_ref();
                let wait = wait.map(|it| format!("waiting since {} for {}", it.since, it.what));
                let GroupStatus { stage, .. } = status;
                let name = &plan.groups[*group].name;
                self.stage(name, *stage, &wait.unwrap_or_default(), live);
            }
        }
    }

    fn stage(&self, name: &str, stage: GroupStage, detail: &str, live: &mut Live) {
        let Some(group) = self.group(name, live) else {
            return;
        };
        let word = stage.as_str().replace('-', " ");
        group.status = match detail {
            "" => word,
            detail => format!("{word}: {detail}"),
        };
    }

    fn group<'l>(&self, name: &str, live: &'l mut Live) -> Option<&'l mut Group> {
        live.groups.get_mut(*self.groups.get(name)?)
    }
}

/// The groups with changes, in the order of apply.
fn groups_of(plan: &Plan) -> Vec<Group> {
    let mut totals: HashMap<&str, usize> = HashMap::new();
    for change in &plan.changes {
        *totals.entry(change.address.group.as_str()).or_default() += 1;
    }
    let groups = plan.groups.iter().filter_map(|group| {
        let total = *totals.get(group.name.as_str())?;
        Some(Group {
            name: group.name.clone(),
            total,
            ..Group::default()
        })
    });
    groups.collect()
}

fn places_of(groups: &[Group]) -> HashMap<String, usize> {
    let names = groups.iter().map(|group| group.name.clone());
    names.zip(0..).collect()
}

/// The warning that the page is no longer up to date.
fn unwritten(failure: &Failure) -> Diagnostic {
    let why = failure.findings.iter().next();
    let why = why.map_or_else(String::new, |finding| finding.summary.clone());
    Diagnostic::warning("the page can't be kept up to date").detail(why)
}
